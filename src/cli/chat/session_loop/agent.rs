//! The agent's side of the loop: the session that opens, messages, answers.

use std::time::Duration;

use jsonrpsee::core::client::Error;
use serde_json::{Value, json, value::RawValue};

use super::{Reply, SessionLoop};
use crate::cli::{
    chat::{lower::News, replay::Replay, state::ChatPhase, status::ServerHealth},
    client::{
        failure::{self, Exit, Failure},
        session_start::{self, AskAgent, OpenedSession, SessionRequest},
        start::demo_notes,
    },
};
use castor_models::acp_agent::connection::{Incoming, Requester};
use castor_wire::acp::client::{OpenedAnswer, PromptAnswer, SessionEvent, read_value};

/// Servers that are about to start are asked about again after this.
const SERVER_PAUSE: Duration = Duration::from_secs(2);

/// Opens a session while the loop goes on.
struct Opener {
    requests: Requester,
}

impl AskAgent for Opener {
    async fn ask(&mut self, method: &'static str, params: Value) -> Result<Option<Value>, Failure> {
        match self.requests.request(method, params).await {
            Ok(it) => Ok(Some(it)),
            Err(error) => failure::from_answer(&error).map_or(Ok(None), Err),
        }
    }

    fn set_session(&mut self, _id: &str) {}
}

impl SessionLoop {
    /// Why the demo answers, and what would be better.
    pub fn tell_demo(&mut self, keys: Option<&[(String, String)]>) {
        let Some(keys) = keys.map(<[_]>::to_vec) else { return };
        self.link.replies.push(Box::pin(async move { Reply::Notes(demo_notes(&keys, true).await) }));
    }

    /// Whether the picker of sessions comes up as soon as there is an agent to ask.
    pub fn set_picks_session(&mut self, picks: bool) {
        self.link.picks_session = picks;
    }

    /// Begins to open the session.
    pub fn open(&mut self, request: SessionRequest) {
        self.replay = request.resume.is_some().then(Replay::default);
        let mut opener = Opener { requests: self.link.peer.requester() };
        self.link.replies.push(Box::pin(async move {
            Reply::Opened(Box::new(session_start::open_session(&mut opener, &request).await))
        }));
    }

