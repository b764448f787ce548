//! Event windows of a session: from `agent_start` to `agent_end` of one stream.

use crate::base::event::{AgentEvent, EventKind};

/// All events; or one stream's, from its start; or those of an event's stream that come after it.
///
/// # Errors
/// An event that is not there, or one whose stream never started.
pub fn window<'a>(
    all: &'a [AgentEvent],
    stream: Option<&str>,
    event: Option<&str>,
) -> Result<Vec<&'a AgentEvent>, String> {
    let (stream, from) = match (event, stream) {
        (Some(event), _) => after(all, event)?,
        (None, Some(stream)) => (stream, 0),
        (None, None) => return Ok(all.iter().collect()),
    };
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
    Ok(res)
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
    use super::window;
    use crate::base::{
        event::{AgentEvent, EndReason, EventKind},
        ids::StreamId,
    };

    fn check(stream: Option<&str>, event: Option<&str>, expected: &str) {
        let kinds = [("a", "start"), ("a", "x"), ("b", "start"), ("a", "end"), ("b", "x"), ("a", "late"), ("c", "x")];
        let event_of = |(n, (stream, kind)): (usize, &(&str, &str))| AgentEvent {
            id: format!("e{n}"),
            stream_id: StreamId::from(*stream),
            timestamp: 0,
            kind: match *kind {
                "start" => EventKind::AgentStart {},
                "end" => EventKind::AgentEnd { reason: EndReason::Completed },
                _ => EventKind::SessionUpdate { title: None, model: None },
            },
            meta: serde_json::Map::new(),
        };
        let all: Vec<AgentEvent> = kinds.iter().enumerate().map(event_of).collect();
        let actual = match window(&all, stream, event) {
            Ok(it) => it.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" "),
            Err(it) => it,
        };
        assert_eq!(actual, expected);
    }

    #[test]
    fn windows_of_one_stream() {
        check(None, None, "e0 e1 e2 e3 e4 e5 e6");
        check(Some("a"), None, "e0 e1 e3");
        check(Some("b"), None, "e2 e4");
        check(None, Some("e0"), "e1 e3");
        check(None, Some("e1"), "e3");
        check(None, Some("e3"), "");
        check(None, Some("nope"), "Unknown eventId: nope; send one of this session");
        check(None, Some("e6"), "Cannot resume from eventId e6 before agent_start for stream c; send a later one");
    }
}
