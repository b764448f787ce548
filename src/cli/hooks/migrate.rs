//! Migration of hooks to castor's settings, with a report of what does not fit; first Claude Code's.

use serde_json::{Map, Value, json};

use castor_tools::workspace::agents::CLAUDE_TOOLS;

/// Events of Claude Code, and ours.
const EVENTS: &[(&str, &str)] = &[
    ("PreToolUse", "BeforeTool"),
    ("PostToolUse", "AfterTool"),
    ("UserPromptSubmit", "BeforeAgent"),
    ("Stop", "AfterAgent"),
    ("PreCompact", "PreCompress"),
    ("SessionStart", "SessionStart"),
    ("SessionEnd", "SessionEnd"),
    ("Notification", "Notification"),
];
/// What of a hook has a meaning here.
const MEMBERS: &[&str] = &["type", "command", "timeout", "name", "description", "env", "statusMessage"];
/// Claude Code counts seconds.
const MS: u64 = 1_000;

/// The migrated settings so far.
#[derive(Default)]
pub(super) struct Migration {
    hooks: Map<String, Value>,
    notes: Vec<String>,
    renames: bool,
}

impl Migration {
    pub fn add_settings(&mut self, settings: &Value) {
        let env = settings.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
        if settings.get("disableAllHooks") == Some(&Value::Bool(true)) {
            self.note("disableAllHooks switches them off there; here that is hooksConfig.enabled = false");
        }
        let events = settings.get("hooks").and_then(Value::as_object);
        for (event, groups) in events.into_iter().flatten() {
            let Some((_, ours)) = EVENTS.iter().find(|(theirs, _)| theirs == event) else {
                self.note(&format!("{event}: castor has no such event; left out"));
                continue;
            };
            for group in groups.as_array().into_iter().flatten() {
                self.group(event, ours, group, &env);
            }
        }
    }

    pub(super) fn note(&mut self, text: &str) {
        if !self.notes.iter().any(|it| it == text) {
            self.notes.push(text.to_owned());
        }
    }

    fn group(&mut self, event: &str, ours: &str, group: &Value, env: &Map<String, Value>) {
        let hooks = group.get("hooks").and_then(Value::as_array).into_iter().flatten();
        let hooks: Vec<Value> = hooks.filter_map(|it| self.hook(event, it, env)).collect();
        if hooks.is_empty() {
            return;
        }
        let matcher = group.get("matcher").and_then(Value::as_str).filter(|it| !it.is_empty() && *it != "*");
        for matcher in self.matchers(event, matcher) {
            let mut res = Map::new();
            res.extend(matcher.map(|it| ("matcher".to_owned(), Value::from(it))));
            res.insert("hooks".to_owned(), hooks.clone().into());
            self.add_group(ours, res);
        }
    }

    pub(super) fn add_group(&mut self, event: &str, group: Map<String, Value>) {
        let all = self.hooks.entry(event).or_insert_with(|| json!([]));
        if let Value::Array(all) = all {
            all.push(group.into());
        }
    }

    /// One matcher may become several: triggers are names here, and expressions there.
    fn matchers(&mut self, event: &str, matcher: Option<&str>) -> Vec<Option<String>> {
        let Some(matcher) = matcher else { return vec![None] };
        match event {
            "PreToolUse" | "PostToolUse" => vec![Some(self.tools(event, matcher))],
            "SessionStart" | "SessionEnd" | "PreCompact" => {
                let known = |it: &&str| match event {
                    "SessionStart" => ["startup", "resume", "clear"].contains(it),
                    "SessionEnd" => ["clear", "logout", "prompt_input_exit", "other"].contains(it),
                    _ => ["manual", "auto"].contains(it),
                };
                let (known, odd): (Vec<&str>, Vec<&str>) = matcher.split('|').map(str::trim).partition(known);
                for it in odd {
                    self.note(&format!("{event}: castor has no trigger {it:?}; left out"));
                }
                known.into_iter().map(|it| Some(it.to_owned())).collect()
            }
            _ => {
                self.note(&format!("{event}: {matcher:?} is not looked at; the hook runs each time"));
                vec![None]
            }
        }
    }

