#!/usr/bin/env python3
"""What `castor serve` needs for thousands of idle sessions, and how far a thousand streams lag behind their model.

Usage: benches/serve_load.py CASTOR [idle] [streams] [--sessions N] [--streams N] [--connections N] [--seconds N]
CASTOR is a binary, such as target/release/castor. Without a word both are measured. Linux; the standard library only.

- idle: N sessions (10,000), each with one prompt and its answer, over 100 connections that stay open. Then nothing
  happens, and memory is read: the PSS of the server and of all processes below it (smaps_rollup), and their open files.
  The smallest of a minute counts, in which every connection is pinged. Then `session/list` of these sessions by a
  `castor acp`: first of a process without and with the index of the list, and again.
- streams: N sessions (1,000), each on a connection of its own, each with one prompt. A script in place of the model has
  a chunk every 50 ms for each. Chunks are numbered, so each has a time at which it is due: counted from the stream's
  own chunk that came with the least delay. Printed is how much later they come, once all streams have begun and before
  the first one ends, and the processor time that server and agent take meanwhile. This program's own reading counts as
  castor's delay, and it takes its share of the cores.
"""

import argparse
import contextlib
import json
import os
import re
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EVERY_MS = 50
WORD = re.compile(rb"w(\d{6})")
HELLO = {"protocolVersion": 1, "clientInfo": {"name": "load", "version": "1"}}


def answer(texts, every_ms=None):
    """A line of the script."""
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [{"text": it}]}}]} for it in texts]
    chunks.append({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]})
    line = {"method": "generateContentStream", "response": chunks}
    return json.dumps(line | ({"every_ms": every_ms} if every_ms else {})) + "\n"


class Server:
    def __init__(self, castor, folder, script, flags):
        self.castor, self.folder = str(Path(castor).resolve()), Path(folder)
        for name in ["home", "ws"]:
            (self.folder / name).mkdir(exist_ok=True)
        (self.folder / "script").write_text(script)
        self.env = {"PATH": os.environ["PATH"], "HOME": f"{folder}/home", "CASTOR_HOME": f"{folder}/home/.castor"}
        self.env |= {"LANG": "C.UTF-8", "CASTOR_TRUST_WORKSPACE": "true"}
        self.token = self.run("serve", "token", "add", "load").stdout.strip()
        args = ["serve", "--listen=127.0.0.1:0", f"--fake-responses={folder}/script", *flags]
        self.process = subprocess.Popen([self.castor, *args], cwd=self.cwd, env=self.env, stdout=subprocess.PIPE, text=True)
        self.port = int(re.search(r":(\d+)/", self.process.stdout.readline()).group(1))

    @property
    def cwd(self):
        return str(self.folder / "ws")

    def run(self, *args):
        return subprocess.run([self.castor, *args], cwd=self.cwd, env=self.env, check=True, capture_output=True, text=True)

    def tree(self):
        """The server, then all processes below it."""
        res = [self.process.pid]
        for pid in res:
            for task in Path(f"/proc/{pid}/task").iterdir():
                # A thread may be gone by now.
                with contextlib.suppress(OSError):
                    res += [int(it) for it in (task / "children").read_text().split()]
        return res

    def end(self):
        self.process.terminate()
        self.process.wait()


