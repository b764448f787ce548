//! A streamed HTTP answer: decodes events as they arrive.

use std::{future::poll_fn, mem, task::Poll, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::{decode::Decode, reader::AnswerReader, web_page};
use crate::providers::Sink;
use castor_base::{
    model::{Failure, FailureKind},
    text,
};
use castor_hands::http::{self, Http};

/// Once an answer is complete its connection gets this long to end properly: then it can be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Chunks are handed on at the latest when this many bytes were taken from the connection.
const MAX_READ: usize = 64 << 10;

/// An answer on its way from the connection to the sink.
pub struct Answer<'a> {
    response: Response,
    http: &'a Http,
    /// The name of the API that was asked.
    api: &'a str,
    reader: AnswerReader,
    /// Why what came cannot be used; nothing more is read then.
    decode_failure: Option<Failure>,
    /// An end that was met while looking whether more is there already.
    end: Option<Result<(), Failure>>,
}

impl<'a> Answer<'a> {
    pub fn new(response: Response, http: &'a Http, decoder: Box<dyn Decode>, api: &'a str) -> Self {
        Self { response, http, api, reader: AnswerReader::new(decoder), decode_failure: None, end: None }
    }

    /// Reads to the end, or until the answer is complete and the connection can be used again.
    ///
    /// # Errors
    /// What broke it; a connection that says nothing at all.
    pub async fn deliver(mut self, sink: &mut dyn Sink) -> Result<(), Failure> {
        let mut drained = None;
        loop {
            let end = match drained {
                None => self.read().await,
                Some(at) => timeout_at(at, self.read()).await.unwrap_or(Ok(false)),
            };
            let mut unusable = self.decode_failure.take();
            if unusable.is_some() || !matches!(end, Ok(true)) {
                let at_end = self.reader.end(end.is_ok()).err();
                unusable = unusable.or(at_end);
            }
            if !self.reader.chunks.is_empty() {
                sink.send(mem::take(&mut self.reader.chunks)).await;
            }
            match (unusable, end) {
                (Some(failure), _) => return Err(failure),
                (None, Ok(true)) => drained = self.reader.is_finished().then(|| Instant::now() + DRAIN_TIMEOUT),
                (None, Ok(false)) => return self.finish(),
                (None, Err(_)) if self.reader.is_finished() => return Ok(()),
                (None, Err(failure)) => return Err(failure),
            }
        }
    }

    /// Takes what the connection has, at least one piece; `false` at its end.
    async fn read(&mut self) -> Result<bool, Failure> {
        if let Some(end) = self.end.take() {
            return end.map(|()| false);
        }
        let Some(first) = self.http.next_chunk(&mut self.response).await? else { return Ok(false) };
        let mut taken = self.take_piece(first);
        while taken < MAX_READ && self.end.is_none() && self.decode_failure.is_none() {
            match self.ready_piece().await {
                None => break,
                Some(Ok(Some(bytes))) => taken += self.take_piece(bytes),
                Some(Ok(None)) => self.end = Some(Ok(())),
                Some(Err(error)) => self.end = Some(Err(http::stream_failure(&error))),
            }
        }
        Ok(true)
    }

    /// The next piece if it is there already. The task that reads the socket hands over one piece at a time, so it is
    /// given one chance to run.
    async fn ready_piece(&mut self) -> Option<Result<Option<Bytes>, reqwest::Error>> {
        if let Some(it) = self.response.chunk().now_or_never() {
            return Some(it);
        }
        let_ready_tasks_run().await;
        self.response.chunk().now_or_never()
    }

    /// Reads what a piece completes; its length in bytes.
    fn take_piece(&mut self, bytes: Bytes) -> usize {
        let len = bytes.len();
        self.decode_failure = self.reader.push(bytes).err();
        len
    }

    /// A connection that ended as it should. Whether the answer is complete is for others to judge.
    fn finish(self) -> Result<(), Failure> {
        match self.reader.unknown_beginning() {
            None => Ok(()),
            Some(b"") => Err(Failure::new(FailureKind::Stream, "The connection closed without an answer.")),
            Some(beginning) => Err(self.no_answer(beginning)),
        }
    }

    /// A body that is neither a stream of events nor a whole answer.
    fn no_answer(&self, beginning: &[u8]) -> Failure {
        let (status, headers) = (self.response.status().as_u16(), self.response.headers());
        web_page::failure(status, headers, beginning, (self.api, self.response.url()))
            .unwrap_or_else(|| not_a_stream(beginning))
    }
}

/// As tokio's `yield_now`, which looks at all sockets first: a system call for each piece.
async fn let_ready_tasks_run() {
    let mut has_waited = false;
    poll_fn(|cx| {
        if mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A body that is no stream of events.
fn not_a_stream(body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let beginning = text::head(body.trim(), 300);
    let message = format!("The server did not answer with a stream of events; the answer begins with: {beginning}");
    Failure::new(FailureKind::Garbage, message)
}
