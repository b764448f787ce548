//! Requests and answers in the two dialects that the agents of the bench speak: Gemini's and OpenAI's chat.

use std::path::Path;

use serde_json::{Value, json};

use super::tasks::Action;

/// A request as it came.
pub struct Asked {
    pub path: String,
    pub body: Value,
}

impl Asked {
    fn is_chat(&self) -> bool {
        self.path.contains("chat/completions")
    }

    /// It is answered with text: not a count of tokens or a list of models.
    pub fn is_for_model(&self) -> bool {
        self.is_chat() || self.path.contains("enerateContent")
    }

    pub fn has_tools(&self) -> bool {
        !self.tools().is_empty()
    }

    /// All declarations.
    fn tools(&self) -> Vec<&Value> {
        let tools = self.body["tools"].as_array().into_iter().flatten();
        match self.is_chat() {
            true => tools.map(|it| &it["function"]).collect(),
            false => tools.flat_map(|it| it["functionDeclarations"].as_array().into_iter().flatten()).collect(),
        }
    }

    /// Names of the tools, and what each takes in tokens at four bytes each.
    pub fn declarations(&self) -> Vec<(String, usize)> {
        let size = |it: &Value| it.to_string().len().div_ceil(4);
        self.tools().into_iter().map(|it| (it["name"].as_str().unwrap().to_owned(), size(it))).collect()
    }

    /// In the order of a provider's cache: tools, instructions, conversation.
    pub fn text(&self) -> String {
        let of = |name: &str| self.body.get(name).map(Value::to_string).unwrap_or_default();
        of("tools") + &of("systemInstruction") + &of("contents") + &of("messages")
    }

    /// With the call of the action, or a last word.
    pub fn answer(&self, action: Option<&Action>, workspace: &Path) -> String {
        let call = action.map(|it| self.call(it, workspace));
        match (self.is_chat(), self.path.contains("streamGenerateContent")) {
            (true, _) => http("text/event-stream", &chat(call)),
            (_, true) => http("text/event-stream", &format!("data: {}\r\n\r\n", gemini(call))),
            _ if self.path.contains("generateContent") => http("application/json", &gemini(call).to_string()),
            _ => http("application/json", r#"{"totalTokens": 1}"#),
        }
    }

    /// The tool of this agent that does it, and its arguments.
    fn call(&self, action: &Action, workspace: &Path) -> (String, Value) {
        let offered: Vec<&str> = self.tools().iter().filter_map(|it| it["name"].as_str()).collect();
        let has = |name: &&str| offered.contains(name);
        let named = |names: &[&'static str]| names.iter().copied().find(has);
        let at = |path: &str| workspace.join(path).to_string_lossy().into_owned();
        let shell = |line: &str| {
            let name = named(&["run_shell_command", "bash"]).expect("a shell");
            (name.to_owned(), json!({"command": line, "description": "Looks at the project"}))
        };
        match *action {
            Action::Read(path) => match named(&["read_file", "read"]) {
                Some("read") => ("read".to_owned(), json!({"filePath": at(path)})),
                _ => ("read_file".to_owned(), json!({"file_path": at(path)})),
            },
            Action::List(path) => match named(&["list_directory"]) {
                Some(name) => (name.to_owned(), json!({"dir_path": at(path)})),
                None => shell(&format!("ls {}", at(path))),
            },
            Action::Grep(pattern) => {
                let name = named(&["grep_search", "grep"]).expect("a search");
                (name.to_owned(), json!({ "pattern": pattern }))
            }
            Action::Edit { path, old, new } => match named(&["replace", "edit"]) {
                Some("edit") => ("edit".to_owned(), json!({"filePath": at(path), "oldString": old, "newString": new})),
                _ => {
                    let what = "Say it in the new way";
                    let args =
                        json!({"file_path": at(path), "instruction": what, "old_string": old, "new_string": new});
                    ("replace".to_owned(), args)
                }
            },
            Action::Shell(line) => shell(line),
        }
    }
}

const LAST_WORD: &str = "That is done.";

fn gemini(call: Option<(String, Value)>) -> Value {
    let part = call.map_or_else(
        || json!({ "text": LAST_WORD }),
        |(name, args)| json!({"functionCall": {"name": name, "args": args}}),
    );
    json!({"candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}]})
}

fn chat(call: Option<(String, Value)>) -> String {
    let (delta, reason) = match call {
        None => (json!({"role": "assistant", "content": LAST_WORD}), "stop"),
        Some((name, args)) => {
            let function = json!({"name": name, "arguments": args.to_string()});
            let id = format!("call_{}", args.to_string().len());
            (
                json!({"role": "assistant", "tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]}),
                "tool_calls",
            )
        }
    };
    let chunk = |delta: Value, reason: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": reason});
        format!(
            "data: {}\n\n",
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
        )
    };
    chunk(delta, Value::Null) + &chunk(json!({}), json!(reason)) + "data: [DONE]\n\n"
}

fn http(kind: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
}
