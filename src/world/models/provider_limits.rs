//! Provider limits on tool names, call ids, schemas and signatures: makes requests legal.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::{base::tool::ToolSpec, world::disk};

/// Longest name of a tool, in bytes: OpenAI's limit; others allow more.
const MAX_NAME: usize = 64;
/// Longest id of a call, in bytes.
const MAX_ID: usize = 40;
/// Hexadecimal digits that keep two names apart which become alike.
const N_DIGITS: usize = 8;

/// The name as every provider takes it: letters, digits, `_` and `-`. One name always becomes the same other one.
pub fn tool_name(name: &str) -> Cow<'_, str> {
    fit_name(name, MAX_NAME)
}

/// The id of a call or its result, likewise.
pub fn call_id(id: &str) -> Cow<'_, str> {
    fit_name(id, MAX_ID)
}

fn fit_name(text: &str, max: usize) -> Cow<'_, str> {
    let is_legal = |it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-';
    if !text.is_empty() && text.len() <= max && text.chars().all(is_legal) {
        return text.into();
    }
    let digits = disk::hash(text.as_bytes());
    let kept = text.chars().take(max - N_DIGITS - 1).map(|it| if is_legal(it) { it } else { '_' });
    format!("{}_{}", kept.collect::<String>(), digits.get(..N_DIGITS).unwrap_or_default()).into()
}

/// Names that had to change, to be found again when the model uses them.
#[derive(Debug, Default)]
pub struct LegalNames(Vec<(String, String)>);

impl LegalNames {
    pub fn from_tools(tools: &[ToolSpec]) -> Self {
        let changed = tools.iter().filter_map(|it| match tool_name(&it.name) {
            Cow::Owned(legal) => Some((legal, it.name.to_string())),
            Cow::Borrowed(_) => None,
        });
        Self(changed.collect())
    }

    /// The tool's own name.
    pub fn restore(&self, name: String) -> String {
        let known = self.0.iter().find(|(legal, _)| *legal == name);
        known.map_or(name, |(_, own)| own.clone())
    }
}

/// The schema of a tool's arguments: an object, with nothing at its top that providers refuse there.
pub fn schema(schema: &Value) -> Cow<'_, Value> {
    const REFUSED_KEYWORDS: &[&str] = &["anyOf", "oneOf", "allOf", "not", "enum", "$schema"];
    let Some(map) = schema.as_object() else {
        return Cow::Owned(json!({ "type": "object", "properties": {} }));
    };
    let fits = map.get("type").and_then(Value::as_str) == Some("object")
        && map.get("properties").is_some_and(Value::is_object)
        && !REFUSED_KEYWORDS.iter().any(|it| map.contains_key(*it));
    if fits {
        return Cow::Borrowed(schema);
    }
    let mut res: Map<String, Value> = map.clone();
    res.retain(|key, _| !REFUSED_KEYWORDS.contains(&key.as_str()));
    res.insert("type".to_owned(), "object".into());
    if !res.get("properties").is_some_and(Value::is_object) {
        res.insert("properties".to_owned(), json!({}));
    }
    Cow::Owned(Value::Object(res))
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
    if text.trim().is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// Marks a signature as one provider's: another one would refuse it.
pub fn sign(provider: &str, signature: &str) -> String {
    format!("{provider}:{signature}")
}

/// The signature within the mark of `provider`; `None` for one of another provider.
pub fn unsign<'a>(provider: &str, signature: &'a str) -> Option<&'a str> {
    signature.strip_prefix(provider)?.strip_prefix(':')
}

/// Whether a signature bears the mark of `provider`, or, for `None`, no mark: Gemini's are base64, without a colon.
pub fn is_signed_by(signature: &str, provider: Option<&str>) -> bool {
    match provider {
        Some(it) => unsign(it, signature).is_some(),
        None => !signature.contains(':'),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{LegalNames, call_id, is_signed_by, parse_arguments, schema, sign, tool_name, unsign};
    use crate::base::tool::{ToolKind, ToolSpec};

    #[test]
    fn names_are_legal_and_found_again() {
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
        assert_eq!(call_id(&long).len(), 40);
        let spec = |name: &str| ToolSpec {
            name: name.to_owned().into(),
            title: "".into(),
            description: "".into(),
            kind: ToolKind::Other,
            traits: Default::default(),
            parameters: json!({}).into(),
        };
        let names = LegalNames::from_tools(&[spec("a.b"), spec(&long), spec("plain")]);
        for it in ["a.b", &long, "plain"] {
            assert_eq!(names.restore(tool_name(it).into_owned()), it);
        }
        assert_eq!(names.restore("unknown".to_owned()), "unknown");
    }

    #[test]
    fn schemas() {
        let good = json!({ "type": "object", "properties": { "a": { "anyOf": [] } } });
        assert_eq!(*schema(&good), good);
        let bare = json!({ "type": "object", "properties": {} });
        for odd in [
            json!(true),
            json!({}),
            json!({ "type": "object", "anyOf": [] }),
            json!({ "type": ["object", "null"], "properties": null, "$schema": "x" }),
        ] {
            assert_eq!(*schema(&odd), bare, "{odd}");
        }
    }

    #[test]
    fn arguments_that_are_no_json_stay_text() {
        assert_eq!(parse_arguments(" "), json!({}));
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
