//! The tool call scheduler, from proposal to result: waves, approvals, runs. Every call ends exactly once.

mod agent_exit;
mod approval;
mod asides;
mod call;
mod call_facts;
mod call_hooks;
mod changed_tools;
mod checkpoints;
mod child_events;
mod client_policy;
pub mod decide;
mod delegation;
mod denials;
mod display;
mod edited_args;
pub mod elicitation;
mod history;
pub mod host_calls;
mod peer_permission;
mod plan_review;
mod resources;
mod sandbox_denial;
pub mod server_login;
pub mod skill_calls;
mod tool_limit;
mod toolbox;
mod unauthorized;
mod unknown_tool;
mod wave;

pub use call_facts::evaluate;
pub use call_hooks::diffs_text;
pub use denials::CancelReason;
pub use resources::resource_tools::specs as resource_tools;
pub use tool_limit::FittedTools;
pub use toolbox::{CallContext, SavedAnswers, Toolbox};

use crate::{
    policy,
    record::Step,
    scheduler::{
        agent_exit::AgentExit,
        call::{Call, CallState, Reviews},
        decide::decide,
    },
    session_tools::{SessionToolResult, ask_user, delegate, is_session_tool, run_session_tool},
    step::{Effect, Input},
};
use castor_base::{
    agent::TaskResult,
    check::CheckFinding,
    event::{EventKind, ToolProgress},
    ids::{EffectId, QuestionId},
    log::{Answer, Fact},
    path::AbsPath,
    question::Form,
    sampling::ServerAsk,
    tool::{PolicyClass, Preview, Targets, ToolCall, ToolError, ToolOutput},
};

/// The calls of one answer of the model.
#[derive(Debug, Default)]
pub struct Scheduler {
    calls: Vec<Call>,
    /// Questions of servers that are open.
    elicitations: Vec<elicitation::OpenElicitation>,
    /// Beside the calls, or before there are any.
    query: Option<elicitation::RunningQuery>,
    exit: AgentExit,
}

