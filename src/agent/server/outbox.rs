//! The outbox: lines, effects of sessions and requests that leave at the end of the loop turn. A shared store holds up those
//! of one session at a time.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use crate::{
    server::{early_effects::EarlyEffects, event::EditorRequest},
    session::live_session::LiveSession,
};
use castor_base::{
    ids::{EffectId, SessionId},
    log::Entry,
    tool::{PolicyClass, ToolCall},
};
use castor_engine::step::{Act, Effect, StepOutput};
use castor_store::sessions::{AppendError, AppendOrder, PendingAppend, SessionStore};
use castor_wire::{
    acp::drafts::auth_status::AuthStatus,
    jsonrpc::{message::RequestId, open_requests::Ticket},
};

/// The acts of a loop turn, in order.
#[derive(Default)]
pub struct Outbox {
    pub items: Vec<OutboxItem>,
    /// Bytes that follow the answer to the request at hand.
    pub after_answer: Vec<u8>,
    /// The status that the client last read; `None`: it never asked.
    pub told_auth_status: Option<AuthStatus>,
    /// Each session waits by itself, as those in a shared store do. Files need no waiting.
    pub has_lanes: bool,
    /// Rounds that wait for the store, by root session; later acts of that session and its sub-agents queue behind.
    pub(super) storing: BTreeMap<SessionId, Round>,
    /// Early effects of sessions that have acts in `items`.
    pub(super) early: BTreeMap<SessionId, EarlyEffects>,
    /// Effects that do not wait for a shared store, with the sessions that they are of.
    pub(super) begun: Vec<(SessionId, EffectId, Effect)>,
}

impl Outbox {
    /// The number of acts that wait behind those that a shared store has not taken yet.
    pub fn n_waiting(&self) -> usize {
        let acts = |it: &OutboxItem| if let OutboxItem::Acts(_, acts) = it { acts.len() } else { 1 };
        if self.storing.is_empty() { 0 } else { self.items.iter().map(acts).sum() }
    }

    /// Tells whether a shared store has not yet taken acts of the session.
    pub fn is_storing(&self, id: &SessionId) -> bool {
        self.storing.contains_key(&id.root())
    }

    /// Waits for the store.
    pub(super) fn hold(&mut self, round: Round) {
        if let Some(it) = round.lane.clone() {
            self.storing.insert(it, round);
        }
    }

    /// The session, with its sub-agents, that an item goes with.
    fn lane(&self, it: &OutboxItem) -> Option<SessionId> {
        it.session().filter(|_| self.has_lanes).map(SessionId::root)
    }

    fn is_held(&self, it: &OutboxItem) -> bool {
        !self.storing.is_empty() && self.lane(it).is_some_and(|it| self.storing.contains_key(&it))
    }

    /// Tells whether an act is ready that waits for nothing.
    pub fn has_ready(&self) -> bool {
        !self.begun.is_empty() || self.items.iter().any(|it| !self.is_held(it))
    }

    pub(super) fn has_ready_facts(&self) -> bool {
        self.items.iter().any(|it| it.has_facts() && !self.is_held(it))
    }

    /// Takes what waits for nothing, by session.
    pub(super) fn take_ready(&mut self) -> Vec<(Option<SessionId>, Vec<OutboxItem>)> {
        let items = std::mem::take(&mut self.items);
        if items.is_empty() || !self.has_lanes {
            return if items.is_empty() { Vec::new() } else { vec![(None, items)] };
        }
        let mut ready: Vec<(Option<SessionId>, Vec<OutboxItem>)> = Vec::new();
        for it in items {
            if self.is_held(&it) {
                self.items.push(it);
                continue;
            }
            let lane = self.lane(&it);
            match ready.iter_mut().find(|(of, _)| *of == lane) {
                Some((_, items)) => items.push(it),
                None => ready.push((lane, vec![it])),
            }
        }
        ready
    }

    /// The number of items that belong to a session.
    pub(super) fn n_of(&self, lane: Option<&SessionId>) -> usize {
        self.items.iter().filter(|it| self.lane(it).as_ref() == lane).count()
    }

    pub(super) fn take_of(&mut self, lane: Option<&SessionId>) -> Vec<OutboxItem> {
        let items = std::mem::take(&mut self.items);
        let (taken, left) = items.into_iter().partition(|it| self.lane(it).as_ref() == lane);
        self.items = left;
        taken
    }

