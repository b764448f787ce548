//! Events of the loop: everything that can wake it, in one closed list.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::Value;
use tokio::sync::oneshot;

use super::tasks::store_requests::StoreAnswer;
use castor_base::{
    ids::{EffectId, SessionId},
    path::AbsPath,
    server_offer::Completion,
};
use castor_engine::step::Input;
use castor_store::sessions::{ListCache, SessionSummary, StoreError};
use castor_tools::mcp::ServerEvent;
use castor_wire::{
    acp::{air::session_index::IndexQuery, drafts::archive_filter::ArchiveFilter},
    jsonrpc::{message::RpcError, open_requests::Ticket},
};

pub enum Event {
    /// Bytes from the client, cut anywhere.
    Stdin(Vec<u8>),
    /// The client says no more.
    StdinClosed,
    /// This many bytes were written to the client.
    Written(usize),
    /// The client no longer reads.
    StdoutClosed,
    /// SIGTERM, SIGINT or SIGHUP.
    Terminate,
    /// A timer is due.
    Timer,
    /// A task's answer, for a session.
    Engine { session: SessionId, input: Input },
    /// An event of an MCP server.
    Mcp { server: u64, event: ServerEvent },
    /// A task needs a request to the editor.
    Editor(EditorRequest),
    /// A chore ended, well or not.
    ChoreDone,
    /// A shared store has answered.
    Stored,
    /// What it said for a request.
    StoreAnswered { ticket: Ticket, answer: Option<Box<StoreAnswer>> },
    /// A permanent grant is saved, or could not be.
    GrantSaved,
    /// What an MCP server suggests, for the client's request.
    Completed { ticket: Ticket, result: Result<Completion, String> },
    /// The sessions on the disk.
    SessionsListed(Box<Listing>),
}

impl Event {
    /// For the log line of an overlong loop turn.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Stdin(_) => "stdin",
            Self::StdinClosed => "stdin closed",
            Self::Written(_) => "written",
            Self::StdoutClosed => "stdout closed",
            Self::Terminate => "terminate",
            Self::Timer => "timer",
            Self::Engine { .. } => "engine",
            Self::Mcp { .. } => "MCP server",
            Self::Editor(_) => "editor request",
            Self::ChoreDone => "chore done",
            Self::Stored => "stored",
            Self::StoreAnswered { .. } => "store answered",
            Self::GrantSaved => "saved",
            Self::Completed { .. } => "completed",
            Self::SessionsListed(_) => "listed",
        }
    }
}

/// The result of a listing, newest first.
pub struct Listing {
    pub asker: ListAsker,
    /// With the folders that they are about.
    pub queries: Vec<ListParams>,
    /// In all folders.
    pub found: Result<Vec<Arc<SessionSummary>>, StoreError>,
    /// For the next one.
    pub cache: ListCache,
}

/// A request to the client on behalf of an effect; dropped with it.
pub struct EditorRequest {
    pub session: SessionId,
    pub effect: EffectId,
    pub method: &'static str,
    pub params: Value,
    pub reply: oneshot::Sender<Result<Value, RpcError>>,
}

/// Who wants to know.
pub enum ListAsker {
    /// An open `session/list`.
    Request(Ticket),
    /// AIR's watches on the first pages that it read.
    Watches,
}

/// Parameters of `session/list`.
#[derive(Clone)]
pub struct ListParams {
    pub cwd: Option<AbsPath>,
    /// What that means on the disk, once it was looked; empty: all folders.
    pub folders: BTreeSet<AbsPath>,
    /// Where the page before ended: only what is older follows, so that nothing comes twice when sessions go or change.
    pub after: Option<(u64, SessionId)>,
    pub archived: ArchiveFilter,
    pub agent: Option<String>,
    /// Rows say whose session each is.
    pub names_agents: bool,
    pub index: Option<IndexQuery>,
}
