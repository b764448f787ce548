//! Answers of an agent, and its questions about calls, as a client reads them.

use serde::{Deserialize, Serialize};

use super::{CallUpdate, SessionCost, SessionOption, TokenUsage};
use crate::wire::acp::{
    message_meta::QuestionMeta,
    meta::{PromptAnswerMeta, StopDetail},
};

/// The answer to `session/prompt`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptAnswer {
    pub stop_reason: Option<String>,
    pub usage: Option<TokenUsage>,
    #[serde(rename = "_meta")]
    pub meta: Option<PromptAnswerMeta>,
}

impl PromptAnswer {
    /// Why the turn ended.
    pub fn stop_reason(&self) -> &str {
        self.stop_reason.as_deref().unwrap_or("end_turn")
    }

    /// What the prompt cost; `None`: that is not known.
    pub fn cost(&self) -> Option<SessionCost> {
        self.meta.as_ref()?.cost()
    }

    /// Why the turn ended, where the stop reason does not tell.
    pub fn stop_detail(&self) -> Option<StopDetail> {
        self.meta.as_ref()?.castor.stop
    }
}

impl PromptAnswerMeta {
    /// What the prompt cost; `None`: that is not known.
    pub fn cost(&self) -> Option<SessionCost> {
        let cost = self.castor.cost.as_ref()?;
        Some(SessionCost { amount: cost.amount.as_dollars(), currency: Some(cost.currency.clone().into_owned()) })
    }
}

/// The answer to a request that opened a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenedAnswer {
    pub session_id: Option<String>,
    pub modes: Option<SessionModes>,
    pub models: Option<SessionModels>,
    pub config_options: Option<Vec<SessionOption>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionModes {
    pub current_mode_id: Option<String>,
    pub available_modes: Vec<SessionModeName>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionModeName {
    pub id: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionModels {
    pub current_model_id: Option<String>,
}

/// The params of `session/request_permission`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PermissionQuestion {
    pub session_id: Option<String>,
    pub tool_call: Option<CallUpdate>,
    pub options: Vec<PermissionChoice>,
    #[serde(rename = "_meta")]
    pub meta: QuestionMeta,
}

/// The params of `elicitation/create`, but for what is to be filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FormQuestion {
    pub session_id: Option<String>,
    pub tool_call_id: Option<String>,
    pub message: String,
    #[serde(rename = "_meta")]
    pub meta: QuestionMeta,
}

/// An answer that the agent takes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionChoice {
    pub option_id: String,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub kind: String,
}
