//! The tool call scheduler, from proposal to result: waves, approvals, runs. Every call ends exactly once.

mod approval;
mod ask_user;
mod call;
mod call_hooks;
mod checkpoints;
mod decide;
mod display;
pub mod elicitation;
mod history;
pub mod plan;
mod sandbox_denial;
mod todos;
mod topic;
mod unknown_tool;
mod wave;

pub use call::Toolbox;
pub use plan::Planning;

use crate::{
    base::{
        check::CheckFinding,
        content::Part,
        event::{EventKind, ToolProgress},
        ids::{EffectId, QuestionId},
        log::{Answer, Fact},
        path::AbsPath,
        question::Form,
        sandbox::Denial,
        tool::{Preview, Targets, ToolCall, ToolError, ToolOutput},
    },
    engine::{
        hooks::firing::Firing,
        policy,
        record::Step,
        scheduler::{
            call::{Call, CallState, SessionToolResult},
            decide::decide,
        },
        step::Effect,
    },
};

/// The calls of one answer of the model.
#[derive(Debug, Default)]
pub struct Scheduler {
    calls: Vec<Call>,
    /// Questions of servers that are open.
    elicitations: Vec<elicitation::OpenElicitation>,
    /// Hooks that were told of a question.
    notification_hooks: Vec<Firing>,
}

/// Where the batch stands after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchStatus {
    /// Something is still awaited.
    Open,
    /// Every call has ended: the model can be asked again.
    Done,
    /// The user ended the turn at a question.
    TurnCancelled,
    /// A hook ended the turn: why.
    HookStopped(String),
    /// The question goes into a message, and the next prompt is the answer.
    AskedInText(String),
    /// Going on makes no sense: why.
    Fatal(String),
}

impl Scheduler {
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// The calls are over; who was told beside them may still answer.
    pub fn clear(&mut self) {
        self.calls.clear();
    }

    /// Where in the session's folders calls were that ran.
    pub fn touched_paths(&self) -> impl Iterator<Item = &AbsPath> {
        let places = self.calls.iter().filter(|it| it.has_run).flat_map(|it| it.places.iter());
        places.filter(|it| it.in_roots).map(|it| &it.real)
    }

    /// Takes a call in as it streams from the model, and shows it.
    pub fn propose(&mut self, step: &mut Step<'_>, tools: &Toolbox, call: ToolCall, signature: Option<&str>) {
        let call = Call::new(tools, call, &step.record.cwd);
        step.emit_event(EventKind::ToolRequest {
            request_id: call.call.id.clone(),
            name: call.call.name.clone(),
            args: call.call.args.clone(),
            display: call.display.clone(),
            signature: signature.map(str::to_owned),
        });
        self.calls.push(call);
    }

    /// Moves as far as is possible now: begins the next wave, runs a settled one.
    pub fn advance(&mut self, step: &mut Step<'_>, tools: &Toolbox) -> BatchStatus {
        loop {
            if self.calls.iter().all(|it| matches!(it.state, CallState::Done)) {
                return BatchStatus::Done;
            }
            if self.calls.iter().any(|it| it.state.is_deciding()) {
                return BatchStatus::Open;
            }
            if self.run_settled(step, tools) || self.calls.iter().any(|it| it.state.is_under_way()) {
                return BatchStatus::Open;
            }
            self.begin_wave(step, tools);
        }
    }

    fn begin_wave(&mut self, step: &mut Step<'_>, tools: &Toolbox) {
        for idx in wave::next_wave(&self.calls) {
            let Some(call) = self.calls.get_mut(idx) else { continue };
            match tools.find(&call.call.name) {
                None => {
                    call.end(step, ToolOutput::failed(tools.unknown_tool_error(&call.call.name)));
                }
                Some(_) if !call.call.args.is_object() => {
                    let text = format!("The arguments of {} are not a JSON object.", call.call.name);
                    call.end(step, ToolOutput::failed(ToolError::new("invalid_tool_params", text)));
                }
                Some(_) => {
                    plan::resolve_plan_path(call, step.record.mode, &tools.planning);
                    call.run_before_hooks(step, tools);
                }
            }
        }
    }

    /// Starts every call that is allowed; execution begins only when the whole wave is settled.
    fn run_settled(&mut self, step: &mut Step<'_>, tools: &Toolbox) -> bool {
        let mut started = false;
        for call in &mut self.calls {
            if !matches!(call.state, CallState::Allowed { .. }) {
                continue;
            }
            if tools.is_session_tool(&call.call.name) {
                match tools.run_session_tool(step, &call.call) {
                    SessionToolResult::Output(output) => call.run_after_hooks(step, tools, *output),
                    SessionToolResult::Ask(form) => call.ask_form(step, form),
                }
                continue;
            }
            call.run(step, tools);
            started = true;
        }
        started
    }

