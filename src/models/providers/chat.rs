//! OpenAI's chat completions API, also of Ollama, llama.cpp, vLLM, LM Studio and OpenRouter.

mod request;
mod response;
#[cfg(test)]
mod tests;

use reqwest::Url;

use super::{
    legal_names::LegalNames,
    legal_schema::{COMPATIBLE, OPENAI, SchemaRules},
    remote::{Decode, Dialect},
};
use castor_base::model::ModelRequest;

#[derive(Clone, Debug, Default)]
pub struct Chat {
    /// The limit of an answer is called `max_completion_tokens`, as OpenAI's own models want it.
    pub newest: bool,
    /// The provider's name: thoughts of its models return to no other.
    pub provider: String,
}

impl Chat {
    /// What the schemas of tools are held to.
    fn rules(&self) -> &'static SchemaRules {
        if self.newest { &OPENAI } else { &COMPATIBLE }
    }

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

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request, self.newest, &self.signer())
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decode> {
        Box::new(response::ChatDecoder::new(
            LegalNames::new(&request.tools, self.rules(), self.signer()),
            self.signer(),
        ))
    }
}
