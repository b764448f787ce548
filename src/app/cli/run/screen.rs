//! The screen of `castor run`: the answer on stdout in one of three formats, all else on stderr.

use std::{future, io, thread, time::Duration};

use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::sync::{mpsc, oneshot};

use super::{
    calls::{CallNote, CallTracker},
    failure::Failure,
    report::{Report, RunEnd},
    text_buffer::TextBuffer,
};
use crate::app::cli::{
    args::OutputFormat,
    render::{ansi, text::Line},
    terminal_text::{Cleaner, clean, clean_line},
};

/// Batches that may wait for a slow terminal or pipe; when it is full, nothing more is read from the agent.
const QUEUE: usize = 16;

/// Something to write. Both streams go through one queue, so that they mix in order on a terminal.
#[derive(Debug, PartialEq, Eq)]
enum OutputPiece {
    Out(String),
    Err(String),
    /// The last lines on stderr, which are drawn again when they change.
    Panel(String),
}

/// Output format and colours.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScreenStyle {
    pub format: OutputFormat,
    /// Escape sequences of the model must not reach a terminal.
    pub stdout_is_terminal: bool,
    pub stderr_is_terminal: bool,
    /// Dim what is not the answer.
    pub color: bool,
}

pub struct Screen {
    look: ScreenStyle,
    writer: Option<mpsc::Sender<Vec<OutputPiece>>>,
    written: oneshot::Receiver<io::Result<()>>,
    batch: Vec<OutputPiece>,
    cleaner: Cleaner,
    /// Text that may still be taken back, or waits for the JSON object.
    buffer: TextBuffer,
    /// The agent says which messages do not count.
    may_discard: bool,
    /// What the last text belonged to; a change starts a new line.
    message: Option<String>,
    at_line_start: bool,
    pub calls: CallTracker,
    pub report: Report,
    events: u64,
}

impl Screen {
    pub fn new(look: ScreenStyle, out: impl io::Write + Send + 'static, err: impl io::Write + Send + 'static) -> Self {
        let (writer, pieces) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel();
        // A plain thread: a write to a pipe that nobody reads must not stop the loop, or Ctrl-C would do nothing.
        thread::spawn(move || {
            let written = write_pieces(pieces, out, err);
            // Who reads no more, as `head`, has what was wanted.
            let is_left = |it: &io::Error| it.kind() == io::ErrorKind::BrokenPipe;
            _ = done.send(if written.as_ref().is_err_and(is_left) { Ok(()) } else { written });
        });
        Self {
            look,
            writer: Some(writer),
            written,
            batch: Vec::new(),
            cleaner: Cleaner::default(),
            buffer: TextBuffer::default(),
            may_discard: false,
            message: None,
            at_line_start: true,
            calls: CallTracker::default(),
            report: Report::default(),
            events: 0,
        }
    }

    /// Whether all that is said are events.
    pub fn has_events(&self) -> bool {
        self.look.format == OutputFormat::Events
    }

    /// Whether answers of the agent are sure only when it goes on. People on a terminal see them at once all the same.
    pub fn set_may_discard(&mut self, may_discard: bool) {
        self.may_discard = may_discard;
    }

    /// Ends when stdout was closed from outside.
    pub async fn closed(&self) {
        if let Some(it) = &self.writer { it.closed().await } else { future::pending().await }
    }

    /// Ends when there is room for what could not be flushed.
    pub async fn room(&self) {
        match &self.writer {
            Some(writer) if !self.batch.is_empty() => _ = writer.reserve().await,
            _ => future::pending().await,
        }
    }

    /// The agent's next message, once there is room for what it will show.
    pub async fn before<T>(&self, incoming: &mut mpsc::Receiver<T>) -> Option<T> {
        if let Some(writer) = &self.writer {
            // Only the loop sends, so the room is still there after the wait for the message.
            _ = writer.reserve().await;
        }
        incoming.recv().await
    }
}