    /// Queues acts like [`Self::queue_acts`]; effects that need not wait for a shared store begin before it.
    pub fn queue_step(&mut self, id: &SessionId, mut out: StepOutput, class_of: impl Fn(&ToolCall) -> PolicyClass) {
        if self.has_lanes && !id.is_child() {
            let known = self.early.get(id).copied();
            let mut early = known.unwrap_or_default();
            let is_open = self.storing.get(id).is_none_or(|it| it.early.may_begin() && it.above.is_none());
            let (begin, wait) = early.split(out.acts, is_open, class_of);
            self.begun.extend(begin.into_iter().map(|(effect_id, effect)| (id.clone(), effect_id, effect)));
            out.acts = wait;
            // It goes with the round of what waits.
            if known.is_some() || !out.acts.is_empty() {
                self.early.insert(id.clone(), early);
            }
        }
        self.queue_acts(id, out);
    }

    pub(super) fn take_early(&mut self, lane: Option<&SessionId>) -> EarlyEffects {
        lane.and_then(|it| self.early.remove(it)).unwrap_or_default()
    }

    /// Drops the session's acts: they are not logged, and their effects do not begin.
    pub fn drop_acts(&mut self, id: &SessionId) {
        self.items.retain(|it| !matches!(it, OutboxItem::Acts(of, _) if of == id));
        self.early.remove(id);
        self.begun.retain(|it| it.0 != *id);
    }

    pub fn queue_acts(&mut self, id: &SessionId, out: StepOutput) {
        match self.items.last_mut() {
            Some(OutboxItem::Acts(last, acts)) if last == id => acts.extend(out.acts),
            _ if out.acts.is_empty() => (),
            _ => self.items.push(OutboxItem::Acts(id.clone(), out.acts)),
        }
    }

    /// `of`: the session that they are about, where their place among what it says counts.
    pub fn queue_lines(&mut self, of: Option<&SessionId>, write: impl FnOnce(&mut Vec<u8>)) {
        match self.items.last_mut() {
            Some(OutboxItem::Lines(last, lines)) if last.as_ref() == of => write(lines),
            _ => {
                let mut lines = Vec::new();
                write(&mut lines);
                self.items.push(OutboxItem::Lines(of.cloned(), lines));
            }
        }
    }
}

/// Something to say: ready lines, acts of a session that are logged first, or a request.
pub enum OutboxItem {
    /// Ready lines, of a session or of none.
    Lines(Option<SessionId>, Vec<u8>),
    /// Lines that begin a sub-agent: they go before all that it says.
    Announcement(SessionId, Vec<u8>),
    /// A question of that session was answered. Only a sub-agent that is still there goes back to work.
    QuestionAnswered(SessionId),
    /// Acts of a session; facts are logged first.
    Acts(SessionId, Vec<Act>),
    /// The answer to a setter, in ready lines; an error, if the log did not take what was set.
    Answer { session: SessionId, request: RequestId, lines: Vec<u8> },
    /// The store has taken the session's earlier acts: a request has waited for that.
    Stored(SessionId, Ticket),
    /// A task's request to the editor, if the task is still wanted by then.
    Editor(EditorRequest),
}

impl OutboxItem {
    fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Lines(session, _) => session.as_ref(),
            Self::Announcement(session, _)
            | Self::QuestionAnswered(session)
            | Self::Acts(session, _)
            | Self::Stored(session, _)
            | Self::Answer { session, .. }
            | Self::Editor(EditorRequest { session, .. }) => Some(session),
        }
    }

    pub fn has_facts(&self) -> bool {
        matches!(self, Self::Acts(_, acts) if acts.iter().any(|it| matches!(it, Act::Log(_))))
    }
}

/// Items of which the facts are logged, in order, or are about to be.
pub(super) struct Round {
    /// The session of the round; `None`: sessions that need no waiting.
    pub lane: Option<SessionId>,
    pub items: VecDeque<OutboxItem>,
    /// Sessions whose log could not be written, and why.
    pub broken: BTreeMap<SessionId, AppendError>,
    /// The append that a shared store has not answered yet.
    pending: Option<PendingAppend>,
    /// The effects that may overtake the append.
    pub early: EarlyEffects,
    /// Items of later turns, which the outbox has when this round is performed.
    pub n_later: usize,
    /// The round that was under way when sub-agents were cancelled, and waits for their ends.
    pub above: Option<Box<SuspendedRound>>,
}

/// A round, in the middle of the acts of a session.
pub(super) struct SuspendedRound {
    pub round: Round,
    pub id: SessionId,
    pub rest: Vec<Act>,
}

impl Round {
    /// Logs them: one write for each touched log.
    pub fn begin(
        lane: Option<SessionId>,
        items: Vec<OutboxItem>,
        sessions: &mut BTreeMap<SessionId, LiveSession>,
        store: &SessionStore,
    ) -> Self {
        let (broken, orders) = write_logs(sessions, &items);
        let (pending, early) = (store.start_appends(orders), EarlyEffects::default());
        Self { lane, items: items.into(), broken, pending, early, n_later: 0, above: None }
    }

    /// Tells whether the store's answer about the facts has come by then.
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
