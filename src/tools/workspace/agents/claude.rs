//! Agent files of Claude Code: their keys and tool names as castor's.

use std::num::NonZeroU32;

use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use serde_saphyr::Spanned;

use super::{
    ToolLookup,
    front_matter::{self, FileFault},
    keys::{Draft, checked_name},
    values::{AgentName, Description},
};
use castor_base::agent::{AgentCapability, AgentConstraints, AgentDescriptor, AgentKind, AgentRun, LocalAgent};

/// Tools of Claude Code, and ours.
pub const TOOLS: &[(&str, &str)] = &[
    ("Bash", "run_shell_command"),
    ("Edit", "replace"),
    ("Glob", "glob"),
    ("Grep", "grep_search"),
    ("LS", "list_directory"),
    ("MultiEdit", "replace"),
    ("Read", "read_file"),
    ("TodoWrite", "write_todos"),
    ("WebFetch", "web_fetch"),
    ("Write", "write_file"),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ClaudeKeys {
    name: Spanned<AgentName>,
    description: Description,
    tools: Option<Spanned<Words>>,
    model: Option<String>,
    max_turns: Option<NonZeroU32>,
    #[serde(rename = "color")]
    _color: Option<IgnoredAny>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Line(String),
    List(Vec<String>),
}

/// As [`super::keys::read`].
///
/// # Errors
/// The first fault.
pub fn read(yaml: &str, body: &str, tools: ToolLookup<'_>) -> Result<Draft, FileFault> {
    let keys = front_matter::read(yaml).or_else(|_| front_matter::read(&quote_description(yaml)));
    let keys: ClaudeKeys = keys?;
    let name = checked_name(&keys.name, tools)?;
    let mut notes = Vec::new();
    let listed = keys.tools.map(|it| {
        let at = (it.referenced.line() as usize, it.referenced.column() as usize);
        let words: Vec<String> = match it.value {
            Words::Line(line) => line.split(',').map(str::to_owned).collect(),
            Words::List(all) => all,
        };
        let mut res: Vec<String> = Vec::new();
        for word in words.iter().map(|it| it.trim()).filter(|it| !it.is_empty()) {
            match tool(word) {
                Some(it) if !res.contains(&it) => res.push(it),
                Some(_) => (),
                None => notes.push(FileFault::new(Some(at), format!("castor has no tool {word:?}; it is left out"))),
            }
        }
        res
    });
    let descriptor = AgentDescriptor {
        name,
        description: keys.description.0,
        executor: AgentKind::Local,
        capabilities: vec![AgentCapability::Elicitation, AgentCapability::Streaming],
        required_tools: listed.clone().unwrap_or_default(),
        constraints: AgentConstraints { max_turns: keys.max_turns.map(NonZeroU32::get), ..AgentConstraints::default() },
        ..AgentDescriptor::default()
    };
    let model = keys.model.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty() && it != "inherit");
    let run = LocalAgent { instructions: body.to_owned(), model, tools: listed, ..LocalAgent::default() };
    Ok(Draft { descriptor, run: AgentRun::Local(Box::new(run)), folders: Vec::new(), rights: Vec::new(), notes })
}

fn tool(word: &str) -> Option<String> {
    let ours = TOOLS.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| (*ours).to_owned());
    ours.or_else(|| Some(format!("mcp_{}", word.strip_prefix("mcp__")?.replacen("__", "_", 1))))
}

/// Claude Code takes a description to the end of its line, also with `: ` in it, which YAML does not.
fn quote_description(yaml: &str) -> String {
    const KEY: &str = "description: ";
    let quoted = |line: &str| {
        let rest = line.strip_prefix(KEY).filter(|it| !it.starts_with(['"', '\'', '|', '>']))?;
        Some(format!("{KEY}{}\n", Value::from(rest.trim())))
    };
    yaml.split_inclusive('\n').map(|it| quoted(it).unwrap_or_else(|| it.to_owned())).collect()
}
