//! Requests that a shared store prepares beside the loop, and what comes after them for the same sessions.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::RawValue;

use super::metadata_order::MetadataOrder;
use crate::{
    errors::store_error,
    session::{
        events::event_log::children_of,
        fork_log::{ForkOrder, copy_log},
    },
};
use castor_base::{ids::SessionId, log::Entry};
use castor_store::sessions::{SessionLog, SessionStore, StoreError};
use castor_wire::jsonrpc::open_requests::Ticket;

/// A request of the client that is taken up later.
#[derive(Clone)]
pub struct WaitingRequest {
    pub ticket: Ticket,
    pub method: &'static str,
    pub params: Option<Box<RawValue>>,
}

/// A session's log, with the ends of what a crash cut off.
pub type OpenedLog = (Vec<Entry>, SessionLog);

/// Messages in the order of their arrival. Of each session the first one is at work.
#[derive(Default)]
pub struct StoreRequests {
    queue: Vec<StoreRequest>,
    /// What the store said, for the request that is carried out now.
    pub found: Option<Box<StoreAnswer>>,
}

/// A message, on its way through the store.
pub struct StoreRequest {
    /// With its sub-agents it is one.
    pub session: SessionId,
    pub message: QueuedMessage,
    pub progress: StoreProgress,
}

