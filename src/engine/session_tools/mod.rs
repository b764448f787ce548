//! Session tools, which are pure steps of the engine: one row each.

pub mod ask_user;
pub mod complete_task;
pub mod delegate;
pub mod escalate;
pub mod plan;
pub mod skills;
mod todos;
mod topic;
pub mod transfer;

pub use todos::NAME as TODO_TOOL;

use serde_json::{Map, Value};

use crate::record::Step;
use castor_base::{
    file_prompt::ACTIVATE_SKILL,
    peer_agent::REQUEST_PERMISSION,
    question::Form,
    tool::{ToolCall, ToolOutput, ToolSpec},
};

/// What a session tool comes to.
pub enum SessionToolResult {
    Output(Box<ToolOutput>),
    /// The user's answer decides.
    Ask(Form),
}

type SessionTool = fn(&mut Step<'_>, &Map<String, Value>) -> SessionToolResult;
type SessionToolRow = (&'static str, fn() -> ToolSpec, SessionTool);
const SESSION_TOOLS: &[SessionToolRow] = &[
    (ask_user::NAME, ask_user::spec, |_, args| {
        ask_user::form(args)
            .map_or_else(|it| SessionToolResult::Output(Box::new(ToolOutput::failed(it))), SessionToolResult::Ask)
    }),
    (plan::ENTER, plan::enter_spec, |step, args| SessionToolResult::Output(Box::new(plan::enter(step, args)))),
    (topic::NAME, topic::spec, |step, args| SessionToolResult::Output(Box::new(topic::run(step, args)))),
    (todos::NAME, todos::spec, |step, args| SessionToolResult::Output(Box::new(todos::run(step, args)))),
];

/// Castor's own tools: `builtins` and the session tools, sorted.
pub fn own_tools(builtins: impl IntoIterator<Item = ToolSpec>) -> Vec<ToolSpec> {
    let mut res: Vec<ToolSpec> = builtins.into_iter().chain(SESSION_TOOLS.iter().map(|(_, spec, _)| spec())).collect();
    res.sort_by(|a, b| a.name.cmp(&b.name));
    res
}

pub fn is_session_tool(name: &str) -> bool {
    SESSION_TOOLS.iter().any(|(it, ..)| *it == name)
        || [complete_task::NAME, escalate::NAME, transfer::NAME, REQUEST_PERMISSION, ACTIVATE_SKILL].contains(&name)
}

pub fn run_session_tool(step: &mut Step<'_>, call: &ToolCall) -> SessionToolResult {
    let run = SESSION_TOOLS.iter().find(|(it, ..)| *it == call.name).map(|(.., run)| run);
    match (run, call.args.as_object()) {
        (Some(run), Some(args)) => run(step, args),
        _ => SessionToolResult::Output(Box::default()),
    }
}
