#!/usr/bin/env python3
"""What the sandbox costs a build: projects of six kinds, outside and as a command of a session in mode `auto`.

Usage: benches/builds.py CASTOR [-k KIND] [-r ROUNDS]
CASTOR is a binary, such as target/release/castor. Linux; the standard library, and the programs of each kind.

Each round runs a line outside and then by castor, from a clean tree. Printed are medians and their ratio; a castor time is
that of the whole prompt, with checkpoints. The rows `spawns` and `opens` tell what a process and an open cost by themselves.
Fails if castor asks, if a line fails, or if a kind takes more than 1.15 times its time outside.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LIMIT = 1.15
EVERY = {
    "cargo": "cargo build -q --offline && cargo test -q --offline",
    "pytest": "python3 -m pytest -q",
    "npm": "npm run -s build && npm test --silent",
    "go": "go build ./... && go vet ./... && go test -count=1 ./...",
    "make": "make -s -j2 test",
    "gradle": "gradle --offline --no-daemon -q build",
}
COSTS = {
    "spawns": "for n in $(seq 1000); do /bin/true; done",
    "opens": "cat d*/f* d*/f* d*/f* d*/f* d*/f* > /dev/null",
}
IGNORED = "target\ndist\n*.o\nprog\n__pycache__\n.pytest_cache\nbuild\n.gradle\n"


def cargo():
    yield "Cargo.toml", '[package]\nname = "six"\nversion = "0.1.0"\nedition = "2021"\n'
    yield "src/lib.rs", "".join(f"pub mod m{n};\n" for n in range(60))
    for n in range(60):
        yield f"src/m{n}.rs", (
            f"pub fn names(n: usize) -> Vec<String> {{ (0..n).map(|i| format!(\"{n}-{{i}}\")).collect() }}\n"
            "#[test]\nfn t() { assert_eq!(names(3).len(), 3); }\n"
        )


def pytest():
    for n in range(80):
        yield f"tests/test_{n}.py", (
            "import json, pytest\n@pytest.mark.parametrize('n', range(20))\ndef test_a(n, tmp_path):\n"
            "    p = tmp_path / 'x'\n    p.write_text(json.dumps(list(range(n))))\n    assert len(json.loads(p.read_text())) == n\n"
        )


def npm():
    build = "const fs = require('fs'); fs.mkdirSync('dist', {recursive: true});\n"
    build += "for (const f of fs.readdirSync('src')) fs.writeFileSync('dist/' + f, fs.readFileSync('src/' + f));\n"
    yield "package.json", json.dumps({"name": "six", "scripts": {"build": "node build.js", "test": "node --test"}})
    yield "build.js", build
    for n in range(60):
        yield f"src/a{n}.js", f"exports.f = (n) => Array.from({{length: n}}, (_, i) => i * {n});\n"
    for n in range(16):
        yield f"test/a{n}.test.js", (
            f"const {{f}} = require('../src/a{n}.js');\n"
            "require('node:test')('f', () => require('node:assert').equal(f(1000).length, 1000));\n"
        )


def go():
    yield "go.mod", "module six\n\ngo 1.19\n"
    yield "main.go", 'package main\n\nimport (\n\t"fmt"\n\t"net/http"\n)\n\nfunc main() { fmt.Println(http.StatusText(200)) }\n'
    for n in range(12):
        yield f"p{n}/p.go", f"package p{n}\n\nfunc F(n int) int {{ return n * {n} }}\n"
        yield f"p{n}/p_test.go", (
            f'package p{n}\n\nimport "testing"\n\nfunc TestF(t *testing.T) {{\n\tif F(1) != {n} {{\n\t\tt.Fatal()\n\t}}\n}}\n'
        )


def make():
    yield "Makefile", (
        "O = $(patsubst %.c,%.o,$(wildcard *.c))\nprog: $(O)\n\t$(CC) -o $@ $(O)\ntest: prog\n\t./prog > /dev/null\n"
    )
    for n in range(150):
        yield f"s{n}.c", (
            "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
            f"int f{n}(void) {{ char b[64]; snprintf(b, 64, \"%d\", {n}); return strlen(b); }}\n"
        )
    calls = " + ".join(f"f{n}()" for n in range(150))
    yield "main.c", "".join(f"int f{n}(void);\n" for n in range(150)) + f"int main(void) {{ return ({calls}) == 0; }}\n"


def gradle():
    yield "build.gradle", "apply plugin: 'java'\n"
    for n in range(40):
        yield f"src/main/java/six/A{n}.java", f"package six; public class A{n} {{ static int f(int n) {{ return n * {n}; }} }}\n"


def opens():
    for folder in range(20):
        for n in range(100):
            yield f"d{folder}/f{n}", f"{folder} {n}\n"


FILES = {"cargo": cargo, "pytest": pytest, "npm": npm, "go": go, "make": make, "gradle": gradle, "opens": opens}


def project(folder, kind):
    for path, text in FILES.get(kind, lambda: [("a", "a\n")])():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".gitignore").write_text(IGNORED)
    for args in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *args], cwd=folder, check=True)


class Session:
    """A session in mode `auto` whose model asks for one line at each prompt."""

    def __init__(self, castor, box, line, prompts):
        call = {"functionCall": {"name": "run_shell_command", "args": {"command": line}}}
        said = []
        for part in [call, {"text": "done"}] * prompts:
            body = {"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}]}
            said.append(json.dumps({"method": "generateContentStream", "response": [body]}) + "\n")
        (box / "script").write_text("".join(said))
        env = {**os.environ, "CASTOR_HOME": f"{box}/castor", "CASTOR_TRUST_WORKSPACE": "true"}
        pipe = subprocess.PIPE
        args = [castor, "acp", f"--fake-responses={box}/script"]
        self.process = subprocess.Popen(args, cwd=box / "in", env=env, stdin=pipe, stdout=pipe, text=True)
        self.n, self.questions, self.failed = 0, [], []
        self.call("initialize", {"protocolVersion": 1})
        self.id = self.call("session/new", {"cwd": str(box / "in"), "mcpServers": []})["sessionId"]
        self.call("session/set_mode", {"sessionId": self.id, "modeId": "auto"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, method, params):
        self.n += 1
        self.send({"id": self.n, "method": method, "params": params})
        while line := self.process.stdout.readline():
            message = json.loads(line)
            if message.get("method") == "session/request_permission":
                self.questions.append(message["params"]["toolCall"].get("title", "?"))
                self.send({"id": message["id"], "result": {"outcome": {"outcome": "cancelled"}}})
            elif message.get("params", {}).get("update", {}).get("status") == "failed":
                self.failed.append(json.dumps(message["params"]["update"])[:600])
            elif message.get("id") == self.n and "method" not in message:
                return message["result"] if "result" in message else sys.exit(f"{method}: {message}")
        sys.exit(f"{method}: castor ended")

    def prompt(self):
        started = time.monotonic()
        self.call("session/prompt", {"sessionId": self.id, "prompt": [{"type": "text", "text": "go"}]})
        return time.monotonic() - started


def clean(folder):
    subprocess.run(["git", "clean", "-qfdX"], cwd=folder, check=True)


def measure(castor, kind, line, rounds):
    with tempfile.TemporaryDirectory(dir=Path.home()) as box:
        box = Path(box)
        for name in ("out", "in"):
            (box / name).mkdir()
            project(box / name, kind)
        session = Session(castor, box, line, rounds + 1)
        times = {"out": [], "in": []}
        for n in range(rounds + 1):
            for name in times:
                clean(box / name)
            started = time.monotonic()
            subprocess.run(["bash", "-c", line], cwd=box / "out", check=True, capture_output=True)
            if n:  # The first round fills caches.
                times["out"].append(time.monotonic() - started)
            taken = session.prompt()
            if n:
                times["in"].append(taken)
        session.process.stdin.close()
        session.process.wait()
        return times, session


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("castor")
    parser.add_argument("-k", default="")
    parser.add_argument("-r", type=int, default=7)
    args = parser.parse_args()
    castor = shutil.which(args.castor) or sys.exit(f"{args.castor} cannot be run")
    fell = False
    for kind, line in {**EVERY, **COSTS}.items():
        program = {"pytest": "python3", "spawns": "bash", "opens": "cat"}.get(kind, kind)
        if args.k not in kind or not shutil.which(program):
            print(f"{kind:8} skipped", flush=True) if args.k in kind else None
            continue
        times, session = measure(os.path.abspath(castor), kind, line, args.r)
        out, within = (statistics.median(times[name]) for name in ("out", "in"))
        ratio = within / out
        print(f"{kind:8} outside {out:7.3f} s  castor {within:7.3f} s  {ratio:5.2f} times", flush=True)
        for what in session.questions + session.failed:
            print(f"  {what}")
        fell |= bool(session.questions or session.failed) or (kind in EVERY and ratio > LIMIT)
    sys.exit(fell)


if __name__ == "__main__":
    main()