/// A message that is taken up later.
pub enum QueuedMessage {
    Request(WaitingRequest),
    Notification { method: &'static str, params: Option<Box<RawValue>> },
}

pub enum StoreProgress {
    /// For those before it.
    Waits,
    /// Until what its session said so far is stored.
    Settles,
    /// It is.
    Settled,
    /// The store is asked.
    Asks,
    Ready(Option<Box<StoreAnswer>>),
}

/// A question to a shared store; whoever asks waits.
pub enum StoreQuestion {
    Open(SessionId),
    Read(SessionId),
    Delete(SessionId),
    Fork(Box<ForkOrder>),
    Metadata(SessionId, MetadataOrder),
}

/// What became of it.
pub enum StoreAnswer {
    Opened {
        log: Box<Result<OpenedLog, StoreError>>,
        children: Vec<Vec<Entry>>,
    },
    /// What `Opened` leaves, once the log is taken.
    Children(Vec<Vec<Entry>>),
    Read(Result<Vec<Entry>, StoreError>),
    Deleted(Result<(), StoreError>),
    Forked(Box<Result<(SessionId, OpenedLog), ErrorObjectOwned>>),
    Metadata(Result<(), StoreError>),
}

/// A question for a thread.
pub struct StoreJob {
    pub store: SessionStore,
    pub ticket: Ticket,
    pub question: StoreQuestion,
}

impl StoreJob {
    /// Waits for the store. `None`: it broke, and the request finds out by itself how.
    pub fn ask(self) -> Option<StoreAnswer> {
        let Self { store, question, .. } = self;
        let asked = catch_unwind(AssertUnwindSafe(|| match question {
            StoreQuestion::Open(id) => {
                let log = store.open(&id);
                let children = if log.is_ok() { children_of(&store, &id) } else { Vec::new() };
                StoreAnswer::Opened { log: Box::new(log), children }
            }
            StoreQuestion::Read(id) => StoreAnswer::Read(store.read(&id)),
            StoreQuestion::Delete(id) => StoreAnswer::Deleted(store.delete(&id)),
            StoreQuestion::Fork(order) => StoreAnswer::Forked(Box::new(fork(&store, *order))),
            StoreQuestion::Metadata(id, order) => StoreAnswer::Metadata(order.carry_out(&store, &id)),
        }));
        asked.ok()
    }
}

fn fork(store: &SessionStore, order: ForkOrder) -> Result<(SessionId, OpenedLog), ErrorObjectOwned> {
    copy_log(store, &order)?;
    let id = order.copy;
    let log = store.open(&id).map_err(|it| store_error(&id, &it))?;
    Ok((id, log))
}

impl StoreRequests {
    /// Tells whether something of the session is on its way.
    pub fn has(&self, id: &SessionId) -> bool {
        !self.queue.is_empty() && self.queue.iter().any(|it| it.session.root() == id.root())
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn push(&mut self, session: SessionId, message: QueuedMessage) {
        self.queue.push(StoreRequest { session, message, progress: StoreProgress::Waits });
    }

    /// The first one of a session that is not at work with the store.
    pub fn next_due(&mut self) -> Option<&mut StoreRequest> {
        let is_first = |at: usize, it: &StoreRequest| {
            !self.queue.iter().take(at).any(|past| past.session.root() == it.session.root())
        };
        let is_idle = |it: &StoreRequest| !matches!(it.progress, StoreProgress::Settles | StoreProgress::Asks);
        let at = self.queue.iter().enumerate().position(|(at, it)| is_idle(it) && is_first(at, it))?;
        self.queue.get_mut(at)
    }

    /// Takes one of which [`Self::next_due`] said that it is ready.
    pub fn take_ready(&mut self) -> Option<(QueuedMessage, Option<Box<StoreAnswer>>)> {
        let at = self.queue.iter().position(|it| matches!(it.progress, StoreProgress::Ready(_)))?;
        let StoreRequest { message, progress, .. } = self.queue.remove(at);
        if let StoreProgress::Ready(answer) = progress { Some((message, answer)) } else { None }
    }

    /// What the session said before the request is stored.
    pub fn note_stored(&mut self, ticket: Ticket) {
        self.advance(ticket, StoreProgress::Settled);
    }

    pub fn note_answer(&mut self, ticket: Ticket, answer: Option<Box<StoreAnswer>>) {
        self.advance(ticket, StoreProgress::Ready(answer));
    }

    pub fn advance(&mut self, ticket: Ticket, progress: StoreProgress) {
        if let Some(it) = self.queue.iter_mut().find(|it| it.message.ticket() == Some(ticket)) {
            it.progress = progress;
        }
    }

    /// Forgets a request that has not begun; whether there was one.
    pub fn drop_waiting(&mut self, ticket: Ticket) -> bool {
        let n_before = self.queue.len();
        self.queue.retain(|it| it.message.ticket() != Some(ticket) || !matches!(it.progress, StoreProgress::Waits));
        self.queue.len() < n_before
    }

    /// `None`: the store was not asked to open one.
    pub fn take_opened(&mut self) -> Option<Result<OpenedLog, StoreError>> {
        let (log, children) = self.take_found(|it| match it {
            StoreAnswer::Opened { log, children } => Ok((log, children)),
            other => Err(other),
        })?;
        self.found = Some(Box::new(StoreAnswer::Children(children)));
        Some(*log)
    }

    pub fn take_children(&mut self) -> Option<Vec<Vec<Entry>>> {
        self.take_found(|it| if let StoreAnswer::Children(it) = it { Ok(it) } else { Err(it) })
    }

    pub fn take_read(&mut self) -> Option<Result<Vec<Entry>, StoreError>> {
        self.take_found(|it| if let StoreAnswer::Read(it) = it { Ok(it) } else { Err(it) })
    }

    pub fn take_deleted(&mut self) -> Option<Result<(), StoreError>> {
        self.take_found(|it| if let StoreAnswer::Deleted(it) = it { Ok(it) } else { Err(it) })
    }

    pub fn take_metadata(&mut self) -> Option<Result<(), StoreError>> {
        self.take_found(|it| if let StoreAnswer::Metadata(it) = it { Ok(it) } else { Err(it) })
    }

    /// The fork's log is then there for [`Self::take_opened`].
    pub fn take_forked(&mut self) -> Option<Result<SessionId, ErrorObjectOwned>> {
        let forked = self.take_found(|it| if let StoreAnswer::Forked(it) = it { Ok(it) } else { Err(it) })?;
        Some((*forked).map(|(id, log)| {
            self.found = Some(Box::new(StoreAnswer::Opened { log: Box::new(Ok(log)), children: Vec::new() }));
            id
        }))
    }

    /// What is not it stays.
    fn take_found<T>(&mut self, pick: impl FnOnce(StoreAnswer) -> Result<T, StoreAnswer>) -> Option<T> {
        match pick(*self.found.take()?) {
            Ok(it) => Some(it),
            Err(other) => {
                self.found = Some(Box::new(other));
                None
            }
        }
    }
}

impl QueuedMessage {
    pub fn ticket(&self) -> Option<Ticket> {
        if let Self::Request(it) = self { Some(it.ticket) } else { None }
    }
}
