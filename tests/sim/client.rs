//! The simulated client: says everything that the protocol knows, well or badly, and much that it does not know.

use castor_agent::server::machine::{METHODS, METHODS_V2};
use serde_json::{Value, json};

use super::{dice::Dice, version2, watch::Watch, world::CWD};

/// Sessions that it keeps open.
const SESSIONS: usize = 3;

/// Requests by weight; each has its params in `params`.
const REQUESTS: &[(usize, &str)] = &[
    (60, "session/prompt"),
    (6, "_session/steering"),
    (6, "session/set_mode"),
    (6, "session/set_config_option"),
    (3, "session/set_model"),
    (3, "session/new"),
    (3, "session/load"),
    (3, "session/resume"),
    (3, "session/fork"),
    (2, "session/list"),
    (3, "session/close"),
    (2, "session/delete"),
    (2, "_castor/session/events"),
    (2, "_castor/session/checkpoints"),
    (1, "_castor/agents/list"),
    (1, "_castor/definitions/list"),
    (1, "_castor/tools/list"),
    (1, "_castor/options/list"),
    (1, "_castor/mcp/servers"),
    (1, "_castor/mcp/switch"),
    (6, "_castor/session/rewind"),
    (4, "_castor/session/state"),
    (2, "_castor/session/subscribe"),
    (1, "_castor/session/unsubscribe"),
    (1, "_castor/session/stream"),
    (1, "_castor/session/attach"),
    (1, "_castor/session/client_act"),
    (1, "_castor/session/sleep"),
    (1, "_castor/session/custom_event"),
    (2, "_castor/session/update"),
    (2, "_castor/policy/evaluate"),
    (1, "_castor/mcp/complete"),
    (2, "session/set_title"),
    (1, "session/status"),
    (1, "auth/status"),
    (1, "quota/read"),
    (1, "providers/list"),
    (1, "providers/set"),
    (1, "providers/disable"),
    (1, "trust/apply"),
    (1, "session/archive"),
    (1, "session/unarchive"),
    (1, "session/rewind"),
    (1, "session/edit_prompt"),
    (1, "_session/rename"),
    (1, "_session/archive"),
    (1, "_session/unarchive"),
    (1, "_session/async_task/stop"),
    (1, "initialize"),
    (1, "authenticate"),
    (1, "logout"),
    (1, "session/shout"),
];

/// What is no message at all, or one that nobody asked for.
const GARBAGE: &[&[u8]] = &[
    b"{oops\n",
    b"\n\r\n",
    b"[]\n",
    b"42\n",
    b"\xff\xfe\x00\n",
    b"{\"jsonrpc\":\"2.0\"}\n",
    b"{\"jsonrpc\":\"1.0\",\"method\":\"session/new\"}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"session/new\"}\n",
    b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/new\"}]\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n",
    b"{\"jsonrpc\":\"2.0\",\"id\":\"nobody\",\"error\":{\"code\":1,\"message\":\"no\"}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"session/shout\",\"params\":{}}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":[1]}\n",
    b"{\"jsonrpc\":\"2.0\",\"method\":\"$/cancel_request\",\"params\":{\"requestId\":{}}}\n",
];

const COMMANDS: &[&str] = &[
    "/help",
    "/clear",
    "/permissions",
    "/permissions revoke all",
    "/mode autoEdit",
    "/mode nope",
    "/model",
    "/nope",
    "/compress",
    "/memory add tabs",
    "/memory inbox accept all",
    "/undo",
    "/redo",
    "/rewind 1",
    "/rewind 2 conversation",
    "/diff",
    "/checkpoints",
];

pub struct Client {
    n_ids: u64,
    /// Bytes that are still to be sent.
    pending: Vec<u8>,
    capabilities: Value,
    /// It says the same in the shapes of version 2.
    speaks_version2: bool,
}

