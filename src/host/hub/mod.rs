//! The hub of `castor serve`: one agent that many connections share. Messages come in, messages go out; it has no thread,
//! socket or clock.
//!
//! The agent knows one client, the hub. Requests get numbers of the hub's own on their way to it. What the agent says of a
//! session goes to all connections that are attached to it, and so do its questions: the first answer counts.

mod agent_side;
mod answers;
mod client_side;
mod delivery;
mod envelope;
mod sessions;
mod sleep;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use bytes::Bytes;
use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::{Value, value::RawValue};

use castor_wire::jsonrpc::{
    message::{RequestId, RpcError},
    open_requests::OutgoingRequests,
    write,
};
use sessions::SharedSession;

pub use client_side::method_names;
pub use delivery::{Delivery, DeliveryState, LostMessages};

/// What a hub grants its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HubLimits {
    /// Sessions that are open at once.
    pub sessions: usize,
    /// Requests of one connection without an answer.
    pub requests: usize,
    /// How long a session stays open that no connection is attached to and in which nothing happens.
    pub idle_ms: u64,
    /// Sessions in which nothing happens, and which the agent has in its memory all the same.
    pub awake: usize,
    /// How long it has one that is not used.
    pub sleep_ms: u64,
}

impl Default for HubLimits {
    fn default() -> Self {
        // A model's server has forgotten by then what it had kept of the conversation: it costs no more to begin anew.
        Self { sessions: 1000, requests: 64, idle_ms: 30 * 60 * 1000, awake: 64, sleep_ms: 15 * 60 * 1000 }
    }
}

pub enum HubInput<'a> {
    Connected(u64),
    /// The same for the host of another protocol, which bounds the requests of its own clients.
    HostConnected(u64),
    /// The connection ended for good.
    Disconnected(u64),
    /// One message of a connection.
    Message {
        from: u64,
        text: &'a [u8],
    },
    /// One line of the agent.
    Agent(&'a Bytes),
    /// The agent ended; what it was, in words.
    AgentEnded(&'a str),
    /// Time has passed.
    Tick,
}

#[derive(Debug, PartialEq, Eq)]
pub enum HubOutput {
    /// A line for the agent, which is started if it does not run.
    Agent(Vec<u8>),
    /// One message for a connection.
    Send { to: u64, message: Bytes },
}

/// One principal's agent and its connections.
pub struct Hub {
    principal: String,
    limits: HubLimits,
    agent: AgentState,
    connections: BTreeMap<u64, HubClient>,
    sessions: BTreeMap<String, SharedSession>,
    /// Requests of the hub to the agent.
    requests: OutgoingRequests<ForwardedRequest>,
    /// Questions of the agent.
    questions: BTreeMap<RequestId, SharedQuestion>,
    /// By session and id, the connection that subscribed.
    subscriptions: BTreeMap<(String, String), u64>,
    now_ms: u64,
    out: Vec<HubOutput>,
}

/// Whether the agent runs and was greeted.
enum AgentState {
    Absent,
    /// Connections that wait for what it says of itself.
    Starting(Vec<(u64, RequestId)>),
    Ready(Value),
}

/// One connection, as it introduced itself.
#[derive(Default)]
struct HubClient {
    /// `None` until initialize.
    name: Option<String>,
    /// It wants to know which stream a prompt begins.
    streams: bool,
    /// It is a host: the limit of requests is for its clients.
    is_host: bool,
    n_open: usize,
}

/// A request on its way to the agent.
struct ForwardedRequest {
    /// `None`: it is the hub's own, and nobody waits for the answer.
    from: Option<u64>,
    id: RequestId,
    errand: Errand,
}

/// What follows from the answer to a request.
enum Errand {
    Nothing,
    /// The hub's own initialize.
    Greet,
    /// A session begins, which the answer names; by what it is opened again.
    Open(Box<str>),
    /// A session is opened that was not.
    Load(String),
    /// The hub's own: a session may leave the agent's memory.
    Sleep(String),
    /// The hub's own: it is needed again.
    Wake(String),
    /// A connection joins a session that is open.
    Attach(String),
    /// The session is gone.
    End(String),
    Prompt(String),
    Subscribe(String),
    Unsubscribe(String, String),
}

/// One request of a connection.
struct HubCall<'a> {
    from: u64,
    id: RequestId,
    method: &'a str,
    params: Option<&'a RawValue>,
    session: String,
}

