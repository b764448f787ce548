#!/usr/bin/env python3
"""What code in an answer costs `castor chat`: its memory with more and more languages, and how long a key waits meanwhile.

Usage: benches/chat_code.py CASTOR, such as target/release/castor. Needs the standard library only, and Linux.

A script in place of a model answers each prompt with a block of code in one more language, in pieces of 40 bytes. From
the prompt's Enter until the end of the answer letters are typed, one after the other. At last an agent of this script's
own sends 512 KB of code in one update. Printed for each language and for the burst, of five chats:

- key: the longest time from a letter to its echo, while the answer came: median of the chats, and the largest.
- PSS: of the chat's own process, when all is drawn, in MB: median.

It fails when a median is above 10 ms or 25 MB. Python's own reading counts. Measure on a machine that does nothing else.
"""

import json
import os
import statistics
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from chat_peers import Chat, pss, write

CHATS = 5
MOST_MS = 10.0
MOST_MB = 25.0
PIECE = 40
# No code has them, so that each echo is found.
LETTERS = "αβγδεζηθικλμνξοπρστυφχψω"
BURST = 512 << 10
# An agent that answers each prompt with the text of a file, in one update.
AGENT = """\
import json, sys

def send(**what):
    print(json.dumps({"jsonrpc": "2.0", **what}), flush=True)

text = open(sys.argv[1]).read()
update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
answers = {"session/new": {"sessionId": "s"}, "session/prompt": {"stopReason": "end_turn"}}
for line in sys.stdin:
    asked = json.loads(line)
    if asked.get("method") == "session/prompt":
        send(method="session/update", params={"sessionId": "s", "update": update})
    if "id" in asked and "method" in asked:
        send(id=asked["id"], result=answers.get(asked["method"], {"protocolVersion": 1}))
"""
CLEAR = b"\x15"
CODE = {
    "words": None,
    "rust": """\
use std::fmt;
/// A number with its unit.
struct Amount<'a> { value: f64, unit: &'a str }
impl fmt::Display for Amount<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "{} {}", self.value, self.unit) }
}
fn main() {
    for value in [1.5, 0x1f as f64] { println!("{}", Amount { value, unit: "m" }); } // 'm'
}
""",
    "python": """\
import os
from dataclasses import dataclass
@dataclass
class Amount:
    \"\"\"A number
    with its unit.\"\"\"
    value: float = 1.5
    def __str__(self):
        return f"{self.value} m" if self.value is not None else 'none'  # 'm'
print([str(Amount(it)) for it in range(3)], os.getcwd())
""",
    "bash": """\
#!/bin/bash
set -euo pipefail
for file in *.txt; do
  if [[ -s "$file" ]]; then echo "$(wc -l <"$file") lines" | tee -a "${LOG:-log}"; fi
done
cat <<EOF
it's $HOME
EOF
""",
    "typescript": """\
import { readFile } from "node:fs/promises";
export interface Amount<T> { value: T; unit?: string }
class Store implements Iterable<number> {
  private values: Map<string, number> = new Map();
  async load(path: string): Promise<void> { this.values.set(`x ${path}`, Number(await readFile(path, "utf8"))); }
  *[Symbol.iterator]() { yield* this.values.values(); } // all
}
""",
    "json": """\
{"name": "amount", "values": [1.5, -2e3, null, true], "unit": {"short": "m", "text": "a \\"metre\\""}}
""",
}

ROWS = [*CODE, "512 KB of it"]


def response(language):
    code = CODE[language]
    text = f"Here:\n\n```{language}\n{code}```\n\nEND-{language}" if code else f"Words.\n\nEND-{language}"
    pieces = [text[at : at + PIECE] for at in range(0, len(text), PIECE)]
    chunks = [{"candidates": [{"content": {"role": "model", "parts": [{"text": it}]}}]} for it in pieces]
    chunks[-1]["candidates"][0]["finishReason"] = "STOP"
    return json.dumps({"method": "generateContentStream", "response": chunks})