impl Client {
    pub fn new(dice: &mut Dice, speaks_version2: bool) -> Self {
        let mut flag = || dice.one_in(2);
        let mut capabilities = json!({
            "fs": {"readTextFile": flag(), "writeTextFile": flag()},
            "terminal": flag(),
            "auth": {"terminal": flag()},
            "_meta": {"terminal_output": flag(), "castor": {"events": flag(), "rewind": flag()}},
        });
        if flag() {
            capabilities["session"] = json!({"configOptions": {"boolean": {}}, "notices": {}});
        }
        if flag() {
            capabilities["elicitation"] = json!({"form": {}, "url": {}});
        }
        if flag() {
            capabilities["subagents"] = json!({});
        }
        capabilities["_meta"]["castor"]["interactive"] = json!(!dice.one_in(6));
        Self { n_ids: 0, pending: Vec::new(), capabilities, speaks_version2 }
    }

    /// The next bytes: a message, or a piece of one.
    pub fn bytes(&mut self, dice: &mut Dice, watch: &Watch) -> Vec<u8> {
        if self.pending.is_empty() {
            self.pending = self.message(dice, watch);
            if dice.one_in(12) {
                let at = self.pending.len() - 1;
                self.pending.insert(at, b'\r');
            }
            if dice.one_in(8) {
                let more = self.message(dice, watch);
                self.pending.extend(more);
            }
        }
        let n = if dice.one_in(6) { 1 + dice.roll(self.pending.len()) } else { self.pending.len() };
        self.pending.drain(..n.min(self.pending.len())).collect()
    }

    /// What was begun is not finished.
    pub fn forget(&mut self) {
        self.pending.clear();
    }

    fn message(&mut self, dice: &mut Dice, watch: &Watch) -> Vec<u8> {
        if !watch.is_initialized && !dice.one_in(4) {
            return self.request("initialize", &self.initialize());
        }
        if dice.one_in(20) {
            return dice.word_of(GARBAGE).to_vec();
        }
        if !watch.questions.is_empty() && dice.roll(5) < 3 {
            let question = dice.pick(&watch.questions).cloned().unwrap_or_default();
            return answer(dice, &question);
        }
        if dice.one_in(40) && !watch.withdrawn.is_empty() {
            let question = dice.pick(&watch.withdrawn).cloned().unwrap_or_default();
            return answer(dice, &question);
        }
        match dice.roll(12) {
            0 => {
                let at_work = watch.children.iter().filter(|(_, it)| !it.ended).map(|(id, _)| id.clone());
                let child = dice.pick(&at_work.collect::<Vec<_>>()).cloned().filter(|_| dice.one_in(2));
                let session = child.unwrap_or_else(|| session(dice, watch));
                notification("session/cancel", &json!({ "sessionId": session }))
            }
            1 => notification("$/cancel_request", &json!({"requestId": self.some_id(dice)})),
            _ => {
                let name = method(dice, watch);
                let params = self.params(dice, watch, name);
                let (method, mut params) = if self.speaks_version2 {
                    (version2::method(name), version2::params(name, params))
                } else {
                    (name, params)
                };
                if dice.one_in(10) {
                    spoil(dice, &mut params);
                }
                self.request(method, &params)
            }
        }
    }

    pub fn request(&mut self, method: &str, params: &Value) -> Vec<u8> {
        self.n_ids += 1;
        line(&json!({"jsonrpc": "2.0", "id": self.id(self.n_ids), "method": method, "params": params}))
    }

    fn id(&self, n: u64) -> Value {
        if n.is_multiple_of(3) { json!(format!("id-{n}")) } else { json!(n) }
    }

    fn some_id(&self, dice: &mut Dice) -> Value {
        let back = dice.roll(8) as u64;
        self.id(self.n_ids.saturating_sub(back))
    }

    fn initialize(&self) -> Value {
        if self.speaks_version2 {
            return version2::initialize(&self.capabilities);
        }
        let info = json!({"name": "sim", "version": "1"});
        json!({"protocolVersion": 1, "clientCapabilities": self.capabilities, "clientInfo": info})
    }

