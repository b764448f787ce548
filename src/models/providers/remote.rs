//! Models over HTTP: one streaming request per answer, in the provider's dialect.

mod answer;
mod decode;
pub mod origin;
mod reader;
pub mod web_page;

use std::{
    fmt,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use reqwest::{
    Response, StatusCode, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};

use super::{Generator, Sink, error_body, google::Tokens, legal_names::restore_names, rate_limits::read_rate_limits};
use castor_base::{
    fs::BoxFuture,
    model::{Failure, FailureKind, ModelRequest},
    one_entry_cache::OneEntryCache,
    text,
};
use castor_hands::{
    disk,
    http::{self, Http},
};
pub use decode::Decode;
#[cfg(test)]
pub use reader::AnswerReader;

use answer::Answer;
use origin::EndpointOrigin;

/// Of an error's body, or of an answer that is none, no more is read, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;
/// Longest message of a failure, in bytes.
const MAX_MESSAGE: usize = 2_000;
/// Shorter header values are no secrets, and hiding them everywhere would garble messages.
const MIN_SECRET: usize = 6;

/// The address and credentials of a service.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Scheme, host and port, with or without a path.
    pub base_url: String,
    /// Empty: no key is sent.
    pub key: SecretString,
    /// Sent with each request; they replace ours of the same name.
    pub headers: Vec<(String, SecretString)>,
    /// Takes the place of the key where there is one.
    pub tokens: Option<Arc<Tokens>>,
    pub origin: EndpointOrigin,
}

/// One provider's API: paths, request bodies and answers.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// `base` is http(s) with a host. `None`: nothing can be appended to it.
    fn url(&self, base: Url, model: &str) -> Option<Url>;

    /// Where the models are listed. `None`: nowhere.
    fn list_url(&self, mut base: Url) -> Option<Url> {
        base.path_segments_mut().ok()?.pop_if_empty().push("models");
        Some(base)
    }

    /// The header that carries the key.
    fn key_header(&self, key: &str) -> (HeaderName, String) {
        (header::AUTHORIZATION, format!("Bearer {key}"))
    }

    /// Headers of every request.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// The whole body of a request.
    fn body(&self, request: &ModelRequest) -> Vec<u8>;

    fn decoder(&self, request: &ModelRequest) -> Box<dyn Decode>;
}

/// A model behind an endpoint.
#[derive(Debug)]
pub struct Remote {
    pub(super) endpoint: Endpoint,
    pub(super) dialect: Box<dyn Dialect>,
    pub(super) http: Arc<Http>,
    /// What stands before the names of its models, `/` included.
    prefix: String,
    /// Of a model's answers.
    url: OneEntryCache<String, Option<Url>>,
}

impl Remote {
    /// Opens nothing yet. A configuration that cannot work fails with `Auth` when it is first used.
    pub fn new(endpoint: Endpoint, dialect: impl Dialect + 'static, http: Arc<Http>) -> Self {
        Self { endpoint, dialect: Box::new(dialect), http, prefix: String::new(), url: OneEntryCache::default() }
    }

    /// With other words about where its address and key come from.
    pub fn with_origin(mut self, origin: EndpointOrigin) -> Self {
        self.endpoint.origin = origin;
        self
    }

    /// Models are asked for as `NAME/MODEL`, which the service knows as `MODEL`.
    pub fn with_prefix(self, name: &str) -> Self {
        Self { prefix: format!("{name}/"), ..self }
    }

    async fn answer(
        &self,
        mut request: ModelRequest,
        token: Option<&SecretString>,
        sink: &mut dyn Sink,
    ) -> Result<(), Failure> {
        if let Some(bare) = request.model.strip_prefix(&*self.prefix).filter(|_| !self.prefix.is_empty()) {
            request.model = bare.into();
        }
        let mut response = self.send(&request, token).await?;
        self.note_rate_limits(response.headers());
        let decoder = self.dialect.decoder(&request);
        let tools = request.tools.clone();
        drop(request);
        let status = response.status();
        if !status.is_success() {
            if let (StatusCode::UNAUTHORIZED, Some(tokens), Some(token)) = (status, &self.endpoint.tokens, token) {
                tokens.invalidate(token).await;
            }
            let body = http::read_head(&mut response, MAX_ERROR_BODY).await;
            let failure = self.refusal(&response, &body);
            let message = restore_names(failure.message, &tools);
            return Err(Failure { message, ..failure });
        }
        Answer::new(response, &self.http, decoder, &self.endpoint.origin.api).deliver(sink).await
    }

    fn note_rate_limits(&self, headers: &HeaderMap) {
        let found = read_rate_limits(|name| headers.get(name)?.to_str().ok(), now_ms());
        let name = self.prefix.strip_suffix('/').unwrap_or("gemini");
        self.http.rate_limits().note(name, found);
    }

    /// The failure for an answer whose status is no success.
    pub(super) fn refusal(&self, response: &Response, body: &[u8]) -> Failure {
        let status = response.status().as_u16();
        self.web_page(response, body).unwrap_or_else(|| {
            let retry_after = retry_after(status, response.headers());
            error_body::from_answer(status, &String::from_utf8_lossy(body), retry_after)
        })
    }

