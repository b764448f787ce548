//! Reasoning of a model that must return with the next request, because some services refuse a conversation without it.

use serde_json::{Map, Value};

use crate::providers::provider_limits;
use castor_base::model::Chunk;

/// Details of one answer, at most.
const MAX_DETAILS: usize = 256;

/// A member of a message that holds thoughts as plain text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThoughtMember {
    ReasoningContent,
    /// Of vLLM, Groq and OpenRouter.
    Reasoning,
    /// Of Copilot.
    ReasoningText,
}

impl ThoughtMember {
    const ALL: &[Self] = &[Self::ReasoningContent, Self::Reasoning, Self::ReasoningText];

    pub fn name(self) -> &'static str {
        match self {
            Self::ReasoningContent => "reasoning_content",
            Self::Reasoning => "reasoning",
            Self::ReasoningText => "reasoning_text",
        }
    }

    /// What stands in the log for it: for the first one nothing, as before there were others.
    fn mark(self) -> &'static str {
        if self == Self::ReasoningContent { "" } else { self.name() }
    }

    pub fn from_mark(mark: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|it| it.mark() == mark)
    }
}

#[derive(Default)]
pub struct Reasoning {
    signer: String,
    /// The member that thoughts came in, and are wanted back in.
    pub member: Option<ThoughtMember>,
    /// OpenRouter's `reasoning_details`: wanted back as they came, signatures and all.
    details: Vec<Map<String, Value>>,
}

impl Reasoning {
    pub fn new(signer: String) -> Self {
        Self { signer, ..Self::default() }
    }

    /// Takes a fragment; what of it people can read.
    pub fn take(&mut self, detail: Map<String, Value>) -> Option<String> {
        let text = |key: &str| detail.get(key).and_then(Value::as_str).filter(|it| !it.is_empty());
        let shown = text("text").or_else(|| text("summary")).map(str::to_owned);
        let joins = self.details.last().is_some_and(|it| continues(it, &detail));
        if let Some(last) = self.details.last_mut().filter(|_| joins) {
            join(last, detail);
        } else if self.details.len() < MAX_DETAILS {
            self.details.push(detail);
        }
        shown
    }

    /// The mark that makes it come back; once.
    pub fn mark(&mut self) -> Option<Chunk> {
        let details = std::mem::take(&mut self.details);
        let member = self.member.take();
        let kept = match details.is_empty() {
            false => Value::Array(details.into_iter().map(Value::Object).collect()).to_string(),
            true => member?.mark().to_owned(),
        };
        Some(Chunk::Thought { text: String::new(), signature: Some(provider_limits::sign(&self.signer, &kept).into()) })
    }
}

/// Texts and summaries come in fragments of the same kind and number; what is encrypted comes whole.
fn continues(last: &Map<String, Value>, next: &Map<String, Value>) -> bool {
    let same = |key: &str| last.get(key) == next.get(key);
    same("type") && same("index") && !next.contains_key("data")
}

fn join(last: &mut Map<String, Value>, next: Map<String, Value>) {
    for (key, value) in next {
        match (last.get_mut(&key), &value) {
            (Some(Value::String(sum)), Value::String(more)) if matches!(key.as_str(), "text" | "summary") => {
                sum.push_str(more);
            }
            (_, Value::Null) => (),
            // It comes with the last fragment, and empty before.
            (Some(Value::String(_)), Value::String(more)) if more.is_empty() => (),
            _ => _ = last.insert(key, value),
        }
    }
}