def pss_kb(pid):
    return int(re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{pid}/smaps_rollup").read_text(), re.M).group(1))


def cpu_s(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Client:
    """A WebSocket. What comes is handed to `on_text`."""

    def __init__(self, server, selector, on_text):
        self.on_text, self.buffer, self.n_sent = on_text, b"", 0
        self.socket = socket.create_connection(("127.0.0.1", server.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = ["GET /acp HTTP/1.1", "Host: localhost", f"Authorization: Bearer {server.token}", "Connection: Upgrade"]
        head += ["Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""]
        self.socket.sendall("\r\n".join(head).encode())
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += self.socket.recv(1) or sys.exit(f"the server closed the connection: {answer}")
        if not answer.startswith(b"HTTP/1.1 101"):
            sys.exit(answer.decode())
        selector.register(self.socket, selectors.EVENT_READ, self)

    def frame(self, opcode, payload):
        n = len(payload)
        size = bytes([0x80 | n]) if n < 126 else struct.pack(">BH", 0xFE, n) if n < 1 << 16 else struct.pack(">BQ", 0xFF, n)
        # A mask of zeros changes nothing.
        self.socket.sendall(bytes([0x80 | opcode]) + size + b"\0\0\0\0" + payload)

    def request(self, method, params):
        self.n_sent += 1
        message = {"jsonrpc": "2.0", "id": self.n_sent, "method": method, "params": params}
        self.frame(1, json.dumps(message).encode())
        return self.n_sent

    def read(self):
        got = self.socket.recv(1 << 18)
        if not got:
            sys.exit("the server closed a connection")
        data, at = self.buffer + got if self.buffer else got, 0
        while len(data) - at >= 2:
            opcode, n, start = data[at] & 15, data[at + 1] & 127, at + 2
            if n >= 126:
                wide = 2 if n == 126 else 8
                if len(data) < start + wide:
                    break
                n, start = int.from_bytes(data[start : start + wide], "big"), start + wide
            if len(data) < start + n:
                break
            payload, at = data[start : start + n], start + n
            if opcode == 1:
                self.on_text(payload)
            elif opcode == 9:
                self.frame(10, payload)
            elif opcode == 8:
                sys.exit(f"the server closed a connection: {payload[2:].decode()}")
        self.buffer = data[at:]


def serve_clients(selector, until):
    while not until():
        for key, _ in selector.select(0.2):
            key.data.read()


def say_memory(server, what):
    """The least of a while: what a ping leaves behind is gone by then."""
    rows = {pid: pss_kb(pid) for pid in server.tree()}
    files = {pid: len(os.listdir(f"/proc/{pid}/fd")) for pid in rows}
    parts = " + ".join(f"{kb / 1024:.1f}" for kb in rows.values())
    print(f"  {what:28} {sum(rows.values()) / 1024:7.1f} MB ({parts}), open files {list(files.values())}", flush=True)
    return sum(rows.values())


class Talker:
    """Opens sessions one after the other, and has one turn in each."""

    def __init__(self, server, selector, n, counts):
        self.server, self.left, self.counts = server, n, counts
        self.client, self.expected = Client(server, selector, self.take), None
        self.ask("initialize", HELLO)

    def ask(self, method, params):
        self.expected, self.method = self.client.request(method, params), method

    def take(self, text):
        message = json.loads(text)
        if message.get("id") != self.expected or "method" in message:
            return
        if "error" in message:
            sys.exit(f"{self.method}: {message['error']}")
        if self.method == "session/new":
            session = message["result"]["sessionId"]
            prompt = [{"type": "text", "text": "What is in this folder, and what is it for?"}]
            return self.ask("session/prompt", {"sessionId": session, "prompt": prompt})
        if self.method == "session/prompt":
            self.counts["done"] += 1
        if self.left == 0:
            self.counts["ready"] += 1
            return
        self.left -= 1
        self.ask("session/new", {"cwd": self.server.cwd, "mcpServers": []})


def idle(args, folder):
    words = "It has a few files, which this sentence is about, and it goes on for as long as a short answer does. "
    script = "".join(answer([f"{n}: ", words, words]) for n in range(args.sessions))
    n_clients = min(args.connections or 100, args.sessions)
    flags = [f"--max-sessions={args.sessions}", f"--max-connections={n_clients + 1}", f"--max-sockets={n_clients + 8}"]
    server, selector, counts = Server(args.castor, folder, script, flags), selectors.DefaultSelector(), {"done": 0, "ready": 0}
    print(f"idle: {args.sessions} sessions with a turn each, {n_clients} connections")
    share = [args.sessions // n_clients + (at < args.sessions % n_clients) for at in range(n_clients)]
    Talker(server, selector, 0, counts)
    serve_clients(selector, lambda: counts["ready"] == 1)
    before = say_memory(server, "no session")
    start = time.monotonic()
    for n in share:
        Talker(server, selector, n, counts)
    said = [0]

    def is_done():
        if counts["done"] >= said[0] + args.sessions // 4:
            said[0] = counts["done"]
            say_memory(server, f"after {said[0]} turns")
        return counts["ready"] == n_clients + 1

    serve_clients(selector, is_done)
    took = time.monotonic() - start
    print(f"  opened, with a turn each, in {took:.1f} s ({took / args.sessions * 1000:.2f} ms each)")
    least, end = 1 << 60, time.monotonic() + args.seconds
    while time.monotonic() < end:
        step = time.monotonic() + 10
        serve_clients(selector, lambda: time.monotonic() >= step)
        least = min(least, say_memory(server, "idle"))
    print(f"  PSS {least / 1024:.1f} MB; {(least - before) / args.sessions:.2f} KB for each session", flush=True)
    server.end()
    listing(server)


def listing(server):
    """How long `session/list` takes, in milliseconds."""
    index = server.folder / "home/.castor/session-list"
    for what in ["without an index", "with an index"]:
        if what.startswith("without"):
            index.unlink(missing_ok=True)
        agent = subprocess.Popen(
            [server.castor, "acp"], cwd=server.cwd, env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

        def call(method, params):
            start = time.monotonic()
            agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode() + b"\n")
            agent.stdin.flush()
            while (message := json.loads(agent.stdout.readline())).get("id") != 1:
                pass
            return (time.monotonic() - start) * 1000, message["result"]

        call("initialize", HELLO)
        first, page = call("session/list", {})
        again = sorted(call("session/list", {})[0] for _ in range(40))
        print(
            f"  session/list {what}: first {first:.1f} ms, again p50 {again[20]:.1f} ms, p95 {again[38]:.1f} ms "
            f"({len(page['sessions'])} rows)",
            flush=True,
        )
        agent.stdin.close()
        agent.wait()


class Stream:
    def __init__(self, server, selector):
        self.server, self.came, self.state = server, [], "new"
        self.client = Client(server, selector, self.take)
        self.client.request("initialize", HELLO)

    def take(self, text):
        if b'"agent_message_chunk"' in text:
            now = time.monotonic()
            self.came += [(int(it), now) for it in WORD.findall(text)]
        elif self.state == "new" and b'"id":1,' in text:
            self.state = "opening"
            self.client.request("session/new", {"cwd": self.server.cwd, "mcpServers": []})
        elif self.state == "opening" and b'"id":2,' in text:
            self.session, self.state = json.loads(text)["result"]["sessionId"], "open"
        elif self.state == "asked" and b'"id":3,' in text:
            self.state = "over"
            if b"end_turn" not in text:
                sys.exit(text.decode())

    def go(self):
        prompt = [{"type": "text", "text": "go"}]
        self.state = "asked"
        self.client.request("session/prompt", {"sessionId": self.session, "prompt": prompt})


def streams(args, folder):
    n = args.streams
    n_chunks = (args.seconds + n // 50) * 1000 // EVERY_MS
    script = answer([f"w{at:06d} and some words " for at in range(n_chunks)], EVERY_MS) * n
    flags = [f"--max-sessions={n}", f"--max-connections={n}", f"--max-sockets={n + 8}"]
    server, selector = Server(args.castor, folder, script, flags), selectors.DefaultSelector()
    print(f"streams: {n} at {1000 // EVERY_MS} chunks/s, a connection each")
    all_streams = []
    for _ in range(n):
        all_streams.append(Stream(server, selector))
        serve_clients(selector, lambda: all_streams[-1].state == "open")
    for it in all_streams:
        it.go()
        serve_clients(selector, lambda: True)
        for key, _ in selector.select(0):
            key.data.read()
    serve_clients(selector, lambda: all(it.came for it in all_streams))
    calm = time.monotonic() + 1
    serve_clients(selector, lambda: time.monotonic() >= calm)
    pids = server.tree()[:2]
    cpu, began = [cpu_s(it) for it in pids] + [time.process_time()], time.monotonic()
    serve_clients(selector, lambda: any(it.state == "over" for it in all_streams) or time.monotonic() > began + args.seconds)
    ended = time.monotonic()
    used = [b - a for a, b in zip(cpu, [cpu_s(it) for it in pids] + [time.process_time()])]
    delays = []
    for it in all_streams:
        rows = [at - n * EVERY_MS / 1000 for n, at in it.came if began <= at <= ended]
        delays += [(at - min(rows)) * 1000 for at in rows]
    delays.sort()
    span = ended - began
    at = lambda percent: delays[min(len(delays) - 1, int(len(delays) * percent / 100))]
    print(
        f"  {len(delays)} chunks in {span:.1f} s ({len(delays) / span:.0f}/s): later than the stream's earliest by "
        f"p50 {at(50):.2f} ms, p99 {at(99):.2f} ms, p99.9 {at(99.9):.2f} ms, most {delays[-1]:.1f} ms"
    )
    names = ["server", "agent", "this program"]
    print("  processor: " + ", ".join(f"{name} {s / span * 100:.0f} %" for name, s in zip(names, used)), flush=True)
    print(f"  mean {statistics.fmean(delays):.2f} ms", flush=True)
    say_memory(server, "while they stream")
    server.process.kill()
    server.process.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("castor")
    parser.add_argument("what", nargs="*", choices=["idle", "streams", []])
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--connections", type=int)
    parser.add_argument("--seconds", type=int, default=60)
    args = parser.parse_args()
    for name, act in [("idle", idle), ("streams", streams)]:
        if not args.what or name in args.what:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                act(args, folder)


if __name__ == "__main__":
    main()
