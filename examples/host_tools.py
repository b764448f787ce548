#!/usr/bin/env python3
"""A bot with two tools of its own. Usage: host_tools.py PROMPT [arguments for castor acp, for example -m demo]"""
import json, os, subprocess, sys

NOTES = {"lunch": "Soup at noon."}
TOOLS = [
    {
        "name": "read_note",
        "description": "Reads one of the user's notes.",
        "parametersSchema": {"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
        "annotations": {"readOnly": True},
    },
    {
        "name": "write_note",
        "description": "Writes a note. An older one of the same title is replaced.",
        "parametersSchema": {
            "type": "object",
            "properties": {"title": {"type": "string"}, "text": {"type": "string"}},
            "required": ["title", "text"],
        },
    },
]


def run_tool(name, args):
    """What becomes the answer to `_castor/tool/call`."""
    if name == "read_note":
        text = NOTES.get(args["title"])
        return {"llmContent": text} if text else {"llmContent": "There is no such note.", "isError": True}
    NOTES[args["title"]] = args["text"]
    return {"llmContent": "Written.", "displayContent": f"Wrote the note {args['title']!r}."}


def answer(method, params):
    if method == "_castor/tool/call":
        print(f"castor calls {params['name']} {json.dumps(params['args'])}", file=sys.stderr)
        return {"result": run_tool(params["name"], params["args"])}
    if method == "session/request_permission":  # This bot allows its own tools, and nothing else.
        is_own = params["toolCall"].get("title") in [it["name"] for it in TOOLS]
        kind = "allow_once" if is_own else "reject_once"
        option = next(it["optionId"] for it in params["options"] if it["kind"] == kind)
        return {"result": {"outcome": {"outcome": "selected", "optionId": option}}}
    return {"error": {"code": -32601, "message": "this client has no such method"}}


class Castor:
    def __init__(self, *args):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([os.environ.get("CASTOR", "castor"), "acp", *args], **pipes)
        self.last_id = 0

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def call(self, method, **params):
        self.last_id += 1
        self.send(id=self.last_id, method=method, params=params)
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" not in message and message["id"] == self.last_id:
                return message["result"] if "result" in message else sys.exit(message["error"]["message"])
            if "id" in message:
                self.send(id=message["id"], **answer(message["method"], message["params"]))
            elif message["params"].get("update", {}).get("sessionUpdate") == "agent_message_chunk":
                print(message["params"]["update"]["content"].get("text", ""), end="", flush=True)
        sys.exit("castor ended")


castor = Castor(*sys.argv[2:])
castor.call("initialize", protocolVersion=1, clientCapabilities={"_meta": {"castor": {"hostTools": True}}})
session = castor.call("session/new", cwd=os.getcwd(), mcpServers=[], _meta={"castor": {"tools": TOOLS}})["sessionId"]
castor.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": sys.argv[1]}])
print()
castor.process.stdin.close()
sys.exit(castor.process.wait())
