//! A session: one turn at a time, prompts in order, everything else beside it.

mod clock;
pub mod commands;
mod limits;
mod models;
mod rewinding;
mod stats;
pub mod undo;

use std::{collections::VecDeque, sync::Arc};

use rewinding::Rewinding;

use crate::{
    base::{
        content::Part,
        event::{EventKind, Outcome, Steered, Stop},
        hook::{HookEvent, HookRun},
        ids::PromptId,
        limits::Limits,
        log::{Entry, Fact, Grant, Mode},
        now::Now,
    },
    engine::{
        policy,
        record::{Before, Origin, Record, Serial, Step},
        scheduler::elicitation,
        step::{Act, Choice, Effect, Input, Out},
        turn::{Arrivals, Kept, Spec, Turn, endings::Cause, steering, windows},
    },
};

/// Most prompts that wait; one more is refused. A client that sends faster than models answer is broken.
pub const MAX_WAITING: usize = 256;

/// Prompts in order.
type Waiting = VecDeque<(PromptId, Vec<Part>)>;

/// A conversation and what is under way in it.
#[derive(Debug)]
pub struct Session {
    record: Record,
    spec: Arc<Spec>,
    serial: Serial,
    turn: Option<Turn>,
    kept: Kept,
    waiting: Waiting,
    clock: clock::Clock,
    ordered: Option<Ordered>,
    rewinding: Option<Rewinding>,
}

/// castor was started with another model than the session's own. It holds at once, and is logged with the next prompt:
/// who only looks at a session changes nothing of it.
#[derive(Debug)]
struct Ordered {
    own: String,
    model: String,
}

impl Session {
    /// A new session; its first facts are in `out`.
    pub fn create(origin: Origin, spec: Arc<Spec>, now: Now, out: &mut Out) -> Self {
        let record = Record::new(origin.clone());
        out.acts.push(Act::Log(Entry { at: now.unix_ms, fact: origin.fact() }));
        let mut res = Self::resume(record, spec);
        res.kept.arrivals = Arrivals::of("startup");
        let (session_id, workspace) = (res.record.session.clone(), res.record.cwd.clone());
        let mut step = Step::new(&mut res.record, &mut res.serial, now, out);
        step.event(EventKind::Initialize { session_id, workspace, agent_id: "castor".to_owned() });
        res
    }

    /// A session as its log left it. Nothing is written.
    pub fn resume(record: Record, spec: Arc<Spec>) -> Self {
        let mut kept = Kept { arrivals: Arrivals::of("resume"), ..Kept::default() };
        kept.holding.switch(spec.toolbox.checkpoints);
        Self {
            record,
            spec,
            serial: Serial::default(),
            turn: None,
            kept,
            waiting: VecDeque::new(),
            clock: clock::Clock::default(),
            ordered: None,
            rewinding: None,
        }
    }

    /// The session goes on with this model, whatever its own is.
    pub fn order(&mut self, model: String) {
        if model != self.record.model {
            let own = std::mem::replace(&mut self.record.model, model.clone());
            self.ordered = Some(Ordered { own, model });
        }
    }

    /// Starts over from the log after something went wrong. Effect ids go on, so that late answers meet nobody.
    pub fn refold(&mut self, record: Record) {
        self.record = record;
        if let Some(it) = &self.ordered {
            self.record.model.clone_from(&it.model);
        }
        (self.turn, self.rewinding) = (None, None);
        self.waiting.clear();
        self.clock = clock::Clock::default();
    }

    /// What the session is built from changed with what counts in its folder. Tools from outside come anew, and so does
    /// a doubt about the folder.
    pub fn furnish(&mut self, spec: Arc<Spec>) {
        self.kept.holding.switch(spec.toolbox.checkpoints);
        self.spec = spec;
        self.kept.remembered = false;
        self.kept.arrivals.settle_doubt();
    }

    /// Ids and names of the models on offer.
    pub fn models(&self) -> &[(String, String)] {
        &self.spec.models.listed
    }

    /// In which modes it may be, once the folder is trusted.
    pub fn offered_modes(&self) -> &[Mode] {
        &self.spec.modes.offered
    }

    /// How far turns and session may go, unless the user says otherwise.
    pub fn configured_limits(&self) -> Limits {
        self.spec.bounds.limits
    }

    pub fn record(&self) -> &Record {
        &self.record
    }

