//! Migration of Cursor's hooks (`.cursor/hooks.json`) to castor's settings, with a report of what does not fit.

use serde_json::{Map, Value, json};

use super::migrate::Migration;

/// How an event of Cursor's goes over: to which of ours, and for which tools.
struct CursorEvent {
    theirs: &'static str,
    ours: &'static str,
    /// The tools that it is about; empty: all, or none.
    tools: &'static str,
    /// Only looks on there.
    observes: bool,
}

const fn event(theirs: &'static str, ours: &'static str, tools: &'static str) -> CursorEvent {
    CursorEvent { theirs, ours, tools, observes: false }
}

const fn after(theirs: &'static str, ours: &'static str, tools: &'static str) -> CursorEvent {
    CursorEvent { theirs, ours, tools, observes: true }
}

const EVENTS: &[CursorEvent] = &[
    event("preToolUse", "BeforeTool", ""),
    event("postToolUse", "AfterTool", ""),
    event("postToolUseFailure", "OnToolError", ""),
    event("beforeShellExecution", "BeforeTool", "^(run_shell_command)$"),
    after("afterShellExecution", "AfterTool", "^(run_shell_command)$"),
    event("beforeMCPExecution", "BeforeTool", "^mcp_"),
    after("afterMCPExecution", "AfterTool", "^mcp_"),
    event("beforeReadFile", "BeforeTool", "^(read_file)$"),
    after("afterFileEdit", "AfterTool", "^(write_file|replace)$"),
    event("beforeSubmitPrompt", "BeforeAgent", ""),
    after("afterAgentResponse", "AfterAgent", ""),
    event("stop", "AfterAgent", ""),
    event("sessionStart", "SessionStart", ""),
    event("sessionEnd", "SessionEnd", ""),
    event("preCompact", "PreCompress", ""),
];

/// Tools in the matchers of `preToolUse` and its kind, and ours.
const TOOLS: &[(&str, &str)] = &[
    ("Shell", "run_shell_command"),
    ("Read", "read_file"),
    ("Write", "write_file|replace"),
    ("Delete", "run_shell_command"),
    ("Grep", "grep_search"),
    ("Task", "invoke_agent"),
];
const ANSWERS: &str = "Cursor's hooks answer with permission, user_message and agent_message; castor reads decision, \
                       systemMessage and reason: change what your scripts print";
const INPUTS: &str = "scripts get castor's input: tool_name and tool_input, such as tool_input.command, in place of Cursor's \
                      command, file_path and edits";

/// Whether the file is Cursor's, by what it holds.
pub(super) fn is_cursors(settings: &Value) -> bool {
    let names = settings.get("hooks").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    settings.get("version").is_some_and(Value::is_number)
        || names.into_iter().any(|name| EVENTS.iter().any(|it| it.theirs == name))
}

impl Migration {
    pub fn add_cursor(&mut self, settings: &Value) {
        let events = settings.get("hooks").and_then(Value::as_object);
        let mut is_any = false;
        for (name, hooks) in events.into_iter().flatten() {
            let Some(event) = EVENTS.iter().find(|it| it.theirs == name) else {
                self.note(&format!("{name}: castor has no such event; left out"));
                continue;
            };
            for it in hooks.as_array().into_iter().flatten() {
                is_any |= self.add_cursor_hook(event, it);
            }
        }
        if is_any {
            self.note(ANSWERS);
            self.note(INPUTS);
        }
    }

    /// Whether there is something to carry over.
    fn add_cursor_hook(&mut self, event: &CursorEvent, it: &Value) -> bool {
        let Some(mut members) = it.as_object().cloned() else { return false };
        let matcher = members.shift_remove("matcher");
        let matcher = matcher.as_ref().and_then(Value::as_str).filter(|it| !it.is_empty() && *it != "*");
        members.entry("type").or_insert_with(|| "command".into());
        // Here a guard that fails lets nothing pass without a question anyway.
        members.shift_remove("failClosed");
        let Some(Value::Object(mut hook)) = self.hook(event.theirs, &members.into(), &Map::new()) else { return false };
        if let Some(command) = hook.get("command").and_then(Value::as_str) {
            let command = command.replace("CURSOR_PROJECT_DIR", "GEMINI_PROJECT_DIR");
            hook.insert("command".to_owned(), command.into());
        }
        if event.observes {
            hook.insert("observes".to_owned(), true.into());
        }
        let mut group = Map::new();
        group.extend(self.cursor_matcher(event, matcher).map(|it| ("matcher".to_owned(), it.into())));
        group.insert("hooks".to_owned(), json!([hook]));
        self.add_group(event.ours, group);
        true
    }

