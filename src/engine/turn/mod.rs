//! One prompt, from its arrival to its one outcome: sampling, calling, sampling again.

mod arrivals;
mod aside;
mod checks;
mod circles;
mod completions;
mod compressing;
mod consulting;
mod discovery;
mod distilling;
pub mod endings;
mod errand;
pub mod holding;
mod hooked;
mod limits;
mod loops;
mod recovery;
mod response;
mod router;
mod sampling;
mod spec;
pub mod steering;
mod trust;
pub mod undo;
mod upkeep;
pub mod utility;
pub mod windows;

pub use arrivals::Arrivals;
pub use errand::{Errand, aside};
pub use limits::limits;
pub use spec::{Bounds, Kept, Modes, OnOffer, Remembers, Spec};

use std::sync::Arc;

use crate::{
    base::{
        content::{Part, joined_text},
        event::{EventKind, Outcome, STOPPED, Speaker, Status, ToolProgress},
        ids::{EffectId, MessageId, PromptId, QuestionId, StreamId},
        log::{Answer, Fact},
    },
    engine::{
        context::Again,
        hooks::{
            firing::Firing,
            plugins::{Moment, Point},
        },
        record::{COMMAND, Step},
        routing,
        scheduler::{Scheduler, Standing, Toolbox},
        step::{Effect, Input},
        turn::{
            endings::{Cause, Ending},
            hooked::{Held, Next, Talk},
            response::Response,
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
    tries: routing::failure::Tries,
    /// The model has one attempt in this turn.
    once: bool,
    again: Option<Again>,
    scheduler: Scheduler,
    /// As the current request told the model of them.
    tools: Toolbox,
    talk: Talk,
    circles: circles::Circles,
}

#[derive(Debug)]
enum Phase {
    /// The user is asked about the folder.
    Doubting(trust::Asked),
    /// What the user said about it is carried out.
    Joining {
        effect: EffectId,
        joining: trust::Joining,
    },
    /// Memory files are read.
    Remembering {
        effect: EffectId,
        /// The turn only shows them, whole or not, and asks no model for an answer.
        shown: Option<bool>,
    },
    /// Servers are still starting; the effect wakes the turn when it has waited long enough.
    Preparing {
        effect: EffectId,
    },
    /// The model answers.
    Sampling {
        effect: EffectId,
        attempt: u32,
        response: Response,
        /// What came of it, where hooks see it first.
        held: Option<Held>,
    },
    /// Hooks have a say.
    Hooking {
        firing: Firing,
        next: Box<Next>,
    },
    /// A model is asked something beside the conversation.
    Consulting {
        utility: Box<utility::Utility>,
        then: consulting::Then,
    },
    /// Until the next attempt.
    Waiting {
        effect: EffectId,
        attempt: u32,
    },
    /// The user is asked how to go on without the model.
    Choosing(Box<recovery::Asked>),
    /// The user is asked whether a model that goes round in circles may go on.
    Circling(Box<circles::Asked>),
    /// A model is asked about the turn itself.
    Judging(Box<checks::Judging>),
    Calling,
    /// Files are taken back.
    Restoring(Box<undo::Restoring>),
    /// Memory of the folders that the calls came to is read.
    Discovering(discovery::Discovery),
    Finished,
}

impl Turn {
    /// Begins: the prompt becomes part of the history, and the model is asked as soon as everybody is there.
    pub fn begin(step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, prompt: PromptId, content: Vec<Part>) -> Self {
        let stream = StreamId::from(step.fresh("s"));
        step.begin_stream(stream);
        let plugins = &spec.toolbox.hooks.plugins;
        let content = plugins.parts(Point::OnUserMessage, Moment::Message(&content)).unwrap_or(content);
        let asked = joined_text(&content);
        let title = step.record.title.is_none().then(|| title_of(&content)).flatten();
        let message_id = MessageId::from(step.fresh("m"));
        step.event(EventKind::Message { role: Speaker::User, message_id, content, cuts: Vec::new() });
        // Once for each prompt of the user, not for each call: a model that failed stays away for the whole turn.
        kept.health.begin_turn();
        let configured = spec.aliases.model_of(&step.record.model);
        let found = router::first(step.record, spec, kept, step.now.unix_ms);
        let is_fallback = found.as_ref().is_some_and(|it| it.by == "fallback");
        let (model, why) = found.map_or((configured.as_str().into(), String::new()), |it| (it.model, it.why));
        step.event(EventKind::SessionUpdate { title, model: Some(model.to_string()) });
        let instead = is_fallback.then(|| (step.record.model.clone(), model.to_string()));
        if instead.is_some() {
            let message = format!("{configured} is known not to answer now: this turn goes to {model}.");
            step.event(EventKind::Error { status: Status::Unavailable, message, fatal: false });
            step.log(Fact::Fallback { from: configured, to: Some(model.to_string()), intent: None, answer: None, why });
        }
        let mut res = Self {
            prompt,
            phase: Phase::Finished,
            n_samples: 0,
            model,
            router: router::Router::begin(instead),
            tries: routing::failure::Tries::default(),
            once: false,
            again: None,
            scheduler: Scheduler::default(),
            tools: spec.toolbox.clone(),
            talk: Talk { asked, ..Talk::default() },
            circles: circles::Circles::default(),
        };
        res.note_standing(step, kept);
        if let Some(cause) = res.spent(step.record, spec) {
            res.finish(step, &cause);
            return res;
        }
        if let Some(answer) = plugins.parts(Point::BeforeRun, Moment::Turn) {
            res.answer(step, answer);
            return res;
        }
        match kept.arrivals.open_doubt() {
            Some(form) => res.phase = Phase::Doubting(trust::ask(step, form)),
            None => res.prepare(step, spec, kept),
        }
        res
    }

    fn prepare(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept) {
        if spec.remembers.at_start && !kept.remembered {
            return self.remember(step, None);
        }
        match kept.arrivals.wait_until(step.now.unix_ms) {
            Some(at_ms) => self.phase = Phase::Preparing { effect: step.effect(Effect::Wake { at_ms }) },
            None => self.prepared(step, spec, kept),
        }
    }

    /// The tools changed; perhaps nothing is waited for any more.
    pub fn arrived(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept) {
        if let Phase::Preparing { effect } = self.phase
            && kept.arrivals.wait_until(step.now.unix_ms).is_none()
        {
            step.effect(Effect::Abort { effect });
            self.prepared(step, spec, kept);
        }
    }

    fn prepared(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept) {
        if let Some(text) = kept.arrivals.say() {
            let message_id = MessageId::from(step.fresh("m"));
            let content = vec![Part::text(text)];
            step.event(EventKind::Message { role: Speaker::Developer, message_id, content, cuts: Vec::new() });
        }
        let opening = kept.arrivals.open();
        self.open(step, spec, kept, opening);
    }

    pub fn prompt(&self) -> PromptId {
        self.prompt
    }

    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Phase::Finished)
    }

    /// Takes one thing that happened. Whatever does not fit the phase is late, and ignored.
    pub fn step(&mut self, input: Input, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept) {
        let input = self.consulted(input, step, spec, kept);
        let Some(input) = input.filter(|it| !self.judged(step, spec, kept, it)) else { return };
        match input {
            Input::Chunks { effect, chunks } => self.heard(step, spec, kept, effect, chunks),
            Input::Hooked { effect, report } => self.hooked(step, spec, kept, effect, &report),
            Input::Remembered { effect, files } => self.remembered(step, spec, kept, effect, files),
            Input::Generated { effect, result } => self.generated(step, spec, kept, effect, result),
            Input::Woke { effect } => self.woke(step, spec, kept, effect),
            Input::Resolved { effect, result } => {
                let standing = self.scheduler.resolved(step, &self.tools, effect, result);
                self.called(step, spec, kept, standing);
            }
            Input::Checked { effect, said } => {
                let standing = self.scheduler.checked(step, &self.tools, effect, said);
                self.called(step, spec, kept, standing);
            }
            Input::Previewed { effect, result } => {
                let standing = self.scheduler.previewed(step, &self.tools, effect, result);
                self.called(step, spec, kept, standing);
            }
            Input::Answered { question, answer } => match &self.phase {
                Phase::Restoring(_) => self.settled_conflicts(step, question, &answer),
                Phase::Doubting(asked) if asked.question == question => self.said(step, spec, kept, answer),
                Phase::Choosing(asked) if asked.question == question => self.chosen(step, spec, kept, answer),
                Phase::Circling(asked) if asked.question == question => self.let_go_on(step, spec, kept, &answer),
                _ => self.answered(step, spec, kept, question, answer),
            },
            Input::Joined { effect, result } => self.joined(step, spec, kept, effect, result),
            Input::Attached { effect, screen } => {
                self.scheduler.progress(step, effect, ToolProgress::Attached { screen })
            }
            Input::Printed { effect, text } => self.scheduler.progress(step, effect, ToolProgress::Printed { text }),
            Input::Restored { .. } | Input::Diffed { .. } | Input::Checkpointed { .. } => {
                self.store_answered(step, spec, kept, input);
            }
            Input::Ran { effect, output, .. } => {
                let standing = self.scheduler.ran(step, &self.tools, effect, *output);
                self.called(step, spec, kept, standing);
            }
            Input::Elicited { elicitation, calls, wanted } => {
                self.scheduler.elicited(step, &self.tools, elicitation, &calls, wanted);
            }
            Input::TakenBack { elicitation } => self.scheduler.taken_back(step, elicitation),
            Input::Prompt { .. }
            | Input::Cancel
            | Input::CancelPrompt(_)
            | Input::Steer { .. }
            | Input::Choose(_)
            | Input::Doubted(_)
            | Input::Noticed(_)
            | Input::Completed(_)
            | Input::Emptied(_)
            | Input::Compared { .. }
            | Input::GoBack(_)
            | Input::Outages(_)
            | Input::Rewind { .. }
            | Input::ToolsChanged(_) => (),
        }
    }

    fn woke(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, effect: EffectId) {
        match self.phase {
            Phase::Waiting { effect: own, attempt } if own == effect => self.sample(step, spec, kept, attempt),
            Phase::Preparing { effect: own } if own == effect => self.prepared(step, spec, kept),
            Phase::Discovering(it) if it.timer == effect => self.look_took_long(step, spec, kept),
            _ => {
                let standing = self.scheduler.woke(step, &self.tools, effect);
                self.called(step, spec, kept, standing);
            }
        }
    }

    /// Ends the turn from outside.
    pub fn end(&mut self, step: &mut Step<'_>, cause: Cause) {
        if self.is_finished() {
            return;
        }
        match &mut self.phase {
            Phase::Judging(it) => it.utility.leave(step),
            Phase::Remembering { effect, .. }
            | Phase::Preparing { effect }
            | Phase::Sampling { effect, .. }
            | Phase::Waiting { effect, .. } => {
                step.effect(Effect::Abort { effect: *effect });
            }
            Phase::Hooking { firing, .. } => {
                let running: Vec<EffectId> = firing.running().collect();
                running.into_iter().for_each(|effect| _ = step.effect(Effect::Abort { effect }));
            }
            Phase::Consulting { utility, then } => {
                utility.leave(step);
                then.leave(step);
            }
            Phase::Doubting(asked) => asked.withdraw(step),
            Phase::Choosing(asked) => asked.withdraw(step),
            Phase::Circling(asked) => asked.withdraw(step),
            Phase::Joining { joining, .. } => joining.leave(step),
            Phase::Discovering(it) => it.leave(step),
            Phase::Restoring(it) => it.withdraw(step),
            Phase::Calling | Phase::Finished => (),
        }
        self.finish(step, &cause);
    }

    fn answered(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, question: QuestionId, answer: Answer) {
        let standing = self.scheduler.answered(step, &self.tools, question, answer);
        self.called(step, spec, kept, standing);
    }

    fn called(&mut self, step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, standing: Standing) {
        if !matches!(self.phase, Phase::Calling) {
            return;
        }
        match standing {
            Standing::Open => (),
            Standing::Done => self.discover(step, spec, kept),
            Standing::AskedInText(question) => self.finish(step, &Cause::AskedInText(question)),
            Standing::TurnCancelled => self.finish(step, &Cause::Cancelled),
            Standing::Stopped(why) => self.finish(step, &Cause::HookStop(why)),
            Standing::Fatal(why) => self.finish(step, &Cause::ToolFatal(why)),
        }
    }

    /// The one end of the turn: open calls end, the reason is told, the prompt is answered.
    fn finish(&mut self, step: &mut Step<'_>, cause: &Cause) {
        self.phase = Phase::Finished;
        self.scheduler.cancel(step, cause.why());
        let Ending { reason, outcome, text, aside, error } = endings::ending(cause);
        if let Some(text) = text {
            let message_id = MessageId::from(step.fresh("m"));
            let content = vec![Part::text(text)];
            let message = EventKind::Message { role: Speaker::Agent, message_id, content, cuts: Vec::new() };
            let (command, stopped) = (aside.then_some(COMMAND), error.is_some().then_some(STOPPED));
            let meta = command.into_iter().chain(stopped).map(|it| (it.to_owned(), true.into()));
            step.event_with(message, meta.collect());
        }
        let plugins = self.tools.hooks.plugins.clone();
        if let Some(content) = plugins.parts(Point::AfterAgent, Moment::Turn) {
            self.tell(step, content);
        }
        if let Some((status, code)) = error {
            let meta = serde_json::Map::from_iter([("code".to_owned(), code.into())]);
            let message = match &outcome {
                Outcome::Failed { why: it, .. } | Outcome::AuthRequired(it) => it.clone(),
                Outcome::Stop(_) | Outcome::Steered(_) => cause.why().to_owned(),
            };
            step.event_with(EventKind::Error { status, message, fatal: true }, meta);
        }
        step.event(EventKind::AgentEnd { reason });
        let usage = step.record.turn_usage();
        step.effect(Effect::Settle { prompt: self.prompt, outcome, usage });
        _ = plugins.ask(Point::AfterRun, Moment::Turn);
    }

    fn tell(&self, step: &mut Step<'_>, content: Vec<Part>) {
        let message_id = MessageId::from(step.fresh("m"));
        step.event(EventKind::Message { role: Speaker::Agent, message_id, content, cuts: Vec::new() });
    }

    /// A plugin answers for the agent.
    fn answer(&mut self, step: &mut Step<'_>, content: Vec<Part>) {
        self.tell(step, content);
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
