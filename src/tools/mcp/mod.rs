//! MCP servers: connect, list what they offer, call tools, ask for prompts and resources, close. The crate rmcp speaks the protocol; its types stay in here.

pub mod auth;
mod call;
mod catalog;
mod client;
mod completion;
mod connection;
mod elicitation_call;
mod error;
mod exchange;
mod incoming;
mod listing;
mod names;
mod output;
mod query;
mod required_input;
mod required_page;
mod resources;
mod restart;
mod sampling;
mod sampling_call;
mod sandbox_findings;
mod server;
mod subscriptions;
mod transport;

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

pub use call::{Connection, ProcessHold, ServerCall};
pub use catalog::{ServerLists, ServerTool};
pub use connection::open_link;
pub use names::ToolNames;
pub use resources::describe_resources;
pub use server::{StartFailure, run_server, try_server};
pub use transport::client_transport::{RelayError, RelayReply, RelayedRequest};

use self::auth::LoginTarget;
use castor_base::{
    elicitation::{ElicitationSupport, Reply},
    fs::BoxFuture,
    held_program::HoldReason,
    mcp::McpLink,
    path::AbsPath,
    sampling::ServerAsk,
    sandbox::Confinement,
    trust::ScriptHashes,
};
use castor_hands::{
    http::Http,
    process::{Groups, outside::OutsideGate},
    secrets::Env,
};

/// The identity of a server: two sessions with equal ones share it.
#[derive(Clone, PartialEq)]
pub struct ServerIdentity {
    pub link: McpLink,
    /// The folder where a process works; two sessions in different folders do not share one.
    pub cwd: AbsPath,
    /// Variables that a process sees beside its own.
    pub env: Arc<Vec<(String, String)>>,
    /// The confinement of a process; `None`: it may do what the user may.
    pub confined: Option<Arc<Confinement>>,
    /// A gate: where it is open at the process's start, the process may do what the user may all the same.
    pub gate: Option<OutsideGate>,
    /// The hashes of scripts of a workspace that a process runs: it starts while they are what was trusted.
    pub scripts: ScriptHashes,
    /// The folders that it reads when it asks where the session works.
    pub roots: Arc<[AbsPath]>,
    /// For connecting and for listing.
    pub timeout: Duration,
    /// The most restarts in a row.
    pub max_restarts: u32,
    /// It may have a model answer something.
    pub samples: bool,
}

/// The hands that servers are reached with.
#[derive(Clone)]
pub struct HostHandles {
    pub groups: Groups,
    pub http: Arc<Http>,
    /// The questions that servers may ask the user.
    pub elicitation: ElicitationSupport,
    /// castor's own folder, where tokens are.
    pub home: AbsPath,
    pub env: Env,
}

impl HostHandles {
    /// The target of a login at a server, where castor can log in there.
    pub fn login_target(&self, link: &McpLink) -> Option<LoginTarget> {
        let (url, oauth) = link.login()?;
        let (home, http, env) = (self.home.clone(), self.http.clone(), self.env.clone());
        Some(LoginTarget { url: url.to_owned(), oauth, home, http, env })
    }
}

/// An event of a server: `Ready` and `Down` in turn, `Down` also before it was ever there, `Changed` any number of
/// times between them, `Lost` at most once and last. A server that is stopped says nothing more. Questions come at any
/// time, from others than the rest.
pub enum ServerEvent {
    Ready {
        connection: Connection,
        lists: Box<ServerLists>,
    },
    ListsChanged(ServerLists),
    Question(ServerQuestion),
    /// The question of that number is no longer asked.
    QuestionWithdrawn(u64),
    /// For the server that the client is.
    Relay(Box<RelayedRequest>),
    /// Nobody waits any more for the answer to the request of that number.
    RelayWithdrawn(i64),
    /// A resource that was read is another one now.
    ResourceUpdated(String),
    /// The user has done what the page of that name was for.
    PageCompleted(String),
    /// The sandbox holds it, which the user hears of.
    Held(HoldReason),
    /// It is gone, or could not be started; another try, `Ready` or `Lost` follows.
    Down(ServerOutage),
    /// It could not be reached, or is gone for good: why, in one line for people.
    Lost(String),
    /// The same, as it wants another credential than castor has.
    Unauthorized(String),
}

/// A server that is gone and is started again.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOutage {
    /// The reason in one line for people.
    pub why: String,
    /// Until the next try.
    pub pause: Duration,
    /// The number of that try, from 1.
    pub number: u32,
}

/// A question to the user or a model. Dropped: no user can be asked.
pub struct ServerQuestion {
    /// The number of this server.
    pub number: u64,
    pub request: ServerAsk,
    pub reply: oneshot::Sender<Reply>,
}

/// The receiver of server events.
pub type EventSink = Arc<dyn Fn(ServerEvent) -> BoxFuture<'static, ()> + Send + Sync>;
