//! Remote agents over A2A 1.0: each request of a session is a message to the agent, and its task is followed to its end.

mod access;
mod binding;
mod calls;
mod card;
mod follow;
mod messages;
mod progress;

use std::sync::Arc;

use a2a::StreamResponse;
use tokio::sync::Mutex;

use self::{
    access::{Access, RemoteCredentials},
    calls::Caller,
    follow::{CancelOnDrop, Followed, follow},
    messages::{Inbox, Memory, read_inbox},
    progress::{Outcome, TaskProgress},
};
use crate::providers::{Generator, Sink};
use castor_base::{
    fs::BoxFuture,
    model::{Chunk, Failure, FailureKind, Finish, ModelRequest},
    peer_agent::{PeerReport, RemoteAgent},
    text,
    tool::ASK_USER,
};
use castor_hands::{http::Http, secrets::Env};

pub use access::KeyCommands;

/// The longest text of a failure, in bytes.
const MAX_FAILURE: usize = 1_000;

/// The hands for a remote agent.
pub struct RemoteHands {
    pub http: Arc<Http>,
    /// Where its keys may be.
    pub env: Env,
    pub commands: KeyCommands,
}

/// A remote agent in a model's place. One run of it is one conversation.
pub struct RemotePeer {
    agent: RemoteAgent,
    hands: RemoteHands,
    /// Requests of a session come one after the other.
    run: Mutex<Run>,
}

/// What is known of the conversation.
#[derive(Default)]
struct Run {
    caller: Option<Arc<Caller>>,
    memory: Memory,
    progress: TaskProgress,
    /// The last message: how long the history was then, and its id. Sent again it is the same message.
    sent: Option<(usize, String)>,
    /// What the agent asked last.
    question: Option<String>,
}

impl RemotePeer {
    /// `memory`: what the last run of the agent left.
    pub fn new(agent: RemoteAgent, hands: RemoteHands, memory: Option<&str>) -> Self {
        let memory = Memory::read(memory, &agent.card);
        Self { agent, hands, run: Mutex::new(Run { memory, ..Run::default() }) }
    }

    async fn answer(&self, run: &mut Run, request: &ModelRequest, out: &mut Out<'_>) -> Result<(), Failure> {
        let caller = match run.caller.clone() {
            Some(it) => it,
            None => run.caller.insert(self.connect(out).await?).clone(),
        };
        out.credentials = Some(caller.credentials());
        let message = match read_inbox(&request.contents, run.question.is_some()) {
            Inbox::Text(it) => it,
            Inbox::NoAnswer => {
                let question = run.question.take().unwrap_or_default();
                return out.end(&progress::unanswered(&question)).await;
            }
        };
        let outcome = self.exchange(run, &caller, (request.contents.len(), message), out).await?;
        let asks = request.tools.iter().any(|it| it.name == ASK_USER);
        self.end(run, outcome, asks, out).await
    }

    async fn connect(&self, out: &mut Out<'_>) -> Result<Arc<Caller>, Failure> {
        let credentials = RemoteCredentials::new(self.agent.auth.as_ref(), &self.hands);
        let access = Access::new(self.hands.http.clone(), &self.agent, credentials);
        out.credentials = Some(access.credentials.clone());
        let card = card::find(&access, &self.agent.card).await?;
        Ok(Arc::new(Caller::new(access, card)))
    }

