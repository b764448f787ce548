//! The toolbox of a session: its tools, their rules, hooks and servers.

use std::sync::Arc;

use super::{
    peer_permission,
    tool_limit::FittedTools,
    unknown_tool::{self, HiddenTool, keep_or_hide},
};
use crate::scheduler::resources::resource_tools;
use crate::{
    hooks::Hooks,
    policy::{self, RuleSet, SandboxFacts},
    record::{Record, Step},
    session_tools::{
        delegate::{AgentTask, agent_tools, fits_tool, remote_rules, unauthorized},
        plan::Planning,
        skills, transfer,
    },
    step::{ForeignTool, Server},
};
use castor_base::{
    agent::{AGENT_TOOLS, AgentDefinition, AgentRun, Agents, COMPLETE_TASK, ESCALATE, TRANSFER_TO_AGENT},
    check::ClientPolicy,
    file_prompt::Skill,
    host_tools::{HostTool, HostTools},
    log::{Grant, Mode, PersistentGrant},
    patch::APPLY_PATCH,
    peer_agent::PeerAgent,
    tool::{PolicyClass, REPLACE, ToolCall, ToolOutput, ToolSpec, ToolTraits, find_traits},
    tool_offer::ToolOffer,
};

/// The context of every step of a call: the pen of the step, and the tools as the request described them to the model.
pub struct CallContext<'a, 's> {
    pub step: &'a mut Step<'s>,
    pub tools: &'a Toolbox,
}

/// Answers that may hold for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedAnswers {
    Nothing,
    /// A yes to a command, and the folder's mode, in a trusted folder.
    Commands,
    All,
}

/// The tools of a session and the rules about them: an immutable snapshot.
#[derive(Clone, Debug)]
pub struct Toolbox {
    /// Sorted by name; session tools included.
    pub tools: ToolOffer,
    pub rules: Arc<RuleSet>,
    pub hooks: Hooks,
    /// Somebody can be asked.
    pub interactive: bool,
    /// The client's say in policy.
    pub(super) client_policy: Option<ClientPolicy>,
    /// The user can be asked to renew a credential: the client opens pages, or starts logins in terminals.
    pub(super) renews_credentials: bool,
    /// The client opens pages.
    pub(super) opens_pages: bool,
    /// Permissions may be saved permanently, for each kind.
    pub(super) saves: SavedAnswers,
    /// Permissions of the folder: what commands may do there beyond the sandbox, permanently.
    pub folder_grants: Arc<[Grant]>,
    /// The sandbox that holds its commands, in short.
    pub sandbox: SandboxSummary,
    /// The tools of castor's own among `tools`.
    pub(super) own_tools: ToolOffer,
    /// Castor's own, also those that the model is not told of.
    pub known_tools: ToolOffer,
    /// The tools from outside among `tools`.
    pub(super) foreign_tools: Arc<[ForeignTool]>,
    /// The foreign tools that an agent's run has from the session above it.
    pub(super) inherited_tools: Arc<[ForeignTool]>,
    /// Tools of the host, and the calls that the host runs.
    pub(super) host: Arc<HostTools>,
    /// Tools that the model does not see.
    pub(super) hidden: Arc<[HiddenTool]>,
    /// The servers that these tools come from, and those that more may come from.
    pub servers: Arc<[Server]>,
    pub planning: Arc<Planning>,
    /// Files are held before calls change them.
    pub checkpoints: bool,
    /// Agents that it may start.
    pub agents: Agents,
    /// Skills that the model may ask for.
    pub(super) skills: Arc<[Skill]>,
    /// Agents that may take over the session: names and descriptions.
    pub(super) successors: Arc<[(String, String)]>,
    /// The task of a sub-agent's run.
    pub task: Option<Arc<AgentTask>>,
}

/// The sandbox of commands: in words, and as policy sees it.
#[derive(Clone, Debug, Default)]
pub struct SandboxSummary {
    pub words: Arc<str>,
    pub facts: SandboxFacts,
}

/// Both, by name.
fn sorted(tools: &[ToolSpec], more: &[ToolSpec]) -> ToolOffer {
    let mut res: Vec<ToolSpec> = tools.iter().chain(more).cloned().collect();
    res.sort_by(|a, b| a.name.cmp(&b.name));
    res.into()
}

