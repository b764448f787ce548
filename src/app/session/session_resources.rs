//! Resources of one session that its tasks share: folders, settings, model. They are replaced, never changed.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    app::{panics::FaultPoint, session::mcp_access::McpAccess},
    base::{
        ids::{CheckpointId, SessionId},
        path::AbsPath,
        sandbox::{Confinement, ProtectedPaths},
    },
    world::{
        checkpoints::Checkpoints,
        models::Generator,
        process::{Groups, lack_notices::LackNotices},
        provenance::Provenance,
        redaction::Secrets,
        tools::ToolSettings,
        workspace::memory::MemorySearch,
    },
};

/// The way in which commands run and are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalMode {
    /// By us, as text.
    Text,
    /// By us, drawn by the client.
    Drawn,
    /// In the client's terminals.
    Client { reads_lines: bool },
}

/// Access to files, and checkpoints.
#[derive(Clone)]
pub struct Files {
    /// The editor offers to read them.
    pub reads: bool,
    pub writes: bool,
    /// `None`: what calls change cannot be undone.
    pub checkpoints: Option<Arc<Checkpoints>>,
    /// What agents left in the folders and nobody looked at.
    pub provenance: Arc<Provenance>,
    /// Of a sub-agent: the checkpoints of the calls that it is a part of.
    pub above: Vec<CheckpointId>,
}

/// Environment and confinement of child processes.
#[derive(Clone)]
pub struct ChildProcesses {
    /// Already filtered.
    pub env: Arc<Vec<(String, String)>>,
    /// What commands may do; `None`: what the user may.
    pub confined: Option<Arc<Confinement>>,
    /// What tools of castor's own ask about as commands are kept from it.
    pub protected_paths: Arc<ProtectedPaths>,
    pub hooks: HookResources,
    /// Ends what commands left running.
    pub closed: SessionClosed,
}

/// What all hooks of a session share.
#[derive(Clone)]
pub struct HookResources {
    pub groups: Groups,
    /// The folder whose settings and hooks count. A sub-agent may work in a part of it.
    pub project: AbsPath,
    /// Where the user's hooks run: in a folder that nobody trusts it is the home folder.
    pub cwd: AbsPath,
    /// As the user's hooks are confined.
    pub confined: Option<Arc<Confinement>>,
    /// The session's log.
    pub transcript: String,
    /// What the user was told of what hooks lack.
    pub told: LackNotices,
}

/// Cancelled when the last that holds it is gone, which is the end of the session.
#[derive(Clone)]
pub struct SessionClosed {
    pub token: CancellationToken,
    _guard: Arc<DropGuard>,
}

impl Default for SessionClosed {
    fn default() -> Self {
        let token = CancellationToken::new();
        Self { _guard: Arc::new(token.clone().drop_guard()), token }
    }
}

/// Input for the model beside the conversation, with its limits.
#[derive(Clone)]
pub struct ModelInput {
    /// Characters of a tool's output beyond which it goes to a file; 0: never.
    pub truncate_at: usize,
    pub memory: Arc<MemorySearch>,
    /// What of the files around it is not shown.
    pub secrets: Arc<Secrets>,
}

#[derive(Clone)]
pub struct SessionResources {
    pub session: SessionId,
    /// Where calls run.
    pub cwd: AbsPath,
    /// Canonical, `cwd` first.
    pub roots: Vec<AbsPath>,
    /// castor's folder for this session's long outputs.
    pub scratch: AbsPath,
    pub generator: Arc<dyn Generator>,
    pub tools: Arc<ToolSettings>,
    /// MCP servers, as they are now.
    pub mcp: McpAccess,
    pub children: ChildProcesses,
    pub model_input: ModelInput,
    pub files: Files,
    pub terminal_mode: TerminalMode,
    pub fault: FaultPoint,
}
