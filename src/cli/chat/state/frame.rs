//! The frame of each draw of the chat, and its last words.

use std::time::Duration;

use super::{Chat, ChatPhase};
use crate::cli::{
    chat::lower::{Draft, Drawn, Theme},
    client::start::short_id,
    render::{
        clip::clip,
        text::{Line, Style},
        words,
        wrap::wrap,
    },
    terminal_text::{clean, clean_line},
};

/// Of a message that is shown again: the rest is known to who wrote it.
const MAX_ECHO: usize = 40;
/// Of the screen, at least so much is left to the conversation.
const CONVERSATION_ROWS: usize = 3;
/// Messages that wait and are shown.
const SHOWN_QUEUE: usize = 3;
/// Columns of the names in the last summary.
const SUMMARY_COLUMN: usize = 8;

/// What is on the screen.
#[derive(Debug, Default)]
pub struct ChatFrame {
    /// For the scrollback.
    pub finished: Vec<Line>,
    /// Drawn again each time, with the cursor's row and column in it.
    pub live: Vec<Line>,
    pub cursor: Option<(usize, usize)>,
}

impl Chat {
    pub fn set_width(&mut self, width: usize) {
        self.bottom.width = width;
        self.view.options.width = width;
    }

    /// When the live region changes by itself, at the soonest.
    pub fn changes_from(&self) -> Option<Duration> {
        self.view.changes_from().filter(|_| self.is_working())
    }

    pub fn draw(&mut self, now: Duration, width: usize, height: usize) -> ChatFrame {
        self.set_width(width);
        // Where lines follow each other, no single key waits.
        let lines = if self.view.options.is_live { self.view.take_step() } else { self.view.take_finished() };
        self.is_stale = self.view.has_more();
        // The window may have been wider when a line was made.
        let finished = lines.into_iter().flat_map(|it| wrap(&it.line, width, "")).collect();
        // The last row stays free: a terminal may scroll when it is full.
        let height = height.saturating_sub(1).max(1);
        let status = self.status_line(width);
        let rows = height.saturating_sub(CONVERSATION_ROWS + 1).max(1);
        let columns = u16::try_from(width).unwrap_or(u16::MAX);
        let Drawn { lines, cursor } = self.bottom.draw(columns, u16::try_from(rows).unwrap_or(u16::MAX), &self.theme);
        let queued = self.queued_lines(width);
        let below = lines.len() + queued.len() + 1;
        let mut live = self.view.live(now, width, height.saturating_sub(below + 1));
        live.push(Line::default());
        live.extend(queued);
        let start = live.len();
        live.extend(lines);
        live.push(status);
        let above = live.len().saturating_sub(height);
        let cursor = cursor.and_then(|it| Some(((start + usize::from(it.0)).checked_sub(above)?, it.1.into())));
        ChatFrame { finished, live: live.split_off(above), cursor }
    }

    fn status_line(&self, width: usize) -> Line {
        match self.phase {
            _ if self.is_leaving => Line::new(" ctrl-c again to leave", Theme::WARNING),
            ChatPhase::Starting => Line::new(" starting", Style::DIM),
            ChatPhase::Over => Line::new(" the agent is gone", Theme::ERROR),
            _ => self.status.line(width),
        }
    }

    fn queued_lines(&self, width: usize) -> Vec<Line> {
        let line = |it: &Draft| {
            let text = clean_line(&it.text, width.saturating_sub(10));
            clip(&Line::new(&format!(" waits › {text}"), Style::DIM), width)
        };
        self.queue.iter().take(SHOWN_QUEUE).map(line).collect()
    }

    /// The last words: what the chat came to, and how to continue.
    pub fn farewell(&mut self, session: Option<&str>, took: Duration) -> Vec<Line> {
        let mut res = Vec::new();
        if self.status.turns == 0 {
            return res;
        }
        let files = self.changes.counted.take().map(|it| it.words).or_else(|| self.changes.edits.in_words());
        // One turn has said the same at its end.
        if self.status.turns > 1 || files.is_some() {
            let all = words::count(self.status.turns, "message", "messages");
            let parts = [Some(all), words::duration(took)];
            let title = parts.into_iter().flatten().collect::<Vec<_>>().join(" · ");
            res.push(Line::default());
            res.push(Line::new(&title, Style::BOLD));
            let rows =
                [("files", files), ("tokens", self.status.tokens.in_words()), ("cost", self.status.cost_in_words())];
            for (name, what) in rows {
                let Some(what) = what else { continue };
                let mut row = Line::new(&format!("  {name:SUMMARY_COLUMN$}"), Style::DIM);
                row.push(&what, Style::PLAIN);
                res.extend(wrap(&row, self.bottom.width, &" ".repeat(2 + SUMMARY_COLUMN)));
            }
        }
        // On a line of its own, as it is copied.
        if let Some(it) = session.filter(|_| self.agent.is_castor) {
            res.push(Line::new(&format!("castor chat -r {}", short_id(it)), Style::DIM));
        }
        res
    }
}

/// What the user said, in the scrollback.
pub fn prompt_lines(text: &str, width: usize, mark: &str) -> Vec<Line> {
    let text = clean(text);
    let all = text.trim_end().lines().count();
    let mut res = Vec::new();
    for (at, it) in text.trim_end().lines().take(MAX_ECHO).enumerate() {
        let mut line = Line::new(if at == 0 { mark } else { "  " }, Theme::ACCENT);
        line.push(it, Style::BOLD);
        res.extend(wrap(&line, width, "  "));
    }
    if all > MAX_ECHO {
        res.push(Line::new(&format!("  … {} more lines", all - MAX_ECHO), Style::DIM));
    }
    res
}
