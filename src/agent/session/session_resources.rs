//! Resources of one session that its tasks share: folders, settings, model. They are replaced, never changed.

use std::sync::Arc;

use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{panics::FaultPoint, session::mcp_access::McpAccess};
use castor_base::{
    ids::{CheckpointId, SessionId},
    path::AbsPath,
    sandbox::{Confinement, ProtectedPaths},
};
use castor_hands::{
    checkpoints::Checkpoints,
    process::{Groups, program_rights::ProgramRights},
    provenance::Provenance,
};
use castor_models::providers::Generator;
use castor_tools::{builtin::ToolSettings, redaction::Secrets, workspace::memory::MemorySearch};

/// The way in which commands run and are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalMode {
    /// castor runs it and shows text.
    Text,
    /// castor runs it, and the client draws it.
    Drawn,
    /// The client's terminals run it.
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
    /// The ledger of files that agents left in the folders and nobody looked at.
    pub provenance: Arc<Provenance>,
    /// The checkpoints of the calls that a sub-agent is a part of.
    pub above: Vec<CheckpointId>,
}

/// Environment and confinement of child processes.
#[derive(Clone)]
pub struct ChildProcesses {
    /// Already filtered.
    pub env: Arc<Vec<(String, String)>>,
    /// The confinement of commands; `None`: they may do what the user may.
    pub confined: Option<Arc<Confinement>>,
    /// Paths that castor's own tools ask about because commands are kept from them.
    pub protected_paths: Arc<ProtectedPaths>,
    pub hooks: HookResources,
    /// Ends what commands left running.
    pub closed: SessionClosed,
}

/// Resources that all hooks of a session share.
#[derive(Clone)]
pub struct HookResources {
    pub groups: Groups,
    /// The folder whose settings and hooks count. A sub-agent may work in a part of it.
    pub project: AbsPath,
    /// The folder where the user's hooks run: the home folder, if nobody trusts the session's.
    pub cwd: AbsPath,
    /// The confinement of the user's hooks.
    pub confined: Option<Arc<Confinement>>,
    /// The session's log.
    pub transcript: String,
    /// Of all programs of the session that castor starts by itself.
    pub rights: ProgramRights,
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
    /// Secrets of the files around it, which are not shown.
    pub secrets: Arc<Secrets>,
}

#[derive(Clone)]
pub struct SessionResources {
    pub session: SessionId,
    /// The folder where calls run.
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
