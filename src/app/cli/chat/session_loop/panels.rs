//! Leaves of composer and pickers: files, earlier messages, the editor, sessions, rewinds.

use jsonrpsee::core::client::Error;
use serde_json::{Value, json};

use super::{ChatKeys, Reply, SessionLoop, agent::words};
use crate::{
    app::{
        cli::{
            chat::{
                file_list::list_files,
                history_file::HistoryFile,
                lower::{Draft, News},
                pickers::{
                    rewind::{RewindPicker, RewindRow},
                    sessions::{SessionPicker, SessionRow},
                },
                text_editor::edit_text,
            },
            run::{failure::Exit, turn::UserSignal},
        },
        settings::{self, Sources},
    },
    world::{secrets::Env, workspace::folder_config},
};

/// The user's messages that a rewind offers.
const MAX_MESSAGES: usize = 500;

impl SessionLoop {
    /// The messages of earlier chats in this folder, and whether the user types with the keys of vi.
    pub fn load_habits(&mut self) {
        let ground = folder_config::load(&Env::from_process(), &self.link.cwd);
        if settings::takes_vi_keys(Sources { layers: &ground.layers(), env: &ground.env, flags: &[] }) {
            let now = self.now();
            self.chat.tell(&News::ViKeys, now);
        }
        if let Some(it) = self.history_file() {
            let now = self.now();
            self.chat.tell(&News::History(it.load()), now);
        }
    }

    fn history_file(&self) -> Option<HistoryFile> {
        HistoryFile::of_folder(&Env::from_process(), &self.link.cwd.to_string())
    }

    pub(super) fn remember(&self, text: String) {
        let Some(file) = self.history_file() else { return };
        let added = tokio::task::spawn_blocking(move || file.add(&text));
        self.link.replies.push(Box::pin(async move {
            match added.await {
                Ok(Err(error)) => Reply::Notes(vec![format!("this message is not in the history: {error}")]),
                _ => Reply::Nothing,
            }
        }));
    }

    pub(super) fn find_files(&self) {
        let cwd = self.link.cwd.clone();
        let found = tokio::task::spawn_blocking(move || list_files(&cwd, &Env::from_process()));
        self.link.replies.push(Box::pin(async move { found.await.map_or(Reply::Nothing, Reply::Files) }));
    }

    /// The editor has the terminal until it ends; what the agent says meanwhile waits.
    pub(super) async fn edit_text(&mut self, text: String) {
        let ChatKeys::Keys(keys) = &self.keys else { return };
        self.screen.erase().await;
        keys.lend();
        let cwd = self.link.cwd.clone();
        let mut edited = tokio::task::spawn_blocking(move || edit_text(&text, &Env::from_process(), &cwd));
        let edited = loop {
            tokio::select! {
                it = &mut edited => break it.unwrap_or_else(|it| Err(it.to_string())),
                it = self.sources.signals.recv() => {
                    if it != Some(UserSignal::Interrupt) {
                        self.end = Some(Exit::Quit);
                        return;
                    }
                }
            }
        };
        keys.take_again();
        self.screen.take_size();
        self.screen.leave();
        let now = self.now();
        let edited = edited.map_err(|why| self.chat.note(&why)).ok();
        self.chat.tell(&News::Edited(edited), now);
    }

    pub(super) fn list_sessions(&self) {
        self.link.request("session/list", json!({}), Reply::Sessions);
    }

    pub(super) fn show_sessions(&mut self, answer: Result<Value, Error>) {
        match answer {
            Ok(listing) => {
                let rows = SessionRow::read_all(&listing);
                let picker = SessionPicker::new(rows, &self.link.cwd.to_string(), jiff::Zoned::now());
                self.chat.open_picker(Box::new(picker));
            }
            Err(error) => self.chat.note(&words(&error)),
        }
    }

    pub(super) fn list_messages(&self) {
        let session = json!(self.link.session);
        let wanted =
            json!({"sessionId": session, "threadId": "", "types": ["message"], "numRecentEvents": MAX_MESSAGES});
        let messages = self.link.peer.request("_castor/session/events", wanted);
        let changes = self.link.peer.request("_castor/session/checkpoints", json!({"sessionId": session}));
        self.link.replies.push(Box::pin(async move {
            let messages = messages.await;
            // Without checkpoints there is still the conversation to go back in.
            let changes = changes.await.unwrap_or_default();
            Reply::Messages(messages.map(|it| (it, changes)))
        }));
    }

    pub(super) fn show_messages(&mut self, answer: Result<(Value, Value), Error>) {
        let (messages, changes) = match answer {
            Ok(it) => it,
            Err(error) => return self.chat.note(&words(&error)),
        };
        let mut rows = RewindRow::read_all(&messages);
        RewindRow::add_changes(&mut rows, &changes, &self.link.cwd.to_string());
        self.messages.clone_from(&rows);
        self.chat.open_picker(Box::new(RewindPicker::new(rows)));
    }

    /// A message that was taken back is the user's again.
    pub(super) fn rewound(&mut self, answer: Result<Value, Error>) {
        let (now, messages) = (self.now(), std::mem::take(&mut self.messages));
        match answer {
            Ok(_) => {
                let params = json!({"sessionId": self.link.session});
                let changes = |it: Result<Value, Error>| it.map_or(Reply::Nothing, Reply::Checkpoints);
                self.link.request("_castor/session/checkpoints", params, changes);
                let [row] = &messages[..] else { return self.chat.note("the files are as they were") };
                self.chat.note("rewound; what the screen shows above is no longer part of the conversation");
                let draft = Draft { text: row.text.clone(), files: Vec::new() };
                self.chat.tell(&News::Draft(draft), now);
            }
            Err(error) => self.chat.note(&words(&error)),
        }
    }
}
