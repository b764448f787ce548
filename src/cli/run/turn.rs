//! The turn of `castor run`: the loop over agent, user and signals until the stop reason.

use std::{
    io,
    time::{Duration, Instant},
};

use jsonrpsee::core::client::Error;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet, time};

use super::{ask::TerminalAsker, screen::Screen};
use crate::cli::client::{
    child::StderrTail,
    client_requests::{Answer, Question, RequestHandlers},
    failure::{self, Exit, Failure},
    key_input::Typed,
    session_start::{AskAgent, OpenedSession},
    signals::UserSignal,
    steering::Steering,
};
use castor_models::acp_agent::connection::{Incoming, Peer};
use castor_wire::acp::{
    client::{PromptAnswer, SessionEvent, read_value},
    meta::StopDetail,
};

/// Requests of the agent that may be open at once; when that many are, nothing more is read.
const MAX_HANDLERS: usize = 64;
/// How long a cancelled turn may take to end when the output is no longer read.
const UNREAD_GRACE: Duration = Duration::from_secs(1);
/// Lines that are no messages, told one by one.
const MAX_NOISE_NOTES: u32 = 3;

/// All that is listened to.
pub struct EventSources {
    pub incoming: mpsc::Receiver<Incoming>,
    pub questions: mpsc::Receiver<Question>,
    pub signals: mpsc::Receiver<UserSignal>,
    /// Lines of the agent's stderr.
    pub stderr: mpsc::Receiver<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Up to the prompt: what is replayed is not shown, and Ctrl-C quits.
    Setup,
    Prompt,
    /// The turn was cancelled; its end is awaited.
    Cancelling,
}

/// A conversation with one agent.
pub struct Driver {
    peer: Peer,
    host: RequestHandlers,
    sources: EventSources,
    pub screen: Screen,
    asker: TerminalAsker,
    handlers: JoinSet<()>,
    pub steering: Steering,
    phase: Phase,
    pub session: Option<String>,
    pub tail: StderrTail,
    /// When to give up on an agent after stdout was closed.
    deadline: Option<Instant>,
    noise: u32,
}

enum TurnEvent {
    Signal(UserSignal),
    Unread,
    GiveUp,
    Question(Question),
    Typed(Typed),
    Log(String),
    Incoming(Incoming),
    Handled,
    /// What became of words of the user's.
    Steered(String),
    /// What waits to be shown can be flushed, or a draw is due.
    Room,
}

impl Driver {
    pub fn new(peer: Peer, host: RequestHandlers, sources: EventSources, screen: Screen, asker: TerminalAsker) -> Self {
        Self {
            peer,
            host,
            sources,
            screen,
            asker,
            handlers: JoinSet::new(),
            steering: Steering::default(),
            phase: Phase::Setup,
            session: None,
            tail: StderrTail::default(),
            deadline: None,
            noise: 0,
        }
    }

    /// The session is open: what the agent says of itself counts from now on.
    pub fn take_session(&mut self, opened: &OpenedSession) {
        // Others never say which messages do not count.
        self.screen.set_may_discard(opened.is_castor());
        self.steering.is_possible = opened.takes_steering();
        self.screen.changes.is_listed = opened.lists_checkpoints();
        opened.notes.iter().for_each(|it| self.screen.note(it));
        self.screen.note_session(&opened.id, &opened.model);
    }

    /// Waits between two turns: Ctrl-C quits, and questions are answered as ever.
    ///
    /// # Errors
    /// When the user quits, or the output is no longer read.
    pub async fn wait_idle<T>(&mut self, what: impl Future<Output = T>) -> Result<T, Failure> {
        self.phase = Phase::Setup;
        self.screen.end_turn();
        self.wait_for(what).await
    }

