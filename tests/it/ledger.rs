//! The ledger: what was asked, what was answered, which calls ended. Protocols break by omission.

use std::collections::BTreeMap;

use serde_json::Value;

use castor_wire::jsonrpc::error::KINDS;

use crate::schema;

/// Updates that belong to a turn, or to the replay of one.
const IN_TURN: &[&str] =
    &["user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan"];

/// The same in version 2.
const IN_TURN_V2: &[&str] =
    &["agent_message_chunk", "agent_thought_chunk", "tool_call_update", "terminal_update", "terminal_output_chunk"];

/// Longer lines are refused as a whole.
const MAX_LINE: usize = 32 * 1024 * 1024;

/// What a client owes and is owed.
#[derive(Default)]
pub struct Ledger {
    /// Requests of ours without an answer yet.
    open: Vec<Open>,
    /// Requests of the agent, in order.
    asked: Vec<Asked>,
    /// (session, call) → whether it ended.
    calls: BTreeMap<(String, String), bool>,
    /// Calls that a prompt ended with: their ends come after the next one.
    pending: Vec<String>,
    problems: Vec<String>,
    /// Sessions in which steering began a turn: no answer says when it ends.
    detached: Vec<String>,
    /// Of the protocol; 0 before initialize is answered.
    version: u64,
    /// Of version 2: sessions that are at work.
    busy: Vec<String>,
    /// After the end of our input nothing more is owed to us.
    closed: bool,
    /// What we sent of a line that has not ended.
    partial: Vec<u8>,
}

struct Open {
    id: Value,
    method: String,
    session: String,
    /// No proper request: an error for nobody answers it too.
    is_odd: bool,
}

pub struct Asked {
    pub message: Value,
    pub answered: bool,
}

impl Ledger {
    /// Enters bytes of ours; what is no request is none of our business.
    pub fn sent(&mut self, bytes: &[u8]) {
        self.partial.extend(bytes);
        let Some(end) = self.partial.iter().rposition(|it| *it == b'\n') else { return };
        let lines: Vec<u8> = self.partial.drain(..=end).collect();
        lines.split(|it| *it == b'\n').for_each(|it| self.sent_line(it));
    }

    fn sent_line(&mut self, line: &[u8]) {
        if line.len() > MAX_LINE {
            return;
        }
        let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        // Half a surrogate pair is read as a sign, and the request around it is owed an answer.
        let mended = || serde_json::from_str(&str::from_utf8(line).ok()?.replace("\\ud800", "")).ok();
        let message: Value = serde_json::from_slice(line).ok().or_else(mended).unwrap_or_default();
        let (Some(id), method) = (message.get("id").cloned(), &message["method"]) else { return };
        if message.get("method").is_none() {
            return self.settle(&id);
        }
        let is_odd = message["jsonrpc"] != "2.0" || !method.is_string() || id.is_object() || id.is_boolean();
        let session = text(&message["params"]["sessionId"]);
        self.open.push(Open { id, method: text(method), session, is_odd });
    }

    /// Our input ended; its last line needs no end of its own.
    pub fn close(&mut self) {
        let last = std::mem::take(&mut self.partial);
        self.sent_line(&last);
        self.closed = true;
    }

