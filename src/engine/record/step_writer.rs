//! The writer of a step: emits events and facts, and applies each fact to the record at once.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::{
    hooks::HookOutcome,
    record::{Record, RewindPoint, TRANSFER_META},
    step::{Act, Effect, StepOutput},
};
use castor_base::{
    clock::Now,
    event::{EventKind, EventSource, NOTICE},
    hook::{Hook, HookEvent, HookRun, HookSwitch},
    ids::{EffectId, PromptId, QuestionId, StreamId},
    log::{Entry, Fact},
    state::StateDelta,
};

/// Counters that never go back while the session is in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SerialNumbers {
    effects: u64,
    questions: u64,
    dice: u64,
}

/// One step under way.
pub struct Step<'a> {
    pub record: &'a mut Record,
    pub now: Now,
    serial: &'a mut SerialNumbers,
    out: &'a mut StepOutput,
}

impl<'a> Step<'a> {
    pub fn new(record: &'a mut Record, serial: &'a mut SerialNumbers, now: Now, out: &'a mut StepOutput) -> Self {
        Self { record, now, serial, out }
    }

    /// What was said and begun, from `start` on.
    pub fn acts(&self, start: usize) -> &[Act] {
        self.out.acts.get(start..).unwrap_or_default()
    }

    pub fn log(&mut self, fact: Fact) {
        let entry = Entry { at: self.now.unix_ms, fact };
        self.record.apply(&entry);
        self.out.acts.push(Act::Log(entry));
    }

    /// Takes away a message of the user and all after it.
    pub fn rewind(&mut self, before: RewindPoint) {
        self.log(Fact::Rewound { to: before.to().clone() });
        let state = self.record.own_state().clone();
        self.record.apply_rewind(before);
        let state = StateDelta::between(&state, self.record.own_state());
        if !state.is_empty() {
            self.tell_state(state);
        }
        // What a client gave is no conversation.
        if let Some(title) = self.record.client_title().map(str::to_owned) {
            self.give_title(&title);
        }
    }

    /// Tells something in the current stream.
    pub fn emit_event(&mut self, kind: EventKind) {
        self.emit_event_of(kind, None, Map::new());
    }

    pub fn emit_event_with(&mut self, kind: EventKind, meta: Map<String, Value>) {
        self.emit_event_of(kind, None, meta);
    }

    /// `source`: where it comes from, if not from the session's agent or user.
    fn emit_event_of(&mut self, kind: EventKind, source: Option<EventSource>, meta: Map<String, Value>) {
        let mut event = self.record.past.stream.event(self.now.unix_ms, kind);
        event.source = source.unwrap_or(event.source);
        event.meta = meta;
        self.log(Fact::Event { event });
    }

    /// The state is to change at the end of the step, where the change is one that may be.
    pub fn change_state(&mut self, delta: StateDelta) {
        self.out.state_changes.push(delta);
    }

    /// The state has changed; keys of `temp:` have no place here.
    pub fn log_state(&mut self, delta: StateDelta) {
        if !delta.is_empty() {
            self.log(Fact::State { delta: delta.clone() });
            self.tell_state(delta);
        }
    }

    fn tell_state(&mut self, state: StateDelta) {
        self.emit_event(EventKind::SessionUpdate { title: None, model: None, state });
    }

    /// What is said beside the conversation.
    pub fn emit_notice(&mut self, text: &str) {
        self.emit_event(notice(text));
    }

    /// A notice that programs know by its code.
    pub fn emit_coded_notice(&mut self, text: &str, code: &str) {
        self.emit_event_with(notice(text), Map::from_iter([("code".to_owned(), code.into())]));
    }

    /// What hooks came to: logged, and told as far as it is for the user. `context`: what of it the model sees beside
    /// the prompt; `retracts`: it does not see the prompt.
    pub fn log_hooks(&mut self, event: HookEvent, outcome: &HookOutcome, context: Option<String>, retracts: bool) {
        if outcome.is_reportable() {
            self.log(Fact::Hooked {
                event,
                hooks: outcome.ran.clone(),
                verdict: outcome.verdict.as_ref().map(|it| it.as_str().to_owned()),
                reason: outcome.verdict.as_ref().map(|it| it.reason().to_owned()),
                context,
                retracts,
                change: outcome.change.clone(),
                failed: outcome.failed.clone(),
            });
        }
        if !outcome.state.is_empty() {
            self.change_state(outcome.state.clone());
        }
        for hook in &outcome.timed_out {
            self.log(Fact::HookSwitched { hook: hook.clone(), to: HookSwitch::Hung });
        }
        for it in &outcome.notices {
            let source = format!("hooks/{}", it.hook).into();
            self.emit_event_of(notice(&it.text), Some(source), Map::new());
        }
        outcome.failed.iter().for_each(|it| self.emit_notice(it));
    }

    /// Has a hook run.
    pub fn start_hook(&mut self, run: HookRun) -> EffectId {
        let run = HookRun { place: Some(self.record.place()), ..run };
        self.start_effect(Effect::RunHook(Box::new(run)))
    }

    /// Tells hooks that only listen.
    pub fn tell_hooks(&mut self, hooks: Vec<Arc<Hook>>, input: &Map<String, Value>) {
        for hook in hooks {
            let run = HookRun { place: Some(self.record.place()), ..HookRun::new(hook, input.clone()) };
            self.start_effect(Effect::TellHook(Box::new(run)));
        }
    }

    /// Begins a stream of a prompt: later events belong to it.
    pub fn begin_stream(&mut self, prompt: PromptId) {
        self.open_stream(prompt);
        self.emit_event(EventKind::AgentStart {});
    }

    fn open_stream(&mut self, prompt: PromptId) {
        let stream = StreamId::from(self.fresh_id("s"));
        let agent = self.record.acting_agent();
        self.record.past.stream.begin(stream.clone(), agent);
        self.out.acts.push(Act::BeginStream { prompt, stream });
    }

    /// The same for a prompt that another stream began: what it spent counts on.
    pub fn continue_in_stream(&mut self, prompt: PromptId) {
        self.open_stream(prompt);
        let meta = Map::from_iter([(TRANSFER_META.to_owned(), true.into())]);
        self.emit_event_with(EventKind::AgentStart {}, meta);
    }

    pub fn start_effect(&mut self, effect: Effect) -> EffectId {
        self.serial.effects += 1;
        let id = EffectId(self.serial.effects);
        self.out.acts.push(Act::Do(id, effect));
        id
    }

    pub fn new_question_id(&mut self) -> QuestionId {
        self.serial.questions += 1;
        QuestionId(self.serial.questions)
    }

    /// A fresh id such as `m0123456789ab`.
    pub fn fresh_id(&mut self, prefix: &str) -> String {
        self.serial.dice += 1;
        self.now.id(prefix, self.serial.dice)
    }
}

fn notice(text: &str) -> EventKind {
    EventKind::Custom { kind: NOTICE.to_owned(), data: serde_json::json!({ "text": text }) }
}
