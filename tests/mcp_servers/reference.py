"""Uses all that MCP's reference servers offer, through castor: a client of ACP with a scripted model.

Usage: reference.py CASTOR FOLDER, the folder of the npm packages server-everything and server-filesystem.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# A call of each tool: its arguments, and what its result says. `None`: it fails, with these words.
EVERYTHING = {
    "echo": ({"message": "hello"}, "Echo: hello"),
    "get-annotated-message": ({"messageType": "error", "includeImage": True}, "Error: Operation failed"),
    "get-env": ({}, "PATH"),
    "get-resource-links": ({"count": 2}, "demo://resource/dynamic/"),
    "get-resource-reference": ({"resourceType": "Text", "resourceId": 1}, "Returning resource reference"),
    "get-roots-list": ({}, "file://"),
    "get-structured-content": ({"location": "Chicago"}, "temperature"),
    "get-sum": ({"a": 2, "b": 3}, "The sum of 2 and 3 is 5."),
    "get-tiny-image": ({}, "image/png"),
    "gzip-file-as-resource": ({"name": "a.gz", "data": "data:text/plain,abc"}, "demo://resource/session/a.gz"),
    "toggle-simulated-logging": ({}, "Started simulated"),
    "toggle-subscriber-updates": ({}, "Started simulated resource updated notifications"),
    "trigger-long-running-operation": ({"duration": 1, "steps": 2}, "Long running operation completed"),
    "trigger-elicitation-request": ({}, "User provided the requested information"),
    "trigger-url-elicitation": ({"url": "https://example.org/x"}, "accept"),
    "trigger-sampling-request": ({"prompt": "Say it."}, "Sampled."),
    # It runs as a task alone, which castor does not do.
    "simulate-research-query": ({"topic": "x"}, None),
}
FILES = {
    "read_file": ({"path": "a.txt"}, "one"),
    "read_text_file": ({"path": "a.txt", "head": 1}, "one"),
    "read_media_file": ({"path": "a.png"}, "image/png"),
    "read_multiple_files": ({"paths": ["a.txt", "b.txt"]}, "two"),
    "write_file": ({"path": "c.txt", "content": "three\n"}, "Successfully wrote"),
    "edit_file": ({"path": "c.txt", "edits": [{"oldText": "three", "newText": "four"}]}, "four"),
    "create_directory": ({"path": "d"}, "Successfully created directory"),
    "list_directory": ({"path": "."}, "[FILE] a.txt"),
    "list_directory_with_sizes": ({"path": "."}, "Total:"),
    "directory_tree": ({"path": "."}, "a.txt"),
    "move_file": ({"source": "c.txt", "destination": "d/c.txt"}, "Successfully moved"),
    "search_files": ({"path": ".", "pattern": "*.txt"}, "b.txt"),
    "get_file_info": ({"path": "a.txt"}, "size"),
    "list_allowed_directories": ({}, "Allowed directories"),
}
PROMPTS = {
    "/everything:simple-prompt": "This is a simple prompt without arguments.",
    "/everything:args-prompt --city=Rome --state=Lazio": "What's weather in Rome, Lazio?",
    "/everything:completable-prompt --department=Sales --name=David": "Please promote David to the head of the Sales team.",
    "/everything:resource-prompt --resourceType=Text --resourceId=1": "This prompt includes the Text resource",
}
RESOURCES = {
    "demo://resource/static/document/architecture.md": "Everything Server",
    "demo://resource/dynamic/text/3": "Resource 3",
    "demo://resource/dynamic/blob/4": "text/plain",
}
ALLOW_TOOLS = "[[rule]]\nmcpName = '*'\ntoolName = '*'\ndecision = 'allow'\npriority = 500\n"


def answer_with(*parts):
    return {"method": "generateContentStream", "response": [
        {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": "STOP"}]}]}


def call(name, args):
    return answer_with({"functionCall": {"name": name, "args": args}})


def fill_in(schema):
    """An answer to a form, as a person would give it."""
    res = {}
    for name, field in schema["properties"].items():
        kind, values = field["type"], field.get("enum") or [it["const"] for it in field.get("oneOf", [])]
        texts = {"email": "a@b.org", "uri": "https://b.org", "date": "2026-01-02", "date-time": "2026-01-02T03:04:05Z"}
        if kind == "array":
            items = field["items"]
            res[name] = [(items.get("enum") or [it["const"] for it in items["anyOf"]])[0]]
        elif kind == "string":
            res[name] = values[0] if values else texts.get(field.get("format"), "Ann")
        else:
            res[name] = True if kind == "boolean" else field.get("default", 7)
    return res


class Agent:
    def __init__(self, castor, home, workspace, script):
        env = {"PATH": os.environ["PATH"], "HOME": str(home), "CASTOR_TRUST_WORKSPACE": "true"}
        command = [castor, "acp", "--fake-responses", str(script)]
        self.process = subprocess.Popen(command, cwd=workspace, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.n, self.updates, self.asked = 0, [], []
        client = {"elicitation": {"form": {}, "url": {}}}
        self.ask("initialize", {"protocolVersion": 1, "clientCapabilities": client})
        self.session = self.ask("session/new", {"cwd": str(workspace), "mcpServers": []})["sessionId"]

    def send(self, message):
        self.process.stdin.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode())
        self.process.stdin.flush()

    def ask(self, method, params):
        self.n += 1
        self.send({"id": self.n, "method": method, "params": params})
        for line in self.process.stdout:
            message = json.loads(line)
            if message.get("id") == self.n and "method" not in message:
                assert "result" in message, message
                return message["result"]
            self.take(message)
        raise SystemExit(f"castor ended before it answered {method}")

    def take(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "session/update":
            self.updates.append(params["update"])
        if "id" not in message or method is None:
            return
        self.asked.append(params)
        if method == "session/request_permission":
            outcome = {"outcome": "selected", "optionId": "allow_once"}
            return self.send({"id": message["id"], "result": {"outcome": outcome}})
        content = {"content": fill_in(params["requestedSchema"])} if params.get("mode") == "form" else {}
        self.send({"id": message["id"], "result": {"action": "accept", **content}})

    def prompt(self, text):
        """The text of the agent's answer, and its calls by name: status and all that was said of them."""
        self.updates = []
        self.ask("session/prompt", {"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})
        said, calls, names = "", {}, {}
        for it in self.updates:
            if it["sessionUpdate"] == "agent_message_chunk":
                said += it["content"].get("text", "")
            if it["sessionUpdate"] in ("tool_call", "tool_call_update"):
                name = it.get("_meta", {}).get("castor", {}).get("name") or it.get("name") or it.get("title", "")
                name = names.setdefault(it["toolCallId"], name)
                status, words = calls.get(name, ("", ""))
                calls[name] = (it.get("status", status), words + json.dumps(it))
        return said, calls

    def close(self):
        self.process.stdin.close()
        self.process.wait(timeout=30)


def model_name(server, tool):
    return f"mcp_{server}_{tool}"


def check(is_so, what):
    if not is_so:
        raise SystemExit(f"failed: {what}")


def script_lines():
    lines = [answer_with({"text": "Ready."})]
    for server, tools in (("everything", EVERYTHING), ("filesystem", FILES)):
        for tool, (args, _) in tools.items():
            lines.append(call(model_name(server, tool), args))
            if tool == "trigger-sampling-request":
                lines.append(answer_with({"text": "Sampled."}))
        # A turn for each server: in a longer one a model is asked whether it leads anywhere.
        lines.append(answer_with({"text": "All called."}))
    lines += [answer_with({"text": "Prompted."}) for _ in PROMPTS]
    lines.append(call("list_mcp_resources", {}))
    lines += [call("read_mcp_resource", {"uri": uri, "server": "everything"}) for uri in RESOURCES]
    lines += [answer_with({"text": "All read."}), answer_with({"text": "Mentioned."})]
    return lines


def check_tools(agent):
    listed = set(re.findall(r"`(mcp_[^`]+)`", agent.prompt("/mcp desc")[0]))
    known = {model_name("everything", it) for it in EVERYTHING} | {model_name("filesystem", it) for it in FILES}
    check(listed == known, f"tools that are not called, or not there: {listed ^ known}")
    for server, tools in (("everything", EVERYTHING), ("filesystem", FILES)):
        said, calls = agent.prompt(f"Call all of {server}.")
        check("All called." in said, said)
        for tool, (_, words) in tools.items():
            status, told = calls.get(model_name(server, tool), ("missing", ""))
            check(status == ("failed" if words is None else "completed"), f"{server} {tool}: {status} {told}")
            check(words is None or words in told, f"{server} {tool}: no {words!r} in {told}")
    asked = json.dumps(agent.asked)
    for words in ('MCP server \\"everything\\" asks a model', "Please provide inputs", "https://example.org/x"):
        check(words in asked, f"the user was not asked: {words}")
    return len(known)


def main(castor, packages):
    work = pathlib.Path(tempfile.mkdtemp())
    home, workspace = work / "home", work / "ws"
    (home / ".castor/policies").mkdir(parents=True)
    workspace.mkdir()
    (workspace / "a.txt").write_text("one\nmore\n")
    (workspace / "b.txt").write_text("two\n")
    (workspace / "a.png").write_bytes(bytes.fromhex("89504e470d0a1a0a"))
    (home / ".castor/policies/mine.toml").write_text(ALLOW_TOOLS)
    node = shutil.which("node")

    def server(name, *args):
        return {"command": node, "args": [f"{packages}/server-{name}/dist/index.js", *args], "cwd": str(workspace)}

    servers = {"everything": server("everything", "stdio"), "filesystem": server("filesystem", str(workspace))}
    settings = {"mcpServers": servers, "mcp": {"startBudgetMs": 60000}}
    (home / ".castor/settings.json").write_text(json.dumps(settings))
    script = work / "script.jsonl"
    script.write_text("".join(json.dumps(it) + "\n" for it in script_lines()))
    try:
        agent = Agent(castor, home, workspace, script)
        check("Ready." in agent.prompt("Wait for the servers.")[0], "the first prompt")
        n_tools = check_tools(agent)
        for prompt in PROMPTS:
            said = agent.prompt(prompt)[0]
            check("Prompted." in said, f"{prompt}: {said}")
        _, calls = agent.prompt("Read all.")
        status, told = calls["list_mcp_resources"]
        check(status == "completed", told)
        check(calls["read_mcp_resource"][0] == "completed", calls["read_mcp_resource"][1])
        agent.prompt("See @everything:demo://resource/dynamic/text/9 please.")
        agent.close()
        # What the model was told stands in the log.
        log = "".join(it.read_text() for it in (home / ".castor/sessions").glob("*.jsonl"))
        for words in [*PROMPTS.values(), *RESOURCES.values(), "demo://resource/dynamic/text/{", "Resource 9"]:
            check(json.dumps(words)[1:-1] in log, f"the model was not told {words!r}")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"ok: {n_tools} tools, {len(PROMPTS)} prompts and {len(RESOURCES)} resources of MCP's reference servers")


main(*sys.argv[1:])
