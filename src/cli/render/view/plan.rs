//! The agent's plan as a list: done, under way, to do.

use crate::cli::{
    render::{
        clip::clip,
        text::{Color, Line, Style},
    },
    terminal_text::clean_line,
};
use castor_wire::acp::client::{PlanList, PlanStep, StepStatus};

const MAX_ENTRIES: usize = 50;
const MAX_TEXT: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanEntry {
    text: String,
    status: Option<StepStatus>,
}

#[derive(Debug, Default)]
pub struct PlanView {
    entries: Vec<PlanEntry>,
}

impl PlanView {
    /// Takes the whole plan anew; gives lines of the entries that are new or have another status.
    pub fn update(&mut self, plan: &PlanList) -> Vec<Line> {
        let entry = |it: &PlanStep| PlanEntry { text: clean_line(&it.content, MAX_TEXT), status: it.status };
        let entries = plan.entries.iter().take(MAX_ENTRIES).map(entry).collect();
        let old = std::mem::replace(&mut self.entries, entries);
        self.entries.iter().filter(|it| !old.contains(it)).map(line).collect()
    }

    pub fn lines(&self) -> Vec<Line> {
        self.entries.iter().map(line).collect()
    }

    /// The list in at most `rows` rows: without room only how far it is and what is under way.
    pub fn live(&self, width: usize, rows: usize) -> Vec<Line> {
        if self.entries.len() <= rows {
            return self.lines().iter().map(|it| clip(it, width)).collect();
        }
        let done = self.entries.iter().filter(|it| it.status == Some(StepStatus::Completed)).count();
        let mut res = Line::new(&format!("plan {done}/{}", self.entries.len()), Style::DIM);
        for it in self.entries.iter().filter(|it| it.status == Some(StepStatus::InProgress)) {
            res.push("  ", Style::PLAIN);
            res.spans.extend(line(it).spans);
        }
        vec![clip(&res, width)]
    }
}

fn line(entry: &PlanEntry) -> Line {
    let (mark, style) = match entry.status {
        Some(StepStatus::Completed) => ("☑ ", Style::DIM),
        Some(StepStatus::InProgress) => ("▣ ", Style::BOLD),
        Some(StepStatus::Cancelled) => ("☒ ", Style::DIM),
        Some(StepStatus::Pending) | None => ("☐ ", Style::PLAIN),
    };
    let color = if entry.status == Some(StepStatus::Completed) { Color::Green } else { Color::Default };
    let mut res = Line::new(mark, Style::color(color));
    res.push(&entry.text, style);
    res
}
