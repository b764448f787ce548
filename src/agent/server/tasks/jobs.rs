//! Jobs: the closed list of work that the loop gives to threads.

use std::{
    collections::BTreeSet,
    fs::File,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use tokio_util::sync::CancellationToken;

use super::store_requests::StoreJob;
use crate::{
    model::refused_parameters::RefusedParameter,
    panics,
    server::event::{ListAsker, ListParams, Listing},
    session::session_resources::SessionResources,
    settings::server_edit::ServerEdit,
};
use castor_base::{
    hook::HookRun,
    ids::{EffectId, SessionId},
    log::{Grant, PersistentGrant},
    mcp::McpServerConfig,
    path::AbsPath,
    server_offer::CompletionQuery,
    server_order::ServerOrder,
    state::StateDelta,
    tool::ToolOutput,
};
use castor_engine::step::{Effect, Input};
use castor_hands::{checkpoints::Checkpoints, disk, secrets::Env};
use castor_store::sessions::{self as store, ListCache, SessionStore};
use castor_tools::mcp::{Connection, HostHandles, ServerIdentity, auth::LoginTarget};
use castor_wire::jsonrpc::open_requests::Ticket;

/// Who does the jobs. Starting one never waits; what becomes of it comes back as events. There are the threads of the
/// process, and the simulator. No session waits for a chore, but castor's own end does; it is answered by `ChoreDone`.
pub trait Workers {
    fn start(&mut self, job: Job);
}

pub enum Job {
    /// Answered as its effect says.
    Effect(EffectJob),
    /// An MCP server, until `stop`. Answered by its news.
    Server { server: u64, launch: ServerIdentity, handles: HostHandles, stop: CancellationToken },
    /// An order about servers, until `cancel`. Answered as `Effect::ManageServer` is.
    ServerErrand { session: SessionId, effect: EffectId, errand: Box<ServerErrand>, cancel: CancellationToken },
    /// A question of the client to an MCP server. Answered by `Completed`.
    Complete(CompletionJob),
    /// A hook that no session waits for. A chore.
    TellHook { resources: Arc<SessionResources>, run: Box<HookRun> },
    /// Answered by `Listed`.
    List(SessionSearch),
    /// Probes the system's sandbox before the first session needs it. Not answered.
    ProbeSandbox,
    /// Reads castor's own rules and prices. Not answered.
    LoadTables,
    /// Makes a log durable. Not answered.
    SyncLog(File),
    /// A question to a shared store for a request of the client. Answered by `StoreAnswered`.
    AskStore(Box<StoreJob>),
    /// For the list of a shared store. A chore.
    NoteAgent(Box<AgentNote>),
    /// Releases a session's checkpoints; `forget` also deletes them for later processes. A chore.
    ReleaseCheckpoints { checkpoints: Option<Arc<Checkpoints>>, forget: Option<(AbsPath, SessionId)> },
    /// Writes a text to a file. A chore.
    Stash { file: AbsPath, text: String },
    /// Saves a permanent grant, in the order in which these jobs start. Answered by `GrantSaved`.
    SavePolicy { home: AbsPath, folder: AbsPath, lasting: PersistentGrant },
    /// Saves or revokes a permanent sandbox grant of a folder. As `SavePolicy`.
    SaveSandboxGrant { home: AbsPath, folder: AbsPath, grant: Grant, holds: bool },
    /// Keeps a parameter that a model refused. As `SavePolicy`.
    SaveRefusal { home: AbsPath, row: RefusedParameter },
    /// Changes what sessions share. Answered as its effect says; then a chore that is done.
    SaveState(StateSave),
}

/// The agent of a session, for the list of sessions.
pub struct AgentNote {
    pub store: SessionStore,
    pub session: SessionId,
    pub agent: Option<String>,
}

impl AgentNote {
    pub fn write(self) {
        if let Err(it) = self.store.note_agent(&self.session, self.agent.as_deref()) {
            tracing::warn!("the list of sessions shows another agent for {}: {it}", self.session);
        }
    }
}

/// What a client wants an MCP server to complete.
pub struct CompletionJob {
    pub ticket: Ticket,
    pub connection: Connection,
    pub query: CompletionQuery,
}

/// `Effect::SaveState` of a session.
pub struct StateSave {
    pub home: AbsPath,
    pub session: SessionId,
    pub effect: EffectId,
    pub user: String,
    pub delta: StateDelta,
}

impl StateSave {
    /// Writes to the disk, and may wait for another process that does. Returns the answer.
    pub fn save(self) -> Input {
        let Self { home, effect, user, delta, .. } = self;
        let saved = catch_unwind(AssertUnwindSafe(|| store::save_state(&home, &user, &delta)));
        let result = match saved {
            Ok(it) => it.map(Arc::new).map_err(|it| it.to_string()),
            Err(panic) => Err(panics::panic_message(&*panic)),
        };
        Input::StateSaved { effect, result }
    }
}

/// An order about servers that takes a while.
pub struct ServerErrand {
    pub order: ServerOrder,
    pub work: ServerWork,
}

pub enum ServerWork {
    /// A login, or the end of one.
    Login {
        target: LoginTarget,
        /// The client's name for the page.
        page: String,
    },
    Test {
        servers: Vec<TestedServer>,
        handles: Box<HostHandles>,
    },
    /// A change of a settings file.
    Edit {
        edit: ServerEdit,
        env: Env,
        cwd: AbsPath,
        /// When it holds.
        note: &'static str,
    },
}

/// A server that is to be tested.
pub enum TestedServer {
    Start {
        config: Box<McpServerConfig>,
        launch: Box<ServerIdentity>,
    },
    /// It is not started: the line about it.
    Told(String),
}

/// An effect of a session's engine.
pub struct EffectJob {
    pub resources: Arc<SessionResources>,
    pub id: EffectId,
    pub effect: Effect,
    /// Cancelled when the answer is no longer wanted; one that comes all the same is ignored.
    pub cancel: CancellationToken,
    /// Must be on the disk before the effect begins.
    pub log: Option<File>,
    /// Of a call whose sub-agent has ended: its output. What is left is to find out what it changed.
    pub output: Option<Box<ToolOutput>>,
}

/// A look for sessions on the disk.
pub struct SessionSearch {
    pub asker: ListAsker,
    pub queries: Vec<ListParams>,
    pub store: SessionStore,
    pub cache: ListCache,
}

impl SessionSearch {
    /// Reads the disk; a machine may hold thousands of logs.
    pub fn look(self) -> Listing {
        let Self { asker, mut queries, store, mut cache } = self;
        let found = catch_unwind(AssertUnwindSafe(|| store.list_cached(None, &mut cache)));
        queries.iter_mut().for_each(|it| it.folders = folders(it));
        Listing { asker, queries, found: found.unwrap_or_else(|_| Ok(Vec::new())), cache }
    }
}

/// AIR's index knows a folder by its real name, too.
fn folders(it: &ListParams) -> BTreeSet<AbsPath> {
    match (&it.cwd, it.index) {
        (None, _) => BTreeSet::new(),
        (Some(cwd), None) => BTreeSet::from([cwd.clone()]),
        (Some(cwd), Some(index)) if index.worktrees => disk::worktree_folders(cwd),
        (Some(cwd), Some(_)) => disk::real_names(cwd),
    }
}
