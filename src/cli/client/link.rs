//! The link of a face to its agent: it carries out the orders of the client's machine, and brings it messages, answers and
//! time.

use std::{
    future,
    pin::Pin,
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use jsonrpsee::core::client::Error;
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet, time};

use super::child::{Agent, Pipes, StderrTail, describe_status};
use crate::cli::terminal_text::clean;
use castor_client::{
    failure::RequestFailure,
    incoming::Incoming,
    machine::{ClientMachine, ClientOrder, MAX_OPEN},
};
use castor_models::acp_agent::{answer_line, connection::Peer};
use castor_wire::acp::client::AgentError;

type AnswerFuture = Pin<Box<dyn Future<Output = (i64, Result<Value, RequestFailure>)>>>;

pub struct AgentLink {
    pub machine: ClientMachine,
    pub started: Instant,
    peer: Peer,
    incoming: mpsc::Receiver<Incoming>,
    /// Lines of the agent's stderr.
    stderr: mpsc::Receiver<String>,
    answers: FuturesUnordered<AnswerFuture>,
    /// Answers on their way, each in a task: an agent that does not read while it writes must not stop us from reading.
    sending: JoinSet<()>,
    tail: StderrTail,
    /// The agent closed its output.
    is_closed: bool,
}

/// The link's part of a loop turn.
#[derive(Debug)]
pub enum LinkEvent {
    /// A line of the agent's stderr.
    Log(String),
    /// The machine may have orders and news.
    Turned,
    /// The agent is gone, and every answer that it gave is taken.
    Lost,
}

enum AgentOutput {
    Log(String),
    Message(Option<Incoming>),
}

impl AgentLink {
    pub fn connect(pipes: Pipes) -> Self {
        let (peer, incoming) = Peer::connect(pipes.stdout, pipes.stdin);
        Self::new(peer, incoming, pipes.stderr)
    }

    pub fn new(peer: Peer, incoming: mpsc::Receiver<Incoming>, stderr: mpsc::Receiver<String>) -> Self {
        Self {
            machine: ClientMachine::default(),
            started: Instant::now(),
            peer,
            incoming,
            stderr,
            answers: FuturesUnordered::new(),
            sending: JoinSet::new(),
            tail: StderrTail::default(),
            is_closed: false,
        }
    }

    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Waits for the agent or the time. `room`: what is heard can be shown. May be dropped at any time.
    pub async fn next(&mut self, room: impl Future<Output = ()>) -> LinkEvent {
        if self.is_closed && self.answers.is_empty() {
            return LinkEvent::Lost;
        }
        let can_read = !self.is_closed && self.machine.n_questions() + self.sending.len() < MAX_OPEN;
        let wake_at = self.machine.wake_at().map(|at| self.started + at);
        let Self { incoming, stderr, sending, answers, .. } = self;
        let heard = async {
            room.await;
            tokio::select! {
                biased;
                Some(line) = stderr.recv() => AgentOutput::Log(line),
                message = incoming.recv(), if can_read => AgentOutput::Message(message),
                else => future::pending().await,
            }
        };
        // In order of urgency; an answer late, as everything that was written before it comes first.
        tokio::select! {
            biased;
            Some(_) = sending.join_next() => (),
            heard = heard => match heard {
                AgentOutput::Log(line) => {
                    self.tail.push(&line);
                    return LinkEvent::Log(line);
                }
                AgentOutput::Message(Some(message)) => self.take_message(message),
                AgentOutput::Message(None) => self.is_closed = true,
            },
            Some((number, answer)) = answers.next() => self.take_answer(number, answer),
            () = until(wake_at) => self.machine.tick(self.now()),
        }
        LinkEvent::Turned
    }

    /// Takes a message that is there already.
    pub fn take_more(&mut self) -> bool {
        let message = self.incoming.try_recv().ok();
        message.map(|message| self.take_message(message)).is_some()
    }

    fn take_message(&mut self, message: Incoming) {
        if let Incoming::Noise(line) = &message {
            self.tail.push(line);
        }
        self.machine.take_message(message);
    }

    fn take_answer(&mut self, number: i64, answer: Result<Value, RequestFailure>) {
        // The demultiplexer had passed these on before it passed on the answer.
        while self.take_more() {}
        self.is_closed |= matches!(answer, Err(RequestFailure::Gone));
        self.machine.take_answer(number, answer);
    }

    /// Carries out the machine's orders.
    pub async fn carry_out(&mut self) {
        for order in self.machine.take_orders() {
            match order {
                ClientOrder::Request { number, method, params } => {
                    let answer = self.peer.request(method, params);
                    self.answers.push(Box::pin(async move { (number, answer.await.map_err(request_failure)) }));
                }
                ClientOrder::Notify { method, params } => self.peer.notify(method, params).await,
                ClientOrder::Answer { id, answer } => {
                    let (outbox, line) = (self.peer.outbox(), answer_line(&id, &answer));
                    self.sending.spawn(async move { _ = outbox.send(line).await });
                }
            }
        }
    }

    /// How the agent ended, with what it said last. `when`: before what.
    pub async fn describe_end(&mut self, agent: Option<&mut Agent>, when: &str) -> String {
        let status = match agent {
            Some(agent) => agent.exit_status().await,
            None => None,
        };
        self.tail.drain_stderr(&mut self.stderr).await;
        let how = status.map_or_else(|| "closed its output".to_owned(), describe_status);
        let hint = self.tail.hint().map(|hint| format!("; it last said: {hint}")).unwrap_or_default();
        format!("the agent {how}{when}{hint}")
    }

    /// Closes the agent's stdin; its last answers are still read.
    pub fn close_input(&self) {
        self.peer.close_input();
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => time::sleep_until(at.into()).await,
        None => future::pending().await,
    }
}

/// Why a request has no result, with words that are safe on a terminal.
pub fn request_failure(error: Error) -> RequestFailure {
    match error {
        Error::Call(error) => {
            let error = AgentError::read(error.code(), error.message(), error.data());
            let (message, detail) = (clean(&error.message), error.detail.as_deref().map(clean));
            RequestFailure::Refused(Box::new(AgentError { message, detail, ..error }))
        }
        Error::RestartNeeded(_) | Error::ServiceDisconnect | Error::Transport(_) => RequestFailure::Gone,
        other => RequestFailure::Broken(other.to_string()),
    }
}
