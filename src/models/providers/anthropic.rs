//! Anthropic's Messages API.

mod request;
mod response;
#[cfg(test)]
mod tests;

use reqwest::{Url, header::HeaderName};

use super::{
    legal_names::LegalNames,
    legal_schema::ANTHROPIC,
    remote::{Decode, Dialect},
};
use castor_base::model::ModelRequest;

/// Whose signatures are sent back to it.
const SIGNER: &str = "anthropic";
/// The same, for thoughts that came encrypted.
const HIDDEN_SIGNER: &str = "anthropic-hidden";
/// The tool whose arguments are an answer of a given shape: models of every age take one that they have to call.
const ANSWER: &str = "answer";

#[derive(Clone, Debug)]
pub struct Anthropic;

impl Dialect for Anthropic {
    fn url(&self, base: Url, _: &str) -> Option<Url> {
        below(base, "messages")
    }

    fn list_url(&self, base: Url) -> Option<Url> {
        let mut url = below(base, "models")?;
        url.query_pairs_mut().append_pair("limit", "1000");
        Some(url)
    }

    fn key_header(&self, key: &str) -> (HeaderName, String) {
        (HeaderName::from_static("x-api-key"), key.to_owned())
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request)
    }

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decode> {
        Box::new(response::AnthropicDecoder::new(
            LegalNames::new(&request.tools, &ANTHROPIC, SIGNER),
            request::forced_shape(request).is_some(),
        ))
    }
}

/// People give the address with and without the version.
fn below(mut base: Url, name: &str) -> Option<Url> {
    let versioned = base.path().trim_end_matches('/').ends_with("/v1");
    let version = (!versioned).then_some("v1");
    base.path_segments_mut().ok()?.pop_if_empty().extend(version.into_iter().chain([name]));
    Some(base)
}
