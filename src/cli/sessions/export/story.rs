//! The story of a session for exports: whole messages, and calls with their results.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::{
    super::spans::{SpanTracker, TimeSpan},
    call::{AgentFacts, Call, CallContent, EndedCall, output_of, progress},
    spending::Spending,
};
use castor_base::{
    checkpoint::Changes,
    content::{Part, joined_text},
    endings::is_ending,
    event::{EndReason, EventKind, Speaker},
    ids::{CallId, MessageId, SessionId},
    log::{Entry, Fact, Mode},
    path::AbsPath,
    rewind,
};
use castor_engine::session_tools::TODO_TOOL;

/// A session, told.
#[derive(Clone, Debug)]
pub struct Story<'a> {
    pub head: StoryHead<'a>,
    pub items: Vec<StoryItem<'a>>,
    pub turns: Vec<Turn>,
    /// When the model and the tools worked, and the user was waited for.
    pub spans: Vec<TimeSpan>,
    /// By path.
    pub changes: BTreeMap<PathBuf, ChangedFile>,
    /// Of the last turn; `None`: it is not over.
    pub end: Option<EndReason>,
    /// Which items a rewind took away.
    rewound: BTreeSet<usize>,
}

/// A prompt and all that came of it.
#[derive(Clone, Debug, Default)]
pub struct Turn {
    /// Its first item.
    pub first: usize,
    pub at_ms: u64,
    pub ended_ms: Option<u64>,
    pub spent: Spending,
    /// The agent works on it.
    is_open: bool,
}

/// What the session changed in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedFile {
    pub added: u64,
    pub removed: u64,
    /// Numbers of turns, from 1.
    pub turns: BTreeSet<usize>,
}

/// Behind what a rewind took away.
const REWOUND_MARK: &str = " (rewound)";

#[derive(Clone, Debug)]
pub struct StoryHead<'a> {
    pub id: &'a SessionId,
    /// The session that it is a copy of.
    pub parent: Option<&'a SessionId>,
    pub cwd: &'a AbsPath,
    pub title: Option<&'a str>,
    pub model: &'a str,
    pub mode: Mode,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// Of all model calls together.
    pub spent: Spending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorySpeaker {
    User,
    Agent,
}

#[derive(Clone, Debug)]
pub enum StoryItem<'a> {
    Message {
        who: StorySpeaker,
        at_ms: u64,
        message: &'a MessageId,
        /// Text that continues text is joined.
        parts: Vec<Part>,
    },
    Call(Box<Call<'a>>),
    /// Status and text of each task.
    Plan(Vec<(&'a str, &'a str)>),
    /// Something went wrong.
    Error(&'a str),
    /// One line beside the conversation.
    Note(String),
}

impl<'a> Story<'a> {
    /// `None` unless the facts begin as a log does.
    pub fn new(entries: &'a [Entry]) -> Option<Self> {
        let (first, rest) = entries.split_first()?;
        let Fact::Created { session, cwd, mode, model, parent, .. } = &first.fact else { return None };
        let head = StoryHead {
            id: session,
            parent: parent.as_ref(),
            cwd,
            title: None,
            model,
            mode: *mode,
            created_ms: first.at,
            updated_ms: entries.last().map_or(first.at, |it| it.at),
            spent: Spending::default(),
        };
        let mut away = rewind::removed_entries(entries).into_iter().skip(1);
        let (turns, changes) = (Vec::new(), BTreeMap::new());
        let (spans, rewound) = (Vec::new(), BTreeSet::new());
        let story = Self { head, items: Vec::new(), turns, spans, changes, end: None, rewound };
        let mut teller = StoryBuilder { story, calls: BTreeMap::new(), todos: None };
        let mut tracker = SpanTracker::default();
        for entry in rest {
            tracker.track(entry, &mut teller.story.spans);
            let (is_away, from) = (away.next() == Some(true), teller.story.items.len());
            let title = teller.story.head.title;
            teller.fact(entry);
            if is_away {
                teller.story.head.title = title;
                teller.story.rewound.extend(from..teller.story.items.len());
            }
        }
        teller.count_diffs();
        Some(teller.story)
    }

    /// Each item, and what marks it if a rewind took it away.
    pub fn marked_items(&self) -> impl Iterator<Item = (&StoryItem<'a>, &'static str)> {
        self.items.iter().enumerate().map(|(at, it)| (it, self.mark(at)))
    }

    /// What marks an item if a rewind took it away.
    pub fn mark(&self, at: usize) -> &'static str {
        if self.is_rewound(at) { REWOUND_MARK } else { "" }
    }

    pub fn is_rewound(&self, at: usize) -> bool {
        self.rewound.contains(&at)
    }

    /// The items of a turn, with their places.
    pub fn items_of(&self, nth: usize) -> impl Iterator<Item = (usize, &StoryItem<'a>)> {
        let first = self.turns.get(nth).map_or(0, |it| it.first);
        let next = self.turns.get(nth + 1).map_or(self.items.len(), |it| it.first);
        self.items.iter().enumerate().take(next).skip(first)
    }

    /// The text of the turn's first prompt.
    pub fn prompt(&self, nth: usize) -> Option<String> {
        self.items_of(nth).find_map(|(_, it)| match it {
            StoryItem::Message { who: StorySpeaker::User, parts, .. } => Some(joined_text(parts)),
            _ => None,
        })
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.items.iter().filter_map(|it| if let StoryItem::Call(call) = it { Some(&**call) } else { None })
    }

    pub fn n_prompts(&self) -> usize {
        self.items.iter().filter(|it| matches!(it, StoryItem::Message { who: StorySpeaker::User, .. })).count()
    }
}