    /// Sends the prompt in the open session, with `_meta`; gives the stop reason. `None`: the agent is gone.
    pub async fn prompt(&mut self, blocks: Vec<Value>, options: Option<Value>) -> Result<Option<String>, Failure> {
        self.phase = Phase::Prompt;
        self.screen.start_turn();
        let params = match options {
            Some(it) => json!({"sessionId": self.session, "prompt": blocks, "_meta": it}),
            None => json!({"sessionId": self.session, "prompt": blocks}),
        };
        self.asker.listen(self.steering.is_possible);
        self.screen.report.note_prompt();
        let answer = self.ask("session/prompt", params).await;
        self.asker.listen(false);
        self.show_questions();
        let Some(answer) = answer? else { return Ok(None) };
        let answer: PromptAnswer = read_value(answer).unwrap_or_default();
        self.screen.set_prompt_answer(&answer);
        for it in self.steering.remaining_outcomes().await {
            self.screen.note(&it);
        }
        let reason = answer.stop_reason();
        match (self.deadline, answer.stop_detail()) {
            (Some(_), _) => Err(Failure::new(Exit::Unread, "")),
            (None, Some(StopDetail::UnknownCommand)) => Err(Failure::input(self.screen.take_answer())),
            (None, detail) => failure::from_stop_reason(reason, detail).map(|()| Some(reason.to_owned())),
        }
    }

    fn show_questions(&mut self) {
        if !self.asker.take_change() {
            return;
        }
        self.screen.print_lines(&self.asker.take_lines());
        self.screen.set_asking(self.asker.is_asking());
        if self.asker.takes_keys() {
            let width = self.screen.width();
            self.screen.set_panel(self.asker.panel(width));
        }
    }

    async fn handle_event(&mut self, wake: TurnEvent) -> Result<(), Failure> {
        match wake {
            TurnEvent::Signal(signal) => self.signal(signal).await,
            TurnEvent::Unread => self.stop_unread().await,
            TurnEvent::GiveUp => Err(Failure::new(Exit::Unread, "")),
            TurnEvent::Question(it) => {
                self.question(it);
                Ok(())
            }
            TurnEvent::Typed(it) => {
                let text = self.asker.answer(it);
                self.screen.write_stderr(text);
                Ok(())
            }
            TurnEvent::Steered(it) => {
                self.screen.note(&it);
                Ok(())
            }
            TurnEvent::Log(line) => {
                self.tail.push(&line);
                self.screen.agent_log(&line);
                Ok(())
            }
            TurnEvent::Incoming(it) => {
                self.incoming(it);
                Ok(())
            }
            TurnEvent::Handled | TurnEvent::Room => Ok(()),
        }
    }

