//! The toolbox of a session: its tools, their rules, hooks and servers.

use std::sync::Arc;

use super::{
    plan::Planning,
    unknown_tool::{self, HiddenTool, keep_or_hide},
};
use crate::{
    base::{
        log::{Grant, Mode, PersistentGrant},
        tool::{PolicyClass, ToolCall, ToolOutput, ToolSpec, ToolTraits, find_traits},
    },
    engine::{
        hooks::Hooks,
        policy::{self, RuleSet, SandboxFacts},
        record::{Record, Step},
        step::{ForeignTool, Server},
    },
};

/// What every step of a call is made with: the pen of the step, and the tools as the request told the model of them.
pub struct CallContext<'a, 's> {
    pub step: &'a mut Step<'s>,
    pub tools: &'a Toolbox,
}

/// The tools of a session and the rules about them: an immutable snapshot.
#[derive(Clone, Debug)]
pub struct Toolbox {
    /// Sorted by name; session tools included.
    pub tools: Arc<[ToolSpec]>,
    pub rules: Arc<RuleSet>,
    pub hooks: Hooks,
    /// Whether somebody can be asked.
    pub interactive: bool,
    /// Whether answers may hold for ever.
    pub(super) saves_grants: bool,
    /// What commands may do beyond the sandbox in this folder, for ever.
    pub folder_grants: Arc<[Grant]>,
    /// How its commands are held, in words; and as policy sees it.
    pub sandbox: Arc<str>,
    pub confinement: SandboxFacts,
    /// What of `tools` is castor's own.
    pub(super) own_tools: Arc<[ToolSpec]>,
    /// Castor's own, also those that the model is not told of.
    pub known_tools: Arc<[ToolSpec]>,
    /// What of `tools` is from outside.
    pub(super) foreign_tools: Arc<[ForeignTool]>,
    /// What the model is not told of.
    pub(super) hidden: Arc<[HiddenTool]>,
    /// Where those come from, and where more may come from.
    pub servers: Arc<[Server]>,
    pub planning: Arc<Planning>,
    /// Whether what calls may change is held.
    pub checkpoints: bool,
}

impl Toolbox {
    /// Of `own_tools` those that are not always denied.
    pub fn new(mut tools: Vec<ToolSpec>, rules: RuleSet, interactive: bool) -> Self {
        let known_tools = tools.clone().into();
        // Where nobody can be asked, the model is not told of it.
        tools.retain(|it| interactive || it.traits.class != PolicyClass::Question);
        let mut hidden = Vec::new();
        tools.retain(|it| {
            keep_or_hide(&mut hidden, it, None, policy::unconditional_deny(&rules, it, None, interactive))
        });
        let tools: Arc<[ToolSpec]> = tools.into();
        let (outside, servers) = (Arc::default(), Arc::default());
        let (rules, hooks) = (Arc::new(rules), Hooks::default());
        Self {
            own_tools: tools.clone(),
            known_tools,
            tools,
            rules,
            hooks,
            interactive,
            foreign_tools: outside,
            hidden: hidden.into(),
            servers,
            saves_grants: false,
            folder_grants: Arc::default(),
            planning: Arc::default(),
            sandbox: Arc::default(),
            checkpoints: false,
            confinement: SandboxFacts::default(),
        }
    }

    /// The same with hooks.
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// The same whose commands are held so.
    pub fn with_sandbox(self, words: String, confinement: SandboxFacts) -> Self {
        Self { sandbox: words.into(), confinement, ..self }
    }

    /// Whether a question may be answered with the mode `auto`: it is one of the session's, and nobody was asked before.
    pub fn offers_auto(&self, record: &Record) -> bool {
        self.planning.modes.contains(&Mode::Auto) && !record.was_command_asked()
    }

    /// The same whose calls can be undone, or not.
    pub fn with_checkpoints(self, checkpoints: bool) -> Self {
        Self { checkpoints, ..self }
    }

    /// The same with these tools only.
    pub fn only(&self, names: &[&str]) -> Self {
        let kept = self.tools.iter().filter(|it| names.contains(&&*it.name)).cloned();
        Self { tools: kept.collect(), ..self.clone() }
    }

