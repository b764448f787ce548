//! State of a live session: its values, and their changes in order. Each change is checked, saved where sessions share
//! the key, then logged and told.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    record::{Record, Step},
    step::{Effect, Input},
};
use castor_base::{
    ids::{EffectId, PromptId},
    state::{StateDelta, StateMap, StateOrder, check_size, is_shared, is_temp},
};

/// Most changes that wait; one more is refused.
const MAX_WAITING: usize = 256;

#[derive(Clone, Debug, Default)]
pub struct LiveState {
    /// What its log does not have: the values of `app:` and `user:`; of a run, all that the session above had at its start.
    outside: Arc<StateMap>,
    /// Gone with the turn.
    temp: StateMap,
    waiting: VecDeque<StateChange>,
    /// The first of these is with the store.
    saving: Option<EffectId>,
}

#[derive(Clone, Debug)]
struct StateChange {
    delta: StateDelta,
    /// Who waits for it, and the keys to answer with.
    order: Option<(PromptId, Option<Vec<String>>)>,
}

impl LiveState {
    /// All values, also of changes that are not saved yet.
    pub fn values(&self, record: &Record) -> StateMap {
        let mut res = self.logged_values(record);
        self.waiting.iter().for_each(|it| it.delta.apply(&mut res));
        res
    }

    fn logged_values(&self, record: &Record) -> StateMap {
        let mut res = StateMap::clone(&self.outside);
        StateDelta(record.own_state().clone()).apply(&mut res);
        res.extend(self.temp.clone());
        res
    }

    /// Its log, and what sessions share, have all of it.
    pub fn is_saved(&self) -> bool {
        self.temp.is_empty() && self.waiting.is_empty() && self.saving.is_none()
    }

    pub fn set_outside(&mut self, values: Arc<StateMap>) {
        self.outside = values;
    }

    /// The first values of a session. What other sessions share is saved already.
    pub fn seed(&mut self, step: &mut Step<'_>, first: StateDelta) {
        first.part(is_temp).apply(&mut self.temp);
        step.log_state(first.part(|it| !is_temp(it)));
    }

    /// The turn is over.
    pub fn end_turn(&mut self) {
        self.temp.clear();
    }

    /// Nobody waits for its changes any more.
    pub fn start_over(&mut self) {
        *self = Self { outside: Arc::clone(&self.outside), ..Self::default() };
    }

    /// Takes what is about the state.
    pub fn on_input(&mut self, step: &mut Step<'_>, input: Input) {
        match input {
            Input::State(order) => {
                let StateOrder { prompt, get, set } = *order;
                self.add(step, StateChange { delta: set, order: Some((prompt, get)) });
            }
            Input::SharedState(values) => self.outside = values,
            Input::StateSaved { effect, result } => self.on_saved(step, effect, result),
            _ => (),
        }
    }

    pub fn add_change(&mut self, step: &mut Step<'_>, delta: StateDelta) {
        self.add(step, StateChange { delta, order: None });
    }

    fn add(&mut self, step: &mut Step<'_>, change: StateChange) {
        if self.waiting.len() == MAX_WAITING {
            return refuse(step, change, &format!("{MAX_WAITING} changes wait already; send it again later"));
        }
        self.waiting.push_back(change);
        self.advance(step);
    }

    /// A change was saved, or not.
    fn on_saved(&mut self, step: &mut Step<'_>, effect: EffectId, result: Result<Arc<StateMap>, String>) {
        if self.saving.take_if(|it| *it == effect).is_none() {
            return;
        }
        let Some(change) = self.waiting.pop_front() else { return };
        match result {
            Ok(values) => {
                self.outside = values;
                self.finish(step, change);
            }
            Err(why) => refuse(step, change, &why),
        }
        self.advance(step);
    }

    /// Does what waits, up to the next change that has to be saved.
    fn advance(&mut self, step: &mut Step<'_>) {
        while self.saving.is_none() {
            let Some(change) = self.waiting.pop_front() else { return };
            if let Err(why) = self.check(&change.delta, step.record) {
                refuse(step, change, &why);
            } else if needs_store(&change, step.record) {
                let (user, delta) = (step.record.user().to_owned(), change.delta.part(is_shared));
                self.saving = Some(step.start_effect(Effect::SaveState { user, delta }));
                self.waiting.push_front(change);
            } else {
                self.finish(step, change);
            }
        }
    }

    /// What sessions share is measured where it is saved.
    fn check(&self, delta: &StateDelta, record: &Record) -> Result<(), String> {
        delta.check()?;
        let mut after = self.logged_values(record);
        delta.apply(&mut after);
        if !record.is_run() {
            after.retain(|key, _| !is_shared(key));
        }
        check_size(&after)
    }

    fn finish(&mut self, step: &mut Step<'_>, change: StateChange) {
        change.delta.part(is_temp).apply(&mut self.temp);
        step.log_state(change.delta.part(|it| !is_temp(it)));
        let Some((prompt, get)) = change.order else { return };
        let mut values = self.logged_values(step.record);
        values.retain(|key, _| get.as_ref().is_none_or(|it| it.contains(key)));
        step.start_effect(Effect::AnswerState { prompt, result: Ok(values) });
    }
}

/// A run saves nothing: what it changed is the session's above at its end.
fn needs_store(change: &StateChange, record: &Record) -> bool {
    let reads =
        change.order.as_ref().is_some_and(|(_, get)| get.as_ref().is_none_or(|it| it.iter().any(|it| is_shared(it))));
    !record.is_run() && (reads || change.delta.0.keys().any(|it| is_shared(it)))
}

fn refuse(step: &mut Step<'_>, change: StateChange, why: &str) {
    match change.order {
        Some((prompt, _)) => _ = step.start_effect(Effect::AnswerState { prompt, result: Err(why.to_owned()) }),
        None => step.emit_notice(&format!("The state of the session was not changed: {why}.")),
    }
}
