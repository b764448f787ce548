//! Server-sent events: a bounded decoder from response chunks to events.

use bytes::{Buf, Bytes};
use memchr::{memchr, memchr2};

/// Largest event, in bytes of its lines together.
pub const MAX_EVENT: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event. Ids and retry times are of no use to a model's stream and are dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The last `event:` field; empty without one.
    pub name: Bytes,
    /// The `data:` fields, joined by newlines.
    pub data: Bytes,
}

/// The server sent an event larger than [`MAX_EVENT`]; there is no going on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is larger than {0} bytes")]
pub struct TooLarge(pub usize);

/// Push a chunk, pull until `None`, and so on; `finish` at the end of the body.
#[derive(Debug)]
pub struct Decoder {
    chunk: Bytes,
    /// The beginning of a line whose end is in none of the chunks so far.
    carry: Vec<u8>,
    /// The last line ended with a carriage return at the very end of what came: a newline right behind belongs to it.
    skip_newline: bool,
    /// Past the first line, which alone may begin with a byte order mark.
    started: bool,
    name: Bytes,
    data: EventData,
    /// Lines that are no fields: what a server writes that answers plainly.
    plain: Vec<u8>,
    /// Bytes of the event so far.
    size: usize,
    max: usize,
    failed: bool,
}

/// The data of the event so far.
#[derive(Debug)]
enum EventData {
    None,
    /// Almost always the only one: kept as it lies in the chunk.
    Line(Bytes),
    Lines(Vec<u8>),
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(MAX_EVENT)
    }
}

impl Decoder {
    /// `max` as in [`MAX_EVENT`].
    pub fn new(max: usize) -> Self {
        Self {
            chunk: Bytes::new(),
            carry: Vec::new(),
            skip_newline: false,
            started: false,
            name: Bytes::new(),
            data: EventData::None,
            plain: Vec::new(),
            size: 0,
            max,
            failed: false,
        }
    }

    /// Takes the next chunk of the body. Costs nothing when the last one was pulled empty, a copy otherwise.
    pub fn push(&mut self, chunk: Bytes) {
        self.chunk = match self.chunk.is_empty() {
            true => chunk,
            false => [self.chunk.as_ref(), chunk.as_ref()].concat().into(),
        };
    }

    /// The next event; `None`: push more. Errors: too large, now and ever after.
    #[allow(clippy::should_implement_trait, reason = "None is not the end")]
    pub fn next(&mut self) -> Result<Option<Event>, TooLarge> {
        while !self.failed {
            let Some(line) = self.line() else {
                return self.check().map(|()| None);
            };
            if line.is_empty() {
                match self.dispatch() {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            self.field(line);
            self.check()?;
        }
        Err(TooLarge(self.max))
    }

    /// The lines that were no fields, at most [`MAX_EVENT`] bytes of them.
    pub fn take_plain(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.plain)
    }

    /// At the end of the body. An event that no blank line ends is incomplete and is dropped: `true` when there was one.
    pub fn finish(self) -> bool {
        !matches!(self.data, EventData::None) || !self.carry.is_empty()
    }

    fn line(&mut self) -> Option<Bytes> {
        if self.skip_newline && !self.chunk.is_empty() {
            self.skip_newline = false;
            if self.chunk.starts_with(b"\n") {
                self.chunk.advance(1);
            }
        }
        let Some(at) = memchr2(b'\n', b'\r', &self.chunk) else {
            self.carry.extend_from_slice(&self.chunk);
            self.chunk = Bytes::new();
            return None;
        };
        // Most lines lie in one chunk, and every other one is empty and needs no count of who holds it.
        let mut line = if at == 0 { Bytes::new() } else { self.chunk.split_to(at) };
        if !self.carry.is_empty() {
            self.carry.extend_from_slice(&line);
            line = std::mem::take(&mut self.carry).into();
        }
        self.skip_newline = self.chunk.starts_with(b"\r");
        self.chunk.advance(1);
        if !self.started {
            self.started = true;
            line.advance(if line.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 });
        }
        Some(line)
    }

    fn field(&mut self, mut line: Bytes) {
        let size = line.len() + 1;
        let (name, value) = line.split_at(memchr(b':', &line).unwrap_or(line.len()));
        let begin = name.len() + if value.starts_with(b": ") { 2 } else { usize::from(!value.is_empty()) };
        let (is_data, is_name) = (name == b"data", name == b"event");
        if !matches!(name, b"" | b"data" | b"event" | b"id" | b"retry") && self.plain.len() + size <= self.max {
            self.plain.extend_from_slice(&line);
            self.plain.push(b'\n');
        }
        line.advance(begin);
        if is_data {
            self.data.push(line);
        } else if is_name {
            self.name = line;
        } else if size <= self.max {
            // Not kept, but refused when it is large by itself: whether it came in one chunk must not matter.
            return;
        }
        self.size += size;
    }

    fn dispatch(&mut self) -> Option<Event> {
        self.size = 0;
        let name = std::mem::take(&mut self.name);
        let data = std::mem::replace(&mut self.data, EventData::None).take()?;
        Some(Event { name, data })
    }

