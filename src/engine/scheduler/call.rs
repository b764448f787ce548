//! One call: its states, one shape each, and the tools it may be for.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    base::{
        content::Part,
        event::{EventKind, Location, ToolDisplay, ToolProgress},
        ids::{CheckpointId, EffectId, QuestionId},
        log::{Fact, Grant, Lasting, Mode},
        path::AbsPath,
        question::Form,
        sandbox::{Denial, Leave},
        text,
        tool::{BaseHash, TailCall, TargetPath, Targets, ToolCall, ToolKind, ToolOutput, ToolSpec},
    },
    engine::{
        hooks::{Hooks, firing::Firing},
        policy::{self, CheckerVerdict, Rules, Sandbox},
        record::{Record, Step},
        scheduler::{
            ask,
            display::{TITLE, first_display},
            hooked::{Hooked, Then},
            plan::{self, Planning},
            todos, topic,
            unknown::{Hidden, hide},
        },
        step::{Effect, Outside, Server},
    },
};

#[derive(Debug)]
pub struct Call {
    pub call: ToolCall,
    /// As the model asked for it; a tail call does not change what is answered.
    pub(super) asked_as: String,
    pub display: ToolDisplay,
    /// The display changed since it was last shown.
    pub(super) news: bool,
    pub state: State,
    /// What policy decided about, where it really is.
    pub places: Arc<[TargetPath]>,
    /// It was not only asked for.
    pub(super) ran: bool,
    /// Why the user is asked, where a safety checker wants it.
    pub reason: Option<String>,
    /// Why policy asks: for the user only.
    pub(super) why: Option<String>,
    /// What policy lets it do in the sandbox, or keeps it from.
    pub(super) opens: Leave,
    /// The question has the choice of the mode `auto`.
    pub(super) offers_auto: bool,
    /// What the user allowed this call beyond the sandbox, with the first yes or after it had run into it.
    pub(super) leave: Leave,
    /// How often that was asked.
    pub(super) n_expansions: u8,
    /// What castor has to say about what came of it.
    notes: Vec<String>,
    pub(super) hooked: Hooked,
    /// The mode `auto` has it run unasked: what no checkpoint holds is read-only to it.
    pub(super) is_unasked: bool,
    /// Policy allowed it because it can be undone: where it cannot be, the user is asked.
    pub(super) needs_undo: bool,
}

