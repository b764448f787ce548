//! The agent's side of the loop: the session that opens, events, answers.

use std::time::Duration;

use serde_json::Value;

use super::{JobResult, SessionLoop};
use crate::cli::{
    chat::{pickers::rewind::RewindRow, replay::Replay, state::ChatPhase, status::ServerHealth},
    client::start::demo_notes,
};
use castor_client::{
    failure::{self, RequestFailure},
    machine::{ClientNews, ClientRequest},
    opening::{OpenedSession, SessionRequest},
    steering::SteeringOutcome,
};
use castor_wire::acp::client::{OpenedAnswer, PromptAnswer, SessionEvent, read_value};

/// Servers that are about to start are asked about again after this.
const SERVER_PAUSE: Duration = Duration::from_secs(2);

impl SessionLoop {
    /// Why the demo answers, and what would be better.
    pub fn tell_demo(&mut self, keys: Option<&[(String, String)]>) {
        let Some(keys) = keys.map(<[_]>::to_vec) else { return };
        self.jobs.push(Box::pin(async move { JobResult::Notes(demo_notes(&keys, true).await) }));
    }

    /// Whether the picker of sessions comes up as soon as there is an agent to ask.
    pub fn set_picks_session(&mut self, picks: bool) {
        self.place.picks_session = picks;
    }

    /// Begins to open the session.
    pub fn open(&mut self, request: SessionRequest) {
        self.replay = request.resume.is_some().then(Replay::default);
        self.link.machine.open(request);
    }

    pub(super) fn take_all_news(&mut self) {
        while let Some(news) = self.link.machine.take_news() {
            self.take_news(news);
        }
    }

    fn take_news(&mut self, news: ClientNews) {
        let now = self.now();
        match news {
            ClientNews::Opened(opened) => self.opened(&opened),
            ClientNews::Failed(failure) => {
                self.chat.end(&failure.message, now);
                self.end = Some(failure.exit);
            }
            ClientNews::Event(told) => {
                let SessionEvent { session, event, .. } = &*told;
                self.chat.update(session, event, now);
            }
            ClientNews::Replayed(params) => self.replay.iter_mut().for_each(|replay| replay.push(params.clone())),
            ClientNews::Asked(question) => self.chat.ask(*question, now),
            ClientNews::Withdrawn(number) => self.chat.withdraw(number, now),
            ClientNews::Prompted(answer) => self.prompted(answer),
            // The message itself is on the screen.
            ClientNews::Steered(SteeringOutcome::Read) => (),
            ClientNews::Steered(SteeringOutcome::Late { typed, .. }) => self.chat.send_after_turn(typed, now),
            ClientNews::Steered(outcome) => self.chat.note(&outcome.in_words()),
            ClientNews::Loaded(answer) => self.loaded(answer),
            ClientNews::Answered(request, answer) => self.take_answer(&request, answer),
            ClientNews::Sessions(answer) => self.show_sessions(answer),
            ClientNews::StreamEvent(_) | ClientNews::Noise(_) => (),
        }
    }

    fn take_answer(&mut self, request: &ClientRequest, answer: Result<Value, RequestFailure>) {
        let now = self.now();
        match (request, answer) {
            (ClientRequest::SetMode(_) | ClientRequest::SetOption { .. }, Ok(answer)) => {
                let answer: OpenedAnswer = read_value(answer).unwrap_or_default();
                answer.config_options.iter().for_each(|it| self.chat.status.facts.take_options(it));
            }
            (ClientRequest::Servers, Ok(states)) => {
                self.chat.status.servers = ServerHealth::read(&states);
                if self.chat.status.servers.is_starting() {
                    self.link.machine.list_servers(now + SERVER_PAUSE);
                }
            }
            (ClientRequest::EarlierChanges, Ok(listing)) => self.chat.changes.note_known(&listing),
            (ClientRequest::Changes, Ok(listing)) => self.chat.take_changes(&listing),
            (ClientRequest::Rewind { .. } | ClientRequest::Redo, Ok(_)) => self.rewound(),
            (ClientRequest::Messages, Ok(messages)) => {
                self.messages = RewindRow::read_all(&messages);
                self.link.machine.ask(ClientRequest::MessageChanges);
            }
            // Without checkpoints there is still the conversation to go back in.
            (ClientRequest::MessageChanges, changes) => self.show_messages(&changes.unwrap_or_default()),
            (ClientRequest::Servers | ClientRequest::EarlierChanges | ClientRequest::Changes, Err(_)) => (),
            (_, Err(failure)) => self.chat.note(&failure.in_words()),
        }
        self.chat.set_stale();
    }

    fn opened(&mut self, opened: &OpenedSession) {
        let now = self.now();
        self.place.capabilities = opened.capabilities;
        if let Some(replay) = self.replay.take() {
            replay.show(&mut self.chat, now, self.screen.size);
            self.link.machine.ask(ClientRequest::EarlierChanges);
        }
        self.chat.opened(opened, now);
        if opened.is_castor() {
            self.link.machine.list_servers(now);
        }
        if self.place.picks_session {
            self.link.machine.list_sessions();
        }
        self.chat.set_stale();
    }

    /// The agent ends the turn with an answer.
    fn prompted(&mut self, answer: Result<Box<PromptAnswer>, RequestFailure>) {
        let now = self.now();
        let is_answered = answer.is_ok();
        let end = answer
            .map_err(RequestFailure::into_failure)
            .and_then(|answer| failure::from_stop_reason(answer.stop_reason(), answer.stop_detail()).map(|()| *answer));
        self.chat.prompted(end, now);
        if is_answered {
            self.link.machine.ask(ClientRequest::Changes);
        }
    }

    /// Goes to another session of the same agent.
    pub fn load(&mut self, id: String) {
        if !self.chat.leave_session() {
            return self.chat.note("a turn is under way: esc stops it");
        }
        self.replay = Some(Replay::default());
        self.link.machine.load(id, &self.place.cwd.to_string());
    }

    fn loaded(&mut self, answer: Result<Box<OpenedAnswer>, RequestFailure>) {
        let (now, replay) = (self.now(), self.replay.take());
        match answer {
            Ok(session) => {
                if let Some(it) = replay {
                    it.show(&mut self.chat, now, self.screen.size);
                }
                self.chat.status.facts.open(&session);
                self.link.machine.list_servers(now);
            }
            Err(failure) => self.chat.note(&failure.in_words()),
        }
        self.chat.enter_session(now);
        self.chat.set_stale();
    }

    /// The session that was open, and the end of the agent's input.
    pub fn close(&self) -> Option<String> {
        self.link.close_input();
        self.link.machine.open_session().map(str::to_owned)
    }

    pub fn is_over(&self) -> bool {
        self.chat.phase() == ChatPhase::Over
    }
}
