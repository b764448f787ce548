//! `session/request_permission` of another agent: the tool of castor's that would do it, and the option that says yes or no.

use serde_json::{Value, json};

use super::{
    peer_call::{PeerCall, Refusal},
    terminal_line::quote,
    updates::{PeerCallDetails, PeerUpdates},
};
use crate::base::{
    peer_agent::REQUEST_PERMISSION,
    tool::{READ_FILE, RUN_SHELL_COMMAND, ToolKind, WRITE_FILE},
};

/// Places that one question may be about: each is decided by itself.
const MAX_PLACES: usize = 8;

/// What may be answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PermissionOptions(Vec<(String, String)>);

impl PermissionOptions {
    fn read(params: &Value) -> Self {
        let said = |it: &Value, key: &str| it.get(key).and_then(Value::as_str).map(str::to_owned);
        let options = params.get("options").and_then(Value::as_array).into_iter().flatten();
        Self(options.filter_map(|it| Some((said(it, "kind")?, said(it, "optionId")?))).collect())
    }

    /// A yes is to this one thing where the agent knows such an answer.
    pub fn answer(&self, is_allowed: bool) -> Value {
        let kinds = if is_allowed { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
        let chosen = kinds.iter().find_map(|kind| self.0.iter().find(|it| it.0 == *kind));
        match chosen {
            Some((_, id)) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
            None => json!({ "outcome": { "outcome": "cancelled" } }),
        }
    }
}

/// The calls that castor decides about in its place.
pub(super) fn read(params: &Value, seen: &mut PeerUpdates) -> Result<(Vec<PeerCall>, PermissionOptions), Refusal> {
    let call = params.get("toolCall").filter(|it| it.is_object()).ok_or_else(|| Refusal::invalid("toolCall"))?;
    let id = call.get("toolCallId").and_then(Value::as_str).unwrap_or_default();
    seen.take_call(call);
    let unknown = PeerCallDetails::default();
    let known = seen.calls.get(id).unwrap_or(&unknown);
    let title = known.report.as_ref().map_or("something", |it| it.title.as_str());
    let asked = permission_calls(known);
    let calls = match asked.is_empty() {
        true => vec![json!({ "title": title })],
        false => asked.into_iter().map(|(tool, args)| json!({ "title": title, "tool": tool, "args": args })).collect(),
    };
    let calls = calls.into_iter().map(|args| PeerCall { name: REQUEST_PERMISSION, args }).collect();
    Ok((calls, PermissionOptions::read(params)))
}

/// Nothing: no tool of castor's does such a thing.
fn permission_calls(known: &PeerCallDetails) -> Vec<(&'static str, Value)> {
    let Some(report) = &known.report else { return Vec::new() };
    let mut places: Vec<String> = report.locations.iter().map(ToString::to_string).collect();
    let said = |key: &str| known.raw_input.get(key).and_then(Value::as_str);
    let named = ["file_path", "path", "abs_path", "filePath"].into_iter().find_map(said).map(str::to_owned);
    places.extend(named.filter(|it| !places.contains(it)));
    places.extend(
        known.diffs.iter().map(|it| it.0.clone()).filter(|it| !report.locations.iter().any(|at| at.to_string() == *it)),
    );
    places.dedup();
    // More than can be decided one by one is decided as a whole.
    if places.len() > MAX_PLACES {
        return Vec::new();
    }
    let shell = |line: String| (RUN_SHELL_COMMAND, json!({ "command": line }));
    match (report.kind, command(&known.raw_input)) {
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

fn write(place: &str, known: &PeerCallDetails) -> (&'static str, Value) {
    let diff = known.diffs.iter().find(|it| it.0 == *place).map(|it| it.1.as_str());
    (WRITE_FILE, json!({ "file_path": place, "content": diff.unwrap_or_default() }))
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
