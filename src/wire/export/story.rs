//! What happened in a session, as people would tell it: messages whole, calls with their ends.

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
    pub head: Head<'a>,
    pub items: Vec<Item<'a>>,
    /// Which items a rewind took away.
    rewound: BTreeSet<usize>,
}

/// Behind what a rewind took away.
const MARK: &str = " (rewound)";

#[derive(Clone, Debug)]
pub struct Head<'a> {
    pub id: &'a SessionId,
    /// The session that it is a copy of.
    pub parent: Option<&'a SessionId>,
    pub cwd: &'a AbsPath,
    pub title: Option<&'a str>,
    pub model: &'a str,
    pub mode: Mode,
    pub castor: &'a str,
    pub created_ms: u64,
    pub updated_ms: u64,
    /// Of all model calls together.
    pub usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    User,
    Agent,
}

#[derive(Clone, Debug)]
pub enum Item<'a> {
    Said {
        who: Who,
        at_ms: u64,
        message: &'a MessageId,
        /// Text that continues text is joined.
        parts: Vec<Part>,
    },
    Call(Box<Call<'a>>),
    Plan(&'a Value),
    /// Something went wrong.
    Trouble(&'a str),
    /// One line beside the conversation.
    Note(String),
}

#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub name: &'a str,
    pub title: &'a str,
    pub args: &'a Value,
    /// What it would have done, or did.
    pub shown: Option<Shown<'a>>,
    /// What the model got; what was printed, while there is nothing better.
    pub output: String,
    pub ended: Ended<'a>,
    /// What the user said to it, where they were asked.
    pub answer: Option<Answer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended<'a> {
    /// Nobody saw the end.
    No,
    Well,
    /// It ran as it should, and what ran says that it failed.
    Exit(i32),
    Failed(&'a str),
}

#[derive(Clone, Debug)]
pub enum Shown<'a> {
    Text(&'a str),
    Diff { path: &'a AbsPath, before: Option<&'a str>, after: &'a str },
    Terminal { text: &'a str, exit: Option<i32> },
}

impl<'a> Story<'a> {
    /// `None` unless the facts begin as a log does.
    pub fn new(entries: &'a [Entry]) -> Option<Self> {
        let (first, rest) = entries.split_first()?;
        let Fact::Created { castor, session, cwd, mode, model, parent, .. } = &first.fact else { return None };
        let head = Head {
            id: session,
            parent: parent.as_ref(),
            cwd,
            title: None,
            model,
            mode: *mode,
            castor,
            created_ms: first.at,
            updated_ms: entries.last().map_or(first.at, |it| it.at),
            usage: Usage::default(),
        };
        let mut away = rewind::away(entries).into_iter().skip(1);
        let story = Self { head, items: Vec::new(), rewound: BTreeSet::new() };
        let mut teller = Teller { story, calls: BTreeMap::new() };
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
    pub fn told(&self) -> impl Iterator<Item = (&Item<'a>, &'static str)> {
        let mark = |at: usize| if self.rewound.contains(&at) { MARK } else { "" };
        self.items.iter().enumerate().map(move |(at, it)| (it, mark(at)))
    }

    pub fn calls(&self) -> impl Iterator<Item = &Call<'a>> {
        self.items.iter().filter_map(|it| match it {
            Item::Call(call) => Some(&**call),
            _ => None,
        })
    }

    pub fn n_prompts(&self) -> usize {
        self.items.iter().filter(|it| matches!(it, Item::Said { who: Who::User, .. })).count()
    }
}

struct Teller<'a> {
    story: Story<'a>,
    /// Where each call stands in the story.
    calls: BTreeMap<&'a CallId, usize>,
}

impl<'a> Teller<'a> {
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
            EventKind::Message { role, message_id, content, .. } => self.said(*role, at_ms, message_id, content),
            EventKind::ToolRequest { request_id, name, args, display, .. } => {
                self.calls.insert(request_id, self.story.items.len());
                let (shown, answer) = (None, None);
                let (title, output, ended) = (display.title.as_str(), String::new(), Ended::No);
                self.story.items.push(Item::Call(Box::new(Call { name, title, args, shown, output, ended, answer })));
            }
            EventKind::ToolUpdate { request_id, update } => {
                if let Some(call) = self.call(request_id) {
                    progress(call, update);
                }
            }
            EventKind::ToolResponse { request_id, content, display, error, .. } => {
                let Some(call) = self.call(request_id) else { return };
                call.shown = display.as_ref().map(shown).or(call.shown.take());
                call.output = joined_text(content);
                call.ended = match (error, &call.shown) {
                    (Some(it), _) => Ended::Failed(&it.message),
                    (None, Some(Shown::Terminal { exit: Some(code), .. })) if *code != 0 => Ended::Exit(*code),
                    (None, _) => Ended::Well,
                };
            }
            EventKind::Usage { usage, .. } => {
                self.story.head.usage = self.story.head.usage.plus(usage);
            }
            EventKind::Error { message, .. } => self.story.items.push(Item::Trouble(message)),
            EventKind::AgentEnd { reason } if *reason != EndReason::Completed => {
                self.note(format!("The turn ended early: {}", early(*reason)));
            }
            EventKind::Custom { kind, data } if kind == "plan" => self.story.items.push(Item::Plan(data)),
            _ => (),
        }
    }

    fn said(&mut self, role: Speaker, at_ms: u64, message: &'a MessageId, content: &[Part]) {
        let who = if role == Speaker::User { Who::User } else { Who::Agent };
        let goes_on = |it: &mut Item<'a>| match it {
            Item::Said { who: of, message: id, parts, .. } if *of == who && *id == message => {
                content.iter().for_each(|it| join(parts, it));
                true
            }
            _ => false,
        };
        if !self.story.items.last_mut().is_some_and(goes_on) {
            let mut parts = Vec::new();
            content.iter().for_each(|it| join(&mut parts, it));
            self.story.items.push(Item::Said { who, at_ms, message, parts });
        }
    }

    fn call(&mut self, id: &CallId) -> Option<&mut Call<'a>> {
        match self.story.items.get_mut(*self.calls.get(id)?) {
            Some(Item::Call(call)) => Some(call),
            _ => None,
        }
    }

    fn note(&mut self, text: String) {
        self.story.items.push(Item::Note(text));
    }
}

fn progress<'a>(call: &mut Call<'a>, update: &'a ToolProgress) {
    match update {
        ToolProgress::Described { display } | ToolProgress::Started { display: Some(display) } => {
            call.title = &display.title;
        }
        ToolProgress::Proposed { display } => call.shown = Some(shown(display)),
        ToolProgress::Printed { text } => call.output.push_str(text),
        ToolProgress::Started { display: None } | ToolProgress::Attached { .. } => (),
    }
}

fn shown(it: &Display) -> Shown<'_> {
    match it {
        Display::Text { text } => Shown::Text(text),
        Display::Diff { path, before, after } => Shown::Diff { path, before: before.as_deref(), after },
        Display::Terminal { text, exit } => Shown::Terminal { text, exit: *exit },
    }
}

fn join(parts: &mut Vec<Part>, part: &Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Text { text, .. }), Part::Text { text: more, .. })
        | (Some(Part::Thought { thought: text, .. }), Part::Thought { thought: more, .. }) => text.push_str(more),
        _ => parts.push(part.clone()),
    }
}

fn early(reason: EndReason) -> &'static str {
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
pub(super) fn unified(before: Option<&str>, after: &str) -> String {
    let diff = similar::TextDiff::from_lines(before.unwrap_or_default(), after);
    diff.unified_diff().context_radius(3).to_string()
}
