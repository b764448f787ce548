//! One tool call: its states, each with its own data.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    base::{
        content::Part,
        event::{EventKind, Location, ToolDisplay, ToolProgress},
        ids::{CheckpointId, EffectId, QuestionId},
        log::{Fact, Grant, Mode, PersistentGrant},
        path::AbsPath,
        question::Form,
        sandbox::{Denial, SandboxGrant},
        text,
        tool::{BaseHash, TailCall, TargetPath, Targets, ToolCall, ToolKind, ToolOutput, ToolSpec},
    },
    engine::{
        hooks::{Hooks, firing::Firing},
        policy::{self, CheckerVerdict, RuleSet, SandboxFacts},
        record::{Record, Step},
        scheduler::{
            ask_user,
            call_hooks::{AfterHooks, CallHookEffects},
            display::{TITLE, first_display},
            plan::{self, Planning},
            todos, topic,
            unknown_tool::{HiddenTool, keep_or_hide},
        },
        step::{Effect, ForeignTool, Server},
    },
};

#[derive(Debug)]
pub struct Call {
    pub call: ToolCall,
    /// As the model asked for it; a tail call does not change what is answered.
    pub(super) original_name: String,
    pub display: ToolDisplay,
    /// The display changed since it was last shown.
    pub(super) display_dirty: bool,
    pub state: CallState,
    /// What policy decided about, where it really is.
    pub places: Arc<[TargetPath]>,
    /// It was not only asked for.
    pub(super) has_run: bool,
    /// Why the user is asked, where a safety checker wants it.
    pub ask_reason: Option<String>,
    /// Why policy asks: for the user only.
    pub(super) policy_reason: Option<String>,
    /// What policy lets it do in the sandbox, or keeps it from.
    pub(super) grant_if_allowed: SandboxGrant,
    /// The question has the choice of the mode `auto`.
    pub(super) offers_auto: bool,
    /// What the user allowed this call beyond the sandbox, with the first yes or after it had run into it.
    pub(super) sandbox_grant: SandboxGrant,
    /// How often that was asked.
    pub(super) n_expansions: u8,
    /// What castor has to say about what came of it.
    notes: Vec<String>,
    pub(super) hook_effects: CallHookEffects,
    /// The mode `auto` has it run unasked: what no checkpoint holds is read-only to it.
    pub(super) auto_allowed: bool,
    /// Policy allowed it because it can be undone: where it cannot be, the user is asked.
    pub(super) needs_undo: bool,
}

/// The tool that writes files as a whole.
const WHOLE_FILE_TOOL: &str = "write_file";

#[derive(Clone, Debug, PartialEq)]
pub enum CallState {
    Waiting,
    /// Hooks have a say, before or after it.
    RunningHooks {
        firing: Box<Firing>,
        then: AfterHooks,
    },
    Resolving {
        effect: EffectId,
    },
    /// A safety checker looks at it.
    Checking(Box<Checking>),
    Previewing {
        effect: EffectId,
        grant: Option<Grant>,
    },
    AwaitingApproval {
        question: QuestionId,
        grant: Option<Grant>,
        base: Option<BaseHash>,
    },
    Allowed {
        base: Option<BaseHash>,
    },
    /// It may run as soon as what it may change is held.
    Checkpointing {
        effect: EffectId,
        id: CheckpointId,
        base: Option<BaseHash>,
    },
    Running {
        effect: EffectId,
    },
    /// It ran and failed at the sandbox; the user is asked whether it may run again with more rights.
    SandboxDenied {
        question: QuestionId,
        denial: Denial,
        output: Box<ToolOutput>,
    },
    /// The call is a question, which the user has before them.
    AwaitingAnswer {
        question: QuestionId,
        form: Arc<Form>,
    },
    Done,
}

/// Who is asked about a call, and what is known by then.
#[derive(Clone, Debug, PartialEq)]
pub struct Checking {
    pub effect: EffectId,
    /// Wakes us when it was too long.
    pub timer: EffectId,
    /// Its place in the rules.
    pub checker: usize,
    pub limit_ms: u64,
    pub targets: Targets,
    /// What the ones before it said.
    pub verdicts: Vec<CheckerVerdict>,
}

