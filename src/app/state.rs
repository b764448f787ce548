//! All state of `castor acp`, owned by the loop.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    app::{
        desk::Desk,
        event::EditorRequest,
        fault,
        models::Models,
        options::Options,
        terminals::{self, Terminals},
        trust::Pending,
        world::World,
    },
    base::{
        ids::{EffectId, QuestionId, SessionId},
        money::Money,
        now::Now,
        question::Form,
    },
    engine::{
        session::Session,
        step::{Act, Input, Out},
    },
    wire::{
        acp::{
            initialize::Client,
            options::Chosen,
            updates::{Manner, View},
        },
        jsonrpc::{
            error,
            message::{RequestId, RpcError},
            queue::{Incoming, Outgoing, Ticket},
            write,
        },
    },
    world::{secrets::Env, store::Log},
};

pub struct State {
    pub options: Options,
    pub env: Env,
    pub models: Models,
    /// `None` until initialize.
    pub client: Option<Client>,
    pub sessions: BTreeMap<SessionId, Live>,
    /// What the client asked and nobody answered yet.
    pub requests: Incoming<Asker>,
    /// What we asked the client.
    pub asked: Outgoing<Asked>,
    pub terminals: Terminals,
    pub timers: Timers,
    pub outbox: Outbox,
    pub world: World,
    /// The instant of the event at hand; its seed changes with every use.
    pub now: Now,
}

/// What is said at the end of the loop turn, in order.
#[derive(Default)]
pub struct Outbox {
    pub said: Vec<Said>,
    /// What follows the answer to the request at hand.
    pub afterwards: Vec<u8>,
}

/// A session in this process.
pub struct Live {
    pub session: Session,
    pub log: Log,
    pub view: View,
    pub manner: Manner,
    pub desk: Arc<Desk>,
    /// The commands that the client knows of; `None`: it does not know the session yet.
    pub commands: Option<Vec<&'static str>>,
    /// What the user is to decide about the session's folder, as it was when the session began.
    pub pending: Option<Box<Pending>>,
}

/// Whom an open request of the client is about.
pub enum Asker {
    /// The prompt with the ticket's number.
    Prompt(SessionId),
    /// Its answer says what the session's log must have first.
    Setter(SessionId),
    Other,
}

/// What an open request to the client is about.
pub enum Asked {
    Question {
        session: SessionId,
        question: QuestionId,
        shape: Shape,
    },
    /// A task waits, until its effect is over.
    Hand {
        session: SessionId,
        effect: EffectId,
        reply: oneshot::Sender<Result<Value, RpcError>>,
    },
    /// terminal/create: also when nobody waits any more, the terminal has to be given back.
    Terminal {
        session: SessionId,
        effect: EffectId,
        reply: oneshot::Sender<Result<Value, RpcError>>,
    },
    /// Whatever the answer says.
    Nothing,
}

/// How a question was put: its answer is read the same way.
#[derive(Clone, Debug)]
pub enum Shape {
    Confirmation,
    Form(Arc<Form>),
    /// A form, shown as options.
    Options(Arc<Form>),
    /// One choice of castor's own question, shown as options.
    Choice(Arc<Form>),
    Link,
}

impl Asked {
    /// Whether the task of this effect waits for the answer.
    pub fn is_hand_of(&self, id: &SessionId, of: EffectId) -> bool {
        matches!(self, Self::Hand { session, effect, .. } if session == id && *effect == of)
    }

    /// Whether somebody in that session waits for the answer.
    pub fn is_of(&self, id: &SessionId) -> bool {
        match self {
            Self::Question { session, .. } | Self::Hand { session, .. } => session == id,
            Self::Terminal { .. } | Self::Nothing => false,
        }
    }
}

/// Something to say: ready lines, acts of a session that are logged first, or a request.
pub enum Said {
    Lines(Vec<u8>),
    Acts(SessionId, Vec<Act>),
    /// The answer to a setter, in ready lines; an error, if the log did not take what was set.
    Answer {
        session: SessionId,
        request: RequestId,
        lines: Vec<u8>,
    },
    /// A task's request to the editor, if the task is still wanted by then.
    Editor(EditorRequest),
}

