//! A streamed HTTP answer: decodes events as they arrive.

use std::{future::poll_fn, mem, task::Poll, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::Decode;
use crate::{
    base::{
        model::{Chunk, Failure, FailureKind},
        text,
    },
    wire::sse,
    world::{
        http::{self, Http},
        models::Sink,
    },
};

/// Once an answer is complete its connection gets this long to end properly: then it can be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Chunks are handed on at the latest when this many bytes were taken from the connection.
const MAX_READ: usize = 64 << 10;
/// Of a body that holds no events, so much is kept to be shown, in bytes.
const MAX_BEGINNING: usize = 400;

/// An answer on its way from the connection to the sink.
pub struct Answer<'a> {
    response: Response,
    http: &'a Http,
    sse: sse::Decoder,
    decoder: Box<dyn Decode>,
    /// What the last read brought.
    chunks: Vec<Chunk>,
    /// Why what came cannot be used; nothing more is read then.
    decode_failure: Option<Failure>,
    /// An end that was met while looking whether more is there already.
    end: Option<Result<(), Failure>>,
    /// How the body begins, kept until the first event.
    beginning: Vec<u8>,
    /// Events that were understood.
    events: u64,
}

impl<'a> Answer<'a> {
    pub fn new(response: Response, http: &'a Http, decoder: Box<dyn Decode>) -> Self {
        let sse = sse::Decoder::default();
        let (chunks, beginning) = (Vec::new(), Vec::new());
        Self { response, http, sse, decoder, chunks, decode_failure: None, end: None, beginning, events: 0 }
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
            let unusable = self.decode_failure.take();
            let over = unusable.is_some() || !matches!(end, Ok(true));
            if over {
                self.flush();
            }
            if !self.chunks.is_empty() {
                sink.send(mem::take(&mut self.chunks)).await;
            }
            match (unusable, end) {
                (Some(failure), _) => return Err(failure),
                (None, Ok(true)) => drained = self.decoder.is_finished().then(|| Instant::now() + DRAIN_TIMEOUT),
                (None, Ok(false)) => return self.finish(),
                (None, Err(_)) if self.decoder.is_finished() => return Ok(()),
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

    /// Decodes what a piece completes; its length in bytes.
    fn take_piece(&mut self, bytes: Bytes) -> usize {
        let len = bytes.len();
        if self.events == 0 && self.beginning.len() < MAX_BEGINNING {
            self.beginning.extend_from_slice(bytes.get(..MAX_BEGINNING).unwrap_or(&bytes));
        }
        self.sse.push(bytes);
        self.decode_failure = self.decode().err();
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
        self.decode_failure = self.decode().err().filter(|it| it.kind != FailureKind::Garbage);
        self.decoder.end(&mut self.chunks);
    }

    /// A connection that ended as it should. Whether the answer is complete is for others to judge.
    fn finish(self) -> Result<(), Failure> {
        if let Some(failure) = self.decode_failure {
            return Err(failure);
        }
        match (self.events, self.beginning.trim_ascii()) {
            (0, b"") => Err(Failure::new(FailureKind::Stream, "The connection closed without an answer.")),
            (0, beginning) => Err(not_a_stream(beginning)),
            _ => Ok(()),
        }
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
pub fn not_a_stream(body: &[u8]) -> Failure {
    let body = String::from_utf8_lossy(body);
    let beginning = text::head(body.trim(), 300);
    let message = match beginning.is_empty() {
        true => "The server answered with nothing instead of a stream of events.".to_owned(),
        false => format!("The server did not answer with a stream of events; the answer begins with: {beginning}"),
    };
    Failure::new(FailureKind::Garbage, message)
}
