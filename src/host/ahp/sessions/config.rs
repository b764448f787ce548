//! Options of castor's sessions as AHP has them: models and agents apart, the rest as a session's configuration.

use std::collections::HashMap;

use ahp::ahp_types::{
    actions::{RootAgentsChangedAction, StateAction},
    commands::ResolveSessionConfigResult,
    common::JsonObject,
    state::{
        AgentCapabilities, AgentCustomization, AgentInfo, ChildCustomization, Customization,
        MultipleWorkingDirectoriesCapability, PluginCustomization, RootState, SessionConfigPropertySchema,
        SessionConfigSchema, SessionConfigState, SessionModelInfo,
    },
};
use serde_json::{Value, json};

use crate::ahp::clients::channel::PROVIDER;
use castor_wire::acp::client::{OfferedCommand, OfferedValue, OpenedAnswer, OptionSetting, SessionOption, read_value};

const MODEL: &str = "model";
const AUTO: &str = "auto";
pub const AGENT: &str = "agent";
/// castor's own agent, as the option calls it.
pub const OWN_AGENT: &str = "default";
pub const AGENT_URI: &str = "castor-agent:/";

/// Options and commands of a session, as its agent said last.
#[derive(Default)]
pub struct SessionOffer {
    pub options: Vec<SessionOption>,
    pub commands: Vec<OfferedCommand>,
}

/// A value that can be chosen.
struct Choice<'o> {
    value: &'o str,
    name: &'o str,
    description: Option<&'o String>,
}

/// The values of an option. castor has no groups of them.
fn choices(option: &SessionOption) -> impl Iterator<Item = Choice<'_>> {
    option.options.iter().flatten().filter_map(|it| match it {
        OfferedValue::Group { .. } => None,
        OfferedValue::One { value, name, description } => {
            Some(Choice { value, name: name.as_ref().unwrap_or(value), description: description.as_ref() })
        }
    })
}

fn is_flag(option: &SessionOption) -> bool {
    matches!(option.current_value, Some(OptionSetting::Flag(_)))
}

fn takes(option: &SessionOption, value: &Value) -> bool {
    match choices(option).next() {
        None => value.is_boolean() == is_flag(option),
        Some(_) => choices(option).any(|it| value == it.value),
    }
}

/// The options in an answer; `None`: there are none.
pub fn read_options(of: Value) -> Option<Vec<SessionOption>> {
    let answer: OpenedAnswer = read_value(of)?;
    answer.config_options
}

pub fn root_state() -> RootState {
    RootState { agents: vec![agent(Vec::new())], active_sessions: None, terminals: None, config: None, meta: None }
}

fn agent(models: Vec<SessionModelInfo>) -> AgentInfo {
    // One chat for each session; its first folder stays.
    let folders =
        with_none!(MultipleWorkingDirectoriesCapability { immutable_primary: Some(true) } primary_replacement);
    let capabilities = with_none!(AgentCapabilities { multiple_working_directories: Some(folders) } multiple_chats);
    with_none!(AgentInfo {
        provider: PROVIDER.to_owned(),
        display_name: "castor".to_owned(),
        description: "Reads, changes and runs code in your folders".to_owned(),
        models,
        capabilities: Some(capabilities),
    } protected_resources customizations)
}

pub fn agents_changed(agents: Vec<AgentInfo>) -> StateAction {
    StateAction::RootAgentsChanged(RootAgentsChangedAction { agents })
}

/// The one agent with its models, if these are options of a session.
pub fn agents_with(options: &[SessionOption]) -> Option<Vec<AgentInfo>> {
    let model = options.iter().find(|it| it.id == MODEL)?;
    // A client begins with the first, or with one that has the name of its own choice between models.
    let begins = |it: &Choice<'_>| Some(it.value) == model.chosen();
    let mut offered: Vec<Choice<'_>> = choices(model).filter(|it| begins(it) || it.value != AUTO).collect();
    offered.sort_by_key(|it| !begins(it));
    Some(vec![agent(offered.into_iter().map(model_info).collect())])
}

fn model_info(it: Choice<'_>) -> SessionModelInfo {
    with_none!(SessionModelInfo {
        id: it.value.to_owned(),
        provider: PROVIDER.to_owned(),
        name: it.name.to_owned(),
    } max_context_window max_output_tokens max_prompt_tokens supports_vision policy_state config_schema meta)
}

/// Models and agents are chosen by message.
fn is_config(it: &SessionOption) -> bool {
    it.id != MODEL && it.id != AGENT
}

