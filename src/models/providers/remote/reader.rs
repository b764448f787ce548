//! The reader of an answer's body, without I/O: pieces of it go in, chunks come out.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::decode::{Decode, named_error};
use castor_base::model::{Chunk, Failure, FailureKind};
use castor_wire::sse;

/// Of a body that holds no events, so much is kept to tell what it is, in bytes.
const MAX_BEGINNING: usize = 4 << 10;
/// Names of events that only keep a connection open.
const KEEP_ALIVE: &[&[u8]] = &[b"ping", b"keepalive", b"keep-alive", b"heartbeat"];

/// Push what comes, take the chunks, and end it once.
pub struct AnswerReader {
    sse: sse::Decoder,
    decoder: Box<dyn Decode>,
    /// What was read since they were taken.
    pub chunks: Vec<Chunk>,
    /// How the body begins, kept until the first event.
    beginning: Vec<u8>,
    /// Events that were understood, or a whole answer in their place.
    events: u64,
}

impl AnswerReader {
    pub fn new(decoder: Box<dyn Decode>) -> Self {
        Self { sse: sse::Decoder::default(), decoder, chunks: Vec::new(), beginning: Vec::new(), events: 0 }
    }

    /// Tells whether the answer is complete. More may still come.
    pub fn is_finished(&mut self) -> bool {
        self.decoder.is_finished()
    }

    /// Reads what this piece completes.
    ///
    /// # Errors
    /// The body is no answer, or the server says what went wrong. Nothing more is to be read then.
    pub fn push(&mut self, bytes: Bytes) -> Result<(), Failure> {
        if self.events == 0 && self.beginning.len() < MAX_BEGINNING {
            self.beginning.extend_from_slice(bytes.get(..MAX_BEGINNING).unwrap_or(&bytes));
        }
        self.sse.push(bytes);
        self.read_events()
    }

    /// Reads what is left. `is_clean`: the connection ended as it should. Servers forget the blank line after the last
    /// event; half an event counts for nothing.
    ///
    /// # Errors
    /// What the server says went wrong.
    pub fn end(&mut self, is_clean: bool) -> Result<(), Failure> {
        self.sse.push(Bytes::from_static(b"\n\n"));
        let read = self.read_events().and_then(|()| self.read_plain());
        self.decoder.end(is_clean, &mut self.chunks);
        read.or_else(|it| if it.kind == FailureKind::Garbage { Ok(()) } else { Err(it) })
    }

    /// How a body begins in which nothing was understood.
    pub fn unknown_beginning(&self) -> Option<&[u8]> {
        (self.events == 0).then(|| self.beginning.trim_ascii())
    }

    fn read_events(&mut self) -> Result<(), Failure> {
        let too_large = |it| Failure::new(FailureKind::Garbage, format!("The answer is too large: {it}."));
        while let Some(event) = self.sse.next().map_err(too_large)? {
            if KEEP_ALIVE.contains(&&*event.name) {
                continue;
            }
            let read = self.decoder.event(&event.data, &mut self.chunks);
            if &*event.name == b"error" && !self.decoder.is_finished() {
                return Err(named_error(&event.data, read));
            }
            read?;
            self.events += 1;
        }
        Ok(())
    }

    /// JSON that is no event: a whole answer, or the error that ended a stream.
    fn read_plain(&mut self) -> Result<(), Failure> {
        let plain = self.sse.take_plain();
        let plain = String::from_utf8_lossy(&plain);
        for value in serde_json::Deserializer::from_str(&plain).into_iter::<&RawValue>() {
            let value = match value {
                Ok(it) => it.get(),
                Err(it) if it.is_eof() && !self.decoder.is_finished() => {
                    let message = "The connection closed in the middle of the answer.";
                    return Err(Failure::new(FailureKind::Stream, message));
                }
                Err(_) => break,
            };
            let n_chunks = self.chunks.len();
            self.decoder.event(value.as_bytes(), &mut self.chunks)?;
            self.events += u64::from(self.chunks.len() > n_chunks);
        }
        Ok(())
    }
}
