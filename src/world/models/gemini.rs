//! Gemini over HTTP: one streaming request per answer.

mod error;
mod request;
mod response;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_server;

use std::{
    mem,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::{
    Response, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout_at};

pub use response::{Decoder, decode, finish_word};
#[cfg(test)]
pub use tests::turns as conversation;

use super::{Generator, Sink};
use crate::{
    base::{
        fs::BoxFuture,
        model::{Chunk, Failure, FailureKind, ModelRequest},
        text,
    },
    wire::sse,
    world::http::{self, Http},
};

/// Of an error's body, or of an answer that is none, no more is read, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;
/// Longest message of a failure, in bytes.
const MAX_MESSAGE: usize = 2_000;
/// Once an answer is complete its connection gets this long to end properly: then it can be used again.
const DRAIN: Duration = Duration::from_secs(1);
/// Chunks are handed on at the latest when this many bytes were taken from the connection.
const MAX_READ: usize = 64 << 10;
/// Of a body that holds no events, so much is kept to be shown, in bytes.
const MAX_BEGINNING: usize = 400;
/// Shorter header values are no secrets, and hiding them everywhere would garble messages.
const MIN_SECRET: usize = 6;

/// How to reach the service.
#[derive(Clone, Debug)]
pub struct Config {
    /// Scheme, host and port, with or without a path.
    pub base_url: String,
    /// `v1beta` unless configured otherwise.
    pub api_version: String,
    /// Empty: no key is sent.
    pub key: SecretString,
    /// Sends the key as `Authorization: Bearer` instead of `x-goog-api-key`.
    pub bearer: bool,
    /// Sent with each request; they replace ours of the same name.
    pub headers: Vec<(String, SecretString)>,
}

#[derive(Debug)]
pub struct Gemini {
    config: Config,
    http: Arc<Http>,
}

impl Gemini {
    /// Opens nothing yet. A configuration that cannot work fails with `Auth` when it is first used.
    pub fn new(config: Config, http: Arc<Http>) -> Self {
        Self { config, http }
    }

    async fn answer(&self, request: ModelRequest, sink: &mut dyn Sink) -> Result<(), Failure> {
        let mut response = self.send(&request).await?;
        drop(request);
        let status = response.status();
        if !status.is_success() {
            let retry_after = retry_after(response.headers());
            let body = http::read_head(&mut response, MAX_ERROR_BODY).await;
            return Err(error::from_answer(status.as_u16(), &String::from_utf8_lossy(&body), retry_after));
        }
        if !is_stream(response.headers()) {
            let body = http::read_head(&mut response, MAX_ERROR_BODY).await;
            return Err(no_stream(&body));
        }
        Answer::new(response, &self.http).deliver(sink).await
    }

    async fn send(&self, request: &ModelRequest) -> Result<Response, Failure> {
        let url = self.url(&request.model)?;
        let post = self.http.client()?.post(url.clone()).headers(self.headers()?).body(request::body(request));
        self.http.send(post, &url).await
    }

    fn url(&self, model: &str) -> Result<Url, Failure> {
        let unusable =
            || Failure::new(FailureKind::Auth, "The model's base URL is invalid: it must be http(s)://host.");
        let mut url = Url::parse(&self.config.base_url).map_err(|_| unusable())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(unusable());
        }
        let kind = if model.contains('/') { "" } else { "models" };
        {
            let mut path = url.path_segments_mut().map_err(|()| unusable())?;
            path.pop_if_empty().push(&self.config.api_version);
            let name = model.split('/').filter(|it| !it.is_empty());
            path.extend([kind].into_iter().filter(|it| !it.is_empty()).chain(name));
        }
        let path = format!("{}:streamGenerateContent", url.path());
        url.set_path(&path);
        url.query_pairs_mut().append_pair("alt", "sse");
        Ok(url)
    }

    fn headers(&self) -> Result<HeaderMap, Failure> {
        let key = self.config.key.expose_secret();
        let mut res = HeaderMap::new();
        res.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // Compression would hold events back.
        res.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        if !key.is_empty() {
            let (name, value) = match self.config.bearer {
                true => (header::AUTHORIZATION, format!("Bearer {key}")),
                false => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
            };
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| Failure::new(FailureKind::Auth, "The API key has characters that cannot be sent."))?;
            value.set_sensitive(true);
            res.insert(name, value);
        }
        for (name, value) in &self.config.headers {
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

    /// Makes a failure fit to be shown: one line, of bounded length, without what servers like to repeat of us.
    fn shown(&self, failure: Failure) -> Failure {
        let mut message = failure.message;
        let values = self.config.headers.iter().map(|(_, value)| value.expose_secret());
        for secret in values.chain([self.config.key.expose_secret()]) {
            if secret.len() >= MIN_SECRET {
                message = message.replace(secret, "[hidden]");
            }
        }
        let line = message.split(|it: char| it.is_whitespace() || it.is_control()).filter(|it| !it.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        Failure { message: text::head(&line, MAX_MESSAGE).to_owned(), ..failure }
    }
}

impl Generator for Gemini {
    fn generate<'a>(&'a self, request: ModelRequest, sink: &'a mut dyn Sink) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(async move { self.answer(request, sink).await.map_err(|it| self.shown(it)) })
    }
}

fn is_stream(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return true };
    kind.as_bytes().to_ascii_lowercase().starts_with(b"text/event-stream")
}

