//! The client of an agent without its waiting: messages, answers, the user's orders and time in; requests, answers and news
//! for a face out. It has no process, terminal or clock.
//!
//! A face (`castor run`, `castor chat`) gives orders, takes [`ClientNews`] in their order, and shows them. A link carries
//! [`ClientOrder`]s to the agent. These rules hold for all faces:
//!
//! - Whatever the agent wrote before an answer comes before that answer. The link sees to it.
//! - A question that comes while a turn is being cancelled is answered at once: cancelled.
//! - Whatever an agent tells of a session that goes on, before that session is open, is replay.
//! - While [`MAX_OPEN`] requests of the agent wait for their answers, nothing more is read from it.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, VecDeque},
    mem,
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    failure::{Failure, RequestFailure},
    incoming::Incoming,
    listing::SessionListing,
    opening::{OpenedSession, OpeningStep, SessionOpening, SessionRequest},
    peer::Refusal,
    questions::{Answer, Question, QuestionKind},
    steering::{self, SteeringOutcome},
};
use castor_wire::{
    acp::client::{AgentSession, OpenedAnswer, PromptAnswer, SessionEvent, read_text, read_value},
    jsonrpc::{message::RequestId, open_requests::OutgoingRequests},
};

/// Requests of the agent that may be open at once.
pub const MAX_OPEN: usize = 64;
/// Pages of the list of sessions: as far as anybody would scroll.
const MAX_PAGES: usize = 5;
/// The user's messages that a rewind offers.
const MAX_MESSAGES: usize = 500;

/// A line for the agent.
#[derive(Debug)]
pub enum ClientOrder {
    /// The answer comes back under this number.
    Request {
        number: i64,
        method: &'static str,
        params: Value,
    },
    Notify {
        method: &'static str,
        params: Value,
    },
    Answer {
        id: Box<RawValue>,
        answer: Result<Value, Refusal>,
    },
}

/// What a face is told, in order.
#[derive(Debug)]
pub enum ClientNews {
    Opened(Box<OpenedSession>),
    /// There is no session.
    Failed(Failure),
    Event(Box<SessionEvent>),
    /// Params of an update that tells what was said before.
    Replayed(Box<RawValue>),
    /// Params of a notification with an event of castor's own stream.
    StreamEvent(Box<RawValue>),
    Asked(Box<Question>),
    /// The agent takes this question back: the face answers it as withdrawn.
    Withdrawn(u64),
    Prompted(Result<Box<PromptAnswer>, RequestFailure>),
    Steered(SteeringOutcome),
    /// The answer to a request of the face's own.
    Answered(ClientRequest, Result<Value, RequestFailure>),
    Sessions(Result<Vec<AgentSession>, RequestFailure>),
    /// A line of the agent that is no message.
    Noise(String),
    /// Another session is open, or the old one stays.
    Loaded(Result<Box<OpenedAnswer>, RequestFailure>),
}

/// Requests whose answers a face reads by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientRequest {
    SetMode(String),
    SetOption {
        id: String,
        value: String,
    },
    /// Goes back to before a message.
    Rewind {
        prompt: String,
        what: RewindWhat,
    },
    /// Takes the last rewind back.
    Redo,
    /// Checkpoints that the session had before this client.
    EarlierChanges,
    /// All checkpoints of the session.
    Changes,
    /// States of MCP servers.
    Servers,
    /// The user's messages, as events.
    Messages,
    /// Checkpoints beside messages that are there.
    MessageChanges,
}

/// The parts of a session that a rewind takes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RewindWhat {
    Both,
    Files,
    Conversation,
}

