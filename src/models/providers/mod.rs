//! Models behind the trait `Generator`: a request goes in, chunks stream out.

mod answer_state;
pub mod anthropic;
mod call_ids;
pub mod chat;
mod chunks;
pub mod demo;
pub mod error_body;
pub mod gemini;
pub mod google;
mod json;
mod legal_answer;
mod legal_names;
mod legal_schema;
mod lenient;
pub mod listing;
mod message_pieces;
mod provider_limits;
mod rate_limits;
pub mod recording;
pub mod remote;
pub mod responses;
pub mod script;
pub mod switch;
#[cfg(test)]
mod tests_answers;
#[cfg(test)]
mod tests_caching;
#[cfg(test)]
mod tests_spoken;
#[cfg(test)]
mod tests_streams;
mod text_events;
pub mod unreachable_model;

use std::sync::Arc;

use remote::{Endpoint, Remote};

use castor_base::{
    fs::BoxFuture,
    model::{Chunk, Failure, ModelRequest},
};
use castor_hands::http::Http;

/// Which API a provider beside Gemini speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiDialect {
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Anthropic's Messages API.
    Anthropic,
}

/// APIs of one house.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiFamily {
    Anthropic,
    OpenAi,
}

impl ApiDialect {
    /// With the names that settings may give as a provider's `type`, the usual one first.
    pub const ALL: &[(Self, &[&str])] =
        &[(Self::Chat, &["openai", "chat"]), (Self::Responses, &["responses"]), (Self::Anthropic, &["anthropic"])];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, names)| names.contains(&text)).map(|it| it.0)
    }

    /// As the protocol tells APIs apart.
    pub fn family(self) -> ApiFamily {
        if self == Self::Anthropic { ApiFamily::Anthropic } else { ApiFamily::OpenAi }
    }

    /// What its API takes at once, in bytes; `None`: the usual size.
    pub fn body_limit(self) -> Option<u64> {
        (self == Self::Anthropic).then_some(32_000_000)
    }

    /// This dialect, or the usual one of another family.
    #[must_use]
    pub fn in_family(self, family: ApiFamily) -> Self {
        match family {
            it if it == self.family() => self,
            ApiFamily::Anthropic => Self::Anthropic,
            ApiFamily::OpenAi => Self::Chat,
        }
    }

    /// What `parse` takes, for people.
    pub fn names() -> String {
        let names: Vec<&str> = Self::ALL.iter().filter_map(|(_, names)| names.first().copied()).collect();
        names.split_last().map_or_else(String::new, |(last, rest)| format!("{} or {last}", rest.join(", ")))
    }

    /// The models of a provider that speaks it. Opens nothing yet.
    pub fn connect(self, endpoint: Endpoint, provider: &str, http: Arc<Http>) -> Remote {
        match self {
            Self::Chat => {
                let newest = endpoint.base_url.contains("://api.openai.com");
                Remote::new(endpoint, chat::Chat { newest, provider: provider.to_owned() }, http)
            }
            Self::Responses => Remote::new(endpoint, responses::Responses, http),
            Self::Anthropic => Remote::new(endpoint, anthropic::Anthropic, http),
        }
    }
}

/// A provider of answers. Cancelling is dropping the future: the connection closes with it.
pub trait Generator: Send + Sync {
    /// Streams the answer into `sink`, in order; returns when it is complete or failed.
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>>;

    /// What it proves itself with for this model, as a hash. `None`: nothing, or it cannot be known beforehand.
    fn credential_hash(&self, _model: &str) -> Option<String> {
        None
    }

    /// Where this model is asked: parameters that it refused are kept by that. `None`: nothing is kept of it.
    fn address(&self, _model: &str) -> Option<String> {
        None
    }

    /// Tells whether it starts processes: then it does not answer on the loop's thread.
    fn may_block(&self) -> bool {
        false
    }
}

/// The receiver of chunks. It waits while the loop cannot take more: then nothing more is read from the model.
pub trait Sink: Send {
    /// All chunks that one read brought.
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()>;
}
