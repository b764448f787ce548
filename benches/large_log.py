#!/usr/bin/env python3
"""How long castor takes to resume a session with a large log, and how much memory.

Usage: benches/large_log.py CASTOR [--turns N] [--seconds N] [--mib N]
CASTOR is a binary, such as target/release/castor. Linux; the standard library only.

A first castor writes a log of three turns. The second turn is repeated N times (100,000, some 300 MB), with ids and
checksums of its own. Printed are the time from `session/resume` to its answer, the most memory so far, that of the next
turn, and the memory some seconds after the session was closed. Fails above the limits (5 s, 300 MiB).
"""

import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUM = re.compile(rb',"sum":"[^"]{22}"}$')
# No words again and again, which would pass for a loop.
TEXT = " ".join(f"w{n * 7919 % 10007}" for n in range(230))


def script(n):
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}}]}]
    chunks.append({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]})
    return (json.dumps({"method": "generateContentStream", "response": chunks}) + "\n") * n


class Agent:
    def __init__(self, castor, folder):
        (folder / "ws").mkdir(exist_ok=True)
        (folder / "script").write_text(script(9))
        env = {"PATH": os.environ["PATH"], "HOME": str(folder), "CASTOR_HOME": f"{folder}/.castor"}
        args = [castor, "acp", f"--fake-responses={folder}/script"]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(args, cwd=folder / "ws", env=env, stdin=pipe, stdout=pipe, text=True)
        self.place, self.n = {"cwd": str(folder / "ws"), "mcpServers": []}, 0
        self.call("initialize", {"protocolVersion": 1})

    def call(self, method, params):
        self.n += 1
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": self.n, "method": method, "params": params}) + "\n")
        self.process.stdin.flush()
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self.n and "method" not in message:
                # No server takes so much of a conversation at once.
                if "error" in message and "too large" not in message["error"]["message"]:
                    sys.exit(f"{method}: {message['error']}")
                return message.get("result")
        sys.exit(f"{method}: castor ended")

    def prompt(self, session, text):
        self.call("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})

    def memory(self, key):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{key}:\s+(\d+) kB", status).group(1)) / 1024

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def letters(digest):
    return base64.urlsafe_b64encode(digest[:8]).rstrip(b"=")


def grow(path, turns):
    """Repeats the second turn of a log."""
    lines = [SUM.sub(b"}", it) for it in path.read_bytes().splitlines()]
    _, second, third = [n for n, it in enumerate(lines) if b'"agent_start"' in it][:3]
    turn = b"\n".join(lines[second:third])
    ids = {it for key in [b"streamId", b"messageId"] for it in re.findall(rb'"%s":"([^"]+)"' % key, turn)}
    before = b"A" * 11
    with path.open("wb") as out:
        def put(line):
            nonlocal before
            head = line[:-1] + b',"sum":"' + before
            before = letters(hashlib.sha256(head).digest())
            out.write(head + before + b'"}\n')

        for line in lines[:second]:
            put(line)
        for n in range(turns):
            text = turn
            for it in ids:
                text = text.replace(it, it + b"x%d" % n)
            for line in text.split(b"\n"):
                put(line)
        for line in lines[third:]:
            put(line)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("castor")
    parser.add_argument("--turns", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--mib", type=float, default=300)
    args = parser.parse_args()
    castor = str(Path(args.castor).resolve())
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        agent = Agent(castor, folder)
        session = agent.call("session/new", agent.place)["sessionId"]
        for n in range(3):
            agent.prompt(session, f"Prompt {n}: {TEXT[:200]}")
        agent.end()
        path = folder / f".castor/sessions/{session}.jsonl"
        grow(path, args.turns)
        size = path.stat().st_size
        agent = Agent(castor, folder)
        idle = agent.memory("VmRSS")
        start = time.monotonic()
        agent.call("session/resume", {"sessionId": session, **agent.place})
        seconds, peak = time.monotonic() - start, agent.memory("VmHWM")
        print(f"log {size / 1e6:.0f} MB, {args.turns} turns; resume {seconds:.2f} s, most memory {peak:.0f} MiB")
        start = time.monotonic()
        agent.prompt(session, "one more")
        print(f"next turn {time.monotonic() - start:.2f} s, most memory {agent.memory('VmHWM'):.0f} MiB")
        agent.call("session/close", {"sessionId": session})
        time.sleep(6)
        print(f"closed: {agent.memory('VmRSS'):.0f} MiB, before the session {idle:.0f} MiB")
        agent.end()
        if seconds > args.seconds or peak > args.mib:
            sys.exit(f"above the limits of {args.seconds} s and {args.mib} MiB")


if __name__ == "__main__":
    main()
