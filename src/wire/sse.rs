//! Server-sent events: bytes in, events out, bounded and without I/O.

use bytes::{Buf, Bytes, BytesMut};

/// Largest event, in bytes.
const MAX_EVENT: usize = 16 << 20;

#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    pub event: Bytes,
    pub data: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than 16 MiB")]
pub struct TooLarge;

#[derive(Debug, Default)]
pub struct Sse {
    buf: BytesMut,
    scan: usize,
    event: Bytes,
    data: Vec<Bytes>,
    size: usize,
    started: bool,
}

impl Sse {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn push(&mut self, bytes: Bytes) {
        match self.buf.is_empty() {
            true => self.buf = bytes.try_into_mut().unwrap_or_else(|it| BytesMut::from(&it[..])),
            false => self.buf.extend_from_slice(&bytes),
        }
    }

    /// The next whole event; `None` until more is pushed.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Result<Option<Event>, TooLarge> {
        if !self.started && self.buf.len() >= 3 {
            if self.buf.starts_with(b"\xef\xbb\xbf") {
                self.buf.advance(3);
            }
            self.started = true;
        }
        while let Some(line) = self.line() {
            if line.is_empty() {
                self.size = 0;
                let event = std::mem::take(&mut self.event);
                let mut data = std::mem::take(&mut self.data);
                match data.len() {
                    0 => continue,
                    1 => return Ok(data.pop().map(|data| Event { event, data })),
                    _ => return Ok(Some(Event { event, data: data.join(&b"\n"[..]).into() })),
                }
            }
            self.field(line)?;
        }
        match self.buf.len() + self.size > MAX_EVENT {
            true => Err(TooLarge),
            false => Ok(None),
        }
    }

    fn line(&mut self) -> Option<Bytes> {
        let rest = self.buf.get(self.scan..)?;
        let Some(at) = memchr::memchr2(b'\n', b'\r', rest).map(|it| it + self.scan) else {
            self.scan = self.buf.len();
            return None;
        };
        let wide = match (self.buf.get(at), self.buf.get(at + 1)) {
            // The LF of this CR may be still under way.
            (Some(b'\r'), None) => {
                self.scan = at;
                return None;
            }
            (Some(b'\r'), Some(b'\n')) => 2,
            _ => 1,
        };
        let line = self.buf.split_to(at).freeze();
        self.buf.advance(wide);
        self.scan = 0;
        Some(line)
    }

    fn field(&mut self, mut line: Bytes) -> Result<(), TooLarge> {
        self.size += line.len();
        if self.size > MAX_EVENT {
            return Err(TooLarge);
        }
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let name = line.split_to(colon);
        if line.first() == Some(&b':') {
            line.advance(1);
        }
        if line.first() == Some(&b' ') {
            line.advance(1);
        }
        match &name[..] {
            b"data" => self.data.push(line),
            b"event" => self.event = line,
            _ => (),
        }
        Ok(())
    }
}
