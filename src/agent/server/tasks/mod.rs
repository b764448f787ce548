//! Running tasks: the effects that are under way, and the workers that do them.

pub mod checkpoint_tasks;
pub mod client_checks;
pub mod editor_client;
pub mod effect_task;
pub mod finished_call;
mod host_call;
pub mod jobs;
mod look_tasks;
pub mod looks;
mod memory_tasks;
pub mod metadata_order;
pub mod pending_chores;
mod queues;
pub mod redact_output;
pub mod server_errand;
pub mod store_requests;
pub mod threads;
mod truncate_output;
pub mod worker;

use std::{collections::BTreeMap, fs::File, sync::Arc};

use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::{
    event::{ListAsker, ListParams},
    traces::Traces,
};
use crate::server::air::watched_lists::WatchedLists;
use crate::{
    model::refused_parameters::RefusedParameter,
    session::{
        events::event_log::children_of, mcp_servers::Servers, read_resources::ReadResources,
        server_questions::ServerQuestions, session_resources::SessionResources, watched_session::WatchedSession,
    },
};
use castor_base::{
    hook::HookRun,
    ids::{EffectId, SessionId},
    log::{Entry, Grant, PersistentGrant},
    path::AbsPath,
    state::StateDelta,
    tool::{ToolOutput, ToolSpec},
};
use castor_engine::{
    record::{Record, Replay},
    step::{Effect, Input},
};
use castor_hands::{checkpoints::Checkpoints, process::Groups};
use castor_store::sessions::{ListCache, SessionLog, SessionStore, StoreError};
use castor_tools::{
    builtin::{self as tools, Builtin},
    mcp::{HostHandles, ServerIdentity},
};
use castor_wire::jsonrpc::open_requests::Ticket;
use jobs::{AgentNote, CompletionJob, EffectJob, Job, ServerErrand, SessionSearch, StateSave, Workers};
use metadata_order::MetadataOrder;
use pending_chores::PendingChores;
use store_requests::{OpenedLog, StoreJob, StoreQuestion};

/// Built-in tools with what the model is told of them, which is made once.
pub type Tools = Arc<[(ToolSpec, Box<dyn Builtin>)]>;

/// The tools that castor brings; their processes are in `groups`.
pub fn builtins(groups: &Groups) -> Tools {
    tools::builtins(groups.clone()).into_iter().map(|it| (it.spec(), it)).collect()
}

/// The doors to the world, and what is under way behind them.
pub struct Tasks {
    pub store: SessionStore,
    pub groups: Groups,
    pub tools: Tools,
    /// Spans of the client's requests; tasks run in the one that is entered when they start.
    pub traces: Traces,
    pub listings: Listings,
    /// Sessions that are not open here, and are followed.
    pub watched: BTreeMap<SessionId, WatchedSession>,
    /// Chores that are under way.
    pub chores: PendingChores,
    /// Old sessions were looked for.
    pub is_swept: bool,
    pub mcp: Servers,
    pub server_uses: ServerUses,
    workers: Box<dyn Workers>,
    running: BTreeMap<(SessionId, EffectId), RunningEffect>,
}

/// The traffic between servers and sessions.
#[derive(Default)]
pub struct ServerUses {
    /// Questions of servers to the user.
    pub questions: ServerQuestions,
    /// Resources that sessions have read.
    pub read_resources: ReadResources,
}

/// Listings of sessions.
#[derive(Default)]
pub struct Listings {
    /// The findings of the last listing.
    pub cache: ListCache,
    /// Those that are under way.
    pub n_running: usize,
    /// The watches of AIR's index.
    pub watches: WatchedLists,
}

/// An effect without an answer.
struct RunningEffect {
    cancel: CancellationToken,
    /// The MCP server that it calls.
    server: Option<u64>,
    /// A request to a model that starts at the end of the loop turn, in this span.
    request: Option<Box<(EffectJob, Span)>>,
    /// It only looks, and a later look finds the same.
    is_look: bool,
}

