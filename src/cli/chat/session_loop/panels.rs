//! Leaves of composer and pickers: files, earlier messages, editor and pager, clipboard, sessions, rewinds.

use std::{io, mem, sync::atomic::Ordering};

use serde_json::Value;

use super::{ChatKeys, JobResult, SessionLoop};
use crate::cli::{
    chat::{
        clipboard,
        file_list::list_files,
        history_file::HistoryFile,
        lower::{Draft, News, ProposedText},
        pickers::{
            rewind::{RewindPicker, RewindRow},
            sessions::{SessionPicker, SessionRow},
        },
        session_search::find_in_texts,
        text_editor::{edit_text, page_text},
    },
    client::signals::UserSignal,
    render::text::Line,
};
use castor_agent::settings::{self, Sources};
use castor_base::path::AbsPath;
use castor_client::{
    failure::{Exit, RequestFailure},
    machine::ClientRequest,
};
use castor_hands::{disk, secrets::Env};
use castor_store::sessions::SessionStore;
use castor_tools::workspace::{self, folder_config};
use castor_wire::acp::client::AgentSession;

/// What an editor knows a message by.
const MESSAGE_FILE: &str = "message.md";

impl SessionLoop {
    /// The messages of earlier chats in this folder, and whether the user types with the keys of vi.
    pub fn load_habits(&mut self) {
        let ground = folder_config::load(&Env::from_process(), &self.place.cwd);
        if settings::takes_vi_keys(Sources { layers: ground.layers(), env: &ground.env, flags: &[] }) {
            let now = self.now();
            self.chat.tell(&News::ViKeys, now);
        }
        if let Some(it) = self.history_file() {
            let now = self.now();
            self.chat.tell(&News::History(it.load()), now);
        }
    }

    /// The terminal's background decides about the colours; its answer comes among the keys.
    pub async fn ask_background(&mut self) {
        let is_asked = self.screen.ask_background().await;
        if let ChatKeys::Keys(it) = &mut self.keys {
            it.await_background(is_asked);
        }
    }

    fn history_file(&self) -> Option<HistoryFile> {
        HistoryFile::of_folder(&Env::from_process(), &self.place.cwd.to_string())
    }

    /// What was typed when the agent was gone is found in the history of the next chat. Blocks.
    pub fn keep_unsent(&mut self) {
        if let (Some(text), Some(file)) = (self.chat.take_unsent(), self.history_file())
            && let Err(error) = file.add(&text)
        {
            self.chat.note(&format!("it is not in the history: {error}"));
        }
    }

    pub(super) fn remember(&self, text: String) {
        let Some(file) = self.history_file() else { return };
        let added = tokio::task::spawn_blocking(move || file.add(&text));
        self.jobs.push(Box::pin(async move {
            match added.await {
                Ok(Err(error)) => JobResult::Notes(vec![format!("this message is not in the history: {error}")]),
                _ => JobResult::Nothing,
            }
        }));
    }

    pub(super) fn find_files(&self) {
        let cwd = self.place.cwd.clone();
        let found = tokio::task::spawn_blocking(move || list_files(&cwd, &Env::from_process()));
        self.jobs.push(Box::pin(async move { found.await.map_or(JobResult::Nothing, JobResult::Files) }));
    }

    pub(super) async fn edit_text(&mut self, text: String) {
        let edited = self.run_program(move |env, cwd| edit_text(&text, MESSAGE_FILE, env, cwd)).await;
        let Some(edited) = edited else { return };
        let now = self.now();
        let edited = edited.map_err(|why| self.chat.note(&why)).ok();
        self.chat.tell(&News::Edited(edited), now);
    }

    /// The answer to a permission request is one of its options: the changes reach the agent as the reason of a no.
    pub(super) async fn edit_proposal(&mut self, proposed: ProposedText) {
        let name = proposed.path.rsplit('/').next().unwrap_or_default().to_owned();
        let text = proposed.text.clone();
        let edited = self.run_program(move |env, cwd| edit_text(&text, &name, env, cwd)).await;
        let now = self.now();
        match edited {
            Some(Ok(edited)) if edited == proposed.text => self.chat.note("nothing was edited; the question stays"),
            Some(Ok(edited)) => self.chat.answer_with_edit(&proposed, &edited, now),
            Some(Err(why)) => self.chat.note(&why),
            None => (),
        }
    }

    pub(super) async fn page(&mut self, lines: &[Line]) {
        let (colored, plain) =
            (self.screen.painted(lines), lines.iter().map(|it| it.text() + "\n").collect::<String>());
        let shown = self.run_program(move |env, cwd| page_text(&colored, &plain, env, cwd)).await;
        if let Some(Err(why)) = shown {
            self.chat.note(&why);
        }
    }