impl State {
    /// `seed`: what is random begins with it.
    pub fn new(options: Options, env: Env, world: World, seed: u64) -> Self {
        Self {
            options,
            models: Models::new(&env),
            env,
            client: None,
            sessions: BTreeMap::new(),
            requests: Incoming::default(),
            asked: Outgoing::default(),
            terminals: Terminals::default(),
            timers: Timers::default(),
            outbox: Outbox::default(),
            world,
            now: Now { unix_ms: 0, seed },
        }
    }

    /// Now, with dice of its own.
    pub fn now(&mut self) -> Now {
        self.now = self.now.reseeded();
        self.now
    }

    /// One step of one session. A panic costs that session what was under way, and nobody else anything.
    pub fn step(&mut self, id: &SessionId, input: Input) {
        let now = self.now();
        let Some(live) = self.sessions.get_mut(id) else { return };
        let mut out = Out::default();
        let (session, breaks) = (&mut live.session, live.desk.fault.is_in_input(&input));
        let step = || {
            session.step(input, now, &mut out);
            fault::trip(breaks);
        };
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(()) => self.say(id, out),
            Err(panic) => {
                let panic = fault::in_words(&*panic);
                let error = error::bug(&format!("an internal error ended this turn ({panic}); the session goes on"));
                self.refold(id, &error);
            }
        }
    }

    pub fn say(&mut self, id: &SessionId, out: Out) {
        match self.outbox.said.last_mut() {
            Some(Said::Acts(last, acts)) if last == id => acts.extend(out.acts),
            _ if out.acts.is_empty() => (),
            _ => self.outbox.said.push(Said::Acts(id.clone(), out.acts)),
        }
    }

    pub fn say_lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.outbox.said.last_mut() {
            Some(Said::Lines(lines)) => write(lines),
            _ => {
                let mut lines = Vec::new();
                write(&mut lines);
                self.outbox.said.push(Said::Lines(lines));
            }
        }
    }

    /// Requests to the client whose answers change nothing.
    pub fn tell(&mut self, requests: Vec<terminals::Request>) {
        for (method, params) in requests {
            let id = self.asked.open(Asked::Nothing);
            self.say_lines(|lines| _ = write::request(lines, id, method, &params));
        }
    }

    pub fn prompts_of(&self, id: &SessionId) -> Vec<Ticket> {
        let is_its = |it: &Asker| matches!(it, Asker::Prompt(of) if of == id);
        self.requests.iter().filter(|(_, it)| is_its(it)).map(|(ticket, _)| ticket).collect()
    }
}

impl Live {
    /// What is chosen now, for the client.
    pub fn chosen(&self) -> Chosen {
        let record = self.session.record();
        Chosen { mode: record.mode, model: record.model.clone(), tuning: record.tuning, limits: record.limits() }
    }

    /// How full the context is, in tokens, of how many; and what all calls cost.
    pub fn filled(&self) -> (Option<(u64, u64)>, Option<Money>) {
        let spent = &self.session.record().spent;
        (spent.last.map(|(usage, size)| (usage.total, size)), spent.cost_with(None))
    }
}

/// What is due when. Stale timers are ignored by whom they wake.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(u64, SessionId, EffectId)>>,
}

impl Timers {
    pub fn add(&mut self, at_ms: u64, session: SessionId, effect: EffectId) {
        self.heap.push(Reverse((at_ms, session, effect)));
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the next one is due, in Unix milliseconds.
    pub fn next_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub fn pop_due(&mut self, now_ms: u64) -> Option<(SessionId, EffectId)> {
        self.next_ms().filter(|at| *at <= now_ms)?;
        self.heap.pop().map(|Reverse((_, session, effect))| (session, effect))
    }
}
