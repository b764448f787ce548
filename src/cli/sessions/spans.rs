//! Spans of a session: when the model worked, when a tool ran, and when castor waited for the user.

use std::collections::{BTreeMap, BTreeSet};

use castor_base::{
    event::{AgentEvent, EventKind, ToolProgress},
    ids::CallId,
    log::{Decision, Entry, Fact},
    model::Purpose,
};
use castor_engine::record::COMMAND_META;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request to a model, up to the end of its answer.
    Model,
    /// A call, without the time in which the user was asked about it.
    Tool,
    /// A call that is a sub-agent's run: its own log has the spans in it.
    Agent,
    /// The user had a question before them.
    Waiting,
}

/// In milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeSpan {
    pub kind: SpanKind,
    /// The model or the tool; empty where castor itself asked.
    pub name: String,
    pub from: u64,
    pub to: u64,
}

impl TimeSpan {
    pub fn ms(&self) -> u64 {
        self.to.saturating_sub(self.from)
    }
}

/// Watches the facts of one log, in order. What it knows does not grow with the log.
#[derive(Clone, Debug, Default)]
pub struct SpanTracker {
    /// The model that was asked, and since when.
    request: Option<(String, u64)>,
    /// Calls of the turn that have no end yet.
    calls: BTreeMap<CallId, OpenCall>,
    /// Questions to the user, and since when there is one.
    questions: BTreeSet<CallId>,
    asking: Option<(String, u64)>,
}

#[derive(Clone, Debug)]
struct OpenCall {
    /// Empty: the call is a question of castor's own.
    name: String,
    /// It runs.
    since: Option<u64>,
    /// When something was last known of it.
    last: u64,
    is_agent: bool,
}

impl SpanTracker {
    /// The tool of a call that has no end yet; `None` also for a question of castor's own.
    pub fn tool_of(&self, call: &CallId) -> Option<&str> {
        self.calls.get(call).map(|it| it.name.as_str()).filter(|it| !it.is_empty())
    }

    /// Appends the spans that end with this fact.
    pub fn track(&mut self, entry: &Entry, out: &mut Vec<TimeSpan>) {
        let at = entry.at;
        match &entry.fact {
            Fact::Attempt { model, .. } => {
                self.end_request(at, out);
                self.request = Some((model.clone(), at));
            }
            Fact::AttemptFailed { .. } => self.end_request(at, out),
            Fact::Decision { call, decision: Decision::Ask, .. } => self.ask(call, at, out),
            Fact::Answered { call, .. } => self.on_answer(call, at, out),
            Fact::Event { event } => self.on_event(event, at, out),
            _ => (),
        }
    }

    fn on_event(&mut self, event: &AgentEvent, at: u64, out: &mut Vec<TimeSpan>) {
        match &event.kind {
            EventKind::Usage { purpose: Purpose::Agent, .. } => self.end_request(at, out),
            EventKind::ToolRequest { request_id, name, .. } => {
                let name = if event.meta.contains_key(COMMAND_META) { String::new() } else { name.clone() };
                self.calls.insert(request_id.clone(), OpenCall { name, since: None, last: at, is_agent: false });
            }
            EventKind::ToolUpdate { request_id, update } => self.on_progress(request_id, update, at, out),
            EventKind::ToolResponse { request_id, .. } => {
                self.settle(request_id, at, out);
                self.pause(request_id, at, out);
                self.calls.remove(request_id);
            }
            EventKind::AgentStart {} | EventKind::AgentEnd { .. } => self.end_all(at, out),
            _ => (),
        }
    }

