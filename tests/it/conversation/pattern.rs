//! Expected lines: a head, and a JSON pattern that the body has to match.

use serde_json::Value;

use super::file::parse_json;

/// Matches any one value.
const ANY: &str = "$ANY";
/// In a string: any text.
const SOME: &str = "$*";
/// As a key: other keys may be there. The mark of a draft: rewriting spells it out.
const MORE: &str = "$MORE";

/// A message as it stands in a file: `session/update {…}`, `request NAME {…}`, `result #2 {…}`.
pub struct Line {
    pub head: String,
    pub body: Value,
}

pub struct Expected {
    /// As it stands in the file, without a mark and its line's end.
    pub text: String,
    pub mark: Mark,
    line: Line,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `<`: the next message.
    Next,
    /// `<~`: one of the messages that the adjacent loose lines name, in any order.
    AnyOrder,
    /// `<*`: any number of such messages.
    Many,
}

impl Mark {
    pub fn text(self) -> &'static str {
        match self {
            Self::Next => "<",
            Self::AnyOrder => "<~",
            Self::Many => "<*",
        }
    }
}

impl Expected {
    pub fn parse(line: &str) -> Result<Self, String> {
        let (mark, rest) = line.split_once(' ').unwrap_or((line, ""));
        let known = [Mark::Next, Mark::AnyOrder, Mark::Many].into_iter().find(|it| it.text() == mark);
        let mark = known.ok_or_else(|| format!("`{mark}` is no mark of an expected line"))?;
        let text = rest.trim().to_owned();
        let at = text.find(" {").or_else(|| text.find(" [")).or_else(|| text.find(" null"));
        let (head, body) = at.map_or((text.as_str(), ""), |at| text.split_at(at));
        let body = if body.is_empty() { Value::Null } else { parse_json(body)? };
        let line = Line { head: head.to_owned(), body };
        Ok(Self { text, mark, line })
    }

    pub fn is_draft(&self) -> bool {
        self.text.contains("\"$MORE\":1")
    }

    pub fn matches(&self, line: &Line) -> bool {
        self.line.head == line.head && matches(&self.line.body, &line.body)
    }
}

impl Line {
    pub fn text(&self) -> String {
        format!("{} {}", self.head, self.body)
    }
}

fn matches(pattern: &Value, value: &Value) -> bool {
    match (pattern, value) {
        (Value::String(it), _) if it == ANY => true,
        (Value::String(it), Value::String(value)) => matches_text(it, value),
        (Value::Array(items), Value::Array(values)) => {
            items.len() == values.len() && items.iter().zip(values).all(|(it, value)| matches(it, value))
        }
        (Value::Object(fields), Value::Object(values)) => {
            let named = fields.iter().filter(|(name, _)| *name != MORE);
            let all = named.clone().all(|(name, it)| values.get(name).is_some_and(|value| matches(it, value)));
            all && (fields.contains_key(MORE) || named.count() == values.len())
        }
        _ => pattern == value,
    }
}

/// Whether `text` is `pattern`, in which `$*` stands for any text.
pub fn matches_text(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once(SOME) else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = rest.split(SOME).collect();
    let last = parts.pop().unwrap_or_default();
    for part in parts {
        let Some((_, after)) = left.split_once(part) else { return false };
        left = after;
    }
    left.ends_with(last)
}

#[test]
fn patterns() {
    let check = |pattern: &str, value: &str, expect| {
        let [pattern, value] = [pattern, value].map(|it| serde_json::from_str(it).unwrap());
        assert_eq!(matches(&pattern, &value), expect, "{pattern} ~ {value}");
    };
    check(r#"{"a":1}"#, r#"{"a":1}"#, true);
    check(r#"{"a":1}"#, r#"{"a":1,"b":2}"#, false);
    check(r#"{"a":1,"$MORE":1}"#, r#"{"a":1,"b":2}"#, true);
    check(r#"{"a":"$ANY"}"#, r#"{"a":[1]}"#, true);
    check(r#"["x$*y$*z"]"#, r#"["x1y2z"]"#, true);
    check(r#"["x$*y$*z"]"#, r#"["x1y2"]"#, false);
    check(r#""$*""#, r#""""#, true);
    let line = Expected::parse(r#"<~ result #2 {"a":1}"#).unwrap();
    assert_eq!((line.mark, line.line.head.as_str()), (Mark::AnyOrder, "result #2"));
}