    /// What can be typed now.
    pub fn commands(&self) -> impl Iterator<Item = &'static commands::Command> {
        commands::offered(&self.spec)
    }

    pub fn is_busy(&self) -> bool {
        self.turn.is_some() || self.rewinding.is_some()
    }

    /// The session is left: whom to tell, without waiting for them.
    pub fn part(&mut self, reason: &str) -> Vec<HookRun> {
        match self.kept.arrivals.is_opened() {
            true => ends(&self.spec, reason, &self.record),
            false => Vec::new(),
        }
    }

    /// Takes one thing that happened and pushes what should be done about it.
    pub fn step(&mut self, input: Input, now: Now, out: &mut Out) {
        let start = out.acts.len();
        self.clock.hear(&input, now);
        let Self { record, spec, serial, turn, kept, waiting, rewinding, .. } = self;
        let mut step = Step::new(record, serial, now, out).watched(&spec.toolbox.hooks.plugins);
        kept.holding.hear(&input, &mut step, &mut kept.arrivals, turn.is_some());
        rewinding::hear(rewinding, &input, &mut step, spec, kept, turn.is_some());
        match input {
            Input::Prompt { prompt, content } if waiting.len() < MAX_WAITING => waiting.push_back((prompt, content)),
            Input::Prompt { prompt, .. } => {
                let why = format!("{MAX_WAITING} prompts are waiting in this session already");
                settle(&mut step, prompt, Outcome::Failed { kind: "session", why });
            }
            Input::Steer { prompt, content } => match turn {
                Some(turn) => turn.steer(&mut step, prompt, content),
                None => steering::answer(&mut step, prompt, Steered::PromptRequired(steering::NO_TURN.to_owned())),
            },
            Input::Cancel => {
                if let Some(turn) = turn {
                    turn.end(&mut step, Cause::Cancelled);
                }
                for (prompt, _) in waiting.drain(..) {
                    settle(&mut step, prompt, Outcome::Stop(Stop::Cancelled));
                }
            }
            Input::CancelPrompt(prompt) => cancel(&mut step, turn.as_mut(), waiting, prompt),
            Input::Choose(choice) => choose(&mut step, spec, kept, choice),
            Input::Rewind { to, log } if turn.is_none() => rewind(&mut step, spec, kept, Record::before(&log, &to)),
            Input::Doubted(doubt) => kept.arrivals.doubt(doubt),
            Input::Noticed(text) => kept.arrivals.notice(text),
            Input::Completed(text) => kept.completions.add(text),
            Input::Outages(outages) => kept.health.learn(outages),
            Input::ToolsChanged(kit) => {
                let spec = Arc::make_mut(spec);
                kept.arrivals.take(&kit.servers, kit.notices);
                spec.toolbox = spec.toolbox.equipped(kit.tools, kit.servers);
                if let Some(turn) = turn {
                    turn.arrived(&mut step, spec, kept);
                }
            }
            Input::Elicited { elicitation: id, .. } if turn.is_none() => elicitation::too_late(&mut step, id),
            other => {
                if let Some(turn) = turn {
                    turn.step(other, &mut step, spec, kept);
                }
            }
        }
        self.close_books(now, out);
        self.go_on(now, out, start);
        self.keep_time(now, out, start);
        self.hold(now, out, start);
    }

    /// What was begun, from `start` on, is known by its end.
    fn hold(&mut self, now: Now, out: &mut Out, start: usize) {
        let acts = out.acts.get(start..).unwrap_or_default();
        self.kept.holding.note(acts);
        if let Some(it) = self.kept.holding.open(acts) {
            Step::new(&mut self.record, &mut self.serial, now, out).effect(it);
        }
    }

    /// The next prompt begins as soon as the one before it is over, with all that it began from `start` on.
    fn go_on(&mut self, now: Now, out: &mut Out, start: usize) {
        // Another one was chosen since.
        _ = self.ordered.take_if(|it| it.model != self.record.model);
        while self.turn.as_ref().is_none_or(Turn::is_finished) {
            if let Some(turn) = &mut self.turn {
                turn.leave_steering(&mut Step::new(&mut self.record, &mut self.serial, now, out));
            }
            rewinding::note(&mut self.rewinding, out.acts.get(start..).unwrap_or_default());
            let next = if self.rewinding.is_none() { self.waiting.pop_front() } else { None };
            let Some((prompt, content)) = next else {
                self.turn = None;
                return;
            };
            let step = Step::new(&mut self.record, &mut self.serial, now, out);
            let mut step = step.watched(&self.spec.toolbox.hooks.plugins);
            if let Some(Ordered { own, model }) = self.ordered.take() {
                step.log(windows::choice(&self.spec, &model));
                let why = "as castor was started with it";
                let text = format!("This session goes on with the model {model}, {why}; before, it was {own}.");
                self.kept.arrivals.notice(text);
            }
            strike_out_void(&mut step, &mut self.kept);
            if let Some((command, args)) = commands::find(&content) {
                let before = step.record.model.clone();
                if let Some(errand) = commands::run(command, args, &mut step, &self.spec, prompt, &content) {
                    self.turn =
                        Some(Turn::for_errand(&mut step, &self.spec, &mut self.kept, (prompt, content), errand));
                    continue;
                }
                if command.clears {
                    start_over(&mut step, &self.spec, &mut self.kept);
                }
                if step.record.model != before {
                    forgive(&mut step, &self.spec, &mut self.kept);
                }
                continue;
            }
            if let Some(why) = commands::unknown(&content, &self.spec) {
                commands::answer(&mut step, prompt, &content, |_| why);
                continue;
            }
            self.turn = Some(Turn::begin(&mut step, &self.spec, &mut self.kept, prompt, content));
        }
    }
}