impl CallState {
    /// Whether the call's wave cannot run yet because of it.
    pub fn is_deciding(&self) -> bool {
        matches!(
            self,
            Self::RunningHooks { then: AfterHooks::Begin, .. }
                | Self::Resolving { .. }
                | Self::Checking(_)
                | Self::Previewing { .. }
                | Self::AwaitingApproval { .. }
        )
    }

    /// Whether it was begun and has not ended.
    pub fn is_under_way(&self) -> bool {
        let ending = matches!(self, Self::RunningHooks { then: AfterHooks::End(_), .. });
        let asks = matches!(self, Self::AwaitingAnswer { .. } | Self::SandboxDenied { .. });
        ending || asks || matches!(self, Self::Checkpointing { .. } | Self::Running { .. })
    }

    /// Whether the user has a permission before them.
    pub fn is_asking(&self) -> bool {
        matches!(self, Self::AwaitingApproval { .. } | Self::SandboxDenied { .. })
    }

    /// Who is asked about it.
    pub fn checking(&self) -> Option<&Checking> {
        match self {
            Self::Checking(it) => Some(it),
            _ => None,
        }
    }

    pub fn previews(&self, id: EffectId) -> bool {
        matches!(self, Self::Previewing { effect, .. } if *effect == id)
    }

    pub fn asks_question(&self, id: QuestionId) -> bool {
        match self {
            Self::AwaitingApproval { question, .. }
            | Self::AwaitingAnswer { question, .. }
            | Self::SandboxDenied { question, .. } => *question == id,
            _ => false,
        }
    }

    pub fn grant(&self) -> Option<Grant> {
        match self {
            Self::AwaitingApproval { grant, .. } => grant.clone(),
            _ => None,
        }
    }
}

impl Call {
    pub fn new(tools: &Toolbox, call: ToolCall, cwd: &AbsPath) -> Self {
        let display = first_display(tools, &call, cwd);
        Self {
            original_name: call.name.clone(),
            call,
            display,
            display_dirty: false,
            state: CallState::Waiting,
            places: Arc::default(),
            has_run: false,
            ask_reason: None,
            policy_reason: None,
            grant_if_allowed: SandboxGrant::default(),
            offers_auto: false,
            sandbox_grant: SandboxGrant::default(),
            n_expansions: 0,
            notes: Vec::new(),
            hook_effects: CallHookEffects::default(),
            auto_allowed: false,
            needs_undo: false,
        }
    }

    /// Looks at what it would do, for the question about it.
    pub fn preview(&mut self, step: &mut Step<'_>, grant: Option<Grant>) {
        let (call, places, seen) = (self.call.clone(), self.places.clone(), self.seen_hash(step));
        let effect = step.start_effect(Effect::Preview { call, places, seen });
        self.state = CallState::Previewing { effect, grant };
    }

    /// What the world found out about its targets. Looking is named by the tool, doing by what is done.
    pub fn apply_targets(&mut self, tools: &Toolbox, targets: &Targets, cwd: &AbsPath) {
        let locations = targets.paths.iter().map(|it| Location { path: it.path.clone(), line: it.line }).collect();
        let linked = targets.paths.iter().find(|it| it.path != it.real && targets.command.is_none());
        let real = linked.map_or_else(String::new, |it| format!(" (leads to {})", it.real.relative_to(cwd)));
        let title = match (targets.title.as_str(), tools.find(&self.call.name)) {
            ("", _) => self.display.title.clone(),
            (title, Some(it)) if matches!(it.kind, ToolKind::Read | ToolKind::Search) => {
                format!("{} {title}", it.title)
            }
            (title, _) => title.to_owned(),
        };
        // What it opens is not cut away.
        let title = format!("{}{real}", text::head(&title, TITLE));
        let display = ToolDisplay { title, kind: self.display.kind, locations };
        self.display_dirty |= display != self.display;
        self.places = targets.paths.clone().into();
        self.display = display;
    }

