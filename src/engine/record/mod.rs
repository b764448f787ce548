//! The record of a session: the fold over its facts. Live steps and replay go through the same `apply`.

mod history;
mod writer;

pub use writer::{Serial, Step};

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use serde_json::Value;

use crate::base::{
    event::{AgentEvent, EventKind, Speaker},
    history::Turn,
    ids::{CallId, SessionId, StreamId},
    log::{self, Entry, Fact, Grant, Mode},
    model::Usage,
    path::AbsPath,
};

/// All that a session is, apart from what is under way.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub session: SessionId,
    pub cwd: AbsPath,
    /// Folders of the session, `cwd` first.
    pub roots: Vec<AbsPath>,
    pub mode: Mode,
    /// As configured; a request may go to another.
    pub model: String,
    pub title: Option<String>,
    pub grants: Vec<Grant>,
    /// The plan as last written, for the client.
    pub plan: Option<Value>,
    /// Of the last model call, with the context window's size.
    pub usage: Option<(Usage, u64)>,
    pub n_prompts: u64,
    /// When the last fact was logged, in milliseconds since the Unix epoch.
    pub updated_ms: u64,
    turns: Vec<Arc<Turn>>,
    call_ids: BTreeSet<CallId>,
    /// Calls without a result, in order.
    open_calls: VecDeque<(CallId, String)>,
    /// Where the current answer of the model began in `turns`.
    answer: Option<usize>,
    stream: StreamId,
    /// Events of `stream` so far.
    n_events: u64,
}

/// What a session starts with.
#[derive(Clone, Debug)]
pub struct Origin {
    pub session: SessionId,
    pub cwd: AbsPath,
    /// `cwd` first.
    pub roots: Vec<AbsPath>,
    pub mode: Mode,
    pub model: String,
}

impl Origin {
    /// The first fact of the session's log.
    pub fn fact(self) -> Fact {
        let Self { session, cwd, roots, mode, model } = self;
        let castor = env!("CARGO_PKG_VERSION").to_owned();
        Fact::Created { version: log::VERSION, castor, session, cwd, roots, mode, model }
    }
}

impl Record {
    pub fn new(origin: Origin, at_ms: u64) -> Self {
        let Origin { session, cwd, roots, mode, model } = origin;
        Self {
            session,
            cwd,
            roots,
            mode,
            model,
            title: None,
            grants: Vec::new(),
            plan: None,
            usage: None,
            n_prompts: 0,
            updated_ms: at_ms,
            turns: Vec::new(),
            call_ids: BTreeSet::new(),
            open_calls: VecDeque::new(),
            answer: None,
            stream: StreamId::from("s"),
            n_events: 0,
        }
    }

    /// The record that a log's first entry begins; `None` if it is another fact.
    pub fn begin(first: &Entry) -> Option<Self> {
        let Fact::Created { session, cwd, roots, mode, model, .. } = first.fact.clone() else { return None };
        Some(Self::new(Origin { session, cwd, roots, mode, model }, first.at))
    }

    /// The session that a log describes; `None` if it does not begin with `Created`.
    pub fn replay(entries: &[Entry]) -> Option<Self> {
        let (first, rest) = entries.split_first()?;
        let mut res = Self::begin(first)?;
        for entry in rest {
            res.apply(entry);
        }
        Some(res)
    }

    /// What the model may see of the past, oldest first.
    pub fn turns(&self) -> &[Arc<Turn>] {
        &self.turns
    }

    /// Whether a call of this id was made before: ids from providers may repeat.
    pub fn knows_call(&self, id: &CallId) -> bool {
        self.call_ids.contains(id)
    }

    /// Takes one fact in.
    pub fn apply(&mut self, entry: &Entry) {
        self.updated_ms = entry.at;
        match &entry.fact {
            Fact::Event { event } => self.apply_event(event),
            Fact::Attempt { .. } => self.begin_answer(),
            Fact::AttemptFailed { abandoned: true, .. } => self.abandon_answer(),
            Fact::Granted { grant } => self.grants.push(grant.clone()),
            Fact::Mode { mode } => self.mode = *mode,
            Fact::Model { model } => self.model.clone_from(model),
            // Decisions and answers explain; what follows from them is a fact of its own.
            Fact::Created { .. }
            | Fact::AttemptFailed { .. }
            | Fact::Decision { .. }
            | Fact::Answered { .. }
            | Fact::Unknown => (),
        }
    }

    fn apply_event(&mut self, event: &AgentEvent) {
        if event.stream_id != self.stream {
            self.stream = event.stream_id.clone();
            self.n_events = 0;
        }
        self.n_events += 1;
        match &event.kind {
            EventKind::AgentStart {} => self.close_open_calls(),
            EventKind::Message { role: Speaker::User, content, .. } => {
                self.n_prompts += 1;
                self.push_user(content);
            }
            EventKind::Message { role: Speaker::Agent, content, .. } => self.push_answer(content),
            EventKind::ToolRequest { request_id, name, args, signature, .. } => {
                self.push_call(request_id, name, args, signature.as_deref());
            }
            EventKind::ToolResponse { request_id, name, content, error, .. } => {
                self.push_result(request_id, name, content, error.is_some());
            }
            EventKind::SessionUpdate { title: Some(title), .. } => self.title = Some(title.clone()),
            EventKind::Usage { usage, size, .. } => self.usage = Some((*usage, *size)),
            EventKind::Custom { kind, data } if kind == PLAN => self.plan = Some(data.clone()),
            _ => (),
        }
    }
}

/// The kind of the custom event that carries the plan.
pub const PLAN: &str = "plan";
