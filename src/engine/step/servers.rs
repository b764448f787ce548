//! MCP servers as the engine knows them: how they are, what they offer, and their questions that wait.

use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use castor_base::{elicitation::ElicitationRequest, ids::ElicitationId, server_offer::ServerOffer, tool::ToolSpec};

/// The tools that a session has from outside, how their servers are, and what is to be said about them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct McpTools {
    pub tools: Vec<ForeignTool>,
    /// All that are configured, each name once.
    pub servers: Vec<Server>,
    /// For user and model at the start of the next turn, a line each.
    pub notices: Vec<String>,
}

/// A tool from outside, and whose it is.
#[derive(Clone, Debug, PartialEq)]
pub struct ForeignTool {
    pub spec: ToolSpec,
    /// As the configuration names it.
    pub server: String,
    /// What the server says of its tool.
    pub annotations: Value,
    /// The user trusts the server: its tools run without a question, and what it says of them is believed.
    pub trusted: bool,
    /// The agent that has the server for itself; `None`: the session has it.
    pub agent: Option<String>,
}

impl ForeignTool {
    /// Of what its server says of it. A server that waits until its tool is allowed, and then makes another one of it,
    /// is asked about again.
    pub fn digest(&self) -> String {
        let said = (&self.server, &self.spec.description, &self.spec.parameters, &self.annotations);
        let digest = Sha256::digest(serde_json::to_vec(&said).unwrap_or_default());
        digest.iter().take(16).map(|it| format!("{it:02x}")).collect()
    }
}

/// A configured server.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    pub name: String,
    pub status: ServerStatus,
    /// Beside tools.
    pub offer: Arc<ServerOffer>,
    pub health: ServerHealth,
}

/// How a server fared since castor started it first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHealth {
    pub n_restarts: u32,
    /// Why it was gone the last time.
    pub last_end: Option<String>,
}

/// A server that is gone and is started again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDown {
    pub why: String,
    /// When the next try is (Unix, milliseconds).
    pub retry_ms: u64,
    /// The number of that try, from 1.
    pub number: u32,
}

impl Server {
    /// One that never ended and offers nothing.
    pub fn new(name: impl Into<String>, status: ServerStatus) -> Self {
        let (offer, health) = (Arc::default(), ServerHealth::default());
        Self { name: name.into(), status, offer, health }
    }

    /// Tells whether it can be asked for something: who asks one that is down waits for it.
    pub fn is_there(&self) -> bool {
        matches!(self.status, ServerStatus::Ready | ServerStatus::Down(_))
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum ServerStatus {
    /// It has not told its tools yet; a turn waits for it no longer than this (Unix, milliseconds).
    Starting {
        until_ms: u64,
    },
    Ready,
    /// Its tools stay on offer: a call waits for it.
    Down(ServerDown),
    /// It could not be reached, or is gone for good: why.
    Lost(String),
    /// The same, as it wants another credential: why, and the address where a user gets one.
    Unauthorized {
        why: String,
        page: Option<String>,
        /// castor can log in there by itself.
        can_log_in: bool,
    },
    /// It is not to be started: why.
    Off(String),
    /// It is not to be started in a folder that is not trusted.
    Untrusted,
}

/// A question of a server that waits for the next turn.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingQuestion {
    pub elicitation: ElicitationId,
    pub server: String,
    pub request: ElicitationRequest,
}
