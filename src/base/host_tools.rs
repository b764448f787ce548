//! Tools that the host of a session brings and runs itself: their declarations, and which calls go to the host.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::ids::StreamId;

/// How long castor waits for the answer to a call, in milliseconds, unless the tool says otherwise.
const DEFAULT_TIMEOUT_MS: u64 = 600_000;
/// The same for a tool that is said to run long; also the most that a tool may say.
const MAX_TIMEOUT_MS: u64 = 86_400_000;
/// Most tools of a session or of a prompt.
const MAX_TOOLS: usize = 128;
/// What all providers take, in characters.
const MAX_NAME: usize = 63;
/// In characters.
const MAX_TITLE: usize = 200;
/// In bytes.
const MAX_DESCRIPTION: usize = 8 * 1024;
/// Of the JSON Schema of its arguments, as text, in bytes.
const MAX_SCHEMA: usize = 64 * 1024;
/// Of all declarations together, as JSON in bytes: each request carries them, and so does the log of a prompt.
const MAX_TOTAL: usize = 512 * 1024;

/// What a host brings to a session or to one prompt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostTools {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<HostTool>,
    /// Absent: as in the session, and there as `declared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<HostExecution>,
}

/// Which calls the host runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostExecution {
    /// Those of tools that it declared.
    Declared,
    /// All: castor starts no process for a call and touches no file.
    All,
    /// As `all`, but the calls end the prompt, and the next one brings their results.
    Return,
}

/// A tool, as the host declares it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostTool {
    /// Begins with a letter, then letters, digits, `_`, `-`, `.` and `:`.
    #[schemars(length(min = 1, max = MAX_NAME))]
    pub name: String,
    /// What people are shown in place of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_TITLE))]
    pub display_name: Option<String>,
    /// For the model; 8 KiB at most.
    pub description: String,
    /// JSON Schema of its arguments, of the type `object`; 64 KiB at most. Absent: it takes none.
    #[serde(default = "no_parameters")]
    pub parameters_schema: Value,
    #[serde(default)]
    pub annotations: HostAnnotations,
    /// How long castor waits for an answer, in milliseconds. Absent: ten minutes, or a day where it runs long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_TIMEOUT_MS))]
    pub timeout_ms: Option<u64>,
}

/// What the host says of its tool. Rules may go by it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostAnnotations {
    /// It changes nothing. Rules know it as `readOnlyHint`.
    #[serde(default)]
    pub read_only: bool,
    #[serde(default)]
    pub long_running: bool,
}

/// A call that the host runs.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRun {
    /// Of the turn's events.
    pub stream: StreamId,
    /// How long its answer may take.
    pub timeout_ms: u64,
    /// The host runs all calls: castor looks at no file of the workspace.
    pub runs_all: bool,
}

fn no_parameters() -> Value {
    json!({ "type": "object", "properties": {} })
}

impl HostTool {
    pub fn timeout_ms(&self) -> u64 {
        let default = if self.annotations.long_running { MAX_TIMEOUT_MS } else { DEFAULT_TIMEOUT_MS };
        self.timeout_ms.unwrap_or(default)
    }

    /// In the words that rules have for those of servers.
    pub fn rule_annotations(&self) -> Value {
        json!({ "readOnlyHint": self.annotations.read_only, "longRunning": self.annotations.long_running })
    }

    /// Of all that is said of it: a yes for the session is one to the tool as it was then.
    pub fn digest(&self) -> String {
        let digest = Sha256::digest(serde_json::to_vec(self).unwrap_or_default());
        digest.iter().take(16).map(|it| format!("{it:02x}")).collect()
    }

    fn check(&self) -> Result<(), String> {
        let Self { name, display_name, description, parameters_schema, timeout_ms, .. } = self;
        let is_allowed = |it: char| it.is_ascii_alphanumeric() || "_-.:".contains(it);
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(format!("a name has 1 to {MAX_NAME} characters"));
        }
        if !name.starts_with(|it: char| it.is_ascii_alphabetic()) || !name.chars().all(is_allowed) {
            return Err(format!("{name:?}: a name begins with a letter, and has letters, digits and `_-.:`"));
        }
        if name.starts_with("mcp_") {
            return Err(format!("{name:?}: names that begin with `mcp_` are those of servers"));
        }
        if display_name.as_ref().is_some_and(|it| it.trim().is_empty() || it.chars().count() > MAX_TITLE) {
            return Err(format!("{name:?}: displayName has 1 to {MAX_TITLE} characters"));
        }
        if description.trim().is_empty() || description.len() > MAX_DESCRIPTION {
            return Err(format!("{name:?}: description has 1 to {MAX_DESCRIPTION} bytes"));
        }
        if parameters_schema.get("type") != Some(&"object".into()) {
            return Err(format!("{name:?}: parametersSchema needs \"type\": \"object\""));
        }
        if parameters_schema.to_string().len() > MAX_SCHEMA {
            return Err(format!("{name:?}: parametersSchema has at most {MAX_SCHEMA} bytes"));
        }
        match timeout_ms {
            Some(it) if !(1..=MAX_TIMEOUT_MS).contains(it) => {
                Err(format!("{name:?}: timeoutMs is 1 to {MAX_TIMEOUT_MS}"))
            }
            _ => Ok(()),
        }
    }
}