    fn on_progress(&mut self, id: &CallId, update: &ToolProgress, at: u64, out: &mut Vec<TimeSpan>) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.last = at;
        match update {
            ToolProgress::Started { .. } => _ = call.since.get_or_insert(at),
            ToolProgress::Activity { .. } => call.is_agent = true,
            // The log of the agent has the question.
            ToolProgress::Waiting if call.is_agent => (),
            ToolProgress::Waiting => self.ask(id, at, out),
            ToolProgress::Resumed => {
                self.settle(id, at, out);
                self.resume(id, at);
            }
            _ => (),
        }
    }

    fn on_answer(&mut self, id: &CallId, at: u64, out: &mut Vec<TimeSpan>) {
        if self.settle(id, at, out) {
            return;
        }
        // A form, or a question about a call that ran: no fact tells when it was put, but the last one before it does.
        let Some(call) = self.calls.get(id) else { return };
        let (last, is_running) = (call.last, call.since.is_some());
        self.ask(id, last, out);
        self.settle(id, at, out);
        if is_running {
            self.resume(id, at);
        }
    }

    /// From now on the user has a question.
    fn ask(&mut self, id: &CallId, at: u64, out: &mut Vec<TimeSpan>) {
        self.pause(id, at, out);
        if self.questions.is_empty() {
            self.asking = Some((self.tool_of(id).unwrap_or_default().to_owned(), at));
        }
        self.questions.insert(id.clone());
    }

    /// The question about this call is answered; false: there was none.
    fn settle(&mut self, id: &CallId, at: u64, out: &mut Vec<TimeSpan>) -> bool {
        let was_open = self.questions.remove(id);
        if self.questions.is_empty()
            && let Some((name, from)) = self.asking.take()
        {
            push(out, SpanKind::Waiting, name, (from, at));
        }
        was_open
    }

    fn pause(&mut self, id: &CallId, at: u64, out: &mut Vec<TimeSpan>) {
        if let Some(call) = self.calls.get_mut(id)
            && let Some(from) = call.since.take()
            && !call.name.is_empty()
        {
            let kind = if call.is_agent { SpanKind::Agent } else { SpanKind::Tool };
            push(out, kind, call.name.clone(), (from, at));
        }
    }

    fn resume(&mut self, id: &CallId, at: u64) {
        if let Some(call) = self.calls.get_mut(id) {
            call.since.get_or_insert(at);
            call.last = at;
        }
    }

    fn end_request(&mut self, at: u64, out: &mut Vec<TimeSpan>) {
        if let Some((model, from)) = self.request.take() {
            push(out, SpanKind::Model, model, (from, at));
        }
    }

    fn end_all(&mut self, at: u64, out: &mut Vec<TimeSpan>) {
        self.end_request(at, out);
        let open: Vec<CallId> = self.calls.keys().cloned().collect();
        for id in &open {
            self.pause(id, at, out);
        }
        self.questions.clear();
        if let Some((name, from)) = self.asking.take() {
            push(out, SpanKind::Waiting, name, (from, at));
        }
        self.calls.clear();
    }
}

