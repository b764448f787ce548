//! Tool calls from proposed to finished: waves, approvals, results. Every call ends exactly once.

mod ask;
mod asking;
mod call;
mod decide;
mod display;
pub mod elicitation;
mod expansion;
mod history;
mod holding;
mod hooked;
pub mod plan;
mod todos;
mod topic;
mod unknown;
mod wave;

pub use call::Toolbox;
pub use plan::Planning;

use crate::{
    base::{
        check::Finding,
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
            call::{Call, Done, State},
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
    elicitations: Vec<elicitation::Open>,
    /// Hooks that were told of a question.
    asides: Vec<Firing>,
}

/// Where the batch stands after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Something is still awaited.
    Open,
    /// Every call has ended: the model can be asked again.
    Done,
    /// The user ended the turn at a question.
    TurnCancelled,
    /// A hook ended the turn: why.
    Stopped(String),
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
    pub fn places(&self) -> impl Iterator<Item = &AbsPath> {
        let places = self.calls.iter().filter(|it| it.ran).flat_map(|it| it.places.iter());
        places.filter(|it| it.in_roots).map(|it| &it.real)
    }

    /// Takes a call in as it streams from the model, and shows it.
    pub fn propose(&mut self, step: &mut Step<'_>, tools: &Toolbox, call: ToolCall, signature: Option<&str>) {
        let call = Call::new(tools, call, &step.record.cwd);
        step.event(EventKind::ToolRequest {
            request_id: call.call.id.clone(),
            name: call.call.name.clone(),
            args: call.call.args.clone(),
            display: call.display.clone(),
            signature: signature.map(str::to_owned),
        });
        self.calls.push(call);
    }

    /// Moves as far as is possible now: begins the next wave, runs a settled one.
    pub fn advance(&mut self, step: &mut Step<'_>, tools: &Toolbox) -> Standing {
        loop {
            if self.calls.iter().all(|it| matches!(it.state, State::Done)) {
                return Standing::Done;
            }
            if self.calls.iter().any(|it| it.state.is_deciding()) {
                return Standing::Open;
            }
            if self.run_settled(step, tools) || self.calls.iter().any(|it| it.state.is_under_way()) {
                return Standing::Open;
            }
            self.begin_wave(step, tools);
        }
    }

    fn begin_wave(&mut self, step: &mut Step<'_>, tools: &Toolbox) {
        for idx in wave::next(&self.calls) {
            let Some(call) = self.calls.get_mut(idx) else { continue };
            match tools.find(&call.call.name) {
                None => {
                    call.end(step, ToolOutput::failed(tools.unknown(&call.call.name)));
                }
                Some(_) if !call.call.args.is_object() => {
                    let text = format!("The arguments of {} are not a JSON object.", call.call.name);
                    call.end(step, ToolOutput::failed(ToolError::new("invalid_tool_params", text)));
                }
                Some(_) => {
                    plan::rooted(call, step.record.mode, &tools.planning);
                    call.meet_hooks(step, tools);
                }
            }
        }
    }

    /// Starts every call that is allowed; execution begins only when the whole wave is settled.
    fn run_settled(&mut self, step: &mut Step<'_>, tools: &Toolbox) -> bool {
        let mut started = false;
        for call in &mut self.calls {
            if !matches!(call.state, State::Allowed { .. }) {
                continue;
            }
            if tools.is_session_tool(&call.call.name) {
                match tools.run_session_tool(step, &call.call) {
                    Done::Output(output) => call.come_back(step, tools, *output),
                    Done::Ask(form) => call.inquire(step, form),
                }
                continue;
            }
            call.run(step, tools);
            started = true;
        }
        started
    }

    pub fn resolved(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        result: Result<Targets, ToolError>,
    ) -> Standing {
        let Some(call) = self.calls.iter_mut().find(|it| it.state == State::Resolving { effect }) else {
            return Standing::Open;
        };
        match result {
            Ok(targets) => {
                call.describe(tools, &targets, &step.record.cwd);
                decide(call, step, tools, targets, Vec::new());
            }
            Err(error) if !call.hooked.changed.is_empty() => {
                let why = format!("Tool parameter modification by hook failed validation: {}", error.message);
                call.end(step, ToolOutput::failed(ToolError::new(&error.kind, why)));
            }
            Err(error) => call.end(step, ToolOutput::failed(error)),
        }
        self.advance(step, tools)
    }

    /// A safety checker was heard, or failed.
    pub fn checked(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        said: Result<Finding, String>,
    ) -> Standing {
        let Some(call) = self.calls.iter_mut().find(|it| it.state.checks().is_some_and(|it| it.effect == effect))
        else {
            return Standing::Open;
        };
        decide::heard(call, step, tools, said);
        self.advance(step, tools)
    }

    /// Time is over for whoever was to answer by now.
    pub fn woke(&mut self, step: &mut Step<'_>, tools: &Toolbox, timer: EffectId) -> Standing {
        let Some(call) = self.calls.iter_mut().find(|it| it.state.checks().is_some_and(|it| it.timer == timer)) else {
            return Standing::Open;
        };
        decide::too_late(call, step, tools);
        self.advance(step, tools)
    }

    pub fn previewed(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        effect: EffectId,
        result: Result<Preview, ToolError>,
    ) -> Standing {
        let Some(at) = self.calls.iter().position(|it| it.state.previews(effect)) else {
            return Standing::Open;
        };
        let Some(call) = self.calls.get_mut(at) else { return Standing::Open };
        match result {
            Ok(preview) if call.call.name == plan::EXIT => self.review(step, tools, at, &preview),
            Ok(preview) => {
                let shown = preview.display.clone();
                call.ask(step, tools, preview);
                self.notify(step, tools, at, shown.as_ref());
            }
            // What cannot be previewed would not work either: the model learns why, the user is not bothered.
            Err(error) => call.end(step, ToolOutput::failed(error)),
        }
        self.advance(step, tools)
    }

    pub fn answered(&mut self, step: &mut Step<'_>, tools: &Toolbox, question: QuestionId, answer: Answer) -> Standing {
        if let Some(standing) = self.replied(step, question, &answer) {
            return standing;
        }
        let Some(at) = self.calls.iter().position(|it| it.state.asks(question)) else {
            return Standing::Open;
        };
        let Some(call) = self.calls.get_mut(at) else { return Standing::Open };
        step.log(Fact::Answered { call: call.call.id.clone(), answer: answer.clone() });
        if let State::Inquiring { form, .. } = &call.state {
            let form = form.clone();
            return self.inquired(step, tools, at, &form, &answer);
        }
        if let State::Denied { denial, output, .. } = &call.state {
            let (denial, output) = (denial.clone(), ToolOutput::clone(output));
            return self.expanded(step, tools, at, &denial, output, &answer);
        }
        match answer {
            Answer::AllowOnce => call.allow(),
            Answer::AllowAuto => call.allow_in_auto(step),
            Answer::AllowSession => {
                if let Some(grant) = call.state.grant().map(|it| tools.bound(it)) {
                    step.log(Fact::Granted { grant, lasting: false });
                }
                call.allow();
            }
            Answer::AllowAlways => {
                if let Some(grant) = call.state.grant().map(|it| tools.bound(it)) {
                    let lasting = tools.lasting(&call.call, &grant, step.record.mode);
                    let grant = policy::persistent_here(grant, &call.call.name, &call.places);
                    step.log(Fact::Granted { grant, lasting: lasting.is_some() });
                    if let Some(it) = lasting {
                        step.effect(Effect::Save(it));
                    }
                }
                call.allow();
            }
            Answer::Reject => {
                let why = call.reason.as_ref().map_or_else(String::new, |it| format!(" {it}"));
                let text = REFUSED;
                call.end(step, refused(&format!("{text}{why}")));
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
                return Standing::TurnCancelled;
            }
        }
        self.advance(step, tools)
    }

    /// A call that is a question has its answer.
    fn inquired(&mut self, step: &mut Step<'_>, tools: &Toolbox, at: usize, form: &Form, answer: &Answer) -> Standing {
        let Some(call) = self.calls.get_mut(at) else { return Standing::Open };
        if call.call.name == plan::EXIT {
            return self.reviewed(step, tools, at, answer);
        }
        match ask::output(form, answer) {
            Some(output) => call.come_back(step, tools, output),
            None => {
                call.end(step, cancelled("the user cancelled the turn"));
                return Standing::TurnCancelled;
            }
        }
        match answer {
            Answer::InText => Standing::AskedInText(form.in_words()),
            _ => self.advance(step, tools),
        }
    }

    /// The user's word on running a call again that failed at the sandbox.
    fn expanded(
        &mut self,
        step: &mut Step<'_>,
        tools: &Toolbox,
        at: usize,
        denial: &Denial,
        mut output: ToolOutput,
        answer: &Answer,
    ) -> Standing {
        let Some(call) = self.calls.get_mut(at) else { return Standing::Open };
        let why = match answer {
            Answer::AllowOnce => {
                call.run_again(step, tools, denial);
                return Standing::Open;
            }
            Answer::AllowSession | Answer::AllowAlways => {
                call.grant_more(step, tools, denial, answer);
                call.run_again(step, tools, denial);
                return Standing::Open;
            }
            Answer::Cancelled => {
                call.end(step, output);
                return Standing::TurnCancelled;
            }
            Answer::Reject => "The user said no to more rights for this command. Go on within the sandbox, or stop.",
            _ => "The client could not ask the user for more rights.",
        };
        output.content.push(Part::text(why));
        call.end(step, output);
        self.advance(step, tools)
    }

    /// What a running call tells of itself.
    pub fn progress(&mut self, step: &mut Step<'_>, effect: EffectId, update: ToolProgress) {
        if let Some(call) = self.calls.iter().find(|it| it.state == State::Running { effect }) {
            let request_id = call.call.id.clone();
            step.event(EventKind::ToolUpdate { request_id, update });
        }
    }

    pub fn ran(&mut self, step: &mut Step<'_>, tools: &Toolbox, effect: EffectId, mut output: ToolOutput) -> Standing {
        self.forget_asked_by(step, effect);
        let Some(at) = self.calls.iter().position(|it| it.state == State::Running { effect }) else {
            return Standing::Open;
        };
        let Some(call) = self.calls.get_mut(at) else { return Standing::Open };
        if let Some(tail) = output.tail.take() {
            // The same call id, policy again: a tool must not be a way around the rules.
            call.replace(tools, tail, &step.record.cwd.clone());
            return self.advance(step, tools);
        }
        let output = match tools.interactive {
            true => match call.ask_for_more(step, tools, output) {
                None => {
                    self.notify(step, tools, at, None);
                    return Standing::Open;
                }
                Some(output) => output,
            },
            false => output,
        };
        let fatal = output.error.as_ref().filter(|it| it.kind == "no_space_left").map(|it| it.message.clone());
        if let Some(why) = fatal {
            call.end(step, output);
            return Standing::Fatal(why);
        }
        call.come_back(step, tools, output);
        self.advance(step, tools)
    }

    /// Ends all that has not ended. Nothing is waited for: late answers meet a finished call.
    pub fn cancel(&mut self, step: &mut Step<'_>, why: &str) {
        self.withdraw_elicitations(step);
        for call in &mut self.calls {
            match &call.state {
                State::Resolving { effect }
                | State::Previewing { effect, .. }
                | State::Holding { effect, .. }
                | State::Running { effect } => {
                    step.effect(Effect::Abort { effect: *effect });
                }
                State::Hooking { firing, .. } => {
                    firing.running().for_each(|effect| _ = step.effect(Effect::Abort { effect }));
                }
                State::Checking(it) => _ = step.effect(Effect::Abort { effect: it.effect }),
                State::Asking { question, .. } | State::Inquiring { question, .. } | State::Denied { question, .. } => {
                    step.effect(Effect::Withdraw { question: *question });
                }
                State::Waiting | State::Allowed { .. } | State::Done => (),
            }
            if !matches!(call.state, State::Done) {
                call.end(step, cancelled(why));
            }
        }
    }

    /// After a no, what has not begun is not begun: it was planned for a yes.
    fn cancel_waiting(&mut self, step: &mut Step<'_>) {
        for call in self.calls.iter_mut().filter(|it| matches!(it.state, State::Waiting)) {
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
