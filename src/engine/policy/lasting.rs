//! A yes for ever: never wider than the question was.

use serde_json::Value;

use super::names::current_name;
use crate::base::{
    log::{Grant, Lasting, Mode},
    tool::{Access, TargetPath, ToolCall},
};

/// Tools that a yes for ever must narrow: to commands, or to one file. Those that only look are not asked about below
/// the roots, and a rule does not reach beyond them.
const NARROWED: &[&str] = &[
    "run_shell_command",
    "write_file",
    "replace",
    "read_file",
    "read_many_files",
    "glob",
    "grep_search",
    "list_directory",
];

/// What a yes for ever to this call would be; `None`: it would be too wide, or spare no question.
pub fn lasting(call: &ToolCall, grant: &Grant, server: Option<&str>, mode: Mode) -> Option<Lasting> {
    let tool = current_name(&call.name).to_owned();
    let modes = [Mode::Plan, Mode::Default, Mode::AutoEdit, Mode::Yolo].into_iter().filter(|it| *it >= mode).collect();
    let (prefixes, args_pattern) = match grant {
        Grant::Commands { prefixes } => (prefixes.clone(), None),
        Grant::Edits => {
            let file = call.args.get("file_path").and_then(Value::as_str)?;
            let pair = format!("\"file_path\":{}", Value::from(file));
            (Vec::new(), Some(format!("\\x00{}\\x00", regex::escape(&pair))))
        }
        Grant::Tool { .. } if server.is_none() && NARROWED.contains(&tool.as_str()) => return None,
        Grant::Tool { .. } | Grant::Foreign { .. } => (Vec::new(), None),
        // What the sandbox lets through is a setting and no rule.
        Grant::File { .. } | Grant::Network | Grant::Write { .. } => return None,
    };
    let digest = match grant {
        Grant::Foreign { digest, .. } => Some(digest.clone()),
        _ => None,
    };
    Some(Lasting { tool, server: server.map(str::to_owned), prefixes, args_pattern, modes, digest })
}

/// What a yes for ever grants this session: no more than what it says, which for edits is one file.
pub fn lasting_here(grant: Grant, tool: &str, places: &[TargetPath]) -> Grant {
    match (grant, places.iter().find(|it| it.access == Access::Write)) {
        (Grant::Edits, Some(it)) => Grant::File { tool: tool.to_owned(), path: it.real.clone() },
        (grant, _) => grant,
    }
}

/// For the option that the user sees.
pub fn lasting_in_words(it: &Lasting) -> String {
    let what = match (it.prefixes.as_slice(), &it.args_pattern) {
        ([], None) => it.tool.clone(),
        ([], Some(_)) => format!("{} of this file", it.tool),
        (prefixes, _) => format!("`{}`", prefixes.join("`, `")),
    };
    format!("Allow {what} for this session and in future sessions")
}