    pub fn on_resolved(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        result: Result<Targets, ToolError>,
    ) -> BatchStatus {
        let Some(call) = self.calls.iter_mut().find(|it| it.state == CallState::Resolving { effect }) else {
            return BatchStatus::Open;
        };
        match result {
            Ok(targets) => {
                call.apply_targets(tools, &targets, &step.record.cwd);
                decide(call, step, tools, targets, Vec::new());
            }
            Err(error) if !call.hook_effects.changed_args.is_empty() => {
                let why = format!("Tool parameter modification by hook failed validation: {}", error.message);
                call.end(step, ToolOutput::failed(ToolError::new(&error.kind, why)));
            }
            Err(error) => call.end(step, ToolOutput::failed(error)),
        }
        self.advance(step, tools)
    }

    /// A safety checker was heard, or failed.
    pub fn on_checked(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        said: Result<CheckFinding, String>,
    ) -> BatchStatus {
        let Some(call) = self.calls.iter_mut().find(|it| it.state.checking().is_some_and(|it| it.effect == effect))
        else {
            return BatchStatus::Open;
        };
        decide::add_verdict(call, step, tools, said);
        self.advance(step, tools)
    }

    /// Time is over for whoever was to answer by now.
    pub fn on_timer(&mut self, step: &mut Step<'_>, tools: &Toolbox, timer: EffectId) -> BatchStatus {
        let Some(call) = self.calls.iter_mut().find(|it| it.state.checking().is_some_and(|it| it.timer == timer))
        else {
            return BatchStatus::Open;
        };
        decide::checker_timed_out(call, step, tools);
        self.advance(step, tools)
    }

    pub fn on_previewed(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        result: Result<Preview, ToolError>,
    ) -> BatchStatus {
        let Some(at) = self.calls.iter().position(|it| it.state.previews(effect)) else {
            return BatchStatus::Open;
        };
        let Some(call) = self.calls.get_mut(at) else { return BatchStatus::Open };
        match result {
            Ok(preview) if call.call.name == plan::EXIT => self.ask_plan_review(step, tools, at, &preview),
            Ok(preview) => {
                let shown = preview.display.clone();
                call.ask_approval(step, tools, preview);
                self.notify_hooks(step, tools, at, shown.as_ref());
            }
            // What cannot be previewed would not work either: the model learns why, the user is not bothered.
            Err(error) => call.end(step, ToolOutput::failed(error)),
        }
        self.advance(step, tools)
    }

    pub fn on_answer(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        question: QuestionId,
        answer: Answer,
    ) -> BatchStatus {
        if let Some(standing) = self.on_elicitation_answer(step, question, &answer) {
            return standing;
        }
        let at = self.calls.iter().position(|it| it.state.asks_question(question));
        let Some((at, call)) = at.and_then(|at| Some((at, self.calls.get_mut(at)?))) else { return BatchStatus::Open };
        step.log(Fact::Answered { call: call.call.id.clone(), answer: answer.clone() });
        if let CallState::AwaitingAnswer { form, .. } = &call.state {
            let form = form.clone();
            return self.on_form_answer(step, tools, at, &form, &answer);
        }
        if let CallState::SandboxDenied { denial, output, .. } = &call.state {
            let (denial, output) = (denial.clone(), ToolOutput::clone(output));
            return self.on_denial_answer(step, tools, at, &denial, output, &answer);
        }
        match answer {
            Answer::AllowOnce => call.allow(),
            Answer::AllowAuto => call.allow_in_auto(step),
            Answer::AllowSession => {
                if let Some(grant) = call.state.grant().map(|it| tools.bind_grant(it)) {
                    step.log(Fact::Granted { grant, lasting: false });
                }
                call.allow();
            }
            Answer::AllowAlways => {
                if let Some(grant) = call.state.grant().map(|it| tools.bind_grant(it)) {
                    let lasting = tools.persistent_grant(&call.call, &grant, step.record.mode);
                    let grant = policy::grant_for_session(grant, &call.call.name, &call.places);
                    step.log(Fact::Granted { grant, lasting: lasting.is_some() });
                    if let Some(it) = lasting {
                        step.start_effect(Effect::SaveGrant(it));
                    }
                }
                call.allow();
            }
            Answer::Reject => {
                let why = call.ask_reason.as_ref().map_or_else(String::new, |it| format!(" {it}"));
                call.end(step, refused(&format!("{REFUSED}{why}")));
                self.cancel_waiting(step);
            }
            Answer::Unable
            | Answer::Accepted { .. }
            | Answer::Declined
            | Answer::Dismissed
            | Answer::Unfit { .. }
            | Answer::InText => call.end(step, refused(UNABLE)),
            Answer::Cancelled => {
                call.end(step, cancelled("the user cancelled the turn"));
                return BatchStatus::TurnCancelled;
            }
        }
        self.advance(step, tools)
    }

