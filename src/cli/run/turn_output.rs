//! Output of a turn on stdout and stderr: a live region on a terminal, plain lines elsewhere.
//! It knows the time and the terminal's size only as arguments.

use std::time::Duration;

use super::raw_answer::RawAnswer;
use crate::cli::{
    args::OutputFormat,
    render::{
        ansi,
        end_line::TurnEnd,
        painter::Painter,
        text::Line,
        view::{FinishedLine, LineKind, TurnView, ViewOptions},
        wrap::wrap,
    },
    terminal_text::{clean, clean_line},
};
use castor_base::shown_text::show_text;
use castor_client::{Change, Conversation};
use castor_wire::acp::client::{CallStatus, ClientEvent, NoticeLevel, SessionNotice, Voice};

/// Between two draws: at most sixty in a second.
const DRAW_PERIOD: Duration = Duration::from_millis(17);
/// Between two draws in which only time passed.
const SPIN_PERIOD: Duration = Duration::from_millis(100);
/// Lines, and bytes of the answer, that may wait for a terminal that takes nothing.
const MAX_LINES: usize = 2_000;
const MAX_BYTES: usize = 256 * 1024;
/// Without a terminal lines are as long as they are.
const UNLIMITED: usize = 100_000;

/// Something to write. Both streams go through one queue, so that they mix in order on a terminal.
#[derive(Debug, PartialEq, Eq)]
pub enum OutputPiece {
    Out(String),
    Err(String),
}

/// Output format and colours.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenStyle {
    pub format: OutputFormat,
    /// The answer is rendered; elsewhere it stays as it is.
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    /// The cursor can be moved on stderr.
    pub is_live: bool,
    pub stdout_color: bool,
    pub color: bool,
    /// Terminal controls stay in the answer.
    pub is_raw: bool,
    /// The answer goes out only when it is known to fit a schema.
    pub holds_answer: bool,
}

impl ScreenStyle {
    /// The same where nothing is drawn: the answer goes out as it comes.
    pub fn unpainted(self) -> Self {
        Self { stdout_is_terminal: false, is_live: false, ..self }
    }
}

/// Columns and rows.
pub type TerminalSize = (usize, usize);

pub struct TurnOutput {
    pub style: ScreenStyle,
    pub answer: RawAnswer,
    view: TurnView,
    painter: Painter,
    pieces: Vec<OutputPiece>,
    /// What the user is asked, at the very bottom.
    panel: Vec<Line>,
    last_draw: Option<Duration>,
    /// Something came since the last draw.
    is_stale: bool,
    /// A question without a line end stands at the cursor: nothing is drawn over it.
    is_held: bool,
    asked_since: Option<Duration>,
    /// How long questions were up, all together.
    asked: Duration,
}

impl TurnOutput {
    pub fn new(style: ScreenStyle) -> Self {
        let is_text = style.format == OutputFormat::Text;
        let options = ViewOptions {
            width: UNLIMITED,
            shows_answer: style.stdout_is_terminal && is_text && !style.holds_answer,
            shares_terminal: style.stdout_is_terminal && style.stderr_is_terminal,
            is_live: style.is_live,
            ..ViewOptions::default()
        };
        Self {
            style,
            answer: RawAnswer::new(style.is_raw),
            view: TurnView::new(options),
            painter: Painter::new(style.color),
            pieces: Vec::new(),
            panel: Vec::new(),
            last_draw: None,
            is_stale: false,
            is_held: false,
            asked_since: None,
            asked: Duration::ZERO,
        }
    }

    /// Paths are shown as they are seen from this folder.
    pub fn set_cwd(&mut self, cwd: &str) {
        cwd.clone_into(&mut self.view.options.cwd);
    }

    pub fn is_text(&self) -> bool {
        self.style.format == OutputFormat::Text
    }

    fn streams_answer(&self) -> bool {
        self.is_text() && !self.style.holds_answer
    }

    pub fn start(&mut self, now: Duration) {
        if self.is_text() {
            self.view.start(now);
        }
    }

    pub fn set_cancelling(&mut self) {
        self.view.set_cancelling();
        self.is_stale = true;
    }

    /// The conversation so far.
    pub fn talk(&self) -> &Conversation {
        &self.view.talk
    }

    pub fn talk_mut(&mut self) -> &mut Conversation {
        &mut self.view.talk
    }

