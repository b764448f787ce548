//! Updates of another agent as chunks of an answer, and reports of its own calls, plan and cost.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::{
    file_uri,
    model::{Chunk, Finish, Usage},
    money::Money,
    path::AbsPath,
    peer_agent::{PeerReport, ReportedCall, ReportedState},
    text,
    tool::ToolKind,
};

/// Calls of one run that are followed.
const MAX_CALLS: usize = 10_000;
/// Most that is shown of a call's result, in bytes.
const MAX_TEXT: usize = 2_000;
const MAX_TITLE: usize = 500;
const MAX_LOCATIONS: usize = 20;

/// A call of the agent's own, and what it said of it.
#[derive(Debug, Default)]
pub(super) struct PeerCallDetails {
    pub report: Option<ReportedCall>,
    /// The agent reported it, and did not only ask about it.
    pub is_reported: bool,
    pub raw_input: Value,
    /// Paths and new texts of its diffs.
    pub diffs: Vec<(String, String)>,
}

/// What is known of an agent's run.
#[derive(Debug, Default)]
pub struct PeerUpdates {
    pub(super) calls: BTreeMap<String, PeerCallDetails>,
    spent: Money,
    has_text: bool,
    is_foreign_money_told: bool,
}

impl PeerUpdates {
    /// Takes the params of a `session/update`. What castor does not know is passed over.
    pub fn take(&mut self, params: &Value) -> Vec<Chunk> {
        let Some(update) = params.get("update") else { return Vec::new() };
        match update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default() {
            "agent_message_chunk" => {
                let chunk = content(update.get("content"));
                self.has_text |= matches!(&chunk, Some(Chunk::Text { text, .. }) if !text.trim().is_empty());
                chunk.into_iter().collect()
            }
            "agent_thought_chunk" => match content(update.get("content")) {
                Some(Chunk::Text { text, signature }) => vec![Chunk::Thought { text, signature }],
                _ => Vec::new(),
            },
            "tool_call" | "tool_call_update" => self.take_report(update).into_iter().collect(),
            "plan" => {
                let entries = update.get("entries").filter(|it| it.is_array()).cloned();
                entries.map(|it| Chunk::Report(PeerReport::Plan(json!({ "entries": it })))).into_iter().collect()
            }
            "usage_update" => self.take_cost(update),
            "current_mode_update" => {
                let mode = update.get("currentModeId").and_then(Value::as_str).unwrap_or_default();
                vec![notice(format!("Its mode is {} now.", text::first_line(mode, 100)))]
            }
            _ => Vec::new(),
        }
    }

    fn take_report(&mut self, update: &Value) -> Option<Chunk> {
        let report = self.take_call(update)?;
        if let Some(it) = update.get("toolCallId").and_then(Value::as_str).and_then(|id| self.calls.get_mut(id)) {
            it.is_reported = true;
        }
        Some(Chunk::Report(PeerReport::Call(report)))
    }

    /// Each update says what changed.
    pub(super) fn take_call(&mut self, update: &Value) -> Option<ReportedCall> {
        let id = update.get("toolCallId").and_then(Value::as_str).filter(|it| !it.is_empty() && it.len() <= 256)?;
        if self.calls.len() >= MAX_CALLS && !self.calls.contains_key(id) {
            return None;
        }
        let known = self.calls.entry(id.to_owned()).or_default();
        if let Some(it) = update.get("rawInput").filter(|it| !it.is_null()) {
            known.raw_input = it.clone();
        }
        let contents = update.get("content").and_then(Value::as_array);
        if let Some(all) = contents {
            known.diffs = all.iter().filter_map(diff).collect();
        }
        let mut report = known.report.take().unwrap_or_else(|| ReportedCall {
            id: format!("reported-{id}"),
            title: "Tool".to_owned(),
            kind: ToolKind::Other,
            locations: Vec::new(),
            state: ReportedState::Pending,
            text: String::new(),
        });
        let said = |key: &str| update.get(key).and_then(Value::as_str);
        if let Some(it) = said("title") {
            report.title = text::first_line(it, MAX_TITLE);
        }
        let kind = update.get("kind").and_then(|it| serde_json::from_value(it.clone()).ok());
        report.kind = kind.unwrap_or(report.kind);
        let state = update.get("status").and_then(|it| serde_json::from_value(it.clone()).ok());
        report.state = state.unwrap_or(report.state);
        if let Some(all) = update.get("locations").and_then(Value::as_array) {
            let paths =
                all.iter().filter_map(|it| it.get("path").and_then(Value::as_str)).filter_map(AbsPath::from_text);
            report.locations = paths.take(MAX_LOCATIONS).collect();
        }
        if let Some(all) = contents {
            let texts: Vec<&str> =
                all.iter().filter_map(|it| it.pointer("/content/text").and_then(Value::as_str)).collect();
            report.text = text::head(&texts.join("\n"), MAX_TEXT).to_owned();
        }
        known.report = Some(report.clone());
        Some(report)
    }

