//! What the client knows by what it said and heard; and the promises that it can hold the agent to, beside the ledger's.

use std::collections::BTreeMap;

use serde_json::Value;

use super::version2;

/// After a cancel everything it is about is answered within this, in milliseconds of simulated time.
const CANCEL_MS: u64 = 200;
/// Questions that were taken back and may still be answered late.
const KEPT: usize = 8;
/// What the agent may ask outside of any turn: its terminals have to be given back.
const ANY_TIME: &[&str] = &["terminal/create", "terminal/kill", "terminal/release"];

/// No cancel ends it: it ends when the files that the call names are looked up.
pub const EVALUATE: &str = "_castor/policy/evaluate";

#[derive(Default)]
pub struct Watch {
    /// Requests of ours without an answer.
    pub open: Vec<Open>,
    /// Requests of the agent without an answer.
    pub questions: Vec<Value>,
    /// Those that it took back.
    pub withdrawn: Vec<Value>,
    pub is_initialized: bool,
    /// Every session that was ever made here, in order.
    pub made: Vec<String>,
    /// Open sessions, oldest first.
    pub sessions: Vec<String>,
    /// Of each session, the mode that it was last told, and the folders that it was opened with.
    pub known: BTreeMap<String, Known>,
    /// Sub-agents that were shown as sessions.
    pub children: BTreeMap<String, ChildSeen>,
    /// Closed ones, which can be loaded.
    pub gone: Vec<String>,
    /// Of each session, the ids of what the user said, as a load told them.
    pub said: BTreeMap<String, Vec<String>>,
    /// Answers by method: results, errors.
    pub answers: BTreeMap<String, (usize, usize)>,
    /// Subscriptions: session and id.
    pub subscriptions: Vec<(String, String)>,
    /// How prompts ended.
    pub stops: BTreeMap<String, usize>,
    /// A line of ours that has not ended.
    pub partial: Vec<u8>,
    /// Of the protocol; 0 before initialize is answered.
    pub version: u64,
    /// Of version 2: sessions that are at work. No answer says when they stop.
    turns: BTreeMap<String, Turn>,
    problems: Vec<String>,
}

/// What the updates of a session say of its turn.
#[derive(Default)]
struct Turn {
    /// For the user.
    waits: bool,
    /// It was cancelled, and must have ended by then.
    due_ms: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Known {
    pub mode: String,
    pub roots: Vec<String>,
}

/// A sub-agent, as the client was told of it.
#[derive(Clone, Debug, Default)]
pub struct ChildSeen {
    parent: String,
    pub ended: bool,
    /// It was cancelled, and must have ended by then.
    due_ms: Option<u64>,
}

pub struct Open {
    id: Value,
    pub method: String,
    pub session: String,
    params: Value,
    /// It was cancelled, and must be answered by then.
    pub due_ms: Option<u64>,
}

impl Watch {
    pub fn sent(&mut self, bytes: &[u8], now_ms: u64) {
        self.partial.extend(bytes);
        let Some(end) = self.partial.iter().rposition(|it| *it == b'\n') else { return };
        let lines: Vec<u8> = self.partial.drain(..=end).collect();
        lines.split(|it| *it == b'\n').for_each(|it| self.sent_line(it, now_ms));
    }

    /// Our input ended, and with it its last line.
    pub fn close(&mut self, now_ms: u64) {
        let last = std::mem::take(&mut self.partial);
        self.sent_line(&last, now_ms);
    }

    fn sent_line(&mut self, line: &[u8], now_ms: u64) {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { return };
        if !message.is_object() || message["jsonrpc"] != "2.0" {
            return;
        }
        let session = text(&message["params"]["sessionId"]);
        let due_ms = Some(now_ms + CANCEL_MS);
        match (message.get("id").cloned(), message["method"].as_str()) {
            (Some(id), Some(method)) if id.is_string() || id.is_i64() => {
                if ["session/close", "session/delete", "session/archive"].contains(&method) {
                    self.cancelled(due_ms, |it| it.session == session);
                    self.cancel_turn(&session, due_ms);
                }
                self.open.push(Open {
                    id,
                    method: method.to_owned(),
                    session,
                    params: message["params"].clone(),
                    due_ms: None,
                });
            }
            (Some(id), None) => self.questions.retain(|it| it["id"] != id),
            (None, Some("session/cancel")) => {
                self.cancelled(due_ms, |it| it.session == session);
                self.cancel_turn(&session, due_ms);
                if let Some(it) = self.children.get_mut(&session).filter(|it| !it.ended) {
                    it.due_ms = it.due_ms.or(due_ms);
                }
            }
            (None, Some("$/cancel_request")) => {
                let id = &message["params"]["requestId"];
                self.cancelled(due_ms, |it| it.id == *id);
            }
            _ => (),
        }
    }

