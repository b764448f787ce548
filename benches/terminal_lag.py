#!/usr/bin/env python3
"""How far `castor run` on a terminal lags behind a model and behind a command, in milliseconds.

Usage: benches/terminal_lag.py CASTOR, such as target/release/castor. Needs the standard library only.

What it measures. Text carries numbered words. A word is behind from its source's stamp until this program reads it, or
a later word, from the pseudo-terminal of `castor run` (80 by 24). The largest such time is printed for each case, with
the 99th percentile.

- model: 100,000 chunks of 20 bytes from a script in place of a model, as paragraphs, and again as one paragraph. The
  stamp is taken between `castor acp` and `castor run`, where a relay reads the agent's output: it is the lag of
  `castor run`, with the pipe before it. The script sends as fast as it is read.
- command: a program prints 10 MB in numbered lines. The program takes the stamps before it prints: it is the lag from
  the program to the terminal, with the sandbox, the agent, and the time that the program itself waits for its pipe.

The last word has to be drawn; if it is not, the case fails. All stamps are of one clock, `time.monotonic_ns`. Python's
own reading counts as castor's lag. Compare releases only, on a machine that does nothing else.
"""

import bisect
import fcntl
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

CHUNKS = 100_000
# Chunks of a paragraph: 1,000 bytes.
PARAGRAPH = 50
LINES = 200_000
LINE = 50
# Lines between two stamps of the command.
STRIDE = 20
WORD = re.compile(rb"w(\d{7})")
# A word that begins at the end of a block is found with the next one.
OVERLAP = 7

COMMAND = f"""
import sys, time
stamps = []
for start in range(0, {LINES}, {STRIDE}):
    lines = (f"w{{at:07d}} ".ljust({LINE - 1}, "x") for at in range(start, start + {STRIDE}))
    text = "".join(line + "\\n" for line in lines)
    stamps.append((start + {STRIDE - 1}, time.monotonic_ns()))
    sys.stdout.write(text)
    sys.stdout.flush()
with open("stamps.txt", "w") as file:
    file.writelines(f"{{word}} {{at}}\\n" for word, at in stamps)
"""


def words(blocks):
    """Of each block of (time, bytes), in their order: the time, and the words that it ends."""
    rest = b""
    for at, block in blocks:
        text = rest + block
        yield at, [int(it) for it in WORD.findall(text)]
        rest = text[-OVERLAP:]


def read_blocks(file):
    """The blocks of a file descriptor until its end, each with the time of its arrival."""
    while True:
        try:
            block = os.read(file, 1 << 20)
        except OSError:  # Linux: the terminal's other side is closed.
            return
        if not block:
            return
        yield time.monotonic_ns(), block


def pass_on(blocks):
    """Writes the blocks to stdout, each before the next step looks at it."""
    for at, block in blocks:
        rest = block
        while rest:
            rest = rest[os.write(1, rest):]
        yield at, block


def relay(stamps, command):
    """Runs an agent, passes its output on, and writes when its words came, one a line."""
    agent = subprocess.Popen(command, stdout=subprocess.PIPE)
    # `castor run` may kill it at the end.
    with open(stamps, "w") as file:
        for at, found in words(pass_on(read_blocks(agent.stdout.fileno()))):
            file.writelines(f"{word} {at}\n" for word in found)
            file.flush()
    return agent.wait()


def run_on_terminal(command, folder, home):
    """Runs a command on a terminal: exit code, and what was drawn, with times."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "xterm-256color", "LANG": "C.UTF-8",
               "CASTOR_TRUST_WORKSPACE": "true"}
        os.execve(command[0], command, env)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    blocks = list(read_blocks(terminal))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), blocks


def lags(said, drawn):
    """Of each word that was said: the time until it, or a later one, was drawn. In nanoseconds, sorted."""
    first = {}
    for word, at in said:
        first.setdefault(word, at)
    # The highest word so far, and since when.
    heads, times = [], []
    for at, found in drawn:
        if found and (not heads or max(found) > heads[-1]):
            heads.append(max(found))
            times.append(at)
    if not heads or heads[-1] < max(first):
        sys.exit(f"the last word {max(first)} was not drawn; the last one is {heads[-1] if heads else None}")
    return sorted(times[bisect.bisect_left(heads, word)] - at for word, at in first.items())


def line(*chunks):
    """A script's answer to one request."""
    parts = [{"candidates": [{"content": {"role": "model", "parts": [it]}}]} for it in chunks]
    parts[-1]["candidates"][0]["finishReason"] = "STOP"
    return json.dumps({"method": "generateContentStream", "response": parts}) + "\n"


def text(at, paragraph):
    """A chunk of 20 bytes."""
    end = "so on.\n\n" if (at + 1) % paragraph == 0 else "so on so "
    return {"text": f"w{at:07d} " + end.rjust(11, "-")}


def measure(castor, name, script, folder_files, said):
    """One case; `said` is the file of its source's stamps, in the scratch folder."""
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve()
        home, folder = root / "home", root / "work"
        home.mkdir(), folder.mkdir()
        (root / "script.jsonl").write_text(script)
        for file, content in folder_files.items():
            (folder / file).write_text(content)
        agent = [castor, "acp", "--approval-mode", "yolo", "--fake-responses", str(root / "script.jsonl")]
        relayed = [sys.executable, os.path.abspath(__file__), "--relay", str(root / "relay.txt"), *agent]
        start = time.monotonic()
        code, blocks = run_on_terminal([castor, "run", "--agent", shlex.join(relayed), "go"], folder, home)
        took = time.monotonic() - start
        if code != 0:
            sys.exit(f"castor run ended with {code}: {b''.join(it for _, it in blocks)[-2000:].decode(errors='replace')}")
        stamps = [tuple(map(int, it.split())) for it in (root / said).read_text().splitlines()]
        found = lags(stamps, words(blocks))
    largest, most = found[-1] / 1e6, found[len(found) * 99 // 100] / 1e6
    print(f"{name:<28} largest lag {largest:8.1f} ms   99 % {most:8.1f} ms   {took:6.1f} s in all")


def main():
    if sys.argv[1:2] == ["--relay"]:
        sys.exit(relay(sys.argv[2], sys.argv[3:]))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    castor = os.path.abspath(sys.argv[1])
    for name, paragraph in (("model, paragraphs", PARAGRAPH), ("model, one paragraph", CHUNKS)):
        chunks = (text(at, paragraph) for at in range(CHUNKS))
        measure(castor, name, line(*chunks), {}, "relay.txt")
    command = f"{shlex.quote(sys.executable)} print.py"
    call = {"functionCall": {"name": "run_shell_command", "args": {"command": command}}}
    script = line(call) + line({"text": "Done."})
    measure(castor, "command, 10 MB", script, {"print.py": COMMAND}, "work/stamps.txt")


if __name__ == "__main__":
    main()
