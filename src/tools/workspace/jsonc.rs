//! JSON parser that accepts comments and trailing commas.

use std::fmt;

use serde::{
    Deserialize,
    de::{DeserializeOwned, Deserializer, MapAccess, Visitor},
};
use serde_json::Value;

/// A JSON syntax error. Line and column count from 1; the column counts bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JsonError {
    pub line: usize,
    pub column: usize,
    pub message: String,
}

/// A file of nothing but space and comments is an empty object, as a user means who commented everything out.
pub fn parse(text: &[u8]) -> Result<Value, JsonError> {
    parse_as(text)
}

/// The members of an object as they are written: of a name that stands there twice a map would keep the last only.
#[derive(Debug, PartialEq)]
pub struct Members(pub Vec<(String, Value)>);

/// As [`parse`], of a text that has to hold an object.
pub fn parse_members(text: &[u8]) -> Result<Members, JsonError> {
    parse_as(text)
}

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AllMembers;
        impl<'de> Visitor<'de> for AllMembers {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut res = Vec::new();
                while let Some(it) = map.next_entry()? {
                    res.push(it);
                }
                Ok(Members(res))
            }
        }
        from.deserialize_map(AllMembers)
    }
}

fn parse_as<T: DeserializeOwned>(text: &[u8]) -> Result<T, JsonError> {
    let plain = to_plain_json(text)?;
    let empty = plain.iter().all(u8::is_ascii_whitespace);
    serde_json::from_slice(if empty { b"{}" } else { &plain }).map_err(|it| {
        // serde ends its message with the position, which callers print in front.
        let whole = it.to_string();
        let message = whole.split(" at line ").next().unwrap_or_default().to_owned();
        JsonError { line: it.line(), column: it.column().max(1), message }
    })
}

/// Where the member stands that a dotted path names, or the innermost one of those that lead there: line and column, from
/// 1. Of a name that stands there twice it is the last, which counts.
pub fn position(text: &[u8], path: &str) -> Option<(usize, usize)> {
    let plain = to_plain_json(text).ok()?;
    let (mut found, mut depth) = (None, 0);
    // The name at hand in each object around; `None`: a list, or an object before its first name.
    let mut around: Vec<Option<String>> = Vec::new();
    let (mut at, mut is_name) = (0, false);
    while let Some(&byte) = plain.get(at) {
        match byte {
            b'"' => {
                let end = text_end(&plain, at)?;
                if let (true, Some(name)) = (is_name, around.last_mut()) {
                    *name = serde_json::from_slice(plain.get(at..end)?).ok();
                    let here: Option<Vec<&str>> = around.iter().map(Option::as_deref).collect();
                    let here = here.map(|it| it.join(".")).filter(|it| leads_to(it, path) && it.len() >= depth);
                    if let Some(here) = here {
                        (found, depth) = (Some(at), here.len());
                    }
                }
                (at, is_name) = (end, false);
                continue;
            }
            b'{' | b'[' => {
                around.push(None);
                is_name = byte == b'{';
            }
            b'}' | b']' => _ = around.pop(),
            b',' => is_name = around.last().is_some_and(Option::is_some),
            _ => (),
        }
        at += 1;
    }
    found.map(|it| line_and_column(text, it))
}

/// Tells whether a path is the other, or of an object that holds it.
fn leads_to(here: &str, path: &str) -> bool {
    path.strip_prefix(here).is_some_and(|it| it.is_empty() || it.starts_with('.'))
}

