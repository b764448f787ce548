//! The composer on the screen: a box with the text, below it a list, a hint or the keys.

use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

use super::{
    Composer, key_help,
    rows::Rows,
    vi::{ViKeys, ViMode},
};
use crate::cli::{
    chat::lower::{AgentPhase, Drawn, Theme},
    render::{
        clip::clip,
        text::{Line, Style},
    },
};

/// A narrower or lower screen has no room for a box.
const MIN_WIDTH: usize = 24;
const MIN_HEIGHT: usize = 4;
/// Rows of text at most, so that something of the conversation stays.
const MAX_ROWS: usize = 16;
const SIGN: &str = "> ";

/// The room for the text.
struct TextRoom {
    is_boxed: bool,
    width: usize,
    rows: usize,
}

impl Composer {
    pub(super) fn draw_in(&self, width: usize, height: usize, theme: Theme) -> Drawn {
        if width == 0 || height == 0 {
            return Drawn::default();
        }
        let is_boxed = !theme.is_plain && width >= MIN_WIDTH && height >= MIN_HEIGHT;
        let frame = if is_boxed { 2 } else { 0 };
        let below = self.below(width, height.saturating_sub(frame + 1));
        let rows = height.saturating_sub(frame + below.len()).clamp(1, MAX_ROWS);
        let mut drawn = self.draw_text(&TextRoom { is_boxed, width, rows });
        drawn.lines.extend(below);
        drawn.lines.truncate(height);
        drawn
    }

    fn draw_text(&self, room: &TextRoom) -> Drawn {
        let edge = if room.is_boxed { 2 } else { 0 };
        let columns = room.width.saturating_sub(2 * edge + SIGN.width()).max(1);
        self.columns.set(columns);
        let rows = Rows::new(self.buffer.text(), &self.folds, columns);
        let (cursor_row, cursor_column) = rows.place(self.buffer.cursor());
        let first = (cursor_row + 1).saturating_sub(room.rows);
        let last = rows.count().min(first + room.rows);
        let mut lines = Vec::new();
        if room.is_boxed {
            lines.push(border('╭', '╮', &more(first), room.width));
        }
        for at in first..last {
            let mut line = Line::new(if at == 0 { SIGN } else { "  " }, Theme::ACCENT);
            match self.buffer.is_empty() {
                true => line.push(self.placeholder(), Theme::HINT),
                false => self.push_row(rows.row(at), &mut line),
            }
            lines.push(if room.is_boxed { boxed(&line, room.width) } else { clip(&line, room.width) });
        }
        if room.is_boxed {
            let below = more(rows.count() - last);
            let vi = if self.vi.as_ref().map(ViKeys::mode) == Some(ViMode::Normal) { "NORMAL" } else { "" };
            lines.push(border('╰', '╯', if vi.is_empty() { &below } else { vi }, room.width));
        }
        let row = cursor_row - first + usize::from(room.is_boxed);
        let column = (edge + SIGN.width() + cursor_column).min(room.width.saturating_sub(1));
        let small = |it: usize| u16::try_from(it).unwrap_or(u16::MAX);
        Drawn { lines, cursor: Some((small(row), small(column))) }
    }

    fn push_row(&self, row: &str, line: &mut Line) {
        let mut plain = String::new();
        for it in row.graphemes(true) {
            if self.folds.is_fold(it) {
                line.push(&std::mem::take(&mut plain), Style::PLAIN);
                line.push(self.folds.grapheme_text(it), Theme::ACCENT);
            } else {
                plain.push_str(self.folds.grapheme_text(it));
            }
        }
        line.push(&plain, Style::PLAIN);
    }

    fn placeholder(&self) -> &'static str {
        match self.state.agent {
            AgentPhase::Idle => "Ask anything · @ files · / commands · ? keys",
            AgentPhase::Steerable => "Enter steers the turn · Tab sends after it · Esc stops it",
            AgentPhase::Busy => "Enter sends after the turn · Esc stops it",
            AgentPhase::Gone => "",
        }
    }

    fn below(&self, width: usize, height: usize) -> Vec<Line> {
        if let Some(search) = &self.search {
            let mut line = Line::new("search: ", Theme::ACCENT);
            line.push(&search.words, Style::PLAIN);
            if search.at.is_none() && !search.words.is_empty() {
                line.push("  nothing found", Theme::WARNING);
            }
            line.push("  Ctrl-R older · Enter takes it · Esc closes", Theme::HINT);
            return [clip(&line, width)].into_iter().take(height).collect();
        }
        if self.state.is_help {
            return key_help::draw(width, height);
        }
        if let Some(it) = &self.completion {
            return it.draw(width, height);
        }
        self.hint().map(|it| clip(&Line::new(&it, Theme::HINT), width)).into_iter().take(height).collect()
    }

    /// What the next key or the text will do.
    fn hint(&self) -> Option<String> {
        let text = self.buffer.text();
        if self.state.is_armed && !self.state.agent.is_working() {
            let what = if text.is_empty() { "goes back to an earlier message" } else { "clears the text" };
            return Some(format!("Esc again {what}"));
        }
        if self.state.is_prefixed {
            return Some("Ctrl-E editor · Ctrl-U undo · Ctrl-R redo".to_owned());
        }
        match text.chars().next()? {
            '!' if !self.state.is_foreign => Some("castor runs this line in a shell, by its rules".to_owned()),
            // A heading is none.
            '#' if !self.state.is_foreign && !text.starts_with("# ") && !text.starts_with("##") => {
                Some("castor keeps this in its memory".to_owned())
            }
            '/' => self.command_hint(text),
            _ => None,
        }
    }

    /// What stands behind a command that is typed in whole.
    fn command_hint(&self, text: &str) -> Option<String> {
        let (name, rest) = text.strip_prefix('/')?.split_once(' ')?;
        let it = self.offers.commands.iter().find(|it| it.name == name)?;
        let hint = it.hint.as_ref().filter(|_| rest.trim().is_empty())?;
        Some(format!("/{name} {hint}  {}", it.description))
    }
}

fn more(count: usize) -> String {
    if count == 0 { String::new() } else { format!("{count} more") }
}

/// A line with corners, and a word in it.
fn border(left: char, right: char, word: &str, width: usize) -> Line {
    let mut line = Line::new(&format!("{left}─"), Theme::BORDER);
    let room = width.saturating_sub(3);
    let word = if word.is_empty() { String::new() } else { format!(" {word} ") };
    let word = if word.width() < room { word } else { String::new() };
    line.push(&word, Theme::HINT);
    line.push(&"─".repeat(room - word.width()), Theme::BORDER);
    line.push(&right.to_string(), Theme::BORDER);
    line
}

fn boxed(text: &Line, width: usize) -> Line {
    let text = clip(text, width.saturating_sub(4));
    let gap = width.saturating_sub(4).saturating_sub(text.width());
    let mut line = Line::new("│ ", Theme::BORDER);
    line.spans.extend(text.spans);
    line.push(&" ".repeat(gap), Style::PLAIN);
    line.push(" │", Theme::BORDER);
    line
}
