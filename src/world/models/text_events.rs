//! Events that are as the last one but for their text: most of a fast stream is, and is read without parsing.

use crate::base::model::Chunk;

/// How a text becomes a chunk; `None`: it says nothing.
pub type TextChunk = fn(String) -> Option<Chunk>;

/// An event of which nothing counts but one text: what stands around it.
#[derive(Debug)]
pub struct TextEvent {
    before: Vec<u8>,
    after: Vec<u8>,
    chunk: TextChunk,
}

impl TextEvent {
    /// `text` as a chunk of the event `data`. Where it lies there as it is, without escapes, the event is kept in `last`.
    pub fn read(last: &mut Option<Self>, data: &[u8], text: &str, chunk: TextChunk) -> Option<Chunk> {
        let at = (text.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let around = (data.get(..at), data.get(at.saturating_add(text.len())..));
        if let (Some(before @ [.., b'"']), Some(after @ [b'"', ..])) = around {
            *last = Some(Self { before: before.to_owned(), after: after.to_owned(), chunk });
        }
        chunk(text.to_owned())
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
    use crate::world::models::chunks;

    #[test]
    fn only_the_text_may_differ() {
        let (data, mut last) = (r#"{"a":"one","b":1}"#, None);
        let one = data.get(6..9).unwrap();
        TextEvent::read(&mut last, data.as_bytes(), "one", chunks::text);
        assert!(last.is_none(), "another text, as one with escapes is");
        assert_eq!(TextEvent::read(&mut last, data.as_bytes(), one, chunks::text), chunks::text("one".to_owned()));
        let again = |data: &[u8]| last.as_ref().unwrap().again(data);
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
    }
}
