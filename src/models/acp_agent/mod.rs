//! Agents that speak ACP: castor is their client, and a program answers in a model's place.

pub mod connection;
mod process;

use std::sync::Arc;

use serde_json::{Value, value::RawValue};
use tokio::{
    sync::Mutex,
    time::{Duration, timeout},
};

use crate::providers::{Generator, Sink};
use castor_base::{
    content::Part,
    fs::BoxFuture,
    history::{Role, Turn, TurnPart},
    model::{Chunk, Failure, FailureKind, Finish, ModelRequest},
    peer_agent::PeerReport,
};
use castor_client::{
    incoming::Incoming,
    peer::{self, AnswerForm, PeerCall, PeerRequest, PeerUpdates, Refusal, Terminals, last_results},
};
use castor_wire::acp::client::{SessionEvent, read_value};
pub use process::AgentLaunch;
use process::{AgentStartError, GONE, RunningAgent};

/// Requests that come in one go are answered together.
const SETTLE: Duration = Duration::from_millis(10);
/// Requests that are decided about at once.
const MAX_TOGETHER: usize = 16;
/// Lines on stdout that are no messages, until it is given up.
const MAX_NOISE: u32 = 200;

/// A program that is an agent of a session. It runs from the first request to the end of its prompt.
pub struct AcpAgent {
    launch: AgentLaunch,
    running: Mutex<Option<Conversation>>,
}

/// One prompt under way.
struct Conversation {
    agent: RunningAgent,
    answer: BoxFuture<'static, Result<Value, String>>,
    /// Requests that wait for calls of castor's.
    open: Vec<OpenRequest>,
    updates: PeerUpdates,
    terminals: Terminals,
    n_noise: u32,
}

struct OpenRequest {
    id: Box<RawValue>,
    form: AnswerForm,
    n_calls: usize,
}

/// Why nothing more is read for now.
enum Pause {
    /// Calls of castor's come first.
    Calls,
    /// The prompt has its answer.
    Ended(Result<Value, String>),
    /// The agent is gone, or cannot be understood.
    Broken(&'static str),
}

impl Pause {
    fn of(answer: Result<Value, String>) -> Self {
        if answer.as_ref().is_err_and(|it| it == GONE) { Self::Broken(GONE) } else { Self::Ended(answer) }
    }
}

impl AcpAgent {
    /// Starts nothing yet.
    pub fn new(launch: AgentLaunch) -> Self {
        Self { launch, running: Mutex::new(None) }
    }

    async fn run(&self, request: &ModelRequest, sink: &mut dyn Sink) -> Result<(), Failure> {
        let mut slot = self.running.lock().await;
        let mut talk = match slot.take() {
            Some(mut it) => {
                it.answer_open(&request.contents).await;
                it
            }
            None => {
                let (agent, greeting) = RunningAgent::start(&self.launch).await.map_err(failure)?;
                sink.send(vec![Chunk::Report(PeerReport::Notice(greeting))]).await;
                Conversation::begin(agent, &prompt(&request.contents))
            }
        };
        match talk.listen(sink).await {
            Pause::Calls => {
                sink.send(vec![Chunk::Finish(Finish::Stop)]).await;
                *slot = Some(talk);
                Ok(())
            }
            Pause::Ended(result) => talk.end(result, sink).await,
            Pause::Broken(why) => {
                sink.send(talk.updates.end_calls("the agent is gone")).await;
                Err(garbage(talk.agent.end_reason(why).await))
            }
        }
    }
}

impl Generator for AcpAgent {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.run(&request, sink).await })
    }

    fn may_block(&self) -> bool {
        true
    }
}

impl Conversation {
    fn begin(agent: RunningAgent, text: &str) -> Self {
        let answer = agent.request("session/prompt", peer::prompt(&agent.session, text));
        Self {
            agent,
            answer,
            open: Vec::new(),
            updates: PeerUpdates::default(),
            terminals: Terminals::default(),
            n_noise: 0,
        }
    }

    /// What castor's tools came to, and nothing else, is what the agent waits for.
    async fn answer_open(&mut self, contents: &[Arc<Turn>]) {
        let results = last_results(contents.iter().flat_map(|it| it.parts()));
        let mut rest = results.as_slice();
        for OpenRequest { id, form, n_calls } in std::mem::take(&mut self.open) {
            let (its, after) = rest.split_at_checked(n_calls).unwrap_or((rest, &[]));
            rest = after;
            let answer = form.answer(its, &mut self.terminals);
            self.agent.answer(&id, answer).await;
        }
    }

