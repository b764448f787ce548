//! MCP sampling: what a server wants a model to answer, and how much of that a session allows.

use crate::{content::Part, elicitation::ElicitationRequest, history::Role};

/// The name by which rules know it. No tool can have it: names of tools have no `/`.
pub const SAMPLING: &str = "sampling/createMessage";

/// The request of a server to a model. It begins with nothing: neither the conversation nor its tools are in it.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingRequest {
    pub messages: Vec<(Role, Vec<Part>)>,
    pub system: Option<String>,
    /// Of the answer.
    pub max_tokens: u32,
    pub temperature: Option<f64>,
    /// Texts that end the answer.
    pub stop: Vec<String>,
}

/// What a server asks in the middle of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerAsk {
    User(ElicitationRequest),
    /// The user allows it.
    Model(Box<SamplingRequest>),
}

/// What the servers of one session may ask of models, all together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplingBudget {
    pub requests: u64,
    /// Read and written.
    pub tokens: u64,
}

impl Default for SamplingBudget {
    fn default() -> Self {
        Self { requests: 20, tokens: 100_000 }
    }
}

impl SamplingRequest {
    /// As the user reads it before it is sent.
    pub fn in_words(&self) -> String {
        let mut res = String::new();
        let mut add = |who: &str, text: &str| {
            if !res.is_empty() {
                res.push_str("\n\n");
            }
            res.push_str(&format!("{who}: {text}"));
        };
        if let Some(system) = &self.system {
            add("System", system);
        }
        for (role, parts) in &self.messages {
            let who = if *role == Role::Model { "Model" } else { "User" };
            for part in parts {
                match part {
                    Part::Text { text, .. } => add(who, text),
                    Part::Media { mime, data, .. } => {
                        add(who, &format!("[{mime}, about {} KB]", data.len().div_ceil(1_366)))
                    }
                    _ => (),
                }
            }
        }
        res
    }
}
