//! Events that differ from the last one by their text only, as most of a fast stream do: they are not parsed.

use castor_base::model::Chunk;

/// How a text becomes a chunk; `None`: it says nothing.
pub type TextChunk = fn(String) -> Option<Chunk>;

/// Larger events are not kept, in bytes around their text.
const MAX_AROUND: usize = 4 << 10;

/// What stands around the text of an event in which nothing else counts.
#[derive(Debug)]
pub struct TextEvent {
    before: Vec<u8>,
    after: Vec<u8>,
    chunk: TextChunk,
}

impl TextEvent {
    /// Of the event `data` with this text, if the text lies there as it is, without escapes.
    pub fn new(data: &[u8], text: &str, chunk: TextChunk) -> Option<Self> {
        let at = (text.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let (before, after) = (data.get(..at)?, data.get(at.checked_add(text.len())?..)?);
        let is_whole = before.ends_with(b"\"") && after.starts_with(b"\"");
        let is_small = before.len() + after.len() <= MAX_AROUND;
        (is_whole && is_small).then(|| Self { before: before.to_owned(), after: after.to_owned(), chunk })
    }

    /// The chunk of an event that is the same but for its text; `None`: it is another one, or its text has escapes.
    pub fn again(&self, data: &[u8]) -> Option<Chunk> {
        let text = data.strip_prefix(&*self.before)?.strip_suffix(&*self.after)?;
        let is_plain = text.iter().all(|it| *it >= b' ' && !matches!(it, b'"' | b'\\'));
        let text = std::str::from_utf8(text).ok().filter(|_| is_plain)?;
        (self.chunk)(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::TextEvent;
    use crate::providers::chunks;

    #[test]
    fn only_the_text_may_differ() {
        let data = r#"{"a":"one","b":1}"#;
        let kept = |text| TextEvent::new(data.as_bytes(), text, chunks::text);
        assert!(kept("one").is_none(), "another text, as one with escapes is");
        let last = kept(data.get(6..9).unwrap()).unwrap();
        let again = |data: &[u8]| last.again(data);
        for text in ["x", " …, }", "one"] {
            assert_eq!(again(data.replace("one", text).as_bytes()), chunks::text(text.to_owned()), "{text}");
        }
        for text in ["", "\\n", "x\",\"c\":\"", "\t", "\\"] {
            assert_eq!(again(data.replace("one", text).as_bytes()), None, "{text}");
        }
        for data in [r#"{"a":"one","b":2}"#, r#"{"b":"one","b":1}"#, r#"{"a":"#, r#"","b":1}"#, ""] {
            assert_eq!(again(data.as_bytes()), None, "{data}");
        }
        assert_eq!(again(b"{\"a\":\"\xff\",\"b\":1}"), None);
        let large = format!(r#"{{"a":"one","b":"{}"}}"#, "x".repeat(5_000));
        assert!(TextEvent::new(large.as_bytes(), large.get(6..9).unwrap(), chunks::text).is_none());
    }
}
