//! One prompt, from its arrival to its one outcome: sampling, calling, sampling again.

mod background_results;
pub mod checkpoints;
mod command_turn;
mod compressing;
mod distilling;
pub mod endings;
mod failure_recovery;
mod limits;
mod loop_detection;
mod loop_recovery;
mod memory_discovery;
mod model_checks;
mod preamble;
mod pseudo_call;
mod request_builder;
mod response;
mod router;
mod sampling;
mod spec;
pub mod steering;
mod trust;
mod turn_hooks;
pub mod undo;
pub mod utility_call;
mod utility_wait;
pub mod windows;

pub use command_turn::{CommandTurn, send_command_message};
pub use limits::limits;
pub use preamble::Preamble;
pub use spec::{MemorySources, Modes, OfferedModels, SessionScratch, Spec, TurnBounds};

use std::sync::Arc;

use crate::{
    base::{
        content::{Part, joined_text},
        event::{EventKind, PromptOutcome, STOPPED, Speaker, Status},
        ids::{EffectId, MessageId, PromptId, QuestionId, StreamId},
        log::{Answer, Fact},
    },
    engine::{
        context::RetryAdvice,
        hooks::{
            firing::Firing,
            plugins::{PluginMoment, PluginPoint},
        },
        record::{COMMAND_META, Step},
        routing,
        scheduler::{BatchStatus, CallContext, Scheduler, Toolbox},
        step::{Effect, Input},
        turn::{
            endings::{Cause, TurnEnding},
            response::Response,
            turn_hooks::{AfterTurnHooks, BufferedAnswer, TurnTranscript},
        },
    },
};

/// A turn asks the model at most this often: the runtime's own bound, whatever the settings say.
pub const MAX_SAMPLES: u32 = 100;

/// Longest heuristic title, in characters.
const TITLE: usize = 80;

/// Which attempt of a sample it is, from 1, and why this model.
#[derive(Debug)]
struct Attempt {
    attempt: u32,
    why: String,
}

/// One prompt under way.
#[derive(Debug)]
pub struct Turn {
    prompt: PromptId,
    phase: Phase,
    n_samples: u32,
    /// The model that is asked now.
    model: Arc<str>,
    router: router::Router,
    tries: routing::failure::AttemptCounts,
    /// The model has one attempt in this turn.
    single_attempt: bool,
    retry_advice: Option<RetryAdvice>,
    scheduler: Scheduler,
    /// As the current request told the model of them.
    tools: Toolbox,
    transcript: TurnTranscript,
    loop_recovery: loop_recovery::LoopRecovery,
}

#[derive(Debug)]
enum Phase {
    /// The user is asked about the folder.
    AskingTrust(trust::TrustQuestion),
    /// What the user said about it is carried out.
    ApplyingTrust {
        effect: EffectId,
        joining: trust::TrustDecision,
    },
    /// Memory files are read.
    ReadingMemory {
        effect: EffectId,
        /// The turn only shows them, whole or not, and asks no model for an answer.
        shown: Option<bool>,
    },
    /// Servers are still starting; the effect wakes the turn when it has waited long enough.
    WaitingForServers {
        effect: EffectId,
    },
    /// The model answers.
    Sampling {
        effect: EffectId,
        attempt: u32,
        response: Response,
        /// What came of it, where hooks see it first.
        buffered: Option<BufferedAnswer>,
    },
    /// Hooks have a say.
    RunningHooks {
        firing: Firing,
        next: Box<AfterTurnHooks>,
    },
    /// A model is asked something beside the conversation.
    AskingUtility {
        utility: Box<utility_call::UtilityCall>,
        then: utility_wait::AfterConsulting,
    },
    /// Until the next attempt.
    WaitingToRetry {
        effect: EffectId,
        attempt: u32,
    },
    /// The user is asked how to go on without the model.
    AskingFallback(Box<failure_recovery::RecoveryQuestion>),
    /// The user is asked whether a model that goes round in circles may go on.
    AskingLoop(Box<loop_recovery::LoopQuestion>),
    /// A model is asked about the turn itself.
    CheckingTurn(Box<model_checks::PendingCheck>),
    RunningCalls,
    /// Files are taken back.
    Restoring(Box<undo::Restoring>),
    /// Memory of the folders that the calls came to is read.
    DiscoveringMemory(memory_discovery::Discovery),
    Finished,
}

