#!/usr/bin/env python3
"""castor as the client of one scenario of @modelcontextprotocol/conformance, or of the server in rmcp-server/: an editor,
its user and a model in one.

Usage: client.py URL, with CASTOR as the binary, and MCP_CONFORMANCE_SCENARIO as the framework sets it.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from pathlib import Path

# What the model calls in a scenario: tools of the server's, or of castor's, with their arguments.
CALLS = {
    "tools_call": [("add_numbers", {"a": 2, "b": 3})],
    "elicitation-sep1034-client-defaults": [("test_client_elicitation_defaults", {})],
    "sse-retry": [("test_reconnection", {})],
    "initialize": [],
    "rmcp": [("echo", {"text": "a"}), ("ask", {})],
    "request-metadata": [],
    "json-schema-ref-no-deref": [],
    "http-standard-headers": [
        ("test_headers", {}),
        ("my-hyphenated-tool", {}),
        ("read_mcp_resource", {"uri": "file:///path/to/file%20name.txt"}),
    ],
    "http-invalid-tool-headers": [("valid_tool", {"region": "us-west1"})],
    "sep-2322-client-request-state": [
        ("test_mrtr_echo_state", {}),
        ("test_mrtr_unrelated", {}),
        ("test_mrtr_no_state", {}),
        ("test_mrtr_no_result_type", {}),
    ],
}
# What the user asks for beside "go".
COMMANDS = {
    "http-standard-headers": ["/s:test_prompt"],
    # Its server wants another authorization server in the middle of a session: the user logs in there.
    "auth/authorization-server-migration": ["/mcp login s", "go"],
}
# What fails there on the way is part of the scenario, or its server answers with nothing.
FAILS_ON_THE_WAY = set(COMMANDS)
OWN_TOOLS = {"read_mcp_resource"}
# A document about a client, which one scenario wants to be named.
DOCUMENT = "https://conformance-test.local/client-metadata.json"


def oauth(scenario, context, work):
    if scenario == "auth/basic-cimd":
        return {"clientMetadataUrl": DOCUMENT}
    if scenario == "auth/client-credentials-basic":
        return {"grant": "client_credentials", "clientId": context["client_id"], "clientSecret": context["client_secret"]}
    if scenario == "auth/client-credentials-jwt":
        (work / "key.pem").write_text(context["private_key_pem"])
        return {"grant": "client_credentials", "clientId": context["client_id"], "privateKeyFile": str(work / "key.pem")}
    if "idp_id_token" in context:
        (work / "id-token").write_text(context["idp_id_token"])
        provider = {
            "issuer": context["idp_issuer"], "tokenUrl": context["idp_token_endpoint"],
            "clientId": context["idp_client_id"], "idTokenFile": str(work / "id-token"),
        }
        return {
            "grant": "cross_app_access", "clientId": context["client_id"], "clientSecret": context["client_secret"],
            "identityProvider": provider,
        }
    if "client_id" in context:
        return {"clientId": context["client_id"], "clientSecret": context.get("client_secret")}
    return {}


def response(part, finish="STOP"):
    content = {"role": "model", "parts": [part]}
    answer = [{"candidates": [{"content": content, "finishReason": finish}]}]
    return json.dumps({"method": "generateContentStream", "response": answer}) + "\n"


def visit(url):
    """Goes to a page as a browser does, and where it sends it."""
    try:
        with urllib.request.urlopen(url, timeout=10) as page:
            page.read()
    except urllib.error.URLError as why:
        print(f"the page: {why}", file=sys.stderr)


def answer(message):
    params = message["params"]
    if message["method"] == "elicitation/create":
        if params.get("mode") == "url":
            visit(params["url"])
            return {"action": "accept"}
        return {"action": "accept", "content": {}}
    if message["method"] == "session/request_permission":
        allow = next(it for it in params["options"] if it["kind"] == "allow_once")
        return {"outcome": {"outcome": "selected", "optionId": allow["optionId"]}}
    return None


def main():
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        (work / "home/.castor").mkdir(parents=True, mode=0o700)
        (work / "ws").mkdir()
        server = {"url": sys.argv[1], "type": "http", "oauth": oauth(scenario, context, work)}
        (work / "home/.castor/settings.json").write_text(json.dumps({"mcpServers": {"s": server}}))
        calls = [(it["name"], it["arguments"]) for it in context.get("toolCalls", [])]
        calls = calls or CALLS.get(scenario, [("test-tool", {})])
        named = [(name if name in OWN_TOOLS else f"mcp_s_{name}", args) for name, args in calls]
        lines = [response({"functionCall": {"name": name, "args": args}}) for name, args in named]
        script = work / "script.jsonl"
        script.write_text("".join(lines) + response({"text": "Done."}) * 5)
        environment = {"PATH": os.environ["PATH"], "HOME": str(work / "home"), "CASTOR_TRUST_WORKSPACE": "true"}
        castor = subprocess.Popen(
            [os.environ["CASTOR"], "acp", "--approval-mode", "yolo", "--fake-responses", str(script)],
            cwd=work / "ws", env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        limit = threading.Timer(25, castor.kill)
        limit.start()
        said = play(castor, str(work / "ws"), ["go"] + COMMANDS.get(scenario, []))
        castor.stdin.close()
        castor.wait(10)
        limit.cancel()
    # Some scenarios want the client to give up.
    failed = "is not available" in said or '"status":"failed"' in said
    return 1 if failed and scenario not in FAILS_ON_THE_WAY else 0


def play(castor, folder, prompts):
    said = ""

    def send(message):
        castor.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        castor.stdin.flush()

    def ask(number, method, params):
        nonlocal said
        send({"id": number, "method": method, "params": params})
        for line in castor.stdout:
            print(line, end="")
            said += line
            message = json.loads(line)
            if "method" in message and "id" in message:
                send({"id": message["id"], "result": answer(message)})
            elif message.get("id") == number:
                return message.get("result") or {}
        sys.exit("castor has ended")

    capabilities = {"elicitation": {"form": {}, "url": {}}}
    ask(1, "initialize", {"protocolVersion": 1, "clientCapabilities": capabilities})
    session = ask(2, "session/new", {"cwd": folder, "mcpServers": []})["sessionId"]
    for number, text in enumerate(prompts, 3):
        ask(number, "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": text}]})
    return said


if __name__ == "__main__":
    sys.exit(main())