    /// Passes on what the agent says, until it needs castor or has ended.
    async fn listen(&mut self, sink: &mut dyn Sink) -> Pause {
        loop {
            let message = match self.open.is_empty() {
                true => tokio::select! {
                    biased;
                    it = self.agent.incoming.recv() => it,
                    it = &mut self.answer => return Pause::of(it),
                },
                false => match timeout(SETTLE, self.agent.incoming.recv()).await {
                    Ok(it) => it,
                    Err(_) => return Pause::Calls,
                },
            };
            let Some(message) = message else { return Pause::Broken(GONE) };
            if let Some(pause) = self.take(message, sink).await {
                return pause;
            }
        }
    }

    async fn take(&mut self, message: Incoming, sink: &mut dyn Sink) -> Option<Pause> {
        match message {
            Incoming::Notification { method, params } if method == "session/update" => {
                let chunks = self.updates.take(&SessionEvent::read(&params).event);
                if !chunks.is_empty() {
                    sink.send(chunks).await;
                }
            }
            Incoming::Notification { .. } => (),
            Incoming::Noise(line) => {
                tracing::debug!("another agent wrote what is no message: {line}");
                self.n_noise += 1;
                return (self.n_noise > MAX_NOISE).then_some(Pause::Broken("what it writes is no ACP"));
            }
            Incoming::Request { id, method, params } => {
                match PeerRequest::read(&method, &value(&params), &mut self.updates, &mut self.terminals) {
                    PeerRequest::Answered(it) => self.agent.answer(&id, it).await,
                    PeerRequest::Waits { calls, form } => {
                        self.open.push(OpenRequest { id, form, n_calls: calls.len() });
                        sink.send(calls.into_iter().map(call).collect()).await;
                        return (self.open.len() >= MAX_TOGETHER).then_some(Pause::Calls);
                    }
                }
            }
        }
        None
    }

    /// Its program ends with its prompt: what it changed is known only then.
    async fn end(mut self, result: Result<Value, String>, sink: &mut dyn Sink) -> Result<(), Failure> {
        // What it said before its answer may still be on its way.
        while let Ok(message) = self.agent.incoming.try_recv() {
            self.take(message, sink).await;
        }
        let chunks = match &result {
            Ok(answer) => self.updates.end(&read_value(answer.clone()).unwrap_or_default()),
            Err(_) => self.updates.end_calls("the agent failed"),
        };
        sink.send(chunks).await;
        if let Err(why) = result {
            let why = self.agent.error_words(&why);
            self.agent.stop().await;
            return Err(failure(why));
        }
        if let Some(it) = self.agent.stop().await {
            sink.send(vec![Chunk::Report(PeerReport::Notice(it))]).await;
        }
        Ok(())
    }
}

/// The last words of the user's.
fn prompt(contents: &[Arc<Turn>]) -> String {
    let last = contents.iter().rev().find(|it| it.role() == Role::User);
    let texts = last.into_iter().flat_map(|it| it.parts()).filter_map(|it| match it {
        TurnPart::Content(it) => Part::as_text(it),
        TurnPart::Call { .. } | TurnPart::Result(_) => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn call(it: PeerCall) -> Chunk {
    Chunk::Call { id: None, name: it.name.to_owned(), args: it.args, signature: None }
}

fn value(params: &RawValue) -> Value {
    serde_json::from_str(params.get()).unwrap_or_default()
}

fn failure(why: AgentStartError) -> Failure {
    match why {
        AgentStartError::SignIn(why) => Failure::new(FailureKind::Auth, why),
        AgentStartError::Failed(why) => garbage(why),
    }
}

/// Asking again would not help.
fn garbage(why: String) -> Failure {
    Failure::new(FailureKind::Garbage, why)
}

/// The line of an answer.
pub fn answer_line(id: &RawValue, answer: &Result<Value, Refusal>) -> Vec<u8> {
    let body = match answer {
        Ok(it) => format!("\"result\":{it}"),
        Err(it) => format!("\"error\":{}", serde_json::json!({ "code": it.code, "message": it.message })),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{},{body}}}\n", id.get()).into_bytes()
}
