"""An MCP server of the scenarios on stdin and stdout: one tool that says the weather, one resource."""
import json
import sys

TOOL = {"name": "get_weather", "description": "Says the weather", "inputSchema": {"type": "object", "properties": {"location": {"type": "string"}}}}
RESOURCE = {"uri": "test://resource1", "name": "Resource 1", "mimeType": "text/plain", "description": "A resource"}
ANSWERS = {
    "tools/list": {"tools": [TOOL]},
    "tools/call": {"content": [{"type": "text", "text": "It rains."}]},
    "resources/list": {"resources": [RESOURCE]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": RESOURCE["uri"], "mimeType": "text/plain", "text": "content of resource 1"}]},
    "ping": {},
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    result = ANSWERS.get(message["method"])
    if message["method"] == "initialize":
        info = {"name": "scenario", "version": "1"}
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}, "resources": {}}, "serverInfo": info}
    answer = {"result": result} if result is not None else {"error": {"code": -32601, "message": "no such method"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
