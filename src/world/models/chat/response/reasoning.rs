//! Reasoning of a model that must return with the next request, because some services refuse a conversation without it.

use serde_json::{Map, Value};

use crate::{base::model::Chunk, world::models::provider_limits};

/// Details of one answer, at most.
const MAX_DETAILS: usize = 256;

#[derive(Default)]
pub struct Reasoning {
    signer: String,
    /// Thoughts came as `reasoning_content`, and are wanted back under that name.
    pub echoes: bool,
    /// OpenRouter's `reasoning_details`: wanted back as they came, signatures and all.
    details: Vec<Map<String, Value>>,
}

impl Reasoning {
    pub fn new(signer: String) -> Self {
        Self { signer, ..Self::default() }
    }

    /// Takes a fragment; what of it people can read.
    pub fn take(&mut self, detail: Value) -> Option<String> {
        let Value::Object(detail) = detail else { return None };
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
        let echoes = std::mem::take(&mut self.echoes);
        let kept = match details.is_empty() {
            false => Value::Array(details.into_iter().map(Value::Object).collect()).to_string(),
            true if echoes => String::new(),
            true => return None,
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