    /// It says what the whole session cost by now.
    fn take_cost(&mut self, update: &Value) -> Vec<Chunk> {
        let window = update.get("size").and_then(Value::as_u64);
        let said = |key: &str| update.pointer(&format!("/cost/{key}"));
        let Some(amount) = said("amount").and_then(Value::as_f64) else { return Vec::new() };
        let currency = said("currency").and_then(Value::as_str).unwrap_or("USD");
        if currency != "USD" {
            let is_told = std::mem::replace(&mut self.is_foreign_money_told, true);
            let text = format!("It counts its cost in {}: castor counts US dollars only.", text::head(currency, 10));
            return (!is_told).then(|| notice(text)).into_iter().collect();
        }
        let (before, now) = (self.spent, Money::dollars(amount).max(self.spent));
        self.spent = now;
        vec![Chunk::Report(PeerReport::Spent { cost: now.minus(before), window })]
    }

    /// The end of a prompt: calls that the agent left open, and a text where it said none.
    pub fn end(&mut self, answer: &Value) -> Vec<Chunk> {
        let mut res = self.end_calls("the agent ended its turn");
        if !self.has_text {
            let text = "The agent ended its turn without a text.".to_owned();
            res.push(Chunk::Text { text, signature: None });
        }
        res.extend(end_chunks(answer));
        res
    }

    /// Calls that have no end get one.
    pub fn end_calls(&mut self, why: &str) -> Vec<Chunk> {
        let reported = self.calls.values_mut().filter(|it| it.is_reported);
        let open = reported.filter_map(|it| it.report.as_mut()).filter(|it| !it.state.has_ended());
        let ended = open.map(|it| {
            it.state = ReportedState::Failed;
            it.text = format!("It has no result: {why}.");
            Chunk::Report(PeerReport::Call(it.clone()))
        });
        ended.collect()
    }
}

/// Usage and reason of the end of a prompt.
fn end_chunks(answer: &Value) -> Vec<Chunk> {
    let count = |key: &str| answer.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or_default();
    let usage = Usage {
        input: count("inputTokens") + count("cachedReadTokens") + count("cachedWriteTokens"),
        output: count("outputTokens"),
        cached: count("cachedReadTokens"),
        written: count("cachedWriteTokens"),
        thought: count("thoughtTokens"),
        total: count("totalTokens"),
    };
    let finish = match answer.get("stopReason").and_then(Value::as_str).unwrap_or("end_turn") {
        "max_tokens" => Finish::MaxTokens,
        "refusal" => Finish::Safety("REFUSAL".to_owned()),
        _ => Finish::Stop,
    };
    let usage = (usage.total > 0).then_some(Chunk::Usage(usage));
    usage.into_iter().chain([Chunk::Finish(finish)]).collect()
}

pub(super) fn notice(text: String) -> Chunk {
    Chunk::Report(PeerReport::Notice(text))
}

fn content(block: Option<&Value>) -> Option<Chunk> {
    let said = |key: &str| block?.get(key)?.as_str().map(str::to_owned);
    match said("type")?.as_str() {
        "text" => Some(Chunk::Text { text: said("text")?, signature: None }),
        "image" | "audio" => Some(Chunk::Media { mime: said("mimeType")?, data: said("data")?.into() }),
        "resource_link" => {
            Some(Chunk::Text { text: file_uri::describe_uri(&said("uri")?).into_owned(), signature: None })
        }
        _ => None,
    }
}

fn diff(content: &Value) -> Option<(String, String)> {
    let said = |key: &str| content.get(key).and_then(Value::as_str).map(str::to_owned);
    (said("type")? == "diff").then(|| Some((said("path")?, said("newText").unwrap_or_default())))?
}
