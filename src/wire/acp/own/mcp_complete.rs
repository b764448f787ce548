//! `_castor/mcp/complete`: a client asks what an MCP server suggests for an argument of its prompts and resources.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use castor_base::{
    ids::SessionId,
    server_offer::{CompletedOffer, Completion, CompletionQuery},
};

/// Longest part of a question, in bytes.
const MAX_TEXT: usize = 4 * 1024;
const MAX_ARGUMENTS: usize = 32;

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
pub(in crate::acp) struct CompleteMethod {
    params: Option<Params>,
    result: Option<CompleteResult>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "OfCompletion")]
struct Params {
    session_id: SessionId,
    /// As the configuration names it.
    server: String,
    /// The server's own name of a prompt.
    prompt: Option<String>,
    /// In place of `prompt`: a resource template, as the server lists it.
    template: Option<String>,
    /// The argument, or the place in the template.
    argument: String,
    /// What is typed of it so far.
    #[serde(default)]
    value: String,
    /// The other arguments, as far as they are known.
    #[serde(default)]
    arguments: BTreeMap<String, String>,
    #[serde(rename = "_meta")]
    #[allow(dead_code, reason = "nothing of it is known")]
    meta: Option<Map<String, Value>>,
}

/// What the server suggests, at most 100 values.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompleteResult {
    values: Vec<String>,
    /// How many there are, where the server says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    has_more: bool,
}

impl From<Completion> for CompleteResult {
    fn from(it: Completion) -> Self {
        Self { values: it.values, total: it.total, has_more: it.has_more }
    }
}

/// A session, a server of it, and the question.
pub type CompleteParams = (SessionId, String, CompletionQuery);

/// # Errors
/// See [`crate::acp::params`]; also where it is not one of a prompt and a template, or too long.
pub fn read_complete(params: Option<&RawValue>) -> Result<CompleteParams, String> {
    let Params { session_id, server, prompt, template, argument, value, arguments, .. } = crate::acp::params(params)?;
    let of = match (prompt, template) {
        (Some(it), None) => CompletedOffer::Prompt(it),
        (None, Some(it)) => CompletedOffer::Template(it),
        _ => return Err("name either `prompt` or `template`".to_owned()),
    };
    let texts = arguments.iter().flat_map(|(name, it)| [name, it]).chain([&argument, &value]);
    if arguments.len() > MAX_ARGUMENTS || texts.into_iter().any(|it| it.len() > MAX_TEXT) {
        return Err(format!("there are {MAX_ARGUMENTS} arguments at most, of {MAX_TEXT} bytes at most"));
    }
    Ok((session_id, server, CompletionQuery { of, argument, value, known: arguments }))
}