    /// A call that is a question has its answer.
    fn on_form_answer(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        at: usize,
        form: &Form,
        answer: &Answer,
    ) -> BatchStatus {
        let Some(call) = self.calls.get_mut(at) else { return BatchStatus::Open };
        if call.call.name == plan::EXIT {
            return self.on_plan_answer(step, tools, at, answer);
        }
        match ask_user::output(form, answer) {
            Some(output) => call.run_after_hooks(step, tools, output),
            None => {
                call.end(step, cancelled("the user cancelled the turn"));
                return BatchStatus::TurnCancelled;
            }
        }
        match answer {
            Answer::InText => BatchStatus::AskedInText(form.in_words()),
            _ => self.advance(step, tools),
        }
    }

    /// The user's word on running a call again that failed at the sandbox.
    fn on_denial_answer(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        at: usize,
        denial: &Denial,
        mut output: ToolOutput,
        answer: &Answer,
    ) -> BatchStatus {
        let Some(call) = self.calls.get_mut(at) else { return BatchStatus::Open };
        let why = match answer {
            Answer::AllowOnce => {
                call.run_again(step, tools, denial);
                return BatchStatus::Open;
            }
            Answer::AllowSession | Answer::AllowAlways => {
                call.grant_rights(step, tools, denial, answer);
                call.run_again(step, tools, denial);
                return BatchStatus::Open;
            }
            Answer::Cancelled => {
                call.end(step, output);
                return BatchStatus::TurnCancelled;
            }
            Answer::Reject => "The user said no to more rights for this command. Go on within the sandbox, or stop.",
            _ => "The client could not ask the user for more rights.",
        };
        output.content.push(Part::text(why));
        call.end(step, output);
        self.advance(step, tools)
    }

    /// What a running call tells of itself.
    pub fn report_progress(&mut self, step: &mut Step<'_>, effect: EffectId, update: ToolProgress) {
        if let Some(call) = self.calls.iter().find(|it| it.state == CallState::Running { effect }) {
            let request_id = call.call.id.clone();
            step.emit_event(EventKind::ToolUpdate { request_id, update });
        }
    }

    pub fn on_run_ended(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        mut output: ToolOutput,
    ) -> BatchStatus {
        self.end_elicitations_of(step, effect);
        let Some(at) = self.calls.iter().position(|it| it.state == CallState::Running { effect }) else {
            return BatchStatus::Open;
        };
        let Some(call) = self.calls.get_mut(at) else { return BatchStatus::Open };
        if let Some(tail) = output.tail_call.take() {
            // The same call id, policy again: a tool must not be a way around the rules.
            call.replace_with_tail(tools, tail, &step.record.cwd.clone());
            return self.advance(step, tools);
        }
        let output = match tools.interactive {
            true => match call.ask_more_rights(step, tools, output) {
                None => {
                    self.notify_hooks(step, tools, at, None);
                    return BatchStatus::Open;
                }
                Some(output) => output,
            },
            false => output,
        };
        let fatal = output.error.as_ref().filter(|it| it.kind == "no_space_left").map(|it| it.message.clone());
        if let Some(why) = fatal {
            call.end(step, output);
            return BatchStatus::Fatal(why);
        }
        call.run_after_hooks(step, tools, output);
        self.advance(step, tools)
    }

    /// Ends all that has not ended. Nothing is waited for: late answers meet a finished call.
    pub fn cancel(&mut self, step: &mut Step<'_>, why: &str) {
        self.withdraw_elicitations(step);
        for call in &mut self.calls {
            match &call.state {
                CallState::Resolving { effect }
                | CallState::Previewing { effect, .. }
                | CallState::Checkpointing { effect, .. }
                | CallState::Running { effect } => {
                    step.start_effect(Effect::Abort { effect: *effect });
                }
                CallState::RunningHooks { firing, .. } => {
                    firing.running().for_each(|effect| _ = step.start_effect(Effect::Abort { effect }));
                }
                CallState::Checking(it) => _ = step.start_effect(Effect::Abort { effect: it.effect }),
                CallState::AwaitingApproval { question, .. }
                | CallState::AwaitingAnswer { question, .. }
                | CallState::SandboxDenied { question, .. } => {
                    step.start_effect(Effect::WithdrawQuestion { question: *question });
                }
                CallState::Waiting | CallState::Allowed { .. } | CallState::Done => (),
            }
            if !matches!(call.state, CallState::Done) {
                call.end(step, cancelled(why));
            }
        }
    }

    /// After a no, what has not begun is not begun: it was planned for a yes.
    fn cancel_waiting(&mut self, step: &mut Step<'_>) {
        for call in self.calls.iter_mut().filter(|it| matches!(it.state, CallState::Waiting)) {
            call.end(step, cancelled("an earlier call was refused by the user"));
        }
    }
}

const REFUSED: &str = "The user said no to this call. Do not try it in another way; ask what to do.";
const UNABLE: &str = "The client could not ask the user, so the call was not made. Go on without it.";

fn refused(text: &str) -> ToolOutput {
    ToolOutput::failed(ToolError::new("cancelled", text))
}

fn cancelled(why: &str) -> ToolOutput {
    ToolOutput::failed(ToolError::new("cancelled", format!("[Operation Cancelled] Reason: {why}")))
}
