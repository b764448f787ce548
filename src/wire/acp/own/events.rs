//! The extension methods about AgentEvents: `_castor/session/events`, `subscribe`, `unsubscribe` and `stream`.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::jsonrpc::message::RequestId;
use castor_base::{
    event::{AgentEvent, EventKind},
    ids::{SessionId, StreamId, ThreadId},
    iso_time,
};

/// The notification that brings an event.
pub const EVENT: &str = "_castor/session/event";
/// The notification that says which stream a prompt began.
pub const STREAM_STARTED: &str = "_castor/session/stream_started";

/// Most events of one page.
const MAX_LIMIT: u32 = 10_000;

/// Which events of a session are wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventFilter {
    /// Of this thread only; empty: of the main thread.
    pub thread: Option<String>,
    /// Of these types only.
    pub types: Option<BTreeSet<EventType>>,
    /// From this time on, in Unix milliseconds.
    pub after_ms: Option<u64>,
}

impl EventFilter {
    pub fn fits(&self, event: &AgentEvent) -> bool {
        self.is_of_thread(event)
            && self.types.as_ref().is_none_or(|it| EventType::of(&event.kind).is_some_and(|of| it.contains(&of)))
            && self.after_ms.is_none_or(|it| event.timestamp >= it)
    }

    pub fn is_of_thread(&self, event: &AgentEvent) -> bool {
        let thread = event.thread_id.as_ref().map_or("", ThreadId::as_str);
        self.thread.as_ref().is_none_or(|it| it == thread)
    }
}

/// The part of the past that is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventWindow {
    /// One stream from its start.
    pub stream: Option<String>,
    /// The rest of a stream after this event.
    pub event: Option<String>,
    pub filter: EventFilter,
    /// Only so many, the last ones.
    pub recent: Option<usize>,
}

/// A page of a window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventPage {
    /// The last event of the page before: thread and id.
    pub after: Option<String>,
    /// `None`: all.
    pub limit: Option<usize>,
}

/// The order to be told of what happens in a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Subscription {
    pub session: SessionId,
    pub filter: EventFilter,
    /// What of the past comes first; `None`: nothing.
    pub past: Option<EventWindow>,
}

macro_rules! event_types {
    ($($name:ident: $pattern:pat,)*) => {
        /// The type of an event.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum EventType { $($name,)* }

        impl EventType {
            /// `None`: a newer castor wrote it.
            pub fn of(kind: &EventKind) -> Option<Self> {
                match kind { $($pattern => Some(Self::$name),)* EventKind::Unknown => None }
            }
        }
    };
}

event_types! {
    Initialize: EventKind::Initialize { .. },
    SessionUpdate: EventKind::SessionUpdate { .. },
    Message: EventKind::Message { .. },
    AgentStart: EventKind::AgentStart {},
    AgentEnd: EventKind::AgentEnd { .. },
    ToolRequest: EventKind::ToolRequest { .. },
    ToolUpdate: EventKind::ToolUpdate { .. },
    ToolResponse: EventKind::ToolResponse { .. },
    Usage: EventKind::Usage { .. },
    Error: EventKind::Error { .. },
    Custom: EventKind::Custom { .. },
}

/// Reads events of the past, also of a session that another castor has open.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct EventsMethod {
    params: Option<EventsParams>,
    result: Option<EventList<'static>>,
}

/// Follows the events of a session, until you end the subscription or close the session.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct SubscribeMethod {
    params: Option<SubscribeParams>,
    result: Option<Subscribed>,
}

/// Ends a subscription.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct UnsubscribeMethod {
    params: Option<UnsubscribeParams>,
    result: Option<EmptyResult>,
}

/// Follows one stream of events. castor answers after its last event, which is `agent_end`.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct StreamMethod {
    params: Option<StreamParams>,
    result: Option<StreamEnd>,
}

/// An object without members.
#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::acp) struct EmptyResult {}

