//! The screen of `castor run`: the answer on stdout in one of three formats, all else on stderr.

use std::{
    future, io, thread,
    time::{Duration, Instant},
};

pub use super::turn_output::ScreenStyle;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    sync::{mpsc, oneshot},
    time,
};

use super::{
    report::{RunEnd, RunReport},
    stream_json::{StreamEvent, StreamRole, Warning},
    turn_output::{OutputPiece, TerminalSize, TurnOutput},
};
use crate::cli::{
    args::OutputFormat,
    client::{change_summary::ChangeSummary, start::short_id},
    render::{end_line::TurnEnd, text::Line},
    terminal_text::clean_line,
};
use castor_agent::server::event_loop::unix_ms;
use castor_client::{
    Change, Conversation,
    call::Call,
    failure::{Failure, approval_hint},
    questions::Question,
};
use castor_wire::acp::client::{ClientEvent, PromptAnswer, SessionEvent, Voice};

/// Batches that may wait for a slow terminal or pipe; when it is full, nothing more is read from the agent.
const QUEUE: usize = 16;
/// Where the terminal does not tell.
const USUAL_SIZE: TerminalSize = (80, 24);
const MAX_MODEL: usize = 200;
/// How long the size of the terminal is believed.
const SIZE_PERIOD: Duration = Duration::from_millis(15);

pub struct Screen {
    output: TurnOutput,
    writer: Option<mpsc::Sender<Vec<OutputPiece>>>,
    written: oneshot::Receiver<io::Result<()>>,
    batch: Vec<OutputPiece>,
    started: Instant,
    /// With the time at which it was so.
    size: Option<(TerminalSize, Duration)>,
    /// In files.
    pub changes: ChangeSummary,
    pub report: RunReport,
    events: u64,
    pub end: TurnEnd,
}

impl Screen {
    pub fn new(style: ScreenStyle, out: impl io::Write + Send + 'static, err: impl io::Write + Send + 'static) -> Self {
        let (writer, pieces) = mpsc::channel(QUEUE);
        let (done, written) = oneshot::channel();
        // A plain thread: a write to a pipe that nobody reads must not stop the loop, or Ctrl-C would do nothing.
        thread::spawn(move || {
            let written = write_pieces(pieces, out, err);
            // A reader that left, as `head`, has what it wanted.
            let is_left = |it: &io::Error| it.kind() == io::ErrorKind::BrokenPipe;
            _ = done.send(if written.as_ref().is_err_and(is_left) { Ok(()) } else { written });
        });
        let mut res = Self {
            output: TurnOutput::new(style),
            writer: Some(writer),
            written,
            batch: Vec::new(),
            started: Instant::now(),
            size: None,
            changes: ChangeSummary::default(),
            report: RunReport::default(),
            events: 0,
            end: TurnEnd::default(),
        };
        // What is noted before the first draw is wrapped, too.
        let size = res.size();
        res.output.set_size(size);
        res
    }

    pub fn is_text(&self) -> bool {
        self.output.is_text()
    }

    /// Whether all that is said are events.
    pub fn has_events(&self) -> bool {
        self.output.style.format == OutputFormat::Events
    }

    /// Whether answers of the agent are sure only when it goes on. People on a terminal see them at once all the same.
    pub fn set_may_discard(&mut self, may_discard: bool) {
        self.output.answer.may_discard = may_discard;
    }

    /// Paths are shown as they are seen from this folder.
    pub fn set_cwd(&mut self, cwd: &str) {
        self.changes.roots.push(cwd.into());
        self.output.set_cwd(cwd);
    }

    /// The session is open.
    pub fn note_session(&mut self, id: &str, model: &str) {
        self.stream(|_| vec![StreamEvent::Init { session_id: id.to_owned(), model: clean_line(model, MAX_MODEL) }]);
    }

    /// What the user says in it.
    pub fn note_prompt(&mut self, text: &str) {
        let content = text.to_owned();
        self.stream(|_| vec![StreamEvent::Message { role: StreamRole::User, content, delta: false }]);
    }

    /// Writes lines of `stream-json`, where that is the format.
    fn stream(&mut self, events: impl FnOnce(&mut Self) -> Vec<StreamEvent>) {
        if self.output.style.format != OutputFormat::StreamJson {
            return;
        }
        for it in events(self) {
            self.output.write_stdout(it.to_line(unix_ms()));
        }
    }

    /// The prompt is on its way.
    pub fn start_turn(&mut self) {
        self.output.start(self.started.elapsed());
    }

    /// Takes what the answer to the prompt says of tokens and money.
    pub fn set_prompt_answer(&mut self, answer: &PromptAnswer) {
        self.end.usage = answer.usage;
        self.end.cost = answer.cost();
        self.report.take_meta(answer.meta.as_ref());
        self.output.talk_mut().note_answer(answer.clone());
    }

    /// The conversation so far.
    pub fn talk(&self) -> &Conversation {
        self.output.talk()
    }