fn no_stream(body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let beginning = text::head(body.trim(), 300);
    let message = match beginning.is_empty() {
        true => "The server answered with nothing instead of a stream of events.".to_owned(),
        false => format!("The server did not answer with a stream of events; the answer begins with: {beginning}"),
    };
    Failure::new(FailureKind::Garbage, message)
}

fn retry_after(headers: &HeaderMap) -> Option<u64> {
    let value = headers.get(header::RETRY_AFTER)?.to_str().ok()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    error::retry_after_ms(value, i64::try_from(now.as_secs()).unwrap_or(i64::MAX))
}

/// An answer on its way from the connection to the sink.
struct Answer<'a> {
    response: Response,
    http: &'a Http,
    sse: sse::Decoder,
    decoder: Decoder,
    /// What the last read brought.
    chunks: Vec<Chunk>,
    /// Why what came cannot be used; nothing more is read then.
    unusable: Option<Failure>,
    /// An end that was met while looking whether more is there already.
    end: Option<Result<(), Failure>>,
    /// How the body begins, kept until the first event.
    beginning: Vec<u8>,
    /// Events that were understood.
    events: u64,
}

impl<'a> Answer<'a> {
    fn new(response: Response, http: &'a Http) -> Self {
        let (sse, decoder) = (sse::Decoder::default(), Decoder::default());
        let (chunks, beginning) = (Vec::new(), Vec::new());
        Self { response, http, sse, decoder, chunks, unusable: None, end: None, beginning, events: 0 }
    }

    async fn deliver(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let mut drained = None;
        loop {
            let end = match drained {
                None => self.read().await,
                Some(at) => timeout_at(at, self.read()).await.unwrap_or(Ok(false)),
            };
            let unusable = self.unusable.take();
            let over = unusable.is_some() || !matches!(end, Ok(true));
            if over {
                self.flush();
            }
            if !self.chunks.is_empty() {
                sink.send(mem::take(&mut self.chunks)).await;
            }
            match (unusable, end) {
                (Some(failure), _) => return Err(failure),
                (None, Ok(true)) => drained = self.decoder.finished().then(|| Instant::now() + DRAIN),
                (None, Ok(false)) => return self.ended(),
                (None, Err(_)) if self.decoder.finished() => return Ok(()),
                (None, Err(failure)) => return Err(failure),
            }
        }
    }

    /// Takes what the connection has, at least one piece; `false` at its end.
    async fn read(&mut self) -> Result<bool, Failure> {
        if let Some(end) = self.end.take() {
            return end.map(|()| false);
        }
        let Some(first) = self.http.next_piece(&mut self.response).await? else { return Ok(false) };
        let mut taken = self.take(first);
        while taken < MAX_READ && self.end.is_none() && self.unusable.is_none() {
            match self.soon().await {
                None => break,
                Some(Ok(Some(bytes))) => taken += self.take(bytes),
                Some(Ok(None)) => self.end = Some(Ok(())),
                Some(Err(error)) => self.end = Some(Err(http::broken_answer(&error))),
            }
        }
        Ok(true)
    }

    /// The next piece if it is there already. The task that reads the socket hands over one piece at a time, so it is
    /// given one chance to run.
    async fn soon(&mut self) -> Option<Result<Option<Bytes>, reqwest::Error>> {
        if let Some(it) = self.response.chunk().now_or_never() {
            return Some(it);
        }
        tokio::task::yield_now().await;
        self.response.chunk().now_or_never()
    }

    /// Decodes what a piece completes; its length in bytes.
    fn take(&mut self, bytes: Bytes) -> usize {
        let len = bytes.len();
        if self.events == 0 && self.beginning.len() < MAX_BEGINNING {
            self.beginning.extend_from_slice(bytes.get(..MAX_BEGINNING).unwrap_or(&bytes));
        }
        self.sse.push(bytes);
        self.unusable = self.decode().err();
        len
    }

    fn decode(&mut self) -> Result<(), Failure> {
        let too_large = |it| Failure::new(FailureKind::Garbage, format!("The answer is too large: {it}."));
        while let Some(event) = self.sse.next().map_err(too_large)? {
            self.decoder.event(&event.data, &mut self.chunks)?;
            self.events += 1;
        }
        Ok(())
    }

    /// Takes what is left once nothing more will come. Servers forget the blank line after the last event; half an
    /// event counts for nothing.
    fn flush(&mut self) {
        self.sse.push(Bytes::from_static(b"\n\n"));
        self.unusable = self.decode().err().filter(|it| it.kind != FailureKind::Garbage);
        self.decoder.end(&mut self.chunks);
    }

    /// A connection that ended as it should. Whether the answer is complete is for others to judge.
    fn ended(self) -> Result<(), Failure> {
        if let Some(failure) = self.unusable {
            return Err(failure);
        }
        match (self.events, self.beginning.trim_ascii()) {
            (0, b"") => Err(Failure::new(FailureKind::Stream, "The connection closed without an answer.")),
            (0, beginning) => Err(no_stream(beginning)),
            _ => Ok(()),
        }
    }
}
