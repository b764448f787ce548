//! Gemini's API: `streamGenerateContent`, at Google or on Vertex AI.

mod request;
mod response;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_server;

use reqwest::{
    Url,
    header::{self, HeaderName},
};

pub use response::{GeminiDecoder, decode, finish_word};
#[cfg(test)]
pub use tests::turns as conversation;

use super::remote::{Decode, Dialect};
use castor_base::model::ModelRequest;

/// The API of Google AI Studio, of gateways to it, and of Vertex AI.
#[derive(Clone, Debug)]
pub struct Gemini {
    /// `v1beta` unless configured otherwise.
    pub api_version: String,
    /// Sends the key as `Authorization: Bearer` instead of `x-goog-api-key`.
    pub bearer: bool,
    /// Where Vertex AI keeps its models; `None`: this is not Vertex AI.
    pub vertex: Option<Publisher>,
}

/// A place of models in Vertex AI.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Publisher {
    /// By API key, in express mode.
    Express,
    Project {
        project: String,
        location: String,
    },
}

impl Publisher {
    fn path(&self) -> Vec<&str> {
        let google = ["publishers", "google"];
        match self {
            Self::Express => google.to_vec(),
            Self::Project { project, location } => {
                ["projects", project, "locations", location].into_iter().chain(google).collect()
            }
        }
    }
}

impl Dialect for Gemini {
    fn url(&self, mut base: Url, model: &str) -> Option<Url> {
        let kind = if model.contains('/') { None } else { Some("models") };
        let is_whole = model.starts_with("projects/");
        let publisher = self.vertex.as_ref().filter(|_| !is_whole).map(Publisher::path).unwrap_or_default();
        {
            let mut path = base.path_segments_mut().ok()?;
            path.pop_if_empty().push(&self.api_version);
            let name = model.split('/').filter(|it| !it.is_empty());
            path.extend(publisher.into_iter().chain(kind).chain(name));
        }
        let path = format!("{}:streamGenerateContent", base.path());
        base.set_path(&path);
        base.query_pairs_mut().append_pair("alt", "sse");
        Some(base)
    }

    /// Vertex AI has a list of what all its publishers ever had; it is of no use here.
    fn list_url(&self, mut base: Url) -> Option<Url> {
        if self.vertex.is_some() {
            return None;
        }
        base.path_segments_mut().ok()?.pop_if_empty().extend([&*self.api_version, "models"]);
        base.query_pairs_mut().append_pair("pageSize", "1000");
        Some(base)
    }

    fn key_header(&self, key: &str) -> (HeaderName, String) {
        match self.bearer {
            true => (header::AUTHORIZATION, format!("Bearer {key}")),
            false => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        }
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        request::body(request, self.vertex.is_none())
    }

    fn decoder(&self, _: &ModelRequest) -> Box<dyn Decode> {
        Box::new(GeminiDecoder::default())
    }
}
