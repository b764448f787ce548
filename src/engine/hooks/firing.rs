//! One point of a session, from its first hook to its outcome.

use std::{collections::VecDeque, sync::Arc};

use serde_json::{Map, Value};

use super::{
    Plan,
    outcome::{Outcome, merge},
    said::{self, Said},
};
use crate::base::{
    hook::{Hook, HookEvent, HookReport, HookRun},
    ids::EffectId,
};

/// Hooks under way. Nothing is waited for longer than the slowest of their timeouts; for those that run one after the
/// other, than their sum.
#[derive(Clone, Debug, PartialEq)]
pub struct Firing {
    event: HookEvent,
    input: Map<String, Value>,
    waiting: VecDeque<usize>,
    running: Vec<(EffectId, usize)>,
    told: Vec<(Arc<Hook>, Option<Said>)>,
    hung: Vec<String>,
}

/// What a firing is when it began.
#[derive(Clone, Debug, PartialEq)]
pub enum Begun {
    Waiting(Firing),
    /// There is nobody to wait for.
    Over(Outcome),
}

/// What an answer came to.
#[derive(Clone, Debug, PartialEq)]
pub enum Taken {
    /// It is about something else.
    NotMine,
    Open,
    Over(Box<Outcome>),
}

impl Firing {
    /// `start` has the world run a hook.
    pub fn begin(
        event: HookEvent,
        plan: Plan,
        input: Map<String, Value>,
        start: impl FnMut(HookRun) -> EffectId,
    ) -> Begun {
        let waiting = (0..plan.hooks.len()).collect();
        let told = plan.hooks.into_iter().map(|it| (it, None)).collect();
        let mut res = Self { event, input, waiting, running: Vec::new(), told, hung: plan.hung };
        let at_once = if plan.sequential { 1 } else { usize::MAX };
        res.start(at_once, start);
        match res.running.is_empty() {
            true => Begun::Over(res.outcome()),
            false => Begun::Waiting(res),
        }
    }

    fn start(&mut self, n: usize, mut start: impl FnMut(HookRun) -> EffectId) {
        for _ in 0..n {
            let Some(at) = self.waiting.pop_front() else { return };
            let Some((hook, _)) = self.told.get(at) else { return };
            let effect = start(HookRun { hook: hook.clone(), input: self.input.clone(), hold: None });
            self.running.push((effect, at));
        }
    }

    pub fn event(&self) -> HookEvent {
        self.event
    }

    /// What runs now.
    pub fn running(&self) -> impl Iterator<Item = EffectId> {
        self.running.iter().map(|(effect, _)| *effect)
    }

    pub fn take(&mut self, effect: EffectId, report: &HookReport, start: impl FnMut(HookRun) -> EffectId) -> Taken {
        let Some(place) = self.running.iter().position(|(it, _)| *it == effect) else { return Taken::NotMine };
        let (_, at) = self.running.remove(place);
        if let Some((hook, answer)) = self.told.get_mut(at) {
            let said = said::read(hook, report);
            if said.passed {
                chain(self.event, &mut self.input, &said);
            }
            *answer = Some(said);
        }
        if self.running.is_empty() {
            self.start(1, start);
        }
        match self.running.is_empty() {
            true => Taken::Over(Box::new(self.outcome())),
            false => Taken::Open,
        }
    }

    /// In the order of the plan: which of them ended first is chance.
    fn outcome(&mut self) -> Outcome {
        let mut res = Outcome::default();
        for key in std::mem::take(&mut self.hung) {
            let what = "did not answer in time before; `/hooks enable` lets it try again";
            res.failed.push(format!("The hook {key:?} {what}."));
        }
        for (hook, said) in std::mem::take(&mut self.told) {
            if let Some(mut said) = said {
                let ignored = said::limit(self.event, &mut said);
                res.add(hook.key(), said, ignored);
            }
        }
        res
    }
}

/// What one hook changed is what the next one is told.
fn chain(event: HookEvent, input: &mut Map<String, Value>, said: &Said) {
    let name = match event {
        HookEvent::BeforeAgent => {
            let more = said.specific.get("additionalContext").and_then(Value::as_str);
            if let (Some(Value::String(prompt)), Some(more)) = (input.get_mut("prompt"), more) {
                *prompt = format!("{prompt}\n\n{more}");
            }
            return;
        }
        HookEvent::BeforeModel => "llm_request",
        HookEvent::BeforeTool => "tool_input",
        _ => return,
    };
    if let Some(it @ Value::Object(_)) = said.specific.get(name) {
        merge(input, name.to_owned(), it.clone());
    }
}
