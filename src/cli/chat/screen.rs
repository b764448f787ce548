//! The terminal of the chat: its size, and a thread that writes to it, so that a slow one stops nothing.

use std::{
    io::{self, Write},
    thread,
    time::Duration,
};

use tokio::{sync::mpsc, task::JoinHandle, time};

use super::{
    draw_pace::DrawPace,
    state::{Chat, frame::ChatFrame},
    terminal_traits::TerminalTraits,
};
use crate::cli::render::{
    ansi::{Palette, paint_with},
    painter::Painter,
    text::Line,
};

/// How long the last words may take.
const HURRY: Duration = Duration::from_millis(500);
/// What may wait for a slow terminal: with that, nothing more is drawn.
const QUEUE: usize = 1;
/// Where the terminal does not tell.
const USUAL_SIZE: (usize, usize) = (80, 24);
const ASK_BACKGROUND: &str = "\u{1b}]11;?\u{7}";

pub struct ChatScreen {
    painter: Painter,
    writer: mpsc::Sender<String>,
    written: Option<JoinHandle<()>>,
    /// The cursor can be moved. Elsewhere lines follow each other.
    is_live: bool,
    /// `None`: no colours.
    palette: Option<Palette>,
    /// The terminal's background decides about the colours, if it tells.
    asks_background: bool,
    pub size: (usize, usize),
    pace: DrawPace,
    /// Where lines follow each other: what the cursor stands behind.
    prompt: String,
}

impl ChatScreen {
    /// `theme`: the colours that the user chose; without one the terminal's background decides.
    pub fn new(is_live: bool, color: bool, theme: Option<Palette>, traits: TerminalTraits) -> Self {
        let palette = color.then(|| theme.unwrap_or_default());
        let (painter, size) = (Painter::with_palette(palette), terminal_size());
        let (writer, mut texts) = mpsc::channel::<String>(QUEUE);
        let (done, written) = tokio::sync::oneshot::channel();
        thread::spawn(move || {
            let mut out = io::stdout();
            while let Some(text) = texts.blocking_recv() {
                if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
                    break;
                }
            }
            _ = done.send(());
        });
        let written = tokio::spawn(async move { _ = written.await });
        Self {
            painter: if traits.reflows { painter } else { painter.for_cut_lines() },
            writer,
            written: Some(written),
            is_live,
            palette,
            asks_background: is_live && color && theme.is_none() && traits.tells_background,
            size,
            pace: DrawPace::new(size, is_live && traits.tells_size_late),
            prompt: String::new(),
        }
    }

    pub fn take_size(&mut self) {
        self.size = terminal_size();
        self.set_urgent();
    }

    pub fn set_urgent(&mut self) {
        self.pace.set_urgent();
    }

    /// Asks the terminal for its background; whether it did. Nothing waits for the answer.
    pub async fn ask_background(&mut self) -> bool {
        if self.asks_background {
            self.write(ASK_BACKGROUND.to_owned()).await;
        }
        self.asks_background
    }

    /// The terminal's answer.
    pub fn set_background(&mut self, is_light: bool) {
        if std::mem::take(&mut self.asks_background) {
            let palette = if is_light { Palette::Light } else { Palette::Dark };
            self.palette = Some(palette);
            self.painter.set_palette(palette);
        }
    }

    /// The screen is another one: what was drawn there is not touched again.
    pub fn leave(&mut self) {
        self.painter.leave();
        self.pace.set_urgent();
    }

    /// Takes the live region away, for a program that gets the terminal.
    pub async fn erase(&mut self) {
        let text = self.painter.draw(&[], Vec::new(), self.size.0);
        self.write(text).await;
        // The writer takes the next text when it has written the one before: the program's own output comes after both.
        _ = self.writer.send(String::new()).await;
        _ = self.writer.reserve().await;
    }

    /// When the next draw is due; `None`: nothing changes by itself.
    fn draw_time(&self, chat: &Chat) -> Option<Duration> {
        self.pace.due(chat.is_stale(), chat.changes_from().filter(|_| self.is_live))
    }

    /// Ends when a draw is due and the terminal takes it.
    pub async fn draw_is_due(&self, chat: &Chat, started: std::time::Instant) {
        let Some(at) = self.draw_time(chat) else { return std::future::pending().await };
        time::sleep_until((started + at).into()).await;
        _ = self.writer.reserve().await;
    }

    /// Draws what is due.
    pub fn draw(&mut self, chat: &mut Chat, now: Duration) {
        if self.writer.capacity() == 0 || self.draw_time(chat).is_none_or(|it| it > now) {
            return;
        }
        // Keys may be here before the signal of a resize is.
        self.size = terminal_size();
        let (width, height) = self.size;
        let frame = chat.draw(now, width, height);
        self.pace.note_draw(now, self.size, chat.is_stale());
        let text = self.paint(frame, chat);
        if !text.is_empty() {
            _ = self.writer.try_send(text);
        }
    }

    fn paint(&mut self, frame: ChatFrame, chat: &Chat) -> String {
        if self.is_live {
            return self.painter.draw_with_cursor(&frame.finished, frame.live, frame.cursor, self.size.0);
        }
        let prompt = chat.plain_prompt();
        if frame.finished.is_empty() && prompt == self.prompt {
            return String::new();
        }
        let line_end = if self.prompt.is_empty() { "" } else { "\n" };
        let res = format!("{line_end}{}{prompt}", plain(&frame.finished, self.palette));
        self.prompt = prompt;
        res
    }

    /// The user ended a line, where lines follow each other. `more`: what to say in place of an answer, with its prompt.
    pub async fn take_line(&mut self, chat: &Chat, more: String) {
        self.prompt = if more.is_empty() { String::new() } else { chat.plain_prompt() };
        self.write(more).await;
    }

    /// Lines as bytes, with their colours.
    pub fn painted(&self, lines: &[Line]) -> String {
        plain(lines, self.palette)
    }

    /// Bytes for the terminal as they are, such as a bell.
    pub async fn write(&mut self, text: String) {
        if !text.is_empty() {
            _ = self.writer.send(text).await;
        }
    }

    /// The last words, with the live region gone; the terminal has them when this ends, unless it is stuck.
    pub async fn finish(mut self, chat: &mut Chat, now: Duration, last: &[Line]) {
        let (width, height) = self.size;
        let mut finished = chat.draw(now, width, height).finished;
        while chat.is_stale() {
            finished.extend(chat.draw(now, width, height).finished);
        }
        finished.extend(last.iter().cloned());
        let text = match self.is_live {
            true => self.painter.draw_with_cursor(&finished, vec![Line::default()], Some((0, 0)), width),
            false if self.prompt.is_empty() => plain(&finished, self.palette),
            false => format!("\n{}", plain(&finished, self.palette)),
        };
        let written = self.written.take();
        _ = time::timeout(HURRY, async move {
            _ = self.writer.send(text).await;
            drop(self.writer);
            if let Some(it) = written {
                _ = it.await;
            }
        })
        .await;
    }
}

fn plain(lines: &[Line], palette: Option<Palette>) -> String {
    let mut res = String::new();
    for it in lines {
        paint_with(it, palette, &mut res);
        res.push('\n');
    }
    res
}

fn terminal_size() -> (usize, usize) {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok().filter(|it| it.ws_col > 0 && it.ws_row > 0);
    size.map_or(USUAL_SIZE, |it| (it.ws_col.into(), it.ws_row.into()))
}
