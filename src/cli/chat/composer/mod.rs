//! Composer of the chat: where a message is written. Keys and pastes in; lines and actions out. No clock, disk, terminal.

pub mod buffer;
pub mod completion;
mod draw;
mod editing;
pub mod folds;
pub mod history;
pub mod key_help;
mod local_commands;
pub mod rows;
pub mod vi;

#[cfg(test)]
mod tests;

use std::cell::Cell;

use self::{
    buffer::EditBuffer,
    completion::{Completion, Token, escape},
    folds::{Folds, plain},
    history::{HistorySearch, InputHistory},
    local_commands::LocalCommand,
    vi::{ViAnswer, ViKeys},
};
use super::lower::{Action, AgentPhase, Draft, Drawn, Key, News, Panel, SlashCommand, Theme};

/// A longer message is not remembered.
const MAX_REMEMBERED: usize = 10_000;

#[derive(Debug, Default)]
pub struct Composer {
    buffer: EditBuffer,
    folds: Folds,
    history: InputHistory,
    search: Option<HistorySearch>,
    completion: Option<Completion>,
    offers: Offers,
    vi: Option<ViKeys>,
    state: ComposerState,
    /// The column that up and down keep to.
    goal: Option<usize>,
    /// Columns for text, as they were drawn last: up and down go by rows of the screen.
    columns: Cell<usize>,
}

/// What can be completed.
#[derive(Debug, Default)]
struct Offers {
    commands: Vec<SlashCommand>,
    files: Vec<String>,
    /// The frame was asked about the word that is typed now.
    is_asked: bool,
    /// The user closed the list of this word.
    is_closed: bool,
}

#[derive(Debug, Default)]
struct ComposerState {
    agent: AgentPhase,
    is_foreign: bool,
    /// The table of keys is shown.
    is_help: bool,
    /// The next Esc does something.
    is_armed: bool,
    /// After Ctrl-X.
    is_prefixed: bool,
}

impl Composer {
    pub fn new(has_vi_keys: bool) -> Self {
        Self { vi: has_vi_keys.then(ViKeys::default), ..Self::default() }
    }

    /// Text before the user's first key, which stays in front of what was typed already.
    pub fn prefill(&mut self, text: &str) {
        self.buffer.set_text(&plain(text));
    }

    /// Empties it; gives whether there was something. Undo does not bring it back, a yank does.
    pub fn clear(&mut self) -> bool {
        let had_text = !self.buffer.is_empty();
        self.buffer.kill(0..self.buffer.text().len());
        self.search = None;
        self.completion = None;
        self.history.leave();
        had_text
    }

    fn draft(&self) -> Draft {
        let mut draft = self.folds.unfold(self.buffer.text());
        draft.text.truncate(draft.text.trim_end().len());
        draft
    }

    /// The message, and an empty composer.
    fn take(&mut self, out: &mut Vec<Action>) -> Option<Draft> {
        let draft = self.draft();
        if draft.text.trim().is_empty() {
            return None;
        }
        // A line with a blank in front is forgotten, as in shells.
        if !draft.text.starts_with(' ') && draft.text.len() <= MAX_REMEMBERED {
            self.history.push(&draft.text);
            out.push(Action::Remember(draft.text.clone()));
        } else {
            self.history.leave();
        }
        self.buffer.take();
        self.folds.clear();
        if let Some(it) = &mut self.vi {
            it.reset();
        }
        Some(draft)
    }

    fn submit(&mut self, out: &mut Vec<Action>) {
        if let Some(local) = LocalCommand::find(self.buffer.text(), &self.offers.commands) {
            self.buffer.take();
            return self.run_local(local, out);
        }
        let draft = self.take(out);
        out.extend(draft.map(Action::Submit));
    }

    fn run_local(&mut self, command: LocalCommand, out: &mut Vec<Action>) {
        match command {
            LocalCommand::Sessions => out.push(Action::OpenSessions),
            LocalCommand::Options => out.push(Action::OpenOptions),
            LocalCommand::Rewind => out.push(Action::OpenRewind),
            LocalCommand::Keys => self.state.is_help = true,
            LocalCommand::Vi => self.vi = self.vi.is_none().then(ViKeys::default),
            LocalCommand::Quit => out.push(Action::Quit),
        }
    }

    fn queue(&mut self, out: &mut Vec<Action>) {
        let draft = self.take(out);
        out.extend(draft.map(Action::Queue));
    }

    /// Enter. A backslash at the end asks for another line.
    fn enter(&mut self, out: &mut Vec<Action>) {
        if self.buffer.after().is_empty() && self.buffer.before().ends_with('\\') {
            let end = self.buffer.cursor();
            return self.buffer.replace(end - 1..end, "\n");
        }
        self.submit(out);
    }

    fn escape(&mut self, out: &mut Vec<Action>) {
        let was_armed = std::mem::take(&mut self.state.is_armed);
        if self.state.agent.is_working() {
            return out.push(Action::Cancel);
        }
        match (was_armed, self.buffer.is_empty()) {
            (false, _) => self.state.is_armed = true,
            (true, true) => out.push(Action::OpenRewind),
            (true, false) => _ = self.clear(),
        }
    }

    /// Opens, changes or closes the list under the word at the cursor.
    fn refresh_completion(&mut self, out: &mut Vec<Action>) {
        let token = Token::find(self.buffer.before());
        let Some(token) = token.filter(|_| self.search.is_none() && !self.history.is_walking()) else {
            self.completion = None;
            (self.offers.is_asked, self.offers.is_closed) = (false, false);
            return;
        };
        if !std::mem::replace(&mut self.offers.is_asked, true) {
            out.push(match &token {
                Token::File { query, .. } => Action::NeedFiles { query: query.clone() },
                Token::Command { .. } => Action::NeedCommands,
            });
        }
        self.completion = match token {
            _ if self.offers.is_closed => None,
            Token::File { .. } => Completion::files(token, &self.offers.files),
            Token::Command { .. } => Completion::commands(token, &local_commands::with_local(&self.offers.commands)),
        };
    }