/// The status of the batch after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchStatus {
    /// Something is still awaited.
    Open,
    /// Every call has ended: the model can be asked again.
    Done,
    /// The same, and one of them handed in the result of the sub-agent.
    TaskCompleted(TaskResult),
    /// The same, and this agent goes on in the session.
    Transferred(String),
    /// The same, but for calls that the host runs before the next prompt.
    Returned,
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
        self.exit = AgentExit::default();
    }

    /// The paths in the session's folders that calls touched which ran.
    pub fn touched_paths(&self) -> impl Iterator<Item = &AbsPath> {
        let places = self.calls.iter().filter(|it| it.has_run).flat_map(|it| it.places.iter());
        places.filter(|it| it.in_roots).map(|it| &it.real)
    }

    /// The call that something is about, with its place.
    fn find(&mut self, is_it: impl Fn(&CallState) -> bool) -> Option<(usize, &mut Call)> {
        self.calls.iter_mut().enumerate().find(|(_, it)| is_it(&it.state))
    }

    /// Takes a call in as it streams from the model, and shows it.
    pub fn propose(&mut self, cx: &mut CallContext<'_, '_>, call: ToolCall, signature: Option<&str>) {
        let args = call.args.clone();
        let call = Call::new(cx.tools, call, &cx.step.record.cwd);
        call.show(cx.step, args, signature);
        self.calls.push(call);
    }

    /// Takes what happened to one of the calls. What is about none of them is late, and ignored.
    pub fn on_input(&mut self, cx: &mut CallContext<'_, '_>, input: Input) -> BatchStatus {
        let input = match self.on_login(cx, input) {
            unauthorized::LoginStep::Taken(status) => return status,
            unauthorized::LoginStep::Unrelated(it) => it,
        };
        match input {
            Input::HookFinished { effect, report } => return self.on_hook(cx, effect, &report),
            Input::TimerFired { effect } => return self.on_timer(cx, effect),
            Input::Resolved { effect, result } => return self.on_resolved(cx, effect, result),
            Input::Checked { effect, finding } => return self.on_checked(cx, effect, finding),
            Input::Previewed { effect, result } => return self.on_previewed(cx, effect, result),
            Input::Answered { question, answer } => return self.on_answer(cx, question, answer),
            Input::CredentialRenewed { effect, changed } => return self.on_credential_renewed(cx, effect, changed),
            Input::Checkpointed { effect, result } => return self.on_checkpoint(cx, effect, result),
            Input::RunEnded { effect, output, .. } => return self.on_run_ended(cx, effect, *output),
            Input::TerminalAttached { effect, screen } => {
                self.report_progress(cx.step, effect, ToolProgress::Attached { screen })
            }
            Input::OutputPrinted { effect, text } => {
                self.report_progress(cx.step, effect, ToolProgress::Printed { text })
            }
            Input::ChildEvent { effect, event } => self.on_child_event(cx.step, effect, &event),
            Input::ChildWaits { effect, waits } => {
                let update = if waits { ToolProgress::Waiting } else { ToolProgress::Resumed };
                self.report_progress(cx.step, effect, update);
            }
            Input::ElicitationRequested { elicitation, calls, request: ServerAsk::User(request) } => {
                self.on_elicitation(cx, elicitation, &calls, request)
            }
            Input::ElicitationWithdrawn { elicitation } => self.on_elicitation_withdrawn(cx.step, elicitation),
            _ => (),
        }
        BatchStatus::Open
    }

    /// Moves as far as is possible now: begins the next wave, runs a settled one.
    pub fn advance(&mut self, cx: &mut CallContext<'_, '_>) -> BatchStatus {
        loop {
            self.change_state(cx.step);
            if self.calls.iter().all(|it| matches!(it.state, CallState::Done | CallState::Returned)) {
                let transfer = self.exit.take_successor().map(BatchStatus::Transferred);
                let result = self.exit.take_result().map(BatchStatus::TaskCompleted);
                return result.or(transfer).or_else(|| self.returned_status()).unwrap_or(BatchStatus::Done);
            }
            if self.calls.iter().any(|it| it.state.is_deciding()) {
                return BatchStatus::Open;
            }
            if self.run_settled(cx) || self.calls.iter().any(|it| it.state.is_under_way()) {
                return BatchStatus::Open;
            }
            self.begin_wave(cx);
        }
    }

    /// Changes the state in the order of the calls, whichever of them ends first: the last one has the last word.
    fn change_state(&mut self, step: &mut Step<'_>) {
        for call in self.calls.iter_mut().take_while(|it| matches!(it.state, CallState::Done)) {
            let change = std::mem::take(&mut call.state_change);
            if !change.is_empty() {
                step.change_state(change);
            }
        }
    }

    fn begin_wave(&mut self, cx: &mut CallContext<'_, '_>) {
        for idx in wave::next_wave(&self.calls) {
            let Some(call) = self.calls.get_mut(idx) else { continue };
            match cx.tools.find(&call.call.name) {
                None => {
                    call.end(cx.step, cx.tools.unknown_tool_output(&call.call.name));
                }
                Some(_) if !call.call.args.is_object() => {
                    let text = format!("The arguments of {} are not a JSON object.", call.call.name);
                    call.end(cx.step, ToolOutput::failed(ToolError::new("invalid_tool_params", text)));
                }
                // A word about the agent's own end does nothing outside: no rule, host or hook keeps an agent at work.
                Some(_) if let Some(output) = self.exit.run(cx.tools, &call.call) => call.end(cx.step, output),
                Some(_) if let Some(output) = skill_calls::answer_at_once(cx.tools, cx.step.record, &call.call) => {
                    call.end(cx.step, output);
                }
                Some(_) => {
                    plan_review::resolve_plan_path(call, cx.step.record.mode, &cx.tools.planning);
                    call.run_before_hooks(cx);
                }
            }
        }
    }

    /// Starts every call that is allowed; execution begins only when the whole wave is settled.
    fn run_settled(&mut self, cx: &mut CallContext<'_, '_>) -> bool {
        let mut started = false;
        let mut n_children = self.calls.iter().filter(|it| it.is_child_under_way()).count();
        for call in &mut self.calls {
            if !matches!(call.state, CallState::Allowed { .. }) {
                continue;
            }
            if call.asks_only {
                call.give_permission(cx);
                continue;
            }
            if call.is_of(PolicyClass::Delegate) {
                if n_children == delegate::MAX_CHILDREN {
                    continue;
                }
                n_children += 1;
            }
            if let Some(output) = skill_calls::run(cx, &call.call) {
                call.run_after_hooks(cx, output);
                continue;
            }
            if is_session_tool(&call.call.name) {
                match run_session_tool(cx.step, &call.call) {
                    SessionToolResult::Output(output) => call.run_after_hooks(cx, *output),
                    SessionToolResult::Ask(form) => call.ask_form(cx.step, form),
                }
                continue;
            }
            if cx.tools.host().returns_calls() && cx.tools.is_of_host(&call.call.name) {
                call.state = CallState::Returned;
                continue;
            }
            call.run(cx);
            started = true;
        }
        started
    }

    fn on_resolved(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        effect: EffectId,
        result: Result<Targets, ToolError>,
    ) -> BatchStatus {
        let Some((_, call)) = self.find(|it| *it == CallState::Resolving { effect }) else {
            return BatchStatus::Open;
        };
        match result {
            Ok(targets) => {
                call.apply_targets(cx.tools, &targets, &cx.step.record.cwd);
                decide(call, cx, targets, Reviews::default());
            }
            Err(error) if !call.hook_effects.changed_args.is_empty() => {
                call.end(cx.step, denials::changed_badly_by_hook(&error));
            }
            Err(error) => call.end(cx.step, ToolOutput::failed(error)),
        }
        self.advance(cx)
    }

    /// A safety checker was heard, or failed.
    fn on_checked(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        effect: EffectId,
        said: Result<CheckFinding, String>,
    ) -> BatchStatus {
        let Some((_, call)) = self.find(|it| it.checking().is_some_and(|it| it.effect == effect)) else {
            return BatchStatus::Open;
        };
        decide::add_verdict(call, cx, said);
        self.advance(cx)
    }

    /// Time is over for whoever was to answer by now.
    fn on_timer(&mut self, cx: &mut CallContext<'_, '_>, timer: EffectId) -> BatchStatus {
        let Some((_, call)) = self.find(|it| it.checking().is_some_and(|it| it.timer == timer)) else {
            return BatchStatus::Open;
        };
        decide::checker_timed_out(call, cx);
        self.advance(cx)
    }

    fn on_previewed(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        effect: EffectId,
        result: Result<Preview, ToolError>,
    ) -> BatchStatus {
        let Some((_, call)) = self.find(|it| it.previews(effect)) else {
            return BatchStatus::Open;
        };
        match result {
            Ok(preview) if call.is_of(PolicyClass::ExitPlan) => call.ask_plan_review(cx, &preview),
            Ok(Preview { display, base }) => {
                let grant = call.state.grant();
                call.ask_approval(cx, grant, display, base);
            }
            // What cannot be previewed would not work either: the model learns why, the user is not bothered.
            Err(error) => call.end(cx.step, ToolOutput::failed(error)),
        }
        self.advance(cx)
    }

    fn on_answer(&mut self, cx: &mut CallContext<'_, '_>, question: QuestionId, answer: Answer) -> BatchStatus {
        if let Some(standing) = self.on_elicitation_answer(cx.step, question, &answer) {
            return standing;
        }
        let Some((at, call)) = self.find(|it| it.asks_question(question)) else {
            return BatchStatus::Open;
        };
        cx.step.log(Fact::Answered { call: call.call.id.clone(), answer: answer.clone() });
        if let CallState::AwaitingAnswer { form, .. } = &call.state {
            let form = form.clone();
            return self.on_form_answer(cx, at, &form, &answer);
        }
        let settled = match call.state {
            CallState::SandboxDenied { .. } => Some(call.on_denial_answer(cx, &answer)),
            CallState::Unauthorized(_) => Some(call.on_renewal_answer(cx, &answer)),
            _ => None,
        };
        match settled {
            Some(BatchStatus::Open) => return self.advance(cx),
            Some(status) => return status,
            None => (),
        }
        match answer {
            Answer::AllowOnce => call.allow_once(cx.tools),
            Answer::AllowEdited { args } => call.allow_edited(cx, args),
            Answer::AllowAuto => call.allow_in_auto(cx),
            Answer::AllowSession => {
                if let Some(grant) = call.state.grant().map(|it| cx.tools.bind_grant(it)) {
                    cx.step.log(Fact::Granted { grant, lasting: false });
                }
                call.allow();
            }
            Answer::AllowAlways => {
                if let Some(grant) = call.state.grant().map(|it| cx.tools.bind_grant(it)) {
                    let lasting = cx.tools.persistent_grant(&call.call, &grant, cx.step.record.mode);
                    let grant = policy::grant_for_session(grant, &call.call.name, &call.places);
                    cx.step.log(Fact::Granted { grant, lasting: lasting.is_some() });
                    if let Some(it) = lasting {
                        cx.step.start_effect(Effect::SaveGrant(it));
                    }
                }
                call.allow();
            }
            Answer::Reject => {
                call.end(cx.step, denials::refused(call.ask_reason.as_deref()));
                self.cancel_waiting(cx.step);
            }
            Answer::Unable
            | Answer::Accepted { .. }
            | Answer::Declined
            | Answer::Dismissed
            | Answer::Unfit { .. }
            | Answer::InText => call.end(cx.step, denials::unanswered()),
            Answer::Cancelled => {
                call.end(cx.step, CancelReason::USER.output());
                return BatchStatus::TurnCancelled;
            }
        }
        self.advance(cx)
    }

    /// A call that is a question has its answer.
    fn on_form_answer(&mut self, cx: &mut CallContext<'_, '_>, at: usize, form: &Form, answer: &Answer) -> BatchStatus {
        let Some(call) = self.calls.get_mut(at) else { return BatchStatus::Open };
        if call.is_of(PolicyClass::ExitPlan) {
            return match call.on_plan_answer(cx, answer) {
                BatchStatus::Open => self.advance(cx),
                status => status,
            };
        }
        match ask_user::output(form, answer) {
            Some(output) => call.run_after_hooks(cx, output),
            None => {
                call.end(cx.step, CancelReason::USER.output());
                return BatchStatus::TurnCancelled;
            }
        }
        match answer {
            Answer::InText => BatchStatus::AskedInText(form.in_words()),
            _ => self.advance(cx),
        }
    }

    /// Reports the progress of a running call.
    fn report_progress(&mut self, step: &mut Step<'_>, effect: EffectId, update: ToolProgress) {
        if let Some(call) = self.calls.iter().find(|it| it.state == CallState::Running { effect }) {
            let request_id = call.call.id.clone();
            step.emit_event(EventKind::ToolUpdate { request_id, update });
        }
    }

    fn on_run_ended(&mut self, cx: &mut CallContext<'_, '_>, effect: EffectId, mut output: ToolOutput) -> BatchStatus {
        self.end_elicitations_of(cx.step, effect);
        let Some((_, call)) = self.find(|it| *it == CallState::Running { effect }) else {
            return BatchStatus::Open;
        };
        call.state_change.extend(std::mem::take(&mut output.state));
        let tail = output.tail_call.take();
        if let Some(tail) = tail.filter(|_| call.may_have_tail(&mut output)) {
            // The same call id, policy again: a tool must not be a way around the rules.
            call.replace_with_tail(cx.tools, tail, &cx.step.record.cwd.clone());
            return self.advance(cx);
        }
        let kept = call.ask_renewal(cx, output);
        let kept = kept.and_then(|it| if cx.tools.interactive { call.ask_more_rights(cx, it) } else { Some(it) });
        let Some(output) = kept else {
            return BatchStatus::Open;
        };
        let fatal = output.error.as_ref().filter(|it| it.kind == "no_space_left").map(|it| it.message.clone());
        if let Some(why) = fatal {
            call.end(cx.step, output);
            return BatchStatus::Fatal(why);
        }
        call.run_after_hooks(cx, output);
        self.advance(cx)
    }

    /// Ends all that has not ended. Nothing is waited for: late answers meet a finished call.
    pub fn cancel(&mut self, step: &mut Step<'_>, why: CancelReason) {
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
                CallState::Unauthorized(it) => it.withdraw(step),
                CallState::Waiting | CallState::Allowed { .. } | CallState::Returned | CallState::Done => (),
            }
            if !matches!(call.state, CallState::Done) {
                call.end(step, why.output());
            }
        }
        self.change_state(step);
    }

    fn cancel_waiting(&mut self, step: &mut Step<'_>) {
        for call in self.calls.iter_mut().filter(|it| matches!(it.state, CallState::Waiting)) {
            call.end(step, denials::after_refusal());
        }
    }
}