impl Screen {
    /// One `session/update` of the prompt's turn.
    pub fn update(&mut self, update: &Value) {
        self.buffer.discard(update);
        let text = |key: &str| update.get(key).and_then(Value::as_str);
        match text("sessionUpdate") {
            Some("agent_message_chunk") => {
                if let Some(chunk) = update.pointer("/content/text").and_then(Value::as_str) {
                    self.answer(chunk, text("messageId"));
                }
            }
            Some("tool_call" | "tool_call_update") => {
                // A call that runs is of an answer that ended well.
                if matches!(text("status"), Some("in_progress" | "completed")) {
                    self.print_buffered();
                }
                let mark = self.calls.update(update);
                self.print_call_note(mark);
            }
            Some("usage_update") => self.report.take_usage(update),
            Some("notice") => {
                let (title, more) = (text("title").unwrap_or_default(), text("description").unwrap_or_default());
                let severity = text("severity").unwrap_or("info");
                self.note(&clean_line(&format!("{severity}: {title} {more}"), 600));
            }
            _ => (),
        }
    }

    /// A notification `_castor/session/event`: its event is passed on as it was written.
    pub fn event(&mut self, params: &RawValue) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            event: &'a RawValue,
        }
        if self.look.format != OutputFormat::Events {
            return;
        }
        if let Ok(Params { event }) = serde_json::from_str(params.get()) {
            self.events += 1;
            self.batch.push(OutputPiece::Out(format!("{}\n", event.get())));
        }
    }

    /// What is known about the call of a permission request.
    pub fn call(&self, tool_call: &Value) -> Value {
        self.calls.merge_fields(tool_call)
    }

    /// A remark of our own.
    pub fn note(&mut self, line: &str) {
        self.write_stderr(format!("castor: {line}\n"));
    }

    /// A line of the agent's stderr.
    pub fn agent_log(&mut self, line: &str) {
        let line = if self.look.stderr_is_terminal { clean(line) } else { line.to_owned() };
        self.write_stderr(format!("{line}\n"));
    }

    /// Text for stderr as it is, such as a question.
    pub fn write_stderr(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        // On one terminal, a remark must not stick to the answer's last line.
        if self.look.stdout_is_terminal && !self.at_line_start {
            self.batch.push(OutputPiece::Out("\n".to_owned()));
            self.at_line_start = true;
        }
        self.batch.push(OutputPiece::Err(text));
    }

    /// The last words: the rest of the answer, the JSON object, the reason of a failure.
    pub fn conclude(&mut self, session: Option<&str>, end: &Result<String, Failure>, took: Duration) {
        let failure = end.as_ref().err().filter(|it| !it.message.is_empty());
        self.batch.push(OutputPiece::Panel(String::new()));
        self.print_buffered();
        if !self.at_line_start {
            self.batch.push(OutputPiece::Out("\n".to_owned()));
            self.at_line_start = true;
        }
        match self.look.format {
            OutputFormat::Events if self.events == 0 && end.is_ok() => {
                self.note("this agent sends no events: castor does");
            }
            OutputFormat::Events if self.events > 0 => (),
            // A program that reads events must learn why there are none.
            OutputFormat::Events | OutputFormat::Json => {
                let object = self.report.finish(&RunEnd { session, end, took }, self.buffer.join(), &self.calls);
                self.batch.push(OutputPiece::Out(object.to_line()));
            }
            OutputFormat::Text => (),
        }
        let changed = self.calls.changed.line.take();
        let hint = self.calls.approval_hint().filter(|it| failure.is_none_or(|failure| failure.message != *it));
        for it in hint.iter().chain(failure.map(|it| &it.message)).chain(&changed) {
            self.note(it);
        }
    }

    /// Finished lines that are not the answer.
    pub fn print_lines(&mut self, lines: &[Line]) {
        let mut text = String::new();
        for it in lines {
            ansi::paint(it, self.look.color, &mut text);
            text.push('\n');
        }
        self.write_stderr(text);
    }

    /// The lines that stay at the bottom of the terminal.
    pub fn set_panel(&mut self, lines: Vec<Line>) {
        let mut text = String::new();
        for it in &lines {
            ansi::paint(it, self.look.color, &mut text);
            text.push('\n');
        }
        self.batch.push(OutputPiece::Panel(text));
    }

    /// What would have been the answer, if it was not shown yet.
    pub fn take_answer(&mut self) -> String {
        self.buffer.take().collect()
    }

    /// Gives what was collected to the writer, or keeps it when there is no room.
    pub fn flush(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let Some(writer) = &self.writer else { return };
        match writer.try_send(std::mem::take(&mut self.batch)) {
            Err(mpsc::error::TrySendError::Full(batch)) => self.batch = batch,
            // Nobody reads: there is nothing to keep it for.
            Ok(()) | Err(mpsc::error::TrySendError::Closed(_)) => (),
        }
    }

    /// Waits until everything was written.
    ///
    /// # Errors
    /// When stdout fails; a closed reader is no error.
    pub async fn finish(mut self) -> io::Result<()> {
        if let Some(writer) = self.writer.take() {
            _ = writer.send(std::mem::take(&mut self.batch)).await;
        }
        self.written.await.unwrap_or(Ok(()))
    }
}