    pub(super) fn web_page(&self, response: &Response, body: &[u8]) -> Option<Failure> {
        let expected = (self.endpoint.origin.api.as_str(), response.url());
        web_page::failure(response.status().as_u16(), response.headers(), body, expected)
    }

    async fn send(&self, request: &ModelRequest, token: Option<&SecretString>) -> Result<Response, Failure> {
        let url = self.url(&request.model)?;
        let body = self.dialect.body(request);
        let post = self.http.client()?.post(url.clone()).headers(self.headers(token)?).body(body);
        self.http.send(post, &url).await
    }

    /// What takes the place of the key, where something does.
    pub(super) async fn token(&self) -> Result<Option<SecretString>, Failure> {
        match &self.endpoint.tokens {
            Some(it) => it.get().await.map(Some),
            None => Ok(None),
        }
    }

    fn url(&self, model: &str) -> Result<Url, Failure> {
        let url = |model: &String| self.dialect.url(self.base().ok()?, model);
        self.url.get(model.to_owned(), url).ok_or_else(invalid_endpoint)
    }

    pub(super) fn base(&self) -> Result<Url, Failure> {
        let base = Url::parse(&self.endpoint.base_url).ok();
        base.filter(|it| matches!(it.scheme(), "http" | "https") && it.has_host()).ok_or_else(invalid_endpoint)
    }

    pub(super) fn headers(&self, token: Option<&SecretString>) -> Result<HeaderMap, Failure> {
        let key = self.endpoint.key.expose_secret();
        let key = match token {
            Some(it) => Some((header::AUTHORIZATION, format!("Bearer {}", it.expose_secret()))),
            None => (!key.is_empty()).then(|| self.dialect.key_header(key)),
        };
        let mut res = HeaderMap::new();
        res.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Compression would hold events back.
        res.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        for (name, value) in self.dialect.headers() {
            res.insert(*name, HeaderValue::from_static(value));
        }
        if let Some((name, value)) = key {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Failure::new(FailureKind::Auth, "The API key has characters that cannot be sent."))?;
            value.set_sensitive(true);
            res.insert(name, value);
        }
        for (name, value) in &self.endpoint.headers {
            let pair =
                HeaderName::from_bytes(name.as_bytes()).ok().zip(HeaderValue::from_str(value.expose_secret()).ok());
            let (name, mut value) = pair.ok_or_else(|| {
                Failure::new(FailureKind::Auth, format!("The custom header {name:?} or its value cannot be sent."))
            })?;
            value.set_sensitive(true);
            res.insert(name, value);
        }
        Ok(res)
    }

    /// Makes a failure fit to be shown: one line, of bounded length, without what servers like to repeat of us, and with
    /// what to check.
    pub(super) fn present_failure(&self, failure: Failure, token: Option<&SecretString>) -> Failure {
        let mut message = failure.message;
        let values = self.endpoint.headers.iter().map(|(_, value)| value.expose_secret());
        let token = token.map(SecretString::expose_secret);
        let values = values.chain([self.endpoint.key.expose_secret()]).chain(token);
        let secrets: Vec<&str> = values.filter(|it| it.len() >= MIN_SECRET).collect();
        for secret in &secrets {
            message = message.replace(secret, "[hidden]");
        }
        let line = message.split(|it: char| it.is_whitespace() || it.is_control()).filter(|it| !it.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        let failure = Failure { message: text::head(&line, MAX_MESSAGE).to_owned(), ..failure };
        let advice = self.endpoint.origin.advice(&failure, self.endpoint.key.expose_secret());
        let message = match advice.is_empty() {
            true => failure.message,
            false => format!("{} {advice}", text::end_sentence(&failure.message)),
        };
        let mut details = failure.details.without(|it| secrets.iter().any(|secret| it.contains(secret)));
        if failure.kind == FailureKind::Auth && failure.status.is_some() {
            details.credential.clone_from(&self.endpoint.origin.credential);
        }
        Failure { message, details: Box::new(details), ..failure }
    }
}

impl Generator for Remote {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move {
            let token = self.token().await.map_err(|it| self.present_failure(it, None))?;
            self.answer(request, token.as_ref(), sink).await.map_err(|it| self.present_failure(it, token.as_ref()))
        })
    }

    fn address(&self, _: &str) -> Option<String> {
        Some(self.endpoint.base_url.clone())
    }

    fn credential_hash(&self, _: &str) -> Option<String> {
        let Endpoint { base_url, key, headers, tokens, origin: _ } = &self.endpoint;
        if tokens.is_some() {
            return None;
        }
        let headers = headers.iter().flat_map(|(name, value)| [name.as_str(), value.expose_secret()]);
        let all: Vec<&str> = [base_url.as_str(), key.expose_secret()].into_iter().chain(headers).collect();
        Some(disk::hash(all.join("\0").as_bytes()))
    }
}

fn invalid_endpoint() -> Failure {
    Failure::new(FailureKind::Auth, "The model's base URL is invalid: it must be http(s)://host.")
}

/// What the headers ask for.
fn retry_after(status: u16, headers: &HeaderMap) -> Option<u64> {
    error_body::wait_from_headers(status, |name| headers.get(name)?.to_str().ok(), now_ms())
}

fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