impl Tasks {
    pub fn new(store: SessionStore, groups: Groups, tools: Tools, workers: Box<dyn Workers>) -> Self {
        Self {
            store,
            groups,
            tools,
            mcp: Servers::default(),
            server_uses: ServerUses::default(),
            traces: Traces::default(),
            listings: Listings::default(),
            watched: BTreeMap::new(),
            chores: PendingChores::default(),
            is_swept: false,
            workers,
            running: BTreeMap::new(),
        }
    }

    /// Starts what a session's engine wants done by the world. A model is asked at the end of the loop turn.
    pub fn start_effect(&mut self, resources: &Arc<SessionResources>, id: EffectId, effect: Effect, log: Option<File>) {
        let cancel = CancellationToken::new();
        let server = match &effect {
            Effect::Run { call, .. } => resources.mcp.server_of_call(call),
            Effect::AskServer(query) => resources.mcp.find_server(&query.server).map(|it| it.server),
            _ => None,
        };
        let read = match &effect {
            Effect::Run { call, .. } => resources.mcp.resource_of_call(call),
            Effect::AskServer(query) => resources.mcp.resource_of_query(query),
            _ => None,
        };
        if let Some(it) = read {
            self.server_uses.read_resources.add(&resources.session, it);
        }
        let (key, is_request) = ((resources.session.clone(), id), matches!(effect, Effect::Generate { .. }));
        let is_look = matches!(effect, Effect::OpenCheckpoints);
        let job = EffectJob { resources: resources.clone(), id, effect, cancel: cancel.clone(), log, output: None };
        let request = match is_request {
            true => Some(Box::new((job, Span::current()))),
            false => {
                self.workers.start(Job::Effect(job));
                None
            }
        };
        self.running.insert(key, RunningEffect { cancel, server, request, is_look });
    }

    /// An order about servers that takes a while.
    pub fn start_server_errand(&mut self, session: &SessionId, effect: EffectId, errand: ServerErrand) {
        let cancel = CancellationToken::new();
        let running = RunningEffect { cancel: cancel.clone(), server: None, request: None, is_look: false };
        self.running.insert((session.clone(), effect), running);
        self.workers.start(Job::ServerErrand { session: session.clone(), effect, errand: Box::new(errand), cancel });
    }

    /// All that was spent is known above by now: who has nothing left asks no model any more.
    pub fn start_requests(&mut self) {
        for (job, span) in self.running.values_mut().filter_map(|it| it.request.take()).map(|it| *it) {
            let _in_span = span.enter();
            self.workers.start(Job::Effect(job));
        }
    }

    /// The sub-agent of a call has ended: its output goes the way of all outputs.
    pub fn finish_delegation(
        &mut self,
        resources: &Arc<SessionResources>,
        id: EffectId,
        run: Effect,
        output: ToolOutput,
    ) {
        let cancel = CancellationToken::new();
        self.running.insert(
            (resources.session.clone(), id),
            RunningEffect { cancel: cancel.clone(), server: None, request: None, is_look: false },
        );
        let (resources, output) = (resources.clone(), Some(Box::new(output)));
        self.workers.start(Job::Effect(EffectJob { resources, id, effect: run, cancel, log: None, output }));
    }

    /// Aborts an effect that is no longer wanted.
    pub fn abort_effect(&mut self, session: &SessionId, effect: EffectId, now_ms: u64) {
        let Some(RunningEffect { cancel, server, .. }) = self.running.remove(&(session.clone(), effect)) else {
            return;
        };
        cancel.cancel();
        if let Some(server) = server {
            self.server_uses.questions.give_up(server, session, now_ms);
        }
    }

    /// The calls of a server that are under way.
    pub fn calls_of(&self, server: u64) -> Vec<(SessionId, EffectId)> {
        self.running.iter().filter(|(_, it)| it.server == Some(server)).map(|(id, _)| id.clone()).collect()
    }

    /// Tells whether the answer to that effect is still wanted.
    pub fn is_running(&self, session: &SessionId, effect: EffectId) -> bool {
        self.running.contains_key(&(session.clone(), effect))
    }