    /// There a matcher is the whole name, here a part of it.
    fn tools(&mut self, event: &str, matcher: &str) -> String {
        let mut res = String::new();
        let mut word = String::new();
        for letter in matcher.chars().chain([' ']) {
            match letter.is_alphanumeric() || letter == '_' {
                true => word.push(letter),
                false => {
                    res += &self.tool(event, &std::mem::take(&mut word));
                    res.push(letter);
                }
            }
        }
        format!("^({})$", res.trim_end())
    }

    fn tool(&mut self, event: &str, word: &str) -> String {
        if let Some((_, ours)) = CLAUDE_TOOLS.iter().find(|(theirs, _)| *theirs == word) {
            self.renames = true;
            return (*ours).to_owned();
        }
        if let Some(rest) = word.strip_prefix("mcp__") {
            return format!("mcp_{}", rest.replacen("__", "_", 1));
        }
        if word.starts_with(char::is_uppercase) {
            self.note(&format!("{event}: castor has no tool {word}; its matcher fits nothing"));
        }
        word.to_owned()
    }

    pub(super) fn hook(&mut self, event: &str, it: &Value, env: &Map<String, Value>) -> Option<Value> {
        let mut it = it.as_object()?.clone();
        let kind = it.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(command) = it.get("command").and_then(Value::as_str).filter(|_| kind == "command") else {
            self.note(&format!("{event}: hooks of the type {kind:?} are left out; castor runs commands only"));
            return None;
        };
        for name in ["CLAUDE_PLUGIN_ROOT", "CLAUDE_ENV_FILE", "CLAUDE_CODE_REMOTE"] {
            if command.contains(name) {
                self.note(&format!("{event}: castor sets no ${name}, which {command:?} wants"));
            }
        }
        let command = command.replace("CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR");
        it.insert("command".to_owned(), command.into());
        if let Some(seconds) = it.get("timeout").and_then(Value::as_f64) {
            it.insert("timeout".to_owned(), ((seconds * MS as f64) as u64).max(1).into());
        }
        let odd: Vec<String> = it.keys().filter(|it| !MEMBERS.contains(&it.as_str())).cloned().collect();
        for name in odd {
            self.note(&format!("{event}: `{name}` means nothing here; left out"));
            it.shift_remove(&name);
        }
        it.shift_remove("statusMessage");
        if !env.is_empty() {
            let own = it.get("env").and_then(Value::as_object).cloned().unwrap_or_default();
            let all: Map<String, Value> = env.clone().into_iter().chain(own).collect();
            it.insert("env".to_owned(), all.into());
        }
        Some(it.into())
    }

    /// Settings, and what is to be known about them.
    pub fn into_parts(mut self) -> (Value, Vec<String>) {
        if self.renames {
            let names: Vec<String> = CLAUDE_TOOLS.iter().map(|(theirs, ours)| format!("{theirs} is {ours}")).collect();
            self.note(&format!("scripts that look at tool_name and tool_input get castor's: {}", names.join(", ")));
        }
        if !self.hooks.is_empty() {
            self.note("exit codes: 1 is a warning as there, but any code above 1 denies, not only 2");
        }
        (json!({ "hooks": self.hooks }), self.notes)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Migration;

    #[test]
    fn carries_over_what_fits_and_tells_the_rest() {
        let command = |it: &str| json!({"type": "command", "command": it});
        let mut found = Migration::default();
        found.add_settings(&json!({
            "env": {"A": "1"},
            "disableAllHooks": true,
            "hooks": {
                "PreToolUse": [
                    {"matcher": "Edit|MultiEdit|Write", "hooks": [
                        {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/x.sh", "timeout": 1.5, "async": true,
                            "statusMessage": "m", "env": {"A": "2"}},
                        {"type": "prompt", "prompt": "?"}
                    ]},
                    {"matcher": "mcp__memory__.*|NotebookEdit", "hooks": [command("${CLAUDE_PLUGIN_ROOT}/y")]},
                    {"matcher": "*", "hooks": [command("z")]}, {"hooks": []}, 5
                ],
                "Stop": [{"hooks": [command("done")]}],
                "SubagentStop": [{"hooks": [command("done")]}],
                "SessionStart": [{"matcher": "startup|compact|resume", "hooks": [command("s")]}],
                "Notification": [{"matcher": "idle_prompt", "hooks": [command("n")]}]
            }
        }));
        let (settings, notes) = found.into_parts();
        let text = serde_json::to_string_pretty(&settings).unwrap() + "\n" + &notes.join("\n") + "\n";
        expect_test::expect_file!["migrated.txt"].assert_eq(&text);
    }
}