    /// The same with these tools from outside, in place of those before, without those that are always denied. A name
    /// that is castor's own stays castor's.
    pub fn with_mcp_tools(&self, mut outside: Vec<ForeignTool>, servers: Vec<Server>) -> Self {
        let is_own = |it: &ForeignTool| self.own_tools.iter().any(|own| own.name == it.spec.name);
        let by =
            |it: &ForeignTool| policy::unconditional_deny(&self.rules, &it.spec, Some(&it.server), self.interactive);
        let mut hidden: Vec<HiddenTool> = self.hidden.iter().filter(|it| it.server.is_none()).cloned().collect();
        outside.retain(|it| !is_own(it) && keep_or_hide(&mut hidden, &it.spec, Some(&it.server), by(it)));
        let mut tools = self.own_tools.to_vec();
        tools.extend(outside.iter().map(|it| it.spec.clone()));
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let (tools, outside, hidden) = (tools.into(), outside.into(), hidden.into());
        Self { tools, foreign_tools: outside, hidden, servers: servers.into(), ..self.clone() }
    }

    /// The tool of this name, if it is from outside.
    pub fn foreign_tool(&self, name: &str) -> Option<&ForeignTool> {
        self.foreign_tools.iter().find(|it| it.spec.name == name)
    }

    /// What the model has from a server.
    pub fn tools_of_server<'a>(&'a self, server: &'a str) -> impl Iterator<Item = &'a ToolSpec> {
        self.foreign_tools.iter().filter(move |it| it.server == server).map(|it| &it.spec)
    }

    /// What the user allowed: with the tools, and in this session. Of servers' tools only what is still as it was then.
    pub fn grants(&self, session: &[Grant]) -> Vec<Grant> {
        let of_trusted = self.foreign_tools.iter().filter(|it| it.trusted);
        let of_session = session.iter().filter_map(|it| match it {
            Grant::Tool { tool } if self.foreign_tool(tool).is_some() => None,
            Grant::Foreign { tool, digest } => {
                let same = self.foreign_tool(tool).is_some_and(|it| it.digest() == *digest);
                same.then(|| Grant::Tool { tool: tool.clone() })
            }
            it => Some(it.clone()),
        });
        of_trusted.map(|it| Grant::Tool { tool: it.spec.name.to_string() }).chain(of_session).collect()
    }

    /// A yes as it is kept: of a server's tool, for what the tool is now.
    pub fn bind_grant(&self, grant: Grant) -> Grant {
        match grant {
            Grant::Tool { tool } => match self.foreign_tool(&tool).map(ForeignTool::digest) {
                Some(digest) => Grant::Foreign { tool, digest },
                None => Grant::Tool { tool },
            },
            it => it,
        }
    }

    /// Whether answers may hold for ever.
    pub fn with_saving(self, saves: bool) -> Self {
        Self { saves_grants: saves, ..self }
    }

    /// The same with what holds in the folder beyond the sandbox.
    pub fn with_grants(self, kept: Vec<Grant>) -> Self {
        Self { folder_grants: kept.into(), ..self }
    }

    /// What a yes for ever to this call would be, where it is on offer.
    pub fn persistent_grant(&self, call: &ToolCall, grant: &Grant, mode: Mode) -> Option<PersistentGrant> {
        let server = self.foreign_tool(&call.name).map(|it| it.server.as_str());
        policy::persistent_grant(call, self.traits(&call.name), grant, server, mode).filter(|_| self.saves_grants)
    }

    /// How the tool of this name is treated, whether or not the model is told of it.
    pub fn traits(&self, name: &str) -> ToolTraits {
        find_traits(&self.known_tools, name)
    }

    pub fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|it| it.name == name)
    }

    /// The same with a folder of plans, and the modes that may follow one.
    pub fn with_planning(self, planning: Planning) -> Self {
        Self { planning: Arc::new(planning), ..self }
    }

    /// What the model has in a mode: the way into plan mode outside of it, and the way out in it.
    pub fn in_mode(&self, mode: Mode) -> Self {
        let other = if mode == Mode::Plan { PolicyClass::EnterPlan } else { PolicyClass::ExitPlan };
        let tools = self.tools.iter().filter(|it| it.traits.class != other).cloned();
        Self { tools: tools.collect(), ..self.clone() }
    }

    /// For a name that no tool on offer has: what a rule says of it, or that there is none, with the nearest names.
    pub fn unknown_tool_output(&self, name: &str) -> ToolOutput {
        let not_found = || ToolOutput::failed(unknown_tool::not_found_error(&self.servers, &self.tools, name));
        unknown_tool::hidden_output(&self.hidden, name).unwrap_or_else(not_found)
    }
}