    /// Tells whether anything is under way for that session.
    pub fn has_running(&self, session: &SessionId) -> bool {
        self.running.iter().any(|(key, it)| key.0 == *session && !it.is_look)
    }

    /// Whatever is under way for that session, and whatever it may be asked.
    pub fn abort_session(&mut self, session: &SessionId, now_ms: u64) {
        let ids: Vec<EffectId> = self.running.keys().filter(|(it, _)| it == session).map(|(_, id)| *id).collect();
        for id in ids {
            self.abort_effect(session, id, now_ms);
        }
        self.server_uses.questions.forget(session);
        self.server_uses.read_resources.forget(session);
    }

    pub fn abort_all(&mut self) {
        for (_, it) in std::mem::take(&mut self.running) {
            it.cancel.cancel();
        }
        self.server_uses.questions.forget_all();
    }

    /// An answer came. Returns the effect that it ends.
    pub fn finish_effect(&mut self, session: &SessionId, input: &Input) -> Option<EffectId> {
        let effect = match input {
            Input::Generated { effect, .. }
            | Input::Resolved { effect, .. }
            | Input::Checked { effect, .. }
            | Input::Previewed { effect, .. }
            | Input::RunEnded { effect, .. }
            | Input::HookFinished { effect, .. }
            | Input::Checkpointed { effect, .. }
            | Input::Compared { effect, .. }
            | Input::Restored { effect, .. }
            | Input::Diffed { effect, .. }
            | Input::UnseenShown { effect, .. }
            | Input::MemoryChanged { effect, .. }
            | Input::ServerAnswered { effect, .. }
            | Input::ServerManaged { effect, .. }
            | Input::MemoryRead { effect, .. } => *effect,
            _ => return None,
        };
        self.running.remove(&(session.clone(), effect));
        Some(effect)
    }

    /// Tells a hook that no session waits for.
    pub fn tell_hook(&mut self, resources: &Arc<SessionResources>, run: HookRun) {
        self.start_chore(Job::TellHook { resources: resources.clone(), run: Box::new(run) });
    }

    /// Lets go of what is held for a session. `forget`: it is deleted.
    pub fn release_checkpoints(&mut self, checkpoints: Option<Arc<Checkpoints>>, forget: Option<SessionId>) {
        let forget = forget.map(|it| (self.store.home().clone(), it));
        if checkpoints.is_some() || forget.is_some() {
            self.start_chore(Job::ReleaseCheckpoints { checkpoints, forget });
        }
    }

    fn start_chore(&mut self, job: Job) {
        self.chores.n_running += 1;
        self.workers.start(job);
    }

    /// The number of effects without an answer.
    pub fn n_running(&self) -> usize {
        self.running.len()
    }

    /// Starts an MCP server; what becomes of it are events.
    pub fn start_server(&mut self, server: u64, launch: ServerIdentity, handles: HostHandles, stop: CancellationToken) {
        self.workers.start(Job::Server { server, launch, handles, stop });
    }

    /// Asks a server for a client.
    pub fn start_completion(&mut self, job: CompletionJob) {
        self.workers.start(Job::Complete(job));
    }

    /// Looks for sessions on the disk.
    pub fn list(&mut self, asker: ListAsker, queries: Vec<ListParams>) {
        let (store, cache) = (self.store.clone(), std::mem::take(&mut self.listings.cache));
        self.listings.n_running += 1;
        self.workers.start(Job::List(SessionSearch { asker, queries, store, cache }));
    }

    /// Asks a shared store for a request.
    pub fn ask_store(&mut self, ticket: Ticket, question: StoreQuestion) {
        self.workers.start(Job::AskStore(Box::new(StoreJob { store: self.store.clone(), ticket, question })));
    }

    /// Reads the log as the store has it; a shared store was asked before.
    pub fn read_log(&mut self, id: &SessionId) -> Result<Vec<Entry>, StoreError> {
        self.chores.store.take_read().unwrap_or_else(|| self.store.read(id))
    }

