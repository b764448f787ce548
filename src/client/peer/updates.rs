//! Events of another agent as chunks of an answer, and reports of its own calls, plan and cost.

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;

use crate::{Conversation, call::Call};
use castor_base::{
    file_uri,
    model::{Chunk, Finish, Usage},
    money::Money,
    path::AbsPath,
    peer_agent::{PeerReport, ReportedCall, ReportedState},
    text,
    tool::ToolKind,
};
use castor_wire::acp::client::{
    CallStatus, CallUpdate, ClientEvent, ContentBlock, ContextUsage, PlanList, PromptAnswer, Voice,
};

/// Calls of one run that are followed.
const MAX_CALLS: usize = 10_000;
/// Most that is shown of a call's result, in bytes.
const MAX_TEXT: usize = 2_000;
const MAX_TITLE: usize = 500;
const MAX_LOCATIONS: usize = 20;
const MAX_ID: usize = 256;

/// What is known of an agent's run.
#[derive(Debug, Default)]
pub struct PeerUpdates {
    talk: Conversation,
    /// Calls that the agent reported, and did not only ask about, and that have not ended.
    open: BTreeSet<String>,
    spent: Money,
    has_text: bool,
    is_foreign_money_told: bool,
}

impl PeerUpdates {
    /// Takes what the agent tells. What castor does not know is passed over.
    pub fn take(&mut self, event: &ClientEvent) -> Vec<Chunk> {
        match event {
            ClientEvent::Chunk(Voice::Answer, it) => {
                let chunk = it.content.as_ref().and_then(content);
                self.has_text |= matches!(&chunk, Some(Chunk::Text { text, .. }) if !text.trim().is_empty());
                chunk.into_iter().collect()
            }
            ClientEvent::Chunk(Voice::Thought, it) => match it.content.as_ref().and_then(content) {
                Some(Chunk::Text { text, signature }) => vec![Chunk::Thought { text, signature }],
                _ => Vec::new(),
            },
            ClientEvent::Call(it) => self.take_report(it).into_iter().collect(),
            ClientEvent::Plan(it) => vec![Chunk::Report(PeerReport::Plan(plan(it)))],
            ClientEvent::Usage(it) => self.take_cost(it),
            ClientEvent::Mode(it) => vec![notice(format!("Its mode is {} now.", text::first_line(it, 100)))],
            ClientEvent::Chunk(Voice::User, _)
            | ClientEvent::Message(..)
            | ClientEvent::CallPart(_)
            | ClientEvent::Terminal(_)
            | ClientEvent::TerminalOutput(_)
            | ClientEvent::Options(_)
            | ClientEvent::Commands(_)
            | ClientEvent::Info(_)
            | ClientEvent::Notice(_)
            | ClientEvent::Aside(_)
            | ClientEvent::Subagent(_)
            | ClientEvent::State(_)
            | ClientEvent::Unknown(_) => Vec::new(),
        }
    }

    fn take_report(&mut self, told: &CallUpdate) -> Option<Chunk> {
        let report = report(self.take_call(told)?);
        match report.state.has_ended() {
            true => _ = self.open.remove(&told.id),
            false => _ = self.open.insert(told.id.clone()),
        }
        Some(Chunk::Report(PeerReport::Call(report)))
    }

    /// What is known of a call, with what is told now; `None`: it has no fit name, or there are too many.
    pub(super) fn take_call(&mut self, told: &CallUpdate) -> Option<&Call> {
        let is_named = !told.id.is_empty() && told.id.len() <= MAX_ID;
        let is_known = self.talk.main_call(&told.id).is_some();
        if !is_named || !is_known && self.talk.counts().total >= MAX_CALLS {
            return None;
        }
        self.talk.update("", &ClientEvent::Call(Box::new(told.clone())), Duration::ZERO);
        self.talk.main_call(&told.id)
    }

    /// It says what the whole session cost by now.
    fn take_cost(&mut self, told: &ContextUsage) -> Vec<Chunk> {
        let Some(cost) = &told.cost else { return Vec::new() };
        if cost.currency() != "USD" {
            let is_told = std::mem::replace(&mut self.is_foreign_money_told, true);
            let currency = text::head(cost.currency(), 10);
            let text = format!("It counts its cost in {currency}: castor counts US dollars only.");
            return (!is_told).then(|| notice(text)).into_iter().collect();
        }
        let (before, now) = (self.spent, Money::dollars(cost.amount).max(self.spent));
        self.spent = now;
        vec![Chunk::Report(PeerReport::Spent { cost: now.minus(before), window: told.size })]
    }

    /// The end of a prompt: calls that the agent left open, and a text where it said none.
    pub fn end(&mut self, answer: &PromptAnswer) -> Vec<Chunk> {
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
        let open = std::mem::take(&mut self.open);
        let ended = open.iter().filter_map(|it| self.talk.main_call(it)).map(|it| {
            let text = format!("It has no result: {why}.");
            Chunk::Report(PeerReport::Call(ReportedCall { state: ReportedState::Failed, text, ..report(it) }))
        });
        ended.collect()
    }
}

/// A call as castor shows it among its own.
pub(super) fn report(call: &Call) -> ReportedCall {
    let texts: Vec<&str> = call.texts().collect();
    ReportedCall {
        id: format!("reported-{}", call.id),
        title: call.title.as_ref().map_or_else(|| "Tool".to_owned(), |it| text::first_line(it, MAX_TITLE)),
        kind: call.kind.unwrap_or(ToolKind::Other),
        locations: call.locations.iter().filter_map(|it| AbsPath::from_text(&it.path)).take(MAX_LOCATIONS).collect(),
        state: match call.status {
            None | Some(CallStatus::Pending) => ReportedState::Pending,
            Some(CallStatus::InProgress) => ReportedState::InProgress,
            Some(CallStatus::Completed) => ReportedState::Completed,
            Some(CallStatus::Failed | CallStatus::Cancelled) => ReportedState::Failed,
        },
        text: text::head(&texts.join("\n"), MAX_TEXT).to_owned(),
    }
}

fn plan(told: &PlanList) -> serde_json::Value {
    json!({ "entries": told.entries })
}

/// Usage and reason of the end of a prompt.
fn end_chunks(answer: &PromptAnswer) -> Vec<Chunk> {
    let told = answer.usage.unwrap_or_default();
    let usage = Usage {
        input: told.input_tokens + told.cached_read_tokens + told.cached_write_tokens,
        output: told.output_tokens,
        cached: told.cached_read_tokens,
        written: told.cached_write_tokens,
        thought: told.thought_tokens,
        total: told.total_tokens,
    };
    let finish = match answer.stop_reason() {
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

fn content(block: &ContentBlock) -> Option<Chunk> {
    Some(match block {
        ContentBlock::Text(it) => Chunk::Text { text: it.text.clone(), signature: None },
        ContentBlock::Image(it) => Chunk::Media { mime: it.mime_type.clone(), data: it.data.clone().into() },
        ContentBlock::Audio(it) => Chunk::Media { mime: it.mime_type.clone(), data: it.data.clone().into() },
        ContentBlock::ResourceLink(it) => {
            Chunk::Text { text: file_uri::describe_uri(&it.uri).into_owned(), signature: None }
        }
        _ => return None,
    })
}