    pub fn set_cancelling(&mut self) {
        self.output.set_cancelling();
    }

    /// Ends when stdout was closed from outside.
    pub async fn closed(&self) {
        if let Some(it) = &self.writer { it.closed().await } else { future::pending().await }
    }

    /// Ends when there is room for what could not be flushed, or a draw is due.
    pub async fn room(&self) {
        let Some(writer) = &self.writer else { return future::pending().await };
        if !self.batch.is_empty() {
            _ = writer.reserve().await;
            return;
        }
        match self.output.draw_time() {
            Some(at) => time::sleep_until((self.started + at).into()).await,
            None => future::pending().await,
        }
        // A draw that waits in the queue would be late: this one is made when all others are written.
        _ = writer.reserve_many(QUEUE).await;
    }

    /// Ends when there is room for what the agent's next message will show. Only the loop sends, so the room is still there
    /// when the message is.
    pub async fn has_room(&self) {
        if let Some(writer) = &self.writer {
            _ = writer.reserve_many(if self.output.is_full() { QUEUE } else { 1 }).await;
        }
    }
}

impl Screen {
    /// An event of the prompt's turn.
    pub fn update(&mut self, SessionEvent { session, event, .. }: &SessionEvent) {
        let now = self.started.elapsed();
        let change = self.output.talk_mut().update(session, event, now);
        let is_main = !self.talk().agents.is_child(session);
        let ended = change.call.as_ref().filter(|it| it.has_ended);
        if let Some(call) = ended.and_then(|it| self.output.talk().call(session, &it.id)).filter(|it| !it.is_failed()) {
            self.changes.edits.add(call.diffs());
        }
        if let (true, ClientEvent::Usage(it)) = (is_main, event) {
            self.report.take_usage(it);
        }
        let warning = Warning::of(event);
        if let Some(it) = &warning {
            self.report.take_warning(&it.message);
            self.stream(|_| vec![StreamEvent::of_warning(it)]);
        } else if is_main {
            self.stream(|it| it.stream_lines(event, &change));
        }
        self.output.show(session, event, &change, now);
    }

    fn stream_lines(&mut self, event: &ClientEvent, change: &Change) -> Vec<StreamEvent> {
        if let ClientEvent::Chunk(Voice::Answer, it) = event {
            let content = it.text().map(|it| self.output.answer.clean(it).into_owned());
            let line =
                content.map(|content| StreamEvent::Message { role: StreamRole::Assistant, content, delta: true });
            return line.into_iter().collect();
        }
        let (ClientEvent::Call(told), Some(change)) = (event, &change.call) else { return Vec::new() };
        let Some(call) = self.talk().main_call(&change.id) else { return Vec::new() };
        let begins = (change.is_new && told.begins).then(|| StreamEvent::of_new_call(call));
        let ends = change.has_ended.then(|| StreamEvent::of_ended_call(call));
        begins.into_iter().chain(ends).collect()
    }