    /// A program of the user's has the terminal until it ends; what the agent says meanwhile waits. `None`: the chat ends, or
    /// this terminal gives lines only.
    async fn run_program<T: Send + 'static>(
        &mut self,
        run: impl FnOnce(&Env, &AbsPath) -> Result<T, String> + Send + 'static,
    ) -> Option<Result<T, String>> {
        let ChatKeys::Keys(keys) = &self.keys else { return None };
        self.screen.erase().await;
        keys.lend();
        let cwd = self.place.cwd.clone();
        let mut running = tokio::task::spawn_blocking(move || run(&Env::from_process(), &cwd));
        let res = loop {
            tokio::select! {
                it = &mut running => break it.unwrap_or_else(|it| Err(it.to_string())),
                it = self.sources.signals.recv() => {
                    if it != Some(UserSignal::Interrupt) {
                        self.end = Some(Exit::Quit);
                        return None;
                    }
                }
            }
        };
        keys.take_again();
        self.screen.take_size();
        self.screen.leave();
        self.chat.set_stale();
        Some(res)
    }

    pub(super) fn read_clipboard(&self) {
        let cwd = self.place.cwd.clone();
        self.jobs.push(Box::pin(async move {
            JobResult::Clipboard(clipboard::read_image(&Env::from_process(), &cwd).await)
        }));
    }

    /// A file of its own, until the chat ends: the message names it.
    pub(super) fn take_image(&mut self, image: Result<Vec<u8>, String>) {
        let kept = image.and_then(|it| self.keep_image(&it).map_err(|it| format!("the image cannot be kept: {it}")));
        let now = self.now();
        match kept {
            Ok(path) => self.chat.tell(&News::Image(path), now),
            Err(why) => self.chat.note(&why),
        }
    }

    fn keep_image(&mut self, image: &[u8]) -> io::Result<String> {
        let folder = match self.images.take() {
            Some(it) => it,
            None => tempfile::Builder::new().prefix("castor-images-").tempdir()?,
        };
        let name = format!("clipboard-{}.png", self.now().as_millis());
        let path = AbsPath::new(folder.path().join(name)).ok_or(io::ErrorKind::InvalidInput)?;
        self.images = Some(folder);
        disk::write_private(&path, image).map(|()| path.to_string())
    }

    pub(super) fn show_sessions(&mut self, sessions: Result<Vec<AgentSession>, RequestFailure>) {
        match sessions {
            Ok(mut sessions) => {
                // Whoever asks for the list at the start wants none of the session that is just open, and empty.
                if mem::take(&mut self.place.picks_session) {
                    let own = self.link.machine.open_session();
                    sessions.retain(|it| Some(it.session_id.as_str()) != own);
                }
                let rows = sessions.into_iter().map(SessionRow::from).collect();
                let picker = SessionPicker::new(rows, &self.place.cwd.to_string(), jiff::Zoned::now());
                self.chat.open_picker(Box::new(picker));
            }
            Err(failure) => self.chat.note(&failure.in_words()),
        }
        self.chat.set_stale();
    }

    /// In castor's own logs. A search that is older than the last one gives up.
    pub(super) fn search_sessions(&self, query: String, ids: Vec<String>) {
        let Some(home) = workspace::castor_home(&Env::from_process()) else { return };
        let searches = self.place.searches.clone();
        let own = searches.fetch_add(1, Ordering::Relaxed) + 1;
        let found = tokio::task::spawn_blocking(move || {
            let is_wanted = || searches.load(Ordering::Relaxed) == own;
            let lines = find_in_texts(&SessionStore::new(home), &ids, &query, is_wanted);
            (query, lines)
        });
        self.jobs.push(Box::pin(async move {
            found.await.map_or(JobResult::Nothing, |(query, lines)| JobResult::Found { query, lines })
        }));
    }

    pub(super) fn show_messages(&mut self, changes: &Value) {
        RewindRow::add_changes(&mut self.messages, changes, &self.place.cwd.to_string());
        self.chat.open_picker(Box::new(RewindPicker::new(self.messages.clone())));
    }

    /// A message that was taken back is the user's again.
    pub(super) fn rewound(&mut self) {
        let (now, messages) = (self.now(), mem::take(&mut self.messages));
        self.link.machine.ask(ClientRequest::Changes);
        let [row] = &messages[..] else { return self.chat.note("the files are as they were") };
        self.chat.note("rewound; what the screen shows above is no longer part of the conversation");
        let draft = Draft { text: row.text.clone(), files: Vec::new() };
        self.chat.tell(&News::Draft(draft), now);
    }
}