impl Screen {
    fn answer(&mut self, chunk: &str, message: Option<&str>) {
        let is_other = self.message.as_deref().is_some_and(|it| message.is_some_and(|new| new != it));
        self.message = message.or(self.message.as_deref()).map(str::to_owned).or(Some(String::new()));
        if is_other {
            self.break_line();
        }
        match self.look.format {
            OutputFormat::Text if self.look.stdout_is_terminal => {
                let text = self.cleaner.clean(chunk);
                self.print(text);
            }
            OutputFormat::Text if !self.may_discard => self.print(chunk.to_owned()),
            OutputFormat::Text | OutputFormat::Json => self.buffer.push(message, chunk),
            OutputFormat::Events => (),
        }
    }

    /// What was held is sure.
    fn print_buffered(&mut self) {
        if self.look.format == OutputFormat::Text {
            for text in self.buffer.take() {
                self.break_line();
                self.print(text);
            }
        }
    }

    fn print(&mut self, text: String) {
        if let Some(last) = text.chars().next_back() {
            self.at_line_start = last == '\n';
            self.batch.push(OutputPiece::Out(text));
        }
    }

    /// The next text starts on a line of its own.
    fn break_line(&mut self) {
        self.buffer.start_piece();
        if !self.at_line_start {
            self.print("\n".to_owned());
        }
    }

    fn print_call_note(&mut self, mark: Option<CallNote>) {
        let Some(mark) = mark else { return };
        if self.message.take().is_some() {
            self.break_line();
        }
        if self.look.format != OutputFormat::Text {
            return;
        }
        let line = match mark {
            CallNote::Started(title) => format!("● {title}"),
            CallNote::Completed(title) => format!("✓ {title}"),
            CallNote::Noted(title) => format!("! {title}"),
            CallNote::Failed(title) => format!("✗ {title}"),
        };
        self.write_stderr(if self.look.color { format!("\u{1b}[2m{line}\u{1b}[0m\n") } else { format!("{line}\n") });
    }
}

fn write_pieces(
    mut pieces: mpsc::Receiver<Vec<OutputPiece>>,
    mut out: impl io::Write,
    mut err: impl io::Write,
) -> io::Result<()> {
    let (mut panel, mut drawn) = (String::new(), String::new());
    while let Some(batch) = pieces.blocking_recv() {
        for piece in batch {
            match piece {
                OutputPiece::Panel(text) => panel = text,
                OutputPiece::Out(text) => {
                    erase(&mut drawn, &mut err);
                    out.write_all(text.as_bytes())?;
                }
                OutputPiece::Err(text) => {
                    erase(&mut drawn, &mut err);
                    // A closed stderr is no reason to stop.
                    _ = err.write_all(text.as_bytes());
                }
            }
        }
        out.flush()?;
        if panel != drawn {
            erase(&mut drawn, &mut err);
            _ = err.write_all(panel.as_bytes());
            drawn.clone_from(&panel);
        }
    }
    Ok(())
}

fn erase(drawn: &mut String, err: &mut impl io::Write) {
    if !drawn.is_empty() {
        _ = err.write_all(format!("\u{1b}[{}A\r\u{1b}[J", drawn.lines().count()).as_bytes());
        drawn.clear();
    }
}
