//! Calls of `activate_skill`: the model gets the instructions of a skill once, and may read the skill's folder.

use serde_json::Value;

use super::toolbox::{CallContext, Toolbox};
use crate::record::{Record, Step};
use castor_base::{
    agent::{AgentOrigin, AgentScope},
    file_prompt::{ACTIVATE_SKILL, Skill, activated_mark},
    history::{Role, TurnPart},
    log::{Fact, Grant},
    text,
    tool::{ToolCall, ToolError, ToolOutput},
};

/// What a call comes to before anybody is asked: an unknown skill, or one that the model has.
pub(super) fn answer_at_once(tools: &Toolbox, record: &Record, call: &ToolCall) -> Option<ToolOutput> {
    if call.name != ACTIVATE_SKILL {
        return None;
    }
    let name = call.args.get("name").and_then(Value::as_str).unwrap_or_default();
    match find(tools, call) {
        None => {
            let known: Vec<&str> = tools.skills.iter().map(|it| it.name.as_str()).take(50).collect();
            let why =
                format!("Skill {:?} not found. Available skills are: {}", text::head(name, 100), known.join(", "));
            Some(ToolOutput::failed(ToolError::new("invalid_tool_params", why)))
        }
        Some(it) if is_active(record, &it.name) => {
            Some(ToolOutput::text(format!("The skill {} is active already: its instructions are above.", it.name)))
        }
        Some(_) => None,
    }
}

fn find<'t>(tools: &'t Toolbox, call: &ToolCall) -> Option<&'t Skill> {
    let name = call.args.get("name").and_then(Value::as_str)?;
    tools.skills.iter().find(|it| it.name == name)
}

/// Tells whether the conversation, as the model has it now, holds the skill.
fn is_active(record: &Record, name: &str) -> bool {
    let mark = activated_mark(name);
    let has_mark = |it: &str| it.contains(&mark);
    record.turns().iter().any(|turn| {
        turn.parts().iter().any(|part| match part {
            TurnPart::Content(it) if turn.role() == Role::User => it.as_text().is_some_and(has_mark),
            TurnPart::Result(it) if it.name == ACTIVATE_SKILL => {
                it.content.iter().filter_map(|it| it.as_text()).any(has_mark)
            }
            _ => false,
        })
    })
}

/// Why the user is asked, in their words.
pub(super) fn reason(tools: &Toolbox, call: &ToolCall) -> Option<String> {
    let it = (call.name == ACTIVATE_SKILL).then(|| find(tools, call)).flatten()?;
    let whose = match it.origin.scope() {
        AgentScope::Workspace => "this folder's skill",
        AgentScope::Extension => "an extension's skill",
        _ => "your skill",
    };
    let file = it.origin.file().map_or_else(String::new, |it| text::path_in_words(&it.to_string()));
    let n = it.files.len();
    let about = text::first_line(&it.description, 300);
    Some(format!(
        "It is {whose}, {file}: {about}\nThe model gets its instructions and may read its folder ({n} more files)."
    ))
}

pub(super) fn run(cx: &mut CallContext<'_, '_>, call: &ToolCall) -> Option<ToolOutput> {
    if call.name != ACTIVATE_SKILL {
        return None;
    }
    let it = find(cx.tools, call)?.clone();
    open_folder(cx.step, &it);
    let summary = Some(format!("The model has the skill {}.", it.name));
    Some(ToolOutput { summary, ..ToolOutput::text(it.as_text()) })
}

/// The model may read what the skill's instructions name.
pub fn open_folder(step: &mut Step<'_>, skill: &Skill) {
    let grant = Grant::Read { folder: skill.folder.clone() };
    // What lies in the workspace can be read anyway.
    if matches!(skill.origin, AgentOrigin::User(_) | AgentOrigin::Extension(..)) && !step.record.grants.contains(&grant)
    {
        step.log(Fact::Granted { grant, lasting: false });
    }
}