/// The agent's answer to a request.
type AgentAnswer = Result<Box<RawValue>, RpcError>;

/// A question of the agent that has no answer yet.
struct SharedQuestion {
    session: String,
    /// Connections that have it before their user.
    asked: Vec<u64>,
    message: Bytes,
    /// It is a call of a tool, which the host's client runs.
    is_call: bool,
}

impl SharedQuestion {
    /// Tells whether a connection that joins the session is asked, too.
    fn is_open_to(&self, session: &str, number: u64) -> bool {
        self.session == session && !self.is_call && !self.asked.contains(&number)
    }
}

impl Hub {
    pub fn new(principal: &str, limits: HubLimits) -> Self {
        Self {
            principal: principal.to_owned(),
            limits,
            agent: AgentState::Absent,
            connections: BTreeMap::new(),
            sessions: BTreeMap::new(),
            requests: OutgoingRequests::default(),
            questions: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            now_ms: 0,
            out: Vec::new(),
        }
    }

    /// Handles one input that happens at `now_ms`; returns what is to be sent, in order.
    pub fn handle(&mut self, input: HubInput<'_>, now_ms: u64) -> Vec<HubOutput> {
        self.now_ms = now_ms;
        match input {
            HubInput::Connected(number) => _ = self.connections.insert(number, HubClient::default()),
            HubInput::HostConnected(number) => {
                self.connections.insert(number, HubClient { is_host: true, ..HubClient::default() });
            }
            HubInput::Disconnected(number) => self.disconnect(number),
            HubInput::Message { from, text } => self.take_message(from, text),
            HubInput::Agent(line) => self.take_line(line),
            HubInput::AgentEnded(why) => self.end_agent(why),
            HubInput::Tick => {
                self.close_idle_sessions();
                self.put_to_sleep();
            }
        }
        std::mem::take(&mut self.out)
    }

    /// Tells whether its agent has nothing to do that anybody would miss.
    pub fn is_idle(&self) -> bool {
        self.connections.is_empty() && self.sessions.is_empty() && self.requests.is_empty()
    }

    fn send(&mut self, to: u64, message: Bytes) {
        if self.connections.contains_key(&to) {
            self.out.push(HubOutput::Send { to, message });
        }
    }

    fn send_with(&mut self, to: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let message = envelope::message(write);
        self.send(to, message);
    }

    fn refuse(&mut self, to: u64, id: &RequestId, error: &ErrorObjectOwned) {
        self.send_with(to, |out| write::error(out, id, error));
    }

    /// Passes an answer of the agent on under another id.
    fn answer(&mut self, to: u64, id: &RequestId, answer: &AgentAnswer) {
        self.send_with(to, |out| envelope::write_answer(out, id, answer));
    }

    /// Tells all that are attached to a session but one.
    fn tell_others(&mut self, session: &str, but: Option<u64>, method: &str, params: &impl Serialize) {
        let others = self.sessions.get(session).map(|it| it.attached.clone()).unwrap_or_default();
        let message = envelope::message(|out| _ = write::notification(out, method, params));
        others.into_iter().filter(|it| Some(*it) != but).for_each(|it| self.send(it, message.clone()));
    }

    /// Sends a request to the agent, which is greeted before its first one.
    fn ask_agent(&mut self, request: ForwardedRequest, method: &str, params: &impl Serialize) {
        if matches!(self.agent, AgentState::Absent) {
            self.greet_agent();
        }
        if let Some(client) = request.from.and_then(|it| self.connections.get_mut(&it)) {
            client.n_open += 1;
        }
        let number = self.requests.register(request);
        self.tell_agent(|out| _ = write::request(out, number, method, params));
    }

    fn tell_agent(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut line = Vec::new();
        write(&mut line);
        self.out.push(HubOutput::Agent(line));
    }
}