    fn params(&self, dice: &mut Dice, watch: &Watch, method: &str) -> Value {
        let of_session = || json!({"sessionId": null});
        let mut params = match method {
            "initialize" => return self.initialize(),
            "authenticate" => return json!({"methodId": dice.word(&["gemini-api-key", "gateway", "shout"])}),
            "logout" => return json!({}),
            "session/list" => {
                let cursor = dice.word(&["", "", "x", "1700000000005.zzz"]);
                return if cursor.is_empty() { json!({}) } else { json!({"cursor": cursor, "cwd": CWD}) };
            }
            "session/new" => return place(dice),
            "session/load" | "session/resume" => {
                let mut res = place(dice);
                let known = if dice.one_in(6) { session(dice, watch) } else { gone(dice, watch) };
                res["sessionId"] = json!(known);
                return res;
            }
            "session/fork" => {
                let mut res = place(dice);
                let parent = if dice.one_in(2) { session(dice, watch) } else { gone(dice, watch) };
                if dice.one_in(2) {
                    res["_meta"] = json!({"castor": {"fork": {"messageId": message(dice, watch, &parent)}}});
                }
                res["sessionId"] = json!(parent);
                return res;
            }
            "_castor/session/rewind" if dice.one_in(2) => match dice.roll(3) {
                0 => json!({"checkpointId": "k0", "what": "files", "paths": ["/usr/a"]}),
                1 => json!({"redo": true, "what": "conversation"}),
                _ => json!({"redo": true}),
            },
            "_castor/session/rewind" => {
                let session = if dice.one_in(3) { session(dice, watch) } else { idle(dice, watch) };
                let what = dice.word(&["conversation", "conversation", "conversation", "nope"]);
                return json!({"messageId": message(dice, watch, &session), "sessionId": session, "what": what});
            }
            "_castor/session/state" => {
                json!({"set": {dice.word(&["a", "app:a", "user:a", "temp:a", "no key"]): dice.roll(9)}})
            }
            "_castor/session/subscribe" if dice.one_in(2) => {
                let what = dice.word(&["agent_end", "message", "nope"]);
                return json!({"sessionId": gone(dice, watch), "types": [what]});
            }
            "_castor/session/unsubscribe" => {
                return watch.subscriptions.last().map_or_else(|| json!({"subscriptionId": "sub-0"}), unsubscribed);
            }
            // Whose stream does not end would be waited for in vain.
            "_castor/session/stream" => json!({"eventId": dice.word(&["s-0", "unknown"])}),
            "_castor/session/attach" => json!({"history": dice.one_in(2)}),
            "_castor/session/client_act" => {
                let kind = dice.word(&["prompt", "answer", "cancel", "nope"]);
                json!({"act": {"kind": kind, "by": {"principal": "user", "connection": 1, "client": "a client"}}})
            }
            "_castor/session/custom_event" => json!({"kind": dice.word(&["bot/note", "plan"]), "data": [dice.roll(9)]}),
            "_castor/policy/evaluate" => {
                json!({"tool": dice.word(&["read_file", "run_shell_command", "write_todos", "nope"]), "args": {"command": "ls"}})
            }
            "_castor/session/update" => match dice.roll(3) {
                0 => json!({"title": "A title", "config": {"mode": dice.word(&["default", "autoEdit", "nope"])}}),
                1 => json!({"model": dice.word(&["gemini-4-hydrogen", "nope"])}),
                _ => json!({"title": ""}),
            },
            "session/prompt" if dice.one_in(8) => {
                let options = match dice.roll(4) {
                    0 => json!({"mode": "autoEdit", "tools": ["read_file", "write_file"]}),
                    1 => json!({"model": "gemini-4-hydrogen"}),
                    2 => json!({"limits": "requests=2"}),
                    _ => json!({"speed": 9}),
                };
                json!({"prompt": prompt(dice), "_meta": {"castor": options}})
            }
            "session/prompt" if dice.one_in(24) => json!({"prompt": [], "_meta": {"castor": {"resume": true}}}),
            "session/prompt" => json!({"prompt": prompt(dice)}),
            // A turn that begins by itself is none of the watch's requests.
            "_session/steering" => {
                let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
                json!({"prompt": prompt(dice), "_meta": meta})
            }
            "session/set_title" => json!({"title": dice.word(&["One", " two\nlines ", " "])}),
            "auth/status" | "providers/list" => return json!({}),
            "_castor/mcp/switch" => json!({"server": dice.word(&["sim", "web", "nope"]), "on": dice.one_in(2)}),
            "_castor/options/list" => return json!({"cwd": dice.word(&[CWD, "/nowhere", "nope"])}),
            "providers/set" | "providers/disable" => return json!({"id": "nope"}),
            "trust/apply" => json!({"decision": dice.word(&["decline", "nope"])}),
            "session/archive" | "session/unarchive" | "_session/archive" | "_session/unarchive" => {
                return json!({"sessionId": gone(dice, watch)});
            }
            "session/rewind" => json!({"messageId": "unknown"}),
            "session/edit_prompt" => json!({"messageId": "unknown", "prompt": []}),
            "_session/rename" => json!({"title": "Three"}),
            "_session/async_task/stop" => json!({"taskId": "unknown"}),
            "session/set_mode" => json!({"modeId": dice.word(&["plan", "default", "autoEdit", "yolo", "nope"])}),
            "session/set_model" => json!({"modelId": dice.word(&["gemini-4-hydrogen", "gemini-3.8-flash", "nope"])}),
            "session/set_config_option" => option(dice),
            "session/delete" if dice.one_in(2) => json!({"sessionId": gone(dice, watch)}),
            _ => of_session(),
        };
        if params["sessionId"].is_null() {
            params["sessionId"] = json!(session(dice, watch));
        }
        params
    }
}

