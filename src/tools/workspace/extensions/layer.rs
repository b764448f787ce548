//! The settings layer of an extension: servers, hooks and excluded tools, weaker than the user's.

use serde_json::{Map, Value, json};

use super::{Extension, contents::Contents};
use crate::workspace::{
    Warning,
    extension_files::HOOKS,
    jsonc,
    settings::{Layer, Scope, expand_user_vars},
};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;

/// Variables of hooks that say where the extension and the workspace are. A shell fills them in: a name of a folder that
/// stood in the line itself would be read as part of it.
const EXTENSION_PATH: &str = "extensionPath";
const WORKSPACE_PATH: &str = "workspacePath";
const SEPARATOR: &str = "pathSeparator";

/// Its servers, hooks and excluded tools. `env`: what variables in it may name, which was shown when the user said yes.
pub(super) fn of(it: &Extension, contents: &Contents, env: &Env, workspace: &AbsPath) -> (Layer, Option<Warning>) {
    let mut env = env.clone();
    it.values.iter().for_each(|(name, value)| env.set(name, value));
    let places = [
        (EXTENSION_PATH, it.folder.to_string()),
        (WORKSPACE_PATH, workspace.to_string()),
        (SEPARATOR, "/".to_owned()),
        ("/", "/".to_owned()),
    ];
    let (hooks, warning) = hooks(it, contents);
    let raw = json!({
        "mcpServers": contents.manifest.servers,
        "hooks": hooks,
        "tools": { "exclude": contents.manifest.exclude_tools },
    });
    let mut value = raw.clone();
    if let Some(servers) = value.get_mut("mcpServers") {
        fill(servers, &places);
        expand_user_vars(servers, &env);
        for server in servers.as_object_mut().into_iter().flat_map(|it| it.values_mut()) {
            give_values(server, it);
        }
    }
    if let Some(hooks) = value.get_mut("hooks") {
        equip_hooks(hooks, it, &places);
    }
    (Layer { scope: Scope::Extension, file: it.manifest_file(), raw, value }, warning)
}

/// A program of its own has the values that the user gave; what the manifest itself says wins.
fn give_values(server: &mut Value, it: &Extension) {
    let Some(server) = server.as_object_mut().filter(|it| it.contains_key("command")) else { return };
    let env = server.entry("env").or_insert_with(|| Value::Object(Map::new()));
    let Some(env) = env.as_object_mut() else { return };
    for (name, value) in &it.values {
        env.entry(name.clone()).or_insert_with(|| value.as_str().into());
    }
}

/// `${extensionPath}` and its kind, in each text.
fn fill(value: &mut Value, places: &[(&str, String)]) {
    match value {
        Value::String(text) if text.contains("${") => {
            for (name, place) in places {
                *text = text.replace(&format!("${{{name}}}"), place);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|it| fill(it, places)),
        Value::Object(members) => members.values_mut().for_each(|it| fill(it, places)),
        _ => (),
    }
}

fn hooks(it: &Extension, contents: &Contents) -> (Value, Option<Warning>) {
    let file = it.folder.join(HOOKS);
    let Some(bytes) = contents.config.get(&file) else { return (json!({}), None) };
    let warn = |message: String| {
        (
            json!({}),
            Some(Warning { origin: file.to_string(), at: None, key: None, message: format!("{message}; ignored") }),
        )
    };
    let mut found = match jsonc::parse(bytes) {
        Ok(it) => it,
        Err(it) => return warn(format!("{}:{}: {}", it.line, it.column, it.message)),
    };
    match found.get_mut("hooks").map(Value::take).filter(Value::is_object) {
        Some(it) => (it, None),
        None => warn("should hold an object `hooks`".to_owned()),
    }
}

/// Their variables: the values that the user gave, and where things are.
fn equip_hooks(hooks: &mut Value, it: &Extension, places: &[(&str, String)]) {
    let groups = hooks.as_object_mut().into_iter().flat_map(|it| it.values_mut());
    let groups = groups.filter_map(Value::as_array_mut).flatten();
    let all = groups.filter_map(|it| it.get_mut("hooks")).filter_map(Value::as_array_mut).flatten();
    for hook in all.filter_map(Value::as_object_mut) {
        if let Some(Value::String(command)) = hook.get_mut("command") {
            *command = command.replace("${/}", "/");
        }
        let mut env = hook.remove("env").and_then(|it| it.as_object().cloned()).unwrap_or_default();
        env.values_mut().for_each(|it| fill(it, places));
        for (name, value) in it.values.iter().map(|(name, it)| (name.as_str(), it)) {
            env.entry(name).or_insert_with(|| value.as_str().into());
        }
        let named = places.iter().filter(|(name, _)| *name != "/");
        env.extend(named.map(|(name, place)| ((*name).to_owned(), place.as_str().into())));
        hook.insert("env".to_owned(), Value::Object(env));
    }
}