pub fn values(options: &[SessionOption]) -> JsonObject {
    options.iter().filter(|it| is_config(it)).map(|it| (it.id.clone(), json!(it.current_value))).collect()
}

pub fn session_config(options: &[SessionOption]) -> SessionConfigState {
    SessionConfigState { schema: schema(options), values: values(options) }
}

/// Before there is a session. What the client filled in goes before the defaults.
pub fn resolved(options: &[SessionOption], wanted: Option<&JsonObject>) -> ResolveSessionConfigResult {
    let mut values = values(options);
    values.extend(wanted.map(|it| fitting(options, it)).unwrap_or_default());
    ResolveSessionConfigResult { schema: schema(options), values }
}

/// Those of a client's values that the schema has. Some clients send options of other agents, whatever the schema says.
pub fn fitting(options: &[SessionOption], wanted: &JsonObject) -> JsonObject {
    let fits =
        |name: &String, value: &Value| options.iter().any(|it| is_config(it) && it.id == *name && takes(it, value));
    wanted.iter().filter(|(name, value)| fits(name, value)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

fn schema(options: &[SessionOption]) -> SessionConfigSchema {
    let properties: HashMap<_, _> =
        options.iter().filter(|it| is_config(it)).map(|it| (it.id.clone(), property(it))).collect();
    SessionConfigSchema { r#type: "object".to_owned(), properties, required: None }
}

fn property(it: &SessionOption) -> SessionConfigPropertySchema {
    let is_list = choices(it).next().is_some();
    let descriptions = || choices(it).map(|it| it.description.cloned().unwrap_or_default()).collect();
    with_none!(SessionConfigPropertySchema {
        r#type: if is_flag(it) { "boolean" } else { "string" }.to_owned(),
        title: it.name.clone(),
        description: it.description.clone(),
        default: Some(json!(it.current_value)),
        r#enum: is_list.then(|| choices(it).map(|it| json!(it.value)).collect()),
        enum_labels: is_list.then(|| choices(it).map(|it| it.name.to_owned()).collect()),
        enum_descriptions: is_list.then(descriptions),
        session_mutable: Some(true),
    } read_only items min_items max_items properties required additional_properties enum_dynamic)
}

/// The agents that a message may name, in one container; `None`: there is castor's own alone.
pub fn agent_customizations(options: &[SessionOption]) -> Option<Vec<Customization>> {
    let option = options.iter().find(|it| it.id == AGENT)?;
    let agents = choices(option).filter(|it| it.value != OWN_AGENT).map(|it| {
        ChildCustomization::Agent(with_none!(AgentCustomization {
            id: format!("castor-agent-{}", it.value),
            uri: format!("{AGENT_URI}{}", it.value),
            name: it.name.to_owned(),
            enabled: Some(true),
            description: it.description.cloned(),
        } icons range meta model tools disable_model_invocation disable_user_invocation))
    });
    let plugin = plugin("castor-agents".to_owned(), AGENT_URI.to_owned(), "castor's agents".to_owned());
    Some(vec![Customization::Plugin(PluginCustomization { children: Some(agents.collect()), ..plugin })])
}

pub fn plugin(id: String, uri: String, name: String) -> PluginCustomization {
    with_none!(PluginCustomization {
        id,
        uri,
        name,
    } icons range meta client_id load children enablement version)
}

/// The agent that a URI names, if the session has it.
pub fn agent_named<'o>(options: &'o [SessionOption], uri: &str) -> Option<&'o str> {
    let name = uri.strip_prefix(AGENT_URI)?;
    let option = options.iter().find(|it| it.id == AGENT)?;
    choices(option).map(|it| it.value).find(|it| *it == name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{agents_with, read_options};

    /// Some clients choose nothing and begin with the first: it is the one that the session has.
    #[test]
    fn the_sessions_model_stands_first() {
        let offered = |current: &str| {
            let choices = ["pro", "auto", "flash"].map(|it| json!({"value": it, "name": it}));
            let model =
                json!({"id": "model", "name": "Model", "type": "select", "currentValue": current, "options": choices});
            let options = read_options(json!({ "configOptions": [model] })).unwrap();
            agents_with(&options).unwrap()[0].models.iter().map(|it| it.id.clone()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(offered("flash"), "flash pro");
        assert_eq!(offered("pro"), "pro flash");
        assert_eq!(offered("auto"), "auto pro flash");
    }
}
