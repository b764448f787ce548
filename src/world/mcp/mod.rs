//! MCP servers: connected, listed, called, closed. The crate rmcp speaks the protocol; its types stay in here.

mod asking;
mod call;
mod catalog;
pub mod elicitation;
mod found;
mod line;
mod names;
mod output;
mod server;
mod sse;
mod stdio;
mod web;

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

pub use call::{Call, Connection, Hold};
pub use catalog::ServerTool;
pub use line::line;
pub use names::Names;
pub use server::serve;

use crate::{
    base::{
        elicitation::{Reply, Shows, Wanted},
        fs::BoxFuture,
        mcp::McpLink,
        path::AbsPath,
        sandbox::Confinement,
        trust::Bound,
    },
    world::{http::Http, process::Groups},
};

/// What makes two servers the same one.
#[derive(Clone, PartialEq)]
pub struct Launch {
    pub link: McpLink,
    /// Where a process works; two sessions in different folders do not share one.
    pub cwd: AbsPath,
    /// What a process sees beside its own variables.
    pub env: Arc<Vec<(String, String)>>,
    /// What a process may do; `None`: what the user may.
    pub confined: Option<Arc<Confinement>>,
    /// What a process runs of a workspace: it starts while that is what was trusted.
    pub scripts: Bound,
    /// For connecting and for listing.
    pub timeout: Duration,
}

/// The hands that servers are reached with.
#[derive(Clone)]
pub struct Doors {
    pub groups: Groups,
    pub http: Arc<Http>,
    /// What servers may ask the user for.
    pub shows: Shows,
}

/// What becomes of a server: `Ready` and `Down` in turn, `Changed` any number of times between them, `Lost` at most once
/// and last. A server that is stopped says nothing more. Questions come at any time, from others than the rest.
pub enum News {
    Ready {
        connection: Connection,
        tools: Vec<ServerTool>,
    },
    Changed(Vec<ServerTool>),
    Asks(Ask),
    /// The question of that number is no longer asked.
    TakesBack(u64),
    /// What the user went to the page of that name for is done.
    Completed(String),
    /// It is gone: why, in one line for people. The next call starts it again, and `Ready` or `Lost` follows.
    Down(String),
    /// It could not be reached, or is gone for good: why, in one line for people.
    Lost(String),
}

/// A question to the user. Dropped: nobody can be asked.
pub struct Ask {
    /// Of this server's.
    pub number: u64,
    pub wanted: Wanted,
    pub reply: oneshot::Sender<Reply>,
}

/// Where news go.
pub type Tell = Arc<dyn Fn(News) -> BoxFuture<'static, ()> + Send + Sync>;
