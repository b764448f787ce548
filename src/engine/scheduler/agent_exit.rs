//! Calls by which an agent ends its own run: its result, an escalation, or a transfer.

use crate::{
    scheduler::Toolbox,
    session_tools::{complete_task, escalate, transfer},
};
use castor_base::{
    agent::TaskResult,
    tool::{ToolCall, ToolOutput},
};

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
