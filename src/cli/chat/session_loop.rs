//! The loop of the chat: keys, the agent, signals, resizes and draws, one after the other.

mod agent;
mod panels;
mod user;

use std::{
    future, io,
    path::Path,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64},
    time::{Duration, Instant},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tempfile::TempDir;
use tokio::sync::mpsc;

use super::{lower::News, pickers::rewind::RewindRow, replay::Replay, screen::ChatScreen, state::Chat};
use crate::cli::{
    client::{
        key_input::{KeyInput, Typed},
        link::{AgentLink, LinkEvent},
        signals::UserSignal,
    },
    render::text::Line,
};
use castor_base::path::AbsPath;
use castor_client::failure::Exit;
use castor_wire::acp::client::PromptAbilities;

/// Updates that are taken before the next look at keys and draws.
const BATCH: usize = 256;
/// Lines and bytes that wait to be drawn: with that, nothing more is read. The end of an answer makes lines of all these
/// bytes at once, and keys wait for that.
const MAX_WAITING: (usize, usize) = (4_000, 24 << 10);

/// Signals and resizes.
pub struct ChatSources {
    pub signals: mpsc::Receiver<UserSignal>,
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

/// The result of a job of this machine's, which was waited for beside everything else.
enum JobResult {
    Found {
        query: String,
        lines: Vec<(String, String)>,
    },
    /// The bytes of an image, or why there is none.
    Clipboard(Result<Vec<u8>, String>),
    Files(Vec<String>),
    Notes(Vec<String>),
    /// Nothing is known, and nothing is said about it.
    Nothing,
}

type JobFuture = Pin<Box<dyn Future<Output = JobResult>>>;

enum ChatEvent {
    Signal(UserSignal),
    Typed(Typed),
    Resized,
    Link(LinkEvent),
    Job(JobResult),
    Draw,
}

pub struct SessionLoop {
    pub chat: Chat,
    pub screen: ChatScreen,
    pub link: AgentLink,
    sources: ChatSources,
    keys: ChatKeys,
    jobs: FuturesUnordered<JobFuture>,
    place: ChatPlace,
    last_key: Instant,
    /// The user's messages that a rewind was offered for.
    messages: Vec<RewindRow>,
    /// What is replayed while a session opens.
    replay: Option<Replay>,
    /// Images of the clipboard.
    images: Option<TempDir>,
    /// Why the loop ends.
    end: Option<Exit>,
}

/// The folder of the chat, and what its agent takes.
pub struct ChatPlace {
    cwd: AbsPath,
    capabilities: PromptAbilities,
    /// Counts the searches: the last one is wanted.
    searches: Arc<AtomicU64>,
    /// The picker of sessions comes up as soon as there is an agent to ask.
    picks_session: bool,
}

impl ChatPlace {
    pub fn new(cwd: AbsPath) -> Self {
        Self { cwd, capabilities: PromptAbilities::default(), searches: Arc::default(), picks_session: false }
    }
}

impl SessionLoop {
    pub fn new(
        view: (Chat, ChatScreen),
        link: AgentLink,
        place: ChatPlace,
        sources: ChatSources,
        keys: ChatKeys,
    ) -> Self {
        let (chat, screen) = view;
        Self {
            chat,
            screen,
            link,
            sources,
            keys,
            jobs: FuturesUnordered::new(),
            place,
            last_key: Instant::now(),
            messages: Vec::new(),
            replay: None,
            images: None,
            end: None,
        }
    }

    pub fn now(&self) -> Duration {
        self.link.now()
    }

    /// Lives until the user leaves or the agent is gone.
    pub async fn run(&mut self) -> Exit {
        loop {
            self.link.carry_out().await;
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
        let sources = &mut self.sources;
        // In order of urgency.
        tokio::select! {
            biased;
            Some(it) = sources.signals.recv() => ChatEvent::Signal(it),
            it = self.keys.next() => ChatEvent::Typed(it),
            Some(()) = sources.resizes.recv() => ChatEvent::Resized,
            () = self.screen.draw_is_due(&self.chat, self.link.started) => ChatEvent::Draw,
            it = self.link.next(future::ready(())), if !is_behind => ChatEvent::Link(it),
            Some(it) = self.jobs.next(), if !is_behind => ChatEvent::Job(it),
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
            ChatEvent::Link(LinkEvent::Log(line)) => self.chat.log(&line),
            ChatEvent::Link(LinkEvent::Turned) => self.take_batch(),
            ChatEvent::Link(LinkEvent::Lost) => {
                self.chat.lose_agent(now);
                self.end = Some(Exit::Failed);
            }
            ChatEvent::Job(it) => self.take_result(it),
            ChatEvent::Draw => (),
        }
    }

    /// What is there already comes along: a stream of small updates costs one turn of the loop.
    fn take_batch(&mut self) {
        self.take_all_news();
        for _ in 0..BATCH {
            if self.is_behind() || !self.link.take_more() {
                return;
            }
            self.take_all_news();
        }
    }

    fn take_result(&mut self, result: JobResult) {
        let now = self.now();
        match result {
            JobResult::Found { query, lines } => self.chat.tell(&News::Found { query, lines }, now),
            JobResult::Clipboard(image) => self.take_image(image),
            JobResult::Files(paths) => self.chat.tell(&News::Files { query: String::new(), paths }, now),
            JobResult::Notes(notes) => notes.iter().for_each(|it| self.chat.note(it)),
            JobResult::Nothing => (),
        }
        self.chat.set_stale();
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
