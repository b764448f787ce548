//! MCP servers: connected, listed, called, closed. The crate rmcp speaks the protocol; its types stay in here.

mod call;
mod catalog;
pub mod elicitation;
mod names;
mod output;
mod server;
mod sse;
mod stdio;
mod web;

use std::{sync::Arc, time::Duration};

pub use call::{Call, Connection};
pub use catalog::ServerTool;
pub use names::Names;
pub use server::serve;

use crate::{
    base::{fs::BoxFuture, mcp::McpLink, path::AbsPath},
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
    /// For connecting and for listing.
    pub timeout: Duration,
}

/// The hands that servers are reached with.
#[derive(Clone)]
pub struct Doors {
    pub groups: Groups,
    pub http: Arc<Http>,
}

/// What becomes of a server, in this order: `Ready` once or not at all, `Changed` any number of times, `Lost` at most
/// once and last. A server that is stopped says nothing more.
pub enum News {
    Ready {
        connection: Connection,
        tools: Vec<ServerTool>,
    },
    Changed(Vec<ServerTool>),
    /// It could not be reached, or is gone: why, in one line for people.
    Lost(String),
}

/// Where news go.
pub type Tell = Box<dyn Fn(News) -> BoxFuture<'static, ()> + Send + Sync>;
