//! One prompt, from `initialize` to its stop reason: the loop that hears the agent, the user and the signals.

use std::{
    io,
    time::{Duration, Instant},
};

use jsonrpsee::core::client::Error;
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinSet, time};

use super::{
    ask::{Asker, Typed},
    child::Tail,
    client::{Incoming, Peer},
    failure::{self, Exit, Failure},
    host::{About, Answer, Host, Question},
    screen::Screen,
    steering::Steering,
};

/// Requests of the agent that may be open at once; when that many are, nothing more is read.
const MAX_HANDLERS: usize = 64;
/// How long a cancelled turn may take to end when nobody reads our output any more.
const UNREAD_GRACE: Duration = Duration::from_secs(1);
/// Lines that are no messages, told one by one.
const MAX_NOISE_NOTES: u32 = 3;

/// What the user or the system wants of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Ctrl-C: cancel; the second one quits.
    Interrupt,
    /// Quit at once.
    Terminate,
}

/// All that is listened to.
pub struct Ears {
    pub incoming: mpsc::Receiver<Incoming>,
    pub questions: mpsc::Receiver<Question>,
    pub signals: mpsc::Receiver<Signal>,
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
    host: Host,
    ears: Ears,
    pub screen: Screen,
    asker: Asker,
    handlers: JoinSet<()>,
    pub steering: Steering,
    phase: Phase,
    pub session: Option<String>,
    pub tail: Tail,
    /// When to give up on an agent after stdout was closed.
    deadline: Option<Instant>,
    noise: u32,
}

enum Wake {
    Signal(Signal),
    Unread,
    GiveUp,
    Question(Question),
    Typed(Typed),
    Log(String),
    Incoming(Incoming),
    Handled,
    /// What became of words of the user's.
    Steered(String),
    /// What waits to be shown can be flushed.
    Room,
    Answer(Result<Value, Error>),
}

impl Driver {
    pub fn new(peer: Peer, host: Host, ears: Ears, screen: Screen, asker: Asker) -> Self {
        Self {
            peer,
            host,
            ears,
            screen,
            asker,
            handlers: JoinSet::new(),
            steering: Steering::default(),
            phase: Phase::Setup,
            session: None,
            tail: Tail::default(),
            deadline: None,
            noise: 0,
        }
    }

    /// Sends the prompt in the open session; gives the stop reason. `None`: the agent is gone.
    pub async fn prompt(&mut self, text: &str) -> Result<Option<String>, Failure> {
        self.phase = Phase::Prompt;
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.asker.listen(self.steering.is_possible);
        let answer = self.ask("session/prompt", params).await;
        self.asker.listen(false);
        let Some(answer) = answer? else { return Ok(None) };
        for it in self.steering.rest().await {
            self.screen.note(&it);
        }
        let reason = answer.get("stopReason").and_then(Value::as_str).unwrap_or("end_turn");
        match self.deadline {
            Some(_) => Err(Failure::new(Exit::Unread, "")),
            None => failure::from_stop_reason(reason).map(|()| Some(reason.to_owned())),
        }
    }

    /// Asks the agent, and lives on until it answers. `Ok(None)`: it is gone.
    pub async fn ask(&mut self, method: &'static str, params: Value) -> Result<Option<Value>, Failure> {
        let answer = self.peer.request(method, params);
        tokio::pin!(answer);
        loop {
            let ears = &mut self.ears;
            // In order of urgency; an answer last, as everything that was written before it comes first.
            let wake = tokio::select! {
                biased;
                Some(it) = ears.signals.recv() => Wake::Signal(it),
                () = self.screen.closed(), if self.deadline.is_none() => Wake::Unread,
                () = until(self.deadline), if self.deadline.is_some() => Wake::GiveUp,
                Some(it) = ears.questions.recv() => Wake::Question(it),
                it = self.asker.typed() => Wake::Typed(it),
                Some(_) = self.handlers.join_next() => Wake::Handled,
                Some(it) = self.steering.next() => Wake::Steered(it),
                () = self.screen.room() => Wake::Room,
                Some(it) = self.screen.before(&mut ears.stderr) => Wake::Log(it),
                Some(it) = self.screen.before(&mut ears.incoming), if self.handlers.len() < MAX_HANDLERS => {
                    Wake::Incoming(it)
                }
                it = &mut answer => Wake::Answer(it),
            };
            match wake {
                Wake::Answer(answer) => return self.answered(answer),
                other => self.wake(other).await?,
            }
            self.steer();
            self.screen.flush();
        }
    }

