//! The loop without its waiting: events in, lines for the client and jobs out. It has no thread, pipe or clock, so that
//! the simulator can turn it.

use std::time::Duration;

use super::{dispatch, flush, mcp, outbox::OutboxItem, pending_requests, server_orders, state::State, sweep};
use crate::server::{
    air::{air_reports, index_watch},
    handlers::{listing, mcp_completion},
    live::{session_state, watching},
};
use crate::session::terminals::TerminalEnd;
use castor_base::ids::SessionId;
use castor_engine::{record::Record, step::Input};
use castor_hands::{process::Groups, secrets::Env};
use castor_store::sessions::SessionStore;
use castor_wire::jsonrpc::frame::Framer;

/// The machine's queues, for the loop that turns it.
pub use crate::{
    server::{
        dispatch::{METHODS, METHODS_V2},
        event::{EditorRequest, Event, Listing},
        tasks::{
            Tasks, builtins,
            jobs::{EffectJob, Job, SessionSearch, StateSave, Workers},
        },
    },
    settings::options::Options,
};

/// Unwritten bytes above which no model or tool output is taken.
const SOFT_LIMIT: usize = 1024 * 1024;
/// Unwritten bytes above which the client is not listened to either: it must read first.
const HARD_LIMIT: usize = 64 * 1024 * 1024;
/// The same for acts of sessions that wait for a shared store: one that is late must not stop the others soon.
const SOFT_WAITING: usize = 16 * 1024;
const HARD_WAITING: usize = 64 * 1024;
/// The wait for the store at castor's end, each time.
const LAST_WAIT: Duration = Duration::from_millis(250);

pub struct Machine {
    state: State,
    framer: Framer,
    /// Bytes that the client was told and has not taken yet.
    unsent: usize,
}

/// Counts of open, waiting and kept things. They return to their first values when all is quiet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenResources {
    /// Requests of the client without an answer.
    pub requests: usize,
    /// Our requests to the client without an answer.
    pub outgoing: usize,
    pub terminals: usize,
    pub timers: usize,
    /// Effects without an answer, and hooks that hear of the end of a session.
    pub running: usize,
    pub listings: usize,
    pub traces: usize,
    /// The acts that a turn has queued; none between turns.
    pub outbox: usize,
    /// Bytes of a line that has not ended.
    pub partial_line: usize,
    pub servers: usize,
    /// Questions of servers without an answer.
    pub server_questions: usize,
    pub sessions: usize,
}

impl Machine {
    /// `seed`: what is random begins with it.
    pub fn new(options: Options, env: Env, tasks: Tasks, seed: u64) -> Self {
        Self { state: State::new(options, env, tasks, seed), framer: Framer::default(), unsent: 0 }
    }

    /// Tells whether answers of models and tools are taken now. Else the client has to read first.
    pub fn takes_answers(&self) -> bool {
        self.unsent < SOFT_LIMIT && self.state.outbox.n_waiting() < SOFT_WAITING
    }

    /// Open ones, with those of sub-agents.
    pub fn n_sessions(&self) -> usize {
        self.state.sessions.len()
    }

    /// Tells whether the loop reads from the client now.
    pub fn takes_stdin(&self) -> bool {
        self.unsent < HARD_LIMIT && self.state.outbox.n_waiting() < HARD_WAITING
    }

    /// The time when `Event::Timer` is due, in Unix milliseconds.
    pub fn next_timer_ms(&self) -> Option<u64> {
        self.state.timers.next_ms()
    }

    /// Handles one event that happens at `unix_ms`; true when it is the last one.
    pub fn handle_event(&mut self, event: Event, unix_ms: u64) -> bool {
        let takes_more = self.takes_answers();
        let Self { state, framer, .. } = self;
        state.now.unix_ms = unix_ms;
        match event {
            Event::Stdin(bytes) => {
                framer.push(&bytes);
                while let Some(frame) = framer.next() {
                    dispatch::handle_frame(state, frame);
                }
            }
            Event::StdinClosed => {
                if let Some(frame) = framer.finish() {
                    dispatch::handle_frame(state, frame);
                }
                return true;
            }
            Event::StdoutClosed | Event::Terminate => return true,
            Event::Written(n) => self.mark_sent(n),
            Event::Engine { session, input } => {
                if let (Input::BackgroundExited(pid), Some(live)) = (&input, state.sessions.get_mut(&session)) {
                    air_reports::end_task(live, &mut state.outbox, *pid);
                }
                server_orders::note_end(state, &session, &input);
                handle_answer(state, &session, input)
            }
            Event::Mcp { server, event } => mcp::handle_event(state, server, event),
            Event::Editor(request) => state.outbox.items.push(OutboxItem::Editor(request)),
            Event::ChoreDone => state.tasks.chores.finish_chore(),
            // The end of the turn looks what it was.
            Event::Stored => (),
            Event::StoreAnswered { ticket, answer } => {
                state.tasks.chores.store.note_answer(ticket, answer);
                dispatch::resume_held(state);
            }
            Event::GrantSaved => dispatch::resume_waiting(state),
            Event::Completed { ticket, result } => mcp_completion::finish(state, ticket, result),
            Event::SessionsListed(listing) => listing::answer(state, *listing),
            Event::Timer => {
                while let Some((session, effect)) = state.timers.pop_due(unix_ms) {
                    if !index_watch::look(state, &session, takes_more) && !watching::look(state, &session, takes_more) {
                        state.step(&session, Input::TimerFired { effect });
                    }
                }
            }
        }
        false
    }