/// Behind the text that begins there.
fn text_end(plain: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match plain.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

fn line_and_column(text: &[u8], at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or_default();
    let line = before.iter().filter(|it| **it == b'\n').count() + 1;
    (line, before.iter().rev().take_while(|it| **it != b'\n').count() + 1)
}

#[derive(Clone, Copy, PartialEq)]
enum JsoncContext {
    Json,
    Text,
    Escape,
    LineComment,
    /// Holds where it began: that is where an unclosed one is reported.
    BlockComment(usize),
}

/// Blanks comments and trailing commas in place, so that every position stays what the user sees.
fn to_plain_json(text: &[u8]) -> Result<Vec<u8>, JsonError> {
    let mut out = Vec::with_capacity(text.len());
    let mut within = JsoncContext::Json;
    let mut commas = Commas::default();
    let bom: &[u8] = b"\xEF\xBB\xBF";
    let start = if text.starts_with(bom) { bom.len() } else { 0 };
    out.resize(start, b' ');
    while let Some(&byte) = text.get(out.len()) {
        let at = out.len();
        let next = text.get(at + 1).copied();
        match (within, byte, next) {
            (JsoncContext::Json, b'/', Some(it @ (b'/' | b'*'))) => {
                within = if it == b'/' { JsoncContext::LineComment } else { JsoncContext::BlockComment(at) };
                // Both bytes at once, so that `/*/` does not close what it opens.
                out.extend_from_slice(b"  ");
                continue;
            }
            (JsoncContext::Json, ..) => {
                if byte == b'"' {
                    within = JsoncContext::Text;
                }
                if let Some(stray) = commas.see(at, byte).and_then(|it| out.get_mut(it)) {
                    *stray = b' ';
                }
                out.push(byte);
            }
            (JsoncContext::Text | JsoncContext::Escape, ..) => {
                within = match (within, byte) {
                    (JsoncContext::Text, b'\\') => JsoncContext::Escape,
                    (JsoncContext::Text, b'"') => JsoncContext::Json,
                    _ => JsoncContext::Text,
                };
                out.push(byte);
            }
            (JsoncContext::BlockComment(_), b'*', Some(b'/')) => {
                within = JsoncContext::Json;
                out.extend_from_slice(b"  ");
            }
            (JsoncContext::LineComment, b'\n', _) => {
                within = JsoncContext::Json;
                out.push(byte);
            }
            (JsoncContext::LineComment | JsoncContext::BlockComment(_), ..) => {
                out.push(if matches!(byte, b'\n' | b'\r') { byte } else { b' ' });
            }
        }
    }
    match within {
        JsoncContext::BlockComment(start) => Err(unclosed(text, start)),
        _ => Ok(out),
    }
}

/// Tells a trailing comma from one that separates or has nothing before it (`[,]` stays an error).
#[derive(Default)]
struct Commas {
    last: u8,
    pending: Option<usize>,
}

impl Commas {
    /// Takes the next byte outside strings and comments; returns the position of a comma that `byte` made trailing.
    fn see(&mut self, at: usize, byte: u8) -> Option<usize> {
        if byte.is_ascii_whitespace() {
            return None;
        }
        let before = std::mem::replace(&mut self.last, byte);
        let pending = self.pending.take();
        match byte {
            b',' if !matches!(before, 0 | b'[' | b'{' | b',' | b':') => self.pending = Some(at),
            b']' | b'}' => return pending,
            _ => (),
        }
        None
    }
}

fn unclosed(text: &[u8], start: usize) -> JsonError {
    let (line, column) = line_and_column(text, start);
    JsonError { line, column, message: "this comment is never closed".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{parse, parse_members, position};

    #[test]
    fn accepts_comments_and_trailing_commas() {
        for (text, want) in [
            ("", "{}"),
            (" // nothing\n/* here */ ", "{}"),
            ("\u{feff}{\"a\": 1}", r#"{"a":1}"#),
            ("{ // c\n \"a\": /* x */ 1, }", r#"{"a":1}"#),
            (r#"{"a": "// no /* comment */ ,]", "b": "\"//"}"#, r#"{"a":"// no /* comment */ ,]","b":"\"//"}"#),
            (r#"{"a": "\\", /*,*/ "b": [1, 2 , /* , */ ], }"#, r#"{"a":"\\","b":[1,2]}"#),
            ("[1, // ,\n]", "[1]"),
            ("[/*/ 1, */ 2]", "[2]"),
            ("[1]//", "[1]"),
            ("[\"ä\", /* ö */ \"ü\",]", r#"["ä","ü"]"#),
        ] {
            assert_eq!(parse(text.as_bytes()).map(|it| it.to_string()), Ok(want.to_owned()), "{text}");
        }
    }

    #[test]
    fn members_are_all_there_also_those_of_one_name() {
        let text = "{\"a\": 1, // x\n \"b\": {}, \"a\": [2],}";
        let found = parse_members(text.as_bytes()).unwrap().0;
        let found: Vec<_> = found.iter().map(|(name, it)| format!("{name}={it}")).collect();
        assert_eq!(found, ["a=1", "b={}", "a=[2]"]);
        assert_eq!(parse_members(b" // nothing\n").unwrap().0, []);
        let error = parse_members(b"\n [1]").unwrap_err();
        assert!(error.line == 2 && error.message.contains("an object"), "{error:?}");
    }

    #[test]
    fn a_member_is_found_by_its_path() {
        let text = b"{ // \"a\": 1\n \"a\": {\"b\": [{\"c\": 1}],\n  \"b\\u0063\": \"a\"},\n \"d.e\": {\"f\": 1, \"f\": 2}, \"x\": \"{\\\"\"\n}";
        for (path, want) in [
            ("a", Some((2, 2))),
            ("a.b", Some((2, 8))),
            ("a.b.c", Some((2, 8))),
            ("a.bc", Some((3, 3))),
            ("a.zz", Some((2, 2))),
            ("d.e.f", Some((4, 18))),
            ("x", Some((4, 27))),
            ("b", None),
            ("", None),
        ] {
            assert_eq!(position(text, path), want, "{path}");
        }
        assert_eq!(position(b"{\"a", "a"), None);
    }

    #[test]
    fn errors_stand_where_the_user_sees_them() {
        for (text, line, column) in [
            ("{\n  // é\n  \"a\": x\n}", 3, 8),
            ("/* a\n b */ {\"a\" 1}", 2, 12),
            ("{}\n  /* never", 2, 3),
            ("[,]", 1, 2),
            ("[1,,]", 1, 4),
            ("{\"a\":,}", 1, 6),
            ("{\"a\": 1", 1, 7),
            ("{} x", 1, 4),
            ("/ 1", 1, 1),
        ] {
            let error = parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{text}: {error:?}");
            assert!(!error.message.contains("line"), "{error:?}");
        }
        assert!(parse(b"{\"a\": \"\xff\"}").is_err());
        assert!(parse("[".repeat(10_000).as_bytes()).is_err());
    }
}
