//! Event windows of a session: all events or one stream of them, filtered, in pages; and streams that go on.

use castor_base::{
    event::{AgentEvent, EventKind},
    ids::{StreamId, ThreadId},
};
use castor_wire::acp::own::events::{EventFilter, EventList, EventPage, EventWindow};

/// The events of a window.
///
/// # Errors
/// An event that is not there, or one whose stream never started.
pub fn window_of<'e>(window: &EventWindow, all: &'e [AgentEvent]) -> Result<Vec<&'e AgentEvent>, String> {
    let mut res = match (&window.event, &window.stream) {
        (Some(event), _) => {
            let (stream, from) = after(all, event, &window.filter)?;
            stream_from(all, stream, from)
        }
        (None, Some(stream)) => stream_from(all, stream, 0),
        (None, None) => all.iter().collect(),
    };
    res.retain(|it| window.filter.fits(it));
    let n_before = window.recent.map_or(0, |n| res.len().saturating_sub(n));
    res.drain(..n_before);
    Ok(res)
}

/// A page of a window's events.
///
/// # Errors
/// A cursor that is not of this window.
pub fn page_of<'e>(page: &EventPage, mut events: Vec<&'e AgentEvent>) -> Result<EventList<'e>, String> {
    if let Some(cursor) = &page.after {
        let at = events.iter().position(|it| cursor_of(it) == *cursor);
        let at = at.ok_or("cursor: it is not one of this window; send nextCursor with the params that it came for")?;
        events.drain(..=at);
    }
    let limit = page.limit.unwrap_or(usize::MAX);
    let has_more = events.len() > limit;
    events.truncate(limit);
    let next_cursor = events.last().filter(|_| has_more).map(|it| cursor_of(it));
    Ok(EventList { events, next_cursor })
}

/// Ids are unique in their thread.
fn cursor_of(event: &AgentEvent) -> String {
    format!("{}/{}", event.thread_id.as_ref().map_or("", ThreadId::as_str), event.id)
}

/// A stream of which a client wants the rest.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowedStream {
    /// `None`: the next that starts in the thread.
    pub id: Option<StreamId>,
    thread: String,
    has_started: bool,
    pub has_ended: bool,
}

impl FollowedStream {
    /// What there is of the stream that a client asks for, and the rest.
    ///
    /// # Errors
    /// As [`window_of`].
    pub fn begin<'e>(window: &EventWindow, all: &'e [AgentEvent]) -> Result<(Vec<&'e AgentEvent>, Self), String> {
        let thread = window.filter.thread.clone().unwrap_or_default();
        let (id, from) = match (&window.event, &window.stream) {
            (Some(event), _) => {
                let (stream, from) = after(all, event, &window.filter)?;
                (Some(StreamId::from(stream)), from)
            }
            (None, Some(stream)) => (Some(StreamId::from(stream.as_str())), 0),
            (None, None) => (newest_open(all, &thread), 0),
        };
        let past = id.as_ref().map(|it| stream_from(all, it.as_str(), from)).unwrap_or_default();
        let is_its = |it: &&AgentEvent| Some(&it.stream_id) == id.as_ref();
        let has_started = all.iter().filter(is_its).any(|it| matches!(it.kind, EventKind::AgentStart {}));
        let has_ended = has_started && all.iter().filter(is_its).any(is_end);
        Ok((past, Self { id, thread, has_started, has_ended }))
    }

    /// Takes what happens next. Whether it belongs to the stream.
    pub fn take(&mut self, event: &AgentEvent) -> bool {
        let is_start = matches!(event.kind, EventKind::AgentStart {});
        if self.id.is_none() && is_start && event.thread_id.as_ref().map_or("", ThreadId::as_str) == self.thread {
            self.id = Some(event.stream_id.clone());
        }
        if self.id.as_ref() != Some(&event.stream_id) || self.has_ended {
            return false;
        }
        self.has_started |= is_start;
        self.has_ended = self.has_started && is_end(event);
        self.has_started
    }
}

fn is_end(event: &AgentEvent) -> bool {
    matches!(event.kind, EventKind::AgentEnd { .. })
}

