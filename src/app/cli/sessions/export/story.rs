//! The story of a session for exports: whole messages, and calls with their results.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::base::{
    content::{Part, joined_text},
    event::{EndReason, EventKind, Speaker, ToolProgress},
    ids::{CallId, MessageId, SessionId},
    log::{Answer, Entry, Fact, Mode},
    model::Usage,
    path::AbsPath,
    rewind,
    tool::Display,
};

/// A session, told.
#[derive(Clone, Debug)]
pub struct Story<'a> {
    pub head: StoryHead<'a>,
    pub items: Vec<StoryItem<'a>>,
    /// Which items a rewind took away.
    rewound: BTreeSet<usize>,
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
    pub usage: Usage,
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
    Plan(&'a Value),
    /// Something went wrong.
    Error(&'a str),
    /// One line beside the conversation.
    Note(String),
}

#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub args: &'a Value,
    /// What it would have done, or did.
    pub content: Option<CallContent<'a>>,
    /// What the model got; what was printed, while there is nothing better.
    pub output: String,
    pub end: EndedCall<'a>,
    /// What the user said to it, where they were asked.
    pub answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndedCall<'a> {
    /// The end is unknown.
    Unknown,
    Succeeded,
    /// It ran as it should, and what ran says that it failed.
    Exit(i32),
    Failed(&'a str),
}

#[derive(Clone, Debug)]
pub enum CallContent<'a> {
    Text(&'a str),
    Diff { path: &'a AbsPath, before: Option<&'a str>, after: &'a str },
    Terminal { text: &'a str, exit: Option<i32> },
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
            usage: Usage::default(),
        };
        let mut away = rewind::removed_entries(entries).into_iter().skip(1);
        let story = Self { head, items: Vec::new(), rewound: BTreeSet::new() };
        let mut teller = StoryBuilder { story, calls: BTreeMap::new() };
        for entry in rest {
            let (is_away, from) = (away.next() == Some(true), teller.story.items.len());
            let title = teller.story.head.title;
            teller.fact(entry);
            if is_away {
                teller.story.head.title = title;
                teller.story.rewound.extend(from..teller.story.items.len());
            }
        }
        Some(teller.story)
    }

    /// Each item, and what marks it if a rewind took it away.
    pub fn marked_items(&self) -> impl Iterator<Item = (&StoryItem<'a>, &'static str)> {
        let mark = |at: usize| if self.rewound.contains(&at) { REWOUND_MARK } else { "" };
        self.items.iter().enumerate().map(move |(at, it)| (it, mark(at)))
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
    calls: BTreeMap<&'a CallId, usize>,
}

impl<'a> StoryBuilder<'a> {
    fn fact(&mut self, entry: &'a Entry) {
        match &entry.fact {
            Fact::Event { event } => self.event(entry.at, &event.kind),
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
            EventKind::Message { role, message_id, content, .. } => self.add_message(*role, at_ms, message_id, content),
            EventKind::ToolRequest { request_id, name, args, display, .. } => {
                self.calls.insert(request_id, self.story.items.len());
                let (shown, answer) = (None, None);
                let (title, output, ended) = (display.title.as_str(), String::new(), EndedCall::Unknown);
                self.story.items.push(StoryItem::Call(Box::new(Call {
                    name,
                    title,
                    args,
                    content: shown,
                    output,
                    end: ended,
                    answer,
                })));
            }
            EventKind::ToolUpdate { request_id, update } => {
                if let Some(call) = self.call(request_id) {
                    progress(call, update);
                }
            }
            EventKind::ToolResponse { request_id, content, display, error, .. } => {
                let Some(call) = self.call(request_id) else { return };
                call.content = display.as_ref().map(call_content).or(call.content.take());
                call.output = joined_text(content);
                call.end = match (error, &call.content) {
                    (Some(it), _) => EndedCall::Failed(&it.message),
                    (None, Some(CallContent::Terminal { exit: Some(code), .. })) if *code != 0 => {
                        EndedCall::Exit(*code)
                    }
                    (None, _) => EndedCall::Succeeded,
                };
            }
            EventKind::Usage { usage, .. } => {
                self.story.head.usage = self.story.head.usage.plus(usage);
            }
            EventKind::Error { message, .. } => self.story.items.push(StoryItem::Error(message)),
            EventKind::AgentEnd { reason } if *reason != EndReason::Completed => {
                self.note(format!("The turn ended early: {}", early_end(*reason)));
            }
            EventKind::Custom { kind, data } if kind == "plan" => self.story.items.push(StoryItem::Plan(data)),
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

    fn call(&mut self, id: &CallId) -> Option<&mut Call<'a>> {
        if let Some(StoryItem::Call(call)) = self.story.items.get_mut(*self.calls.get(id)?) { Some(call) } else { None }
    }

    fn note(&mut self, text: String) {
        self.story.items.push(StoryItem::Note(text));
    }
}

fn progress<'a>(call: &mut Call<'a>, update: &'a ToolProgress) {
    match update {
        ToolProgress::Described { display } | ToolProgress::Started { display: Some(display) } => {
            call.title = &display.title;
        }
        ToolProgress::Proposed { display } => call.content = Some(call_content(display)),
        ToolProgress::Printed { text } => call.output.push_str(text),
        ToolProgress::Started { display: None } | ToolProgress::Attached { .. } => (),
    }
}

fn call_content(it: &Display) -> CallContent<'_> {
    match it {
        Display::Text { text } => CallContent::Text(text),
        Display::Diff { path, before, after } => CallContent::Diff { path, before: before.as_deref(), after },
        Display::Terminal { text, exit } => CallContent::Terminal { text, exit: *exit },
    }
}

fn join_text(parts: &mut Vec<Part>, part: &Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Text { text, .. }), Part::Text { text: more, .. })
        | (Some(Part::Thought { thought: text, .. }), Part::Thought { thought: more, .. }) => text.push_str(more),
        _ => parts.push(part.clone()),
    }
}

fn early_end(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Completed => "completed",
        EndReason::Failed => "failed",
        EndReason::Aborted => "cancelled",
        EndReason::MaxTurns => "limit of model calls",
        EndReason::MaxBudget => "limit of tokens",
        EndReason::MaxTime => "limit of time",
        EndReason::Refusal => "refused by the model",
    }
}

/// What the user said, for people.
pub(super) fn answer(it: &Answer) -> &'static str {
    match it {
        Answer::AllowOnce => "allowed once",
        Answer::AllowSession => "allowed for the session",
        Answer::Reject => "refused",
        Answer::Cancelled => "cancelled",
        _ => "not answered",
    }
}

/// The tasks of a plan, and how far each is.
pub(super) fn tasks(plan: &Value) -> impl Iterator<Item = (&str, &str)> {
    let entries = plan.get("entries").and_then(Value::as_array).into_iter().flatten();
    entries.map(|it| {
        let text = |name: &str| it.get(name).and_then(Value::as_str).unwrap_or_default();
        (text("status"), text("content"))
    })
}

/// Changed lines with three lines around them.
pub(super) fn unified_diff(before: Option<&str>, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before.unwrap_or_default(), after);
    diff.unified_diff().context_radius(3).to_string()
}