    pub fn incoming(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => {
                let (answer, outbox) = (self.link.handlers.call(&id, &method, &params), self.link.peer.outbox());
                // A task of its own: an agent that does not read while it writes must not stop us from reading.
                self.link.answering.spawn(async move { _ = outbox.send(answer.await).await });
            }
            Incoming::Notification { method, params } => match method.as_str() {
                "session/update" => self.update(params),
                "$/cancel_request" => {
                    let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                    let now = self.now();
                    self.chat.withdraw(&params.get("requestId").unwrap_or(&Value::Null).to_string(), now);
                }
                _ => (),
            },
            Incoming::Noise(line) => self.tail.push(&line),
        }
    }

    fn update(&mut self, params: Box<RawValue>) {
        if let Some(replay) = &mut self.replay {
            return replay.push(params);
        }
        let SessionEvent { session, event, .. } = SessionEvent::read(&params);
        let now = self.now();
        self.chat.update(&session, &event, now);
    }

    pub(super) fn reply(&mut self, reply: Reply) {
        let now = self.now();
        match reply {
            Reply::Opened(it) => match *it {
                Ok(Some(it)) => self.opened(it),
                Ok(None) => self.end = Some(Exit::Failed),
                Err(failure) => {
                    self.chat.end(&failure.message, now);
                    self.end = Some(failure.exit);
                }
            },
            Reply::Prompted(answer) => match answer {
                Ok(answer) => self.prompted(answer),
                // That the agent is gone is told by the end of its output.
                Err(error) => {
                    if let Some(it) = failure::from_answer(&error) {
                        self.chat.prompted(Err(it), now);
                    }
                }
            },
            Reply::Nothing => (),
            Reply::Loaded(id, answer) => self.loaded(id, answer),
            Reply::Notes(notes) => notes.iter().for_each(|it| self.chat.note(it)),
            Reply::Set(answer) => match answer {
                Ok(answer) => {
                    let answer: OpenedAnswer = read_value(answer).unwrap_or_default();
                    answer.config_options.iter().for_each(|it| self.chat.status.facts.take_options(it));
                }
                Err(error) => self.chat.note(&words(&error)),
            },
            Reply::Checkpoints(listing) => self.chat.take_changes(&listing),
            Reply::Known(listing) => self.chat.changes.note_known(&listing),
            Reply::Servers(answer) => {
                self.chat.status.servers = ServerHealth::read(&answer);
                if self.chat.status.servers.is_starting() {
                    self.ask_servers(SERVER_PAUSE);
                }
            }
            Reply::Rewound(answer) => self.rewound(answer),
            Reply::Sessions(answer) => self.show_sessions(answer),
            Reply::Messages(answer) => self.show_messages(answer),
            Reply::Found { query, lines } => self.chat.tell(&News::Found { query, lines }, now),
            Reply::Clipboard(image) => self.take_image(image),
            Reply::Files(paths) => self.chat.tell(&News::Files { query: String::new(), paths }, now),
        }
        self.chat.set_stale();
    }

    fn opened(&mut self, opened: OpenedSession) {
        let now = self.now();
        self.link.session = Some(opened.id.clone());
        self.link.capabilities = opened.capabilities;
        self.link.steering.is_possible = opened.takes_steering();
        if let Some(replay) = self.replay.take() {
            replay.show(&mut self.chat, now, self.screen.size);
            if opened.lists_checkpoints() {
                let params = json!({"sessionId": opened.id});
                self.link.request("_castor/session/checkpoints", params, |it| it.map_or(Reply::Nothing, Reply::Known));
            }
        }
        self.chat.opened(&opened, now);
        if opened.is_castor() {
            self.ask_servers(Duration::ZERO);
        }
        if self.link.picks_session {
            self.list_sessions();
        }
    }

    /// The agent ends the turn with an answer.
    fn prompted(&mut self, answer: Value) {
        let now = self.now();
        let answer: PromptAnswer = read_value(answer).unwrap_or_default();
        let end = failure::from_stop_reason(answer.stop_reason(), answer.stop_detail()).map(|()| answer);
        self.chat.prompted(end, now);
        if self.chat.changes.is_listed {
            let params = json!({"sessionId": self.link.session});
            self.link
                .request("_castor/session/checkpoints", params, |it| it.map_or(Reply::Nothing, Reply::Checkpoints));
        }
    }

    /// Goes to another session of the same agent.
    pub fn load(&mut self, id: String) {
        if !self.chat.leave_session() {
            return self.chat.note("a turn is under way: esc stops it");
        }
        self.replay = Some(Replay::default());
        let params = json!({"sessionId": id, "cwd": self.link.cwd.to_string(), "mcpServers": []});
        self.link.request("session/load", params, |it| Reply::Loaded(id, it));
    }

    fn loaded(&mut self, id: String, answer: Result<Value, Error>) {
        let (now, replay) = (self.now(), self.replay.take());
        match answer {
            Ok(session) => {
                // Else this process would keep its log locked.
                let old = json!({"sessionId": self.link.session.replace(id)});
                self.link.request("session/close", old, |_| Reply::Nothing);
                if let Some(it) = replay {
                    it.show(&mut self.chat, now, self.screen.size);
                }
                self.chat.status.facts.open(&read_value(session).unwrap_or_default());
                self.ask_servers(Duration::ZERO);
            }
            Err(error) => self.chat.note(&words(&error)),
        }
        self.chat.enter_session(now);
    }

    fn ask_servers(&self, pause: Duration) {
        let params = json!({"sessionId": self.link.session});
        let answer = self.link.peer.request("_castor/mcp/servers", params);
        self.link.replies.push(Box::pin(async move {
            tokio::time::sleep(pause).await;
            answer.await.map_or(Reply::Nothing, Reply::Servers)
        }));
    }

    /// The session, and the end of the agent's input.
    pub fn close(&self) -> Option<String> {
        self.link.peer.close_input();
        self.link.session.clone()
    }

    /// What the agent still wrote on stderr before it went.
    pub async fn drain_stderr(&mut self) {
        self.tail.drain_stderr(&mut self.sources.stderr).await;
    }

    pub fn is_over(&self) -> bool {
        self.chat.phase() == ChatPhase::Over
    }
}

pub(super) fn words(error: &Error) -> String {
    failure::from_answer(error).map_or_else(|| error.to_string(), |it| it.message)
}
