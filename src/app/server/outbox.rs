//! The outbox: lines, effects of sessions and requests that leave at the end of the loop turn.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    app::{server::event::EditorRequest, session::live_session::LiveSession},
    base::{ids::SessionId, log::Entry},
    engine::step::{Act, StepOutput},
    wire::{acp::auth_status::AuthStatus, jsonrpc::message::RequestId},
    world::store::{AppendError, AppendOrder, PendingAppend, SessionStore},
};

/// In order.
#[derive(Default)]
pub struct Outbox {
    pub items: Vec<OutboxItem>,
    /// What follows the answer to the request at hand.
    pub after_answer: Vec<u8>,
    /// As the client was told last; `None`: it never asked.
    pub told_auth_status: Option<AuthStatus>,
    /// What left it, and a shared store has not taken yet.
    pub(super) storing: Option<Round>,
}

impl Outbox {
    /// How many acts wait behind those that a shared store has not taken yet.
    pub fn n_waiting(&self) -> usize {
        let acts = |it: &OutboxItem| if let OutboxItem::Acts(_, acts) = it { acts.len() } else { 1 };
        if self.storing.is_some() { self.items.iter().map(acts).sum() } else { 0 }
    }

    pub fn queue_acts(&mut self, id: &SessionId, out: StepOutput) {
        match self.items.last_mut() {
            Some(OutboxItem::Acts(last, acts)) if last == id => acts.extend(out.acts),
            _ if out.acts.is_empty() => (),
            _ => self.items.push(OutboxItem::Acts(id.clone(), out.acts)),
        }
    }

    pub fn queue_lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.items.last_mut() {
            Some(OutboxItem::Lines(lines)) => write(lines),
            _ => {
                let mut lines = Vec::new();
                write(&mut lines);
                self.items.push(OutboxItem::Lines(lines));
            }
        }
    }
}

/// Something to say: ready lines, acts of a session that are logged first, or a request.
pub enum OutboxItem {
    /// Ready lines.
    Lines(Vec<u8>),
    /// Lines that begin a sub-agent: they go before all that it says.
    Announcement(SessionId, Vec<u8>),
    /// A question of that session was answered. Only a sub-agent that is still there goes back to work.
    QuestionAnswered(SessionId),
    /// Acts of a session; facts are logged first.
    Acts(SessionId, Vec<Act>),
    /// The answer to a setter, in ready lines; an error, if the log did not take what was set.
    Answer { session: SessionId, request: RequestId, lines: Vec<u8> },
    /// A task's request to the editor, if the task is still wanted by then.
    Editor(EditorRequest),
}

impl OutboxItem {
    pub fn has_facts(&self) -> bool {
        matches!(self, Self::Acts(_, acts) if acts.iter().any(|it| matches!(it, Act::Log(_))))
    }
}

/// Items of which the facts are logged, in order, or are about to be.
pub(super) struct Round {
    pub items: VecDeque<OutboxItem>,
    /// Sessions whose log could not be written, and why.
    pub broken: BTreeMap<SessionId, AppendError>,
    /// What a shared store has not answered yet.
    pending: Option<PendingAppend>,
    /// Items of later turns, which the outbox has when this round is performed.
    pub n_later: usize,
}

impl Round {
    /// Logs them: one write for each touched log.
    pub fn begin(
        items: Vec<OutboxItem>,
        sessions: &mut BTreeMap<SessionId, LiveSession>,
        store: &SessionStore,
    ) -> Self {
        let (broken, orders) = write_logs(sessions, &items);
        Self { items: items.into(), broken, pending: store.start_appends(orders), n_later: 0 }
    }

    /// Whether it is known by then what became of the facts.
    pub fn settle(&mut self, sessions: &mut BTreeMap<SessionId, LiveSession>, limit: Duration) -> bool {
        let Some(mut pending) = self.pending.take() else { return true };
        let Some(failed) = pending.within(limit) else {
            self.pending = Some(pending);
            return false;
        };
        for (id, why) in failed {
            if let Some(live) = sessions.get_mut(&id) {
                live.log.set_lost();
            }
            self.broken.insert(id, why);
        }
        true
    }
}

/// Returns the sessions whose log could not be written, and why; and what a shared store has to take.
fn write_logs(
    sessions: &mut BTreeMap<SessionId, LiveSession>,
    items: &[OutboxItem],
) -> (BTreeMap<SessionId, AppendError>, Vec<AppendOrder>) {
    let mut facts: BTreeMap<&SessionId, Vec<&Entry>> = BTreeMap::new();
    for it in items {
        let OutboxItem::Acts(id, acts) = it else { continue };
        let entries = acts.iter().filter_map(|it| match it {
            Act::Log(entry) => Some(entry),
            Act::Do(..) | Act::BeginStream { .. } => None,
        });
        facts.entry(id).or_default().extend(entries);
    }
    let (mut broken, mut orders) = (BTreeMap::new(), Vec::new());
    for (id, entries) in facts {
        let Some(live) = sessions.get_mut(id) else { continue };
        if let Err(why) = live.log.begin_append(entries, &mut orders) {
            broken.insert(id.clone(), why);
        }
    }
    (broken, orders)
}
