//! Expected lines: a head, and a JSON pattern that the body has to match.

use serde_json::Value;

use super::{file::parse_json, lists};

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

    /// A lone mark, which waits for its line.
    pub fn is_blank(&self) -> bool {
        self.text.is_empty()
    }

    pub fn matches(&self, line: &Line) -> bool {
        self.line.head == line.head && matches(&self.line.body, &line.body)
    }

    /// Whether the line tells of the same thing, whatever it says of it.
    pub fn is_of_kind(&self, line: &Line) -> bool {
        self.line.head == line.head && self.line.body["sessionUpdate"] == line.body["sessionUpdate"]
    }

    /// The first place where the line is another one.
    pub fn first_difference(&self, line: &Line) -> String {
        if self.line.head != line.head {
            return format!("expected: {}\nbut came: {}", self.text, line.text());
        }
        match difference(Some(&self.line.body), Some(&line.body), "") {
            Some(it) => {
                format!("{} differs at {}\nexpected: {}\nbut came: {}", line.head, it.place, it.expected, it.came)
            }
            None => String::new(),
        }
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
        (Value::String(it), Value::String(value)) => matches_text(&lists::fill_in_text(it), value),
        (Value::Array(items), Value::Array(values)) => {
            let whole = lists::fill_in(items, values);
            let items = whole.as_ref().unwrap_or(items);
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

/// A place where a message is another one than its pattern.
struct Difference {
    /// As a JSON pointer.
    place: String,
    expected: String,
    came: String,
}

/// The first place that differs; `None` stands for a value that is not there.
fn difference(pattern: Option<&Value>, value: Option<&Value>, place: &str) -> Option<Difference> {
    match (pattern, value) {
        (Some(pattern), Some(value)) if matches(pattern, value) => None,
        (Some(Value::Array(items)), Some(Value::Array(values))) => {
            let whole = lists::fill_in(items, values);
            let items = whole.as_ref().unwrap_or(items);
            let mut places = 0..items.len().max(values.len());
            places.find_map(|at| difference(items.get(at), values.get(at), &format!("{place}/{at}")))
        }
        (Some(Value::Object(fields)), Some(Value::Object(values))) => {
            let is_closed = !fields.contains_key(MORE);
            let more = values.keys().filter(|it| is_closed && !fields.contains_key(*it));
            let mut names = fields.keys().filter(|it| *it != MORE).chain(more);
            names.find_map(|name| difference(fields.get(name), values.get(name), &format!("{place}/{name}")))
        }
        (Some(Value::String(pattern)), Some(Value::String(text))) => {
            let (expected, came) = from_first_difference(&lists::fill_in_text(pattern), text);
            Some(Difference { place: place.to_owned(), expected, came })
        }
        _ => {
            let shown = |it: Option<&Value>| it.map_or_else(|| "nothing".to_owned(), Value::to_string);
            Some(Difference { place: place.to_owned(), expected: shown(pattern), came: shown(value) })
        }
    }
}

/// Two texts from shortly before the place where they part.
fn from_first_difference(wanted: &str, came: &str) -> (String, String) {
    const BEFORE: usize = 40;
    let n_same = wanted.chars().zip(came.chars()).take_while(|(a, b)| a == b).count();
    let n_left_out = n_same.saturating_sub(BEFORE);
    let shown = |text: &str| {
        let rest: String = text.chars().skip(n_left_out).collect();
        format!("{}{rest:?}", if n_left_out > 0 { "…" } else { "" })
    };
    (shown(wanted), shown(came))
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
    check(r#"["$OPTIONS"]"#, "[]", false);
    let line = Expected::parse(r#"<~ result #2 {"a":1}"#).unwrap();
    assert_eq!((line.mark, line.line.head.as_str()), (Mark::AnyOrder, "result #2"));
}

#[test]
fn first_differences_are_named() {
    let check = |pattern: &str, value: &str, expect: [&str; 3]| {
        let [pattern, value] = [pattern, value].map(|it| serde_json::from_str(it).unwrap());
        let found = difference(Some(&pattern), Some(&value), "").unwrap();
        assert_eq!([found.place, found.expected, found.came], expect, "{pattern} ~ {value}");
    };
    check(r#"{"a":1,"b":2}"#, r#"{"b":3,"a":1}"#, ["/b", "2", "3"]);
    check(r#"{"a":1}"#, r#"{"a":1,"c":[]}"#, ["/c", "nothing", "[]"]);
    check(r#"{"a":1,"$MORE":1,"d":null}"#, r#"{"a":1,"c":[]}"#, ["/d", "null", "nothing"]);
    check(r#"[1,[2,3]]"#, r#"[1,[2]]"#, ["/1/1", "3", "nothing"]);
    check(r#""abc""#, r#""abd""#, ["", "\"abc\"", "\"abd\""]);
    let long = "x".repeat(50);
    let (expected, came) = from_first_difference(&format!("{long}y"), &long);
    assert!(expected.starts_with("…\"xxx") && expected.ends_with("xy\"") && came.len() == expected.len() - 1);
}