const VOID: &str = "This session once allowed the network to all commands. castor ignores that: a yes to the network is \
                    for one line now.";

/// What was allowed under an earlier version and means nothing any more. As with a model that was ordered: not before a
/// prompt, and said once.
fn strike_out_void(step: &mut Step<'_>, kept: &mut Kept) {
    let void: Vec<Grant> = step.record.grants.iter().filter(|it| policy::is_void(it)).cloned().collect();
    if !void.is_empty() {
        void.into_iter().for_each(|grant| step.log(Fact::Revoked { grant }));
        kept.arrivals.notice(VOID.to_owned());
    }
}

/// One prompt ends, running or waiting, or words for the turn.
fn cancel(step: &mut Step<'_>, turn: Option<&mut Turn>, waiting: &mut Waiting, prompt: PromptId) {
    if let Some(turn) = turn {
        if turn.prompt() == prompt {
            return turn.end(step, Cause::Cancelled);
        }
        if turn.unsteer(step, prompt) {
            return;
        }
    }
    if let Some(at) = waiting.iter().position(|(it, _)| *it == prompt) {
        waiting.remove(at);
        settle(step, prompt, Outcome::Stop(Stop::Cancelled));
    }
}

/// `None`: to a message that is not there.
fn rewind(step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, before: Option<Before>) {
    let Some(before) = before else { return };
    let is_empty = before.is_empty();
    step.rewind(before);
    if is_empty {
        start_over(step, spec, kept);
    }
}

/// The model knows nothing any more, also not what hooks said at the session's start: they hear of its end, then of
/// another start.
fn start_over(step: &mut Step<'_>, spec: &Spec, kept: &mut Kept) {
    if kept.arrivals.is_opened() {
        // Nobody waits for what they say of it.
        ends(spec, "clear", step.record).into_iter().for_each(|run| _ = step.hook(run));
        kept.arrivals.reopen();
    }
}

/// What is told of the end of a session.
fn ends(spec: &Spec, reason: &str, record: &Record) -> Vec<HookRun> {
    let plan = spec.toolbox.hooks.plan(HookEvent::SessionEnd, reason, &record.switches);
    let input = serde_json::Map::from_iter([("reason".to_owned(), reason.into())]);
    plan.hooks.into_iter().map(|hook| HookRun { hook, input: input.clone(), hold: None }).collect()
}

/// A prompt that no model was asked for ends.
fn settle(step: &mut Step<'_>, prompt: PromptId, outcome: Outcome) {
    step.effect(Effect::Settle { prompt, outcome, usage: None });
}

/// What the client chose holds from the next request on; choosing what is chosen says nothing.
fn choose(step: &mut Step<'_>, spec: &Spec, kept: &mut Kept, choice: Choice) {
    let is_model = matches!(choice, Choice::Model(_));
    match choice {
        Choice::Mode(mode) if mode != step.record.mode => step.log(Fact::Mode { mode }),
        Choice::Model(model) if model != step.record.model => step.log(windows::choice(spec, &model)),
        Choice::Tuning(tuning) if tuning != step.record.tuning => step.log(Fact::Tuning { tuning }),
        Choice::Limits(limits) if limits != step.record.limits() => step.log(Fact::Limits { limits }),
        Choice::Mode(_) | Choice::Model(_) | Choice::Tuning(_) | Choice::Limits(_) => (),
    }
    if is_model {
        forgive(step, spec, kept);
    }
}

/// The user wants this model tried, whatever was known of it; and of it only.
fn forgive(step: &mut Step<'_>, spec: &Spec, kept: &mut Kept) {
    let model = spec.aliases.model_of(&step.record.model);
    if kept.health.mark_well(&model) {
        step.effect(Effect::Health { model, outage: None });
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_given;
#[cfg(test)]
mod tests_undo;