    /// Shows an event that the conversation has taken, and what it meant there.
    pub fn show(&mut self, session: &str, event: &ClientEvent, change: &Change, now: Duration) {
        if !self.view.talk.agents.is_child(session) {
            self.show_answer(event);
        }
        if self.is_text() {
            self.view.show(session, event, change, now);
            self.is_stale = true;
            return;
        }
        if let ClientEvent::Notice(it) = event {
            let who = self.view.talk.agents.path(session).unwrap_or_default();
            self.note_notice(&who, it);
        }
        if let Some(it) = change.call.as_ref().filter(|it| it.has_ended) {
            self.view.talk.forget_contents(session, &it.id);
        }
    }

    /// The answer for a pipe or a file.
    fn show_answer(&mut self, event: &ClientEvent) {
        self.answer.discard(&event.discarded());
        if let ClientEvent::Chunk(Voice::Answer, it) = event
            && let Some(text) = it.text().filter(|_| !self.view.options.shows_answer)
        {
            self.push_answer(text, it.message.as_deref());
        }
        let ClientEvent::Call(it) = event else { return };
        // A call that runs is of an answer that ended well.
        if matches!(it.status, Some(CallStatus::InProgress | CallStatus::Completed)) && self.streams_answer() {
            let text = self.answer.confirm();
            self.write_stdout(text);
        }
        let text = self.answer.end_message();
        self.write_stdout(text);
    }

    /// A notice beside an output for programs. `who`: the agent that it is of.
    fn note_notice(&mut self, who: &str, it: &SessionNotice) {
        let severity = match it.severity {
            Some(NoticeLevel::Error) => "error",
            Some(NoticeLevel::Warning) => "warning",
            Some(NoticeLevel::Info) | None => "info",
        };
        let who = if who.is_empty() { String::new() } else { format!("{who}: ") };
        self.note(&clean_line(&format!("{severity}: {who}{} {}", it.title, it.description), 600));
    }

    fn push_answer(&mut self, chunk: &str, message: Option<&str>) {
        if self.style.holds_answer || matches!(self.style.format, OutputFormat::Text | OutputFormat::Json) {
            let text = self.answer.push(chunk, message, self.streams_answer());
            self.write_stdout(text);
        }
    }
}

impl TurnOutput {
    /// A remark of our own.
    pub fn note(&mut self, line: &str) {
        let line = Line::plain(&format!("castor: {line}"));
        self.print_lines(&wrap(&line, self.view.options.width, "  "));
    }

    /// A line of the agent's stderr.
    pub fn agent_log(&mut self, line: &str) {
        if self.style.stderr_is_terminal {
            self.print_lines(&wrap(&Line::plain(&clean(line)), self.view.options.width, "  "));
        } else {
            self.write_stderr(format!("{}\n", show_text(line)));
        }
    }

    /// Finished lines that are not the answer.
    pub fn print_lines(&mut self, lines: &[Line]) {
        if lines.is_empty() {
            return;
        }
        self.view.add_lines(lines.to_vec());
        self.is_stale = true;
    }

    /// What the user is asked or types; it stands below everything else.
    pub fn set_panel(&mut self, lines: Vec<Line>) {
        if lines != self.panel {
            self.panel = lines;
            self.is_stale = true;
        }
    }

    /// Text for stdout as it is.
    pub fn write_stdout(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        if self.style.is_live && self.style.stdout_is_terminal {
            self.draw_finished(self.view.options.width);
            self.is_stale = true;
        }
        self.pieces.push(OutputPiece::Out(text));
    }

    /// Text for stderr as it is, such as a question: on a line of its own below what is finished.
    pub fn write_stderr(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        if self.style.is_live {
            self.draw_finished(self.view.options.width);
            self.is_held |= !text.ends_with('\n');
        } else {
            self.push_plain();
        }
        self.pieces.push(OutputPiece::Err(text));
    }

    /// Whether a question waits for its answer. One that was written as text is not drawn over until then.
    pub fn set_asking(&mut self, is_asking: bool, now: Duration) {
        self.view.set_asking(is_asking, now);
        self.count_asked(is_asking, now);
        if !is_asking {
            self.is_stale |= self.is_held;
            self.is_held = false;
        }
    }

    fn count_asked(&mut self, is_asking: bool, now: Duration) {
        match self.asked_since {
            None if is_asking => self.asked_since = Some(now),
            Some(since) if !is_asking => {
                self.asked += now.saturating_sub(since);
                self.asked_since = None;
            }
            _ => (),
        }
    }
}

