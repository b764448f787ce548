//! The principal of a session, and the link from a sub-agent's session to its call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{CallId, SessionId};

/// Who acts in a session: rules may name a sub-agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Principal {
    /// The agent that the user speaks to.
    #[default]
    Root,
    /// A sub-agent, by its name, in a session of its own.
    Agent(String),
}

impl Principal {
    pub fn is_root(&self) -> bool {
        *self == Self::Root
    }

    /// The sub-agent's name.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Self::Root => None,
            Self::Agent(name) => Some(name),
        }
    }
}

/// The call of another session that an agent's run belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChildLink {
    pub session: SessionId,
    pub call: CallId,
    /// The agents above it, from the main one down; logs of old do not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<String>,
}
