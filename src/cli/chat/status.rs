//! The status line: mode, model, context, tokens, cost, servers, turns. From answers and updates of the agent.

use std::time::Duration;

use serde_json::Value;

use crate::cli::{
    render::{
        end_line,
        text::{Color, Line, Style},
        words,
    },
    terminal_text::clean_line,
};
use castor_client::facts::SessionFacts;
use castor_wire::acp::client::TokenUsage;

const MAX_NAME: usize = 60;
const GAP: &str = " · ";
/// Of the context; the share from which it is coloured.
const NEARLY_FULL: u64 = 80;

#[derive(Debug, Default)]
pub struct Status {
    pub facts: SessionFacts,
    pub tokens: TokenSums,
    /// Prompts of this chat.
    pub turns: u64,
    /// In files, which an undo takes back.
    pub changes: Option<String>,
    pub servers: ServerHealth,
}

/// Of all turns of this chat.
#[derive(Debug, Default)]
pub struct TokenSums {
    /// What they took of time.
    pub worked: Duration,
    input: u64,
    cached: u64,
    output: u64,
}

/// Of MCP servers.
#[derive(Debug, Default)]
pub struct ServerHealth {
    ready: usize,
    starting: usize,
    all: usize,
}

impl ServerHealth {
    /// The answer to `_castor/mcp/servers`. Those that are off by choice do not count.
    pub fn read(answer: &Value) -> Self {
        let all = answer.get("servers").and_then(Value::as_array).into_iter().flatten();
        let states: Vec<&str> =
            all.filter_map(|it| it.get("status")?.as_str()).filter(|it| !matches!(*it, "off" | "untrusted")).collect();
        let count = |state: &str| states.iter().filter(|it| **it == state).count();
        Self { ready: count("ready"), starting: count("starting"), all: states.len() }
    }

    pub fn is_starting(&self) -> bool {
        self.starting > 0
    }

    fn part(&self) -> Option<(String, Style)> {
        if self.all == 0 {
            return None;
        }
        let is_well = self.ready + self.starting == self.all;
        let style = if is_well { Style::DIM } else { Style::color(Color::Yellow) };
        Some((format!("MCP {}/{}", self.ready, self.all), style))
    }
}

impl TokenSums {
    /// Adds what one prompt took.
    pub fn add(&mut self, usage: &TokenUsage) {
        self.input += usage.input_tokens;
        self.cached += usage.cached_read_tokens;
        // Thoughts are paid for as output.
        self.output += usage.output_tokens + usage.thought_tokens;
    }

    pub fn in_words(&self) -> Option<String> {
        words::spent_tokens(self.input, self.cached, self.output)
    }
}

impl Status {
    /// The mode after the present one.
    pub fn next_mode(&self) -> Option<String> {
        let SessionFacts { mode, modes, .. } = &self.facts;
        let at = modes.iter().position(|it| it == mode).map_or(0, |it| it + 1);
        let next = modes.get(at).or(modes.first())?;
        (next != mode).then(|| next.clone())
    }

    pub fn cost_in_words(&self) -> Option<String> {
        self.facts.usage.cost.as_ref().map(end_line::cost_in_words)
    }

    /// The parts that fit, the most important ones first.
    pub fn line(&self, width: usize) -> Line {
        let (mut line, mut used) = (Line::new(" ", Style::DIM), 1);
        for (text, style) in self.parts() {
            let gap = if used > 1 { GAP } else { "" };
            let more = Line::plain(&format!("{gap}{text}")).width();
            // The last column stays free: some terminals wrap there.
            if used + more >= width {
                continue;
            }
            line.push(gap, Style::DIM);
            line.push(&text, style);
            used += more;
        }
        line
    }