    /// A notification `_castor/session/event`: its event is passed on as it was written.
    pub fn event(&mut self, params: &RawValue) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            event: &'a RawValue,
        }
        if self.output.style.format != OutputFormat::Events {
            return;
        }
        if let Ok(Params { event }) = serde_json::from_str(params.get()) {
            self.events += 1;
            self.output.write_stdout(format!("{}\n", event.get()));
        }
    }

    /// A question is put to the user: what is known of its call, and the agent that asks, where that is a sub-agent.
    pub fn take_question(&mut self, question: &Question) -> (Call, Option<String>) {
        let now = self.started.elapsed();
        let call = question.note_in(self.output.talk_mut(), now);
        (call, question.asker(self.output.talk()))
    }

    /// A remark of our own.
    pub fn note(&mut self, line: &str) {
        self.output.note(line);
    }

    /// A line of the agent's stderr.
    pub fn agent_log(&mut self, line: &str) {
        self.output.agent_log(line);
    }

    /// Text for stderr as it is, such as a question.
    pub fn write_stderr(&mut self, text: String) {
        self.output.write_stderr(text);
    }

    /// Whether a question waits for its answer: nothing else is waited for then.
    pub fn set_asking(&mut self, is_asking: bool) {
        self.output.set_asking(is_asking, self.started.elapsed());
    }

    /// Finished lines that are not the answer.
    pub fn print_lines(&mut self, lines: &[Line]) {
        self.output.print_lines(lines);
    }

    /// What the user is asked or types; it stands below everything else.
    pub fn set_panel(&mut self, lines: Vec<Line>) {
        self.output.set_panel(lines);
    }

    /// Columns of the terminal that is drawn on.
    pub fn width(&mut self) -> usize {
        self.size().0
    }

    /// It is asked for anew for each draw, not for each chunk.
    fn size(&mut self) -> TerminalSize {
        let (style, now) = (self.output.style, self.started.elapsed());
        if (style.is_live || style.stdout_is_terminal) && self.size.is_none_or(|it| now - it.1 >= SIZE_PERIOD) {
            self.size = Some((terminal_size(), now));
        }
        self.size.map_or(USUAL_SIZE, |it| it.0)
    }

    /// The last words: the rest of the answer, the JSON object, the reason of a failure.
    pub fn conclude(&mut self, session: Option<&str>, end: &Result<String, Failure>, took: Duration) {
        self.output.end(self.started.elapsed());
        match (self.output.style.format, end) {
            (OutputFormat::Events, Ok(_)) if self.events == 0 => {
                self.note("this agent sends no events: castor does");
            }
            // A program that reads events must learn how the run ended.
            (OutputFormat::Events, Err(it)) if it.exit.code() > 0 => {
                self.output.write_stdout(it.to_event_line(unix_ms()));
            }
            (OutputFormat::Json | OutputFormat::StreamJson, _) => {
                let answer = self.output.answer.take_all();
                let (end, talk) = (RunEnd { session, end, took }, self.output.talk());
                let object = self.report.finish(&end, answer, talk, &self.changes.edits);
                let line = match self.output.style.format {
                    OutputFormat::Json => object.to_line(),
                    _ => StreamEvent::of_result(object).to_line(unix_ms()),
                };
                self.output.write_stdout(line);
            }
            _ => (),
        }
        let failure = end.as_ref().err().filter(|it| !it.message.is_empty());
        let hint =
            approval_hint(self.talk().counts()).filter(|it| failure.is_none_or(|failure| failure.message != *it));
        for it in hint.iter().chain(failure.map(|it| &it.message)) {
            self.note(it);
        }
        if self.is_text() {
            self.print_end(session, took);
        }
    }

    fn print_end(&mut self, session: Option<&str>, took: Duration) {
        let changed = self.changes.counted.take();
        if let Some(warning) = changed.as_ref().and_then(|it| it.warning.as_deref()) {
            self.note(warning);
        }
        self.end.changes = changed.map(|it| it.words).or_else(|| self.changes.edits.in_words());
        self.end.took = took;
        // Only castor's own sessions are known to be there later.
        self.end.resume = session.filter(|_| self.output.answer.may_discard).map(resume_command);
        self.output.print_end(std::mem::take(&mut self.end));
    }

    /// What would have been the answer, if it was not shown yet.
    pub fn take_answer(&mut self) -> String {
        self.output.answer.take_all()
    }

    /// The last message that is held back until it is known to fit.
    pub fn take_held(&mut self) -> String {
        self.output.answer.take_last()
    }

    /// The answer as it goes out, in the place of what was held.
    pub fn set_answer(&mut self, text: &str) {
        match self.output.style.format {
            OutputFormat::Text => self.output.write_stdout(format!("{text}\n")),
            _ => self.output.answer.hold(text),
        }
    }

    /// The turn is over, and another one follows.
    pub fn end_turn(&mut self) {
        self.output.end(self.started.elapsed());
    }

    /// Gives what was collected to the writer, or keeps it when there is no room.
    pub fn flush(&mut self) {
        let size = self.size();
        let Some(writer) = &self.writer else { return };
        let is_idle = writer.capacity() == QUEUE && self.batch.is_empty();
        let now = self.started.elapsed();
        self.batch.extend(self.output.take_pieces(now, size, is_idle));
        if self.batch.is_empty() {
            return;
        }
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
        let size = self.size();
        self.batch.extend(self.output.take_last(size));
        if let Some(writer) = self.writer.take() {
            _ = writer.send(std::mem::take(&mut self.batch)).await;
        }
        self.written.await.unwrap_or(Ok(()))
    }
}

fn resume_command(session: &str) -> String {
    format!("castor run -r {} \"…\"", short_id(session))
}

#[cfg(unix)]
fn terminal_size() -> TerminalSize {
    let known = |it: &rustix::termios::Winsize| it.ws_col > 0 && it.ws_row > 0;
    let of_stderr = rustix::termios::tcgetwinsize(io::stderr()).ok().filter(known);
    let size = of_stderr.or_else(|| rustix::termios::tcgetwinsize(io::stdout()).ok().filter(known));
    size.map_or(USUAL_SIZE, |it| (it.ws_col.into(), it.ws_row.into()))
}

#[cfg(not(unix))]
fn terminal_size() -> TerminalSize {
    USUAL_SIZE
}

fn write_pieces(
    mut pieces: mpsc::Receiver<Vec<OutputPiece>>,
    mut out: impl io::Write,
    mut err: impl io::Write,
) -> io::Result<()> {
    while let Some(batch) = pieces.blocking_recv() {
        for piece in batch {
            match piece {
                OutputPiece::Out(text) => out.write_all(text.as_bytes())?,
                // A closed stderr is no reason to stop.
                OutputPiece::Err(text) => _ = err.write_all(text.as_bytes()),
            }
        }
        out.flush()?;
    }
    Ok(())
}