    pub fn allow(&mut self) {
        self.sandbox_grant = std::mem::take(&mut self.sandbox_grant).union(&std::mem::take(&mut self.grant_if_allowed));
        let base = match &mut self.state {
            CallState::AwaitingApproval { base, .. } => base.take(),
            _ => None,
        };
        self.state = CallState::Allowed { base };
    }

    /// The same, and from now on all that is confined. What the question did not offer is no answer to it.
    pub fn allow_in_auto(&mut self, step: &mut Step<'_>) {
        if self.offers_auto {
            step.log(Fact::Mode { mode: Mode::Auto });
        }
        self.allow();
    }

    /// What the model knows of the file that it writes as a whole: what came in between would be lost.
    pub(super) fn seen_hash(&self, step: &Step<'_>) -> Option<BaseHash> {
        let place = self.places.first().filter(|_| self.call.name == WHOLE_FILE_TOOL)?;
        BaseHash::from_hex(step.record.seen_hash(&place.real)?)
    }

    /// The model is told with the result; the same thing once.
    pub fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The one end of the call.
    pub fn end(&mut self, step: &mut Step<'_>, output: ToolOutput) {
        self.state = CallState::Done;
        let mut content = match &output.error {
            Some(error) if output.content.is_empty() => vec![Part::text(&*error.message)],
            _ => output.content,
        };
        content.extend(std::mem::take(&mut self.notes).into_iter().map(Part::text));
        step.emit_event(EventKind::ToolResponse {
            request_id: self.call.id.clone(),
            name: self.original_name.clone(),
            content,
            display: output.display,
            summary: output.summary,
            error: output.error,
            data: output.data,
            seen: output.file_knowledge,
        });
    }

    /// Another call in this one's place, under the same id.
    pub fn replace_with_tail(&mut self, tools: &Toolbox, tail: TailCall, cwd: &AbsPath) {
        self.call.name = tail.name;
        self.call.args = tail.args;
        self.display = first_display(tools, &self.call, cwd);
        self.display_dirty = true;
        self.ask_reason = None;
        (self.auto_allowed, self.needs_undo) = (false, false);
        // What was allowed was allowed to the other call.
        self.sandbox_grant = SandboxGrant::default();
        self.state = CallState::Waiting;
    }

    pub(super) fn send_progress(&self, step: &mut Step<'_>, update: ToolProgress) {
        step.emit_event(EventKind::ToolUpdate { request_id: self.call.id.clone(), update });
    }
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

/// What a session tool comes to.
pub enum SessionToolResult {
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

impl Toolbox {
    /// `builtins` and the session tools, in one sorted table, without those that are always denied.
    pub fn new(builtins: Vec<ToolSpec>, rules: RuleSet, interactive: bool) -> Self {
        let mut tools = builtins;
        tools.extend([plan::enter_spec(), todos::spec(), topic::spec()]);
        // Where nobody can be asked, the model is not told of it.
        tools.extend(interactive.then(ask_user::spec));
        let mut hidden = Vec::new();
        tools.retain(|it| {
            keep_or_hide(&mut hidden, it, None, policy::unconditional_deny(&rules, it, None, interactive))
        });
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let tools: Arc<[ToolSpec]> = tools.into();
        let (outside, servers) = (Arc::default(), Arc::default());
        let (rules, hooks) = (Arc::new(rules), Hooks::default());
        Self {
            own_tools: tools.clone(),
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
        policy::persistent_grant(call, grant, server, mode).filter(|_| self.saves_grants)
    }

    pub fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|it| it.name == name)
    }

    pub fn is_session_tool(&self, name: &str) -> bool {
        SESSION_TOOLS.iter().any(|(it, _)| *it == name)
    }

    pub fn run_session_tool(&self, step: &mut Step<'_>, call: &ToolCall) -> SessionToolResult {
        let run = SESSION_TOOLS.iter().find(|(it, _)| *it == call.name).map(|(_, run)| run);
        match (run, call.args.as_object()) {
            (Some(run), Some(args)) => run(step, args),
            _ => SessionToolResult::Output(Box::default()),
        }
    }
}
