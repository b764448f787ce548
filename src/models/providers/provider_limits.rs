//! Provider limits on tool names, call ids, arguments and signatures: makes requests legal.

use std::borrow::Cow;

use serde_json::{Map, Value};

use castor_hands::disk;

/// Longest name of a tool, in bytes: OpenAI's limit; others allow more.
const MAX_NAME: usize = 64;
/// Hexadecimal digits that keep two names apart which become alike.
const N_DIGITS: usize = 8;

/// The name as every provider takes it: letters, digits, `_` and `-`. One name always becomes the same other one.
pub fn tool_name(name: &str) -> Cow<'_, str> {
    fit_name(name, MAX_NAME, "_-")
}

/// The text with letters, digits and some signs only. One text always becomes the same other one.
pub fn fit_name<'a>(text: &'a str, max: usize, signs: &str) -> Cow<'a, str> {
    let is_legal = |it: char| it.is_ascii_alphanumeric() || signs.contains(it);
    if !text.is_empty() && text.len() <= max && text.chars().all(is_legal) {
        return text.into();
    }
    let digits = disk::hash(text.as_bytes());
    let kept = text.chars().take(max - N_DIGITS - 1).map(|it| if is_legal(it) { it } else { '_' });
    format!("{}_{}", kept.collect::<String>(), digits.get(..N_DIGITS).unwrap_or_default()).into()
}

/// Arguments as an object. Providers refuse anything else; the result that follows tells the model of its mistake.
pub fn arguments(args: &Value) -> Cow<'_, Value> {
    match args.is_object() {
        true => Cow::Borrowed(args),
        false => Cow::Owned(Value::Object(Map::new())),
    }
}

/// Arguments that came as text; what cannot be read stays text, and is reported back to the model.
pub fn parse_arguments(text: &str) -> Value {
    whole_arguments(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// As [`parse_arguments`]; `None`: they cannot be read, as those that were cut off.
pub fn whole_arguments(text: &str) -> Option<Value> {
    let text = text.trim();
    // Some servers begin with what they would send if nothing came.
    let rest = text.strip_prefix("{}").map(str::trim_start).filter(|it| it.starts_with('{')).unwrap_or(text);
    match serde_json::from_str(rest) {
        _ if text.is_empty() => Some(Value::Object(Map::new())),
        Ok(Value::Null) => Some(Value::Object(Map::new())),
        // JSON in a text in JSON.
        Ok(Value::String(it)) => serde_json::from_str(&it).ok().filter(Value::is_object).or(Some(Value::String(it))),
        read => read.ok(),
    }
}

/// Marks a signature as one provider's: another one would refuse it.
pub fn sign(provider: &str, signature: &str) -> String {
    format!("{provider}:{signature}")
}

/// The signature within the mark of `provider`; `None` for one of another provider.
pub fn unsign<'a>(provider: &str, signature: &'a str) -> Option<&'a str> {
    signature.strip_prefix(provider)?.strip_prefix(':')
}

/// Tells whether a signature bears the mark of `provider`, or, for `None`, no mark: Gemini's are base64, without a
/// colon.
pub fn is_signed_by(signature: &str, provider: Option<&str>) -> bool {
    match provider {
        Some(it) => unsign(it, signature).is_some(),
        None => !signature.contains(':'),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{is_signed_by, parse_arguments, sign, tool_name, unsign};

    #[test]
    fn names_are_legal() {
        for (given, legal) in
            [("read_file", "read_file"), ("mcp_a.b", "mcp_a_b_f5cb1ea3"), ("ü", "__"), ("", "_e3b0c442")]
        {
            let got = tool_name(given);
            assert!(got.starts_with(legal.get(..legal.len().min(7)).unwrap()), "{given}: {got}");
            assert!(got.len() <= 64 && !got.is_empty());
        }
        assert_ne!(tool_name("a.b"), tool_name("a:b"));
        let long = "x".repeat(100);
        assert_eq!(tool_name(&long).len(), 64);
    }

    #[test]
    fn arguments_that_are_no_json_stay_text() {
        for none in [" ", "null", " null\n", "{}", "\"{}\""] {
            assert_eq!(parse_arguments(none), json!({}), "{none}");
        }
        for twice in [r#"{"a":1}"#, r#"{}{"a":1}"#, r#""{\"a\":1}""#, "{} \n{\"a\": 1 }"] {
            assert_eq!(parse_arguments(twice), json!({ "a": 1 }), "{twice}");
        }
        assert_eq!(parse_arguments("\"words\""), json!("words"));
        assert_eq!(parse_arguments(r#"{"a":1}"#), json!({ "a": 1 }));
        assert_eq!(parse_arguments(r#"{"a":"#), json!(r#"{"a":"#));
    }

    #[test]
    fn signatures_go_home_only() {
        let signed = sign("anthropic", "abc:d");
        assert_eq!(unsign("anthropic", &signed), Some("abc:d"));
        assert_eq!(unsign("openai", &signed), None);
        assert!(!is_signed_by(&signed, None));
        assert!(is_signed_by("Q2FuYXJ5", None));
    }
}