/// Tells whether the definition of an agent lists a tool; without a list it has all.
fn is_listed(agent: &AgentDefinition, tool: &str) -> bool {
    match &agent.run {
        AgentRun::Local(it) => it.tools.as_ref().is_none_or(|all| all.iter().any(|word| names_tool(word, tool))),
        AgentRun::Composite(_) => true,
        AgentRun::Peer(it) => it.tools().contains(&tool),
    }
}

/// Tools by which an agent speaks of its own end. They are the runtime's: no list of tools takes them away.
fn is_exit(tool: &str) -> bool {
    [COMPLETE_TASK, ESCALATE, TRANSFER_TO_AGENT].contains(&tool)
}

/// Tells whether a word of a list of tools means the tool: an agent that may edit a file may do so by a patch.
fn names_tool(word: &str, tool: &str) -> bool {
    fits_tool(word, tool) || tool == APPLY_PATCH && fits_tool(policy::current_name(word), REPLACE)
}

/// Tells whether the agent does things by itself, and asks before.
fn asks(agent: &AgentDefinition) -> bool {
    matches!(&agent.run, AgentRun::Peer(it) if matches!(**it, PeerAgent::Program(_)))
}

impl Toolbox {
    /// A toolbox of those `own_tools` that are not always denied.
    pub fn new(mut tools: Vec<ToolSpec>, rules: RuleSet, interactive: bool) -> Self {
        // They come with a server that has resources.
        let known_tools = tools.iter().chain(resource_tools::specs()).cloned().collect();
        // Where nobody can be asked, the model is not told of it.
        tools.retain(|it| it.traits.right.is_none() && (interactive || it.traits.class != PolicyClass::Question));
        let mut hidden = Vec::new();
        tools.retain(|it| {
            keep_or_hide(&mut hidden, it, None, policy::unconditional_deny(&rules, it, None, interactive))
        });
        let tools = ToolOffer::from(tools);
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
            inherited_tools: Arc::default(),
            host: Arc::default(),
            hidden: hidden.into(),
            servers,
            client_policy: None,
            renews_credentials: false,
            opens_pages: false,
            saves: SavedAnswers::Nothing,
            folder_grants: Arc::default(),
            planning: Arc::default(),
            sandbox: SandboxSummary::default(),
            checkpoints: false,
            agents: Arc::default(),
            skills: Arc::default(),
            successors: Arc::default(),
            task: None,
        }
    }

    /// The same whose user can be asked to renew credentials, or not.
    pub fn with_renewals(self, renews_credentials: bool, opens_pages: bool) -> Self {
        Self { renews_credentials, opens_pages: renews_credentials && opens_pages, ..self }
    }

    pub fn opens_pages(&self) -> bool {
        self.opens_pages
    }

    pub fn renews_credentials(&self) -> bool {
        self.renews_credentials
    }

    /// The same with hooks.
    pub fn with_hooks(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// The same whose commands are held so.
    pub fn with_sandbox(self, words: String, facts: SandboxFacts) -> Self {
        Self { sandbox: SandboxSummary { words: words.into(), facts }, ..self }
    }

    /// Tells whether a question may be answered with the mode `auto`: it is one of the session's, and nobody was asked
    /// before.
    pub fn offers_auto(&self, record: &Record) -> bool {
        self.planning.modes.contains(&Mode::Auto) && !record.was_command_asked()
    }

    /// The same under a client that has a say in policy.
    pub fn with_client_policy(self, client_policy: Option<ClientPolicy>) -> Self {
        Self { client_policy, ..self }
    }

    /// The same whose calls can be undone, or not.
    pub fn with_checkpoints(self, checkpoints: bool) -> Self {
        Self { checkpoints, ..self }
    }

    /// The same that may start these agents. A name that a tool has stays the tool's.
    pub fn with_agents(self, agents: Agents) -> Self {
        let agents: Agents = self.agents_with_host(&agents).into();
        let composes = self.task.as_ref().is_some_and(|it| it.composition().is_some());
        let tools = agent_tools(&agents, composes);
        let asks = remote_rules(&agents);
        let rules = if asks.is_empty() { self.rules } else { Arc::new((*self.rules).clone().with(asks)) };
        Self { agents, rules, ..self }.with_more(tools)
    }

    /// The same whose agent may hand the session over to these, named and described.
    pub fn with_successors(self, agents: Vec<(String, String)>) -> Self {
        let tool = (!agents.is_empty()).then(|| transfer::spec(&agents));
        Self { successors: agents.into(), ..self }.with_more(tool.into_iter().collect())
    }

    /// The same whose model may ask for these skills.
    pub fn with_skills(self, skills: Arc<[Skill]>) -> Self {
        let tool = (!skills.is_empty()).then(|| skills::spec(&skills));
        Self { skills, ..self }.with_more(tool.into_iter().collect())
    }

    /// The same with more of castor's own tools.
    fn with_more(self, mut more: Vec<ToolSpec>) -> Self {
        more.retain(|it| !self.known_tools.iter().any(|own| own.name == it.name) && self.host.find(&it.name).is_none());
        let known_tools = self.known_tools.iter().chain(&more).cloned().collect();
        let mut hidden = self.hidden.to_vec();
        more.retain(|it| {
            let denied = || policy::unconditional_deny(&self.rules, it, None, self.interactive);
            is_exit(&it.name) || keep_or_hide(&mut hidden, it, None, denied())
        });
        let (own_tools, tools) = (sorted(&self.own_tools, &more), sorted(&self.tools, &more));
        Self { known_tools, own_tools, tools, hidden: hidden.into(), ..self }
    }

    /// The tools that an agent has of these: those that its definition lists, but none that speak to the user or start
    /// agents.
    pub fn tools_of_agent(&self, agent: &AgentDefinition) -> Vec<ToolSpec> {
        let is_shared = |it: &&ToolSpec| self.owner(&it.name).is_none();
        let asks = |it: &&ToolSpec| matches!(agent.run, AgentRun::Peer(_)) && it.traits.class == PolicyClass::Question;
        let its = self.tools.iter().filter(|it| it.traits.class.acts_outside() || asks(it)).filter(is_shared);
        its.filter(|it| is_listed(agent, &it.name)).cloned().collect()
    }

    /// Tools that an agent has and the session above it does not.
    fn tools_by_right(&self, agent: &AgentDefinition) -> impl Iterator<Item = ToolSpec> {
        let has_right = |it: &&ToolSpec| it.traits.right.is_some_and(|right| agent.rights.contains(&right));
        let denied = |it: &&ToolSpec| policy::unconditional_deny(&self.rules, it, None, self.interactive).is_some();
        self.known_tools.iter().filter(has_right).filter(move |it| !denied(it)).cloned()
    }

    /// The toolbox of a sub-agent, under the same rules: what it has of these tools, and those that end its run.
    pub fn for_agent(&self, agent: &AgentDefinition, task: AgentTask) -> Self {
        let tools = ToolOffer::from(self.tools_of_agent(agent));
        let is_its = |name: &str| tools.iter().any(|it| it.name == name);
        let foreign_tools: Arc<[ForeignTool]> =
            self.foreign_tools.iter().filter(|it| is_its(&it.spec.name)).cloned().collect();
        let own_tools: Vec<ToolSpec> =
            tools.iter().filter(|it| self.foreign_tool(&it.name).is_none()).cloned().collect();
        let mut exits = task.exit_tools();
        exits.extend(self.tools_by_right(agent));
        exits.extend(asks(agent).then(peer_permission::spec));
        // What the session above has for its own agents and its own end.
        let is_above = |it: &ToolSpec| it.traits.class == PolicyClass::Delegate || AGENT_TOOLS.contains(&&*it.name);
        let known_tools: Vec<ToolSpec> = self.known_tools.iter().filter(|it| !is_above(it)).cloned().collect();
        let known_tools = sorted(&known_tools, &exits);
        let tools = sorted(&tools, &exits);
        let (own_tools, hooks) = (sorted(&own_tools, &exits), self.hooks.for_agent());
        let host = HostTools {
            tools: self.host.tools.iter().filter(|it| is_its(&it.name)).cloned().collect(),
            ..(*self.host).clone()
        };
        let host = Arc::new(host);
        let (inherited_tools, agents, task) = (foreign_tools.clone(), Arc::default(), Some(Arc::new(task)));
        let successors = Arc::default();
        let more = Self { host, tools, own_tools, known_tools, foreign_tools, inherited_tools, hooks, ..self.clone() };
        Self { agents, successors, task, ..more }
    }

    /// The toolbox of a session that is this agent's, or castor's own. An agent that speaks to the user may ask and plan.
    pub fn for_session(&self, agent: Option<&AgentDefinition>) -> Self {
        let talks = |it: &ToolSpec| {
            matches!(it.traits.class, PolicyClass::Question | PolicyClass::EnterPlan | PolicyClass::ExitPlan)
        };
        let is_its = |it: &ToolSpec| match (self.owner(&it.name), agent) {
            (Some(owner), _) => agent.is_some_and(|it| it.descriptor.name == owner),
            (None, Some(agent)) => talks(it) || is_listed(agent, &it.name),
            (None, None) => true,
        };
        let of = |tools: &[ToolSpec]| tools.iter().filter(|it| is_its(it)).cloned().collect();
        let foreign_tools = self.foreign_tools.iter().filter(|it| is_its(&it.spec)).cloned().collect();
        Self { tools: of(&self.tools), own_tools: of(&self.own_tools), foreign_tools, ..self.clone() }
    }

    /// The agent whose own server has the tool.
    fn owner(&self, tool: &str) -> Option<&str> {
        self.foreign_tool(tool)?.agent.as_deref()
    }

    /// The same with these tools only.
    pub fn only(&self, names: &[&str]) -> Self {
        let is_named = |it: &&ToolSpec| names.iter().any(|word| names_tool(word, &it.name));
        let kept = self.tools.iter().filter(|it| is_named(it) || is_exit(&it.name)).cloned();
        Self { tools: kept.collect(), ..self.clone() }
    }

    /// The toolbox as a prompt's own options limit it.
    pub fn of_prompt(self, record: &Record) -> Self {
        match record.prompt_tools() {
            Some(tools) => self.only(&tools.iter().map(String::as_str).collect::<Vec<_>>()),
            None => self,
        }
    }

    /// The same with these tools from outside, in place of those before, without those that are always denied. A name
    /// that is castor's own stays castor's.
    pub fn with_mcp_tools(&self, mut outside: Vec<ForeignTool>, servers: Vec<Server>) -> Self {
        let is_own = |it: &ForeignTool| self.own_tools.iter().any(|own| own.name == it.spec.name);
        let by =
            |it: &ForeignTool| policy::unconditional_deny(&self.rules, &it.spec, Some(&it.server), self.interactive);
        let mut hidden: Vec<HiddenTool> = self.hidden.iter().filter(|it| it.server.is_none()).cloned().collect();
        outside.retain(|it| !is_own(it) && keep_or_hide(&mut hidden, &it.spec, Some(&it.server), by(it)));
        for it in self.inherited_tools.iter() {
            if outside.iter().all(|own| own.spec.name != it.spec.name) {
                outside.push(it.clone());
            }
        }
        let mut tools = self.own_tools.to_vec();
        tools.extend(outside.iter().map(|it| it.spec.clone()));
        resource_tools::add((&self.rules, self.interactive), &mut tools, &mut hidden, &servers);
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let (tools, outside, hidden) = (tools.into(), outside.into(), hidden.into());
        Self { tools, foreign_tools: outside, hidden, servers: servers.into(), ..self.clone() }
    }

    /// The largest part of its tools that a request may have; see [`FittedTools::new`].
    pub fn fit(&self, max: usize, n_calls: impl Fn(&str) -> usize) -> FittedTools {
        FittedTools::new(&self.tools, &self.foreign_tools, max, n_calls)
    }

    /// The tool of this name, if it is from outside.
    pub fn foreign_tool(&self, name: &str) -> Option<&ForeignTool> {
        self.foreign_tools.iter().find(|it| it.spec.name == name)
    }

    /// The tool of this name, if the host declared it.
    pub fn host_tool(&self, name: &str) -> Option<&HostTool> {
        self.host.find(name)
    }

    /// The tools that the model has from a server.
    pub fn tools_of_server<'a>(&'a self, server: &'a str) -> impl Iterator<Item = &'a ToolSpec> {
        self.foreign_tools.iter().filter(move |it| it.server == server).map(|it| &it.spec)
    }

    /// The grants in force: those of the tools, and those of this session. A server's tool keeps its grant only while
    /// it is as it was then.
    pub fn grants(&self, session: &[Grant]) -> Vec<Grant> {
        let of_trusted = self.foreign_tools.iter().filter(|it| it.trusted);
        let of_session = session.iter().filter_map(|it| match it {
            Grant::Tool { tool } if self.digest(tool).is_some() => None,
            Grant::Foreign { tool, digest } => {
                let same = self.digest(tool).is_some_and(|it| it == *digest);
                same.then(|| Grant::Tool { tool: tool.clone() })
            }
            it => Some(it.clone()),
        });
        of_trusted.map(|it| Grant::Tool { tool: it.spec.name.to_string() }).chain(of_session).collect()
    }

    /// A yes as it is kept: of a server's tool, for what the tool is now.
    pub fn bind_grant(&self, grant: Grant) -> Grant {
        match grant {
            Grant::Tool { tool } => match self.digest(&tool) {
                Some(digest) => Grant::Foreign { tool, digest },
                None => Grant::Tool { tool },
            },
            it => it,
        }
    }

    /// The same of whose answers these may hold for ever.
    pub fn with_saving(self, saves: SavedAnswers) -> Self {
        Self { saves, ..self }
    }

    /// Tells whether the folder's mode may be saved.
    pub fn saves_mode(&self) -> bool {
        self.saves != SavedAnswers::Nothing
    }

    /// Tells whether permissions beyond the sandbox may be saved.
    pub fn saves_grants(&self) -> bool {
        self.saves == SavedAnswers::All
    }

    /// The same with what holds in the folder beyond the sandbox.
    pub fn with_grants(self, kept: Vec<Grant>) -> Self {
        Self { folder_grants: kept.into(), ..self }
    }

    /// The permission that a permanent approval of this call would save, where it is available.
    pub fn persistent_grant(&self, call: &ToolCall, grant: &Grant, mode: Mode) -> Option<PersistentGrant> {
        // Another host may bring another tool under that name.
        if self.host.find(&call.name).is_some() {
            return None;
        }
        let server = self.foreign_tool(&call.name).map(|it| it.server.as_str());
        let is_plain = self.saves_mode() && self.sandbox.facts.trusted && matches!(grant, Grant::Commands { .. });
        policy::persistent_grant(call, self.traits(&call.name), grant, server, mode)
            .filter(|_| is_plain || self.saves_grants())
    }

    /// The traits by which the tool of this name is treated, even where the model does not see it.
    pub fn traits(&self, name: &str) -> ToolTraits {
        find_traits(&self.known_tools, name)
    }

    /// The tool of this name, whether or not the model is told of it.
    pub fn known_tool(&self, name: &str) -> Option<&ToolSpec> {
        self.find(name).or_else(|| self.known_tools.iter().find(|it| it.name == name))
    }

    pub fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|it| it.name == name)
    }

    /// The same with a folder of plans, and the modes that may follow one.
    pub fn with_planning(self, planning: Planning) -> Self {
        Self { planning: Arc::new(planning), ..self }
    }

    /// The tools that the model has in a mode: the way into plan mode outside of it, and the way out in it.
    pub fn in_mode(&self, mode: Mode) -> Self {
        let other = if mode == Mode::Plan { PolicyClass::EnterPlan } else { PolicyClass::ExitPlan };
        Self { tools: self.tools.without(other), ..self.clone() }
    }

    /// For a name that no tool on offer has: what a rule says of it, or that there is none, with the nearest names.
    pub fn unknown_tool_output(&self, name: &str) -> ToolOutput {
        if self.task.is_some() {
            return unauthorized(name);
        }
        let not_found = || ToolOutput::failed(unknown_tool::not_found_error(&self.servers, &self.tools, name));
        unknown_tool::hidden_output(&self.hidden, name).unwrap_or_else(not_found)
    }
}
