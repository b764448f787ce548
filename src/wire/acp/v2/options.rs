//! Config options and slash commands of version 2.

use agent_client_protocol_schema::{
    v1,
    v2::{
        AvailableCommand, AvailableCommandInput, Command, SessionConfigOption, SessionConfigOptionValue,
        SetSessionConfigOptionRequest, SetSessionConfigOptionResponse, TextCommandInput,
    },
};
use serde_json::{Value, value::RawValue};

use crate::acp::{
    options::{self, ChosenOptions, OfferedOptions, SetOptionParams},
    params,
};

/// The complete list.
pub(super) fn offered(offer: &OfferedOptions, chosen: &ChosenOptions) -> Vec<SessionConfigOption> {
    options(options::config_options(offer, chosen))
}

/// The same but for the names of two ids.
pub(super) fn options(all: Vec<v1::SessionConfigOption>) -> Vec<SessionConfigOption> {
    let option = |it: v1::SessionConfigOption| {
        let mut value = serde_json::to_value(it).ok()?;
        let fields = value.as_object_mut()?;
        let id = fields.shift_remove("id")?;
        fields.shift_insert(0, "configId".to_owned(), id);
        serde_json::from_value(Value::take(&mut value)).ok()
    };
    all.into_iter().filter_map(option).collect()
}

pub fn response(offer: &OfferedOptions, chosen: &ChosenOptions) -> SetSessionConfigOptionResponse {
    SetSessionConfigOptionResponse::new(offered(offer, chosen))
}

/// Reads session/set_config_option.
///
/// # Errors
/// See [`params`]; also for a type of value that castor does not know.
pub fn read_set_option(given: Option<&RawValue>) -> Result<SetOptionParams, String> {
    let it: SetSessionConfigOptionRequest = params(given)?;
    let value = match it.value {
        SessionConfigOptionValue::Id { value } => v1::SessionConfigOptionValue::value_id(value.to_string()),
        SessionConfigOptionValue::Boolean { value } => v1::SessionConfigOptionValue::boolean(value),
        _ => return Err("value: send one of the type \"id\" or \"boolean\"".to_owned()),
    };
    Ok(SetOptionParams::new((&*it.session_id.0).into(), &it.config_id.to_string(), value))
}

pub(super) fn commands(all: Vec<v1::AvailableCommand>) -> Vec<AvailableCommand> {
    let command = |it: v1::AvailableCommand| {
        let hint = match it.input {
            Some(v1::AvailableCommandInput::Unstructured(it)) => Some(it.hint),
            _ => None,
        };
        let input = hint.map(|it| AvailableCommandInput::Text(TextCommandInput::new(it)));
        AvailableCommand::Command(Command::new(it.name, it.description).input(input))
    };
    all.into_iter().map(command).collect()
}