impl Dice {
    fn word_of<'a>(&mut self, of: &[&'a [u8]]) -> &'a [u8] {
        of[self.roll(of.len())]
    }
}

/// What to ask for: it keeps some sessions open, and no more.
fn method(dice: &mut Dice, watch: &Watch) -> &'static str {
    let opening = ["session/new", "session/load", "session/resume", "session/fork"];
    if watch.sessions.len() < SESSIONS && dice.one_in(3) {
        return if watch.gone.is_empty() { opening[0] } else { dice.word(&opening) };
    }
    match dice.weighed(REQUESTS) {
        it if opening.contains(&it) && watch.sessions.len() >= SESSIONS => "session/prompt",
        it => it,
    }
}

/// An answer that takes a question off the list, whatever it was.
pub fn refuse(question: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": -32603, "message": "not now"}}))
}

pub fn cancel(session: &str) -> Vec<u8> {
    notification("session/cancel", &json!({"sessionId": session}))
}

/// The params that end a subscription.
pub fn unsubscribed((session, id): &(String, String)) -> Value {
    json!({"sessionId": session, "subscriptionId": id})
}

fn session(dice: &mut Dice, watch: &Watch) -> String {
    match dice.pick(&watch.sessions) {
        Some(it) if !dice.one_in(25) => it.clone(),
        _ if dice.one_in(2) => "../odd".to_owned(),
        _ => gone(dice, watch),
    }
}

/// An open session that no prompt keeps busy and whose messages the client was told: one that can be rewound.
fn idle(dice: &mut Dice, watch: &Watch) -> String {
    let busy = |id: &String| watch.is_busy(id) || watch.open.iter().any(|it| it.session == *id);
    let all: Vec<_> = watch.sessions.iter().filter(|id| watch.said.contains_key(*id) && !busy(id)).collect();
    dice.pick(&all).map_or_else(|| session(dice, watch), |it| (*it).clone())
}

/// One that the user said, as far as the client was told.
fn message(dice: &mut Dice, watch: &Watch, session: &str) -> String {
    let known = watch.said.get(session).and_then(|it| dice.pick(it));
    known.cloned().unwrap_or_else(|| "unknown".to_owned())
}

fn gone(dice: &mut Dice, watch: &Watch) -> String {
    dice.pick(&watch.gone).cloned().unwrap_or_else(|| "unknown".to_owned())
}

fn place(dice: &mut Dice) -> Value {
    let stdio = json!({"name": "sim", "command": "/usr/bin/false", "args": [], "env": []});
    let other = json!({"name": "other", "command": "/usr/bin/true", "args": ["x"], "env": []});
    let web = json!({"name": "web", "type": "http", "url": "http://127.0.0.1:9/mcp", "headers": []});
    let servers = match dice.roll(5) {
        0 | 3 => json!([stdio]),
        1 => json!([stdio, other, web]),
        2 => json!([web]),
        _ => json!([]),
    };
    let cwd = if dice.one_in(12) { dice.word(&["/no/such/folder", "relative", ""]) } else { CWD };
    let more = if dice.one_in(4) { json!(["/etc"]) } else { json!([]) };
    json!({"cwd": cwd, "mcpServers": servers, "additionalDirectories": more})
}

