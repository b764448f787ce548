//! Session tools, which are pure steps of the engine: one row each.

use serde_json::{Map, Value};

use super::{Toolbox, ask_user, complete_task, escalate, plan, todos, topic, transfer};
use crate::{
    base::{
        agent::TaskResult,
        file_prompt::ACTIVATE_SKILL,
        peer_agent::REQUEST_PERMISSION,
        question::Form,
        tool::{ToolCall, ToolOutput, ToolSpec},
    },
    engine::record::Step,
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

/// What the agent said of its own end, in the calls of one answer.
#[derive(Debug, Default)]
pub(super) struct AgentExit {
    /// What it handed in.
    completed: Option<String>,
    /// Why it ends the loop that it works in.
    escalated: Option<String>,
    /// Who goes on in the session.
    transfer: Option<String>,
}

impl AgentExit {
    /// Runs a call that speaks of it; `None`: the call is of another tool.
    pub fn run(&mut self, tools: &Toolbox, call: &ToolCall) -> Option<ToolOutput> {
        let args = || call.args.as_object().cloned().unwrap_or_default();
        let output = tools.task.as_ref().and_then(|it| it.output());
        match call.name.as_str() {
            complete_task::NAME => Some(complete_task::run(output, &args(), &mut self.completed)),
            escalate::NAME => Some(escalate::run(&args(), &mut self.escalated)),
            transfer::NAME => Some(transfer::run(&tools.successors, &args(), &mut self.transfer)),
            _ => None,
        }
    }

    /// The result of the run, if it is over.
    pub fn take_result(&mut self) -> Option<TaskResult> {
        let (text, escalate_reason) = (self.completed.take(), self.escalated.take());
        let is_over = text.is_some() || escalate_reason.is_some();
        is_over.then(|| TaskResult { text: text.unwrap_or_default(), escalate_reason })
    }

    pub fn take_successor(&mut self) -> Option<String> {
        self.transfer.take()
    }
}
