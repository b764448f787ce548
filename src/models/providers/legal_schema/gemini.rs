//! Gemini's subset of JSON Schema: what is outside of it is said in words that are inside, or left out.

use serde_json::{Map, Value, json};

use super::{combine, has_type};

/// All that a schema may say.
const KEYWORDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "default",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minimum",
    "maximum",
    "anyOf",
    "properties",
    "additionalProperties",
    "required",
    "propertyOrdering",
];
/// Formats that it knows; others are refused.
const FORMATS: &[&str] = &["date-time", "date", "time", "duration", "enum", "int32", "int64", "float", "double"];
/// Keywords that only one type has.
const OF_TYPE: &[(&str, &[&str])] = &[
    ("array", &["items", "prefixItems", "minItems", "maxItems"]),
    ("object", &["properties", "additionalProperties", "required", "propertyOrdering"]),
    ("string", &["enum", "format", "pattern", "minLength", "maxLength"]),
    ("number", &["minimum", "maximum", "format"]),
    ("integer", &["minimum", "maximum", "format"]),
];

/// Changes a schema whose parts are Gemini's already.
pub fn narrow(schema: &mut Map<String, Value>) {
    if let Some(it) = schema.shift_remove("const") {
        schema.insert("enum".to_owned(), json!([it]));
    }
    for (exclusive, plain, step) in [("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)] {
        if let Some(it) = schema.shift_remove(exclusive) {
            let whole = it.as_i64().filter(|_| has_type(schema, "integer"));
            schema.insert(plain.to_owned(), whole.map_or(it, |it| it.saturating_add(step).into()));
        }
    }
    if schema.get("nullable") == Some(&Value::Bool(true)) {
        add_null(schema);
    }
    schema.retain(|name, it| match name.as_str() {
        "format" => it.as_str().is_some_and(|it| FORMATS.contains(&it)),
        name => KEYWORDS.contains(&name),
    });
    settle(schema);
}

/// Puts keywords right that bear upon each other.
fn settle(schema: &mut Map<String, Value>) {
    name_choices(schema);
    name_type(schema);
    combine::keep_known_required(schema);
    part_types(schema);
    distribute(schema);
}

/// Says the type that is meant, where none is said.
fn name_type(schema: &mut Map<String, Value>) {
    if !["type", "anyOf"].iter().any(|it| schema.contains_key(*it)) {
        let meant = OF_TYPE.iter().take(2).find(|(_, own)| own.iter().any(|it| schema.contains_key(*it)));
        meant.into_iter().for_each(|(it, _)| _ = schema.shift_insert(0, "type".to_owned(), (*it).into()));
    }
    combine::add_items(schema);
}

/// Choices are texts, and none is empty. Others are said in words.
fn name_choices(schema: &mut Map<String, Value>) {
    let Some(Value::Array(all)) = schema.get("enum") else { return };
    let is_nullable = all.iter().any(Value::is_null);
    let rest: Vec<Value> = all.iter().filter(|it| !it.is_null() && **it != "").cloned().collect();
    let is_text = rest.iter().all(Value::is_string) && (has_type(schema, "string") || !schema.contains_key("type"));
    if is_text && !rest.is_empty() {
        let kind = if is_nullable { json!(["string", "null"]) } else { json!("string") };
        schema.entry("type").or_insert(kind);
        schema.insert("enum".to_owned(), rest.into());
        return;
    }
    schema.shift_remove("enum");
    let said: Vec<String> = rest.iter().map(Value::to_string).collect();
    let words = match &*said {
        [] => return,
        [one] => format!("Always {one}."),
        all => format!("One of {}.", all.join(", ")),
    };
    let before = schema.get("description").and_then(Value::as_str).unwrap_or_default();
    let words = if before.is_empty() { words } else { format!("{before} {words}") };
    if let Some(kind) = common_type(&rest) {
        schema.entry("type").or_insert(kind.into());
    }
    schema.insert("description".to_owned(), words.into());
}

fn common_type(values: &[Value]) -> Option<&'static str> {
    type Is = fn(&Value) -> bool;
    let kinds: [(&str, Is); 4] = [
        ("integer", |it| it.is_i64() || it.is_u64()),
        ("number", Value::is_number),
        ("boolean", Value::is_boolean),
        ("string", Value::is_string),
    ];
    kinds.iter().find(|(_, is)| values.iter().all(is)).map(|it| it.0)
}

/// Allows nothing beside the one type.
fn add_null(schema: &mut Map<String, Value>) {
    if let Some(Value::String(one)) = schema.get("type").filter(|it| *it != "null") {
        let with_null = json!([one, "null"]);
        schema.insert("type".to_owned(), with_null);
    }
}

/// Several types beside that of nothing become alternatives.
fn part_types(schema: &mut Map<String, Value>) {
    let Some(Value::Array(types)) = schema.get("type") else { return };
    let n_types = types.iter().filter(|it| **it != "null").count();
    if n_types < 2 || schema.contains_key("anyOf") {
        return;
    }
    let types: Vec<String> = types.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let branch = |kind: &String| {
        let own = OF_TYPE.iter().find(|(it, _)| it == kind).map_or(&[][..], |it| it.1);
        let more = schema.iter().filter(|(name, _)| own.contains(&name.as_str()));
        let more = more.map(|(name, it)| (name.clone(), it.clone()));
        Value::Object([("type".to_owned(), Value::from(kind.clone()))].into_iter().chain(more).collect())
    };
    let branches: Vec<Value> = types.iter().map(branch).collect();
    let is_own = |name: &str| OF_TYPE.iter().any(|(_, own)| own.contains(&name));
    schema.retain(|name, _| name != "type" && !is_own(name));
    schema.insert("anyOf".to_owned(), branches.into());
}

/// Alternatives stand alone: what holds for all is said in each. One that is nothing becomes a type of the other.
fn distribute(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.shift_remove("anyOf") else { return };
    let common = std::mem::take(schema);
    let n_branches = branches.len();
    let is_null = |it: &Map<String, Value>| it.get("type").is_some_and(|it| it == "null");
    let (none, mut rest): (Vec<_>, Vec<_>) = combine::objects(branches).into_iter().partition(is_null);
    for branch in &mut rest {
        combine::merge(branch, vec![common.clone()], true);
        settle(branch);
    }
    if let ([one], true) = (&mut *rest, n_branches > 1 && !none.is_empty()) {
        add_null(one);
    }
    if let ([_], true) | ([], _) = (&*rest, true) {
        *schema = rest.pop().unwrap_or(common);
        return;
    }
    let all = rest.into_iter().chain(none).map(Value::Object).collect();
    schema.insert("anyOf".to_owned(), all);
}
