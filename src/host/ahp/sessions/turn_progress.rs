//! Progress of a session's turns, beside the chat's tree: the part that grows, calls, prompts of other clients.

use std::collections::VecDeque;

use castor_client::Conversation;
use castor_wire::acp::client::ContextUsage;

/// Facts about a session's turns that the chat's tree has not.
#[derive(Default)]
pub struct TurnProgress {
    pub started_ms: u64,
    /// The part of the answer that grows.
    pub part: Option<GrowingPart>,
    pub n_parts: u64,
    pub n_turns: u64,
    /// The turn as the agent tells it.
    pub talk: Conversation,
    /// Cancelled prompts that the agent has not ended yet: what comes until then is theirs, and not shown.
    pub n_cancelled: usize,
    /// Prompts of other clients of the hub, by their turns: the first one runs.
    pub other_prompts: VecDeque<String>,
    /// Blocks of such a prompt that is not whole yet.
    pub blocks: Vec<String>,
    /// The turn that runs goes on after an error.
    pub resumes: bool,
    /// How full the context is, and what the session cost.
    pub context: Option<ContextUsage>,
    /// The conversation was cut by another client, and is read anew when no turn runs.
    pub is_stale: bool,
    /// The messages of users, while they are read for a cut.
    pub user_messages: Option<Vec<UserWords>>,
}

/// A message of the user: id and text.
pub struct UserWords {
    pub message: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrowingPart {
    pub id: String,
    pub is_thought: bool,
    /// As ACP names it.
    pub message: String,
}
