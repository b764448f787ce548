//! Progress of a session's turns, beside the chat's tree: the part that grows, calls, prompts of other clients.

use std::collections::{BTreeMap, VecDeque};

use serde_json::Value;

/// What the host knows of a session's turns beside the chat's tree.
#[derive(Default)]
pub struct TurnProgress {
    pub started_ms: u64,
    /// The part of the answer that grows.
    pub part: Option<GrowingPart>,
    pub n_parts: u64,
    pub n_turns: u64,
    pub calls: BTreeMap<String, CallFacts>,
    /// Cancelled prompts that the agent has not ended yet: what comes until then is theirs, and not shown.
    pub n_cancelled: usize,
    /// Prompts of other clients of the hub, by their turns: the first one runs.
    pub other_prompts: VecDeque<String>,
    /// Blocks of one of these that is not whole yet.
    pub blocks: Vec<String>,
    /// The turn that runs goes on after an error.
    pub resumes: bool,
    /// How full the context is, and what the session cost.
    pub context: Option<Value>,
    /// The conversation was cut by another client: it is read anew when no turn runs.
    pub is_stale: bool,
    /// The messages of users, while they are read for a cut.
    pub user_messages: Option<Vec<(String, String)>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingPart {
    pub id: String,
    pub is_thought: bool,
    /// As ACP names it.
    pub message: String,
}

/// What is known of a call.
#[derive(Clone, Debug, Default)]
pub struct CallFacts {
    pub title: String,
    pub input: Option<String>,
    pub kind: Option<String>,
}

impl CallFacts {
    /// What an update says anew.
    pub fn take(&mut self, update: &Value) {
        if let Some(it) = update.get("title").and_then(Value::as_str) {
            it.clone_into(&mut self.title);
        }
        if let Some(it) = update.get("kind").and_then(Value::as_str) {
            self.kind = Some(it.to_owned());
        }
        if let Some(it) = update.get("rawInput") {
            self.input = Some(it.to_string());
        }
    }
}
