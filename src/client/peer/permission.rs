//! `session/request_permission` of another agent: the tool of castor's that would do it, and the option that says yes or no.

use serde_json::{Value, json};

use super::{
    peer_call::{PeerCall, Refusal},
    terminal_line::quote,
    updates::{PeerUpdates, report},
};
use crate::call::Call;
use castor_base::{
    peer_agent::REQUEST_PERMISSION,
    tool::{READ_FILE, RUN_SHELL_COMMAND, ToolKind, WRITE_FILE},
};
use castor_wire::acp::client::{PermissionChoice, PermissionQuestion};

/// Places that one question may be about: each is decided by itself.
const MAX_PLACES: usize = 8;

/// What may be answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PermissionOptions(Vec<PermissionChoice>);

impl PermissionOptions {
    /// A yes is to this one thing where the agent knows such an answer.
    pub fn answer(&self, is_allowed: bool) -> Value {
        let kinds = if is_allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
        let chosen = kinds.iter().find_map(|kind| self.0.iter().find(|it| it.kind == *kind));
        match chosen {
            Some(it) => json!({ "outcome": { "outcome": "selected", "optionId": it.option_id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }
}

/// The calls that castor decides about in its place.
pub(super) fn read(
    asked: PermissionQuestion,
    seen: &mut PeerUpdates,
) -> Result<(Vec<PeerCall>, PermissionOptions), Refusal> {
    let told = asked.tool_call.ok_or_else(|| Refusal::invalid("toolCall"))?;
    let known = seen.take_call(&told);
    let title = known.map_or_else(|| "something".to_owned(), |it| report(it).title);
    let options = PermissionOptions(asked.options);
    let asked = known.map(permission_calls).unwrap_or_default();
    let calls = match asked.is_empty() {
        true => vec![json!({ "title": title })],
        false => asked.into_iter().map(|(tool, args)| json!({ "title": title, "tool": tool, "args": args })).collect(),
    };
    let calls = calls.into_iter().map(|args| PeerCall { name: REQUEST_PERMISSION, args }).collect();
    Ok((calls, options))
}

/// Nothing: no tool of castor's does such a thing.
fn permission_calls(known: &Call) -> Vec<(&'static str, Value)> {
    let report = report(known);
    let located: Vec<String> = report.locations.iter().map(ToString::to_string).collect();
    let mut places = located.clone();
    let said = |key: &&str| known.input(key);
    let named = ["file_path", "path", "abs_path", "filePath"].iter().find_map(said).map(str::to_owned);
    places.extend(named.filter(|it| !places.contains(it)));
    places.extend(known.diffs().map(|it| it.path.clone()).filter(|it| !located.contains(it)));
    places.dedup();
    // More than can be decided one by one is decided as a whole.
    if places.len() > MAX_PLACES {
        return Vec::new();
    }
    let shell = |line: String| (RUN_SHELL_COMMAND, json!({ "command": line }));
    match (report.kind, known.raw_input.as_ref().and_then(command)) {
        (_, Some(line)) => vec![shell(line)],
        (ToolKind::Edit, None) => places.iter().map(|it| write(it, known)).collect(),
        (ToolKind::Delete, None) => places.iter().map(|it| shell(format!("rm {}", quote(it)))).collect(),
        (ToolKind::Move, None) if places.len() == 2 => {
            vec![shell(format!("mv {}", places.iter().map(|it| quote(it)).collect::<Vec<_>>().join(" ")))]
        }
        (ToolKind::Read | ToolKind::Search, None) => {
            places.iter().map(|it| (READ_FILE, json!({ "file_path": it }))).collect()
        }
        _ => Vec::new(),
    }
}

fn write(place: &str, known: &Call) -> (&'static str, Value) {
    let text = known.diffs().find(|it| it.path == place).and_then(|it| it.new_text.as_deref());
    (WRITE_FILE, json!({ "file_path": place, "content": text.unwrap_or_default() }))
}

/// A line, or the words of one: `["bash", "-lc", "make"]`.
fn command(raw: &Value) -> Option<String> {
    match raw.get("command").or_else(|| raw.get("cmd"))? {
        Value::String(it) if !it.trim().is_empty() => Some(it.clone()),
        Value::Array(words) if !words.is_empty() => {
            Some(words.iter().filter_map(Value::as_str).map(quote).collect::<Vec<_>>().join(" "))
        }
        _ => None,
    }
}
