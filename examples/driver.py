#!/usr/bin/env python3
"""Asks castor for something, prints the answer as it comes, and approves edits alone.

    driver.py "Write summary.md" -m demo

What follows the prompt goes to `castor acp`. The variable CASTOR names the program, if `castor` is not in the PATH.
"""
import json
import os
import sys
from subprocess import PIPE, Popen


class Castor:
    """A running `castor acp`. A message is one line of JSON; both sides ask, and requests may overlap."""

    def __init__(self, *args, on_event, on_question):
        command = [os.environ.get("CASTOR", "castor"), "acp", *args]
        self.process = Popen(command, stdin=PIPE, stdout=PIPE, encoding="utf-8")
        self.on_event, self.on_question = on_event, on_question
        self.last_id, self.answers = 0, {}

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def request(self, method, **params):
        self.last_id += 1
        self.send(id=self.last_id, method=method, params=params)
        return self.last_id

    def wait(self, request):
        """Reads until castor answered this request, and handles what comes before."""
        while request not in self.answers:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("castor ended before it answered")
            self.handle(json.loads(line))
        answer = self.answers.pop(request)
        if "error" in answer:
            raise RuntimeError(answer["error"]["message"])
        return answer["result"]

    def handle(self, message):
        match message:
            case {"method": "_castor/session/event", "params": params}:
                self.on_event(params["event"])
            case {"method": "session/request_permission", "id": id, "params": params}:
                self.send(id=id, result={"outcome": self.on_question(params)})
            case {"method": method, "id": id}:
                self.send(id=id, error={"code": -32601, "message": f"this client has no {method}"})
            case {"id": id} if "method" not in message:
                self.answers[id] = message

    def open(self, folder, **capabilities):
        """Opens a session in a folder and returns its id. The capabilities are castor's own."""
        meta = {"_meta": {"castor": capabilities}}
        self.wait(self.request("initialize", protocolVersion=1, clientCapabilities=meta))
        return self.wait(self.request("session/new", cwd=folder, mcpServers=[]))["sessionId"]

    def ask(self, session, *prompt, **options):
        """Runs one prompt, with options that hold for it alone. Returns why it ended."""
        stream = self.request("_castor/session/stream", sessionId=session)  # the next one: this prompt's
        params = {"sessionId": session, "prompt": prompt, "_meta": {"castor": options}}
        reason = self.wait(self.request("session/prompt", **params))["stopReason"]
        self.wait(stream)
        return reason

    def close(self):
        """castor ends at the end of its input. Returns its exit code."""
        self.process.communicate()
        return self.process.returncode


def show(event):
    match event:
        case {"type": "message", "role": "agent", "content": content}:
            print("".join(it.get("text", "") for it in content), end="", flush=True)
        case {"type": "tool_request", "display": display}:
            print("castor calls", display["title"], file=sys.stderr)
        case {"type": "error", "message": message}:
            print("castor reports:", message, file=sys.stderr)


def approve_edits(question):
    wanted = "allow_once" if question["toolCall"].get("kind") == "edit" else "reject_once"
    chosen = [it["optionId"] for it in question["options"] if it["kind"] == wanted]
    return {"outcome": "selected", "optionId": chosen[0]} if chosen else {"outcome": "cancelled"}


if __name__ == "__main__":
    text, *args = sys.argv[1:] or sys.exit(__doc__)
    try:
        castor = Castor(*args, on_event=show, on_question=approve_edits)
        reason = castor.ask(castor.open(os.getcwd()), {"type": "text", "text": text})
        print("\nended with", reason, file=sys.stderr)
        sys.exit(castor.close())
    except (RuntimeError, OSError) as error:
        sys.exit(f"driver.py: {error}")