    /// Puts the chosen candidate into the text. Enter on a name that is typed in whole sends the message.
    fn accept(&mut self, is_enter: bool, out: &mut Vec<Action>) {
        let Some(it) = self.completion.take() else { return };
        let Some(chosen) = it.chosen().cloned() else { return };
        match it.token {
            Token::File { query, .. } | Token::Command { query } if is_enter && query == chosen.name => {
                return self.submit(out);
            }
            Token::Command { .. } => self.buffer.replace(0..self.buffer.cursor(), &format!("/{} ", chosen.name)),
            Token::File { at, .. } => {
                // One goes on into a folder.
                let end = if chosen.name.ends_with('/') { "" } else { " " };
                let text = format!("@{}{end}", escape(&plain(&chosen.name)));
                self.buffer.replace(at..self.buffer.cursor(), &text);
            }
        }
        self.refresh_completion(out);
    }

    /// Keys while a list is open; `false`: the key is none of them.
    fn completion_key(&mut self, key: &Key, out: &mut Vec<Action>) -> bool {
        let Some(it) = &mut self.completion else { return false };
        match key {
            Key::Up | Key::Ctrl('p') => it.step(false),
            Key::Down | Key::Ctrl('n') => it.step(true),
            Key::Tab => self.accept(false, out),
            Key::Enter => self.accept(true, out),
            Key::Esc => {
                self.completion = None;
                self.offers.is_closed = true;
            }
            _ => return false,
        }
        true
    }

    /// Keys while the history is searched; `false`: the key ends the search, and is still to be taken.
    fn search_key(&mut self, key: &Key) -> bool {
        let Some(mut search) = self.search.take() else { return false };
        let mut end = search.at.map_or(self.history.count(), |it| it + 1);
        match key {
            Key::Char(it) => search.words.push(*it),
            Key::Paste(it) => search.words.extend(plain(it).chars().filter(|it| *it != '\n').take(200)),
            Key::Backspace => {
                search.words.pop();
                end = self.history.count();
            }
            Key::Ctrl('r') | Key::Up => end = search.at.unwrap_or_default(),
            Key::Esc | Key::Ctrl('g' | 'c') => {
                self.buffer.set_text(&search.typed);
                return true;
            }
            Key::Enter => return true,
            _ => return false,
        }
        let found = self.history.find(&search.words, end).filter(|_| !search.words.is_empty());
        match found.map(|(at, text)| (at, text.to_owned())) {
            Some((at, text)) => {
                search.at = Some(at);
                self.buffer.set_text(&text);
            }
            // The last that had the words stays; with other words there is none.
            None if !matches!(key, Key::Ctrl('r') | Key::Up) => search.at = None,
            None => (),
        }
        self.search = Some(search);
        true
    }

    fn open_search(&mut self) {
        let typed = self.buffer.text().to_owned();
        self.search = Some(HistorySearch { words: String::new(), at: None, typed });
    }
}

impl Panel for Composer {
    fn key(&mut self, key: &Key, out: &mut Vec<Action>) {
        if self.state.is_help {
            self.state.is_help = false;
            if matches!(key, Key::Esc | Key::Enter | Key::Char('?' | 'q')) {
                return;
            }
        }
        if self.search_key(key) {
            return;
        }
        if self.completion_key(key, out) {
            return;
        }
        if !matches!(key, Key::Esc) {
            self.state.is_armed = false;
        }
        let answer = match &mut self.vi {
            Some(it) => it.key(key, &mut self.buffer),
            None => ViAnswer::Pass(key.clone()),
        };
        if let ViAnswer::Pass(key) = answer {
            self.plain_key(&key, out);
        }
        self.refresh_completion(out);
    }

    fn tell(&mut self, news: &News, out: &mut Vec<Action>) {
        match news {
            News::Files { paths, .. } => paths.clone_into(&mut self.offers.files),
            News::Commands(all) => all.clone_into(&mut self.offers.commands),
            News::History(all) => self.history.load(all.iter().map(|it| plain(it)).collect()),
            News::Edited(Some(text)) => {
                let text = self.folds.refold(text.trim_end());
                self.buffer.set_text(&text);
            }
            News::Edited(None) => (),
            News::Agent(it) => self.state.agent = *it,
            News::Image(path) => {
                let image = self.folds.fold_image(path);
                self.buffer.insert(&image);
            }
            News::Found { .. } => (),
            News::Castor(it) => self.state.is_foreign = !it,
            News::ViKeys => self.vi = self.vi.take().or_else(|| Some(ViKeys::default())),
            News::Draft(draft) => self.take_back(draft),
        }
        self.refresh_completion(out);
    }

    fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    fn take_draft(&mut self) -> Option<Draft> {
        let draft = self.draft();
        self.clear().then_some(draft).filter(|it| !it.text.trim().is_empty())
    }

    fn draw(&self, width: u16, height: u16, theme: &Theme) -> Drawn {
        self.draw_in(width.into(), height.into(), *theme)
    }
}

impl Composer {
    /// What was typed meanwhile stands behind a message that comes back.
    fn take_back(&mut self, draft: &Draft) {
        let mut text = self.folds.take_back(draft);
        let typed = self.buffer.text();
        if !typed.trim().is_empty() {
            text = format!("{text}\n{typed}");
        }
        self.buffer.set_text(&text);
    }
}
