//! The user's side of the loop: keys and lines, and the effects of the chat's state.

use std::time::{Duration, Instant};

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;

use super::{ChatKeys, Reply, SessionLoop};
use crate::cli::{
    chat::{
        effects::Effect,
        lower::{Draft, RewindWhat},
    },
    client::{
        attachments::{AttachmentFolder, names_files},
        failure::Exit,
        key_input::Typed,
        keys::KeyPress,
        prompt::Prompt,
        terminal::TypedBytes,
    },
};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;

/// Whoever pressed no key for so long may look elsewhere.
const AWAY: Duration = Duration::from_secs(5);
/// A terminal that was asked answers within this, or never.
const ANSWER_TIME: Duration = Duration::from_secs(2);

impl SessionLoop {
    pub async fn typed(&mut self, typed: Typed) {
        self.screen.set_urgent();
        self.last_key = Instant::now();
        match typed {
            Typed::Bytes(bytes) => self.keys(&bytes),
            Typed::Line(line) => {
                let now = self.now();
                let more = self.chat.line(&line, now);
                self.screen.take_line(&self.chat, more).await;
            }
            Typed::Resumed => {
                self.screen.take_size();
                self.screen.leave();
                self.chat.set_stale();
            }
            Typed::End => self.end = Some(Exit::Done),
        }
    }

    fn keys(&mut self, bytes: &TypedBytes) {
        let is_late = self.now() > ANSWER_TIME;
        let ChatKeys::Keys(input) = &mut self.keys else { return };
        if is_late {
            input.await_background(false);
        }
        for key in input.decode(bytes) {
            if let KeyPress::Background { is_light } = key {
                self.screen.set_background(is_light);
                continue;
            }
            if key == KeyPress::Ctrl('z') {
                // Terminals that tell all keys apart send no signal for it.
                if let ChatKeys::Keys(it) = &self.keys {
                    it.stop();
                }
                continue;
            }
            // An answer brings up the next question: the rest of these keys is older than that.
            let is_current = matches!(&self.keys, ChatKeys::Keys(it) if it.is_current(bytes));
            if is_current {
                let now = self.now();
                self.chat.key(&key, now);
            }
            self.put_off_old_keys();
        }
    }

    /// A question came up: what was typed and not read yet cannot mean it.
    pub fn put_off_old_keys(&mut self) {
        if !self.chat.take_outdated() {
            return;
        }
        let now = self.now();
        if let ChatKeys::Keys(input) = &mut self.keys {
            for key in input.discard() {
                self.chat.typed_before(&key, now);
            }
        }
    }

    pub async fn perform(&mut self, effect: Effect) {
        let session = json!(self.link.session);
        match effect {
            Effect::Prompt(draft) => self.prompt(draft),
            Effect::Steer(text) => {
                self.link.steering.send(&self.link.peer, self.link.session.as_deref(), &text);
            }
            Effect::Cancel => self.link.peer.notify("session/cancel", json!({"sessionId": session})).await,
            Effect::SetMode(mode) => {
                let params = json!({"sessionId": session, "modeId": mode});
                self.link.request("session/set_mode", params, Reply::Set);
            }
            Effect::SetOption { id, value } => {
                let params = json!({"sessionId": session, "configId": id, "value": value});
                self.link.request("session/set_config_option", params, Reply::Set);
            }
            Effect::Rewind { prompt, what } => {
                self.messages.retain(|it| it.prompt == prompt && what != RewindWhat::Files);
                let what = match what {
                    RewindWhat::Both => "both",
                    RewindWhat::Files => "files",
                    RewindWhat::Conversation => "conversation",
                };
                let params = json!({"sessionId": session, "messageId": prompt, "what": what});
                self.link.request("_castor/session/rewind", params, Reply::Rewound);
            }
            Effect::Copy(text) => {
                let text = format!("\u{1b}]52;c;{}\u{7}", BASE64_STANDARD.encode(text));
                self.screen.write(text).await;
            }
            Effect::CallUser(words) if self.last_key.elapsed() >= AWAY => {
                self.screen.write(format!("\u{7}\u{1b}]9;{words}\u{7}")).await;
            }
            Effect::CallUser(_) => (),
            Effect::OpenSession(id) => self.load(id),
            Effect::ListSessions => self.list_sessions(),
            Effect::ListMessages => self.list_messages(),
            Effect::Redo => {
                self.messages.clear();
                let params = json!({"sessionId": session, "redo": true});
                self.link.request("_castor/session/rewind", params, Reply::Rewound);
            }
            Effect::FindFiles(_) => self.find_files(),
            Effect::SearchSessions { query, ids } => self.search_sessions(query, ids),
            Effect::ReadClipboard => self.read_clipboard(),
            Effect::Page(lines) => self.page(&lines).await,
            Effect::EditProposal(it) => self.edit_proposal(it).await,
            Effect::EditText(text) => self.edit_text(text).await,
            Effect::Remember(text) => self.remember(text),
            Effect::Quit => self.end = Some(Exit::Done),
        }
    }

    fn prompt(&mut self, draft: Draft) {
        let (prompt, notes) = read_files(draft, &self.link.cwd);
        notes.iter().for_each(|it| self.chat.note(it));
        let blocks = prompt.into_blocks(self.link.capabilities);
        let blocks = match blocks {
            Ok(it) => it,
            Err(failure) => {
                let now = self.now();
                return self.chat.prompted(Err(failure), now);
            }
        };
        let params = json!({"sessionId": self.link.session, "prompt": blocks});
        self.link.request("session/prompt", params, Reply::Prompted);
    }
}

/// The prompt with the files that a message names.
fn read_files(draft: Draft, cwd: &AbsPath) -> (Prompt, Vec<String>) {
    let Draft { text, files } = draft;
    let mut prompt = Prompt { text, ..Prompt::default() };
    let mut notes = Vec::new();
    let is_named = names_files(&prompt.text);
    if (is_named || !files.is_empty())
        && let Some(folder) = AttachmentFolder::load(cwd, &Env::from_process())
    {
        if is_named {
            let found = folder.find_files(&prompt.text);
            (prompt.attachments, notes) = (found.attachments, found.notes);
        }
        for it in &files {
            match folder.read_media(it) {
                Ok(it) => prompt.attachments.push(it),
                Err(why) => notes.push(why),
            }
        }
    }
    (prompt, notes)
}
