//! The calls of a turn that are not in the scrollback yet, in the order of their start.

use std::{collections::HashSet, time::Duration};

use serde_json::Value;

use super::{
    ViewOptions,
    agent_lines::{self, AgentPlace},
    agents::AgentTree,
    call::CallView,
    call_lines, command_output,
};
use crate::app::cli::render::{
    text::{Line, Style},
    words,
};

/// Lines of one output that are shown when the user asks for all of it.
const WHOLE_LINES: usize = 5_000;

#[derive(Debug, Default)]
pub struct CallList {
    calls: Vec<CallView>,
    /// Of those in the scrollback.
    shown: HashSet<String>,
    /// The command that ended last, with what it printed.
    last_command: Option<Box<CallView>>,
}

impl CallList {
    pub fn is_new(&self, update: &Value) -> bool {
        let id = id(update).unwrap_or_default();
        !self.shown.contains(id) && !self.calls.iter().any(|it| it.id == id)
    }

    pub fn update(&mut self, update: &Value, now: Duration) {
        let Some(id) = id(update).filter(|it| !self.shown.contains(*it)) else { return };
        if self.is_new(update) {
            self.calls.push(CallView::new(id));
        }
        if let Some(it) = self.calls.iter_mut().find(|it| it.id == id && !it.is_over()) {
            it.merge(update, now);
        }
    }

    /// The plan that came is what a thinking call did.
    pub fn note_plan(&mut self) {
        self.calls.iter_mut().filter(|it| it.text("kind") == "think").for_each(|it| it.is_plan = true);
    }

    pub fn note_asked(&mut self, id: &str) {
        self.calls.iter_mut().filter(|it| it.id == id).for_each(|it| it.was_asked = true);
    }

    /// A question of this call is up: the question stands for it.
    pub fn hold(&mut self, id: &str, now: Duration) {
        let calls = self.calls.iter_mut().filter(|it| it.id == id && !it.is_over());
        calls.for_each(|it| _ = it.held_since.get_or_insert(now));
    }

    /// All questions are answered.
    pub fn release_all(&mut self, now: Duration) {
        self.calls.iter_mut().for_each(|it| it.release(now));
    }

    pub fn has_open(&self) -> bool {
        self.calls.iter().any(|it| !it.is_over())
    }

    /// Lines of those that are over: in order up to the first that still runs, or `all` of them.
    pub fn take_over(&mut self, options: &ViewOptions, agents: &mut AgentTree, all: bool) -> Vec<Line> {
        let first_open = self.calls.iter().position(|it| !it.is_over()).unwrap_or(self.calls.len());
        let mut at = 0;
        let over = self.calls.extract_if(.., |it| {
            at += 1;
            it.is_over() && (all || at <= first_open)
        });
        let over: Vec<CallView> = over.collect();
        self.shown.extend(over.iter().map(|it| it.id.clone()));
        let lines = over.iter().flat_map(|it| last_lines(it, options, agents)).collect();
        self.keep_last_command(over);
        lines
    }

    /// All of them: nothing more will be heard of those that run.
    pub fn take_all(&mut self, options: &ViewOptions, agents: &mut AgentTree) -> Vec<Line> {
        let calls = std::mem::take(&mut self.calls);
        self.shown.extend(calls.iter().map(|it| it.id.clone()));
        let lines = calls.iter().flat_map(|it| last_lines(it, options, agents)).collect();
        self.keep_last_command(calls);
        lines
    }

    fn keep_last_command(&mut self, calls: Vec<CallView>) {
        let last = calls.into_iter().rfind(|it| it.is_command() && !it.printed().trim().is_empty());
        self.last_command = last.map(Box::new).or(self.last_command.take());
    }

    /// What the command printed that runs, or else the last one: its name, and the lines that are kept.
    pub fn whole_output(&self, cwd: &str, width: usize) -> Vec<Line> {
        let running = self.calls.iter().rfind(|it| it.is_command() && !it.printed().trim().is_empty());
        let Some(call) = running.or(self.last_command.as_deref()) else { return Vec::new() };
        let mut res = vec![Line::new(&format!("  $ {}", call.label(cwd)), Style::BOLD)];
        res.extend(command_output::whole(call.printed(), width, WHOLE_LINES));
        res
    }

    /// One row for each, and the end of their outputs as far as there is room.
    /// A call that started an agent is shown as that one and what is below it.
    pub fn live(&self, agents: &AgentTree, place: &AgentPlace<'_>, is_asking: bool, height: usize) -> Vec<Line> {
        let AgentPlace { options, spinner, now, width } = *place;
        let is_shown = |it: &&CallView| it.is_over() || it.held_since.is_none() || !is_asking;
        let shown: Vec<&CallView> = self.calls.iter().filter(is_shown).collect();
        let open = shown.iter().filter(|it| !it.is_over()).count().max(1);
        let rows = height.saturating_sub(shown.len() + 1) / open;
        let mut res: Vec<Line> = Vec::new();
        for (at, it) in shown.iter().enumerate() {
            let lines = match agents.of_row(&it.id) {
                Some(agent) => {
                    let mut lines = agent_lines::tree(agents, agent, 0, place);
                    lines.truncate(rows + 1);
                    lines
                }
                None if it.is_over() => call_lines::finished(it, options, width).into_iter().take(1).collect(),
                None => call_lines::running(it, &options.cwd, spinner, now, (width, rows)),
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
}

/// The lines of a call that stay; of those of agents also what is below them.
fn last_lines(call: &CallView, options: &ViewOptions, agents: &mut AgentTree) -> Vec<Line> {
    let Some(agent) = agents.of_row(&call.id) else {
        return match call.is_over() {
            true => call_lines::finished(call, options, options.width),
            false => call_lines::unfinished(call, options),
        };
    };
    let place = AgentPlace { options, spinner: "", now: Duration::ZERO, width: options.width };
    if options.is_live {
        return agent_lines::tree(agents, agent, 0, &place);
    }
    let lines = agent_lines::ended(agents, agent, &place);
    lines.iter().for_each(|(session, _)| agents.set_told(session));
    lines.into_iter().map(|it| it.1).collect()
}

fn id(update: &Value) -> Option<&str> {
    update.get("toolCallId")?.as_str()
}
