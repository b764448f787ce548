//! The decision about a call that starts a sub-agent.

use super::{
    call::Call,
    decide::decide,
    delegate::{delegation, delegation_title},
    toolbox::CallContext,
};
use crate::base::{
    agent::{AgentDefinition, AgentKind},
    tool::{PolicyClass, Targets, ToolKind, ToolOutput},
};

impl Call {
    /// Looks at what it would start, and decides at once: no file is touched by starting it.
    pub(super) fn resolve_delegation(&mut self, cx: &mut CallContext<'_, '_>) {
        match delegation(&cx.tools.agents, &self.call.name, &self.call.args) {
            Ok(it) => {
                let targets = Targets { title: delegation_title(&self.call), ..Targets::default() };
                self.display.kind = match it.agent.descriptor.executor {
                    // It touches no file here.
                    AgentKind::Remote => ToolKind::Fetch,
                    _ if looks_only(cx, it.agent) => ToolKind::Think,
                    _ => ToolKind::Other,
                };
                self.display_dirty = true;
                self.apply_targets(cx.tools, &targets, &cx.step.record.cwd);
                decide(self, cx, targets, Vec::new());
            }
            Err(error) => self.end(cx.step, ToolOutput::failed(error)),
        }
    }
}

/// Whether the agent has no tool that changes anything: then nothing has to be held for its run.
fn looks_only(cx: &CallContext<'_, '_>, agent: &AgentDefinition) -> bool {
    agent.descriptor.executor == AgentKind::Local
        && agent.descriptor.sub_agents.is_empty()
        && agent.descriptor.own_tools.is_empty()
        && cx
            .tools
            .tools_of_agent(agent)
            .iter()
            .all(|it| matches!(it.traits.class, PolicyClass::Look | PolicyClass::Tell))
}
