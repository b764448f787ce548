//! Keys of the composer without vi: those of emacs and of shells.

use super::{Composer, buffer::Motion, rows::Rows};
use crate::cli::chat::lower::{Action, Key};

impl Composer {
    pub(super) fn plain_key(&mut self, key: &Key, out: &mut Vec<Action>) {
        if std::mem::take(&mut self.state.is_prefixed) {
            return self.prefixed_key(key, out);
        }
        let goal = self.goal.take();
        match key {
            Key::Up | Key::Ctrl('p') => self.vertical(false, goal),
            Key::Down | Key::Ctrl('n') => self.vertical(true, goal),
            Key::Enter => self.enter(out),
            Key::Esc => self.escape(out),
            Key::Tab if self.state.agent.is_working() => self.queue(out),
            Key::BackTab => out.push(Action::NextMode),
            Key::Ctrl('d') if self.buffer.is_empty() => out.push(Action::Quit),
            Key::Ctrl('c') => _ = self.clear(),
            Key::Ctrl('r') => self.open_search(),
            Key::Ctrl('x') => self.state.is_prefixed = true,
            Key::Ctrl('v') => out.push(Action::ReadClipboard),
            Key::Ctrl('g') => out.push(self.open_editor()),
            Key::Ctrl('h') => self.state.is_help = true,
            Key::Char('?') if self.buffer.is_empty() => self.state.is_help = true,
            Key::Alt('s') => out.push(Action::OpenSessions),
            Key::Alt('o') => out.push(Action::OpenOptions),
            _ if self.moves(key) => (),
            _ => self.edits(key),
        }
    }

    fn prefixed_key(&mut self, key: &Key, out: &mut Vec<Action>) {
        match key {
            Key::Ctrl('e') => out.push(self.open_editor()),
            Key::Ctrl('u') => self.buffer.undo(),
            Key::Ctrl('r') => self.buffer.redo(),
            _ => (),
        }
    }

    fn open_editor(&self) -> Action {
        Action::OpenEditor(self.folds.unfold(self.buffer.text()).text)
    }

    fn moves(&mut self, key: &Key) -> bool {
        let motion = match key {
            Key::Left | Key::Ctrl('b') => Motion::Left,
            Key::Right | Key::Ctrl('f') => Motion::Right,
            Key::WordLeft | Key::Alt('b') => Motion::WordLeft,
            Key::WordRight | Key::Alt('f') => Motion::WordRight,
            Key::Home | Key::Ctrl('a') => Motion::LineStart,
            Key::End | Key::Ctrl('e') => Motion::LineEnd,
            Key::PageUp | Key::Alt('<') => Motion::TextStart,
            Key::PageDown | Key::Alt('>') => Motion::TextEnd,
            _ => return false,
        };
        self.buffer.go(motion);
        true
    }

    fn edits(&mut self, key: &Key) {
        match key {
            Key::Char(it) => self.buffer.insert(&super::plain(it.encode_utf8(&mut [0; 4]))),
            Key::Paste(text) => {
                let text = self.folds.paste(text);
                self.buffer.insert(&text);
            }
            Key::LineBreak | Key::Ctrl('j') => self.buffer.insert("\n"),
            Key::Backspace => self.buffer.remove_to(Motion::Left),
            Key::Delete | Key::Ctrl('d') => self.buffer.remove_to(Motion::Right),
            Key::Ctrl('w') => self.kill_word(),
            Key::Alt('d') => self.buffer.kill_to(Motion::WordRight),
            Key::Ctrl('k') => self.buffer.kill_to(Motion::LineEnd),
            Key::Ctrl('u') => self.buffer.kill_to(Motion::LineStart),
            Key::Ctrl('y') => self.buffer.yank(),
            Key::Ctrl('t') | Key::Alt('t') => self.buffer.transpose(),
            Key::Alt('u') => self.buffer.undo(),
            Key::Alt('r') => self.buffer.redo(),
            _ => return,
        }
        self.history.leave();
    }

    /// Back to a blank, as shells do.
    fn kill_word(&mut self) {
        let before = self.buffer.before();
        let mut chars = before.trim_end().char_indices().rev();
        let start = chars.find(|it| it.1.is_whitespace()).map_or(0, |(at, it)| at + it.len_utf8());
        self.buffer.kill(start..self.buffer.cursor());
    }

    /// By rows of the screen; at the edges through the history.
    fn vertical(&mut self, down: bool, goal: Option<usize>) {
        let to = {
            let rows = Rows::new(self.buffer.text(), &self.folds, self.columns.get().max(2));
            let (row, column) = rows.place(self.buffer.cursor());
            let goal = goal.unwrap_or(column);
            let next = if down { Some(row + 1).filter(|it| *it < rows.count()) } else { row.checked_sub(1) };
            // A message of the history is walked past, not into.
            next.filter(|_| !self.history.is_walking()).map(|it| (rows.byte(it, goal), goal))
        };
        if let Some((byte, goal)) = to {
            self.buffer.go_to_byte(byte);
            self.goal = Some(goal);
            return;
        }
        let shown = self.buffer.text().to_owned();
        let found = if down { self.history.newer() } else { self.history.older(&shown) };
        if let Some(it) = found {
            self.buffer.set_text(&it);
        }
    }
}
