//! One tool call as a client knows it: the fold of its updates, its output, and its times.

use std::time::Duration;

use serde_json::Value;

use castor_base::{text, tool::ToolKind};
use castor_wire::acp::client::{CallDiff, CallLocation, CallPart, CallStatus, CallUpdate};

/// Bytes of output that are kept while it comes by pieces: its end.
pub const MAX_PRINTED: usize = 64 * 1024;
/// Bytes of an argument that are kept after the end of a call.
const MAX_ARGUMENT: usize = 4 * 1024;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Call {
    pub id: String,
    pub title: Option<String>,
    /// The tool's.
    pub name: Option<String>,
    pub kind: Option<ToolKind>,
    pub status: Option<CallStatus>,
    pub content: Vec<CallPart>,
    pub locations: Vec<CallLocation>,
    pub raw_input: Option<Value>,
    pub raw_output: Option<Value>,
    /// The end of what came piece by piece.
    pub pieces: String,
    /// It failed because nobody could be asked for an approval.
    pub is_unasked: bool,
    pub(super) times: CallTimes,
}

/// When a call ran, and how the user was asked about it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct CallTimes {
    /// `None`: it never ran, as far as is known.
    started: Option<Duration>,
    /// The last news of it: at last its end.
    ended: Duration,
    /// A question of it is up.
    asked_since: Option<Duration>,
    /// The user saw its diff with the question.
    was_shown: bool,
}

impl Call {
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Takes what an update tells: what it leaves out stays as it was.
    pub fn merge(&mut self, update: &CallUpdate) {
        replace(&mut self.title, &update.title);
        replace(&mut self.name, &update.tool_name().map(str::to_owned));
        replace(&mut self.kind, &update.kind);
        replace(&mut self.status, &update.status);
        replace(&mut self.raw_input, &update.raw_input);
        replace(&mut self.raw_output, &update.raw_output);
        if let Some(it) = &update.content {
            self.content.clone_from(it);
        }
        if let Some(it) = &update.locations {
            self.locations.clone_from(it);
        }
        self.is_unasked = update.is_unasked();
    }

    pub(super) fn take(&mut self, update: &CallUpdate, now: Duration) {
        let was_running = self.is_running();
        self.merge(update);
        if let Some(it) = update.printed() {
            self.print(it);
        }
        // What comes before is the model's and the user's time.
        if self.is_running() && !was_running {
            self.times.started = Some(now);
            self.times.asked_since = None;
        }
        if self.is_over() {
            self.release_question(now);
        }
        self.times.ended = now;
    }

    pub(super) fn print(&mut self, piece: &str) {
        self.pieces.push_str(piece);
        if self.pieces.len() > 2 * MAX_PRINTED {
            self.pieces = text::tail(&self.pieces, MAX_PRINTED).to_owned();
        }
    }

    pub(super) fn note_question(&mut self, now: Duration) {
        if !self.is_over() {
            self.times.asked_since.get_or_insert(now);
        }
    }

    pub(super) fn note_shown(&mut self) {
        self.times.was_shown = true;
    }

    /// The question is answered: the wait was no time of the call's.
    pub(super) fn release_question(&mut self, now: Duration) {
        let Some(since) = self.times.asked_since.take() else { return };
        self.times.ended = now;
        self.times.started = self.times.started.map(|it| it + now.saturating_sub(since));
    }

    /// Keeps what says which call it is.
    pub(super) fn forget_contents(&mut self) {
        self.content = Vec::new();
        self.raw_output = None;
        self.pieces = String::new();
        for it in self.raw_input.iter_mut().filter_map(Value::as_object_mut).flat_map(|it| it.values_mut()) {
            match it {
                Value::String(text) if text.len() > MAX_ARGUMENT => *text = text::head(text, MAX_ARGUMENT).to_owned(),
                Value::Array(_) | Value::Object(_) => *it = Value::Null,
                _ => (),
            }
        }
    }

    pub fn is_over(&self) -> bool {
        self.status.is_some_and(CallStatus::is_over)
    }

    pub fn is_failed(&self) -> bool {
        self.status.is_some_and(CallStatus::is_failed)
    }

    pub fn is_running(&self) -> bool {
        self.status == Some(CallStatus::InProgress)
    }

    pub fn is_command(&self) -> bool {
        self.kind == Some(ToolKind::Execute)
    }

    /// A question of it is up.
    pub fn is_asked(&self) -> bool {
        self.times.asked_since.is_some()
    }

    /// The user saw its diff with a question.
    pub fn was_shown(&self) -> bool {
        self.times.was_shown
    }

    /// How long it runs, or waits for anything but the user's answer; `None`: neither.
    pub fn run_time(&self, now: Duration) -> Option<Duration> {
        let since = self.times.started.filter(|_| self.is_running()).unwrap_or(self.times.ended);
        (self.is_running() || !self.is_over() && !self.is_asked()).then(|| now.saturating_sub(since))
    }

    /// How long it ran, from its start to its end; `None`: it did not.
    pub fn took(&self) -> Option<Duration> {
        self.times.started.map(|it| self.times.ended.saturating_sub(it))
    }

    pub fn title(&self) -> &str {
        self.title.as_deref().unwrap_or_default()
    }

    /// An argument that is a text.
    pub fn input(&self, key: &str) -> Option<&str> {
        self.raw_input.as_ref()?.get(key)?.as_str()
    }

    pub fn output(&self, key: &str) -> Option<&Value> {
        self.raw_output.as_ref()?.get(key).filter(|it| !it.is_null())
    }

    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.content.iter().filter_map(CallPart::text)
    }

    pub fn diffs(&self) -> impl Iterator<Item = &CallDiff> {
        self.content.iter().filter_map(CallPart::diff)
    }

    /// The file or folder that it is about.
    pub fn path(&self) -> Option<&str> {
        let location = self.locations.first().map(|it| it.path.as_str());
        location.or_else(|| self.input("file_path")).or_else(|| self.input("path"))
    }
}

fn replace<T: Clone>(field: &mut Option<T>, told: &Option<T>) {
    if told.is_some() {
        field.clone_from(told);
    }
}