def longest_key(chat, end):
    """Types until `end` is shown; the longest wait for an echo, in milliseconds."""
    os.write(chat.master, b"go\r")
    chat.mark()
    seen, longest = "", 0.0
    for at in range(len(LETTERS) * 100):
        letter = LETTERS[at % len(LETTERS)]
        if letter == LETTERS[0] and at > 0:
            os.write(chat.master, CLEAR)
            chat.settle(0.2)
        seen += chat.text()
        chat.mark()
        start = time.monotonic()
        os.write(chat.master, letter.encode())
        echo = chat.wait(lambda text, letter=letter: letter in text, 5.0)
        if not echo:
            raise RuntimeError(f"a letter is not shown: {chat.text()[-300:]!r}")
        longest = max(longest, (echo - start) * 1000)
        if end in seen + chat.text():
            break
    os.write(chat.master, CLEAR)
    chat.settle()
    return longest


def burst_key(chat, end):
    """The same for much at once. Only new bytes are looked at: Python would take longer than what is measured."""
    os.write(chat.master, b"go\r")
    longest, tail, at = 0.0, b"", 0
    while end.encode() not in tail:
        letter = LETTERS[at % len(LETTERS)].encode()
        at += 1
        start = time.monotonic()
        # Else letters that were typed before would be drawn again, and taken for this one.
        os.write(chat.master, CLEAR + letter)
        is_shown = False
        while not is_shown:
            chat.mark()
            if not chat.read(5.0):
                raise RuntimeError(f"a letter is not shown: {tail[-300:]!r}")
            is_shown = letter in tail[-1:] + chat.raw
            tail = (tail + chat.raw)[-(1 << 17) :]
        longest = max(longest, (time.monotonic() - start) * 1000)
    chat.settle()
    return longest


def measure(castor, scratch):
    home, folder, answers = Path(scratch, "home"), Path(scratch, "project"), Path(scratch, "answers.jsonl")
    home.mkdir(exist_ok=True)
    write(folder / "README.md", "# A project\n")
    write(answers, "".join(response(it) + "\n" for it in CODE))
    code = CODE["rust"] * (BURST // len(CODE["rust"]))
    write(Path(scratch, "burst.md"), f"```rust\n{code}```\n\nEND-burst")
    write(Path(scratch, "agent.py"), AGENT)
    env = {it: os.environ[it] for it in ("PATH", "LANG", "LD_LIBRARY_PATH") if it in os.environ}
    env |= {"HOME": str(home), "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    res = {}
    with opened(castor, ["--fake-responses", str(answers)], env, folder) as chat:
        for language in CODE:
            key = longest_key(chat, f"END-{language}")
            res[language] = (key, pss(chat.pid))
    agent = f"{sys.executable} {scratch}/agent.py {scratch}/burst.md"
    with opened(castor, ["--agent", agent], env, folder) as chat:
        res[ROWS[-1]] = (burst_key(chat, "END-burst"), pss(chat.pid))
    return res


@contextmanager
def opened(castor, more, env, folder):
    chat = Chat([castor, "chat", *more], env, folder)
    try:
        if not chat.wait(lambda text: "Ask anything" in text and "starting" not in text.rsplit("Ask anything", 1)[-1]):
            raise RuntimeError("no session opens")
        chat.settle()
        yield chat
    finally:
        chat.close()


def main():
    castor = str(Path(sys.argv[1]).resolve())
    with tempfile.TemporaryDirectory() as scratch:
        # The first start writes files that the others find.
        all_of_it = [measure(castor, scratch) for _ in range(CHATS + 1)][1:]
    is_over = False
    print(f"{'':12} {'key, ms':>8} {'largest':>8} {'PSS, MB':>8}")
    for language in ROWS:
        keys = [it[language][0] for it in all_of_it]
        key, memory = statistics.median(keys), statistics.median(it[language][1] for it in all_of_it)
        is_over |= key > MOST_MS or memory > MOST_MB
        print(f"{language:12} {key:8.1f} {max(keys):8.1f} {memory:8.1f}")
    sys.exit(f"more than {MOST_MS} ms or {MOST_MB} MB" if is_over else 0)


if __name__ == "__main__":
    main()