struct StoryBuilder<'a> {
    story: Story<'a>,
    /// Where each call stands in the story.
    calls: BTreeMap<&'a CallId, CallPlace>,
    /// The arguments of the last call that set the plan: they have the tasks that a plan leaves out.
    todos: Option<&'a Value>,
}

struct CallPlace {
    item: usize,
    turn: usize,
    /// A checkpoint counted what it changed.
    is_counted: bool,
}

impl<'a> StoryBuilder<'a> {
    fn fact(&mut self, entry: &'a Entry) {
        match &entry.fact {
            // An end that a crash left out tells nothing of what was done.
            Fact::Event { event } if is_ending(event) => (),
            Fact::Event { event } => self.event(event.timestamp, &event.kind),
            Fact::Checkpoint { call: Some(call), changes: Some(changes), .. } => self.count_changes(call, changes),
            Fact::AttemptFailed { failure, abandoned, .. } => {
                let what = if *abandoned { "The answer so far was given up" } else { "The model failed" };
                self.note(format!("{what}: {}", failure.message));
            }
            Fact::Fallback { from, to: Some(to), .. } => self.note(format!("{to} took over from {from}")),
            Fact::Answered { call, answer } => {
                if let Some(call) = self.call(call) {
                    call.answer = Some(answer.clone());
                }
            }
            Fact::Mode { mode } => {
                self.story.head.mode = *mode;
                self.note(format!("Mode: {}", mode.as_str()));
            }
            Fact::Model { model, .. } => {
                self.story.head.model = model;
                self.note(format!("Model: {model}"));
            }
            // The rest explains, or tells what an event tells better.
            _ => (),
        }
    }

    fn event(&mut self, at_ms: u64, kind: &'a EventKind) {
        match kind {
            EventKind::SessionUpdate { title: Some(title), .. } => self.story.head.title = Some(title),
            EventKind::AgentStart {} => match self.story.turns.last_mut() {
                Some(turn) if !turn.is_open && turn.ended_ms.is_none() => turn.is_open = true,
                _ => self.begin_turn(at_ms, true),
            },
            EventKind::Message { role, message_id, content, .. } => {
                let is_in_turn = self.story.turns.last().is_some_and(|it| it.is_open);
                if *role == Speaker::User && !is_in_turn {
                    self.begin_turn(at_ms, false);
                }
                self.add_message(*role, at_ms, message_id, content);
            }
            EventKind::ToolRequest { request_id, name, args, display, .. } => {
                let turn = self.story.turns.len().saturating_sub(1);
                self.calls.insert(request_id, CallPlace { item: self.story.items.len(), turn, is_counted: false });
                if name == TODO_TOOL {
                    self.todos = Some(args);
                }
                self.story.items.push(StoryItem::Call(Box::new(Call::new(request_id, (name, args), display))));
            }
            EventKind::ToolUpdate { request_id, update } => {
                if let Some(call) = self.call(request_id) {
                    progress(call, at_ms, update);
                }
            }
            EventKind::ToolResponse { request_id, content, display, error, data, .. } => {
                if let Some(call) = self.call(request_id) {
                    call.end(at_ms, output_of(content, error.as_ref()), display.as_ref(), error.as_ref());
                    call.run = AgentFacts::from_result(data).map(Box::new).or(call.run.take());
                }
            }
            EventKind::Usage { usage, cost, .. } => {
                self.story.head.spent.add(usage, *cost);
                if let Some(turn) = self.story.turns.last_mut() {
                    turn.spent.add(usage, *cost);
                }
            }
            EventKind::Error { message, .. } => self.story.items.push(StoryItem::Error(message)),
            EventKind::AgentEnd { reason, .. } => {
                if let Some(turn) = self.story.turns.last_mut() {
                    (turn.ended_ms, turn.is_open) = (Some(at_ms), false);
                }
                self.story.end = Some(*reason);
                if *reason != EndReason::Completed {
                    self.note(format!("The turn ended early: {}", end_in_words(*reason)));
                }
            }
            EventKind::Custom { kind, data } if kind == "plan" => {
                let tasks = tasks(data, self.todos.take());
                self.story.items.push(StoryItem::Plan(tasks));
            }
            _ => (),
        }
    }

