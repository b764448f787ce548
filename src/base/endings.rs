//! Endings that a crash left out of a log: the results of calls and the ends of streams that castor had no time to write.

use std::collections::BTreeMap;

use serde_json::json;

use crate::{
    content::Part,
    event::{AgentEvent, EndReason, EventKind},
    ids::{CallId, StreamId},
    log::{Entry, Fact, VERSION, version_of},
    tool::ToolError,
};

/// What the model is told of such a call.
pub const CALL_INTERRUPTED: &str = "The call was interrupted before it ended; whether it took effect is unknown.";
/// What the user is told of it.
pub const CASTOR_ENDED: &str = "Interrupted: castor ended before this call did.";
/// The kind of error of such a call, and the `code` of such an end.
pub const INTERRUPTED: &str = "interrupted";

/// In the `data` of the end of a stream: calls that the host runs before the next prompt, which brings their results.
pub const PENDING_CALLS: &str = "pendingToolCalls";

/// What ends the streams of a log that nobody writes, and their calls, in order. The same log has the same endings, so
/// that they may be shown before they are written. `at`: when they happen, in Unix milliseconds.
pub fn missing_endings(entries: &[Entry], at: u64) -> Vec<Entry> {
    let mut fold = OpenStreams::default();
    entries.iter().for_each(|it| fold.take(it));
    fold.endings(at)
}

/// The streams of a log that have no end so far, and its version: a fold over its facts.
#[derive(Debug, Default)]
pub struct OpenStreams {
    /// The newest that the log has lines of, as far as it says so.
    pub version: u32,
    streams: OpenThings<StreamId, OpenStream>,
}

/// A stream without an end so far.
#[derive(Debug)]
struct OpenStream {
    start: AgentEvent,
    /// The highest number in the ids of its events.
    last: u64,
    /// Calls without a result.
    calls: OpenThings<CallId, AgentEvent>,
}

/// Things without an end so far, in the order of their beginnings; a name may stand for several.
#[derive(Debug)]
struct OpenThings<K, T> {
    next: u64,
    things: BTreeMap<u64, T>,
    /// By name, the numbers of its things.
    numbers: BTreeMap<K, Vec<u64>>,
}

impl OpenStreams {
    pub fn take(&mut self, entry: &Entry) {
        self.version = self.version.max(version_of(entry));
        let Fact::Event { event } = &entry.fact else { return };
        if matches!(event.kind, EventKind::AgentStart {}) {
            let stream = OpenStream { start: event.clone(), last: 0, calls: OpenThings::default() };
            self.streams.begin(event.stream_id.clone(), stream);
        }
        if let EventKind::AgentEnd { .. } = event.kind {
            self.streams.end_last(&event.stream_id);
        } else if let Some(stream) = self.streams.last_mut(&event.stream_id) {
            stream.take(event);
        }
    }

    /// What ends them.
    pub fn endings(self, at: u64) -> Vec<Entry> {
        // What a newer castor means by its events is unknown.
        if self.version > VERSION {
            return Vec::new();
        }
        self.streams.things.into_values().flat_map(|it| it.endings(at)).collect()
    }
}

impl<K, T> Default for OpenThings<K, T> {
    fn default() -> Self {
        Self { next: 0, things: BTreeMap::new(), numbers: BTreeMap::new() }
    }
}

impl<K: Ord, T> OpenThings<K, T> {
    fn begin(&mut self, name: K, thing: T) {
        self.things.insert(self.next, thing);
        self.numbers.entry(name).or_default().push(self.next);
        self.next += 1;
    }

    fn last_mut(&mut self, name: &K) -> Option<&mut T> {
        self.things.get_mut(self.numbers.get(name)?.last()?)
    }

    fn end_last(&mut self, name: &K) {
        let Some(numbers) = self.numbers.get_mut(name) else { return };
        if let Some(it) = numbers.pop() {
            self.things.remove(&it);
        }
        if numbers.is_empty() {
            self.numbers.remove(name);
        }
    }

    fn end_all(&mut self, name: &K) {
        for it in self.numbers.remove(name).unwrap_or_default() {
            self.things.remove(&it);
        }
    }
}

/// Tells whether an event was not written by the castor that it tells of.
pub fn is_ending(event: &AgentEvent) -> bool {
    match &event.kind {
        EventKind::AgentEnd { data: Some(data), .. } => data["code"] == INTERRUPTED,
        kind => interrupted_call(kind).is_some(),
    }
}

/// The call, if this is the result that it got for want of its own.
pub fn interrupted_call(kind: &EventKind) -> Option<&CallId> {
    match kind {
        EventKind::ToolResponse { request_id, error: Some(error), .. } if error.kind == INTERRUPTED => Some(request_id),
        _ => None,
    }
}

impl OpenStream {
    fn take(&mut self, event: &AgentEvent) {
        self.last = number(event).unwrap_or(self.last + 1).max(self.last);
        match &event.kind {
            EventKind::ToolRequest { request_id, .. } => self.calls.begin(request_id.clone(), event.clone()),
            EventKind::ToolResponse { request_id, .. } => self.calls.end_all(request_id),
            _ => (),
        }
    }

