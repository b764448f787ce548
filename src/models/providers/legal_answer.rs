//! Schemas of answers as providers take them: which can be enforced, and what is closed for that.

use serde_json::{Map, Value};

use super::legal_schema::{GEMINI, OPENAI, has_type, legalize_part};

/// Keywords of a schema that OpenAI holds an answer to word by word.
const STRICT: &[&str] = &[
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "anyOf",
    "enum",
    "const",
    "description",
    "title",
    "$ref",
    "$defs",
    "definitions",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
];
/// Keywords that Anthropic takes.
const CLOSED: &[&str] =
    &["type", "properties", "required", "items", "anyOf", "enum", "const", "description", "title", "default", "format"];
/// Formats that Anthropic takes.
const FORMATS: &[&str] = &["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];
/// Deeper schemas are not looked through.
const MAX_DEPTH: usize = 32;

/// An answer's schema for OpenAI's dialects, and whether the provider enforces it. `None`: it takes no such schema.
/// `is_own`: OpenAI itself, which takes objects only.
pub fn of_openai(schema: &Value, is_own: bool) -> Option<(Value, bool)> {
    let is_object = |it: &Value| it.get("type").is_some_and(|it| it == "object");
    if is_object(schema) && is_strict(schema, 0) {
        return Some((schema.clone(), true));
    }
    let legal = legalize_part(schema, &OPENAI);
    (!is_own || is_object(&legal)).then_some((legal, false))
}

/// An answer's schema for Gemini.
pub fn of_gemini(schema: &Value) -> Value {
    legalize_part(schema, &GEMINI)
}

/// An answer's schema for Anthropic, whose objects have no members but those that are described. `None`: objects of this
/// schema may have others.
pub fn of_anthropic(schema: &Value) -> Option<Value> {
    close(&legalize_part(schema, &OPENAI), 0).map(Value::Object)
}

/// Tells whether OpenAI can enforce a schema: every object is closed, and requires all of its properties.
fn is_strict(schema: &Value, depth: usize) -> bool {
    let Some(schema) = schema.as_object().filter(|_| depth <= MAX_DEPTH) else { return false };
    let says = ["type", "anyOf", "$ref", "enum", "const"].iter().any(|it| schema.contains_key(*it));
    let is_object = has_type(schema, "object") || schema.contains_key("properties");
    says && schema.keys().all(|it| STRICT.contains(&it.as_str()))
        && (!is_object || is_closed(schema))
        && parts(schema).all(|it| is_strict(it, depth + 1))
}

fn is_closed(schema: &Map<String, Value>) -> bool {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return false };
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |key: &String| required.is_some_and(|it| it.iter().any(|it| it.as_str() == Some(key)));
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && properties.keys().all(is_required)
}

/// The schemas within a strict one.
fn parts(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = ["properties", "$defs", "definitions"].iter().filter_map(|it| schema.get(*it)?.as_object());
    let items = schema.get("items");
    named
        .flat_map(|it| it.values())
        .chain(items)
        .chain(schema.get("anyOf").and_then(Value::as_array).into_iter().flatten())
}

/// The schema without what Anthropic does not take. What it loses is checked when the answer is there.
fn close(schema: &Value, depth: usize) -> Option<Map<String, Value>> {
    let schema = schema.as_object().filter(|_| depth <= MAX_DEPTH)?;
    let mut res = Map::new();
    for (name, it) in schema.iter().filter(|(name, _)| CLOSED.contains(&name.as_str())) {
        let kept = match (name.as_str(), it) {
            ("properties", Value::Object(all)) => {
                let closed = all.iter().map(|(key, it)| Some((key.clone(), Value::Object(close(it, depth + 1)?))));
                Value::Object(closed.collect::<Option<_>>()?)
            }
            ("items", it) => Value::Object(close(it, depth + 1)?),
            ("anyOf", Value::Array(all)) => {
                let closed = all.iter().map(|it| close(it, depth + 1).map(Value::Object));
                Value::Array(closed.collect::<Option<_>>()?)
            }
            ("format", Value::String(it)) if !FORMATS.contains(&&**it) => continue,
            _ => it.clone(),
        };
        res.insert(name.clone(), kept);
    }
    if has_type(&res, "object") {
        let is_open = schema.get("additionalProperties").is_some_and(|it| *it != false);
        if is_open || !res.contains_key("properties") {
            return None;
        }
        res.insert("additionalProperties".to_owned(), false.into());
    }
    // A value of any kind may be an object with any members.
    ["type", "anyOf", "enum", "const"].iter().any(|it| res.contains_key(*it)).then_some(res)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{of_anthropic, of_gemini, of_openai};

    fn closed() -> Value {
        json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "array", "items": {"$ref": "#/$defs/c"}}},
            "required": ["a", "b"], "additionalProperties": false, "$defs": {"c": {"enum": [1, 2]}}})
    }

    #[test]
    fn openai_enforces_what_qualifies() {
        assert_eq!(of_openai(&closed(), true), Some((closed(), true)));
        let open = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
        assert_eq!(of_openai(&open, true), Some((open.clone(), false)));
        for (at, value) in [
            ("/required", json!(["a"])),
            ("/additionalProperties", json!(true)),
            ("/properties/a", json!({})),
            ("/properties/a", json!({"type": "string", "minLength": 1})),
            ("/properties/a", json!({"type": "object"})),
            ("/$defs/c", json!({"allOf": [{"type": "string"}]})),
        ] {
            let mut schema = closed();
            *schema.pointer_mut(at).unwrap() = value;
            let (sent, is_strict) = of_openai(&schema, true).unwrap();
            assert!(!is_strict && sent["type"] == "object", "{at}: {sent}");
        }
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!((of_openai(&list, true), of_openai(&list, false)), (None, Some((list, false))));
        assert_eq!(of_openai(&json!(true), true), None);
    }

    #[test]
    fn anthropic_wants_closed_objects() {
        let given = json!({"type": "object", "properties": {
            "a": {"type": "string", "minLength": 1, "pattern": "x", "format": "color"},
            "b": {"type": "array", "minItems": 2, "items": {"type": "object", "properties": {"c": {"type": "integer", "minimum": 1}}}},
            "d": {"oneOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        }, "required": ["a"]});
        let expected = json!({"type": "object", "properties": {
            "a": {"type": "string"},
            "b": {"type": "array", "items": {"type": "object", "properties": {"c": {"type": "integer"}}, "additionalProperties": false}},
            "d": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        }, "required": ["a"], "additionalProperties": false});
        assert_eq!(of_anthropic(&given), Some(expected));
        for open in [
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            json!({"type": "object"}),
            json!({"type": "object", "properties": {"a": {"type": "object", "properties": {}, "additionalProperties": true}}}),
            json!({"type": "object", "properties": {"a": {}}}),
            json!(true),
        ] {
            assert_eq!(of_anthropic(&open), None, "{open}");
        }
        assert_eq!(of_anthropic(&json!({"type": "array", "items": {"type": "string"}})).unwrap()["type"], "array");
    }

    #[test]
    fn gemini_has_its_words_here_too() {
        assert_eq!(
            of_gemini(&json!({"type": "array", "items": {"const": "x"}})),
            json!({"type": "array", "items": {"type": "string", "enum": ["x"]}})
        );
    }
}
