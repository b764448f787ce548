//! The lines of sub-agents: one for each, below the one of the agent above it.

use std::{collections::HashSet, time::Duration};

use unicode_width::UnicodeWidthStr;

use super::{ViewOptions, call};
use crate::cli::render::{
    clip::{clip, with_end},
    text::{Color, Line, Style},
    words,
};
use castor_base::agent::COMPLETE_TASK;
use castor_client::{
    agents::{AgentRun, AgentState, AgentTree, BELOW},
    entries::Entry,
};

/// Columns by which a line stands to the right of the one above it.
const INDENT: usize = 2;
/// Columns that names and activities have at least, before figures give way.
const MIN_WORDS: usize = 18;
/// A task in fewer columns says nothing.
const MIN_TASK: usize = 12;
const MAX_TASK: usize = 60;
/// Columns before an activity, and before figures.
const GAP: usize = 2;

/// What a line needs beside the agent.
pub struct AgentPlace<'a> {
    pub options: &'a ViewOptions,
    pub spinner: &'a str,
    pub now: Duration,
    pub width: usize,
}

/// The agent's line, and below it those of all below it.
pub fn tree(agents: &AgentTree, agent: &AgentRun, depth: usize, place: &AgentPlace<'_>) -> Vec<Line> {
    let mut res = vec![line(agents, agent, &agent.name, depth, place)];
    for it in agents.below(&agent.session) {
        res.extend(tree(agents, it, depth + 1, place));
    }
    res
}

/// Its beginning, where lines only grow.
pub fn started(agents: &AgentTree, agent: &AgentRun, width: usize) -> Line {
    let (path, depth) = place_in(agents, agent);
    let mut line = Line::new(&format!("{}▸ {path}", " ".repeat(depth * INDENT)), Style::DIM);
    if !agent.task.is_empty() {
        line.push(&format!(": {}", agent.task), Style::DIM);
    }
    line.push("  started", Style::DIM);
    clip(&line, width)
}

/// The ends of the agent and of those below it that were not written yet, where lines only grow. The names above it say
/// whose it is: other lines may stand between.
pub fn ended(
    agents: &AgentTree,
    agent: &AgentRun,
    written: &HashSet<String>,
    place: &AgentPlace<'_>,
) -> Vec<(String, Line)> {
    let mut res = Vec::new();
    for it in agents.below(&agent.session) {
        res.extend(ended(agents, it, written, place));
    }
    if !written.contains(&agent.session) {
        let (path, depth) = place_in(agents, agent);
        res.push((agent.session.clone(), line(agents, agent, &path, depth, place)));
    }
    res
}

fn place_in(agents: &AgentTree, agent: &AgentRun) -> (String, usize) {
    let path = agents.path(&agent.session).unwrap_or_default();
    let depth = path.matches(BELOW).count();
    (path, depth)
}

fn line(agents: &AgentTree, agent: &AgentRun, name: &str, depth: usize, place: &AgentPlace<'_>) -> Line {
    let (mark, color, state) = match agent.state {
        AgentState::Running => (place.spinner, Color::Cyan, ""),
        AgentState::Waiting => ("?", Color::Yellow, "waiting for you"),
        AgentState::Done => ("✓", Color::Green, ""),
        AgentState::Stopped => ("!", Color::Yellow, "stopped at its limit"),
        AgentState::Failed => ("✗", Color::Red, "failed"),
        AgentState::Cancelled => ("✗", Color::Red, "cancelled"),
        AgentState::CutOff => ("✗", Color::Red, "interrupted"),
    };
    let words = match agent.state {
        // The lines below say it.
        AgentState::Running if agents.below(&agent.session).any(|it| !it.state.is_over()) => String::new(),
        AgentState::Running | AgentState::Waiting => activity(agent, &place.options.cwd),
        AgentState::Cancelled | AgentState::CutOff => String::new(),
        _ => agent.outcome.result.clone(),
    };
    let indent = " ".repeat(depth * INDENT);
    let mut line = Line::new(&format!("{indent}{mark} "), Style::color(color));
    line.push(name, Style::PLAIN);
    let figures = figures(agent, place.now, place.width.saturating_sub(line.width()));
    let room = place.width.saturating_sub(line.width() + figures.width());
    let said = [state, words.as_str()].into_iter().filter(|it| !it.is_empty());
    let said: usize = said.map(|it| GAP + it.width()).sum();
    // A long activity or result leaves it a third.
    let task = room.saturating_sub(said + GAP).max(room / 3);
    if !agent.task.is_empty() && task >= MIN_TASK {
        let task = clip(&Line::plain(&format!(": {}", agent.task)), task.min(MAX_TASK));
        line.spans.extend(task.spans);
    }
    let style = if agent.state == AgentState::Failed { Style::color(Color::Red) } else { Style::DIM };
    for (text, style) in [(state, Style::color(color)), (words.as_str(), style)] {
        if !text.is_empty() {
            line.push("  ", Style::PLAIN);
            line.push(text, style);
        }
    }
    with_end(line, figures, place.width)
}

/// What it does, in words; empty before it did anything.
fn activity(agent: &AgentRun, cwd: &str) -> String {
    match agent.thread.last_activity() {
        Some(Entry::Thought(it)) => format!("thinking  {}", it.heading()).trim_end().to_owned(),
        Some(Entry::Answer(_)) => "writing".to_owned(),
        Some(Entry::Call(it)) if it.name.as_deref() == Some(COMPLETE_TASK) => "handing in its result".to_owned(),
        Some(Entry::Call(it)) => call::label(it, cwd),
        _ => String::new(),
    }
}

/// Seconds, tokens and cost, as far as there is room for them.
fn figures(agent: &AgentRun, now: Duration, room: usize) -> Line {
    let spent = &agent.spent;
    let mut parts: Vec<String> = words::duration(agent.took(now)).into_iter().collect();
    parts.extend((spent.tokens > 0).then(|| format!("{} tokens", words::tokens(spent.tokens))));
    parts.extend(spent.cost.filter(|it| *it > 0.0).map(words::dollars));
    loop {
        let line = Line::new(&parts.join(" · "), Style::DIM);
        if parts.is_empty() || line.width() + MIN_WORDS <= room {
            return line;
        }
        parts.pop();
    }
}