    fn cursor_matcher(&mut self, event: &CursorEvent, matcher: Option<&str>) -> Option<String> {
        match (event.theirs, matcher) {
            ("preToolUse" | "postToolUse" | "postToolUseFailure", Some(matcher)) => {
                let words = matcher.split('|').map(|it| self.cursor_tool(event.theirs, it.trim()));
                Some(format!("^({})$", words.collect::<Vec<_>>().join("|")))
            }
            (name, Some(matcher)) => {
                self.note(&format!("{name}: the matcher {matcher:?} is left out; the script can look at its input"));
                (!event.tools.is_empty()).then(|| event.tools.to_owned())
            }
            (_, None) => (!event.tools.is_empty()).then(|| event.tools.to_owned()),
        }
    }

    fn cursor_tool(&mut self, event: &str, word: &str) -> String {
        if let Some((_, ours)) = TOOLS.iter().find(|(theirs, _)| *theirs == word) {
            return (*ours).to_owned();
        }
        if let Some(tool) = word.strip_prefix("MCP:") {
            return format!("mcp_.*_{tool}");
        }
        self.note(&format!("{event}: castor does not know the tool {word:?}; its matcher may fit nothing"));
        word.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Migration, is_cursors};

    #[test]
    fn carries_over_cursors_hooks() {
        let file = json!({
            "version": 1,
            "hooks": {
                "beforeShellExecution": [{"command": "./audit.sh", "timeout": 30, "matcher": "curl|wget", "failClosed": false}],
                "afterFileEdit": [{"command": "\"$CURSOR_PROJECT_DIR\"/format.sh"}],
                "preToolUse": [{"command": "a", "matcher": "Shell|MCP:search|Fly"}, 5],
                "stop": [{"command": "b", "loop_limit": 5}],
                "beforeSubmitPrompt": [{"type": "prompt", "prompt": "?"}],
                "beforeTabFileRead": [{"command": "c"}]
            }
        });
        assert!(is_cursors(&file) && !is_cursors(&json!({"hooks": {"PreToolUse": []}})));
        let mut found = Migration::default();
        found.add_cursor(&file);
        let (settings, notes) = found.into_parts();
        let text = serde_json::to_string(&settings["hooks"]).unwrap() + "\n" + &notes.join("\n") + "\n";
        expect_test::expect![[r#"
            {"BeforeTool":[{"matcher":"^(run_shell_command)$","hooks":[{"command":"./audit.sh","timeout":30000,"type":"command"}]},{"matcher":"^(run_shell_command|mcp_.*_search|Fly)$","hooks":[{"command":"a","type":"command"}]}],"AfterTool":[{"matcher":"^(write_file|replace)$","hooks":[{"command":"\"$GEMINI_PROJECT_DIR\"/format.sh","type":"command","observes":true}]}],"AfterAgent":[{"hooks":[{"command":"b","type":"command"}]}]}
            beforeShellExecution: the matcher "curl|wget" is left out; the script can look at its input
            preToolUse: castor does not know the tool "Fly"; its matcher may fit nothing
            stop: `loop_limit` means nothing here; left out
            beforeSubmitPrompt: hooks of the type "prompt" are left out; castor runs commands only
            beforeTabFileRead: castor has no such event; left out
            Cursor's hooks answer with permission, user_message and agent_message; castor reads decision, systemMessage and reason: change what your scripts print
            scripts get castor's input: tool_name and tool_input, such as tool_input.command, in place of Cursor's command, file_path and edits
            exit codes: 1 is a warning as there, but any code above 1 denies, not only 2
        "#]].assert_eq(&text);
    }
}
