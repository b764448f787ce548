//! The decision about a call that starts a sub-agent, and about what another agent does by itself.

use super::{
    call::{Call, Reviews},
    decide::decide,
    toolbox::CallContext,
};
use crate::session_tools::delegate::{delegation, delegation_title};
use castor_base::{
    agent::{AgentDefinition, AgentKind, AgentRun},
    peer_agent::PeerAgent,
    tool::{PolicyClass, Targets, ToolError, ToolKind, ToolOutput},
};

impl Call {
    /// Looks at what it would start, and decides at once: no file is touched by starting it.
    pub(super) fn resolve_delegation(&mut self, cx: &mut CallContext<'_, '_>) {
        match delegation(&cx.tools.agents, &self.call.name, &self.call.args) {
            Ok(it) => {
                let title = delegation_title(&self.call) + &starts(it.agent);
                let targets = Targets { title, ..Targets::default() };
                self.display.kind = match it.agent.descriptor.executor {
                    // It touches no file here.
                    AgentKind::Remote => ToolKind::Fetch,
                    _ if looks_only(cx, it.agent) => ToolKind::Think,
                    _ => ToolKind::Other,
                };
                self.display_dirty = true;
                self.apply_targets(cx.tools, &targets, &cx.step.record.cwd);
                decide(self, cx, targets, Reviews::default());
            }
            Err(error) => self.end(cx.step, ToolOutput::failed(error)),
        }
    }

    /// It may be done: the agent does it.
    pub(super) fn give_permission(&mut self, cx: &mut CallContext<'_, '_>) {
        let changed = std::mem::take(&mut self.hook_effects.changed_args);
        let output = match changed.is_empty() {
            true => ToolOutput::text("Allowed."),
            false => {
                let why =
                    format!("A hook wants other arguments ({}), which the agent cannot be given.", changed.join(", "));
                ToolOutput::failed(ToolError::new("blocked_by_hook", why))
            }
        };
        self.end(cx.step, output);
    }
}

/// The program that it starts, where it is one.
fn starts(agent: &AgentDefinition) -> String {
    match &agent.run {
        AgentRun::Peer(it) => match &**it {
            PeerAgent::Program(it) => format!(" (starts {})", it.line()),
            PeerAgent::Remote(_) => String::new(),
        },
        AgentRun::Local(_) | AgentRun::Composite(_) => String::new(),
    }
}

/// Tells whether the agent has no tool that changes anything: then nothing has to be held for its run.
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
