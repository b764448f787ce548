//! OpenAI's Responses API. The server stores nothing: each request has the whole conversation.

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

/// Whose signatures are sent back to it: reasoning, encrypted.
const SIGNER: &str = "openai";

#[derive(Clone, Debug)]
pub struct Responses;

impl Dialect for Responses {
    fn url(&self, mut base: Url, _: &str) -> Option<Url> {
        base.path_segments_mut().ok()?.pop_if_empty().push("responses");
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
        request::body(request)
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decode> {
        Box::new(response::ResponsesDecoder::new(&request.tools))
    }

    fn failure(&self, status: u16, body: &str, retry_after_ms: Option<u64>) -> Failure {
        error_body::from_answer(status, body, retry_after_ms)
    }
}