impl TurnOutput {
    /// When the next draw is due; `None`: nothing changes by itself.
    pub fn draw_time(&self) -> Option<Duration> {
        let after = |period| self.last_draw.map_or(Duration::ZERO, |it| it + period);
        if self.is_held || !self.style.is_live {
            None
        } else if self.is_stale {
            Some(after(DRAW_PERIOD))
        } else {
            self.view.changes_from().map(|it| it.max(after(SPIN_PERIOD)))
        }
    }

    /// So much waits that nothing more should be read.
    pub fn is_full(&self) -> bool {
        let (lines, bytes) = self.view.backlog();
        lines > MAX_LINES || bytes > MAX_BYTES
    }

    /// What is to be written now. `can_draw`: the terminal took what was drawn before.
    pub fn take_pieces(&mut self, now: Duration, size: TerminalSize, can_draw: bool) -> Vec<OutputPiece> {
        self.set_size(size);
        if !self.style.is_live {
            self.push_plain();
        } else if can_draw && self.draw_time().is_some_and(|it| it <= now) {
            self.draw(now, size);
        }
        std::mem::take(&mut self.pieces)
    }

    /// The turn is over: ends everything that is open, and the live region.
    pub fn end(&mut self, now: Duration) {
        self.count_asked(false, now);
        if self.streams_answer() {
            let text = self.answer.confirm();
            self.write_stdout(text);
        }
        if self.is_text() {
            self.view.end(now);
        }
        self.view.talk.end_turn(now);
        let text = self.answer.end().to_owned();
        self.write_stdout(text);
        self.panel.clear();
    }

    /// The end line, below everything. The time that the user thought about questions is not the agent's.
    pub fn print_end(&mut self, mut end: TurnEnd) {
        end.took = end.took.saturating_sub(self.asked);
        if let Some(line) = end.line() {
            self.print_lines(&wrap(&line, self.view.options.width, "  "));
        }
    }

    /// The rest, whatever was drawn when; the cursor stands below it.
    pub fn take_last(&mut self, size: TerminalSize) -> Vec<OutputPiece> {
        self.set_size(size);
        if self.style.is_live {
            self.draw_finished(size.0);
        } else {
            self.push_plain();
        }
        std::mem::take(&mut self.pieces)
    }

    pub fn set_size(&mut self, (columns, _): TerminalSize) {
        if self.style.is_live || self.style.stdout_is_terminal {
            self.view.options.width = columns;
        }
    }

    fn draw(&mut self, now: Duration, (width, height): TerminalSize) {
        // The last row stays free: a terminal may scroll when it is full.
        let room = height.saturating_sub(self.panel.len() + 1);
        let finished = self.view.take_finished();
        let mut live = self.view.live(now, width, room);
        live.extend(self.panel.iter().cloned());
        let finished: Vec<Line> = finished.into_iter().map(|it| it.line).collect();
        let frame = self.painter.draw(&finished, live, width);
        if !frame.is_empty() {
            self.pieces.push(OutputPiece::Err(frame));
        }
        (self.last_draw, self.is_stale) = (Some(now), false);
    }

    /// Everything that is finished, and no live region.
    fn draw_finished(&mut self, width: usize) {
        let finished: Vec<Line> = self.view.take_finished().into_iter().map(|it| it.line).collect();
        let frame = self.painter.draw(&finished, Vec::new(), width);
        if !frame.is_empty() {
            self.pieces.push(OutputPiece::Err(frame));
        }
    }

    /// Finished lines for streams that only grow.
    fn push_plain(&mut self) {
        for FinishedLine { line, kind } in self.view.take_finished() {
            let is_answer = kind == LineKind::Answer;
            let color = if is_answer { self.style.stdout_color } else { self.style.color };
            let mut text = String::new();
            ansi::paint(&line, color, &mut text);
            text.push('\n');
            match (self.pieces.last_mut(), is_answer) {
                (Some(OutputPiece::Out(last)), true) | (Some(OutputPiece::Err(last)), false) => last.push_str(&text),
                (_, true) => self.pieces.push(OutputPiece::Out(text)),
                (_, false) => self.pieces.push(OutputPiece::Err(text)),
            }
        }
        self.is_stale = false;
    }
}