impl Turn {
    /// Begins: the prompt becomes part of the history, and the model is asked as soon as everybody is there.
    pub fn begin(
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        prompt: PromptId,
        content: Vec<Part>,
    ) -> Self {
        let stream = StreamId::from(step.fresh_id("s"));
        step.begin_stream(stream);
        let plugins = &spec.toolbox.hooks.plugins;
        let content = plugins.parts(PluginPoint::OnUserMessage, PluginMoment::Message(&content)).unwrap_or(content);
        let asked = joined_text(&content);
        let title = step.record.title.is_none().then(|| title_of(&content)).flatten();
        let message_id = MessageId::from(step.fresh_id("m"));
        step.emit_event(EventKind::Message { role: Speaker::User, message_id, content, cuts: Vec::new() });
        // Once for each prompt of the user, not for each call: a model that failed stays away for the whole turn.
        kept.health.begin_turn();
        let configured = spec.aliases.model_of(&step.record.model);
        let found = router::first(step.record, spec, kept, step.now.unix_ms);
        let is_fallback = found.as_ref().is_some_and(|it| it.by == "fallback");
        let (model, why) = found.map_or((configured.as_str().into(), String::new()), |it| (it.model, it.why));
        step.emit_event(EventKind::SessionUpdate { title, model: Some(model.to_string()) });
        let instead = is_fallback.then(|| (step.record.model.clone(), model.to_string()));
        if instead.is_some() {
            let message = format!("{configured} is known not to answer now: this turn goes to {model}.");
            step.emit_event(EventKind::Error { status: Status::Unavailable, message, fatal: false });
            step.log(Fact::Fallback { from: configured, to: Some(model.to_string()), intent: None, answer: None, why });
        }
        let mut res = Self {
            prompt,
            phase: Phase::Finished,
            n_samples: 0,
            model,
            router: router::Router::begin(instead),
            tries: routing::failure::AttemptCounts::default(),
            single_attempt: false,
            retry_advice: None,
            scheduler: Scheduler::default(),
            tools: spec.toolbox.clone(),
            transcript: TurnTranscript { prompt_text: asked, ..TurnTranscript::default() },
            loop_recovery: loop_recovery::LoopRecovery::default(),
        };
        res.note_standing(step, kept);
        if let Some(cause) = res.exhausted_limit(step.record, spec) {
            res.finish(step, &cause);
            return res;
        }
        if let Some(answer) = plugins.parts(PluginPoint::BeforeRun, PluginMoment::Turn) {
            res.finish_with_answer(step, answer);
            return res;
        }
        match kept.preamble.trust_form() {
            Some(form) => res.phase = Phase::AskingTrust(trust::ask(step, form)),
            None => res.prepare(step, spec, kept),
        }
        res
    }

    fn prepare(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        if spec.memory_sources.at_start && !kept.memory_read {
            return self.read_memory(step, None);
        }
        match kept.preamble.wait_until(step.now.unix_ms) {
            Some(at_ms) => {
                self.phase = Phase::WaitingForServers { effect: step.start_effect(Effect::SetTimer { at_ms }) }
            }
            None => self.finish_preparing(step, spec, kept),
        }
    }

    /// The tools changed; perhaps nothing is waited for any more.
    pub fn on_tools_changed(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        if let Phase::WaitingForServers { effect } = self.phase
            && kept.preamble.wait_until(step.now.unix_ms).is_none()
        {
            step.start_effect(Effect::Abort { effect });
            self.finish_preparing(step, spec, kept);
        }
    }

    fn finish_preparing(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        if let Some(text) = kept.preamble.take_message() {
            let message_id = MessageId::from(step.fresh_id("m"));
            let content = vec![Part::text(text)];
            step.emit_event(EventKind::Message { role: Speaker::Developer, message_id, content, cuts: Vec::new() });
        }
        let opening = kept.preamble.take_opening();
        self.run_start_hooks(step, spec, kept, opening);
    }

