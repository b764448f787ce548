//! Calls that the session's host runs: which they are, what policy says of them, and those that end a prompt.

use std::{borrow::Cow, sync::Arc};

use serde_json::Value;

use super::{
    BatchStatus, Scheduler,
    call::{Call, CallState, Reviews},
    call_facts::CallFacts,
    decide::decide,
    denials,
    toolbox::{CallContext, Toolbox},
    unknown_tool::keep_or_hide,
};
use crate::{
    policy::{self, Query},
    session_tools::is_session_tool,
};
use castor_base::{
    agent::{AGENT_TOOLS, AgentDefinition, AgentRun},
    content::Part,
    host_tools::{HostExecution, HostRun, HostTool, HostTools},
    log::{Decision, Fact},
    patch::{self, FileCall},
    peer_agent::PeerAgent,
    tool::{PolicyClass, TargetPart, Targets, ToolCall, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

/// The reason, in the log, why a call of castor's own tool may run at the host.
const HOST_DECIDES: &str = "the host runs it, and decides";

/// The spec of a host's tool for the model.
fn spec(tool: &HostTool) -> ToolSpec {
    ToolSpec {
        name: Cow::Owned(tool.name.clone()),
        title: Cow::Owned(tool.display_name.clone().unwrap_or_else(|| tool.name.clone())),
        description: Cow::Owned(tool.description.clone()),
        kind: ToolKind::Other,
        parameters: tool.parameters_schema.clone().into(),
        traits: ToolTraits::default(),
    }
}

/// Tells whether a run of the agent needs no process but castor's own.
fn starts_nothing(agent: &AgentDefinition) -> bool {
    match &agent.run {
        AgentRun::Local(it) => it.mcp_servers.is_empty(),
        AgentRun::Composite(_) => true,
        AgentRun::Peer(it) => !matches!(**it, PeerAgent::Program(_)),
    }
}

impl Toolbox {
    /// The tools of the host.
    pub fn host(&self) -> &Arc<HostTools> {
        &self.host
    }

    /// The same with another host; its tools come in with [`Toolbox::with_host_tools`].
    pub fn for_host(self, host: Arc<HostTools>) -> Self {
        Self { host, ..self }
    }

    /// Whether the host's tools have names of their own.
    ///
    /// # Errors
    /// Names the tool whose name is another's.
    pub fn check_host(&self, host: &HostTools) -> Result<(), String> {
        let is_taken = |name: &str| {
            let is_own = self.known_tools.iter().any(|it| it.name == name);
            is_own || is_session_tool(name) || AGENT_TOOLS.contains(&name) || policy::current_name(name) != name
        };
        match host.tools.iter().find(|it| is_taken(&it.name)) {
            Some(it) => Err(format!("tools: {:?} is the name of a tool of castor's; choose another", it.name)),
            None => Ok(()),
        }
    }

    /// The same with the host's tools, in place of others of their names. Where the host runs all calls, no hook runs
    /// and nothing of files is held.
    pub fn with_host_tools(self) -> Self {
        let host = self.host.clone();
        // A host that runs all calls has its own way to the network, or none.
        let is_left = |it: &&ToolSpec| !(host.runs_all() && it.traits.class == PolicyClass::Fetch);
        let others =
            |all: &[ToolSpec]| all.iter().filter(|it| host.find(&it.name).is_none()).filter(is_left).cloned().collect();
        let (mut tools, mut own_tools): (Vec<_>, Vec<_>) = (others(&self.tools), others(&self.own_tools));
        let mut hidden = self.hidden.to_vec();
        for it in host.tools.iter().map(spec) {
            let by = policy::unconditional_deny(&self.rules, &it, None, self.interactive);
            if keep_or_hide(&mut hidden, &it, None, by) {
                tools.push(it.clone());
                own_tools.push(it);
            }
        }
        for all in [&mut tools, &mut own_tools] {
            all.sort_by(|a, b| a.name.cmp(&b.name));
        }
        let (tools, own_tools, hidden) = (tools.into(), own_tools.into(), hidden.into());
        let res = Self { tools, own_tools, hidden, ..self };
        match host.runs_all() {
            true => Self { hooks: res.hooks.of_client(), checkpoints: false, ..res },
            false => res,
        }
    }

    /// The agents that there may be beside a host. The run of an agent cannot end in the middle and come back.
    pub(super) fn agents_with_host(&self, agents: &[AgentDefinition]) -> Vec<AgentDefinition> {
        let may_be = |it: &&AgentDefinition| match self.host.execution {
            Some(HostExecution::Return) => false,
            Some(HostExecution::All) => starts_nothing(it),
            Some(HostExecution::Declared) | None => true,
        };
        agents.iter().filter(may_be).cloned().collect()
    }

    /// Tells whether the host runs calls of this tool. What acts on the session itself stays castor's.
    pub fn is_of_host(&self, name: &str) -> bool {
        if self.host.find(name).is_some() {
            return true;
        }
        self.host.runs_all() && self.traits(name).class.acts_outside() && !is_session_tool(name)
    }

    /// The digest that a rule, or an approval for the session, goes by beside the name.
    pub(super) fn digest(&self, name: &str) -> Option<String> {
        let of_host = || self.host.find(name).map(HostTool::digest);
        self.foreign_tool(name).map(|it| it.digest()).or_else(of_host)
    }
}

impl Call {
    /// The request to the call's host; `None`: castor runs it.
    pub(super) fn host_run(&self, cx: &CallContext<'_, '_>) -> Option<Box<HostRun>> {
        let host = cx.tools.host();
        let (stream, timeout_ms) = (cx.step.record.stream().clone(), host.timeout_ms(&self.call.name));
        cx.tools
            .is_of_host(&self.call.name)
            .then(|| Box::new(HostRun { stream, timeout_ms, runs_all: host.runs_all() }))
    }

    /// Nothing is looked up: what the call would touch is the host's. Whether it is a call of the host's.
    pub(super) fn decide_at_host(&mut self, cx: &mut CallContext<'_, '_>) -> bool {
        if !cx.tools.is_of_host(&self.call.name) {
            return false;
        }
        let part = |it: FileCall| {
            let targets = Targets { title: it.path, ..Targets::default() };
            TargetPart { tool: it.tool.to_owned(), args: it.args, targets }
        };
        let files = if self.traits.is_patch { patch::file_calls(&self.call.args) } else { Vec::new() };
        let parts = files.into_iter().map(part).collect();
        let targets = Targets { title: self.display.title.clone(), parts, ..Targets::default() };
        match cx.tools.host().runs_all() {
            true => self.decide_for_host(cx, &targets),
            false => {
                self.apply_targets(cx.tools, &targets, &cx.step.record.cwd);
                decide(self, cx, targets, Reviews::default());
            }
        }
        true
    }

    /// The host decides; only what rules deny stays denied. Safety checkers are programs, and none is started.
    fn decide_for_host(&mut self, cx: &mut CallContext<'_, '_>, targets: &Targets) {
        let record = &cx.step.record;
        let facts = CallFacts::new(cx.tools, record, &self.call, self.traits.class);
        let query = Query { kind: self.display.kind, ..facts.query(cx.tools, record, targets) };
        let verdict = policy::decide_by_rules(&cx.tools.rules, &query);
        let (call, decision) = (self.call.id.clone(), verdict.decision);
        if decision == Decision::Deny {
            cx.step.log(Fact::Decision { call, decision, rule: verdict.rule.clone() });
            let output = denials::denied(&verdict, cx.step.record.mode, cx.tools.interactive);
            return self.end(cx.step, output);
        }
        cx.step.log(Fact::Decision { call, decision: Decision::Allow, rule: HOST_DECIDES.to_owned() });
        self.allow();
    }

    /// The host's answer is another call in place of this one. Whether there may be one more.
    pub(super) fn may_have_tail(&mut self, output: &mut ToolOutput) -> bool {
        let may = self.hook_effects.n_tails < super::call_hooks::MAX_TAILS;
        self.hook_effects.n_tails = self.hook_effects.n_tails.saturating_add(1);
        if !may {
            output.content.push(Part::text("[System] Too many calls came in place of one; this is the last result."));
        }
        may
    }
}

impl Scheduler {
    /// Calls that the host runs before the next prompt.
    pub fn returned_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.calls.iter().filter(|it| matches!(it.state, CallState::Returned)).map(|it| &it.call)
    }

    /// The status of a batch of which all calls have ended or are the host's.
    pub(super) fn returned_status(&self) -> Option<BatchStatus> {
        self.returned_calls().next().map(|_| BatchStatus::Returned)
    }
}

/// Calls as the end of a stream names them.
pub fn pending_calls<'a>(calls: impl Iterator<Item = &'a ToolCall>) -> Value {
    calls
        .map(|ToolCall { id, name, args }| serde_json::json!({ "requestId": id, "name": name, "args": args }))
        .collect()
}
