//! What a folder's settings would run: in words for people, and which files these words name.

use serde_json::Value;

use crate::base::path::AbsPath;

/// How deep hooks are looked for.
const MAX_DEPTH: usize = 6;
/// More words than these are not looked at.
const MAX_WORDS: usize = 2000;
/// What stands between the words of a command line, and around paths in them.
const ENDS: &[char] = &[' ', '\t', '\n', '=', ',', ';', ':', '&', '|', '<', '>', '(', ')', '`', '\'', '"'];

/// What settings would start or reach, in words.
pub fn starts(settings: &Value) -> Vec<String> {
    let mut res = Vec::new();
    let servers = settings.get("mcpServers").and_then(Value::as_object);
    for (name, it) in servers.into_iter().flatten() {
        let text = |key: &str| it.get(key).and_then(Value::as_str);
        let place = ["httpUrl", "url"].into_iter().find_map(text).map(str::to_owned);
        let args = it.get("args").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let command = || Some(text("command").into_iter().chain(args).collect::<Vec<_>>().join(" "));
        res.push(format!("MCP server {name}: {}", place.or_else(command).unwrap_or_default()));
    }
    for key in ["discoveryCommand", "callCommand"] {
        let command = settings.get("tools").and_then(|it| it.get(key)).and_then(Value::as_str);
        res.extend(command.map(|it| format!("tools.{key}: {it}")));
    }
    let mut commands = Vec::new();
    if let Some(hooks) = settings.get("hooks") {
        hook_commands(hooks, MAX_DEPTH, &mut commands);
    }
    res.extend(commands.iter().map(|it| format!("hook: {it}")));
    res
}

fn hook_commands(value: &Value, depth: usize, out: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::Object(members) => {
            out.extend(members.get("command").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|it| hook_commands(it, depth, out));
        }
        Value::Array(items) => items.iter().for_each(|it| hook_commands(it, depth, out)),
        _ => (),
    }
}

/// Paths that the words may mean, whether there is a file or not; `false`: not all words were looked at. Only a shell
/// knows what a line means: whatever looks like the name of a file is taken for one.
pub fn files(settings: &Value, base: &AbsPath) -> (Vec<AbsPath>, bool) {
    let mut lines: Vec<(AbsPath, &str)> = Vec::new();
    let servers = settings.get("mcpServers").and_then(Value::as_object);
    for (_, it) in servers.into_iter().flatten() {
        let cwd = it.get("cwd").and_then(Value::as_str).map_or_else(|| base.clone(), |cwd| base.join(cwd));
        let args = it.get("args").and_then(Value::as_array).into_iter().flatten();
        // `NODE_OPTIONS` and its kind name files that run, too.
        let env = it.get("env").and_then(Value::as_object).into_iter().flatten().map(|(_, it)| it);
        let texts = it.get("command").into_iter().chain(args).chain(env).filter_map(Value::as_str);
        lines.extend(texts.map(|it| (cwd.clone(), it)));
    }
    let mut commands = Vec::new();
    if let Some(hooks) = settings.get("hooks") {
        hook_commands(hooks, MAX_DEPTH, &mut commands);
    }
    let tools =
        ["discoveryCommand", "callCommand"].into_iter().filter_map(|it| settings.get("tools")?.get(it)?.as_str());
    lines.extend(commands.iter().map(String::as_str).chain(tools).map(|it| (base.clone(), it)));
    let words = lines.iter().flat_map(|(cwd, line)| {
        // The whole, too: names may have blanks in them.
        let parts = line.split(ENDS).filter(|it| it.len() < line.len());
        std::iter::once(*line).chain(parts).filter(|it| !it.is_empty() && !it.starts_with('-')).map(move |it| (cwd, it))
    });
    let mut res: Vec<AbsPath> = Vec::new();
    for (at, (cwd, word)) in words.enumerate() {
        if at == MAX_WORDS {
            return (res, false);
        }
        let path = cwd.join(without_variable(word));
        // The machine's own programs are not the folder's.
        let ours = !word.starts_with('/') || path.is_within(base);
        if ours && !res.contains(&path) {
            res.push(path);
        }
    }
    (res, true)
}

/// `$PROJECT_DIR/hook.sh`: most of these variables mean the folder.
fn without_variable(word: &str) -> &str {
    let rest = word.strip_prefix('$').and_then(|it| it.split_once('/'));
    rest.map_or(word, |(_, it)| it)
}
