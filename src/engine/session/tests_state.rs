//! State in sessions: what random lives do with it, and its changes in order.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{Value, json};

use super::{
    Session,
    tests::World,
    tests_given::{origin, spec},
};
use crate::step::{Act, Effect, Input, StepOutput};
use castor_base::{
    clock::Now,
    event::EventKind,
    ids::{EffectId, PromptId},
    log::Fact,
    state::{MAX_SCOPE, StateDelta, StateMap, StateOrder},
};

pub(super) fn delta(value: Value) -> StateDelta {
    serde_json::from_value(value).unwrap()
}

impl World {
    pub(super) fn state_order(&mut self) -> Input {
        self.n_prompts += 1;
        let prompt = PromptId(self.n_prompts);
        self.open_prompts.insert(prompt);
        let key = ["a", "app:a", "user:a", "temp:a", "1"][self.dice(5) as usize];
        let value = [json!(self.n), Value::Null][self.dice(2) as usize].clone();
        let get = [None, Some(vec!["a".to_owned()])][self.dice(2) as usize].clone();
        Input::State(Box::new(StateOrder { prompt, get, set: delta(json!({ key: value, "b": self.n })) }))
    }

    pub(super) fn save_all(&mut self) {
        let is_save = |it: &(EffectId, Effect)| matches!(it.1, Effect::SaveState { .. });
        while let Some(at) = self.pending.iter().position(is_save) {
            let saved = self.answer(at);
            self.step(saved);
        }
    }

    pub(super) fn saved(&mut self, effect: EffectId, delta: &StateDelta) -> Input {
        let mut values = BTreeMap::from([("app:other".to_owned(), json!(self.n))]);
        delta.apply(&mut values);
        let full = self.dice(4) == 0;
        Input::StateSaved { effect, result: if full { Err("disk full".to_owned()) } else { Ok(Arc::new(values)) } }
    }
}

/// A session with its steps, and in words what came of them.
struct Talk {
    session: Session,
    said: Vec<String>,
}

impl Talk {
    fn new() -> Self {
        let session =
            Session::create(origin(), Arc::new(spec(1)), Now { unix_ms: 1, seed: 1 }, &mut StepOutput::default());
        Self { session, said: Vec::new() }
    }

    fn step(&mut self, input: Input) {
        let mut out = StepOutput::default();
        self.session.step(input, Now { unix_ms: 2, seed: 2 }, &mut out);
        self.said.extend(out.acts.iter().filter_map(|act| match act {
            Act::Log(entry) => match &entry.fact {
                Fact::State { delta } => Some(format!("fact {}", json!(delta))),
                Fact::Event { event } => match &event.kind {
                    EventKind::SessionUpdate { state, .. } => Some(format!("event {}", json!(state))),
                    _ => None,
                },
                _ => None,
            },
            Act::Do(id, Effect::SaveState { user, delta }) => Some(format!("save #{} {user} {}", id.0, json!(delta))),
            Act::Do(_, Effect::AnswerState { prompt, result }) => Some(match result {
                Ok(it) => format!("answer {} {}", prompt.0, json!(it)),
                Err(why) => format!("refuse {} {}", prompt.0, why.chars().take(20).collect::<String>()),
            }),
            Act::Do(..) | Act::BeginStream { .. } => None,
        }));
    }

    fn set(&mut self, prompt: u64, set: Value, get: &[&str]) {
        let get = Some(get.iter().map(|it| (*it).to_owned()).collect());
        self.step(Input::State(Box::new(StateOrder { prompt: PromptId(prompt), get, set: delta(set) })));
    }

    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.said), expected);
    }
}

fn saved(effect: u64, result: Result<Value, &str>) -> Input {
    let result = result.map(|it| Arc::new(delta(it).0)).map_err(str::to_owned);
    Input::StateSaved { effect: EffectId(effect), result }
}

#[test]
fn a_change_is_logged_told_and_answered() {
    let mut talk = Talk::new();
    talk.set(1, json!({ "a": 1, "temp:t": 2 }), &["a", "temp:t", "gone"]);
    talk.check(&["fact {\"a\":1}", "event {\"a\":1}", "answer 1 {\"a\":1,\"temp:t\":2}"]);
    talk.set(2, json!({ "temp:t": 3 }), &[]);
    talk.check(&["answer 2 {}"]);
    talk.set(3, json!({ "a": null }), &["a"]);
    talk.check(&["fact {\"a\":null}", "event {\"a\":null}", "answer 3 {}"]);
}

/// A later change waits for an earlier one that is being saved, and counts at once all the same.
#[test]
fn changes_keep_their_order() {
    let mut talk = Talk::new();
    talk.set(1, json!({ "app:a": 1, "b": 1 }), &[]);
    talk.set(2, json!({ "b": 2 }), &["app:a", "b"]);
    talk.set(3, json!({ "b": 3 }), &["b"]);
    talk.check(&["save #1 local {\"app:a\":1}"]);
    let values = talk.session.state();
    assert_eq!((values.get("app:a"), values.get("b")), (Some(&json!(1)), Some(&json!(3))));
    talk.step(saved(9, Err("late")));
    talk.step(saved(1, Ok(json!({ "app:a": 1, "user:u": 5 }))));
    let after_first = ["fact {\"app:a\":1,\"b\":1}", "event {\"app:a\":1,\"b\":1}", "answer 1 {}", "save #3 local {}"];
    talk.check(&after_first);
    talk.step(saved(3, Err("it is broken")));
    talk.check(&["refuse 2 it is broken", "fact {\"b\":3}", "event {\"b\":3}", "answer 3 {\"b\":3}"]);
    assert_eq!(talk.session.state().get("user:u"), Some(&json!(5)));
}

#[test]
fn what_is_too_large_changes_nothing() {
    let mut talk = Talk::new();
    let half = "x".repeat(MAX_SCOPE / 5);
    let set = json!({ "a": half, "b": half, "c": half, "d": half, "e": half });
    talk.set(1, set, &[]);
    talk.set(2, json!({ "no key": 1 }), &[]);
    talk.check(&["refuse 1 keys without a prefi", "refuse 2 \"no key\" is no key of"].map(|it| it.split_at(9 + 20).0));
    assert_eq!(talk.session.state(), StateMap::new());
}