/// The tool that writes files as a whole.
const OVERWRITES: &str = "write_file";

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Waiting,
    /// Hooks have a say, before or after it.
    Hooking {
        firing: Box<Firing>,
        then: Then,
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
    Asking {
        question: QuestionId,
        grant: Option<Grant>,
        base: Option<BaseHash>,
    },
    Allowed {
        base: Option<BaseHash>,
    },
    /// It may run as soon as what it may change is held.
    Holding {
        effect: EffectId,
        id: CheckpointId,
        base: Option<BaseHash>,
    },
    Running {
        effect: EffectId,
    },
    /// It ran and failed at the sandbox; the user is asked whether it may run again with more rights.
    Denied {
        question: QuestionId,
        denial: Denial,
        output: Box<ToolOutput>,
    },
    /// The call is a question, which the user has before them.
    Inquiring {
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
    pub heard: Vec<CheckerVerdict>,
}

impl State {
    /// Whether the call's wave cannot run yet because of it.
    pub fn is_deciding(&self) -> bool {
        matches!(
            self,
            Self::Hooking { then: Then::Begin, .. }
                | Self::Resolving { .. }
                | Self::Checking(_)
                | Self::Previewing { .. }
                | Self::Asking { .. }
        )
    }

    /// Whether it was begun and has not ended.
    pub fn is_under_way(&self) -> bool {
        let ending = matches!(self, Self::Hooking { then: Then::End(_), .. });
        let asks = matches!(self, Self::Inquiring { .. } | Self::Denied { .. });
        ending || asks || matches!(self, Self::Holding { .. } | Self::Running { .. })
    }

    /// Whether the user has a permission before them.
    pub fn is_asking(&self) -> bool {
        matches!(self, Self::Asking { .. } | Self::Denied { .. })
    }

    /// Who is asked about it.
    pub fn checks(&self) -> Option<&Checking> {
        match self {
            Self::Checking(it) => Some(it),
            _ => None,
        }
    }

    pub fn previews(&self, id: EffectId) -> bool {
        matches!(self, Self::Previewing { effect, .. } if *effect == id)
    }

    pub fn asks(&self, id: QuestionId) -> bool {
        match self {
            Self::Asking { question, .. } | Self::Inquiring { question, .. } | Self::Denied { question, .. } => {
                *question == id
            }
            _ => false,
        }
    }

    pub fn grant(&self) -> Option<Grant> {
        match self {
            Self::Asking { grant, .. } => grant.clone(),
            _ => None,
        }
    }
}

impl Call {
    pub fn new(tools: &Toolbox, call: ToolCall, cwd: &AbsPath) -> Self {
        let display = first_display(tools, &call, cwd);
        Self {
            asked_as: call.name.clone(),
            call,
            display,
            news: false,
            state: State::Waiting,
            places: Arc::default(),
            ran: false,
            reason: None,
            why: None,
            opens: Leave::default(),
            offers_auto: false,
            leave: Leave::default(),
            n_expansions: 0,
            notes: Vec::new(),
            hooked: Hooked::default(),
            is_unasked: false,
            needs_undo: false,
        }
    }

    /// Looks at what it would do, for the question about it.
    pub fn preview(&mut self, step: &mut Step<'_>, grant: Option<Grant>) {
        let (call, places, seen) = (self.call.clone(), self.places.clone(), self.seen(step));
        let effect = step.effect(Effect::Preview { call, places, seen });
        self.state = State::Previewing { effect, grant };
    }

    /// What the world found out about its targets. Looking is named by the tool, doing by what is done.
    pub fn describe(&mut self, tools: &Toolbox, targets: &Targets, cwd: &AbsPath) {
        let locations = targets.paths.iter().map(|it| Location { path: it.path.clone(), line: it.line }).collect();
        let linked = targets.paths.iter().find(|it| it.path != it.real && targets.command.is_none());
        let real = linked.map_or_else(String::new, |it| format!(" (leads to {})", it.real.shown_from(cwd)));
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
        self.news |= display != self.display;
        self.places = targets.paths.clone().into();
        self.display = display;
    }

    pub fn allow(&mut self) {
        self.leave = std::mem::take(&mut self.leave).and(&std::mem::take(&mut self.opens));
        let base = match &mut self.state {
            State::Asking { base, .. } => base.take(),
            _ => None,
        };
        self.state = State::Allowed { base };
    }

    /// The same, and from now on all that is confined. What the question did not offer is no answer to it.
    pub fn allow_in_auto(&mut self, step: &mut Step<'_>) {
        if self.offers_auto {
            step.log(Fact::Mode { mode: Mode::Auto });
        }
        self.allow();
    }

    /// What the model knows of the file that it writes as a whole: what came in between would be lost.
    pub(super) fn seen(&self, step: &Step<'_>) -> Option<BaseHash> {
        let place = self.places.first().filter(|_| self.call.name == OVERWRITES)?;
        BaseHash::from_hex(step.record.seen(&place.real)?)
    }

    /// The model is told with the result; the same thing once.
    pub fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// The one end of the call.
    pub fn end(&mut self, step: &mut Step<'_>, output: ToolOutput) {
        self.state = State::Done;
        let mut content = match &output.error {
            Some(error) if output.content.is_empty() => vec![Part::text(&*error.message)],
            _ => output.content,
        };
        content.extend(std::mem::take(&mut self.notes).into_iter().map(Part::text));
        step.event(EventKind::ToolResponse {
            request_id: self.call.id.clone(),
            name: self.asked_as.clone(),
            content,
            display: output.display,
            summary: output.summary,
            error: output.error,
            data: output.data,
            seen: output.seen,
        });
    }

    /// Another call in this one's place, under the same id.
    pub fn replace(&mut self, tools: &Toolbox, tail: TailCall, cwd: &AbsPath) {
        self.call.name = tail.name;
        self.call.args = tail.args;
        self.display = first_display(tools, &self.call, cwd);
        self.news = true;
        self.reason = None;
        (self.is_unasked, self.needs_undo) = (false, false);
        // What was allowed was allowed to the other call.
        self.leave = Leave::default();
        self.state = State::Waiting;
    }

    pub(super) fn tell(&self, step: &mut Step<'_>, update: ToolProgress) {
        step.event(EventKind::ToolUpdate { request_id: self.call.id.clone(), update });
    }
}

/// The tools of a session and the rules about them: an immutable snapshot.
#[derive(Clone, Debug)]
pub struct Toolbox {
    /// Sorted by name; session tools included.
    pub tools: Arc<[ToolSpec]>,
    pub rules: Arc<Rules>,
    pub hooks: Hooks,
    /// Whether somebody can be asked.
    pub interactive: bool,
    /// Whether answers may hold for ever.
    pub(super) saves: bool,
    /// What commands may do beyond the sandbox in this folder, for ever.
    pub kept: Arc<[Grant]>,
    /// How its commands are held, in words; and as policy sees it.
    pub sandbox: Arc<str>,
    pub confinement: Sandbox,
    /// What of `tools` is castor's own.
    pub(super) own: Arc<[ToolSpec]>,
    /// What of `tools` is from outside.
    pub(super) outside: Arc<[Outside]>,
    /// What the model is not told of.
    pub(super) hidden: Arc<[Hidden]>,
    /// Where those come from, and where more may come from.
    pub servers: Arc<[Server]>,
    pub planning: Arc<Planning>,
    /// Whether what calls may change is held.
    pub checkpoints: bool,
}

/// What a session tool comes to.
pub enum Done {
    Output(Box<ToolOutput>),
    /// The user's answer decides.
    Ask(Form),
}

/// Tools that are pure steps of the engine.
type SessionTool = fn(&mut Step<'_>, &Map<String, Value>) -> Done;
const SESSION_TOOLS: &[(&str, SessionTool)] = &[
    (ask::NAME, |_, args| ask::form(args).map_or_else(|it| Done::Output(Box::new(ToolOutput::failed(it))), Done::Ask)),
    (plan::ENTER, |step, args| Done::Output(Box::new(plan::enter(step, args)))),
    (topic::NAME, |step, args| Done::Output(Box::new(topic::run(step, args)))),
    (todos::NAME, |step, args| Done::Output(Box::new(todos::run(step, args)))),
];

impl Toolbox {
    /// `builtins` and the session tools, in one sorted table, without those that are always denied.
    pub fn new(builtins: Vec<ToolSpec>, rules: Rules, interactive: bool) -> Self {
        let mut tools = builtins;
        tools.extend([plan::enter_spec(), todos::spec(), topic::spec()]);
        // Where nobody can be asked, the model is not told of it.
        tools.extend(interactive.then(ask::spec));
        let mut hidden = Vec::new();
        tools.retain(|it| hide(&mut hidden, it, None, policy::hidden(&rules, it, None, interactive)));
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let tools: Arc<[ToolSpec]> = tools.into();
        let (outside, servers) = (Arc::default(), Arc::default());
        let (rules, hooks) = (Arc::new(rules), Hooks::default());
        Self {
            own: tools.clone(),
            tools,
            rules,
            hooks,
            interactive,
            outside,
            hidden: hidden.into(),
            servers,
            saves: false,
            kept: Arc::default(),
            planning: Arc::default(),
            sandbox: Arc::default(),
            checkpoints: false,
            confinement: Sandbox::default(),
        }
    }

    /// The same with hooks.
    pub fn hooking(self, hooks: Hooks) -> Self {
        Self { hooks, ..self }
    }

    /// The same whose commands are held so.
    pub fn held(self, words: String, confinement: Sandbox) -> Self {
        Self { sandbox: words.into(), confinement, ..self }
    }

    /// Whether a question may be answered with the mode `auto`: it is one of the session's, and nobody was asked before.
    pub fn offers_auto(&self, record: &Record) -> bool {
        self.planning.modes.contains(&Mode::Auto) && !record.was_asked()
    }

    /// The same whose calls can be undone, or not.
    pub fn undoing(self, checkpoints: bool) -> Self {
        Self { checkpoints, ..self }
    }

    /// The same with these tools only.
    pub fn only(&self, names: &[&str]) -> Self {
        let kept = self.tools.iter().filter(|it| names.contains(&&*it.name)).cloned();
        Self { tools: kept.collect(), ..self.clone() }
    }

    /// The same with these tools from outside, in place of those before, without those that are always denied. A name
    /// that is castor's own stays castor's.
    pub fn equipped(&self, mut outside: Vec<Outside>, servers: Vec<Server>) -> Self {
        let is_own = |it: &Outside| self.own.iter().any(|own| own.name == it.spec.name);
        let by = |it: &Outside| policy::hidden(&self.rules, &it.spec, Some(&it.server), self.interactive);
        let mut hidden: Vec<Hidden> = self.hidden.iter().filter(|it| it.server.is_none()).cloned().collect();
        outside.retain(|it| !is_own(it) && hide(&mut hidden, &it.spec, Some(&it.server), by(it)));
        let mut tools = self.own.to_vec();
        tools.extend(outside.iter().map(|it| it.spec.clone()));
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let (tools, outside, hidden) = (tools.into(), outside.into(), hidden.into());
        Self { tools, outside, hidden, servers: servers.into(), ..self.clone() }
    }

    /// The tool of this name, if it is from outside.
    pub fn outside(&self, name: &str) -> Option<&Outside> {
        self.outside.iter().find(|it| it.spec.name == name)
    }

    /// What the model has from a server.
    pub fn of_server<'a>(&'a self, server: &'a str) -> impl Iterator<Item = &'a ToolSpec> {
        self.outside.iter().filter(move |it| it.server == server).map(|it| &it.spec)
    }

    /// What the user allowed: with the tools, and in this session. Of servers' tools only what is still as it was then.
    pub fn grants(&self, session: &[Grant]) -> Vec<Grant> {
        let of_trusted = self.outside.iter().filter(|it| it.trusted);
        let of_session = session.iter().filter_map(|it| match it {
            Grant::Tool { tool } if self.outside(tool).is_some() => None,
            Grant::Foreign { tool, digest } => {
                let same = self.outside(tool).is_some_and(|it| it.digest() == *digest);
                same.then(|| Grant::Tool { tool: tool.clone() })
            }
            it => Some(it.clone()),
        });
        of_trusted.map(|it| Grant::Tool { tool: it.spec.name.to_string() }).chain(of_session).collect()
    }

    /// A yes as it is kept: of a server's tool, for what the tool is now.
    pub fn bound(&self, grant: Grant) -> Grant {
        match grant {
            Grant::Tool { tool } => match self.outside(&tool).map(Outside::digest) {
                Some(digest) => Grant::Foreign { tool, digest },
                None => Grant::Tool { tool },
            },
            it => it,
        }
    }

    /// Whether answers may hold for ever.
    pub fn saving(self, saves: bool) -> Self {
        Self { saves, ..self }
    }

    /// The same with what holds in the folder beyond the sandbox.
    pub fn keeping(self, kept: Vec<Grant>) -> Self {
        Self { kept: kept.into(), ..self }
    }

    /// What a yes for ever to this call would be, where it is on offer.
    pub fn lasting(&self, call: &ToolCall, grant: &Grant, mode: Mode) -> Option<Lasting> {
        let server = self.outside(&call.name).map(|it| it.server.as_str());
        policy::persistent(call, grant, server, mode).filter(|_| self.saves)
    }

    pub fn find(&self, name: &str) -> Option<&ToolSpec> {
        self.tools.iter().find(|it| it.name == name)
    }

    pub fn is_session_tool(&self, name: &str) -> bool {
        SESSION_TOOLS.iter().any(|(it, _)| *it == name)
    }

    pub fn run_session_tool(&self, step: &mut Step<'_>, call: &ToolCall) -> Done {
        let run = SESSION_TOOLS.iter().find(|(it, _)| *it == call.name).map(|(_, run)| run);
        match (run, call.args.as_object()) {
            (Some(run), Some(args)) => run(step, args),
            _ => Done::Output(Box::default()),
        }
    }
}
