//! The host of a session: the process's options, client, store, models and tools that sessions are built from.

use super::session_resources::SessionResources;
use crate::{
    app::{model::model_factory::ModelFactory, settings::options::Options},
    base::tool::ToolSpec,
    wire::acp::initialize::Client,
    world::{process::Groups, secrets::Env, store::SessionStore},
};

pub struct SessionHost<'a> {
    pub options: &'a Options,
    pub env: &'a Env,
    pub models: &'a mut ModelFactory,
    pub client: Client,
    pub store: &'a SessionStore,
    pub groups: &'a Groups,
    /// What the model is told of the tools that castor brings.
    pub builtins: Vec<ToolSpec>,
    /// The session as it is, if it is live.
    pub live: Option<&'a SessionResources>,
    pub now_ms: u64,
}