    fn finish_request(&mut self, answer: Result<Value, Error>) -> Result<Option<Value>, Failure> {
        self.show_questions();
        // The demultiplexer had passed these on before it passed on the answer.
        while let Ok(it) = self.sources.incoming.try_recv() {
            self.incoming(it);
        }
        self.screen.flush();
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => {
                self.screen.report.take_meta(failure::meta(&error).as_ref());
                failure::from_answer(&error).map_or(Ok(None), Err)
            }
        }
    }

    fn incoming(&mut self, message: Incoming) {
        match message {
            Incoming::Request { id, method, params } => {
                let (answer, outbox) = (self.host.call(&id, &method, &params), self.peer.outbox());
                // A task of its own: an agent that does not read while it writes must not stop us from reading.
                self.handlers.spawn(async move { _ = outbox.send(answer.await).await });
            }
            Incoming::Notification { method, params } => match method.as_str() {
                "session/update" if self.phase != Phase::Setup => {
                    self.screen.update(&SessionEvent::read(&params));
                }
                "_castor/session/event" => self.screen.event(&params),
                "$/cancel_request" => {
                    let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                    let text = self.asker.withdraw(&params.get("requestId").unwrap_or(&Value::Null).to_string());
                    self.screen.write_stderr(text);
                }
                _ => (),
            },
            Incoming::Noise(line) => self.note_noise(&line),
        }
    }

    fn note_noise(&mut self, line: &str) {
        self.tail.push(line);
        self.noise += 1;
        if self.noise <= MAX_NOISE_NOTES {
            let line = crate::cli::terminal_text::clean_line(line, 120);
            self.screen.note(&format!("the agent wrote a line that is no message to stdout; ignored: {line}"));
        }
    }

    fn question(&mut self, question: Question) {
        if self.phase == Phase::Cancelling {
            _ = question.answer.send(Answer::Cancelled);
            return;
        }
        let (call, agent) = self.screen.take_question(&question);
        let text = self.asker.ask(Question { agent, ..question }, &call);
        self.screen.write_stderr(text);
    }

    /// What was typed while nothing was asked is told to the agent.
    fn steer(&mut self) {
        for line in self.asker.take_steering().into_iter().filter(|it| !it.trim().is_empty()) {
            if self.phase == Phase::Prompt {
                self.steering.send(&self.peer, self.session.as_deref(), &line);
                self.screen.note("the agent reads this with its next step");
            }
        }
    }

    async fn signal(&mut self, signal: UserSignal) -> Result<(), Failure> {
        if signal == UserSignal::Terminate || self.phase != Phase::Prompt {
            return Err(Failure::new(Exit::Quit, "cancelled"));
        }
        if self.asker.is_asking() && !self.asker.takes_keys() {
            self.screen.write_stderr("\n".to_owned());
        }
        self.screen.note("cancelling; once more to quit at once");
        self.screen.set_cancelling();
        self.cancel().await;
        Ok(())
    }

    async fn stop_unread(&mut self) -> Result<(), Failure> {
        if self.phase == Phase::Setup {
            return Err(Failure::new(Exit::Unread, ""));
        }
        self.deadline = Some(Instant::now() + UNREAD_GRACE);
        self.cancel().await;
        Ok(())
    }

    async fn cancel(&mut self) {
        self.phase = Phase::Cancelling;
        self.peer.notify("session/cancel", json!({"sessionId": self.session})).await;
        self.asker.cancel_all();
    }

    /// Writes the rest and closes the agent's stdin. The user may quit while the last words wait for a slow reader.
    pub async fn finish(self) -> io::Result<()> {
        let EventSources { mut signals, .. } = self.sources;
        let written = tokio::select! {
            it = self.screen.finish() => it,
            Some(_) = signals.recv() => Ok(()),
        };
        self.peer.close();
        written
    }

    /// What the agent still wrote on stderr before it went.
    pub async fn drain_stderr(&mut self) {
        self.tail.drain_stderr(&mut self.sources.stderr).await;
    }
}

impl AskAgent for Driver {
    /// Lives on until the agent answers.
    async fn ask(&mut self, method: &'static str, params: Value) -> Result<Option<Value>, Failure> {
        let answer = self.peer.request(method, params);
        let answer = self.wait_for(answer).await?;
        self.finish_request(answer)
    }

    fn set_session(&mut self, id: &str) {
        self.session = Some(id.to_owned());
    }
}

impl Driver {
    /// Lives on until `what` is there.
    async fn wait_for<T>(&mut self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::pin!(what);
        loop {
            let sources = &mut self.sources;
            // In order of urgency; an answer last, as everything that was written before it comes first.
            let wake = tokio::select! {
                biased;
                Some(it) = sources.signals.recv() => TurnEvent::Signal(it),
                () = self.screen.closed(), if self.deadline.is_none() => TurnEvent::Unread,
                () = until(self.deadline), if self.deadline.is_some() => TurnEvent::GiveUp,
                Some(it) = sources.questions.recv() => TurnEvent::Question(it),
                it = self.asker.typed() => TurnEvent::Typed(it),
                Some(_) = self.handlers.join_next() => TurnEvent::Handled,
                Some(it) = self.steering.next() => TurnEvent::Steered(it.in_words()),
                Some(it) = self.screen.before(&mut sources.stderr) => TurnEvent::Log(it),
                Some(it) = self.screen.before(&mut sources.incoming), if self.handlers.len() < MAX_HANDLERS => {
                    TurnEvent::Incoming(it)
                }
                it = &mut what => return Ok(it),
                () = self.screen.room() => TurnEvent::Room,
            };
            self.handle_event(wake).await?;
            self.show_questions();
            self.steer();
            self.screen.flush();
        }
    }
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        time::sleep_until(deadline.into()).await;
    }
}
