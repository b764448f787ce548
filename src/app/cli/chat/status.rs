//! The status line: mode, model, context, tokens, cost, servers, turns. From answers and updates of the agent.

use std::time::Duration;

use serde_json::Value;

use super::pickers::options::OptionRow;
use crate::app::cli::{
    render::{
        text::{Color, Line, Style},
        words,
    },
    terminal_text::clean_line,
};

const MAX_NAME: usize = 60;
const GAP: &str = " · ";
/// Of the context; the share from which it is coloured.
const NEARLY_FULL: u64 = 80;

#[derive(Debug, Default)]
pub struct Status {
    pub mode: String,
    /// Ids in the agent's order.
    pub modes: Vec<String>,
    pub model: String,
    context: ContextMeter,
    cost: Option<f64>,
    currency: String,
    pub tokens: TokenSums,
    /// Prompts of this chat.
    pub turns: u64,
    limits: Option<String>,
    /// In files, which an undo takes back.
    pub changes: Option<String>,
    pub servers: ServerHealth,
    /// What can be chosen in the session.
    pub options: Vec<OptionRow>,
}

/// Tokens in the model's window, and how many it takes.
#[derive(Debug, Default)]
pub struct ContextMeter {
    used: u64,
    size: u64,
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
    /// Adds `usage` of the answer to a prompt.
    pub fn add(&mut self, usage: &Value) {
        let number = |key: &str| usage.get(key).and_then(Value::as_u64).unwrap_or_default();
        self.input += number("inputTokens");
        self.cached += number("cachedReadTokens");
        // Thoughts are paid for as output.
        self.output += number("outputTokens") + number("thoughtTokens");
    }

    pub fn in_words(&self) -> Option<String> {
        words::spent_tokens(self.input, self.cached, self.output)
    }
}

impl Status {
    /// What the answer says that opened the session.
    pub fn open(&mut self, session: &Value) {
        let modes = session.pointer("/modes/availableModes").and_then(Value::as_array).into_iter().flatten();
        self.modes = modes.filter_map(|it| it.get("id")?.as_str().map(str::to_owned)).collect();
        self.take_mode(session.pointer("/modes/currentModeId"));
        self.take_options(session.get("configOptions"));
    }

    /// One update of the main session.
    pub fn update(&mut self, update: &Value) {
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("current_mode_update") => self.take_mode(update.get("currentModeId")),
            Some("config_option_update") => self.take_options(update.get("configOptions")),
            Some("usage_update") => {
                let number = |key: &str| update.get(key).and_then(Value::as_u64);
                self.context.used = number("used").unwrap_or(self.context.used);
                self.context.size = number("size").unwrap_or(self.context.size);
                if let Some(it) = update.pointer("/cost/amount").and_then(Value::as_f64) {
                    self.cost = Some(it);
                    let currency = update.pointer("/cost/currency").and_then(Value::as_str);
                    self.currency = clean_line(currency.unwrap_or("USD"), MAX_NAME);
                }
            }
            _ => (),
        }
    }

    fn take_mode(&mut self, mode: Option<&Value>) {
        if let Some(it) = mode.and_then(Value::as_str) {
            self.mode = clean_line(it, MAX_NAME);
        }
    }

    pub fn take_options(&mut self, options: Option<&Value>) {
        if let Some(it) = options {
            self.options = OptionRow::read_all(it);
        }
        for it in options.and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| it.get(key).and_then(Value::as_str);
            let Some(value) = text("currentValue") else { continue };
            match text("category").or(text("id")) {
                Some("mode") => self.take_mode(it.get("currentValue")),
                Some("model") => self.model = clean_line(value, MAX_NAME),
                Some("limits") => self.limits = Some(clean_line(value, MAX_NAME)).filter(|it| it != "none"),
                _ => (),
            }
        }
    }

    /// The mode after the present one.
    pub fn next_mode(&self) -> Option<String> {
        let at = self.modes.iter().position(|it| *it == self.mode).map_or(0, |it| it + 1);
        let next = self.modes.get(at).or(self.modes.first())?;
        (*next != self.mode).then(|| next.clone())
    }

    pub fn cost_in_words(&self) -> Option<String> {
        let cost = self.cost?;
        Some(if self.currency == "USD" {
            words::dollars(cost)
        } else {
            format!("{} {}", words::money(cost), self.currency)
        })
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
        let mut res = Vec::new();
        if !self.mode.is_empty() {
            let style = match self.mode.as_str() {
                "yolo" => Style::color(Color::Red),
                "auto" | "autoEdit" => Style::color(Color::Yellow),
                "plan" => Style::color(Color::Cyan),
                _ => Style::DIM,
            };
            res.push((format!("{} ⇧⇥", self.mode), style));
        }
        if !self.model.is_empty() {
            res.push(dim(self.model.clone()));
        }
        if let Some(share) = (self.context.used * 100).checked_div(self.context.size) {
            let style = if share >= NEARLY_FULL { Style::color(Color::Yellow) } else { Style::DIM };
            res.push((format!("{share} % of {}", words::tokens(self.context.size)), style));
        }
        res.extend(self.cost_in_words().map(dim));
        res.extend(self.tokens.in_words().map(dim));
        res.extend(self.changes.clone().map(dim));
        res.extend(self.servers.part());
        res.extend(self.limits.as_ref().map(|it| dim(format!("limits {it}"))));
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

    #[test]
    fn parts_that_do_not_fit_are_left_out() {
        let mut status = Status::default();
        assert_eq!(status.line(80).text(), " ");
        status.open(&json!({
            "modes": {"currentModeId": "default", "availableModes": [{"id": "plan"}, {"id": "default"}, {"id": "yolo"}]},
            "configOptions": [{"id": "model", "category": "model", "currentValue": "gemini-2.5-flash"}],
        }));
        status.update(&json!({"sessionUpdate": "usage_update", "used": 188_000, "size": 1_048_576,
            "cost": {"amount": 0.0211, "currency": "USD"}}));
        status.tokens.add(&json!({"inputTokens": 42_000, "cachedReadTokens": 34_020, "outputTokens": 3_100}));
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
        let mut status = Status { mode: "yolo".to_owned(), ..Status::default() };
        assert_eq!(status.next_mode(), None);
        status.modes = ["plan", "default", "yolo"].map(str::to_owned).into();
        assert_eq!(status.next_mode().as_deref(), Some("plan"));
        status.update(&json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"}));
        assert_eq!(status.next_mode().as_deref(), Some("default"));
    }
}