    fn add_message(&mut self, role: Speaker, at_ms: u64, message: &'a MessageId, content: &[Part]) {
        let who = if role == Speaker::User { StorySpeaker::User } else { StorySpeaker::Agent };
        let goes_on = |it: &mut StoryItem<'a>| match it {
            StoryItem::Message { who: of, message: id, parts, .. } if *of == who && *id == message => {
                content.iter().for_each(|it| join_text(parts, it));
                true
            }
            _ => false,
        };
        if !self.story.items.last_mut().is_some_and(goes_on) {
            let mut parts = Vec::new();
            content.iter().for_each(|it| join_text(&mut parts, it));
            self.story.items.push(StoryItem::Message { who, at_ms, message, parts });
        }
    }

    fn begin_turn(&mut self, at_ms: u64, is_open: bool) {
        let first = self.story.items.len();
        self.story.end = None;
        self.story.turns.push(Turn { first, at_ms, is_open, ..Turn::default() });
    }

    /// What a checkpoint says that a call changed.
    fn count_changes(&mut self, id: &CallId, changes: &Changes) {
        let Some(place) = self.calls.get_mut(id) else { return };
        place.is_counted = true;
        let nth = place.turn;
        for it in &changes.files {
            self.count(&it.path, nth, [it.added, it.removed]);
        }
    }

    /// The same of edits without a checkpoint, by their diffs.
    fn count_diffs(&mut self) {
        let mut found = Vec::new();
        for place in self.calls.values().filter(|it| !it.is_counted) {
            let Some(StoryItem::Call(call)) = self.story.items.get(place.item) else { continue };
            if let (EndedCall::Succeeded, Some(CallContent::Diffs(files))) = (call.end, &call.content) {
                let count = |(path, before, after): &(&AbsPath, Option<&str>, &str)| {
                    (path.as_path().to_owned(), place.turn, count_lines(*before, after))
                };
                found.extend(files.iter().map(count));
            }
        }
        for (path, turn, lines) in found {
            self.count(&path, turn, lines);
        }
    }

    fn count(&mut self, path: &Path, turn: usize, [added, removed]: [u64; 2]) {
        let inside = path.strip_prefix(self.story.head.cwd.as_path()).ok().filter(|it| !it.as_os_str().is_empty());
        let path = inside.unwrap_or(path);
        let file = self.story.changes.entry(path.to_owned()).or_default();
        file.added += added;
        file.removed += removed;
        file.turns.insert(turn + 1);
    }

    fn call(&mut self, id: &CallId) -> Option<&mut Call<'a>> {
        if let Some(StoryItem::Call(call)) = self.story.items.get_mut(self.calls.get(id)?.item) {
            Some(call)
        } else {
            None
        }
    }

    fn note(&mut self, text: String) {
        self.story.items.push(StoryItem::Note(text));
    }
}

fn join_text(parts: &mut Vec<Part>, part: &Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Text { text, .. }), Part::Text { text: more, .. })
        | (Some(Part::Thought { thought: text, .. }), Part::Thought { thought: more, .. }) => text.push_str(more),
        _ => parts.push(part.clone()),
    }
}

pub(super) fn end_in_words(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Completed => "done",
        EndReason::Failed => "failed",
        EndReason::Aborted => "cancelled",
        EndReason::MaxTurns => "limit of model calls",
        EndReason::MaxBudget => "limit of tokens",
        EndReason::MaxTime => "limit of time",
        EndReason::Refusal => "refused by the model",
    }
}

/// Status and text of the tasks of a plan, with those that the arguments of its call have besides.
fn tasks<'a>(plan: &'a Value, todos: Option<&'a Value>) -> Vec<(&'a str, &'a str)> {
    let list = |of: &'a Value, member: &str, text: &str| -> Vec<(&'a str, &'a str)> {
        let items = of.get(member).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let word = |it: &'a Value, name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default();
        items.iter().map(|it| (word(it, "status"), word(it, text))).collect()
    };
    let shown = list(plan, "entries", "content");
    let all = todos.map(|it| list(it, "todos", "description")).unwrap_or_default();
    let has_all = shown.iter().all(|(_, text)| all.iter().any(|(_, it)| it == text));
    if has_all && all.len() > shown.len() { all } else { shown }
}

/// Lines that were added and removed.
pub(super) fn count_lines(before: Option<&str>, after: &str) -> [u64; 2] {
    let diff = similar::TextDiff::from_lines(before.unwrap_or_default(), after);
    let count = |tag| diff.iter_all_changes().filter(|it| it.tag() == tag).count() as u64;
    [count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete)]
}

/// Changed lines with three lines around them.
pub(super) fn unified_diff(before: Option<&str>, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before.unwrap_or_default(), after);
    diff.unified_diff().context_radius(3).to_string()
}