    fn check(&mut self) -> Result<(), TooLarge> {
        if self.size + self.carry.len() <= self.max {
            return Ok(());
        }
        *self = Self { failed: true, ..Self::new(self.max) };
        Err(TooLarge(self.max))
    }
}

impl EventData {
    fn push(&mut self, line: Bytes) {
        match self {
            Self::None => *self = Self::Line(line),
            Self::Line(first) => *self = Self::Lines([first.as_ref(), b"\n", &line].concat()),
            Self::Lines(all) => {
                all.push(b'\n');
                all.extend_from_slice(&line);
            }
        }
    }

    fn take(self) -> Option<Bytes> {
        match self {
            Self::None => None,
            Self::Line(line) => Some(line),
            Self::Lines(all) => Some(all.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Decoder;

    /// Events of `chunks`, one a line: `name=data`, `!` for too large, `…` for an incomplete last one.
    fn events<'a>(max: usize, chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
        let mut decoder = Decoder::new(max);
        let mut res = String::new();
        for chunk in chunks {
            decoder.push(Bytes::copy_from_slice(chunk));
            loop {
                match decoder.next() {
                    Ok(Some(event)) => {
                        let (name, data) = (String::from_utf8_lossy(&event.name), String::from_utf8_lossy(&event.data));
                        res += &format!("{name}={data:?}\n");
                    }
                    Ok(None) => break,
                    Err(_) => return res + "!\n",
                }
            }
        }
        if decoder.finish() {
            res += "…\n";
        }
        res
    }

    fn check(input: &str, expected: &str) {
        check_max(1 << 20, input, expected);
    }

    /// Whole, and cut in two at every place, and byte by byte.
    fn check_max(max: usize, input: &str, expected: &str) {
        let input = input.as_bytes();
        assert_eq!(events(max, [input]), expected, "{input:?}");
        for at in 0..=input.len() {
            let (head, tail) = input.split_at(at);
            assert_eq!(events(max, [head, tail]), expected, "{input:?} cut at {at}");
        }
        assert_eq!(events(max, input.chunks(1)), expected, "{input:?} byte by byte");
    }

    #[test]
    fn decodes_at_every_split() {
        check("", "");
        check("data: a\n\ndata:b\n\n", "=\"a\"\n=\"b\"\n");
        check("data: {\"a\":1}\r\n\r\ndata: b\r\n\r\n", "=\"{\\\"a\\\":1}\"\n=\"b\"\n");
        check("data: a\r\rdata: b\r\r", "=\"a\"\n=\"b\"\n");
        check("data: a\n\r\ndata: b\r\n\n", "=\"a\"\n=\"b\"\n");
        check("\u{feff}data: a\n\n\u{feff}data: b\n\n", "=\"a\"\n");
        check(": hello\n\nevent: x\n: ping\ndata: a\nid: 7\nretry: 1\n\ndata: b\n\n", "x=\"a\"\n=\"b\"\n");
        check("data: a\ndata:\ndata\ndata:  b:c\n\n", "=\"a\\n\\n\\n b:c\"\n");
        check("data\n\ndata:\n\n", "=\"\"\n=\"\"\n");
        check("event: lost\n\ndata: a\n\n", "=\"a\"\n");
        check("event: é\ndata: →\n\n", "é=\"→\"\n");
        check("Data: a\n data: b\ndatax: c\n\n", "");
    }

    #[test]
    fn drops_what_no_blank_line_ends() {
        check("data: a\n\ndata: b\n", "=\"a\"\n…\n");
        check("data: a\n\ndata: b", "=\"a\"\n…\n");
        check("data: a\n\n\n", "=\"a\"\n");
    }

    #[test]
    fn refuses_large_events_only() {
        check_max(10, "data: 4567\n\ndata: 4567\n\n", "!\n");
        check_max(11, "data: 4567\n\ndata: 4567\n\n", "=\"4567\"\n=\"4567\"\n");
        check_max(11, "data: 4567\ndata:\n\n", "!\n");
        check_max(11, "data:\ndata:\n\n", "!\n");
        check_max(11, ": 345678\n: 345678\n: 345678\ndata: 4567\n\n", "=\"4567\"\n");
        check_max(11, ": 34567890\ndata: 4567\n\n", "=\"4567\"\n");
        check_max(11, ": 345678901\ndata: 4567\n\n", "!\n");
        check_max(11, "a line without an end and without a colon", "!\n");
    }

    #[test]
    fn lines_that_are_no_fields_are_kept() {
        let mut decoder = Decoder::default();
        decoder.push(Bytes::from_static(b": x\nid: 1\nretry\ndata: a\n\n{\n \"data\": 1,\n\n \"b: c\"}\nevent: e\n\n"));
        while decoder.next().unwrap().is_some() {}
        assert_eq!(decoder.take_plain(), b"{\n \"data\": 1,\n \"b: c\"}\n");
        assert!(decoder.take_plain().is_empty());
    }

    #[test]
    fn one_line_of_data_is_not_copied() {
        let chunk = Bytes::from("data: abc\n\n".to_owned());
        let at = chunk.as_ptr() as usize;
        let mut decoder = Decoder::default();
        decoder.push(chunk);
        let event = decoder.next().unwrap().unwrap();
        assert_eq!(event.data.as_ptr() as usize, at + 6);
    }
}
