//! Identifiers of effects, prompts and questions: cheap to clone and opaque.

use std::{fmt, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(it: &str) -> Self {
                Self(it.into())
            }
        }

        impl From<String> for $name {
            fn from(it: String) -> Self {
                Self(it.into())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// A conversation; also the name of its log file, so only `[A-Za-z0-9_-]` (see [`SessionId::is_safe`]).
    SessionId
);
text_id!(
    /// One tool call, as model, client and log know it.
    CallId
);
text_id!(
    /// One checkpoint of a session: taken before a call, or by a restore. Unique within the session.
    CheckpointId
);
text_id!(
    /// One message of the agent; all its chunks carry it.
    MessageId
);
text_id!(
    /// The activity that one prompt starts, from `agent_start` to `agent_end`.
    StreamId
);
text_id!(
    /// One run of an agent; `castor` is the main agent.
    AgentId
);
text_id!(
    /// The runs of agents from the main agent's child to this one, joined by points: `a.b` is a child of a child.
    ThreadId
);

impl AgentId {
    pub fn main() -> Self {
        Self::from("castor")
    }
}

impl ThreadId {
    /// The run that the thread belongs to.
    pub fn agent(&self) -> AgentId {
        AgentId::from(self.0.rsplit('.').next().unwrap_or_default())
    }
}

impl SessionId {
    /// The session of a sub-agent, below the one that the user speaks to.
    pub fn child(&self, name: &str) -> Self {
        Self::from(format!("{}/{name}", self.root()))
    }

    /// The session that the user speaks to: itself, unless it is a sub-agent's.
    pub fn root(&self) -> Self {
        self.0.split_once('/').map_or_else(|| self.clone(), |(root, _)| root.into())
    }

    pub fn is_child(&self) -> bool {
        self.0.contains('/')
    }

    /// Tells whether it may name a log: it is safe, or the child of a safe one.
    pub fn is_log_name(&self) -> bool {
        match self.0.split_once('/') {
            Some((root, name)) => Self::from(root).is_safe() && Self::from(name).is_safe(),
            None => self.is_safe(),
        }
    }

    /// Longest id that is accepted from outside, in bytes.
    pub const MAX_LEN: usize = 128;

    /// Tells whether the id may be used as a file name: an id from a client is text from outside.
    pub fn is_safe(&self) -> bool {
        let text = self.as_str();
        !text.is_empty()
            && text.len() <= Self::MAX_LEN
            && text.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_')
    }
}

/// Something the engine asked the world to do; unique within a session's life in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EffectId(pub u64);

/// A prompt as the client sent it; the loop knows which request to answer with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PromptId(pub u64);

/// A question to the user that is not settled yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QuestionId(pub u64);

/// A server's open question to the user; unique in this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElicitationId(pub u64);

impl fmt::Display for ElicitationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "e{}", self.0)
    }
}

/// Fewest characters by which a session may be named. Numbers of turns have fewer.
pub const MIN_NAMED: usize = 5;

/// Whether `word` names a session: its id, or the beginning or the end of it.
pub fn is_named(id: &str, word: &str) -> bool {
    id == word || (word.len() >= MIN_NAMED && (id.starts_with(word) || id.ends_with(word)))
}
