//! All state of `castor acp`, owned by the loop.

use std::collections::BTreeMap;

use crate::{
    model::model_factory::ModelFactory,
    server::{
        outbox::Outbox,
        pending_requests::{ClientRequest, RequestOwner},
        tasks::Tasks,
        timers::Timers,
    },
    session::{
        host::SessionHost,
        live_session::LiveSession,
        terminals::{self, Terminals},
    },
    settings::options::Options,
};
use castor_base::{clock::Now, ids::SessionId};
use castor_hands::secrets::Env;
use castor_wire::{
    acp::initialize::Client,
    jsonrpc::{
        open_requests::{IncomingRequests, OutgoingRequests, Ticket},
        write,
    },
};

pub struct State {
    pub options: Options,
    pub env: Env,
    pub models: ModelFactory,
    /// `None` until initialize.
    pub client: Option<Client>,
    pub sessions: BTreeMap<SessionId, LiveSession>,
    /// Requests of the client without an answer.
    pub requests: IncomingRequests<RequestOwner>,
    /// Requests of castor's to the client.
    pub outgoing: OutgoingRequests<ClientRequest>,
    pub terminals: Terminals,
    pub timers: Timers,
    pub outbox: Outbox,
    pub tasks: Tasks,
    /// The instant of the event at hand; its seed changes with every use.
    pub now: Now,
}

impl State {
    /// `seed`: what is random begins with it.
    pub fn new(options: Options, env: Env, tasks: Tasks, seed: u64) -> Self {
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
            outbox: Outbox { has_lanes: tasks.store.is_shared(), ..Outbox::default() },
            tasks,
            now: Now { unix_ms: 0, seed },
        }
    }

    /// Now, with dice of its own.
    pub fn now(&mut self) -> Now {
        self.now = self.now.reseed();
        self.now
    }

    /// The parts that this session is built from, beside its place.
    pub fn host(&mut self, id: &SessionId) -> SessionHost<'_> {
        SessionHost {
            options: &self.options,
            env: &self.env,
            models: &mut self.models,
            client: self.client.clone().unwrap_or_default(),
            store: &self.tasks.store,
            groups: &self.tasks.groups,
            builtins: self.tasks.tools.iter().map(|(spec, _)| spec.clone()).collect(),
            live: self.sessions.get(id).map(|it| &*it.resources),
            now_ms: self.now.unix_ms,
        }
    }

    /// Requests to the client whose answers change nothing.
    pub fn queue_requests(&mut self, of: &SessionId, requests: Vec<terminals::Request>) {
        for (method, params) in requests {
            let id = self.outgoing.register(ClientRequest::IgnoredReply);
            self.outbox.queue_lines(Some(of), |lines| _ = write::request(lines, id, method, &params));
        }
    }

    pub fn prompts_of(&self, id: &SessionId) -> Vec<Ticket> {
        let is_its = |it: &RequestOwner| matches!(it, RequestOwner::Prompt(of) if of == id);
        self.requests.iter().filter(|(_, it)| is_its(it)).map(|(ticket, _)| ticket).collect()
    }
}
