//! What a folder's settings would run: in words for people, and which files these words name.

mod launchers;
mod places;
mod words;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    base::path::AbsPath,
    world::secrets::{self, Env},
};

use places::Places;

/// How deep hooks are looked for.
const MAX_DEPTH: usize = 6;
/// What means the workspace's folder in hooks.
const PROJECT: &[&str] =
    &["CASTOR_PROJECT_DIR", "GEMINI_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "GEMINI_CWD", "PWD", "INIT_CWD"];

/// In the place of a program's name that is no matter of the line.
const VARIABLE: &str = "a program that a variable names";

/// What settings would start or reach, in words.
pub fn starts(settings: &Value) -> Vec<String> {
    let mut res = Vec::new();
    let servers = settings.get("mcpServers").and_then(Value::as_object);
    for (name, it) in servers.into_iter().flatten() {
        let text = |key: &str| it.get(key).and_then(Value::as_str);
        let place = ["httpUrl", "url"].into_iter().find_map(text).map(str::to_owned);
        let args = it.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let command = || Some(text("command").into_iter().chain(args).collect::<Vec<_>>().join(" "));
        res.push(format!("MCP server {name}: {}{}", variables(it), place.or_else(command).unwrap_or_default()));
    }
    for key in ["discoveryCommand", "callCommand"] {
        let command = settings.get("tools").and_then(|it| it.get(key)).and_then(Value::as_str);
        res.extend(command.map(|it| format!("tools.{key}: {it}")));
    }
    let mut commands = Vec::new();
    if let Some(hooks) = settings.get("hooks") {
        hook_commands(hooks, MAX_DEPTH, &mut commands);
    }
    res.extend(commands.iter().map(|(command, set)| format!("hook: {set}{command}")));
    res
}

/// `NAME=value ` of what it brings along: `BASH_ENV=./x` runs, too. Keys are not shown.
fn variables(it: &Value) -> String {
    let set = it.get("env").and_then(Value::as_object).into_iter().flatten();
    set.filter_map(|(name, it)| Some((name, it.as_str()?)))
        .map(|(name, it)| {
            format!(
                "{name}={} ",
                if secrets::name_looks_secret(name) || secrets::value_looks_secret(it) { "…" } else { it }
            )
        })
        .collect()
}

fn hook_commands(value: &Value, depth: usize, out: &mut Vec<(String, String)>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            out.extend(members.get("command").and_then(Value::as_str).map(|it| (it.to_owned(), variables(value))));
            members.values().for_each(|it| hook_commands(it, depth, out));
        }
        Value::Array(items) => items.iter().for_each(|it| hook_commands(it, depth, out)),
        _ => (),
    }
}

/// Which files the words name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Paths that they may mean, whether there is a file or not.
    pub files: Vec<AbsPath>,
    /// Those of them that run if they are there.
    pub would_run: BTreeSet<AbsPath>,
    /// Why it may be more than these.
    pub more: Option<&'static str>,
    /// Files that are there, and name what runs next.
    pub in_turn: BTreeSet<String>,
    /// Programs of which nobody knows what they find in the folder.
    pub unseen: BTreeSet<String>,
}

/// The files that settings of the folder `base` would run. Only a shell knows what a line means: whatever looks like the
/// name of a file is taken for one.
pub fn files(settings: &Value, base: &AbsPath, env: &Env) -> Named {
    let mut variables: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut places = Places::new(base);
    let servers = settings.get("mcpServers").and_then(Value::as_object);
    for (_, it) in servers.into_iter().flatten() {
        let cwd = it.get("cwd").and_then(Value::as_str).map_or_else(|| base.clone(), |cwd| base.join(cwd));
        let args = it.get("args").and_then(Value::as_array).into_iter().flatten();
        // `NODE_OPTIONS` and its kind name files that run, too.
        let env_words = it.get("env").and_then(Value::as_object).into_iter().flatten().map(|(_, it)| it);
        let words: Vec<&str> = it.get("command").into_iter().chain(args).filter_map(Value::as_str).collect();
        let set = it.get("env").and_then(Value::as_object).into_iter().flatten();
        let set = set.filter_map(|(name, it)| Some(places::search_folders(name, it.as_str()?)));
        places.take_words(&words, &cwd, &set.flatten().collect::<Vec<_>>());
        let meanings = |name: &str| meanings(name, &cwd, env, &variables);
        let mut is_script = false;
        for text in words {
            places.take_text(text, &cwd);
            // No shell reads the words of a server, unless one is told to, or one of them is a line by itself.
            if is_script || is_line(text) {
                places.take_line(text, &meanings, &cwd, None);
            }
            is_script = text.starts_with('-') && text.ends_with('c');
        }
        env_words.filter_map(Value::as_str).for_each(|it| places.take_value(it, &meanings, &cwd));
    }
    let mut commands = Vec::new();
    if let Some(hooks) = settings.get("hooks") {
        hook_commands(hooks, MAX_DEPTH, &mut commands);
        hook_variables(hooks, MAX_DEPTH, &mut variables);
    }
    let tools =
        ["discoveryCommand", "callCommand"].into_iter().filter_map(|it| settings.get("tools")?.get(it)?.as_str());
    let meanings = |name: &str| meanings(name, base, env, &variables);
    let values = || variables.iter().flat_map(|(name, it)| it.iter().map(move |it| (name.as_str(), it.as_str())));
    places.imports = values().flat_map(|(name, it)| places::search_folders(name, it)).collect();
    for line in commands.iter().map(|it| it.0.as_str()).chain(tools) {
        places.take_text(&words::without_written(line), base);
        places.take_line(line, &meanings, base, Some(VARIABLE));
    }
    values().for_each(|(_, it)| places.take_value(it, &meanings, base));
    places.named
}

/// Whether a word may be a line by itself.
fn is_line(text: &str) -> bool {
    text.contains([' ', '\t', '\n', '$'])
}

/// What a variable may stand for: most that are not set mean the folder.
fn meanings(name: &str, cwd: &AbsPath, env: &Env, variables: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut res: Vec<String> = variables.get(name).cloned().unwrap_or_default();
    match env.get(name) {
        Some(it) => res.push(it.to_owned()),
        None if name != "HOME" && !PROJECT.contains(&name) => res.push(String::new()),
        None => (),
    }
    if env.get(name).is_none() || PROJECT.contains(&name) {
        res.push(cwd.to_string());
    }
    res
}

/// Those that hooks bring along, whichever of them does.
fn hook_variables(value: &Value, depth: usize, out: &mut BTreeMap<String, Vec<String>>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            let env = members.get("env").and_then(Value::as_object).into_iter().flatten();
            for (name, it) in env.filter_map(|(name, it)| Some((name, it.as_str()?))) {
                out.entry(name.clone()).or_default().push(it.to_owned());
            }
            members.values().for_each(|it| hook_variables(it, depth, out));
        }
        Value::Array(items) => items.iter().for_each(|it| hook_variables(it, depth, out)),
        _ => (),
    }
}

#[cfg(test)]
mod tests;
