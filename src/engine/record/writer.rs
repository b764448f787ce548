//! The pen of a step: every fact that it writes is in the record before the next line runs.

use crate::{
    base::{
        event::{AgentEvent, EventKind, NOTICE},
        hook::{HookEvent, HookRun, HookSwitch},
        ids::{EffectId, QuestionId, StreamId},
        log::{Entry, Fact},
        now::Now,
    },
    engine::{
        hooks::{
            Outcome,
            plugins::{Moment, Plugins, Point, Reply},
        },
        record::{Before, Record, Stream},
        step::{Act, Effect, Out},
    },
};

/// Counters that never go back while the session is in this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Serial {
    effects: u64,
    questions: u64,
    dice: u64,
}

/// One step under way.
pub struct Step<'a> {
    pub record: &'a mut Record,
    pub now: Now,
    plugins: Plugins,
    serial: &'a mut Serial,
    out: &'a mut Out,
}

impl<'a> Step<'a> {
    pub fn new(record: &'a mut Record, serial: &'a mut Serial, now: Now, out: &'a mut Out) -> Self {
        Self { record, now, plugins: Plugins::default(), serial, out }
    }

    /// The same under the eyes of plugins.
    pub fn watched(self, plugins: &Plugins) -> Self {
        Self { plugins: plugins.clone(), ..self }
    }

    pub fn log(&mut self, fact: Fact) {
        let entry = Entry { at: self.now.unix_ms, fact };
        self.record.apply(&entry);
        self.out.acts.push(Act::Log(entry));
    }

    /// Takes away a message of the user and all after it.
    pub fn rewind(&mut self, before: Before) {
        self.log(Fact::Rewound { to: before.to().clone() });
        self.record.take_back(before);
    }

    /// Tells something in the current stream.
    pub fn event(&mut self, kind: EventKind) {
        self.event_with(kind, serde_json::Map::new());
    }

    pub fn event_with(&mut self, kind: EventKind, meta: serde_json::Map<String, serde_json::Value>) {
        let kind = match self.plugins.ask(Point::OnEvent, Moment::Event(&kind)) {
            Some(Reply::Event(it)) => it,
            _ => kind,
        };
        let stream_id = self.record.past.stream.id.clone();
        let id = format!("{stream_id}-{}", self.record.past.stream.n_events);
        let event = AgentEvent { id, stream_id, timestamp: self.now.unix_ms, kind, meta };
        self.log(Fact::Event { event });
    }

    /// What is said beside the conversation.
    pub fn notice(&mut self, text: &str) {
        self.event(EventKind::Custom { kind: NOTICE.to_owned(), data: serde_json::json!({ "text": text }) });
    }

    /// What hooks came to: logged, and told as far as it is for the user. `context`: what of it the model sees beside
    /// the prompt; `retracts`: it does not see the prompt.
    pub fn hooked(&mut self, event: HookEvent, outcome: &Outcome, context: Option<String>, retracts: bool) {
        if outcome.says_something() {
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
        for hook in &outcome.hung {
            self.log(Fact::HookSwitched { hook: hook.clone(), to: HookSwitch::Hung });
        }
        for it in outcome.notices.iter().chain(&outcome.failed) {
            self.notice(it);
        }
    }

    /// Has a hook run.
    pub fn hook(&mut self, run: HookRun) -> EffectId {
        self.effect(Effect::Hook(Box::new(run)))
    }

    /// Begins a stream: later events belong to it.
    pub fn begin_stream(&mut self, stream: StreamId) {
        self.record.past.stream = Stream { id: stream, n_events: 0 };
        self.event(EventKind::AgentStart {});
    }

    pub fn effect(&mut self, effect: Effect) -> EffectId {
        self.serial.effects += 1;
        let id = EffectId(self.serial.effects);
        self.out.acts.push(Act::Do(id, effect));
        id
    }

    pub fn question(&mut self) -> QuestionId {
        self.serial.questions += 1;
        QuestionId(self.serial.questions)
    }

    /// A fresh id such as `m0123456789ab`.
    pub fn fresh(&mut self, prefix: &str) -> String {
        self.serial.dice += 1;
        self.now.id(prefix, self.serial.dice)
    }
}
