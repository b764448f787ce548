//! Errors of an agent, as a client reads them.

use serde_json::{Value, value::RawValue};

use super::{PromptAnswer, read_text};
use crate::acp::meta::PromptAnswerMeta;

/// The error with which an agent answers a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentError {
    pub code: i32,
    pub message: String,
    /// castor's name for the kind of failure, such as `auth`.
    pub kind: Option<String>,
    /// The words in the error's data: many agents write "Internal error" and put there what happened.
    pub detail: Option<String>,
    /// The costs of a prompt that failed.
    pub meta: Option<PromptAnswerMeta>,
}

impl AgentError {
    pub fn read(code: i32, message: &str, data: Option<&RawValue>) -> Self {
        let meta = data.and_then(|it| read_text::<PromptAnswer>(it.get())).and_then(|it| it.meta);
        let data: Value = data.and_then(|it| read_text(it.get())).unwrap_or_default();
        let text = |key: &&str| data.get(key).and_then(Value::as_str).map(str::to_owned);
        let detail = data.as_str().map(str::to_owned);
        Self {
            code,
            message: message.to_owned(),
            kind: text(&"kind"),
            detail: detail.or_else(|| ["details", "detail", "message"].iter().find_map(text)),
            meta,
        }
    }
}
