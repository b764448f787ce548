//! Answers of an agent, and its questions about calls, as a client reads them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallUpdate, SessionCost, SessionOption, TokenUsage};
use crate::acp::meta::{PromptAnswerMeta, StopDetail, messages::QuestionMeta};

/// The answer to `initialize`: the agent, and what it can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Greeting {
    pub protocol_version: Option<u64>,
    pub agent_info: AgentName,
    pub agent_capabilities: AgentAbilities,
    pub auth_methods: Vec<SignInWay>,
    #[serde(rename = "_meta")]
    pub meta: GreetingMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentName {
    pub name: Option<String>,
    pub title: Option<String>,
    pub version: Option<String>,
}

/// A way to sign in, in the agent's words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SignInWay {
    pub name: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentAbilities {
    pub load_session: Ability,
    pub prompt_capabilities: PromptAbilities,
    pub session_capabilities: SessionAbilities,
    #[serde(rename = "_meta")]
    pub meta: GreetingMeta,
}

/// The kinds of content that an agent takes beside text and links.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PromptAbilities {
    pub image: bool,
    pub audio: bool,
    pub embedded_context: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionAbilities {
    pub additional_directories: Ability,
    pub system_prompt: Ability,
    pub resume: Ability,
    pub list: Ability,
}

/// An ability: an agent that has it says true, or an object with its details.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Ability {
    Details(Map<String, Value>),
    Flag(bool),
    #[default]
    Nothing,
}

impl Ability {
    pub fn is_there(&self) -> bool {
        matches!(self, Self::Details(_) | Self::Flag(true))
    }
}

/// What castor says of itself; steering stood among its abilities before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GreetingMeta {
    pub steering: SteeringAbility,
    pub castor: CastorAbilities,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SteeringAbility {
    pub supported: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CastorAbilities {
    /// It lists what calls changed in files.
    pub checkpoints: bool,
}

impl Greeting {
    pub fn is_castor(&self) -> bool {
        self.agent_info.name.as_deref() == Some("castor")
    }

    /// Whether words of the user's reach a turn that is under way.
    pub fn takes_steering(&self) -> bool {
        self.meta.steering.supported || self.agent_capabilities.meta.steering.supported
    }

    /// Names of the ways to sign in.
    pub fn sign_in_names(&self) -> impl Iterator<Item = &str> {
        self.auth_methods.iter().filter_map(|it| it.name.as_deref())
    }
}

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
    #[serde(rename = "_meta", skip_serializing)]
    meta: OpenedMeta,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct OpenedMeta {
    castor: HubFacts,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct HubFacts {
    serve: HubPrompts,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct HubPrompts {
    prompts: u64,
}

impl OpenedAnswer {
    /// How many prompts of other clients the hub has open for the session.
    pub fn n_prompts(&self) -> u64 {
        self.meta.castor.serve.prompts
    }
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

/// One page of the answer to `session/list`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionPage {
    pub sessions: Vec<AgentSession>,
    pub next_cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentSession {
    pub session_id: String,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub title: Option<String>,
    #[serde(default)]
    pub updated_at: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub archived: bool,
}

/// The answer to `_session/steering`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SteeringAnswer {
    pub outcome: Option<String>,
    pub message: Option<String>,
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
