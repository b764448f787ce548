//! A call in the story of a session: what it was about, what came of it, and how it ended.

use serde_json::Value;

use castor_base::{
    agent::TerminateMode,
    content::{Part, joined_text},
    event::{EndReason, ToolDisplay, ToolProgress},
    ids::CallId,
    log::Answer,
    money::Money,
    path::AbsPath,
    tool::{Display, ToolError, ToolKind},
};
use castor_engine::session_tools::TODO_TOOL;

#[derive(Clone, Debug)]
pub struct Call<'a> {
    pub id: &'a CallId,
    pub name: &'a str,
    pub title: &'a str,
    pub kind: ToolKind,
    pub args: &'a Value,
    /// What it would have done, or did.
    pub content: Option<CallContent<'a>>,
    /// What the model got; what was printed, while there is nothing better.
    pub output: String,
    pub end: EndedCall<'a>,
    /// What the user said to it, where they were asked.
    pub answer: Option<Answer>,
    /// From its start to its end, where both are known.
    pub took_ms: Option<u64>,
    pub started_ms: Option<u64>,
    /// It started a sub-agent.
    pub run: Option<Box<AgentFacts<'a>>>,
}

/// What a call says of the sub-agent that it started.
#[derive(Clone, Debug)]
pub struct AgentFacts<'a> {
    pub name: &'a str,
    /// `None`: nothing is known of it.
    pub end: Option<EndReason>,
    /// It ended the loop that it worked in.
    pub has_escalated: bool,
    pub tokens: Option<u64>,
    pub cost: Option<Money>,
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
    /// Files, and their texts before and after.
    Diffs(Vec<(&'a AbsPath, Option<&'a str>, &'a str)>),
    Terminal {
        text: &'a str,
        exit: Option<i32>,
    },
}

impl<'a> Call<'a> {
    pub fn new(id: &'a CallId, (name, args): (&'a str, &'a Value), display: &'a ToolDisplay) -> Self {
        Self {
            id,
            name,
            title: &display.title,
            kind: display.kind,
            args,
            content: None,
            output: String::new(),
            end: EndedCall::Unknown,
            answer: None,
            took_ms: None,
            started_ms: None,
            run: None,
        }
    }

    pub fn end(&mut self, at_ms: u64, output: String, display: Option<&'a Display>, error: Option<&'a ToolError>) {
        self.content = display.map(call_content).or(self.content.take());
        self.output = output;
        self.took_ms = self.started_ms.map(|it| at_ms.saturating_sub(it));
        self.end = match (error, &self.content) {
            (Some(it), _) if it.message.starts_with(CANCELLED) => EndedCall::Failed("Cancelled."),
            (Some(it), _) => EndedCall::Failed(&it.message),
            (None, Some(CallContent::Terminal { exit: Some(code), .. })) if *code != 0 => EndedCall::Exit(*code),
            (None, _) => EndedCall::Succeeded,
        };
    }

    /// Its title, without the tool's name in other letters.
    pub fn about(&self) -> &'a str {
        let letters = |it: &str| it.chars().filter(|it| *it != '_').collect::<String>().to_lowercase();
        match self.title.split_once(' ') {
            Some((first, rest)) if letters(first) == letters(self.name) => rest,
            _ => self.title,
        }
    }

    pub fn is_refused(&self) -> bool {
        matches!((&self.answer, self.end), (Some(Answer::Reject), EndedCall::Failed(_)))
    }

    /// The call set the plan, which the story has as an item of its own.
    pub fn is_plan(&self) -> bool {
        self.name == TODO_TOOL && self.end == EndedCall::Succeeded
    }
}

impl<'a> AgentFacts<'a> {
    pub fn new(name: &'a str) -> Self {
        Self { name, end: None, has_escalated: false, tokens: None, cost: None }
    }

    /// Of the result of a call; `None`: it started no agent.
    pub fn from_result(data: &'a Value) -> Option<Self> {
        let member = |name: &str| data.get(name).cloned().unwrap_or_default();
        let mode: TerminateMode = serde_json::from_value(member("terminateReason")).ok()?;
        Some(Self {
            name: data.get("agent")?.as_str()?,
            end: Some(mode.into()),
            has_escalated: data.get("escalateReason").is_some(),
            tokens: data.get("tokens").and_then(Value::as_u64),
            cost: serde_json::from_value(member("cost")).ok(),
        })
    }
}

pub fn progress<'a>(call: &mut Call<'a>, at_ms: u64, update: &'a ToolProgress) {
    if let ToolProgress::Started { .. } = update {
        call.started_ms = Some(at_ms);
    }
    match update {
        ToolProgress::Described { display } | ToolProgress::Started { display: Some(display) } => {
            call.title = &display.title;
        }
        ToolProgress::Proposed { display } => call.content = Some(call_content(display)),
        ToolProgress::Printed { text } => call.output.push_str(text),
        ToolProgress::Activity { activity } if call.run.is_none() => {
            call.run = Some(Box::new(AgentFacts::new(&activity.agent_name)));
        }
        _ => (),
    }
}

/// How castor's words to the model begin. Logs of castor 1 have them in place of the person's.
const CANCELLED: &str = "[Operation Cancelled]";

/// What a call returned; nothing where castor's words to the model say only that it was cancelled.
pub fn output_of(content: &[Part], error: Option<&ToolError>) -> String {
    let output = joined_text(content);
    let is_cancelled = error.is_some_and(|it| it.kind == "cancelled") && output.starts_with(CANCELLED);
    if is_cancelled { String::new() } else { output }
}

fn call_content(it: &Display) -> CallContent<'_> {
    match it {
        Display::Text { text } => CallContent::Text(text),
        Display::Diff { .. } | Display::Diffs { .. } => CallContent::Diffs(it.diffs()),
        Display::Terminal { text, exit } => CallContent::Terminal { text, exit: *exit },
    }
}

/// What the user said, for people.
pub fn answer(it: &Answer) -> &'static str {
    match it {
        Answer::AllowOnce => "allowed once",
        Answer::AllowEdited { .. } => "allowed once, with other arguments",
        Answer::AllowSession => "allowed for the session",
        Answer::Reject => "refused",
        Answer::Cancelled => "cancelled",
        _ => "not answered",
    }
}