    /// Opens a log: [`Self::read_log`], and later facts are appended here.
    pub fn open_log(&mut self, id: &SessionId) -> Result<OpenedLog, StoreError> {
        self.chores.store.take_opened().unwrap_or_else(|| self.store.open(id))
    }

    /// Opens a record: [`Self::open_log`], without its facts, so that only what they make of the session stays in
    /// memory.
    pub fn open_record(&mut self, id: &SessionId) -> Result<(Option<Record>, SessionLog), StoreError> {
        if let Some(opened) = self.chores.store.take_opened() {
            return opened.map(|(entries, log)| (Record::replay(&entries), log));
        }
        let mut replay = Replay::default();
        let log = self.store.open_with(id, |it| replay.take(&it))?;
        let record = match replay.end() {
            Ok(it) => it,
            Err(mut again) => {
                self.store.read_again(id, &log, |it| again.take(&it))?;
                again.end().unwrap_or_default()
            }
        };
        Ok((record, log))
    }

    /// Orders a change of metadata as the store did it; a shared store was asked before.
    pub fn order_metadata(&mut self, id: &SessionId, order: &MetadataOrder) -> Result<(), StoreError> {
        self.chores.store.take_metadata().unwrap_or_else(|| order.carry_out(&self.store, id))
    }

    /// The logs of a session's sub-agents, as [`Self::read_log`].
    pub fn read_children(&mut self, id: &SessionId) -> Vec<Vec<Entry>> {
        self.chores.store.take_children().unwrap_or_else(|| children_of(&self.store, id))
    }

    /// The list of sessions names the agent of this one.
    pub fn note_agent(&mut self, id: &SessionId, agent: Option<&str>) {
        let note = AgentNote { store: self.store.clone(), session: id.clone(), agent: agent.map(str::to_owned) };
        match self.store.is_shared() {
            true => self.start_chore(Job::NoteAgent(Box::new(note))),
            false => note.write(),
        }
    }

    /// Finds out what the sandbox can hold here, which starts a process: the first session should not wait for it.
    pub fn probe_sandbox(&mut self) {
        self.workers.start(Job::ProbeSandbox);
    }

    /// Reads castor's own rules and prices while the first session reads its files. Without a session nobody needs them.
    pub fn load_tables(&mut self) {
        self.workers.start(Job::LoadTables);
    }

    /// Makes a log durable on its own time.
    pub fn queue_sync(&mut self, log: File) {
        self.chores.unsynced.push(log);
    }

    /// Starts that for all of them.
    pub fn sync_logs(&mut self) {
        std::mem::take(&mut self.chores.unsynced).into_iter().for_each(|it| self.workers.start(Job::SyncLog(it)));
    }

    /// Writes down what holds beyond the sandbox in a folder for ever, or strikes it out.
    pub fn save_sandbox_grant(&mut self, folder: AbsPath, grant: Grant, holds: bool) {
        self.chores.n_saves += 1;
        self.start_chore(Job::SaveSandboxGrant { home: self.store.home().clone(), folder, grant, holds });
    }

    /// Changes what sessions share.
    pub fn save_state(&mut self, session: &SessionId, effect: EffectId, user: String, delta: StateDelta) {
        let (home, session) = (self.store.home().clone(), session.clone());
        self.start_chore(Job::SaveState(StateSave { home, session, effect, user, delta }));
    }

    /// Writes down what a model may read later.
    pub fn stash(&mut self, file: AbsPath, text: String) {
        self.start_chore(Job::Stash { file, text });
    }

    /// Keeps what a model refused for later sessions.
    pub fn save_refusal(&mut self, row: RefusedParameter) {
        self.chores.n_saves += 1;
        self.start_chore(Job::SaveRefusal { home: self.store.home().clone(), row });
    }

    /// Writes a yes for ever into the user's own policies.
    pub fn save_policy(&mut self, folder: AbsPath, lasting: PersistentGrant) {
        self.chores.n_saves += 1;
        self.start_chore(Job::SavePolicy { home: self.store.home().clone(), folder, lasting });
    }
}
