//! Options of castor's sessions as AHP has them: models and agents apart, the rest as a session's configuration.

use std::collections::HashMap;

use ahp::ahp_types::{
    actions::{RootAgentsChangedAction, StateAction},
    commands::ResolveSessionConfigResult,
    common::JsonObject,
    state::{
        AgentCapabilities, AgentInfo, Customization, MultipleWorkingDirectoriesCapability, RootState,
        SessionConfigPropertySchema, SessionConfigSchema, SessionConfigState, SessionModelInfo,
    },
};
use serde_json::{Value, json};

use super::{channel::PROVIDER, with_members};
use castor_wire::acp::client::{OfferedCommand, OfferedValue, OpenedAnswer, SessionOption, read_value};

const MODEL: &str = "model";
const AUTO: &str = "auto";
pub const AGENT: &str = "agent";
/// castor's own agent, as the option calls it.
pub const OWN_AGENT: &str = "default";
pub const AGENT_URI: &str = "castor-agent:/";

/// What a session offers, as its agent said last.
#[derive(Default)]
pub struct SessionOffer {
    pub options: Vec<ConfigOption>,
    pub commands: Vec<OfferedCommand>,
}

/// One option of a session. castor has no groups of values.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigOption {
    pub id: String,
    name: String,
    description: Option<String>,
    pub current_value: Value,
    options: Vec<OptionChoice>,
}

#[derive(Clone, Debug, PartialEq)]
struct OptionChoice {
    value: String,
    name: String,
    description: Option<String>,
}

impl From<&SessionOption> for ConfigOption {
    fn from(it: &SessionOption) -> Self {
        let choice = |it: &OfferedValue| match it {
            OfferedValue::Group { .. } => None,
            OfferedValue::One { value, name, description } => Some(OptionChoice {
                value: value.clone(),
                name: name.clone().unwrap_or_else(|| value.clone()),
                description: description.clone(),
            }),
        };
        Self {
            id: it.id.clone(),
            name: it.name.clone(),
            description: it.description.clone(),
            current_value: json!(it.current_value),
            options: it.options.iter().flatten().filter_map(choice).collect(),
        }
    }
}

impl ConfigOption {
    fn takes(&self, value: &Value) -> bool {
        match self.options.is_empty() {
            true => value.is_boolean() == self.current_value.is_boolean(),
            false => self.options.iter().any(|it| *value == it.value),
        }
    }
}

/// The options in an answer; `None`: it has none.
pub fn read_options(of: &Value) -> Option<Vec<ConfigOption>> {
    let answer: OpenedAnswer = read_value(of.clone())?;
    Some(answer.config_options?.iter().map(ConfigOption::from).collect())
}

pub fn root_state() -> RootState {
    RootState { agents: vec![agent(Vec::new())], active_sessions: None, terminals: None, config: None, meta: None }
}

fn agent(models: Vec<SessionModelInfo>) -> AgentInfo {
    AgentInfo {
        provider: PROVIDER.to_owned(),
        display_name: "castor".to_owned(),
        description: "Reads, changes and runs code in your folders".to_owned(),
        models,
        protected_resources: None,
        customizations: None,
        // One chat for each session; its first folder stays.
        capabilities: Some(AgentCapabilities {
            multiple_chats: None,
            multiple_working_directories: Some(MultipleWorkingDirectoriesCapability {
                immutable_primary: Some(true),
                primary_replacement: None,
            }),
        }),
    }
}

/// The models, if these are options of a session.
pub fn agents_changed(options: &[ConfigOption]) -> Option<StateAction> {
    let model = options.iter().find(|it| it.id == MODEL)?;
    let info = |it: &OptionChoice| SessionModelInfo {
        id: it.value.clone(),
        provider: PROVIDER.to_owned(),
        name: it.name.clone(),
        max_context_window: None,
        max_output_tokens: None,
        max_prompt_tokens: None,
        supports_vision: None,
        policy_state: None,
        config_schema: None,
        meta: None,
    };
    // A client begins with the first, or with one that has the name of its own choice between models.
    let begins = |it: &OptionChoice| Some(it.value.as_str()) == model.current_value.as_str();
    let mut offered: Vec<&OptionChoice> = model.options.iter().filter(|it| begins(it) || it.value != AUTO).collect();
    offered.sort_by_key(|it| !begins(it));
    let models = offered.into_iter().map(info).collect();
    Some(StateAction::RootAgentsChanged(RootAgentsChangedAction { agents: vec![agent(models)] }))
}

/// Models and agents are chosen by message.
fn is_config(it: &ConfigOption) -> bool {
    it.id != MODEL && it.id != AGENT
}

