//! The loop of the chat: keys, the agent, questions, signals, resizes and draws, one after the other.

mod agent;
mod panels;
mod user;

use std::{
    io,
    path::Path,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use jsonrpsee::core::client::Error;
use serde_json::Value;
use tempfile::TempDir;
use tokio::{sync::mpsc, task::JoinSet};

use super::{
    pickers::{rewind::RewindRow, sessions::SessionRow},
    replay::Replay,
    screen::ChatScreen,
    state::Chat,
};
use crate::cli::{
    client::{
        child::StderrTail,
        client_requests::{Question, RequestHandlers},
        failure::{Exit, Failure},
        key_input::{KeyInput, Typed},
        session_start::OpenedSession,
        signals::UserSignal,
        steering::{Steering, SteeringOutcome},
    },
    render::text::Line,
};
use castor_base::path::AbsPath;
use castor_models::acp_agent::connection::{Incoming, Peer};
use castor_wire::acp::client::PromptAbilities;

/// Requests of the agent that may be open at once; when that many are, nothing more is read.
const MAX_HANDLERS: usize = 64;
/// Updates that are taken before the next look at keys and draws.
const BATCH: usize = 256;
/// Lines and bytes that wait to be drawn: with that, nothing more is read. The end of an answer makes lines of all these
/// bytes at once, and keys wait for that.
const MAX_WAITING: (usize, usize) = (4_000, 24 << 10);

/// All that is listened to.
pub struct ChatSources {
    pub incoming: mpsc::Receiver<Incoming>,
    pub questions: mpsc::Receiver<Question>,
    pub signals: mpsc::Receiver<UserSignal>,
    /// Lines of the agent's stderr.
    pub stderr: mpsc::Receiver<String>,
    pub resizes: mpsc::Receiver<()>,
}

/// What the user types with.
pub enum ChatKeys {
    Keys(Box<KeyInput>),
    Lines(mpsc::Receiver<String>),
}

impl ChatKeys {
    async fn next(&mut self) -> Typed {
        match self {
            Self::Keys(it) => it.next().await,
            Self::Lines(it) => it.recv().await.map_or(Typed::End, Typed::Line),
        }
    }
}

/// An answer that was waited for beside everything else.
enum Reply {
    Opened(Box<Result<Option<OpenedSession>, Failure>>),
    Prompted(Result<Value, Error>),
    /// Another session, by its id.
    Loaded(String, Result<Value, Error>),
    /// A mode or an option was set.
    Set(Result<Value, Error>),
    Checkpoints(Value),
    /// The checkpoints that a session had before this chat.
    Known(Value),
    Servers(Value),
    Rewound(Result<Value, Error>),
    Sessions(Result<Vec<SessionRow>, Error>),
    Found {
        query: String,
        lines: Vec<(String, String)>,
    },
    /// The bytes of an image, or why there is none.
    Clipboard(Result<Vec<u8>, String>),
    /// The user's messages, as events, and what their turns changed.
    Messages(Result<(Value, Value), Error>),
    Files(Vec<String>),
    Notes(Vec<String>),
    /// Nothing is known, and nothing is said about it.
    Nothing,
}

type ReplyFuture = Pin<Box<dyn Future<Output = Reply>>>;

enum ChatEvent {
    Signal(UserSignal),
    Typed(Typed),
    Resized,
    Question(Question),
    Handled,
    Steered(SteeringOutcome),
    Log(String),
    Incoming(Option<Incoming>),
    Reply(Reply),
    Draw,
}

pub struct SessionLoop {
    pub chat: Chat,
    pub screen: ChatScreen,
    link: AgentLink,
    sources: ChatSources,
    keys: ChatKeys,
    pub started: Instant,
    last_key: Instant,
    /// The user's messages that a rewind was offered for.
    messages: Vec<RewindRow>,
    /// What is replayed while a session opens.
    replay: Option<Replay>,
    pub tail: StderrTail,
    /// Images of the clipboard.
    images: Option<TempDir>,
    /// Why the loop ends.
    end: Option<Exit>,
}

/// The connection to the agent.
pub struct AgentLink {
    peer: Peer,
    handlers: RequestHandlers,
    answering: JoinSet<()>,
    replies: FuturesUnordered<ReplyFuture>,
    steering: Steering,
    capabilities: PromptAbilities,
    /// Counts the searches: the last one is wanted.
    searches: Arc<AtomicU64>,
    pub session: Option<String>,
    /// The picker of sessions comes up as soon as there is an agent to ask.
    picks_session: bool,
    cwd: AbsPath,
}

impl AgentLink {
    pub fn new(peer: Peer, handlers: RequestHandlers, cwd: AbsPath) -> Self {
        Self {
            peer,
            handlers,
            answering: JoinSet::new(),
            replies: FuturesUnordered::new(),
            steering: Steering::default(),
            capabilities: PromptAbilities::default(),
            searches: Arc::default(),
            session: None,
            picks_session: false,
            cwd,
        }
    }

    /// Asks the agent beside everything else.
    fn request(
        &self,
        method: &'static str,
        params: Value,
        reply: impl FnOnce(Result<Value, Error>) -> Reply + 'static,
    ) {
        let answer = self.peer.request(method, params);
        self.replies.push(Box::pin(async move { reply(answer.await) }));
    }
}

impl SessionLoop {
    pub fn new(chat: Chat, screen: ChatScreen, link: AgentLink, sources: ChatSources, keys: ChatKeys) -> Self {
        let now = Instant::now();
        Self {
            chat,
            screen,
            link,
            sources,
            keys,
            started: now,
            last_key: now,
            messages: Vec::new(),
            replay: None,
            tail: StderrTail::default(),
            images: None,
            end: None,
        }
    }

    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lives until the user leaves or the agent is gone.
    pub async fn run(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.end {
                return exit;
            }
            let event = self.next_event().await;
            self.handle(event).await;
            for effect in self.chat.take_effects() {
                self.perform(effect).await;
            }
            self.put_off_old_keys();
            let now = self.now();
            self.screen.draw(&mut self.chat, now);
        }
    }

    /// Writes the last words, and gives the terminal back.
    pub async fn finish(mut self, last: &[Line]) {
        let now = self.now();
        self.screen.finish(&mut self.chat, now, last).await;
        if let ChatKeys::Keys(it) = &mut self.keys {
            it.drop_answer();
        }
        drop(self.keys);
    }

    async fn next_event(&mut self) -> ChatEvent {
        let is_behind = self.is_behind();
        let can_read = self.link.answering.len() < MAX_HANDLERS && !is_behind;
        let sources = &mut self.sources;
        // In order of urgency; an answer last, as everything that was written before it comes first.
        tokio::select! {
            biased;
            Some(it) = sources.signals.recv() => ChatEvent::Signal(it),
            it = self.keys.next() => ChatEvent::Typed(it),
            Some(()) = sources.resizes.recv() => ChatEvent::Resized,
            () = self.screen.draw_is_due(&self.chat, self.started) => ChatEvent::Draw,
            Some(it) = sources.questions.recv() => ChatEvent::Question(it),
            Some(_) = self.link.answering.join_next() => ChatEvent::Handled,
            Some(it) = self.link.steering.next() => ChatEvent::Steered(it),
            Some(it) = sources.stderr.recv() => ChatEvent::Log(it),
            it = sources.incoming.recv(), if can_read => ChatEvent::Incoming(it),
            Some(it) = self.link.replies.next(), if !is_behind => ChatEvent::Reply(it),
        }
    }

    /// So much waits to be drawn that nothing may be added.
    fn is_behind(&self) -> bool {
        let (lines, bytes) = self.chat.view.backlog();
        lines >= MAX_WAITING.0 || bytes >= MAX_WAITING.1
    }

    async fn handle(&mut self, event: ChatEvent) {
        let now = self.now();
        match event {
            ChatEvent::Signal(UserSignal::Interrupt) => {
                self.screen.set_urgent();
                self.chat.interrupt(now);
            }
            ChatEvent::Signal(UserSignal::Terminate) => self.end = Some(Exit::Quit),
            ChatEvent::Typed(it) => self.typed(it).await,
            ChatEvent::Resized => {
                self.screen.take_size();
                self.chat.set_stale();
            }
            ChatEvent::Question(it) => self.chat.ask(it, now),
            // The message itself is on the screen.
            ChatEvent::Steered(SteeringOutcome::Read) => (),
            ChatEvent::Steered(SteeringOutcome::Late { typed, .. }) => self.chat.send_after_turn(typed, now),
            ChatEvent::Steered(it) => self.chat.note(&it.in_words()),
            ChatEvent::Log(line) => {
                self.tail.push(&line);
                self.chat.log(&line);
            }
            ChatEvent::Incoming(Some(it)) => self.take_incoming(it),
            ChatEvent::Incoming(None) => {
                self.chat.lose_agent(now);
                self.end = Some(Exit::Failed);
            }
            ChatEvent::Reply(it) => {
                // These were written before the answer.
                while let Ok(it) = self.sources.incoming.try_recv() {
                    self.incoming(it);
                }
                self.reply(it);
            }
            ChatEvent::Handled | ChatEvent::Draw => (),
        }
    }

    /// What is there already comes along: a stream of small updates costs one turn of the loop.
    fn take_incoming(&mut self, first: Incoming) {
        self.incoming(first);
        for _ in 0..BATCH {
            if self.is_behind() {
                return;
            }
            match self.sources.incoming.try_recv() {
                Ok(it) => self.incoming(it),
                Err(_) => return,
            }
        }
    }
}

/// # Errors
/// When signals cannot be heard.
pub fn listen_resizes() -> io::Result<mpsc::Receiver<()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut heard = signal(SignalKind::window_change())?;
    let (to, resizes) = mpsc::channel(1);
    tokio::spawn(async move {
        // One that waits stands for all.
        while heard.recv().await.is_some() {
            if let Err(mpsc::error::TrySendError::Closed(())) = to.try_send(()) {
                return;
            }
        }
    });
    Ok(resizes)
}

/// The folder as it is shown.
pub fn shown_folder(cwd: &Path, home: Option<&str>) -> String {
    let text = cwd.to_string_lossy();
    let rest = home.filter(|it| !it.is_empty()).and_then(|it| text.strip_prefix(it));
    match rest {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("~{rest}"),
        _ => text.into_owned(),
    }
}
