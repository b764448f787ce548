//! The host of a session: the process's options, client, store, models and tools that sessions are built from.

use super::session_resources::SessionResources;
use crate::{model::model_factory::ModelFactory, settings::options::Options};
use castor_base::tool::ToolSpec;
use castor_hands::{process::Groups, secrets::Env};
use castor_store::sessions::SessionStore;
use castor_wire::acp::initialize::Client;

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