    fn endings(self, at: u64) -> Vec<Entry> {
        let Self { start, last, calls } = self;
        let results = calls.things.into_values().filter_map(|it| Some((result(&it.kind)?, it.source, it.meta)));
        let reason = EndReason::Aborted;
        let end = EventKind::AgentEnd { reason, data: Some(json!({ "code": INTERRUPTED })) };
        let all = results.chain([(end, start.source.clone(), serde_json::Map::new())]);
        let entry = |(n, (kind, source, meta)): (u64, (EventKind, _, _))| {
            let id = format!("{}-{n}", start.stream_id);
            let event = AgentEvent { id, timestamp: at, source, kind, meta, ..start.clone() };
            Entry { at, fact: Fact::Event { event } }
        };
        (last + 1..).zip(all).map(entry).collect()
    }
}

fn number(event: &AgentEvent) -> Option<u64> {
    event.id.rsplit_once('-')?.1.parse().ok()
}

fn result(request: &EventKind) -> Option<EventKind> {
    let EventKind::ToolRequest { request_id, name, .. } = request else { return None };
    Some(EventKind::ToolResponse {
        request_id: request_id.clone(),
        name: name.clone(),
        content: vec![Part::text(CALL_INTERRUPTED)],
        display: None,
        summary: None,
        error: Some(ToolError::new(INTERRUPTED, CASTOR_ENDED)),
        data: serde_json::Value::Null,
        seen: None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{is_ending, missing_endings};
    use crate::log::{Entry, Fact};

    /// `a-0:start` is an event of stream `a`; also `call X`, `result X`, `end` and `note`.
    fn log(words: &[&str]) -> Vec<Entry> {
        let entry = |word: &&str| {
            let (id, what) = word.split_once(':').unwrap();
            let (kind, call) = what.split_once(' ').unwrap_or((what, ""));
            let mut event = match kind {
                "start" => json!({ "type": "agent_start" }),
                "end" => json!({ "type": "agent_end", "reason": "completed" }),
                "call" => json!({ "type": "tool_request", "requestId": call, "name": "read_file", "args": {},
                    "display": { "title": "", "kind": "read" }, "_meta": { "of": call } }),
                "result" => json!({ "type": "tool_response", "requestId": call, "name": "read_file", "content": [] }),
                _ => json!({ "type": "custom", "kind": "notice", "data": {} }),
            };
            event["id"] = json!(id);
            event["streamId"] = json!(id.split_once('-').unwrap().0);
            event["timestamp"] = json!(1);
            event["threadId"] = json!("t");
            event["agentId"] = json!("t");
            serde_json::from_value(json!({ "at": 1, "fact": "event", "event": event })).unwrap()
        };
        words.iter().map(entry).collect()
    }

    fn check(words: &[&str], expected: &[&str]) {
        let mut log = log(words);
        let endings = missing_endings(&log, 7);
        let mut found = Vec::new();
        for entry in &endings {
            let Fact::Event { event } = &entry.fact else { panic!("{entry:?}") };
            assert!(is_ending(event) && entry.at == 7 && event.thread_id.is_some());
            let event = json!(event);
            let what = match event["requestId"].as_str() {
                Some(call) => format!("result {call} {}", event["_meta"]["of"].as_str().unwrap_or_default()),
                None => event["reason"].as_str().unwrap().to_owned(),
            };
            found.push(format!("{}:{what}", event["id"].as_str().unwrap()));
        }
        assert_eq!(found, expected, "{words:?}");
        log.extend(endings);
        assert_eq!(missing_endings(&log, 8), [], "written once");
    }

    #[test]
    fn each_open_stream_ends_after_its_calls() {
        check(&["s-0:note", "a-0:start", "a-1:call x", "a-2:result x", "a-3:end", "a-4:note"], &[]);
        check(&["s-0:note"], &[]);
        check(&["s-0:note", "a-0:start"], &["a-1:aborted"]);
        check(
            &["a-0:start", "a-1:call x", "a-2:call y", "a-3:call z", "a-4:result y"],
            &["a-5:result x x", "a-6:result z z", "a-7:aborted"],
        );
        // Logs of old went on without them.
        let old = ["a-0:start", "a-1:call x", "b-0:start", "b-1:end", "c-0:start", "c-1:note"];
        check(&old, &["a-2:result x x", "a-3:aborted", "c-2:aborted"]);
    }

    /// Only a damaged log has so many.
    #[test]
    fn each_of_many_starts_without_an_end_gets_one() {
        let log = |has_ends: bool| -> Vec<Entry> {
            let end = if has_ends { "end" } else { "note" };
            let words: Vec<String> =
                (0..20_000).flat_map(|n| [format!("s{n}-0:start"), format!("s{n}-1:{end}")]).collect();
            log(&words.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let (open, ended) = (missing_endings(&log(false), 7), missing_endings(&log(true), 7));
        assert_eq!((open.len(), ended.len()), (20_000, 0));
    }

    #[test]
    fn a_newer_log_is_left_as_it_is() {
        let mut log = log(&["a-0:start"]);
        let newer: Value = json!({ "at": 0, "fact": "version", "version": 99, "castor": "9" });
        log.insert(0, serde_json::from_value(newer).unwrap());
        assert_eq!(missing_endings(&log, 7), []);
    }
}
