//! OpenAI's Responses API. The server stores nothing: each request has the whole conversation.

mod request;
mod response;
#[cfg(test)]
mod tests;

use reqwest::Url;

use super::{
    legal_names::LegalNames,
    legal_schema::OPENAI,
    remote::{Decode, Dialect},
};
use castor_base::model::ModelRequest;

/// Whose signatures are sent back to it: reasoning, encrypted.
const SIGNER: &str = "openai";

#[derive(Clone, Debug)]
pub struct Responses;

impl Dialect for Responses {
    fn url(&self, mut base: Url, _: &str) -> Option<Url> {
        base.path_segments_mut().ok()?.pop_if_empty().push("responses");
        Some(base)
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request)
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decode> {
        Box::new(response::ResponsesDecoder::new(LegalNames::new(&request.tools, &OPENAI, SIGNER)))
    }
}
