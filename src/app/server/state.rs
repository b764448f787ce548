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
        model::model_factory::ModelFactory,
        panics,
        server::{event::EditorRequest, tasks::Tasks},
        session::{
            session_resources::SessionResources,
            terminals::{self, Terminals},
            trust::PendingTrust,
        },
        settings::options::Options,
    },
    base::{
        clock::Now,
        ids::{EffectId, QuestionId, SessionId},
        money::Money,
        question::Form,
    },
    engine::{
        session::Session,
        step::{Act, Input, StepOutput},
    },
    wire::{
        acp::{
            initialize::Client,
            options::ChosenOptions,
            updates::{ClientProfile, SessionView},
        },
        jsonrpc::{
            error,
            message::{RequestId, RpcError},
            open_requests::{IncomingRequests, OutgoingRequests, Ticket},
            write,
        },
    },
    world::{secrets::Env, store::SessionLog},
};

pub struct State {
    pub options: Options,
    pub env: Env,
    pub models: ModelFactory,
    /// `None` until initialize.
    pub client: Option<Client>,
    pub sessions: BTreeMap<SessionId, LiveSession>,
    /// What the client asked and nobody answered yet.
    pub requests: IncomingRequests<RequestOwner>,
    /// What we asked the client.
    pub outgoing: OutgoingRequests<ClientRequest>,
    pub terminals: Terminals,
    pub timers: Timers,
    pub outbox: Outbox,
    pub tasks: Tasks,
    /// The instant of the event at hand; its seed changes with every use.
    pub now: Now,
}

/// What is said at the end of the loop turn, in order.
#[derive(Default)]
pub struct Outbox {
    pub items: Vec<OutboxItem>,
    /// What follows the answer to the request at hand.
    pub after_answer: Vec<u8>,
}

/// A session in this process.
pub struct LiveSession {
    pub session: Session,
    pub log: SessionLog,
    pub view: SessionView,
    pub profile: ClientProfile,
    pub resources: Arc<SessionResources>,
    /// The commands that the client knows of; `None`: it does not know the session yet.
    pub commands: Option<Vec<&'static str>>,
    /// What the user is to decide about the session's folder, as it was when the session began.
    pub pending_trust: Option<Box<PendingTrust>>,
}

/// Whom an open request of the client is about.
pub enum RequestOwner {
    /// The prompt with the ticket's number.
    Prompt(SessionId),
    /// Its answer says what the session's log must have first.
    Setter(SessionId),
    Other,
}

/// What an open request to the client is about.
pub enum ClientRequest {
    Question {
        session: SessionId,
        question: QuestionId,
        shape: QuestionForm,
    },
    /// A task waits, until its effect is over.
    EditorCall {
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
    IgnoredReply,
}

/// How a question was put: its answer is read the same way.
#[derive(Clone, Debug)]
pub enum QuestionForm {
    Confirmation,
    Form(Arc<Form>),
    /// A form, shown as options.
    Options(Arc<Form>),
    /// One choice of castor's own question, shown as options.
    Choice(Arc<Form>),
    Link,
}

impl ClientRequest {
    /// Whether the task of this effect waits for the answer.
    pub fn is_call_of(&self, id: &SessionId, of: EffectId) -> bool {
        matches!(self, Self::EditorCall { session, effect, .. } if session == id && *effect == of)
    }

    /// Whether somebody in that session waits for the answer.
    pub fn is_of_session(&self, id: &SessionId) -> bool {
        match self {
            Self::Question { session, .. } | Self::EditorCall { session, .. } => session == id,
            Self::Terminal { .. } | Self::IgnoredReply => false,
        }
    }
}

/// Something to say: ready lines, acts of a session that are logged first, or a request.
pub enum OutboxItem {
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
    pub fn new(options: Options, env: Env, world: Tasks, seed: u64) -> Self {
        Self {
            options,
            models: ModelFactory::new(&env),
            env,
            client: None,
            sessions: BTreeMap::new(),
            requests: IncomingRequests::default(),
            outgoing: OutgoingRequests::default(),
            terminals: Terminals::default(),
            timers: Timers::default(),
            outbox: Outbox::default(),
            tasks: world,
            now: Now { unix_ms: 0, seed },
        }
    }

    /// Now, with dice of its own.
    pub fn now(&mut self) -> Now {
        self.now = self.now.reseed();
        self.now
    }

    /// One step of one session. A panic costs that session what was under way, and nobody else anything.
    pub fn step(&mut self, id: &SessionId, input: Input) {
        let now = self.now();
        let Some(live) = self.sessions.get_mut(id) else { return };
        let mut out = StepOutput::default();
        let (session, breaks) = (&mut live.session, live.resources.fault.is_in_input(&input));
        let step = || {
            session.step(input, now, &mut out);
            panics::panic_if(breaks);
        };
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(()) => self.queue_acts(id, out),
            Err(panic) => {
                let panic = panics::panic_message(&*panic);
                let error = error::bug(&format!("an internal error ended this turn ({panic}); the session goes on"));
                self.refold(id, &error);
            }
        }
    }

    pub fn queue_acts(&mut self, id: &SessionId, out: StepOutput) {
        match self.outbox.items.last_mut() {
            Some(OutboxItem::Acts(last, acts)) if last == id => acts.extend(out.acts),
            _ if out.acts.is_empty() => (),
            _ => self.outbox.items.push(OutboxItem::Acts(id.clone(), out.acts)),
        }
    }

    pub fn queue_lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.outbox.items.last_mut() {
            Some(OutboxItem::Lines(lines)) => write(lines),
            _ => {
                let mut lines = Vec::new();
                write(&mut lines);
                self.outbox.items.push(OutboxItem::Lines(lines));
            }
        }
    }

    /// Requests to the client whose answers change nothing.
    pub fn queue_requests(&mut self, requests: Vec<terminals::Request>) {
        for (method, params) in requests {
            let id = self.outgoing.register(ClientRequest::IgnoredReply);
            self.queue_lines(|lines| _ = write::request(lines, id, method, &params));
        }
    }

    pub fn prompts_of(&self, id: &SessionId) -> Vec<Ticket> {
        let is_its = |it: &RequestOwner| matches!(it, RequestOwner::Prompt(of) if of == id);
        self.requests.iter().filter(|(_, it)| is_its(it)).map(|(ticket, _)| ticket).collect()
    }
}

impl LiveSession {
    /// What is chosen now, for the client.
    pub fn chosen_options(&self) -> ChosenOptions {
        let record = self.session.record();
        ChosenOptions { mode: record.mode, model: record.model.clone(), tuning: record.tuning, limits: record.limits() }
    }

    /// How full the context is, in tokens, of how many; and what all calls cost.
    pub fn context_usage(&self) -> (Option<(u64, u64)>, Option<Money>) {
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
