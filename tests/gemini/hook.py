"""A hook of the scenarios: appends what it is told to FILE, and answers. Usage: hook.py FILE ANSWER [EXIT]

With an exit code the answer goes to stderr. An answer that is a table `{"first": …, "then": …}` changes after the first time.
"""
import json
import os
import sys

file, answer, *code = sys.argv[1:]
told = json.load(sys.stdin)
is_first = not os.path.exists(file)
with open(file, "a") as record:
    record.write(json.dumps(told) + "\n")
try:
    table = json.loads(answer)
except ValueError:
    table = None
if isinstance(table, dict) and set(table) == {"first", "then"}:
    answer = json.dumps(table["first" if is_first else "then"])
print(answer, file=sys.stderr if code else sys.stdout)
sys.exit(int(code[0]) if code else 0)
