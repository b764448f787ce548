//! Titles of tool calls and descriptions of grants.

use serde_json::Value;

use crate::{
    scheduler::{peer_permission, toolbox::Toolbox},
    session_tools::{delegate::delegation_title, skills},
};
use castor_base::{
    event::{Location, ToolDisplay},
    log::Grant,
    patch,
    path::AbsPath,
    peer_agent::REQUEST_PERMISSION,
    text,
    tool::{PolicyClass, ToolCall, ToolKind},
};

/// Longest title, in characters.
pub(super) const TITLE: usize = 2_000;

/// Before anything is resolved: what the arguments say by themselves.
pub(super) fn first_display(tools: &Toolbox, call: &ToolCall, cwd: &AbsPath) -> ToolDisplay {
    let spec = tools.find(&call.name);
    let said = |name: &str| call.args.get(name).and_then(Value::as_str);
    let path = said("file_path").or_else(|| said("dir_path")).filter(|it| !it.starts_with('~')).map(|it| cwd.join(it));
    let title = match (spec, said("command"), &path, said("pattern")) {
        (None, ..) => call.name.clone(),
        (Some(it), ..) if it.traits.class == PolicyClass::Delegate => delegation_title(call),
        (Some(it), ..) if it.traits.class == PolicyClass::Skill => skills::title(call),
        (Some(_), ..) if call.name == REQUEST_PERMISSION => peer_permission::title(call),
        // Arguments of tools from outside mean what their makers want.
        (Some(it), ..) if it.kind == ToolKind::Other => it.title.to_string(),
        (_, Some(command), ..) => command.to_owned(),
        (Some(it), _, _, Some(pattern)) => format!("{} '{pattern}'", it.title),
        (Some(it), _, Some(path), _) => format!("{} {}", it.title, path.relative_to(cwd)),
        (Some(it), ..) => it.title.to_string(),
    };
    let is_patch = spec.is_some_and(|it| it.traits.is_patch);
    let patched = if is_patch { patch::file_calls(&call.args) } else { Vec::new() };
    let patched = patched.iter().filter(|it| !it.path.starts_with('~')).map(|it| cwd.join(&it.path));
    ToolDisplay {
        title: text::head(&title, TITLE).to_owned(),
        kind: spec.map_or(ToolKind::Other, |it| it.kind),
        locations: path.into_iter().chain(patched).map(|path| Location { path, line: None }).collect(),
    }
}

pub(super) fn describe_grant(grant: &Grant) -> String {
    match grant {
        Grant::Tool { tool } | Grant::Foreign { tool, .. } => format!("Allow {tool} for this session"),
        Grant::Commands { prefixes } => format!("Allow `{}` for this session", prefixes.join("`, `")),
        Grant::Edits => "Allow edits of files in the workspace for this session".to_owned(),
        Grant::File { tool, path } => format!("Allow {tool} of {path} for this session"),
        Grant::Hosts { tool, hosts } => format!("Allow {tool} of {} for this session", hosts.join(", ")),
        Grant::Auto => "Work without questions in this folder (mode auto)".to_owned(),
        Grant::Network => "Allow commands the network for this session".to_owned(),
        Grant::NetworkFor { prefixes } => format!("Allow `{}` the network for this session", prefixes.join("`, `")),
        Grant::Reach { .. } => {
            format!("Allow commands network access to {} for this session", grant.reach_in_words().unwrap_or_default())
        }
        Grant::Secrets { .. } => format!("Allow {} for this session", grant.secrets_in_words().unwrap_or_default()),
        Grant::Write { folder } => {
            format!("Allow commands to write below {} for this session", text::path_in_words(&folder.to_string()))
        }
        Grant::Read { folder } => {
            format!("Allow reading below {} for this session", text::path_in_words(&folder.to_string()))
        }
    }
}
