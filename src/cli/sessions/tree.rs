//! `castor sessions list --tree`: the sub-agents of a session, a line each, below the agent that started them.

use schemars::JsonSchema;
use serde::Serialize;

use super::export::{AgentLogs, AgentStory, plain_title};
use crate::cli::{
    render::{
        clip::clip,
        text::{Color, Line, Style},
    },
    terminal_text::clean_line,
};
use castor_base::{event::EndReason, ids::SessionId, money::Money};

/// Columns by which an agent stands to the right of the one above it.
const INDENT: usize = 2;
/// castor's agents go less deep; a log that was tampered with may be below itself.
const MAX_DEPTH: usize = 8;
const MAX_NAME: usize = 60;
const MAX_TASK: usize = 400;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListedAgent<'a> {
    session_id: &'a SessionId,
    agent: &'a str,
    task: Option<String>,
    /// Why it ended; null: its log does not say.
    end: Option<EndReason>,
    /// Milliseconds of work.
    took_ms: Option<u64>,
    /// With those of the agents below it.
    tokens: u64,
    /// The same in US dollars.
    cost: Option<Money>,
    /// Those that it started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    agents: Vec<ListedAgent<'a>>,
}

/// The agents that a session started, with those below them.
pub fn outputs<'a>(logs: &'a AgentLogs, session: &SessionId, depth: usize) -> Vec<ListedAgent<'a>> {
    let output = |(id, it): (&'a SessionId, AgentStory<'a>)| ListedAgent {
        session_id: id,
        agent: it.facts.name,
        task: task(&it),
        end: it.facts.end,
        took_ms: it.took_ms(),
        tokens: it.story.as_ref().map_or(0, |it| it.head.spent.usage.total),
        cost: it.story.as_ref().and_then(|it| it.head.spent.cost),
        agents: outputs(logs, id, depth + 1),
    };
    let agents = if depth < MAX_DEPTH { logs.below(session) } else { Vec::new() };
    agents.into_iter().map(output).collect()
}

/// The same as lines.
pub fn lines(logs: &AgentLogs, session: &SessionId, depth: usize, width: usize) -> Vec<Line> {
    let mut res = Vec::new();
    if depth == MAX_DEPTH {
        return res;
    }
    for (id, agent) in logs.below(session) {
        res.push(clip(&line(&agent, depth), width));
        res.extend(lines(logs, id, depth + 1, width));
    }
    res
}

fn line(it: &AgentStory<'_>, depth: usize) -> Line {
    let (mark, color) = match it.facts.end {
        None => ("?", Color::Yellow),
        Some(EndReason::Completed) => ("✓", Color::Green),
        Some(_) => ("✗", Color::Red),
    };
    let mut line = Line::new(&format!("{}{mark} ", " ".repeat(INDENT * (depth + 1))), Style::color(color));
    line.push(&clean_line(it.facts.name, MAX_NAME), Style::PLAIN);
    line.push(&format!("  {}", it.in_words().join(" · ")), Style::DIM);
    if let Some(task) = task(it) {
        line.push(&format!("  {}", clean_line(&task, MAX_TASK)), Style::PLAIN);
    }
    line
}

fn task(it: &AgentStory<'_>) -> Option<String> {
    it.story.as_ref()?.prompt(0).map(|it| plain_title(&it))
}
