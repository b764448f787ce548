//! Session tools: those that are pure steps of the engine, as a table.

use serde_json::{Map, Value};

use super::{ask_user, plan, todos, topic};
use crate::{
    base::{
        question::Form,
        tool::{ToolCall, ToolOutput, ToolSpec},
    },
    engine::record::Step,
};

/// What a session tool comes to.
pub(super) enum SessionToolResult {
    Output(Box<ToolOutput>),
    /// The user's answer decides.
    Ask(Form),
}

/// Tools that are pure steps of the engine.
type SessionTool = fn(&mut Step<'_>, &Map<String, Value>) -> SessionToolResult;
const SESSION_TOOLS: &[(&str, SessionTool)] = &[
    (ask_user::NAME, |_, args| {
        ask_user::form(args)
            .map_or_else(|it| SessionToolResult::Output(Box::new(ToolOutput::failed(it))), SessionToolResult::Ask)
    }),
    (plan::ENTER, |step, args| SessionToolResult::Output(Box::new(plan::enter(step, args)))),
    (topic::NAME, |step, args| SessionToolResult::Output(Box::new(topic::run(step, args)))),
    (todos::NAME, |step, args| SessionToolResult::Output(Box::new(todos::run(step, args)))),
];

/// What the model is told of them. Where nobody can be asked, it is not told of questions.
pub(super) fn specs(interactive: bool) -> impl Iterator<Item = ToolSpec> {
    [plan::enter_spec(), todos::spec(), topic::spec()].into_iter().chain(interactive.then(ask_user::spec))
}

pub(super) fn is_session_tool(name: &str) -> bool {
    SESSION_TOOLS.iter().any(|(it, _)| *it == name)
}

pub(super) fn run_session_tool(step: &mut Step<'_>, call: &ToolCall) -> SessionToolResult {
    let run = SESSION_TOOLS.iter().find(|(it, _)| *it == call.name).map(|(_, run)| run);
    match (run, call.args.as_object()) {
        (Some(run), Some(args)) => run(step, args),
        _ => SessionToolResult::Output(Box::default()),
    }
}