impl HostTools {
    /// # Errors
    /// In words, which tool is not usable and why.
    pub fn check(&self) -> Result<(), String> {
        if self.tools.len() > MAX_TOOLS {
            return Err(format!("tools: at most {MAX_TOOLS} can be declared"));
        }
        for (at, tool) in self.tools.iter().enumerate() {
            tool.check().map_err(|it| format!("tools: {it}"))?;
            if self.tools.iter().take(at).any(|it| it.name == tool.name) {
                return Err(format!("tools: {:?} is declared twice", tool.name));
            }
        }
        let size = serde_json::to_vec(&self.tools).map_or(0, |it| it.len());
        if size > MAX_TOTAL {
            return Err(format!("tools: together they have {size} bytes, and {MAX_TOTAL} is the most"));
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn find(&self, name: &str) -> Option<&HostTool> {
        self.tools.iter().find(|it| it.name == name)
    }

    /// Tells whether also calls of castor's own tools go to the host.
    pub fn runs_all(&self) -> bool {
        matches!(self.execution, Some(HostExecution::All | HostExecution::Return))
    }

    /// Tells whether calls end the prompt.
    pub fn returns_calls(&self) -> bool {
        self.execution == Some(HostExecution::Return)
    }

    /// How long a call of this tool may take, in milliseconds.
    pub fn timeout_ms(&self, name: &str) -> u64 {
        self.find(name).map_or(DEFAULT_TIMEOUT_MS, HostTool::timeout_ms)
    }

    /// These, and what a prompt has beside them or in their place.
    #[must_use]
    pub fn with_prompt(&self, of_prompt: &Self) -> Self {
        let others = self.tools.iter().filter(|it| of_prompt.find(&it.name).is_none());
        let tools = others.chain(&of_prompt.tools).cloned().collect();
        Self { tools, execution: of_prompt.execution.or(self.execution) }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{HostExecution, HostTool, HostTools};

    fn tool(mut it: Value) -> HostTool {
        let all = it.as_object_mut().unwrap();
        all.entry("name").or_insert(json!("look"));
        all.entry("description").or_insert(json!("Looks."));
        serde_json::from_value(it).unwrap()
    }

    fn check(tools: Vec<Value>, expected: &str) {
        let tools = tools.into_iter().map(tool).collect();
        let found = HostTools { tools, execution: None }.check();
        assert_eq!(found.err().unwrap_or_default(), expected);
    }

    #[test]
    fn a_declaration_is_checked() {
        check(vec![json!({}), json!({ "name": "a.b:c-d_e1", "timeoutMs": 86_400_000u64 })], "");
        check(vec![json!({ "name": "" })], "tools: a name has 1 to 63 characters");
        check(vec![json!({ "name": "x".repeat(64) })], "tools: a name has 1 to 63 characters");
        let letters = "a name begins with a letter, and has letters, digits and `_-.:`";
        for name in ["1a", "a b", "ü", "a/b"] {
            check(vec![json!({ "name": name })], &format!("tools: {name:?}: {letters}"));
        }
        check(
            vec![json!({ "name": "mcp_x_y" })],
            "tools: \"mcp_x_y\": names that begin with `mcp_` are those of servers",
        );
        check(vec![json!({ "description": "" })], "tools: \"look\": description has 1 to 8192 bytes");
        check(vec![json!({ "description": "x".repeat(8193) })], "tools: \"look\": description has 1 to 8192 bytes");
        check(vec![json!({ "displayName": " " })], "tools: \"look\": displayName has 1 to 200 characters");
        check(vec![json!({ "parametersSchema": [] })], "tools: \"look\": parametersSchema needs \"type\": \"object\"");
        let large = json!({ "type": "object", "description": "x".repeat(65536) });
        check(vec![json!({ "parametersSchema": large })], "tools: \"look\": parametersSchema has at most 65536 bytes");
        check(vec![json!({ "timeoutMs": 0 })], "tools: \"look\": timeoutMs is 1 to 86400000");
        check(vec![json!({}), json!({})], "tools: \"look\" is declared twice");
        let large =
            (0..128).map(|it| json!({ "name": format!("t{it:03}"), "description": "x".repeat(8000) })).collect();
        check(large, "tools: together they have 1041793 bytes, and 524288 is the most");
        let many = (0..129).map(|it| json!({ "name": format!("t{it}") })).collect();
        check(many, "tools: at most 128 can be declared");
    }

    #[test]
    fn a_prompt_adds_to_the_session() {
        let tools = |names: &[&str]| names.iter().map(|it| tool(json!({ "name": it }))).collect();
        let session = HostTools { tools: tools(&["a", "b"]), execution: Some(HostExecution::All) };
        let other = tool(json!({ "name": "b", "description": "Another." }));
        let of_prompt = HostTools { tools: vec![other.clone()], execution: None };
        let both = session.with_prompt(&of_prompt);
        assert_eq!((both.find("a"), both.find("b")), (session.find("a"), Some(&other)));
        assert!(both.runs_all() && !both.returns_calls());
        let declared = HostTools { tools: Vec::new(), execution: Some(HostExecution::Declared) };
        assert!(!session.with_prompt(&declared).runs_all());
    }

    #[test]
    fn a_long_running_tool_has_more_time() {
        assert_eq!(tool(json!({})).timeout_ms(), 600_000);
        assert_eq!(tool(json!({ "annotations": { "longRunning": true } })).timeout_ms(), 86_400_000);
        assert_eq!(tool(json!({ "annotations": { "longRunning": true }, "timeoutMs": 5 })).timeout_ms(), 5);
    }
}