/// What took no time is no span.
fn push(out: &mut Vec<TimeSpan>, kind: SpanKind, name: String, (from, to): (u64, u64)) {
    if from < to {
        out.push(TimeSpan { kind, name, from, to });
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::{Value, json};

    use super::SpanTracker;

    fn check(facts: Vec<Value>, expected: Expect) {
        let (mut tracker, mut spans) = (SpanTracker::default(), Vec::new());
        for fact in facts {
            tracker.track(&serde_json::from_value(fact).unwrap(), &mut spans);
        }
        let lines = spans.iter().map(|it| format!("{:?} {:?} {}-{}\n", it.kind, it.name, it.from, it.to));
        expected.assert_eq(&lines.collect::<String>());
    }

    fn event(at: u64, mut kind: Value) -> Value {
        for (key, value) in [("id", json!("s-0")), ("streamId", json!("s")), ("timestamp", json!(at))] {
            kind[key] = value;
        }
        json!({"at": at, "fact": "event", "event": kind})
    }

    fn call(at: u64, id: &str, tool: &str) -> Value {
        event(
            at,
            json!({"type": "tool_request", "requestId": id, "name": tool, "args": {},
            "display": {"title": tool, "kind": "other"}}),
        )
    }

    fn progress(at: u64, id: &str, word: &str) -> Value {
        let activity = json!({"isSubagentActivityEvent": true, "agentName": "a", "type": "THOUGHT_CHUNK", "data": {}});
        event(at, json!({"type": "tool_update", "requestId": id, "progress": word, "text": "x", "activity": activity}))
    }

    fn response(at: u64, id: &str) -> Value {
        event(at, json!({"type": "tool_response", "requestId": id, "name": "t", "content": []}))
    }

    fn usage(at: u64) -> Value {
        event(at, json!({"type": "usage", "model": "m", "input": 1, "output": 1, "total": 2, "size": 9}))
    }

    fn ask(at: u64, id: &str) -> Value {
        json!({"at": at, "fact": "decision", "call": id, "decision": "ask", "rule": "r"})
    }

    fn answer(at: u64, id: &str, answer: Value) -> Value {
        json!({"at": at, "fact": "answered", "call": id, "answer": answer})
    }

    #[test]
    fn work_and_waiting_do_not_overlap() {
        let attempt = |at| json!({"at": at, "fact": "attempt", "model": "m", "attempt": 1});
        let facts = vec![
            attempt(10),
            call(15, "c", "shell"),
            usage(20),
            ask(21, "c"),
            answer(50, "c", json!("allow_once")),
            progress(50, "c", "started"),
            progress(55, "c", "waiting"),
            progress(60, "c", "resumed"),
            response(70, "c"),
            attempt(70),
            json!({"at": 90, "fact": "attempt_failed", "failure": {"kind": "status", "message": "x"}, "abandoned": true}),
            attempt(95),
            event(99, json!({"type": "agent_end", "reason": "aborted"})),
        ];
        check(
            facts,
            expect![[r#"
                Model "m" 10-20
                Waiting "shell" 21-50
                Tool "shell" 50-55
                Waiting "shell" 55-60
                Tool "shell" 60-70
                Model "m" 70-90
                Model "m" 95-99
            "#]],
        );
    }

    /// Two questions at once are one time; a form is asked when its call starts; a sandbox asks when a command ended.
    #[test]
    fn questions_without_a_fact_of_their_own_have_a_time() {
        let facts = vec![
            call(1, "a", "write"),
            call(1, "b", "write"),
            ask(2, "a"),
            ask(3, "b"),
            answer(5, "a", json!("reject")),
            response(6, "a"),
            answer(9, "b", json!("allow_once")),
            response(9, "b"),
            call(10, "f", "ask_user"),
            progress(11, "f", "started"),
            answer(20, "f", json!({"accepted": {"content": {}}})),
            response(20, "f"),
            call(30, "s", "shell"),
            progress(31, "s", "started"),
            progress(35, "s", "printed"),
            answer(40, "s", json!("allow_once")),
            response(45, "s"),
        ];
        check(
            facts,
            expect![[r#"
                Waiting "write" 2-9
                Waiting "ask_user" 11-20
                Tool "shell" 31-35
                Waiting "shell" 35-40
                Tool "shell" 40-45
            "#]],
        );
    }

    /// The agent's own log has its waiting; castor's own questions have no tool; what a crash left open ends with the next turn.
    #[test]
    fn agents_and_castors_own_questions() {
        let mut own = call(20, "q", "fallback");
        own["event"]["_meta"] = json!({ castor_engine::record::COMMAND_META: true });
        let facts = vec![
            call(1, "a", "invoke_agent"),
            progress(2, "a", "started"),
            progress(3, "a", "activity"),
            progress(4, "a", "waiting"),
            progress(8, "a", "resumed"),
            response(10, "a"),
            own,
            progress(21, "q", "waiting"),
            answer(25, "q", json!("allow_once")),
            response(26, "q"),
            call(30, "c", "shell"),
            progress(31, "c", "started"),
            event(40, json!({"type": "agent_start"})),
            response(50, "c"),
            answer(60, "gone", json!("reject")),
        ];
        check(
            facts,
            expect![[r#"
                Agent "invoke_agent" 2-10
                Waiting "" 21-25
                Tool "shell" 31-40
            "#]],
        );
    }
}