pub fn values(options: &[ConfigOption]) -> JsonObject {
    options.iter().filter(|it| is_config(it)).map(|it| (it.id.clone(), it.current_value.clone())).collect()
}

pub fn session_config(options: &[ConfigOption]) -> SessionConfigState {
    SessionConfigState { schema: schema(options), values: values(options) }
}

/// Before there is a session. What the client filled in goes before the defaults.
pub fn resolved(options: &[ConfigOption], wanted: Option<&JsonObject>) -> ResolveSessionConfigResult {
    let mut values = values(options);
    values.extend(wanted.map(|it| fitting(options, it)).unwrap_or_default());
    ResolveSessionConfigResult { schema: schema(options), values }
}

/// What of a client's values the schema has. Some clients send options of other agents, whatever the schema says.
pub fn fitting(options: &[ConfigOption], wanted: &JsonObject) -> JsonObject {
    let fits =
        |name: &String, value: &Value| options.iter().any(|it| is_config(it) && it.id == *name && it.takes(value));
    wanted.iter().filter(|(name, value)| fits(name, value)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn schema(options: &[ConfigOption]) -> SessionConfigSchema {
    let properties: HashMap<_, _> =
        options.iter().filter(|it| is_config(it)).map(|it| (it.id.clone(), property(it))).collect();
    SessionConfigSchema { r#type: "object".to_owned(), properties, required: None }
}

fn property(it: &ConfigOption) -> SessionConfigPropertySchema {
    let is_list = !it.options.is_empty();
    let descriptions = || it.options.iter().map(|it| it.description.clone().unwrap_or_default()).collect();
    SessionConfigPropertySchema {
        r#type: if it.current_value.is_boolean() { "boolean" } else { "string" }.to_owned(),
        title: it.name.clone(),
        description: it.description.clone(),
        default: Some(it.current_value.clone()),
        r#enum: is_list.then(|| it.options.iter().map(|it| json!(it.value)).collect()),
        enum_labels: is_list.then(|| it.options.iter().map(|it| it.name.clone()).collect()),
        enum_descriptions: is_list.then(descriptions),
        read_only: None,
        items: None,
        min_items: None,
        max_items: None,
        properties: None,
        required: None,
        additional_properties: None,
        enum_dynamic: None,
        session_mutable: Some(true),
    }
}

/// The agents that a message may name, in one container; `None`: there is castor's own alone.
pub fn agent_customizations(options: &[ConfigOption]) -> Option<Vec<Customization>> {
    let option = options.iter().find(|it| it.id == AGENT)?;
    let agents = option.options.iter().filter(|it| it.value != OWN_AGENT).map(|it| {
        let agent = json!({
            "type": "agent", "id": format!("castor-agent-{}", it.value), "uri": format!("{AGENT_URI}{}", it.value),
            "name": it.name, "enabled": true,
        });
        with_members(agent, [("description", it.description.as_ref().map(|it| json!(it)))])
    });
    let children: Vec<Value> = agents.collect();
    let plugin = json!({
        "type": "plugin", "id": "castor-agents", "uri": AGENT_URI, "name": "castor's agents", "children": children,
    });
    serde_json::from_value(json!([plugin])).ok()
}

/// The agent that a URI names, if the session has it.
pub fn agent_named<'o>(options: &'o [ConfigOption], uri: &str) -> Option<&'o str> {
    let name = uri.strip_prefix(AGENT_URI)?;
    let option = options.iter().find(|it| it.id == AGENT)?;
    option.options.iter().map(|it| it.value.as_str()).find(|it| *it == name)
}

#[cfg(test)]
mod tests {
    use ahp::ahp_types::actions::StateAction;
    use serde_json::json;

    use super::{agents_changed, read_options};

    /// Some clients choose nothing and begin with the first: it is the one that the session has.
    #[test]
    fn the_sessions_model_stands_first() {
        let offered = |current: &str| {
            let choices = ["pro", "auto", "flash"].map(|it| json!({"value": it, "name": it}));
            let model =
                json!({"id": "model", "name": "Model", "type": "select", "currentValue": current, "options": choices});
            let options = read_options(&json!({ "configOptions": [model] })).unwrap();
            let Some(StateAction::RootAgentsChanged(it)) = agents_changed(&options) else { panic!("{current}") };
            it.agents[0].models.iter().map(|it| it.id.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(offered("flash"), "flash pro");
        assert_eq!(offered("pro"), "pro flash");
        assert_eq!(offered("auto"), "auto pro flash");
    }
}
