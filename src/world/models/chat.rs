//! OpenAI's chat completions API, also of Ollama, llama.cpp, vLLM, LM Studio and OpenRouter.

mod request;
mod response;
#[cfg(test)]
mod tests;

use reqwest::{
    Url,
    header::{self, HeaderName},
};

use super::{
    error_body,
    remote::{Decode, Dialect},
};
use crate::base::model::{Failure, ModelRequest};

#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// The limit of an answer is called `max_completion_tokens`, as OpenAI's own models want it.
    pub newest: bool,
    /// The provider's name: thoughts of its models return to no other.
    pub provider: String,
}

impl Chat {
    /// Whose marks on thoughts are sent back.
    fn signer(&self) -> String {
        format!("chat/{}", self.provider)
    }
}

impl Dialect for Chat {
    fn url(&self, mut base: Url, _: &str) -> Option<Url> {
        base.path_segments_mut().ok()?.pop_if_empty().extend(["chat", "completions"]);
        Some(base)
    }

    fn list_url(&self, mut base: Url) -> Option<Url> {
        base.path_segments_mut().ok()?.pop_if_empty().push("models");
        Some(base)
    }

    fn key_header(&self, key: &str) -> (HeaderName, String) {
        (header::AUTHORIZATION, format!("Bearer {key}"))
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request, self.newest, &self.signer())
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decode> {
        Box::new(response::ChatDecoder::new(&request.tools, self.signer()))
    }

    fn failure(&self, status: u16, body: &str, retry_after_ms: Option<u64>) -> Failure {
        error_body::from_answer(status, body, retry_after_ms)
    }
}