    pub fn prompt(&self) -> PromptId {
        self.prompt
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    /// Takes one thing that happened. Whatever does not fit the phase is late, and ignored.
    pub fn step(&mut self, input: Input, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch) {
        let input = self.on_utility_input(input, step, spec, kept);
        let Some(input) = input.filter(|it| !self.on_check_input(step, spec, kept, it)) else { return };
        match input {
            Input::Chunks { effect, chunks } => self.on_chunks(step, spec, kept, effect, chunks),
            Input::HookFinished { effect, report } => self.on_hook(step, spec, kept, effect, report),
            Input::MemoryRead { effect, files } => self.on_memory_read(step, spec, kept, effect, files),
            Input::Generated { effect, result } => self.on_generated(step, spec, kept, effect, result),
            Input::TimerFired { effect } => self.on_timer(step, spec, kept, effect),
            Input::Answered { question, answer } => self.on_answer(step, spec, kept, question, answer),
            Input::TrustApplied { effect, result } => self.on_trust_applied(step, spec, kept, effect, result),
            Input::Restored { .. } | Input::Diffed { .. } | Input::Checkpointed { .. } => {
                self.on_checkpoint_store(step, spec, kept, input);
            }
            Input::Resolved { .. }
            | Input::Checked { .. }
            | Input::Previewed { .. }
            | Input::TerminalAttached { .. }
            | Input::OutputPrinted { .. }
            | Input::RunEnded { .. }
            | Input::ElicitationRequested { .. }
            | Input::ElicitationWithdrawn { .. } => self.on_call_input(step, spec, kept, input),
            Input::Prompt { .. }
            | Input::Cancel
            | Input::CancelPrompt(_)
            | Input::Steer { .. }
            | Input::SetOption(_)
            | Input::TrustPrompt(_)
            | Input::Notice(_)
            | Input::BackgroundResult(_)
            | Input::BackgroundExited(_)
            | Input::Compared { .. }
            | Input::ClientRewind(_)
            | Input::Outages(_)
            | Input::RewindConversation { .. }
            | Input::ToolsChanged(_) => (),
        }
    }

    fn on_timer(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, effect: EffectId) {
        match self.phase {
            Phase::WaitingToRetry { effect: own, attempt } if own == effect => self.sample(step, spec, kept, attempt),
            Phase::WaitingForServers { effect: own } if own == effect => self.finish_preparing(step, spec, kept),
            Phase::DiscoveringMemory(it) if it.timer == effect => self.look_took_long(step, spec, kept),
            _ => self.on_call_input(step, spec, kept, Input::TimerFired { effect }),
        }
    }

    fn on_answer(
        &mut self,
        step: &mut Step<'_>,
        spec: &Spec,
        kept: &mut SessionScratch,
        question: QuestionId,
        answer: Answer,
    ) {
        match &self.phase {
            Phase::Restoring(_) => self.on_conflict_answer(step, question, &answer),
            Phase::AskingTrust(it) if it.question == question => self.on_trust_answer(step, spec, kept, answer),
            Phase::AskingFallback(it) if it.question == question => self.on_fallback_answer(step, spec, kept, answer),
            Phase::AskingLoop(it) if it.question == question => self.on_loop_answer(step, spec, kept, &answer),
            _ => self.on_call_input(step, spec, kept, Input::Answered { question, answer }),
        }
    }

    /// Ends the turn from outside.
    pub fn end(&mut self, step: &mut Step<'_>, cause: Cause) {
        if self.is_finished() {
            return;
        }
        match &mut self.phase {
            Phase::CheckingTurn(it) => it.utility.abandon(step),
            Phase::ReadingMemory { effect, .. }
            | Phase::WaitingForServers { effect }
            | Phase::Sampling { effect, .. }
            | Phase::WaitingToRetry { effect, .. } => {
                step.start_effect(Effect::Abort { effect: *effect });
            }
            Phase::RunningHooks { firing, .. } => {
                let running: Vec<EffectId> = firing.running().collect();
                running.into_iter().for_each(|effect| _ = step.start_effect(Effect::Abort { effect }));
            }
            Phase::AskingUtility { utility, then } => {
                utility.abandon(step);
                then.leave(step);
            }
            Phase::AskingTrust(asked) => asked.withdraw(step),
            Phase::AskingFallback(asked) => asked.withdraw(step),
            Phase::AskingLoop(asked) => asked.withdraw(step),
            Phase::ApplyingTrust { joining, .. } => joining.leave(step),
            Phase::DiscoveringMemory(it) => it.leave(step),
            Phase::Restoring(it) => it.withdraw(step),
            Phase::RunningCalls | Phase::Finished => (),
        }
        self.finish(step, &cause);
    }

    fn on_call_input(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, input: Input) {
        let standing = self.scheduler.on_input(&mut CallContext { step, tools: &self.tools }, input);
        self.on_batch_status(step, spec, kept, standing);
    }

    fn on_batch_status(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut SessionScratch, standing: BatchStatus) {
        if !matches!(self.phase, Phase::RunningCalls) {
            return;
        }
        match standing {
            BatchStatus::Open => (),
            BatchStatus::Done => self.discover(step, spec, kept),
            BatchStatus::AskedInText(question) => self.finish(step, &Cause::AskedInText(question)),
            BatchStatus::TurnCancelled => self.finish(step, &Cause::Cancelled),
            BatchStatus::HookStopped(why) => self.finish(step, &Cause::HookStop(why)),
            BatchStatus::Fatal(why) => self.finish(step, &Cause::ToolFatal(why)),
        }
    }

    /// The one end of the turn: open calls end, the reason is told, the prompt is answered.
    fn finish(&mut self, step: &mut Step<'_>, cause: &Cause) {
        self.phase = Phase::Finished;
        self.scheduler.cancel(step, cause.why());
        let TurnEnding { reason, outcome, text, aside, error } = endings::ending(cause);
        if let Some(text) = text {
            let message_id = MessageId::from(step.fresh_id("m"));
            let content = vec![Part::text(text)];
            let message = EventKind::Message { role: Speaker::Agent, message_id, content, cuts: Vec::new() };
            let (command, stopped) = (aside.then_some(COMMAND_META), error.is_some().then_some(STOPPED));
            let meta = command.into_iter().chain(stopped).map(|it| (it.to_owned(), true.into()));
            step.emit_event_with(message, meta.collect());
        }
        let plugins = self.tools.hooks.plugins.clone();
        if let Some(content) = plugins.parts(PluginPoint::AfterAgent, PluginMoment::Turn) {
            self.send_message(step, content);
        }
        if let Some((status, code)) = error {
            let meta = serde_json::Map::from_iter([("code".to_owned(), code.into())]);
            let message = match &outcome {
                PromptOutcome::Failed { why: it, .. } | PromptOutcome::AuthRequired(it) => it.clone(),
                PromptOutcome::Stop(_) | PromptOutcome::Steered(_) => cause.why().to_owned(),
            };
            step.emit_event_with(EventKind::Error { status, message, fatal: true }, meta);
        }
        step.emit_event(EventKind::AgentEnd { reason });
        let usage = step.record.turn_usage();
        step.start_effect(Effect::AnswerPrompt { prompt: self.prompt, outcome, usage });
        _ = plugins.ask(PluginPoint::AfterRun, PluginMoment::Turn);
    }

    fn send_message(&self, step: &mut Step<'_>, content: Vec<Part>) {
        let message_id = MessageId::from(step.fresh_id("m"));
        step.emit_event(EventKind::Message { role: Speaker::Agent, message_id, content, cuts: Vec::new() });
    }

    /// A plugin answers for the agent.
    fn finish_with_answer(&mut self, step: &mut Step<'_>, content: Vec<Part>) {
        self.send_message(step, content);
        self.finish(step, &Cause::Completed);
    }
}

fn title_of(content: &[Part]) -> Option<String> {
    let text = joined_text(content);
    let title = crate::base::text::first_line(&text, TITLE);
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_plugins;
#[cfg(test)]
mod tests_router;
#[cfg(test)]
mod tests_utility;
