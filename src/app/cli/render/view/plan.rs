//! The agent's plan as a list: done, under way, to do.

use serde_json::Value;

use crate::app::cli::{
    render::{
        clip::clip,
        text::{Color, Line, Style},
    },
    terminal_text::clean_line,
};

const MAX_ENTRIES: usize = 50;
const MAX_TEXT: usize = 300;

#[derive(Clone, Debug, PartialEq, Eq)]
struct PlanEntry {
    text: String,
    status: String,
}

#[derive(Debug, Default)]
pub struct PlanView {
    entries: Vec<PlanEntry>,
}

impl PlanView {
    /// Takes the whole plan anew; gives lines of the entries that are new or have another status.
    pub fn update(&mut self, update: &Value) -> Vec<Line> {
        let entries = update.get("entries").and_then(Value::as_array).into_iter().flatten();
        let text =
            |it: &Value, key: &str| clean_line(it.get(key).and_then(Value::as_str).unwrap_or_default(), MAX_TEXT);
        let entry = |it: &Value| PlanEntry { text: text(it, "content"), status: text(it, "status") };
        let old = std::mem::replace(&mut self.entries, entries.take(MAX_ENTRIES).map(entry).collect());
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
        let done = self.entries.iter().filter(|it| it.status == "completed").count();
        let mut res = Line::new(&format!("plan {done}/{}", self.entries.len()), Style::DIM);
        for it in self.entries.iter().filter(|it| it.status == "in_progress") {
            res.push("  ", Style::PLAIN);
            res.spans.extend(line(it).spans);
        }
        vec![clip(&res, width)]
    }
}

fn line(entry: &PlanEntry) -> Line {
    let (mark, style) = match entry.status.as_str() {
        "completed" => ("☑ ", Style::DIM),
        "in_progress" => ("▣ ", Style::BOLD),
        "cancelled" => ("☒ ", Style::DIM),
        _ => ("☐ ", Style::PLAIN),
    };
    let color = if entry.status == "completed" { Color::Green } else { Color::Default };
    let mut res = Line::new(mark, Style::color(color));
    res.push(&entry.text, style);
    res
}
