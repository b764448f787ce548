//! Draft methods `session/rewind` and `session/edit_prompt` (RFD session-rewind).

use agent_client_protocol_schema::v1::ContentBlock;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{
    content::PromptContent,
    ids::{MessageId, SessionId},
};

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
#[schemars(rename = "DraftRewind")]
pub(in crate::acp) struct RewindMethod {
    params: Option<KeptMessage>,
    result: Option<Rewound>,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
#[schemars(rename = "DraftEditPrompt")]
pub(in crate::acp) struct EditMethod {
    params: Option<EditParams>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "DraftRewindParams")]
pub struct KeptMessage {
    pub session_id: SessionId,
    /// The last message that stays: that of the user or the agent with which a turn ends.
    pub to_message_id: MessageId,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// What remains of the conversation.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "DraftRewound")]
pub struct Rewound {
    /// Of the user and the agent.
    pub remaining_message_count: usize,
    pub last_message_id: MessageId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "DraftEditParams")]
struct EditParams {
    session_id: SessionId,
    /// A message of the user: it and all after it are gone.
    message_id: MessageId,
    /// Blocks, as in a prompt.
    #[schemars(with = "Vec<Map<String, Value>>")]
    new_content: Vec<ContentBlock>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// A prompt in the place of an earlier one.
pub struct EditedPrompt {
    pub session: SessionId,
    pub message: MessageId,
    pub content: PromptContent,
}

/// Reads session/rewind.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_rewind(params: Option<&RawValue>) -> Result<KeptMessage, String> {
    crate::acp::params(params)
}

/// Reads session/edit_prompt.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_edit(params: Option<&RawValue>) -> Result<EditedPrompt, String> {
    let EditParams { session_id: session, message_id: message, new_content, .. } = crate::acp::params(params)?;
    Ok(EditedPrompt { session, message, content: crate::acp::content::prompt(new_content) })
}
