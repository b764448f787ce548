//! The calls of a turn that are not in the scrollback yet, in the order of their start.

use std::{collections::HashSet, time::Duration};

use super::{
    ViewOptions,
    agent_lines::{self, AgentPlace},
    call, call_lines, command_output,
};
use crate::cli::render::{
    text::{Line, Style},
    words,
};
use castor_base::tool::ToolKind;
use castor_client::{Conversation, agents::AgentRun, call::Call};

/// Lines of one output that are shown when the user asks for all of it.
const WHOLE_LINES: usize = 5_000;

#[derive(Debug, Default)]
pub struct CallList {
    rows: Vec<CallRow>,
    /// Of those in the scrollback.
    shown: HashSet<String>,
    /// Sub-agents whose end was written, where lines only grow.
    ended: HashSet<String>,
    /// The command that ended last, with what it printed.
    last_command: Option<String>,
}

/// A call, or a sub-agent that no call started.
#[derive(Debug)]
struct CallRow {
    id: String,
    /// A plan came while it ran: the list says what it did.
    is_plan: bool,
}

impl CallList {
    pub fn is_new(&self, id: &str) -> bool {
        !self.shown.contains(id) && !self.rows.iter().any(|it| it.id == id)
    }

    pub fn add(&mut self, id: &str) {
        if self.is_new(id) {
            self.rows.push(CallRow { id: id.to_owned(), is_plan: false });
        }
    }

    /// The plan that came is what a thinking call did.
    pub fn note_plan(&mut self, talk: &Conversation) {
        let is_thinking = |it: &&mut CallRow| talk.main_call(&it.id).is_some_and(|it| it.kind == Some(ToolKind::Think));
        self.rows.iter_mut().filter(is_thinking).for_each(|it| it.is_plan = true);
    }

    pub fn has_open(&self, talk: &Conversation) -> bool {
        self.rows.iter().any(|it| !is_over(it, talk))
    }

    /// Lines of those that are over: in order up to the first that still runs, or `all` of them.
    pub fn take_over(&mut self, options: &ViewOptions, talk: &mut Conversation, all: bool) -> Vec<Line> {
        let first_open = self.rows.iter().position(|it| !is_over(it, talk)).unwrap_or(self.rows.len());
        let mut at = 0;
        let over = self.rows.extract_if(.., |it| {
            at += 1;
            (all || at <= first_open) && is_over(it, talk)
        });
        let over: Vec<CallRow> = over.collect();
        self.finish(&over, options, talk)
    }

    /// All of them: nothing more will be heard of those that run.
    pub fn take_all(&mut self, options: &ViewOptions, talk: &mut Conversation) -> Vec<Line> {
        let rows = std::mem::take(&mut self.rows);
        self.finish(&rows, options, talk)
    }

    /// The lines that stay; what the calls brought is needed no more, but for the last output.
    fn finish(&mut self, rows: &[CallRow], options: &ViewOptions, talk: &mut Conversation) -> Vec<Line> {
        let lines = rows.iter().flat_map(|it| self.last_lines(it, options, talk)).collect();
        self.shown.extend(rows.iter().map(|it| it.id.clone()));
        let last = rows.iter().rfind(|it| talk.main_call(&it.id).is_some_and(has_printed)).map(|it| it.id.clone());
        let before = last.as_ref().and_then(|_| self.last_command.take());
        self.last_command = last.or(self.last_command.take());
        for id in rows.iter().map(|it| &it.id).chain(&before).filter(|it| Some(*it) != self.last_command.as_ref()) {
            talk.forget_contents("", id);
        }
        lines
    }

    /// What the command printed that runs, or else the last one: its name, and the lines that are kept.
    pub fn whole_output(&self, talk: &Conversation, cwd: &str, width: usize) -> Vec<Line> {
        let running = self.rows.iter().filter_map(|it| talk.main_call(&it.id)).rfind(|it| has_printed(it));
        let last = || talk.main_call(self.last_command.as_ref()?);
        let Some(call) = running.or_else(last) else { return Vec::new() };
        let mut res = vec![Line::new(&format!("  $ {}", call::label(call, cwd)), Style::BOLD)];
        res.extend(command_output::whole(&call::printed(call), width, WHOLE_LINES));
        res
    }

    /// One row for each, and the end of their outputs as far as there is room.
    /// A call that started an agent is shown as that one and what is below it.
    pub fn live(&self, talk: &Conversation, place: &AgentPlace<'_>, is_asking: bool, height: usize) -> Vec<Line> {
        let AgentPlace { options, spinner, now, width } = *place;
        let is_asked = |it: &&CallRow| talk.main_call(&it.id).is_some_and(Call::is_asked);
        let shown: Vec<&CallRow> =
            self.rows.iter().filter(|it| is_over(it, talk) || !is_asking || !is_asked(it)).collect();
        let open = shown.iter().filter(|it| !is_over(it, talk)).count().max(1);
        let rows = height.saturating_sub(shown.len() + 1) / open;
        let mut res: Vec<Line> = Vec::new();
        for (at, it) in shown.iter().enumerate() {
            let lines = match (talk.agents.of_row(&it.id), talk.main_call(&it.id)) {
                (Some(agent), _) => {
                    let mut lines = agent_lines::tree(&talk.agents, agent, 0, place);
                    lines.truncate(rows + 1);
                    lines
                }
                (None, Some(call)) if call.is_over() => {
                    call_lines::finished(call, it.is_plan, options, width).into_iter().take(1).collect()
                }
                (None, Some(call)) => call_lines::running(call, &options.cwd, spinner, now, (width, rows)),
                (None, None) => Vec::new(),
            };
            if res.len() + lines.len() >= height && at + 1 < shown.len() {
                let more = words::count((shown.len() - at) as u64, "more call", "more calls");
                res.push(Line::new(&format!("  … {more}"), Style::DIM));
                return res;
            }
            res.extend(lines);
        }
        res
    }

    /// The lines of a call that stay; of those of agents also what is below them.
    fn last_lines(&mut self, row: &CallRow, options: &ViewOptions, talk: &Conversation) -> Vec<Line> {
        if let Some(agent) = talk.agents.of_row(&row.id) {
            let place = AgentPlace { options, spinner: "", now: Duration::ZERO, width: options.width };
            return match options.is_live {
                true => agent_lines::tree(&talk.agents, agent, 0, &place),
                false => self.agent_ends(talk, agent, &place),
            };
        }
        match talk.main_call(&row.id) {
            Some(call) if call.is_over() => call_lines::finished(call, row.is_plan, options, options.width),
            Some(call) => call_lines::unfinished(call, options),
            None => Vec::new(),
        }
    }

    /// The ends of an agent and of those below it that were not written yet.
    pub fn agent_ends(&mut self, talk: &Conversation, agent: &AgentRun, place: &AgentPlace<'_>) -> Vec<Line> {
        let ends = agent_lines::ended(&talk.agents, agent, &self.ended, place);
        self.ended.extend(ends.iter().map(|it| it.0.clone()));
        ends.into_iter().map(|it| it.1).collect()
    }
}

fn is_over(row: &CallRow, talk: &Conversation) -> bool {
    match talk.main_call(&row.id) {
        Some(it) => it.is_over(),
        None => talk.agents.of_row(&row.id).is_none_or(|it| it.state.is_over()),
    }
}

fn has_printed(call: &Call) -> bool {
    call.is_command() && !call::printed(call).trim().is_empty()
}
