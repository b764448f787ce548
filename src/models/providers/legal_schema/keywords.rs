//! Keywords of JSON Schema: older forms made new, and values that no draft allows left out.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

/// Says where a schema comes from, or leads out of it; some providers refuse to hear of it.
const FOREIGN: &[&str] =
    &["$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$vocabulary"];
const TEXTS: &[&str] =
    &["title", "description", "$comment", "format", "pattern", "contentEncoding", "contentMediaType"];
const COUNTS: &[&str] =
    &["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"];
const NUMBERS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const TRUTHS: &[&str] = &["uniqueItems", "deprecated", "readOnly", "writeOnly", "nullable"];
/// Every type, with other names for it.
const TYPES: &[(&str, &[&str])] = &[
    ("string", &["str", "text", "date", "datetime", "date-time", "uuid", "url", "uri", "file", "path"]),
    ("integer", &["int", "int32", "int64", "long"]),
    ("number", &["float", "double", "decimal"]),
    ("boolean", &["bool"]),
    ("object", &["dict", "map", "record"]),
    ("array", &["list", "tuple", "set"]),
    ("null", &["none", "nil"]),
];

/// The type that is meant; `None`: any, or none that there is.
pub fn type_name(name: &str) -> Option<&'static str> {
    let name = name.to_ascii_lowercase();
    TYPES.iter().find(|(it, others)| *it == name || others.contains(&&*name)).map(|it| it.0)
}

/// The schema in the words of today's draft.
pub fn modern(schema: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    let is_old = |(name, it): (&String, &Value)| match name.as_str() {
        "items" => it.is_array(),
        "exclusiveMinimum" | "exclusiveMaximum" => it.is_boolean(),
        "additionalItems" | "dependencies" => true,
        _ => false,
    };
    if !schema.iter().any(is_old) {
        return Cow::Borrowed(schema);
    }
    let mut res = schema.clone();
    for (exclusive, plain) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(excludes)) = res.get(exclusive) {
            let limit = excludes.then(|| res.shift_remove(plain)).flatten();
            res.shift_remove(exclusive);
            res.extend(limit.map(|it| (exclusive.to_owned(), it)));
        }
    }
    let rest = res.shift_remove("additionalItems");
    if let Some(Value::Array(_)) = res.get("items") {
        let tuple = res.shift_remove("items").unwrap_or_default();
        res.entry("prefixItems").or_insert(tuple);
        res.extend(rest.map(|it| ("items".to_owned(), it)));
    }
    // What it says of lists and of schemas has two keywords since.
    res.shift_remove("dependencies");
    Cow::Owned(res)
}

/// The value of a keyword that holds no schema; `None`: it has to go.
pub fn plain(name: &str, value: &Value) -> Option<Value> {
    let kept = |it: bool| it.then(|| value.clone());
    match name {
        "default" | "const" => kept(true),
        _ if value.is_null() || FOREIGN.contains(&name) => None,
        "type" => types(value),
        "enum" => choices(value),
        "examples" => kept(value.is_array()),
        "dependentRequired" => kept(value.as_object().is_some_and(|it| it.values().all(is_names))),
        "multipleOf" => kept(value.as_f64().is_some_and(|it| it > 0.0)),
        _ if TEXTS.contains(&name) => kept(value.is_string()),
        _ if TRUTHS.contains(&name) => kept(value.is_boolean()),
        _ if NUMBERS.contains(&name) => kept(value.is_number()),
        _ if COUNTS.contains(&name) => count(value),
        // A schema where a value stands would be taken for a reference.
        "$ref" | "$recursiveRef" => None,
        _ => kept(true),
    }
}

fn types(value: &Value) -> Option<Value> {
    let mut names: Vec<&str> = match value {
        Value::String(it) => return type_name(it).map(Value::from),
        Value::Array(all) => all.iter().filter_map(Value::as_str).filter_map(type_name).collect(),
        _ => return None,
    };
    let mut seen = Vec::new();
    names.retain(|it| {
        !seen.contains(it) && {
            seen.push(it);
            true
        }
    });
    match &*names {
        [] => None,
        [one] => Some(Value::from(*one)),
        all => Some(all.into()),
    }
}

/// Each once.
fn choices(value: &Value) -> Option<Value> {
    let mut res: Vec<&Value> = Vec::new();
    for it in value.as_array()? {
        if !res.contains(&it) {
            res.push(it);
        }
    }
    (!res.is_empty()).then(|| res.into_iter().cloned().collect())
}

fn count(value: &Value) -> Option<Value> {
    // A float is a number of things as well, if it is a whole one.
    let whole = |it: f64| (it >= 0.0 && it.fract() == 0.0 && it < 1e15).then(|| Value::Number(Number::from(it as u64)));
    value.as_u64().map(Value::from).or_else(|| whole(value.as_f64()?))
}

fn is_names(it: &Value) -> bool {
    it.as_array().is_some_and(|it| it.iter().all(Value::is_string))
}
