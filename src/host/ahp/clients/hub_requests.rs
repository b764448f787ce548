//! Requests of the host to the hub that have no answer yet, each with what the answer is needed for.

use ahp::ahp_types::common::JsonObject;
use serde_json::Value;

use crate::ahp::sessions::TreeAction;
use castor_wire::jsonrpc::message::{RequestId, RpcError};

/// The agent's answer to a request of the host.
pub type HubOutcome = Result<Value, RpcError>;

/// A request of a client that is answered when the hub answers.
#[derive(Clone, Debug)]
pub struct WaitingClient {
    pub from: u64,
    pub id: RequestId,
}

/// A request of the host, by what follows from its answer.
pub struct HubRequest {
    /// Empty where the request is about none.
    pub session: String,
    pub next: Next,
}

/// What follows from an answer of the hub.
pub enum Next {
    Nothing,
    /// A session began, with options that its client chose.
    Create(WaitingClient, Option<JsonObject>),
    /// The options of a session that began are set.
    Configure(WaitingClient),
    /// A session is joined that may be open in the agent.
    Attach,
    /// The list says in which folder a session is.
    FindFolder,
    Load,
    /// The session said what its clients kept there, and is open then.
    ReadState,
    /// A session is opened again for the prompt of this turn.
    Revive(String),
    /// The agent of this turn is chosen.
    ChooseAgent(String),
    /// This turn ended.
    EndTurn(String),
    /// Words for a running turn are taken or not.
    Steer(SteeredWords),
    /// The agent did what an action of a client wants.
    Apply(ClientAct),
    List(WaitingClient, ListPage),
    Dispose(WaitingClient),
    /// A client that begins a session learns its options. The values that were filled in go before the defaults.
    Resolve(WaitingClient, Option<JsonObject>),
    /// The root's list of models is known.
    ReadModels,
    Checkpoints,
    /// A change of a file is undone.
    Revert(WaitingClient, FileVersion),
    /// The messages of the user are known, behind one of which a client cuts.
    FindCut(Box<WantedCut>),
    /// The tools that the model has are known.
    Tools,
    Customizations(CustomizationList),
    /// A client's action on a customization holds.
    Switch(ClientAct),
    /// The session is closed, to be opened with other folders.
    CloseForFolders(Box<FolderChange>),
    Reopen(Box<FolderChange>),
    /// The history is known, after another client cut the conversation.
    ReadAnew,
}

/// An action of a client that waits for the agent.
pub struct ClientAct {
    pub from: u64,
    pub act: Box<TreeAction>,
}

impl Next {
    /// A client's action holds when the agent is done.
    pub fn apply(from: u64, act: TreeAction) -> Self {
        Self::Apply(ClientAct { from, act: Box::new(act) })
    }
}

/// Words for a running turn: the pending message, and its text.
pub struct SteeredWords {
    pub message: String,
    pub text: String,
}

/// What was changed in a file, as one word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileVersion {
    pub uri: String,
    pub version: String,
}

/// A list of the agent's of what clients know as customizations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CustomizationList {
    Servers,
    Definitions,
}

/// A cut that a client wants.
pub struct WantedCut {
    pub from: u64,
    pub act: TreeAction,
    /// How many turns stay.
    pub n_kept: usize,
}

/// Other folders that a client wants for a session.
pub struct FolderChange {
    pub from: u64,
    pub act: TreeAction,
    /// The folders beside the first.
    pub more: Vec<String>,
    pub before: Vec<String>,
}

/// A page of the agent's list, and the rows that are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// The agent's own cursor of that page.
    pub cursor: Option<String>,
    pub skip: usize,
    pub limit: Option<usize>,
}