/// The last stream of a thread that has started and not ended.
fn newest_open(all: &[AgentEvent], thread: &str) -> Option<StreamId> {
    let mut open: Vec<&StreamId> = Vec::new();
    for it in all.iter().filter(|it| it.thread_id.as_ref().map_or("", ThreadId::as_str) == thread) {
        match it.kind {
            EventKind::AgentStart {} => open.push(&it.stream_id),
            EventKind::AgentEnd { .. } => open.retain(|id| **id != it.stream_id),
            _ => (),
        }
    }
    open.last().map(|it| (*it).clone())
}

fn stream_from<'a>(all: &'a [AgentEvent], stream: &str, from: usize) -> Vec<&'a AgentEvent> {
    let mut res = Vec::new();
    let mut started = false;
    for (idx, it) in all.iter().enumerate().filter(|(_, it)| it.stream_id.as_str() == stream) {
        started |= matches!(it.kind, EventKind::AgentStart {});
        if started && idx >= from {
            res.push(it);
        }
        if is_end(it) {
            break;
        }
    }
    res
}

/// The stream of an event, and where to go on after it.
fn after<'a>(all: &'a [AgentEvent], event: &str, filter: &EventFilter) -> Result<(&'a str, usize), String> {
    let is_it = |it: &AgentEvent| it.id == event && filter.is_of_thread(it);
    let found = all.iter().position(is_it).and_then(|at| Some((at, all.get(at)?)));
    let (at, found) = found.ok_or_else(|| format!("Unknown eventId: {event}; send one of this session"))?;
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
    use super::{FollowedStream, page_of, window_of};
    use castor_base::{
        event::{AgentEvent, EndReason, EventKind},
        ids::{StreamId, ThreadId},
    };
    use castor_wire::acp::own::events::{EventFilter, EventPage, EventType, EventWindow};

    /// Stream `a` is of thread `x`, `b` of its child `x.y`, and `c` of the main thread.
    fn events() -> Vec<AgentEvent> {
        let kinds = [("a", "start"), ("a", "x"), ("b", "start"), ("a", "end"), ("b", "x"), ("a", "late"), ("c", "x")];
        kinds.iter().enumerate().map(|(n, (stream, kind))| event(n, stream, kind)).collect()
    }

    fn event(n: usize, stream: &str, kind: &str) -> AgentEvent {
        let kind = match kind {
            "start" => EventKind::AgentStart {},
            "end" => EventKind::AgentEnd { reason: EndReason::Completed, data: None },
            _ => EventKind::SessionUpdate { title: None, model: None, state: Default::default() },
        };
        let mut event = AgentEvent::of_main(format!("e{n}"), StreamId::from(stream), n as u64, kind);
        event.thread_id = [("a", "x"), ("b", "x.y")].iter().find(|it| it.0 == stream).map(|it| ThreadId::from(it.1));
        event
    }

    fn ids(events: &[&AgentEvent]) -> String {
        events.iter().map(|it| it.id.as_str()).collect::<Vec<_>>().join(" ")
    }

    fn check(window: &EventWindow, expected: &str) {
        let all = events();
        let actual = window_of(window, &all).map_or_else(|it| it, |it| ids(&it));
        assert_eq!(actual, expected);
    }

    fn stream(id: &str) -> EventWindow {
        EventWindow { stream: Some(id.to_owned()), ..EventWindow::default() }
    }

    fn event_id(id: &str) -> EventWindow {
        EventWindow { event: Some(id.to_owned()), ..EventWindow::default() }
    }

    fn thread(id: &str) -> EventFilter {
        EventFilter { thread: Some(id.to_owned()), ..EventFilter::default() }
    }

    #[test]
    fn windows_of_one_stream() {
        check(&EventWindow::default(), "e0 e1 e2 e3 e4 e5 e6");
        check(&stream("a"), "e0 e1 e3");
        check(&stream("b"), "e2 e4");
        check(&event_id("e0"), "e1 e3");
        check(&event_id("e1"), "e3");
        check(&event_id("e3"), "");
        check(&event_id("nope"), "Unknown eventId: nope; send one of this session");
        check(&event_id("e6"), "Cannot resume from eventId e6 before agent_start for stream c; send a later one");
    }

    #[test]
    fn threads_partition_the_events() {
        let of = |id| EventWindow { filter: thread(id), ..EventWindow::default() };
        check(&of(""), "e6");
        check(&of("x"), "e0 e1 e3 e5");
        check(&of("x.y"), "e2 e4");
        check(&of("y"), "");
        check(&EventWindow { filter: thread("x"), ..stream("a") }, "e0 e1 e3");
        check(&EventWindow { filter: thread(""), ..stream("a") }, "");
        check(&EventWindow { filter: thread("x"), ..event_id("e0") }, "e1 e3");
    }

    #[test]
    fn filters_narrow_a_window() {
        let filtered = |filter| EventWindow { filter, ..EventWindow::default() };
        let types = Some([EventType::AgentStart, EventType::AgentEnd].into());
        check(&filtered(EventFilter { types: types.clone(), ..EventFilter::default() }), "e0 e2 e3");
        check(&filtered(EventFilter { types, ..thread("x.y") }), "e2");
        check(&filtered(EventFilter { after_ms: Some(4), ..EventFilter::default() }), "e4 e5 e6");
        check(&EventWindow { recent: Some(2), ..EventWindow::default() }, "e5 e6");
        check(&EventWindow { recent: Some(0), ..EventWindow::default() }, "");
        check(&EventWindow { recent: Some(1), ..stream("a") }, "e3");
    }

    #[test]
    fn pages_cover_a_window_once() {
        let all = events();
        for limit in 1..9 {
            let (mut page, mut found) = (EventPage { after: None, limit: Some(limit) }, Vec::new());
            loop {
                let list = page_of(&page, all.iter().collect()).unwrap();
                assert!(list.events.len() <= limit);
                found.extend(list.events);
                match list.next_cursor {
                    None => break,
                    after => page.after = after,
                }
            }
            assert_eq!(ids(&found), "e0 e1 e2 e3 e4 e5 e6", "{limit}");
        }
        assert!(page_of(&EventPage { after: Some("e1".to_owned()), limit: None }, all.iter().collect()).is_err());
    }

    /// What a client sees that begins to follow after `n` events, and whether the stream is over then.
    fn follow(window: &EventWindow, all: &[AgentEvent], n: usize) -> (String, bool) {
        let (past, future) = all.split_at(n);
        let (mut seen, mut stream) = FollowedStream::begin(window, past).unwrap();
        seen.extend(future.iter().filter(|it| stream.take(it)));
        (ids(&seen), stream.has_ended)
    }

    #[test]
    fn a_followed_stream_is_whole_from_any_moment_on() {
        let all = events();
        for n in 0..=all.len() {
            assert_eq!(follow(&stream("a"), &all, n), ("e0 e1 e3".to_owned(), true), "{n}");
            assert_eq!(follow(&stream("b"), &all, n), ("e2 e4".to_owned(), false), "{n}");
            assert_eq!(follow(&stream("c"), &all, n), (String::new(), false), "{n}");
        }
        for n in 1..=all.len() {
            assert_eq!(follow(&event_id("e0"), &all, n), ("e1 e3".to_owned(), true), "{n}");
        }
        assert!(FollowedStream::begin(&event_id("nope"), &all).is_err());
    }

    #[test]
    fn without_a_name_the_newest_stream_is_followed() {
        let kinds =
            [("c", "x"), ("c", "start"), ("a", "start"), ("c", "x"), ("c", "end"), ("d", "start"), ("d", "end")];
        let all: Vec<AgentEvent> = kinds.iter().enumerate().map(|(n, (stream, kind))| event(n, stream, kind)).collect();
        let newest = EventWindow::default();
        for n in 0..5 {
            assert_eq!(follow(&newest, &all, n), ("e1 e3 e4".to_owned(), true), "{n}");
        }
        assert_eq!(follow(&newest, &all, 5), ("e5 e6".to_owned(), true));
        assert_eq!(follow(&newest, &all, 7), (String::new(), false));
        let of_thread = EventWindow { filter: thread("x"), ..newest };
        assert_eq!(follow(&of_thread, &all, 0), ("e2".to_owned(), false));
    }
}
