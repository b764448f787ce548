//! Requests of the AHP host to the hub that have no answer yet, each with what the answer is needed for.

use ahp::ahp_types::common::JsonObject;
use serde_json::Value;

use super::hosted_session::TreeAction;
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
pub enum HubRequest {
    Nothing,
    /// A session begins, with options that its client chose.
    Create {
        asker: WaitingClient,
        session: String,
        config: Option<JsonObject>,
    },
    /// The options of a session that began.
    Configure {
        asker: WaitingClient,
        session: String,
    },
    /// A session that may be open in the agent.
    Attach {
        session: String,
    },
    /// The list says in which folder a session is.
    FindFolder {
        session: String,
    },
    Load {
        session: String,
    },
    /// What the session keeps for its clients; it is open then.
    ReadState {
        session: String,
    },
    /// A session is opened again for a prompt.
    Revive {
        session: String,
        turn: String,
    },
    ChooseAgent {
        session: String,
        turn: String,
    },
    Prompt {
        session: String,
        turn: String,
    },
    Steer {
        session: String,
        message: String,
        text: String,
    },
    /// An action of a client that holds when the agent did it.
    Apply {
        from: u64,
        session: String,
        act: Box<TreeAction>,
    },
    List {
        asker: WaitingClient,
        page: ListPage,
    },
    Dispose {
        asker: WaitingClient,
        session: String,
    },
    /// Options of sessions in a folder, for a client that begins one.
    Resolve {
        asker: WaitingClient,
        wanted: Option<Value>,
    },
    /// The same for the root's list of models.
    ReadModels,
    Checkpoints {
        session: String,
    },
    Revert {
        asker: WaitingClient,
        session: String,
        /// The file and what was changed in it.
        change: (String, String),
    },
    /// The messages of the user, of which one is to be cut behind.
    FindCut {
        session: String,
        cut: Box<WantedCut>,
    },
    /// The tools that the model has.
    Tools {
        session: String,
    },
    Customizations {
        session: String,
        list: CustomizationList,
    },
    /// A client's action on one of them.
    Switch {
        from: u64,
        session: String,
        act: Box<TreeAction>,
    },
    /// The session is closed, to be opened with other folders.
    CloseForFolders {
        session: String,
        change: Box<FolderChange>,
    },
    Reopen {
        session: String,
        change: Box<FolderChange>,
    },
    /// The history, as it is after another client cut it.
    ReadAnew {
        session: String,
    },
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
    /// Those beside the first.
    pub more: Vec<String>,
    pub before: Vec<String>,
}

/// A page of the agent's list, and which of it is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListPage {
    /// The agent's own cursor of that page.
    pub cursor: Option<String>,
    pub skip: usize,
    pub limit: Option<usize>,
}
