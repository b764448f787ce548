//! MCP servers in the client beyond what a conversation says: large answers, changed tools, and sessions that share one.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

/// A client that is the server `notes-1`, which needs no handshake.
struct Server {
    sandbox: Sandbox,
    client: Client,
    tool: &'static str,
}

fn servers() -> Value {
    json!([{"type": "acp", "name": "notes", "serverId": "notes-1"}])
}

impl Server {
    fn start(answers: &[&str]) -> Self {
        let mut sandbox = Sandbox::new();
        let lines = answers.iter().map(|it| crate::conversation::model::response(it).unwrap().to_string() + "\n");
        let script = sandbox.write("script.jsonl", &lines.collect::<String>());
        sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
        sandbox.args.push(script.into());
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        Self { sandbox, client, tool: "read" }
    }

    /// Takes what comes; requests to the server are answered by `on_call`, but for those of its beginning.
    fn serve_until(
        &mut self,
        is_last: impl Fn(&Value) -> bool,
        mut on_call: impl FnMut(&Value) -> Option<Value>,
    ) -> Value {
        loop {
            let message = self.client.next().unwrap().expect("castor ended");
            if is_last(&message) {
                return message;
            }
            let answer = match message["params"]["method"].as_str() {
                Some("server/discover") => Some(json!({"resultType": "complete", "supportedVersions": ["2026-07-28"],
                    "capabilities": {"tools": {"listChanged": true}}, "ttlMs": 0, "cacheScope": "private"})),
                Some("tools/list") => Some(json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private",
                    "tools": [{"name": self.tool, "description": "Reads.", "inputSchema": {"type": "object"}}]})),
                Some("tools/call") => on_call(&message),
                _ => None,
            };
            if let Some(result) = answer {
                self.client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {"result": result}}));
            }
        }
    }

    fn open(&mut self, method: &str, more: &Value) -> String {
        let mut params = json!({"cwd": self.sandbox.workspace(), "mcpServers": servers()});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.client.request_as(json!("open"), method, params);
        let answer = self.serve_until(|it| it["id"] == "open", |_| None);
        answer["result"]["sessionId"]
            .as_str()
            .map_or_else(|| more["sessionId"].as_str().unwrap().to_owned(), str::to_owned)
    }

    fn prompt(&mut self, session: &str) {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        self.client.request_as(json!("prompt"), "session/prompt", params);
    }

    fn end_prompt(&mut self, on_call: impl FnMut(&Value) -> Option<Value>) {
        let end = self.serve_until(|it| it["id"] == "prompt", on_call);
        assert_eq!(end["result"]["stopReason"], "end_turn", "{end}");
    }
}

fn soup(_: &Value) -> Option<Value> {
    Some(json!({"resultType": "complete", "content": [{"type": "text", "text": "Soup."}]}))
}

#[test]
fn an_answer_that_is_too_large_ends_the_call_and_no_more() {
    let calls = [
        "call mcp_notes_read {\"n\":1}",
        "wants \"bytes, and 8388608 is the most\" call mcp_notes_read {}",
        "wants \"Soup.\" text \"Done.\"",
    ];
    let mut server = Server::start(&calls);
    let session = server.open("session/new", &json!({}));
    server.prompt(&session);
    server.end_prompt(|call| match call["params"]["params"]["arguments"]["n"] == 1 {
        true => Some(json!({"content": [{"type": "text", "text": "x".repeat(9 << 20)}]})),
        false => soup(call),
    });
    server.client.end().unwrap();
}

#[test]
fn sessions_share_a_server_until_the_last_is_closed() {
    let call = "call mcp_notes_read {}";
    let mut server = Server::start(&[call, "text \"1\"", call, "text \"2\"", call, "text \"3\""]);
    let first = server.open("session/new", &json!({}));
    server.prompt(&first);
    server.end_prompt(soup);
    let second = server.open("session/fork", &json!({"sessionId": first}));
    server.prompt(&second);
    server.end_prompt(soup);
    server.client.request_as(json!("close"), "session/close", json!({"sessionId": first}));
    server.serve_until(|it| it["id"] == "close", |_| None);
    server.prompt(&second);
    server.end_prompt(soup);
    server.client.request_as(json!("close"), "session/close", json!({"sessionId": second}));
    // With the last session the request that listens for changes is withdrawn.
    server.serve_until(|it| it["method"] == "$/cancel_request", |_| None);
    server.serve_until(|it| it["id"] == "close", |_| None);
    server.client.end().unwrap();
    let asked = server.client.transcript().matches("server/discover").count();
    assert_eq!(asked, 1, "one server, one beginning");
}

/// The answer to the request that listens is open as long as the server.
#[test]
fn changed_tools_join_after_the_word_of_the_server() {
    let mut server = Server::start(&["wants \"mcp_notes_write\" text \"Done.\""]);
    let session = server.open("session/new", &json!({}));
    let listen = server.serve_until(|it| it["params"]["method"] == "subscriptions/listen", |_| None);
    let request = &listen["params"]["requestId"];
    let tell = |method: &str, filter: Value| {
        let mut params = json!({"_meta": {"io.modelcontextprotocol/subscriptionId": request}});
        params.as_object_mut().unwrap().extend(filter.as_object().unwrap().clone());
        json!({"serverId": "notes-1", "requestId": request, "method": method, "params": params})
    };
    let filter = json!({"notifications": {"toolsListChanged": true}});
    server.client.notify("mcp/message", tell("notifications/subscriptions/acknowledged", filter));
    server.tool = "write";
    server.client.notify("mcp/message", tell("notifications/tools/list_changed", json!({})));
    for n in 0.. {
        assert!(n < 2000, "the tools stay as they are");
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/tools"}]});
        server.client.request_as(json!("prompt"), "session/prompt", params);
        server.end_prompt(soup);
        if server.client.transcript().contains("mcp_notes_write") {
            break;
        }
    }
    server.prompt(&session);
    server.end_prompt(soup);
    server.client.end().unwrap();
}

/// Whoever loads a session after castor ended is asked anew.
#[test]
fn a_loaded_session_has_the_server_of_the_client_that_loads_it() {
    let mut server = Server::start(&["call mcp_notes_read {}", "wants \"Soup.\" text \"Done.\""]);
    let session = server.open("session/new", &json!({}));
    server.prompt(&session);
    server.end_prompt(soup);
    server.client.end().unwrap();
    server.client = Client::start(&server.sandbox);
    server.client.initialize(&json!({})).unwrap();
    for method in ["session/load", "session/resume"] {
        server.open(method, &json!({"sessionId": session}));
    }
    server.prompt(&session);
    server.end_prompt(soup);
    server.client.end().unwrap();
}
