//! The run of all hooks at one point of a session, from the first hook to the outcome.

use std::{collections::VecDeque, sync::Arc};

use serde_json::{Map, Value};

use super::{
    FiringPlan,
    answer::{self, HookAnswer, HookDecision},
    outcome::{HookOutcome, merge},
};
use castor_base::{
    hook::{Hook, HookEvent, HookReport, HookRun},
    ids::EffectId,
};

/// Hooks under way: first those of the client, one after the other up to the first that says something, then commands.
/// Nothing is waited for longer than the slowest of their timeouts; for those that run one after the other, than their sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    event: HookEvent,
    input: Map<String, Value>,
    sequential: bool,
    waiting: VecDeque<usize>,
    running: Vec<(EffectId, usize)>,
    answers: Vec<(Arc<Hook>, Option<HookAnswer>)>,
    timed_out: Vec<String>,
}

/// The state of a firing when it began.
#[derive(Clone, Debug, PartialEq)]
pub enum FiringStart {
    Waiting(Firing),
    /// There is nothing to wait for.
    Finished(HookOutcome),
}

/// The effect of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerEffect {
    /// It is about something else.
    Unrelated,
    Waiting,
    Finished(Box<HookOutcome>),
}

impl Firing {
    /// `start` has the world run a hook.
    pub fn begin(
        event: HookEvent,
        plan: FiringPlan,
        input: Map<String, Value>,
        start: impl FnMut(HookRun) -> EffectId,
    ) -> FiringStart {
        let waiting = (0..plan.hooks.len()).collect();
        let told = plan.hooks.into_iter().map(|it| (it, None)).collect();
        let (sequential, timed_out) = (plan.sequential, plan.timed_out);
        let mut res = Self { event, input, sequential, waiting, running: Vec::new(), answers: told, timed_out };
        res.start(start);
        match res.running.is_empty() {
            true => FiringStart::Finished(res.outcome()),
            false => FiringStart::Waiting(res),
        }
    }

    /// Those that may run now.
    fn start(&mut self, mut start: impl FnMut(HookRun) -> EffectId) {
        while let Some(at) = self.waiting.front().copied() {
            let Some((hook, _)) = self.answers.get(at) else { return };
            let alone = self.sequential || hook.is_of_client();
            if alone && !self.running.is_empty() {
                return;
            }
            self.waiting.pop_front();
            let effect = start(HookRun::new(hook.clone(), self.input.clone()));
            self.running.push((effect, at));
            if alone {
                return;
            }
        }
    }

    /// The first answer of the client's counts; what it blocks nobody else hears of.
    fn skip_after(&mut self, said: &HookAnswer) {
        let answers = &self.answers;
        if said.decision == HookDecision::Block || said.fails_closed(self.event) {
            self.waiting.clear();
        } else if said.says_something() {
            self.waiting.retain(|at| !answers.get(*at).is_some_and(|(hook, _)| hook.is_of_client()));
        }
    }

    pub fn event(&self) -> HookEvent {
        self.event
    }

    /// The hooks that run now.
    pub fn running(&self) -> impl Iterator<Item = EffectId> {
        self.running.iter().map(|(effect, _)| *effect)
    }

    pub fn take_report(
        &mut self,
        effect: EffectId,
        report: &HookReport,
        start: impl FnMut(HookRun) -> EffectId,
    ) -> AnswerEffect {
        let Some(place) = self.running.iter().position(|(it, _)| *it == effect) else { return AnswerEffect::Unrelated };
        let (_, at) = self.running.remove(place);
        if let Some((hook, _)) = self.answers.get(at) {
            let said = answer::read_answer(hook, report);
            if said.exited_ok {
                chain(self.event, &mut self.input, &said);
            }
            if hook.is_of_client() {
                self.skip_after(&said);
            }
            self.answers.get_mut(at).into_iter().for_each(|it| it.1 = Some(said.clone()));
        }
        if self.running.is_empty() {
            self.start(start);
        }
        match self.running.is_empty() {
            true => AnswerEffect::Finished(Box::new(self.outcome())),
            false => AnswerEffect::Waiting,
        }
    }

    /// The outcome, in the order of the plan: which of them ended first is chance.
    fn outcome(&mut self) -> HookOutcome {
        let mut res = HookOutcome::default();
        for key in std::mem::take(&mut self.timed_out) {
            let what = "did not answer in time before; `/hooks enable` lets it try again";
            res.failed.push(format!("The hook {key:?} {what}."));
        }
        for (hook, said) in std::mem::take(&mut self.answers) {
            if let Some(mut said) = said {
                let ignored = answer::drop_disallowed(self.event, &mut said);
                res.add((self.event, &hook), said, ignored);
            }
        }
        res
    }
}

/// Passes the change of one hook to the next one.
fn chain(event: HookEvent, input: &mut Map<String, Value>, said: &HookAnswer) {
    let name = match event.row().passes_on {
        Some("additionalContext") => {
            let more = said.specific.get("additionalContext").and_then(Value::as_str);
            if let (Some(Value::String(prompt)), Some(more)) = (input.get_mut("prompt"), more) {
                *prompt = format!("{prompt}\n\n{more}");
            }
            return;
        }
        Some(it) => it,
        None => return,
    };
    if let Some(it @ (Value::Object(_) | Value::String(_))) = said.specific.get(name) {
        merge(input, name.to_owned(), it.clone());
    }
}