fn prompt(dice: &mut Dice) -> Value {
    let text = if dice.one_in(5) { dice.word(COMMANDS) } else { "go on" };
    let text = json!({"type": "text", "text": text});
    match dice.roll(10) {
        0 => json!([text, {"type": "resource_link", "uri": "file:///usr/a", "name": "a"}]),
        1 => json!([{"type": "image", "mimeType": "image/png", "data": "AAAA"}]),
        2 => json!([]),
        _ => json!([text]),
    }
}

fn option(dice: &mut Dice) -> Value {
    match dice.roll(5) {
        0 => json!({"configId": "mode", "value": dice.word(&["default", "yolo", "nope"])}),
        1 => json!({"configId": "model", "value": dice.word(&["gemini-4-hydrogen", "nope"])}),
        2 => json!({"configId": "thought_level", "value": dice.word(&["auto", "low", "high", "nope"])}),
        3 => json!({"configId": "show_thoughts", "type": "boolean", "value": dice.one_in(2)}),
        _ => json!({"configId": "nope", "value": "x"}),
    }
}

/// Params that no careful client would send.
fn spoil(dice: &mut Dice, params: &mut Value) {
    match dice.roll(5) {
        0 => *params = Value::Null,
        1 => *params = json!([1, 2]),
        2 => *params = json!({}),
        3 => params["sessionId"] = json!(7),
        // What else is there stays: words without `steering` would begin a turn that no request of the client is for.
        _ => params["_meta"]["traceparent"] = json!("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    }
}

fn answer(dice: &mut Dice, question: &Value) -> Vec<u8> {
    if dice.one_in(10) {
        return refuse(question);
    }
    let odd = || json!({"odd": true});
    let result = match question["method"].as_str().unwrap_or_default() {
        _ if dice.one_in(12) => odd(),
        "session/request_permission" => permission(dice, question),
        "elicitation/create" => {
            let content = match dice.roll(6) {
                4.. => {
                    let words = ["retry_once", "retry_always", "wait", "retry_later", "stop", "odd"];
                    json!({"model_fallback": dice.word(&words)})
                }
                3 => json!({"trust": dice.word(&["trust_folder", "never", "not_now", "odd"])}),
                0 => json!({"0": true, "1": "this one"}),
                1 => json!({"0": "odd"}),
                _ => json!({"0": false}),
            };
            json!({"action": dice.word(&["accept", "accept", "decline", "cancel"]), "content": content})
        }
        "fs/read_text_file" => json!({"content": "old"}),
        "terminal/create" => json!({"terminalId": "t"}),
        "terminal/output" => json!({"output": "o", "truncated": false}),
        "terminal/wait_for_exit" => json!({"exitCode": 0}),
        _ => json!({}),
    };
    line(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}))
}

fn permission(dice: &mut Dice, question: &Value) -> Value {
    let options = question["params"]["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let chosen = dice.pick(options).map(|it| it["optionId"].clone()).unwrap_or_default();
    match dice.roll(8) {
        0 => json!({"outcome": {"outcome": "cancelled"}}),
        1 => json!({"outcome": {"outcome": "selected", "optionId": "nope"}}),
        2 => {
            let input = dice.word(&["ls", "touch a", ""]);
            let meta = json!({"castor": {"input": {"command": input, "file_path": input}}});
            json!({"outcome": {"outcome": "selected", "optionId": chosen}, "_meta": meta})
        }
        _ => json!({"outcome": {"outcome": "selected", "optionId": chosen}}),
    }
}

fn notification(method: &str, params: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

fn line(message: &Value) -> Vec<u8> {
    format!("{message}\n").into_bytes()
}

/// Every method of the agent has its params here.
#[test]
fn simulator_calls_every_method() {
    let said = |name: &str| REQUESTS.iter().any(|(_, it)| *it == name);
    for (name, _) in METHODS {
        assert!(said(name), "{name} is never said");
    }
    for (name, _) in METHODS_V2 {
        assert!(REQUESTS.iter().any(|(_, it)| version2::method(it) == *name), "{name} is never said in version 2");
    }
}
