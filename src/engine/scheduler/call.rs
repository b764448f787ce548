//! One tool call: its states, each with its own data.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::server_login::ServerLogin;
use crate::{
    hooks::firing::Firing,
    policy::CheckerVerdict,
    record::{COMMAND_META, Step},
    scheduler::{
        display::{TITLE, first_display},
        peer_permission,
        toolbox::{CallContext, Toolbox},
    },
    step::Effect,
};
use castor_base::{
    check::CheckFinding,
    content::{Part, joined_text},
    credential::Credential,
    event::{EventKind, Location, ToolDisplay, ToolProgress},
    ids::{CheckpointId, EffectId, QuestionId},
    log::{Fact, Grant, Mode},
    patch::{self, APPLY_PATCH, PATCH_OPERATION},
    path::AbsPath,
    peer_agent::REQUEST_PERMISSION,
    question::Form,
    sandbox::{Denial, SandboxGrant},
    state::StateDelta,
    text,
    tool::{
        BaseHash, PolicyClass, SeenFiles, TailCall, TargetPath, Targets, ToolCall, ToolError, ToolKind, ToolOutput,
        ToolTraits,
    },
};

#[derive(Debug)]
pub struct Call {
    pub call: ToolCall,
    /// The traits of its tool.
    pub(super) traits: ToolTraits,
    /// The tool's name as the model asked for it; a tail call does not change the answer's name.
    pub(super) original_name: String,
    /// Another agent does it by itself, once it may.
    pub(super) asks_only: bool,
    pub display: ToolDisplay,
    /// The display changed since it was last shown.
    pub(super) display_dirty: bool,
    pub state: CallState,
    /// The real places of the files that policy decided about.
    pub places: Arc<[TargetPath]>,
    /// It was not only asked for.
    pub(super) has_run: bool,
    /// The reason why a safety checker wants the user to be asked.
    pub ask_reason: Option<String>,
    /// The reason why policy asks: for the user only.
    pub(super) policy_reason: Option<String>,
    /// The sandbox grant that policy gives it, or its restrictions.
    pub(super) grant_if_allowed: SandboxGrant,
    /// The question has the choice of the mode `auto`.
    pub(super) offers_auto: bool,
    /// The user said yes to other arguments, about which policy has not decided yet.
    pub(super) edited: Option<EditedApproval>,
    /// The user's approval beyond the sandbox, with the first approval or after the call had run into it.
    pub(super) sandbox_grant: SandboxGrant,
    /// The number of questions about that.
    pub(super) n_expansions: u8,
    /// The user was asked for another credential.
    pub(super) is_renewed: bool,
    /// Remarks of castor's on its outcome.
    notes: Vec<String>,
    pub(super) hook_effects: CallHookEffects,
    /// The mode `auto` has it run unasked: what no checkpoint holds is read-only to it.
    pub(super) auto_allowed: bool,
    /// A person saw its diff, and said yes to that alone.
    pub(super) is_looked_at: bool,
    /// Policy allowed it because it can be undone: where it cannot be, the user is asked.
    pub(super) needs_undo: bool,
    /// The change of the state when this and all calls before it have ended.
    pub(super) state_change: StateDelta,
    /// It is not the model's, and it is not told of it.
    pub(super) is_aside: bool,
    /// The outcome of such a call.
    pub(super) outcome: Option<Result<String, ToolError>>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum CallState {
    Waiting,
    /// Hooks have a say, before or after it.
    RunningHooks {
        firing: Box<Firing>,
        then: AfterHooks,
        subject: HookedPart,
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
    /// The host runs it before the next prompt.
    Returned,
    /// Its server refused its credential; the user is asked for another one.
    Unauthorized(Box<RefusedCall>),
    /// The call is a question, which the user has before them.
    AwaitingAnswer {
        question: QuestionId,
        form: Arc<Form>,
    },
    Done,
}

/// The part of a call that hooks read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookedPart {
    Call,
    /// The change that a patch makes to one of its files, as a call of another tool.
    File(usize),
}

/// The outcome that a call keeps while its hooks run.
#[derive(Clone, Debug, PartialEq)]
pub enum AfterHooks {
    Begin,
    /// It failed, and those of failures are heard first.
    Failed(Box<ToolOutput>),
    End(Box<ToolOutput>),
}

impl AfterHooks {
    /// The output of the call, once there is one.
    pub fn output(&self) -> Option<&ToolOutput> {
        match self {
            Self::Begin => None,
            Self::Failed(it) | Self::End(it) => Some(it),
        }
    }
}

/// A call that waits for another credential.
#[derive(Clone, Debug, PartialEq)]
pub struct RefusedCall {
    pub credential: Box<Credential>,
    /// The output that the call ends with if nothing is renewed.
    pub output: Box<ToolOutput>,
    /// The user accepted once, and nothing had changed.
    pub is_repeated: bool,
    pub stage: RenewalStage,
}

#[derive(Clone, Debug, PartialEq)]
pub enum RenewalStage {
    Asking(QuestionId),
    /// The user says that it is renewed.
    Reading(EffectId),
    /// castor logs in by itself.
    LoggingIn(ServerLogin),
}

/// Effects of hooks on a call.
#[derive(Debug, Default)]
pub struct CallHookEffects {
    /// The reason why hooks want the user to be asked, whatever policy says.
    pub ask_reason: Option<String>,
    /// Arguments that they changed.
    pub changed_args: Vec<String>,
    /// Calls that they had made in its place.
    pub(super) n_tails: u8,
}

/// An approval in the user's own words, and the text of the question that it answers.
#[derive(Debug)]
pub struct EditedApproval {
    pub args: Value,
    pub reasons: Option<String>,
    pub grant: SandboxGrant,
}

/// Reviews of a call by hooks, checkers and the client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reviews {
    pub checkers: Vec<CheckerVerdict>,
    /// The client's own policy, of each subject of the decision.
    pub client: Vec<Result<CheckFinding, String>>,
}

