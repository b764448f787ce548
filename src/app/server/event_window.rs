//! Event windows of a session: from `agent_start` to `agent_end` of one stream.

use crate::base::{
    event::{AgentEvent, EventKind},
    ids::ThreadId,
};

/// The events that a client asks for: all, one stream from its start, or the rest of a stream after an event.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventWindow<'a> {
    pub stream: Option<&'a str>,
    pub event: Option<&'a str>,
    /// Of this thread only; empty: of the main thread.
    pub thread: Option<&'a str>,
}

impl EventWindow<'_> {
    /// The events of the window.
    ///
    /// # Errors
    /// An event that is not there, or one whose stream never started.
    pub fn of<'e>(self, all: &'e [AgentEvent]) -> Result<Vec<&'e AgentEvent>, String> {
        let mut res = match (self.event, self.stream) {
            (Some(event), _) => {
                let (stream, from) = after(all, event)?;
                stream_from(all, stream, from)
            }
            (None, Some(stream)) => stream_from(all, stream, 0),
            (None, None) => all.iter().collect(),
        };
        let thread_of = |it: &'e AgentEvent| it.thread_id.as_ref().map_or("", ThreadId::as_str);
        res.retain(|it| self.thread.is_none_or(|thread| thread_of(it) == thread));
        Ok(res)
    }
}

fn stream_from<'a>(all: &'a [AgentEvent], stream: &str, from: usize) -> Vec<&'a AgentEvent> {
    let mut res = Vec::new();
    let mut started = false;
    for (idx, it) in all.iter().enumerate().filter(|(_, it)| it.stream_id.as_str() == stream) {
        started |= matches!(it.kind, EventKind::AgentStart {});
        if started && idx >= from {
            res.push(it);
        }
        if matches!(it.kind, EventKind::AgentEnd { .. }) {
            break;
        }
    }
    res
}

/// The stream of an event, and where to go on after it.
fn after<'a>(all: &'a [AgentEvent], event: &str) -> Result<(&'a str, usize), String> {
    let (at, found) = all
        .iter()
        .enumerate()
        .find(|(_, it)| it.id == event)
        .ok_or_else(|| format!("Unknown eventId: {event}; send one of this session"))?;
    let stream = found.stream_id.as_str();
    let starts = |it: &AgentEvent| it.stream_id.as_str() == stream && matches!(it.kind, EventKind::AgentStart {});
    match all.iter().any(starts) {
        true => Ok((stream, at + 1)),
        false => {
            Err(format!("Cannot resume from eventId {event} before agent_start for stream {stream}; send a later one"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventWindow;
    use crate::base::{
        event::{AgentEvent, EndReason, EventKind},
        ids::{StreamId, ThreadId},
    };

    /// Stream `a` is of thread `x`, `b` of its child `x.y`, and `c` of the main thread.
    fn check(window: EventWindow<'_>, expected: &str) {
        let kinds = [("a", "start"), ("a", "x"), ("b", "start"), ("a", "end"), ("b", "x"), ("a", "late"), ("c", "x")];
        let event_of = |(n, (stream, kind)): (usize, &(&str, &str))| {
            let kind = match *kind {
                "start" => EventKind::AgentStart {},
                "end" => EventKind::AgentEnd { reason: EndReason::Completed, data: None },
                _ => EventKind::SessionUpdate { title: None, model: None, state: Default::default() },
            };
            let mut event = AgentEvent::of_main(format!("e{n}"), StreamId::from(*stream), 0, kind);
            event.thread_id =
                [("a", "x"), ("b", "x.y")].iter().find(|it| it.0 == *stream).map(|it| ThreadId::from(it.1));
            event
        };
        let all: Vec<AgentEvent> = kinds.iter().enumerate().map(event_of).collect();
        let actual = match window.of(&all) {
            Ok(it) => it.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" "),
            Err(it) => it,
        };
        assert_eq!(actual, expected);
    }

    #[test]
    fn windows_of_one_stream() {
        let stream = |it| EventWindow { stream: Some(it), ..EventWindow::default() };
        let event = |it| EventWindow { event: Some(it), ..EventWindow::default() };
        check(EventWindow::default(), "e0 e1 e2 e3 e4 e5 e6");
        check(stream("a"), "e0 e1 e3");
        check(stream("b"), "e2 e4");
        check(event("e0"), "e1 e3");
        check(event("e1"), "e3");
        check(event("e3"), "");
        check(event("nope"), "Unknown eventId: nope; send one of this session");
        check(event("e6"), "Cannot resume from eventId e6 before agent_start for stream c; send a later one");
    }

    #[test]
    fn threads_partition_the_events() {
        let thread = |it| EventWindow { thread: Some(it), ..EventWindow::default() };
        check(thread(""), "e6");
        check(thread("x"), "e0 e1 e3 e5");
        check(thread("x.y"), "e2 e4");
        check(thread("y"), "");
        check(EventWindow { stream: Some("a"), ..thread("x") }, "e0 e1 e3");
        check(EventWindow { stream: Some("a"), ..thread("") }, "");
        check(EventWindow { event: Some("e0"), ..thread("x") }, "e1 e3");
    }
}
