//! The setting `modelConfigs`: model aliases and parameters, in Gemini CLI's words.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::Getter;
use castor_base::model_table::ModelTable;
use castor_engine::routing::{
    alias::{Alias, ModelConfig},
    aliases::{Aliases, Override},
    utility_models::MCP_SAMPLING,
};
use castor_tools::workspace::Warning;

const KEY: &str = "modelConfigs";
/// Weakest first.
const ALIASES: [&str; 2] = ["aliases", "customAliases"];
const OVERRIDES: [&str; 2] = ["overrides", "customOverrides"];

pub(super) fn read(get: &Getter<'_>, warnings: &mut Vec<Warning>) -> Aliases {
    let value = get.value(KEY);
    let mut warn = |name: &str, message: String| {
        let key = Some(format!("{KEY}.{name}"));
        warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message });
    };
    let mut aliases = BTreeMap::new();
    for group in ALIASES {
        for (name, it) in value.get(group).and_then(Value::as_object).into_iter().flatten() {
            match alias(it) {
                Ok(it) => _ = aliases.insert(name.clone(), it),
                Err(why) => warn(&format!("{group}.{name}"), format!("{why}; ignored")),
            }
        }
    }
    if let Some(model) = get.text("mcp.sampling.model").filter(|it| !it.is_empty()) {
        let config = ModelConfig { model: Some(model), ..ModelConfig::default() };
        aliases.insert(MCP_SAMPLING.to_owned(), Alias { extends: None, config });
    }
    let mut overrides = Vec::new();
    for group in OVERRIDES {
        for (at, it) in value.get(group).and_then(Value::as_array).into_iter().flatten().enumerate() {
            match one_override(it) {
                Ok(it) => overrides.push(it),
                Err(why) => warn(&format!("{group}[{at}]"), format!("{why}; ignored")),
            }
        }
    }
    let (res, broken) = Aliases::new(aliases, overrides, ModelTable::built_in());
    broken.into_iter().for_each(|(name, why)| warn(&name, format!("{why}; ignored")));
    res
}

fn alias(it: &Value) -> Result<Alias, String> {
    let members = it.as_object().ok_or("should be an object {…}")?;
    let extends = text(members, "extends")?;
    Ok(Alias { extends, config: config(members)? })
}

fn one_override(it: &Value) -> Result<Override, String> {
    let members = it.as_object().ok_or("should be an object {…}")?;
    let wanted = members.get("match").and_then(Value::as_object).ok_or("should have a `match` {…}")?;
    let (model, scope) = (text(wanted, "model")?, text(wanted, "overrideScope")?);
    let is_retry = wanted.get("isRetry").and_then(Value::as_bool);
    Ok(Override { model, scope, is_retry, config: config(members)? })
}

fn text(members: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::String(it)) if !it.trim().is_empty() => Ok(Some(it.trim().to_owned())),
        Some(_) => Err(format!("`{name}` should be a text that is not empty")),
    }
}

fn config(members: &Map<String, Value>) -> Result<ModelConfig, String> {
    let Some(it) = members.get("modelConfig") else { return Ok(ModelConfig::default()) };
    let it = it.as_object().ok_or("`modelConfig` should be an object {…}")?;
    let generation = match it.get("generateContentConfig") {
        None => Map::new(),
        Some(it) => it.as_object().ok_or("`generateContentConfig` should be an object {…}")?.clone(),
    };
    for (name, value) in &generation {
        check_parameter(name, value)?;
    }
    Ok(ModelConfig { model: text(it, "model")?, generation })
}

/// A parameter of the wrong type would silently do nothing.
fn check_parameter(name: &str, value: &Value) -> Result<(), String> {
    let inside = |key: &str| value.get(key).filter(|it| !it.is_null());
    let (fits, wanted) = match name {
        "temperature" => (value.as_f64().is_some_and(|it| (0.0..=2.0).contains(&it)), "a number from 0 to 2"),
        "topP" => (value.as_f64().is_some_and(|it| (0.0..=1.0).contains(&it)), "a number from 0 to 1"),
        "topK" | "maxOutputTokens" => {
            (value.as_u64().is_some_and(|it| it > 0 && u32::try_from(it).is_ok()), "a whole number, at least 1")
        }
        "stopSequences" => (value.as_array().is_some_and(|it| it.iter().all(Value::is_string)), "a list of texts"),
        "thinkingConfig" => {
            let budget = inside("thinkingBudget").is_none_or(|it| it.as_i64().is_some_and(|it| it >= -1));
            let level = inside("thinkingLevel").is_none_or(Value::is_string);
            (value.is_object() && budget && level, "an object with `thinkingBudget` or `thinkingLevel`")
        }
        // What is not for castor to send does not hurt.
        _ => return Ok(()),
    };
    fits.then_some(()).ok_or_else(|| format!("`{name}` should be {wanted}"))
}