/// The review of a call that is under way, and the reviews before it.
#[derive(Clone, Debug, PartialEq)]
pub struct Checking {
    pub effect: EffectId,
    /// Wakes us when it was too long.
    pub timer: EffectId,
    pub who: Reviewer,
    pub targets: Targets,
    /// Reviews of the reviewers before it.
    pub said: Reviews,
}

/// A reviewer of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reviewer {
    /// Its place in the rules; `None`: the client's policy.
    pub checker: Option<usize>,
    /// The index of the decision's subject that it reviews.
    pub subject: usize,
    pub limit_ms: u64,
}

impl CallState {
    /// Tells whether the call's wave has to wait for its decision.
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

    /// Tells whether it was begun and has not ended.
    pub fn is_under_way(&self) -> bool {
        let ending = matches!(self, Self::RunningHooks { then: AfterHooks::Failed(_) | AfterHooks::End(_), .. });
        let asks = matches!(self, Self::AwaitingAnswer { .. } | Self::SandboxDenied { .. } | Self::Unauthorized(_));
        ending || asks || matches!(self, Self::Checkpointing { .. } | Self::Running { .. })
    }

    /// The review that is under way.
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
            Self::Unauthorized(it) => it.stage == RenewalStage::Asking(id),
            _ => false,
        }
    }

    pub fn grant(&self) -> Option<Grant> {
        match self {
            Self::Previewing { grant, .. } | Self::AwaitingApproval { grant, .. } => grant.clone(),
            _ => None,
        }
    }
}

/// A provider's own operation on one file, as the patch that does the same; and a patch that came without a name.
fn patch_call(call: &ToolCall) -> Option<ToolCall> {
    let input = match (&*call.name, &call.args) {
        (PATCH_OPERATION, args) => patch::from_operation(args)?,
        (APPLY_PATCH, Value::String(it)) => it.clone(),
        _ => return None,
    };
    let args = json!({ "input": input });
    Some(ToolCall { id: call.id.clone(), name: APPLY_PATCH.to_owned(), args })
}