    fn cancelled(&mut self, due_ms: Option<u64>, about: impl Fn(&Open) -> bool) {
        let known = self.sessions.clone();
        let prompts = self.open.iter_mut().filter(|it| it.method == "session/prompt" && known.contains(&it.session));
        prompts.filter(|it| about(it)).for_each(|it| it.due_ms = it.due_ms.or(due_ms));
    }

    fn cancel_turn(&mut self, session: &str, due_ms: Option<u64>) {
        if let Some(it) = self.turns.get_mut(session) {
            it.due_ms = it.due_ms.or(due_ms);
        }
    }

    pub fn received(&mut self, message: &Value) {
        match (message.get("id"), message["method"].as_str()) {
            (Some(_), Some(_)) => self.questions.push(message.clone()),
            (None, Some("$/cancel_request")) => {
                let id = &message["params"]["requestId"];
                if let Some(at) = self.questions.iter().position(|it| it["id"] == *id) {
                    self.withdrawn.push(self.questions.remove(at));
                }
                let n_old = self.withdrawn.len().saturating_sub(KEPT);
                self.withdrawn.drain(..n_old);
            }
            (Some(id), None) => self.answered(id, message),
            (None, Some("session/update")) => {
                self.updated(text(&message["params"]["sessionId"]), &message["params"]["update"]);
            }
            _ => (),
        }
    }

    fn updated(&mut self, session: String, update: &Value) {
        self.of_child(&session, update);
        match update["sessionUpdate"].as_str().unwrap_or_default() {
            "user_message_chunk" | "user_message" => {
                self.said.entry(session).or_default().push(text(&update["messageId"]));
            }
            "current_mode_update" => self.is_in_mode(&session, &update["currentModeId"]),
            "config_option_update" if self.version == 2 => self.is_in_mode(&session, mode_of(update)),
            // Those of sub-agents are told of in the session above, too.
            "state_update" if !session.contains('/') => self.state_changed(session, update),
            _ => (),
        }
    }

    /// A turn begins once and ends once, and the user is asked while it lasts.
    fn state_changed(&mut self, session: String, update: &Value) {
        let turn = self.turns.get_mut(&session);
        let wrong = match (update["state"].as_str().unwrap_or_default(), turn) {
            ("running", None) => {
                self.turns.insert(session, Turn::default());
                return;
            }
            ("running", Some(turn)) => !std::mem::take(&mut turn.waits),
            ("requires_action", Some(turn)) => std::mem::replace(&mut turn.waits, true),
            ("idle", turn) => {
                // Who resumes a session is told that it is idle, and not why it stopped.
                let stop = update["stopReason"].as_str();
                let fits = stop.is_some() == turn.is_some();
                *self.stops.entry(stop.unwrap_or("resumed").to_owned()).or_default() += 1;
                self.turns.remove(&session);
                !fits
            }
            _ => true,
        };
        if wrong {
            self.problems.push(format!("no turn does so: {update}"));
        }
    }

    /// A sub-agent is announced before anything else of it, ends once, and says nothing after that.
    fn of_child(&mut self, session: &str, update: &Value) {
        let wrong = |what: &str, id: &str| Some(format!("{what}: {id} {update}"));
        let is_over = |it: &str| session.contains('/') && self.children.get(it).is_none_or(|it| it.ended);
        let problem = if is_over(session) { wrong("of a sub-agent that is not at work", session) } else { None };
        self.problems.extend(problem);
        if update["sessionUpdate"] != "subagent_update" {
            return;
        }
        let id = text(&update["sessionId"]);
        let is_at_work = self.children.get(&id).is_some_and(|it| !it.ended);
        let is_announced = update.get("title").is_some();
        if is_announced == is_at_work {
            self.problems.extend(wrong("announced twice, or not at all", &id));
        }
        if is_announced {
            self.children.insert(id.clone(), ChildSeen { parent: session.to_owned(), ..ChildSeen::default() });
        }
        if ["idle", "unknown"].iter().any(|it| update["state"]["state"] == *it)
            && let Some(it) = self.children.get_mut(&id)
        {
            (it.ended, it.due_ms) = (true, None);
        }
        if self.children.iter().any(|(_, it)| it.parent == id && !it.ended)
            && self.children.get(&id).is_some_and(|it| it.ended)
        {
            self.problems.extend(wrong("ended before what is below it", &id));
        }
    }

