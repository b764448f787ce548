#!/usr/bin/env python3
"""How soon a chat shows itself and what is typed, and how much memory it takes: castor's, and those of other agents.

Usage: benches/chat_peers.py CASTOR [FOLDER], such as target/release/castor. FOLDER is one in which npm installed those of
@google/gemini-cli, @openai/codex, opencode-ai and @charmland/crush that are to be measured. The last one's program is not
in npm's registry: its installation fetches it from a release page. Needs the standard library only, and Linux.

Each program runs on a pseudo-terminal of 100 by 30 that answers what terminals are asked, in a home and a folder of its
own, without keys. A setting names a model server that is not there where a program shows no field to type in otherwise.
Printed for each, of five starts after one that does not count:

- frame: median of the milliseconds from exec until the first words are read.
- ready: the same until a letter that is typed is shown.
- key: from a letter to its echo: median and largest of 100, while nothing else happens.
- PSS: of the chat's own process and of all its processes, five seconds after the last key, in MB.

Python's own reading counts. Compare on a machine that does nothing else.
"""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

STARTS = 5
KEYS = 20
IDLE = 5.0
WATCHDOG = 60.0
# Letters that no start screen has by itself, or seldom.
LETTERS = "ZQXJ"
ESCAPE = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\].*?(?:\x07|\x1b\\)|\x1b[P_^X].*?\x1b\\|\x1b[ -/]*[0-OQ-WYZ\\`-~]", re.DOTALL
)
# What terminals are asked, and what they say.
ANSWERS = [
    (re.compile(rb"\x1b\[6n"), b"\x1b[1;1R"),
    (re.compile(rb"\x1b\[5n"), b"\x1b[0n"),
    (re.compile(rb"\x1b\[0?c"), b"\x1b[?62;22c"),
    (re.compile(rb"\x1b\[>0?q"), b"\x1bP>|bench(1)\x1b\\"),
    (re.compile(rb"\x1b\[\?u"), b"\x1b[?0u"),
    (re.compile(rb"\x1b\]10;\?(?:\x07|\x1b\\)"), b"\x1b]10;rgb:dddd/dddd/dddd\x1b\\"),
    (re.compile(rb"\x1b\]11;\?(?:\x07|\x1b\\)"), b"\x1b]11;rgb:1111/1111/1111\x1b\\"),
    (re.compile(rb"\x1b\[\?2026\$p"), b"\x1b[?2026;2$y"),
]
NOWHERE = "http://127.0.0.1:9/v1"


def gemini(home, folder):
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": True}}
    write(home / ".gemini/settings.json", json.dumps(settings))
    # It asks first otherwise, and takes no letters meanwhile.
    write(home / ".gemini/trustedFolders.json", json.dumps({str(folder): "TRUST_FOLDER"}))
    return {"GEMINI_API_KEY": "none"}


def codex(home, folder):
    server = f'[model_providers.none]\nname = "none"\nbase_url = "{NOWHERE}"\n'
    trust = f'[projects."{folder}"]\ntrust_level = "trusted"\n'
    write(home / ".codex/config.toml", f'model = "none"\nmodel_provider = "none"\n{server}{trust}')
    return {}


def opencode(_home, _folder):
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1"}


def crush(home, folder):
    model = {"id": "none", "name": "none", "context_window": 1000, "default_max_tokens": 100}
    server = {"name": "none", "type": "openai", "base_url": NOWHERE, "api_key": "none", "models": [model]}
    chosen = {"model": "none", "provider": "none"}
    config = {"providers": {"none": server}, "models": {"large": chosen, "small": chosen}}
    write(home / ".config/crush/crush.json", json.dumps(config))
    write(folder / ".crush/init", "")
    return {"CRUSH_DISABLE_PROVIDER_AUTO_UPDATE": "1"}


PEERS = {"gemini": gemini, "codex": codex, "opencode": opencode, "crush": crush}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Chat:
    """A program on a terminal, and all that it wrote since `mark`."""

    def __init__(self, argv, env, folder):
        self.start = time.monotonic()
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(folder)
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
                os.execvpe(argv[0], argv, env)
            finally:
                os._exit(127)
        self.raw = b""
        self.asked = b""

    def read(self, seconds):
        """Reads what comes within so long; whether something came."""
        if not select.select([self.master], [], [], max(0.0, seconds))[0]:
            return False
        try:
            new = os.read(self.master, 1 << 16)
        except OSError:
            new = b""
        if not new:
            raise RuntimeError(f"it ended: {self.text()[-300:]!r}")
        self.raw += new
        self.asked += new
        for question, answer in ANSWERS:
            for _ in question.findall(self.asked):
                os.write(self.master, answer)
            self.asked = question.sub(b"", self.asked)
        # A question may be cut in two.
        self.asked = self.asked[-16:]
        return True

    def text(self):
        return ESCAPE.sub(b"", self.raw).decode(errors="replace")

    def mark(self):
        self.raw = b""

    def wait(self, holds, seconds=WATCHDOG):
        """The time at which the text had it; `None`: it did not within so long."""
        end = time.monotonic() + seconds
        while not holds(self.text()):
            left = end - time.monotonic()
            if left <= 0:
                return None
            self.read(left)
        return time.monotonic()

    def settle(self, quiet=0.5, most=10.0):
        end = time.monotonic() + most
        while time.monotonic() < end and self.read(quiet):
            pass

    def close(self):
        for pid in processes(self.pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        os.close(self.master)
        os.waitpid(self.pid, 0)


def processes(pid):
    """This process, and all below it."""
    found = [pid]
    for parent in found:
        try:
            tasks = list(Path(f"/proc/{parent}/task").iterdir())
            found += [int(it) for task in tasks for it in (task / "children").read_text().split()]
        except OSError:
            pass
    return found


def pss(pid):
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(it.split()[1]) for it in lines if it.startswith("Pss:")) / 1024


def first_letter(chat):
    """The time at which a typed letter was shown. One that came too early is typed again, as another."""
    for letter in LETTERS * 100:
        chat.mark()
        os.write(chat.master, letter.encode())
        at = chat.wait(lambda text, letter=letter: letter in text, 0.1)
        if at:
            return at
    raise RuntimeError(f"no letter is shown: {chat.text()[-300:]!r}")


def key_times(chat):
    res = []
    for letter in (LETTERS * KEYS)[:KEYS]:
        chat.settle(0.1)
        chat.mark()
        start = time.monotonic()
        os.write(chat.master, letter.encode())
        at = chat.wait(lambda text, letter=letter: letter in text, 5.0)
        if not at:
            raise RuntimeError(f"a letter is not shown: {chat.text()[-300:]!r}")
        res.append((at - start) * 1000)
    return res


def measure(argv, prepare):
    frames, readies, keys, own, all_of_it = [], [], [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        home, folder = Path(scratch, "home"), Path(scratch, "project")
        write(folder / "README.md", "# A project\n")
        home.mkdir()
        env = {it: os.environ[it] for it in ("PATH", "LANG", "LD_LIBRARY_PATH") if it in os.environ}
        env |= {"HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor", **prepare(home, folder)}
        for nth in range(STARTS + 1):
            chat = Chat(argv, env, folder)
            try:
                frame = chat.wait(lambda text: re.search(r"\w{3}", text))
                if not frame:
                    raise RuntimeError("it shows nothing")
                ready = first_letter(chat)
                chat.settle()
                times = key_times(chat)
                chat.settle(IDLE, IDLE)
                # The first start writes files that the others find.
                if nth > 0:
                    frames.append((frame - chat.start) * 1000)
                    readies.append((ready - chat.start) * 1000)
                    keys += times
                    own.append(pss(chat.pid))
                    all_of_it.append([pss(it) for it in processes(chat.pid)])
            finally:
                chat.close()
    both = f"{statistics.median(own):.0f} / {statistics.median(map(sum, all_of_it)):.0f} in {len(all_of_it[-1])}"
    times = f"{statistics.median(frames):8.0f} {statistics.median(readies):8.0f}"
    return f"{times} {statistics.median(keys):8.1f} {max(keys):8.1f}   {both}"


def main():
    castor = str(Path(sys.argv[1]).resolve())
    programs = [("castor", [castor, "chat", "-m", "demo"], lambda _home, _folder: {})]
    installed = Path(sys.argv[2]).resolve() / "node_modules/.bin" if len(sys.argv) > 2 else None
    for name, prepare in PEERS.items():
        program = shutil.which(name, path=installed) if installed else None
        if program:
            programs.append((name, [program], prepare))
    print(f"{'':10} {'frame':>8} {'ready':>8} {'key':>8} {'largest':>8}   PSS own / all, processes")
    for name, argv, prepare in programs:
        try:
            print(f"{name:10} {measure(argv, prepare)}", flush=True)
        except RuntimeError as error:
            print(f"{name:10} not measured: {error}", flush=True)


if __name__ == "__main__":
    main()