    /// Sends the message, or goes on where an attempt broke off.
    async fn exchange(
        &self,
        run: &mut Run,
        caller: &Arc<Caller>,
        (at, text): (usize, String),
        out: &mut Out<'_>,
    ) -> Result<Outcome, Failure> {
        let again = run.sent.take().filter(|it| it.0 == at).map(|it| it.1);
        let mut guard = CancelOnDrop::new(caller.clone());
        let mut resumes = again.is_some() && run.progress.is_under_way();
        // The user says that it is authorized: the server may have gone on by itself.
        if let Some(task) = run.progress.unauthorized_task().filter(|_| again.is_some()) {
            let task = caller.get_task(task).await?;
            run.progress.take(StreamResponse::Task(task));
            resumes = run.progress.unauthorized_task().is_none();
        }
        let message = if resumes {
            None
        } else {
            // A task that asked in this run waits. One of a run before may have ended since.
            let asked = run.question.take().is_some();
            if !asked && run.memory.task.is_some() && !caller.is_waiting(&run.memory).await {
                run.memory.task = None;
            }
            run.progress = TaskProgress::of(&run.memory);
            Some(run.memory.message(text, again))
        };
        run.sent = message.as_ref().map(|it| (at, it.message_id.clone())).or_else(|| Some((at, String::new())));
        let mut followed = Followed { progress: &mut run.progress, memory: &mut run.memory, guard: &mut guard };
        let res = follow(caller, message, &mut followed, out).await;
        guard.disarm();
        res
    }

    async fn end(&self, run: &mut Run, outcome: Outcome, asks: bool, out: &mut Out<'_>) -> Result<(), Failure> {
        let waits = matches!(outcome, Outcome::InputRequired(_) | Outcome::AuthRequired(_));
        run.memory.task = run.progress.task().filter(|_| waits).map(str::to_owned);
        out.remember(&run.memory).await;
        let name = &self.agent.name;
        match outcome {
            Outcome::Completed(text) => out.end(&text).await,
            Outcome::InputRequired(question) if asks => {
                run.question = Some(question.clone());
                let call = messages::question(name, &out.hide(&question));
                out.send(vec![call, Chunk::Finish(Finish::Stop)]).await;
                Ok(())
            }
            Outcome::InputRequired(question) => out.end(&progress::unanswered(&question)).await,
            Outcome::AuthRequired(why) => {
                let hint = format!("Set `auth` in the file of the agent {name}, then prompt again.");
                let why = format!("the remote agent needs an authorization: {} {hint}", text::end_sentence(&why));
                Err(run
                    .caller
                    .as_ref()
                    .map_or_else(|| Failure::new(FailureKind::Auth, &*why), |it| it.unauthorized(&why)))
            }
            Outcome::Failed(why) => Err(Failure::new(FailureKind::Garbage, why)),
        }
    }
}

impl Generator for RemotePeer {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let mut run = self.run.lock().await;
            let mut out = Out { sink, credentials: None };
            let res = self.answer(&mut run, &request, &mut out).await;
            res.map_err(|it| {
                let line = it.message.split_whitespace().collect::<Vec<_>>().join(" ");
                Failure { message: out.hide(text::head(&line, MAX_FAILURE)), ..it }
            })
        })
    }

    fn credential_hash(&self, _: &str) -> Option<String> {
        RemoteCredentials::new(self.agent.auth.as_ref(), &self.hands).hash()
    }

    /// Keys come from commands, where the definition says so.
    fn may_block(&self) -> bool {
        true
    }
}

/// The way of chunks to the session. No secret that went to the server comes back on it.
struct Out<'a> {
    sink: &'a mut dyn Sink,
    credentials: Option<Arc<RemoteCredentials>>,
}

impl Out<'_> {
    fn hide(&self, text: &str) -> String {
        self.credentials.as_ref().map_or_else(|| text.to_owned(), |it| it.hide(text))
    }

    async fn send(&mut self, chunks: Vec<Chunk>) {
        if !chunks.is_empty() {
            self.sink.send(chunks).await;
        }
    }

    /// What the agent is about, as it says it.
    async fn think(&mut self, thoughts: Vec<String>) {
        let hidden = |it: String| Chunk::Thought { text: self.hide(&it), signature: None };
        let chunks = thoughts.into_iter().map(hidden).collect();
        self.send(chunks).await;
    }

    async fn remember(&mut self, memory: &Memory) {
        self.send(vec![Chunk::Report(PeerReport::Memory(memory.write()))]).await;
    }

    async fn end(&mut self, text: &str) -> Result<(), Failure> {
        let text = Chunk::Text { text: self.hide(text), signature: None };
        self.send(vec![text, Chunk::Finish(Finish::Stop)]).await;
        Ok(())
    }
}
