//! The user's side of the loop: keys and lines, and the effects of the chat's state.

use std::time::{Duration, Instant};

use base64::{Engine, prelude::BASE64_STANDARD};

use super::{ChatKeys, SessionLoop};
use crate::cli::{
    chat::{effects::Effect, lower::Draft},
    client::{
        attachments::{AttachmentFolder, names_files},
        key_input::Typed,
        keys::KeyPress,
        prompt::Prompt,
        terminal::TypedBytes,
    },
};
use castor_base::path::AbsPath;
use castor_client::{
    failure::Exit,
    machine::{ClientRequest, RewindWhat},
};
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
        let machine = &mut self.link.machine;
        match effect {
            Effect::Prompt(draft) => self.prompt(draft),
            Effect::Answer(number, answer) => machine.answer(number, answer),
            Effect::Steer(text) => machine.steer(text),
            Effect::Cancel => machine.cancel(),
            Effect::Ask(request) => {
                if let ClientRequest::Rewind { prompt, what } = &request {
                    self.messages.retain(|it| it.prompt == *prompt && *what != RewindWhat::Files);
                } else if request == ClientRequest::Redo {
                    self.messages.clear();
                }
                machine.ask(request);
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
            Effect::ListSessions => machine.list_sessions(),
            Effect::ListMessages => _ = machine.ask(ClientRequest::Messages),
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
        let (prompt, notes) = read_files(draft, &self.place.cwd);
        notes.iter().for_each(|it| self.chat.note(it));
        let blocks = prompt.into_blocks(self.place.capabilities);
        let blocks = match blocks {
            Ok(it) => it,
            Err(failure) => {
                let now = self.now();
                return self.chat.prompted(Err(failure), now);
            }
        };
        self.link.machine.prompt(blocks, None);
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
