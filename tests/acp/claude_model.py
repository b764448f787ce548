"""A model for Claude's agent: wants one file written, then says what became of that. Prints its port first."""

import http.server
import json
import sys

FILE = sys.argv[1]


def events(parts, stop):
    message = {"id": "m", "type": "message", "role": "assistant", "model": "fake", "content": [], "stop_reason": None,
               "usage": {"input_tokens": 10, "output_tokens": 1}}
    yield {"type": "message_start", "message": message}
    for at, (block, delta) in enumerate(parts):
        yield {"type": "content_block_start", "index": at, "content_block": block}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}


def text(words):
    return {"type": "text", "text": ""}, {"type": "text_delta", "text": words}


def answer(request):
    """It writes what it is asked for; of a title or the like it has no idea."""
    blocks = [it for message in request["messages"] if isinstance(message["content"], list) for it in message["content"]]
    results = [it for it in blocks if it["type"] == "tool_result"]
    if results:
        return events([text("Not written." if results[0].get("is_error") else "Written.")], "end_turn")
    if not any(it.get("name") == "Write" for it in request.get("tools", [])):
        return events([text("A title")], "end_turn")
    args = json.dumps({"file_path": FILE, "content": "by claude\n"})
    call = {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": {}}
    return events([text("I write."), (call, {"type": "input_json_delta", "partial_json": args})], "tool_use")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if not self.path.startswith("/v1/messages?") and self.path != "/v1/messages":
            return self.reply("application/json", "{}")
        lines = "".join(f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in answer(json.loads(body)))
        self.reply("text/event-stream", lines)

    def do_GET(self):
        self.reply("application/json", "{}")

    def do_HEAD(self):
        self.reply("application/json", "")

    def reply(self, kind, text):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print("port", server.server_address[1], flush=True)
server.serve_forever()
