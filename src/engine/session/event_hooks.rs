//! OnEvent hooks: one run of each at a time, with all events that came since the last one.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    hooks::{Hooks, Switches},
    record::Step,
    step::{Act, Input},
};
use castor_base::{
    hook::{Hook, HookEvent, HookRun},
    ids::EffectId,
    log::{Entry, Fact},
};

/// Most events that wait for a hook; of more the oldest are left out, and counted.
const MAX_WAITING: usize = 1_000;

/// What hooks are still to be told.
#[derive(Debug, Default)]
pub(super) struct EventHooks {
    queues: Vec<EventQueue>,
}

/// The events of one hook.
#[derive(Debug)]
struct EventQueue {
    hook: Arc<Hook>,
    running: Option<EffectId>,
    waiting: Vec<Value>,
    n_left_out: usize,
}

impl EventQueue {
    fn add(&mut self, event: Value) {
        if self.waiting.len() == MAX_WAITING {
            self.waiting.remove(0);
            self.n_left_out += 1;
        }
        self.waiting.push(event);
    }

    /// The next run, if there is something to tell.
    fn next_run(&mut self) -> Option<HookRun> {
        if self.running.is_some() || self.waiting.is_empty() {
            return None;
        }
        let (events, left_out) = (std::mem::take(&mut self.waiting), std::mem::take(&mut self.n_left_out));
        let mut input = Map::from_iter([("events".to_owned(), Value::Array(events))]);
        if left_out > 0 {
            input.insert("left_out".to_owned(), json!(left_out));
        }
        Some(HookRun::new(self.hook.clone(), input))
    }
}

impl EventHooks {
    /// A hook may be ready for more.
    pub fn observe_input(&mut self, input: &Input) {
        let Input::HookFinished { effect, .. } = input else { return };
        self.queues.iter_mut().for_each(|it| _ = it.running.take_if(|it| it == effect));
        self.queues.retain(|it| it.running.is_some() || !it.waiting.is_empty());
    }

    /// Tells them what a step said, from `start` on.
    pub fn tell(&mut self, hooks: &Hooks, mut step: Step<'_>, start: usize) {
        if !hooks.all().any(|it| it.event == HookEvent::OnEvent) {
            return;
        }
        for act in step.acts(start) {
            let Act::Log(Entry { fact: Fact::Event { event }, .. }) = act else { continue };
            self.add(hooks, &step.record.switches, json!(event));
        }
        for queue in &mut self.queues {
            if let Some(run) = queue.next_run() {
                queue.running = Some(step.start_hook(run));
            }
        }
    }

    fn add(&mut self, hooks: &Hooks, switches: &Switches, event: Value) {
        let subject = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let plan = hooks.plan(HookEvent::OnEvent, subject, switches);
        for hook in plan.hooks.into_iter().chain(plan.observers) {
            if !self.queues.iter().any(|it| it.hook == hook) {
                self.queues.push(EventQueue { hook: hook.clone(), running: None, waiting: Vec::new(), n_left_out: 0 });
            }
            self.queues.iter_mut().filter(|it| it.hook == hook).for_each(|it| it.add(event.clone()));
        }
    }
}