/// A time in ISO 8601.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(transparent)]
struct IsoMs(
    #[serde(deserialize_with = "iso_time::deserialize")]
    #[schemars(with = "String", extend("format" = "date-time"))]
    u64,
);

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfEvents")]
struct EventsParams {
    session_id: SessionId,
    /// One stream.
    stream_id: Option<String>,
    /// The rest of the stream after this event.
    event_id: Option<String>,
    /// Of this thread only; empty: of the main thread.
    thread_id: Option<String>,
    /// Of these types only.
    types: Option<BTreeSet<EventType>>,
    /// From this time on.
    after_timestamp: Option<IsoMs>,
    /// Only so many, the last ones.
    num_recent_events: Option<u32>,
    /// Most of one answer; without it all.
    #[schemars(range(min = 1, max = MAX_LIMIT))]
    limit: Option<u32>,
    /// `nextCursor` of the last answer.
    cursor: Option<String>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventList<'a> {
    /// Each fits the schema `events`.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub events: Vec<&'a AgentEvent>,
    /// Present: more follow, with this as `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfSubscribe")]
struct SubscribeParams {
    session_id: SessionId,
    /// Of this thread only; empty: of the main thread.
    thread_id: Option<String>,
    /// Of these types only.
    types: Option<BTreeSet<EventType>>,
    /// First what happened before: all of it.
    #[serde(default)]
    replay: bool,
    /// First what happened from this time on.
    after_timestamp: Option<IsoMs>,
    /// First what happened before: so many events, the last ones.
    num_recent_events: Option<u32>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Subscribed {
    /// In each of its events.
    pub subscription_id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfUnsubscribe")]
struct UnsubscribeParams {
    session_id: SessionId,
    subscription_id: String,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfStream")]
struct StreamParams {
    session_id: SessionId,
    /// From its start; one that did not start yet is waited for.
    stream_id: Option<String>,
    /// The rest of its stream after this event.
    event_id: Option<String>,
    /// Whose newest stream is meant, without the two; absent or empty: the main thread's.
    thread_id: Option<String>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// The answer to `_castor/session/stream`, after its last event.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StreamEnd {
    /// Null: none began.
    pub stream_id: Option<StreamId>,
    pub outcome: StreamOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum StreamOutcome {
    /// All events of the stream were sent, up to `agent_end`.
    Ended,
    /// The client cancelled the request.
    Cancelled,
    /// The session was closed.
    Closed,
}

/// The params of `_castor/session/event`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventNotice<'a> {
    pub session_id: &'a SessionId,
    /// Of a subscription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscription_id: Option<&'a str>,
    /// Of `_castor/session/stream`: the id of that request.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub request_id: Option<&'a RequestId>,
    /// It fits the schema `events`.
    #[schemars(with = "Map<String, Value>")]
    pub event: &'a AgentEvent,
}

/// The params of `_castor/session/stream_started`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StreamStarted<'a> {
    pub session_id: &'a SessionId,
    /// The id of the prompt's request.
    #[schemars(with = "Value")]
    pub request_id: &'a RequestId,
    pub stream_id: &'a StreamId,
}

/// Reads `_castor/session/events`.
///
/// # Errors
/// See [`crate::acp::params`]; also for a limit that is none.
pub fn read_events(params: Option<&RawValue>) -> Result<(SessionId, EventWindow, EventPage), String> {
    let it: EventsParams = crate::acp::params(params)?;
    if it.limit.is_some_and(|it| !(1..=MAX_LIMIT).contains(&it)) {
        return Err(format!("limit: send a number from 1 to {MAX_LIMIT}"));
    }
    let filter = EventFilter { thread: it.thread_id, types: it.types, after_ms: it.after_timestamp.map(|it| it.0) };
    let recent = it.num_recent_events.map(|it| it as usize);
    let window = EventWindow { stream: it.stream_id, event: it.event_id, filter, recent };
    let page = EventPage { after: it.cursor, limit: it.limit.map(|it| it as usize) };
    Ok((it.session_id, window, page))
}

/// Reads `_castor/session/subscribe`.
///
/// # Errors
/// See [`crate::acp::params`]; also for two ways to say what of the past comes first.
pub fn read_subscribe(params: Option<&RawValue>) -> Result<Subscription, String> {
    let it: SubscribeParams = crate::acp::params(params)?;
    let members = [
        ("replay", it.replay),
        ("afterTimestamp", it.after_timestamp.is_some()),
        ("numRecentEvents", it.num_recent_events.is_some()),
    ];
    let mut given = members.iter().filter(|it| it.1).map(|it| it.0);
    if let (Some(one), Some(other)) = (given.next(), given.next()) {
        return Err(format!("{one} and {other} both say what of the past comes first; send one of them"));
    }
    let filter = EventFilter { thread: it.thread_id, types: it.types, after_ms: None };
    let wants_past = it.replay || it.after_timestamp.is_some() || it.num_recent_events.is_some();
    let past = wants_past.then(|| EventWindow {
        filter: EventFilter { after_ms: it.after_timestamp.map(|it| it.0), ..filter.clone() },
        recent: it.num_recent_events.map(|it| it as usize),
        ..EventWindow::default()
    });
    Ok(Subscription { session: it.session_id, filter, past })
}

/// Reads `_castor/session/unsubscribe`: the session, and the subscription.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_unsubscribe(params: Option<&RawValue>) -> Result<(SessionId, String), String> {
    let it: UnsubscribeParams = crate::acp::params(params)?;
    Ok((it.session_id, it.subscription_id))
}

/// Reads `_castor/session/stream`.
///
/// # Errors
/// See [`crate::acp::params`]; also for more than one of `streamId` and `eventId`.
pub fn read_stream(params: Option<&RawValue>) -> Result<(SessionId, EventWindow), String> {
    let it: StreamParams = crate::acp::params(params)?;
    if it.stream_id.is_some() && it.event_id.is_some() {
        return Err("streamId and eventId both say where to begin; send one of them".to_owned());
    }
    let filter = EventFilter { thread: it.thread_id, ..EventFilter::default() };
    Ok((it.session_id, EventWindow { stream: it.stream_id, event: it.event_id, filter, recent: None }))
}