impl ClientRequest {
    /// Method and params, but for the session.
    fn to_wire(&self) -> (&'static str, Value) {
        match self {
            Self::SetMode(mode) => ("session/set_mode", json!({"modeId": mode})),
            Self::SetOption { id, value } => ("session/set_config_option", json!({"configId": id, "value": value})),
            Self::Rewind { prompt, what } => {
                let what = match what {
                    RewindWhat::Both => "both",
                    RewindWhat::Files => "files",
                    RewindWhat::Conversation => "conversation",
                };
                ("_castor/session/rewind", json!({"messageId": prompt, "what": what}))
            }
            Self::Redo => ("_castor/session/rewind", json!({"redo": true})),
            Self::EarlierChanges | Self::Changes | Self::MessageChanges => ("_castor/session/checkpoints", json!({})),
            Self::Servers => ("_castor/mcp/servers", json!({})),
            Self::Messages => {
                let wanted = json!({"threadId": "", "types": ["message"], "numRecentEvents": MAX_MESSAGES});
                ("_castor/session/events", wanted)
            }
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientPhase {
    /// No session is open yet.
    #[default]
    Opening,
    Idle,
    Prompting,
    /// The turn was cancelled; its end is awaited.
    Cancelling,
}

/// What follows from the answer to a request.
#[derive(Debug)]
enum Pending {
    Nothing,
    Opening,
    Prompt,
    Steering(String),
    Ask(ClientRequest),
    Sessions(SessionListing),
    Load(String),
}

/// A request of the agent that waits for its answer.
#[derive(Debug)]
struct OpenQuestion {
    id: Box<RawValue>,
    kind: QuestionKind,
}

#[derive(Debug, Default)]
pub struct ClientMachine {
    phase: ClientPhase,
    opening: Option<SessionOpening>,
    /// The session that is open, or about to be.
    session: Option<String>,
    lists_changes: bool,
    requests: OutgoingRequests<Pending>,
    questions: BTreeMap<u64, OpenQuestion>,
    n_questions: u64,
    /// The time at which MCP servers are asked about.
    servers_at: Option<Duration>,
    orders: Vec<ClientOrder>,
    news: VecDeque<ClientNews>,
}

impl ClientMachine {
    pub fn take_orders(&mut self) -> Vec<ClientOrder> {
        mem::take(&mut self.orders)
    }

    pub fn take_news(&mut self) -> Option<ClientNews> {
        self.news.pop_front()
    }

    pub fn phase(&self) -> ClientPhase {
        self.phase
    }

    /// The session's id. It may be known before the session is open.
    pub fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The id of the session that is open.
    pub fn open_session(&self) -> Option<&str> {
        self.session().filter(|_| self.opening.is_none())
    }

    /// Requests of the agent without an answer.
    pub fn n_questions(&self) -> usize {
        self.questions.len()
    }

    /// Whether words of the user's still wait for their outcome.
    pub fn is_steering(&self) -> bool {
        self.requests.iter().any(|(_, pending)| matches!(pending, Pending::Steering(_)))
    }

    /// The time at which [`Self::tick`] is due.
    pub fn wake_at(&self) -> Option<Duration> {
        self.servers_at
    }

    pub fn tick(&mut self, now: Duration) {
        if self.servers_at.is_some_and(|at| at <= now) {
            self.servers_at = None;
            self.ask(ClientRequest::Servers);
        }
    }

    fn request(&mut self, method: &'static str, params: Value, pending: Pending) {
        let number = self.requests.register(pending);
        self.orders.push(ClientOrder::Request { number, method, params });
    }

    /// Params with the session beside `more`.
    fn params(&self, mut more: Value) -> Value {
        if let Some(members) = more.as_object_mut() {
            members.insert("sessionId".to_owned(), json!(self.session));
        }
        more
    }
}

/// Orders of the user's.
impl ClientMachine {
    pub fn open(&mut self, request: SessionRequest) {
        self.lists_changes = !request.events;
        let opening = SessionOpening::new(request);
        let step = opening.begin();
        self.opening = Some(opening);
        self.take_step(Ok(step));
    }

    /// Sends a prompt: content blocks, and what stands beside them in `_meta`.
    pub fn prompt(&mut self, blocks: Vec<Value>, meta: Option<Value>) {
        self.phase = ClientPhase::Prompting;
        let params = self.params(match meta {
            Some(meta) => json!({"prompt": blocks, "_meta": meta}),
            None => json!({"prompt": blocks}),
        });
        self.request("session/prompt", params, Pending::Prompt);
    }

    /// Cancels the turn. Its questions are the face's to answer.
    pub fn cancel(&mut self) {
        if self.phase == ClientPhase::Prompting {
            self.phase = ClientPhase::Cancelling;
            let params = self.params(json!({}));
            self.orders.push(ClientOrder::Notify { method: "session/cancel", params });
        }
    }

    pub fn answer(&mut self, number: u64, answer: Answer) {
        if let Some(OpenQuestion { id, kind }) = self.questions.remove(&number) {
            self.orders.push(ClientOrder::Answer { id, answer: kind.result(answer) });
        }
    }

    /// Sends words to the turn that is under way.
    pub fn steer(&mut self, text: String) {
        let params = steering::params(self.session(), &text);
        self.request("_session/steering", params, Pending::Steering(text));
    }

    /// False: the agent lists no checkpoints.
    pub fn ask(&mut self, request: ClientRequest) -> bool {
        let is_change = matches!(request, ClientRequest::EarlierChanges | ClientRequest::Changes);
        let is_possible = self.lists_changes || !is_change;
        if is_possible {
            let (method, params) = request.to_wire();
            let params = self.params(params);
            self.request(method, params, Pending::Ask(request));
        }
        is_possible
    }

    /// Asks for the states of MCP servers at that time.
    pub fn list_servers(&mut self, at: Duration) {
        self.servers_at = Some(self.servers_at.map_or(at, |other| other.min(at)));
    }

    pub fn list_sessions(&mut self) {
        self.ask_page(SessionListing::new(None, MAX_PAGES));
    }

    fn ask_page(&mut self, listing: SessionListing) {
        let params = listing.params();
        self.request("session/list", params, Pending::Sessions(listing));
    }

    /// Goes to another session of the same agent, between two turns.
    pub fn load(&mut self, id: String, cwd: &str) {
        self.phase = ClientPhase::Opening;
        let params = json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
        self.request("session/load", params, Pending::Load(id));
    }
}

/// Messages of the agent.
impl ClientMachine {
    pub fn take_message(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => self.take_request(id, &method, &params),
            Incoming::Notification { method, params } => match method.as_str() {
                "session/update" if self.is_replayed() => self.news.push_back(ClientNews::Replayed(params)),
                "session/update" => {
                    self.news.push_back(ClientNews::Event(Box::new(SessionEvent::read(&params))));
                }
                "_castor/session/event" => self.news.push_back(ClientNews::StreamEvent(params)),
                "$/cancel_request" => self.withdraw(&params),
                _ => (),
            },
            Incoming::Noise(line) => self.news.push_back(ClientNews::Noise(line)),
        }
    }

    fn is_replayed(&self) -> bool {
        let is_resumed = self.opening.as_ref().is_none_or(SessionOpening::replays);
        self.phase == ClientPhase::Opening && is_resumed
    }

    fn take_request(&mut self, id: Box<RawValue>, method: &str, params: &RawValue) {
        self.n_questions += 1;
        let question = match Question::read(self.n_questions, method, params) {
            Ok(question) => question,
            Err(refusal) => return self.orders.push(ClientOrder::Answer { id, answer: Err(refusal) }),
        };
        let kind = QuestionKind::of(&question.about);
        if self.phase == ClientPhase::Cancelling {
            return self.orders.push(ClientOrder::Answer { id, answer: kind.result(Answer::Cancelled) });
        }
        self.questions.insert(question.number, OpenQuestion { id, kind });
        self.news.push_back(ClientNews::Asked(Box::new(question)));
    }

    fn withdraw(&mut self, params: &RawValue) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Withdrawn {
            request_id: Box<RawValue>,
        }
        let Some(Withdrawn { request_id }) = read_text(params.get()) else { return };
        let named = self.questions.iter().filter(|(_, open)| open.id.get() == request_id.get());
        self.news.extend(named.map(|(number, _)| ClientNews::Withdrawn(*number)));
    }

    /// Takes the answer to a request. That the agent is gone is told by the end of its output.
    pub fn take_answer(&mut self, number: i64, answer: Result<Value, RequestFailure>) {
        let Some(pending) = self.requests.settle(&RequestId::Number(number)) else { return };
        if matches!(answer, Err(RequestFailure::Gone)) {
            return;
        }
        let news = match pending {
            Pending::Nothing => return,
            Pending::Opening => return self.take_opening(answer),
            Pending::Prompt => {
                self.phase = ClientPhase::Idle;
                ClientNews::Prompted(answer.map(|answer| Box::new(read_value(answer).unwrap_or_default())))
            }
            Pending::Steering(text) => ClientNews::Steered(SteeringOutcome::of(answer, text)),
            Pending::Ask(request) => ClientNews::Answered(request, answer),
            Pending::Sessions(listing) => return self.take_page(listing, answer),
            Pending::Load(id) => return self.take_loaded(id, answer),
        };
        self.news.push_back(news);
    }

    fn take_opening(&mut self, answer: Result<Value, RequestFailure>) {
        let Some(opening) = &mut self.opening else { return };
        let answer = answer.map_err(|failure| failure.into_failure());
        let step = opening.take(answer);
        if !opening.id.is_empty() {
            self.session = Some(opening.id.clone());
        }
        self.take_step(step);
    }

    fn take_step(&mut self, step: Result<OpeningStep, Failure>) {
        match step {
            Ok(OpeningStep::Ask(method, params)) => self.request(method, params, Pending::Opening),
            Ok(OpeningStep::Opened(opened)) => {
                self.phase = ClientPhase::Idle;
                self.opening = None;
                self.lists_changes &= opened.lists_checkpoints();
                self.news.push_back(ClientNews::Opened(opened));
            }
            Err(failure) => self.news.push_back(ClientNews::Failed(failure)),
        }
    }

    fn take_page(&mut self, mut listing: SessionListing, answer: Result<Value, RequestFailure>) {
        let has_more = match answer {
            Ok(page) => listing.take(read_value(page).unwrap_or_default()),
            Err(failure) if listing.found.is_empty() => {
                return self.news.push_back(ClientNews::Sessions(Err(failure)));
            }
            Err(_) => false,
        };
        match has_more {
            true => self.ask_page(listing),
            false => self.news.push_back(ClientNews::Sessions(Ok(listing.found))),
        }
    }

    fn take_loaded(&mut self, id: String, answer: Result<Value, RequestFailure>) {
        self.phase = ClientPhase::Idle;
        if answer.is_ok() {
            // Else this process would keep its log locked.
            let old = json!({"sessionId": self.session.replace(id)});
            self.request("session/close", old, Pending::Nothing);
        }
        let loaded = answer.map(|answer| Box::new(read_value(answer).unwrap_or_default()));
        self.news.push_back(ClientNews::Loaded(loaded));
    }
}