    /// Ends a turn: what came of its events is logged, then returned for the client, then started. A shared store takes
    /// its time: what it has not taken comes with a later turn.
    pub fn flush(&mut self) -> Vec<u8> {
        let mut lines = flush::flush(&mut self.state);
        while dispatch::resume_held(&mut self.state) || self.state.outbox.has_ready() {
            lines.extend(flush::flush(&mut self.state));
        }
        self.unsent += lines.len();
        lines
    }

    /// Flushes like [`Self::flush`] at castor's end, when there is no later turn: waits a moment for the store.
    pub fn flush_last(&mut self) -> Vec<u8> {
        let lines = flush::flush_within(&mut self.state, LAST_WAIT);
        self.unsent += lines.len();
        lines
    }

    /// Tells whether a shared store has still to take something; it says so by `Event::Stored`.
    pub fn is_storing(&self) -> bool {
        !self.state.outbox.storing.is_empty()
    }

    /// The sessions' store.
    pub fn store(&self) -> &SessionStore {
        &self.state.tasks.store
    }

    /// Logs of turns that are over become durable, once the client was told of it: it does not wait for that.
    pub fn sync_logs(&mut self) {
        self.state.tasks.sync_logs();
    }

    /// Runs chores that have time until the client has everything.
    pub fn run_deferred(&mut self) {
        let state = &mut self.state;
        if !state.tasks.is_swept && !state.sessions.is_empty() {
            state.tasks.is_swept = true;
            sweep::start(state.tasks.store.clone(), state.env.clone(), state.now.unix_ms);
        }
    }

    /// After the last event: every prompt ends as cancelled. What a listing finds may still be taken.
    pub fn cancel_prompts(&mut self) {
        // They are answered with all who still wait.
        self.state.tasks.chores.waiting.clear();
        // Sub-agents end with the calls that started them, those below first.
        let ids: Vec<SessionId> = self.state.sessions.keys().filter(|it| !it.is_child()).cloned().collect();
        for id in ids {
            self.state.step(&id, Input::Cancel);
        }
    }

    /// Runs the `SessionEnd` hooks of every session; the caller decides whether to wait.
    pub fn end_sessions(&mut self) {
        // What sub-agents hold is held for the sessions above.
        for live in self.state.sessions.values_mut().filter(|it| it.parent.is_none()) {
            for run in live.session.session_end_hooks("exit") {
                self.state.tasks.tell_hook(&live.resources, run);
            }
            self.state.tasks.release_checkpoints(live.resources.files.checkpoints.clone(), None);
        }
    }

    /// Tells whether hooks still run for the end of their sessions, or something is still written down.
    pub fn has_chores(&self) -> bool {
        self.state.tasks.chores.n_running > 0
    }

    /// The end: answers all requests and stops all tasks.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut lines = self.flush_last();
        flush::answer_all(&mut self.state);
        self.state.tasks.abort_all();
        self.state.tasks.mcp.stop_all();
        // Who waits for the editor waits in vain from now on.
        let asked: Vec<i64> = self.state.outgoing.iter().map(|(id, _)| id).collect();
        asked.into_iter().for_each(|id| _ = self.state.outgoing.cancel(id));
        lines.extend(self.flush_last());
        lines
    }

    /// The bytes that the client has not taken yet.
    pub fn unsent(&self) -> usize {
        self.unsent
    }

    /// Tells whether the client has not taken all bytes.
    pub fn has_unsent(&self) -> bool {
        self.unsent > 0
    }

    /// It has taken so much more.
    pub fn mark_sent(&mut self, n: usize) {
        self.unsent = self.unsent.saturating_sub(n);
    }

    /// Tells whether the sessions of a list, or what a request needs of a shared store, are being read.
    pub fn is_reading(&self) -> bool {
        self.state.tasks.listings.n_running > 0 || !self.state.tasks.chores.store.is_empty()
    }

    /// The processes behind it.
    pub fn groups(&self) -> Groups {
        self.state.tasks.groups.clone()
    }

    pub fn sessions(&self) -> impl Iterator<Item = &SessionId> {
        self.state.sessions.keys()
    }

    /// The record of a session; `None`: not open.
    pub fn record(&self, id: &SessionId) -> Option<&Record> {
        self.state.sessions.get(id).map(|it| it.session.record())
    }

    pub fn open_resources(&self) -> OpenResources {
        let state = &self.state;
        OpenResources {
            requests: state.requests.len(),
            outgoing: state.outgoing.len(),
            terminals: state.terminals.count(),
            timers: state.timers.len(),
            running: state.tasks.n_running() + state.tasks.chores.n_running,
            listings: state.tasks.listings.n_running,
            traces: state.tasks.traces.len(),
            outbox: state.outbox.items.len() + state.outbox.after_answer.len(),
            partial_line: self.framer.len(),
            servers: state.tasks.mcp.count(),
            server_questions: state.tasks.server_uses.questions.count(),
            sessions: state.sessions.len(),
        }
    }
}

/// The world answers an effect; with its end goes what it wanted of the client.
fn handle_answer(state: &mut State, session: &SessionId, input: Input) {
    let ended = state.tasks.finish_effect(session, &input);
    let shared = if let Input::StateSaved { result: Ok(it), .. } = &input { Some(it.clone()) } else { None };
    state.step(session, input);
    if let Some(it) = shared {
        session_state::share(state, session, &it);
    }
    if let Some(effect) = ended {
        let mut lines = Vec::new();
        pending_requests::withdraw(&mut state.outgoing, |it| it.is_call_of(session, effect), &mut lines);
        state.outbox.queue_lines(None, |it| it.append(&mut lines));
        let requests = state.terminals.release(session, effect, TerminalEnd::Release);
        state.queue_requests(session, requests);
    }
}