    fn parts(&self) -> Vec<(String, Style)> {
        let dim = |it: String| (it, Style::DIM);
        let named = |it: &str| clean_line(it, MAX_NAME);
        let facts = &self.facts;
        let mut res = Vec::new();
        if !facts.mode.is_empty() {
            let style = match facts.mode.as_str() {
                "yolo" => Style::color(Color::Red),
                "auto" | "autoEdit" => Style::color(Color::Yellow),
                "plan" => Style::color(Color::Cyan),
                _ => Style::DIM,
            };
            res.push((format!("{} ⇧⇥", named(&facts.mode)), style));
        }
        if !facts.model.is_empty() {
            res.push(dim(named(&facts.model)));
        }
        let (used, size) = (facts.usage.used.unwrap_or_default(), facts.usage.size.unwrap_or_default());
        if let Some(share) = used.saturating_mul(100).checked_div(size) {
            let style = if share >= NEARLY_FULL { Style::color(Color::Yellow) } else { Style::DIM };
            res.push((format!("{share} % of {}", words::tokens(size)), style));
        }
        res.extend(self.cost_in_words().map(dim));
        res.extend(self.tokens.in_words().map(dim));
        res.extend(self.changes.clone().map(dim));
        res.extend(self.servers.part());
        res.extend(facts.limits.as_ref().map(|it| dim(format!("limits {}", named(it)))));
        if self.turns > 0 {
            // Seconds would be news at each turn, and what they say stands in its end line.
            let minutes = self.tokens.worked.as_secs() / 60;
            let worked = if minutes > 0 { format!(" in {minutes} min") } else { String::new() };
            res.push(dim(format!("turn {}{worked}", self.turns)));
        }
        res
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::{ServerHealth, Status};
    use castor_client::facts::SessionFacts;
    use castor_wire::acp::client::{ClientEvent, TokenUsage, read_value};

    #[test]
    fn parts_that_do_not_fit_are_left_out() {
        let mut status = Status::default();
        assert_eq!(status.line(80).text(), " ");
        let opened = json!({
            "modes": {"currentModeId": "default", "availableModes": [{"id": "plan"}, {"id": "default"}, {"id": "yolo"}]},
            "configOptions": [{"id": "model", "category": "model", "currentValue": "gemini-2.5-flash"}],
        });
        status.facts.open(&read_value(opened).unwrap());
        let usage = json!({"sessionUpdate": "usage_update", "used": 188_000, "size": 1_048_576,
            "cost": {"amount": 0.0211, "currency": "USD"}});
        status.facts.take(&ClientEvent::read(&usage));
        let (input_tokens, cached_read_tokens, output_tokens) = (42_000, 34_020, 3_100);
        status.tokens.add(&TokenUsage { input_tokens, cached_read_tokens, output_tokens, ..TokenUsage::default() });
        status.servers =
            ServerHealth::read(&json!({"servers": [{"status": "ready"}, {"status": "failed"}, {"status": "off"}]}));
        (status.turns, status.tokens.worked) = (4, Duration::from_secs(185));
        let whole = " default ⇧⇥ · gemini-2.5-flash · 17 % of 1.0 M · $0.021 · 42 k tokens in (81 % cached), 3.1 k out · MCP 1/2 · turn 4 in 3 min";
        assert_eq!(status.line(200).text(), whole);
        assert_eq!(status.line(40).text(), " default ⇧⇥ · gemini-2.5-flash · $0.021");
        assert!((1..120).all(|width| status.line(width).width() <= width.max(1)));
    }

    #[test]
    fn modes_follow_each_other() {
        let facts = SessionFacts { mode: "yolo".to_owned(), ..SessionFacts::default() };
        let mut status = Status { facts, ..Status::default() };
        assert_eq!(status.next_mode(), None);
        status.facts.modes = ["plan", "default", "yolo"].map(str::to_owned).into();
        assert_eq!(status.next_mode().as_deref(), Some("plan"));
        status.facts.take(&ClientEvent::Mode("plan".to_owned()));
        assert_eq!(status.next_mode().as_deref(), Some("default"));
    }
}