impl Call {
    pub fn new(tools: &Toolbox, call: ToolCall, cwd: &AbsPath) -> Self {
        let (original_name, asks_only) = (call.name.clone(), call.name == REQUEST_PERMISSION);
        let call = peer_permission::permission_call(&call).or_else(|| patch_call(&call)).unwrap_or(call);
        let display = first_display(tools, &call, cwd);
        Self {
            original_name,
            asks_only,
            traits: tools.traits(&call.name),
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
            edited: None,
            sandbox_grant: SandboxGrant::default(),
            n_expansions: 0,
            is_renewed: false,
            notes: Vec::new(),
            hook_effects: CallHookEffects::default(),
            auto_allowed: false,
            is_looked_at: false,
            needs_undo: false,
            state_change: StateDelta::default(),
            is_aside: false,
            outcome: None,
        }
    }

    pub(super) fn is_of(&self, class: PolicyClass) -> bool {
        self.traits.class == class
    }

    /// Tells whether it started a sub-agent that has not ended.
    pub(super) fn is_child_under_way(&self) -> bool {
        let runs = matches!(self.state, CallState::Checkpointing { .. } | CallState::Running { .. });
        runs && self.is_of(PolicyClass::Delegate)
    }

    /// Takes in the targets that the world found. The tool names a look, the target names a change.
    pub fn apply_targets(&mut self, tools: &Toolbox, targets: &Targets, cwd: &AbsPath) {
        let locations = targets.paths.iter().map(|it| Location { path: it.path.clone(), line: it.line }).collect();
        let linked = targets.paths.iter().find(|it| it.path != it.real && !it.temporary && targets.command.is_none());
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
        let base = match &mut self.state {
            CallState::AwaitingApproval { base, .. } => base.take(),
            _ => None,
        };
        self.allow_on(base);
    }

    /// `base`: the file that the user saw changed.
    pub(super) fn allow_on(&mut self, base: Option<BaseHash>) {
        self.sandbox_grant = std::mem::take(&mut self.sandbox_grant).union(&std::mem::take(&mut self.grant_if_allowed));
        self.edited = None;
        self.state = CallState::Allowed { base };
    }

    /// The same, and from now on all that is confined. What the question did not offer is no answer to it.
    pub fn allow_in_auto(&mut self, cx: &mut CallContext<'_, '_>) {
        if self.offers_auto {
            cx.step.log(Fact::Mode { mode: Mode::Auto });
            if cx.tools.saves_mode() {
                cx.step.start_effect(Effect::UpdateGrant { grant: Grant::Auto, holds: true });
            }
        }
        self.allow();
    }

    /// The model's knowledge of files that it may overwrite as a whole: changes in between would be lost.
    pub(super) fn seen_files(&self, step: &Step<'_>) -> SeenFiles {
        let writes_whole = self.traits.overwrites || self.traits.is_patch;
        let places = self.places.iter().filter(|_| writes_whole).map(|it| &it.real);
        let seen = |real: &AbsPath| Some((real.clone(), BaseHash::from_hex(step.record.seen_hash(real)?)?));
        places.filter_map(seen).collect()
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
        if self.is_aside {
            self.outcome = Some(output.error.clone().map_or_else(|| Ok(joined_text(&content)), Err));
        }
        let response = EventKind::ToolResponse {
            request_id: self.call.id.clone(),
            name: self.original_name.clone(),
            content,
            display: output.display,
            summary: output.summary,
            error: output.error,
            data: output.data,
            seen: output.file_knowledge,
        };
        step.emit_event_with(response, self.marks());
    }

    /// Its first event. `args`: as they were asked for.
    pub(super) fn show(&self, step: &mut Step<'_>, args: Value, signature: Option<&str>) {
        let request = EventKind::ToolRequest {
            request_id: self.call.id.clone(),
            name: self.original_name.clone(),
            args,
            display: self.display.clone(),
            signature: signature.map(str::to_owned),
        };
        step.emit_event_with(request, self.marks());
    }

    /// The marks of a call that the model does not see.
    fn marks(&self) -> Map<String, Value> {
        let mark = self.is_aside.then(|| (COMMAND_META.to_owned(), true.into()));
        mark.into_iter().collect()
    }

    /// Another call in this one's place, under the same id.
    pub fn replace_with_tail(&mut self, tools: &Toolbox, tail: TailCall, cwd: &AbsPath) {
        self.call.name = tail.name;
        self.call.args = tail.args;
        self.traits = tools.traits(&self.call.name);
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