    fn answered(&mut self, id: &Value, message: &Value) {
        let Some(at) = self.open.iter().position(|it| it.id == *id) else { return };
        let Open { method, session, params, .. } = self.open.remove(at);
        let name = if self.version == 2 { version2::count_name(&method) } else { method.clone() };
        let count = self.answers.entry(name).or_default();
        let stop = message["result"]["stopReason"].as_str().unwrap_or("error");
        if method == "session/prompt" && self.version != 2 {
            *self.stops.entry(stop.to_owned()).or_default() += 1;
        }
        let Some(result) = message.get("result") else {
            count.1 += 1;
            return;
        };
        count.0 += 1;
        match method.as_str() {
            "initialize" => {
                self.is_initialized = true;
                self.version = result["protocolVersion"].as_u64().unwrap_or_default();
            }
            "session/new" | "session/fork" => {
                self.made.push(text(&result["sessionId"]));
                self.opened(text(&result["sessionId"]), &params, result);
            }
            "session/load" | "session/resume" => {
                self.gone.retain(|it| *it != session);
                self.opened(session, &params, result);
            }
            "_castor/session/subscribe" => self.subscriptions.push((session, text(&result["subscriptionId"]))),
            "_castor/session/unsubscribe" => {
                let ended = (session, text(&params["subscriptionId"]));
                self.subscriptions.retain(|it| *it != ended);
            }
            "session/set_mode" => self.is_in_mode(&session, &params["modeId"]),
            "session/set_config_option" if self.version == 2 => self.is_in_mode(&session, mode_of(result)),
            "_castor/session/sleep" if result["asleep"] == false => (),
            "session/close" | "session/archive" | "_session/archive" | "_castor/session/sleep" => {
                self.closed(&session);
                self.gone.push(session);
            }
            "session/delete" => self.closed(&session),
            _ => (),
        }
    }

    fn closed(&mut self, session: &str) {
        self.sessions.retain(|it| it != session);
        self.gone.retain(|it| it != session);
        if self.turns.remove(session).is_some() {
            self.problems.push(format!("a turn outlives its session: {session}"));
        }
    }

    fn opened(&mut self, session: String, params: &Value, result: &Value) {
        // One that was open already is where it was asked to be this time.
        let roots =
            std::iter::once(&params["cwd"]).chain(params["additionalDirectories"].as_array().into_iter().flatten());
        let known = Known { mode: String::new(), roots: roots.map(text).collect() };
        self.known.insert(session.clone(), known);
        if !self.sessions.contains(&session) {
            self.sessions.push(session.clone());
        }
        self.is_in_mode(&session, mode_of(result));
    }

    fn is_in_mode(&mut self, session: &str, mode: &Value) {
        if let Some(it) = self.known.get_mut(session) {
            it.mode = text(mode);
        }
    }

    /// Held after each turn of the loop.
    pub fn check(&mut self, now_ms: u64) {
        let late = self.open.iter_mut().filter(|it| it.due_ms.is_some_and(|due| due < now_ms));
        for it in late {
            it.due_ms = None;
            self.problems.push(format!("the prompt {} was cancelled more than {CANCEL_MS} ms ago", it.id));
        }
        for (session, it) in self.turns.iter_mut().filter(|(_, it)| it.due_ms.is_some_and(|due| due < now_ms)) {
            it.due_ms = None;
            self.problems.push(format!("the turn of {session} was cancelled more than {CANCEL_MS} ms ago"));
        }
        for it in &self.questions {
            let method = it["method"].as_str().unwrap_or_default();
            let session = text(&it["params"]["sessionId"]);
            if !ANY_TIME.contains(&method) && !self.is_busy(&session) && !self.evaluates(&session) {
                self.problems.push(format!("{method} (id {}) outlives its turn", it["id"]));
            }
        }
        for (id, it) in self.children.iter().filter(|(_, it)| !it.ended) {
            if !self.is_busy(id) {
                self.problems.push(format!("the sub-agent {id} never ended"));
            }
            if it.due_ms.is_some_and(|due| due < now_ms) {
                self.problems.push(format!("the sub-agent {id} was cancelled more than {CANCEL_MS} ms ago"));
            }
        }
    }

    /// Whether the client waits for what policy would say of a call, whose files the editor may be asked for.
    fn evaluates(&self, session: &str) -> bool {
        self.open.iter().any(|it| it.method == EVALUATE && it.session == session)
    }

    /// Whether a turn goes on that nobody cancelled.
    pub fn has_turn(&self, session: &str) -> bool {
        self.turns.get(session).is_some_and(|it| it.due_ms.is_none())
    }

    /// Whether a prompt is under way. Sub-agents work in turns of the session above them.
    pub fn is_busy(&self, session: &str) -> bool {
        let root = session.split('/').next().unwrap_or_default();
        self.turns.contains_key(root) || self.open.iter().any(|it| it.method == "session/prompt" && it.session == root)
    }

    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Prompts that were answered.
    pub fn n_turns(&self) -> usize {
        let name = "session/prompt";
        let counts = [name, &version2::count_name(name)].map(|it| self.answers.get(it).copied().unwrap_or_default());
        counts.iter().map(|(results, errors)| results + errors).sum()
    }
}

/// The mode that a session is in. Version 2 has it among the options alone.
fn mode_of(told: &Value) -> &Value {
    let mut options = told["configOptions"].as_array().into_iter().flatten();
    let option = options.find(|it| it["configId"] == "mode");
    option.map_or(&told["modes"]["currentModeId"], |it| &it["currentValue"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