    async fn wake(&mut self, wake: Wake) -> Result<(), Failure> {
        match wake {
            Wake::Signal(signal) => self.signal(signal).await,
            Wake::Unread => self.unread().await,
            Wake::GiveUp => Err(Failure::new(Exit::Unread, "")),
            Wake::Question(it) => {
                self.question(it);
                Ok(())
            }
            Wake::Typed(it) => {
                let text = self.asker.answer(it);
                self.screen.aside(text);
                Ok(())
            }
            Wake::Steered(it) => {
                self.screen.note(&it);
                Ok(())
            }
            Wake::Log(line) => {
                self.tail.push(&line);
                self.screen.agent_log(&line);
                Ok(())
            }
            Wake::Incoming(it) => {
                self.incoming(it);
                Ok(())
            }
            Wake::Handled | Wake::Room | Wake::Answer(_) => Ok(()),
        }
    }

    fn answered(&mut self, answer: Result<Value, Error>) -> Result<Option<Value>, Failure> {
        // The demultiplexer had passed these on before it passed on the answer.
        while let Ok(it) = self.ears.incoming.try_recv() {
            self.incoming(it);
        }
        self.screen.flush();
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) => failure::from_answer(&error).map_or(Ok(None), Err),
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
                    let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                    self.screen.update(params.get("update").unwrap_or(&Value::Null));
                }
                "_castor/session/event" => self.screen.event(&params),
                "$/cancel_request" => {
                    let params: Value = serde_json::from_str(params.get()).unwrap_or_default();
                    let text = self.asker.withdraw(&params.get("requestId").unwrap_or(&Value::Null).to_string());
                    self.screen.aside(text);
                }
                _ => (),
            },
            Incoming::Noise(line) => self.noise(&line),
        }
    }

    fn noise(&mut self, line: &str) {
        self.tail.push(line);
        self.noise += 1;
        if self.noise <= MAX_NOISE_NOTES {
            let line = crate::app::cli::clean::clean_line(line, 120);
            self.screen.note(&format!("the agent wrote to stdout what is no message; ignored: {line}"));
        }
    }

    fn question(&mut self, question: Question) {
        if self.phase == Phase::Cancelling {
            _ = question.answer.send(Answer::Cancelled);
            return;
        }
        let call = match &question.about {
            About::Permission(params) => self.screen.call(params.get("toolCall").unwrap_or(&Value::Null)),
            About::Form { .. } | About::Page { .. } => Value::Null,
        };
        let text = self.asker.ask(question, &call);
        self.screen.aside(text);
    }

    /// What was typed while nothing was asked is told to the agent.
    fn steer(&mut self) {
        for line in self.asker.take_said().into_iter().filter(|it| !it.trim().is_empty()) {
            if self.phase == Phase::Prompt {
                self.steering.send(&self.peer, self.session.as_deref(), &line);
                self.screen.note("the agent reads this with its next step");
            }
        }
    }

    async fn signal(&mut self, signal: Signal) -> Result<(), Failure> {
        if signal == Signal::Terminate || self.phase != Phase::Prompt {
            return Err(Failure::new(Exit::Quit, "cancelled"));
        }
        if self.asker.is_asking() {
            self.screen.aside("\n".to_owned());
        }
        self.screen.note("cancelling; once more to quit at once");
        self.cancel().await;
        Ok(())
    }

    async fn unread(&mut self) -> Result<(), Failure> {
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
        let Ears { mut signals, .. } = self.ears;
        let written = tokio::select! {
            it = self.screen.finish() => it,
            Some(_) = signals.recv() => Ok(()),
        };
        self.peer.hang_up();
        written
    }

    /// What the agent still wrote on stderr before it went.
    pub async fn last_words(&mut self) {
        self.tail.last_words(&mut self.ears.stderr).await;
    }
}

async fn until(deadline: Option<Instant>) {
    if let Some(deadline) = deadline {
        time::sleep_until(deadline.into()).await;
    }
}