    /// Enters a line of the agent; a line that is no JSON gives none back.
    pub fn received(&mut self, line: &[u8]) -> Option<Value> {
        let Ok(message) = serde_json::from_slice::<Value>(line) else {
            self.problem(format!("not JSON: {}", String::from_utf8_lossy(line)));
            return None;
        };
        if message["jsonrpc"] != "2.0" {
            self.problem(format!("no jsonrpc 2.0: {message}"));
        }
        match (message.get("id"), message["method"].as_str()) {
            (id, Some(method)) => self.called(id.is_some(), method, &message),
            (Some(id), None) => self.answered(id, &message),
            (None, None) => self.problem(format!("neither request nor response: {message}")),
        }
        Some(message)
    }

    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.busy.is_empty()
    }

    /// The requests of the agent that wait for our answer, oldest first.
    pub fn questions(&self) -> impl DoubleEndedIterator<Item = &Value> {
        self.asked.iter().filter(|it| !it.answered).map(|it| &it.message)
    }

    pub fn asked(&self) -> &[Asked] {
        &self.asked
    }

    /// Calls that have not ended.
    pub fn running(&self) -> Vec<&str> {
        let is_open = |call: &&str| !self.pending.iter().any(|it| it == call);
        self.calls.iter().filter(|(_, ended)| !**ended).map(|((_, call), _)| call.as_str()).filter(is_open).collect()
    }

    #[allow(dead_code, reason = "the simulator counts them")]
    pub fn n_calls(&self) -> usize {
        self.calls.len()
    }

    #[allow(dead_code, reason = "the simulator asks")]
    pub fn is_well(&self) -> bool {
        self.problems.is_empty()
    }

    /// What is wrong by now; `at_end`: also what never came.
    pub fn problems(&self, at_end: bool) -> Vec<String> {
        let mut res = self.problems.clone();
        if !at_end || self.closed {
            return res;
        }
        res.extend(self.open.iter().map(|it| format!("{} (id {}) was never answered", it.method, it.id)));
        res.extend(self.running().iter().map(|call| format!("tool call {call} never ended")));
        res.extend(self.busy.iter().map(|session| format!("session {session} never became idle")));
        res
    }

    fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    fn settle(&mut self, id: &Value) {
        if let Some(it) = self.asked.iter_mut().find(|it| it.message["id"] == *id) {
            it.answered = true;
        }
    }

    fn called(&mut self, is_request: bool, method: &str, message: &Value) {
        let params = &message["params"];
        let kind = if is_request { "Request" } else { "Notification" };
        if let Err(why) = schema::check_sent(self.version, method, kind, params) {
            self.problem(format!("{why} in {message}"));
        }
        if is_request {
            self.asked.push(Asked { message: message.clone(), answered: false });
        }
        match method {
            "session/update" => self.updated(params),
            "$/cancel_request" => self.settle(&params["requestId"]),
            "session/request_permission" | "elicitation/create" if !self.in_turn(&text(&params["sessionId"])) => {
                self.problem("a question outside any turn".to_owned());
            }
            _ => (),
        }
    }

    /// Sub-agents work in turns of the session above them.
    fn in_turn(&self, session: &str) -> bool {
        let session = session.split('/').next().unwrap_or_default();
        let turns = match self.version {
            2 => ["session/prompt", "session/resume", "session/close"],
            _ => ["session/prompt", "session/edit_prompt", "session/load"],
        };
        self.closed
            || self.busy.iter().any(|it| it == session)
            || self.detached.iter().any(|it| it == session)
            || self.open.iter().any(|it| it.session == session && turns.contains(&it.method.as_str()))
    }

    fn updated(&mut self, params: &Value) {
        let (session, update) = (text(&params["sessionId"]), &params["update"]);
        let kind = text(&update["sessionUpdate"]);
        let in_turn = if self.version == 2 { IN_TURN_V2 } else { IN_TURN };
        if in_turn.contains(&kind.as_str()) && !self.in_turn(&session) {
            self.problem(format!("{kind} outside any turn"));
        }
        if self.version == 2 {
            return self.updated_v2(session, &kind, update);
        }
        // Some clients take a call without a status for completed.
        if kind == "tool_call_update" && !update["status"].is_string() {
            self.problem(format!("an update without a status: {update}"));
        }
        if kind == "compaction_update" {
            let ended = text(&update["status"]) != "in_progress";
            self.calls.insert((session, text(&update["compactionId"])), ended);
            return;
        }
        let key = (session, text(&update["toolCallId"]));
        let ended = ["completed", "failed"].contains(&text(&update["status"]).as_str());
        match (kind.as_str(), self.calls.get_mut(&key)) {
            ("tool_call", None) => _ = self.calls.insert(key, ended),
            ("tool_call", Some(it)) => *it = ended,
            ("tool_call_update", None) => self.problem(format!("an update of an unknown call: {update}")),
            ("tool_call_update", Some(true)) => self.problem(format!("an update of an ended call: {update}")),
            ("tool_call_update", Some(it)) => *it = ended,
            _ => (),
        }
    }

    /// Calls begin with their first update; a session that works becomes idle.
    fn updated_v2(&mut self, session: String, kind: &str, update: &Value) {
        let status = text(&update["status"]);
        match kind {
            "state_update" => {
                self.busy.retain(|it| *it != session);
                // What castor knows no more of ended with the castor before it.
                if update["state"] != "idle" && update["state"] != "unknown" {
                    self.busy.push(session);
                }
            }
            "compaction_update" => {
                self.calls.insert((session, text(&update["compactionId"])), status != "in_progress");
            }
            "tool_call_update" => {
                let ended = ["completed", "failed", "cancelled"].contains(&status.as_str());
                let was = self.calls.insert((session, text(&update["toolCallId"])), ended);
                match was {
                    None if !update["title"].is_string() => self.problem(format!("a call without a title: {update}")),
                    // A replay begins it anew.
                    Some(true) if !update["name"].is_string() && !ended => {
                        self.problem(format!("an update of an ended call: {update}"));
                    }
                    _ => (),
                }
            }
            _ => (),
        }
    }

    fn answered(&mut self, id: &Value, message: &Value) {
        if let Some(calls) = message["result"]["_meta"]["castor"]["pendingToolCalls"].as_array() {
            self.pending = calls.iter().map(|it| text(&it["requestId"])).collect();
        }
        let (result, error) = (message.get("result"), message.get("error"));
        if result.is_some() == error.is_some() {
            self.problem(format!("neither or both of result and error: {message}"));
        }
        if let Some(Err(why)) = error.map(|it| schema::check_error(self.version, it).and_then(|()| check_form(it))) {
            self.problem(format!("{why} in {message}"));
        }
        let by_id = self.open.iter().position(|it| it.id == *id);
        let for_nobody = || self.open.iter().position(|it| it.is_odd && id.is_null());
        let Some(at) = by_id.or_else(for_nobody) else {
            if !id.is_null() || error.is_none() {
                self.problem(format!("an answer that nobody waits for: {message}"));
            }
            return;
        };
        let open = self.open.remove(at);
        if result.is_some_and(|it| it["outcome"] == "startedNewTurn") {
            self.detached.push(open.session.clone());
        }
        if let Some(it) = result.filter(|_| open.method == "initialize") {
            self.version = it["protocolVersion"].as_u64().unwrap_or_default();
        }
        if let Some(Err(why)) = result.map(|it| schema::check_result(self.version, &open.method, it)) {
            self.problem(format!("{why} in {message}"));
        }
    }
}

/// Cause and what to do in one line of text, and a word for programs in the data.
fn check_form(error: &Value) -> Result<(), String> {
    let (message, data) = (text(&error["message"]), &error["data"]);
    let is_sentence = message.ends_with(['.', '?', '!', '…', '`', '\'']);
    let parts = message.split(['.', ';', ':']).filter(|it| !it.trim().is_empty()).count();
    let kind = text(&data["kind"]);
    let says_all = error["code"] != -32603 || data["details"] == error["message"] || message.ends_with('…');
    match () {
        () if message.contains(char::is_control) || !is_sentence => Err("a message that is not one line".to_owned()),
        () if parts < 2 => Err("a message that does not say what to do".to_owned()),
        () if !KINDS.contains(&kind.as_str()) => Err(format!("the unknown kind {kind:?}")),
        () if !says_all => Err("details that differ from the message".to_owned()),
        () => Ok(()),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
