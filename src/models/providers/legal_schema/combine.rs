//! Combinations of schemas: one for all that hold, `anyOf` for all that may.

use serde_json::{Map, Value, json};

use super::has_type;

/// Makes `anyOf` the only combination.
pub fn make_plain(schema: &mut Map<String, Value>) {
    if let Some(Value::Array(all)) = schema.shift_remove("allOf") {
        merge(schema, objects(all), true);
    }
    if let Some(it) = schema.shift_remove("oneOf") {
        schema.entry("anyOf").or_insert(it);
    }
    if schema.contains_key("properties") {
        keep_known_required(schema);
    }
}

/// Says what the items of an array are: anything, where nothing is said.
pub fn add_items(schema: &mut Map<String, Value>) {
    let may_have = has_type(schema, "array") || schema.contains_key("items");
    if may_have && !schema.get("items").is_some_and(Value::is_object) {
        schema.insert("items".to_owned(), json!({}));
    }
}

/// Leaves out what says which values there are: an object of properties is none of them.
pub fn drop_choices(top: &mut Map<String, Value>) {
    ["not", "enum", "const"].iter().for_each(|it| _ = top.shift_remove(*it));
}

/// Makes the top an object with properties. What combinations say of properties is kept, what they exclude is not.
pub fn flatten_top(top: &mut Map<String, Value>) {
    flatten(top);
    drop_choices(top);
    if top.get("type").and_then(Value::as_str) != Some("object") {
        top.shift_remove("type");
        top.shift_insert(0, "type".to_owned(), "object".into());
    }
    keep_known_required(top);
}

/// Requires no property that is not described.
pub fn keep_known_required(schema: &mut Map<String, Value>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    let is_known = |key: &Value| key.as_str().is_some_and(|key| properties.is_some_and(|it| it.contains_key(key)));
    let Some(Value::Array(all)) = schema.get("required") else { return };
    let known: Vec<Value> = all.iter().filter(|it| is_known(it)).cloned().collect();
    match known.is_empty() {
        true => _ = schema.shift_remove("required"),
        false => _ = schema.insert("required".to_owned(), known.into()),
    }
}

/// Adds the properties of all combinations, also of those within them.
fn flatten(schema: &mut Map<String, Value>) {
    for name in ["allOf", "anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.shift_remove(name) else { continue };
        let mut branches = objects(branches);
        branches.iter_mut().for_each(flatten);
        merge(schema, branches, name == "allOf");
    }
}

pub fn objects(values: Vec<Value>) -> Vec<Map<String, Value>> {
    let object = |it| if let Value::Object(it) = it { Some(it) } else { None };
    values.into_iter().filter_map(object).collect()
}

/// Adds the properties of all branches, and, if all of them hold, all else. Required is what all of them require, or, if
/// all of them hold, any.
pub fn merge(schema: &mut Map<String, Value>, branches: Vec<Map<String, Value>>, all_hold: bool) {
    let lists = branches.iter().map(required_of);
    let shared = |some: Vec<Value>, more: Vec<Value>| some.into_iter().filter(|it| more.contains(it)).collect();
    let required: Vec<Value> = match all_hold {
        true => lists.flatten().collect(),
        false => lists.reduce(shared).unwrap_or_default(),
    };
    for (name, it) in branches.into_iter().flatten() {
        match (name.as_str(), it) {
            ("required", _) => (),
            ("properties", Value::Object(more)) => add_properties(schema, more),
            (_, it) if all_hold => _ = schema.entry(name).or_insert(it),
            _ => (),
        }
    }
    require(schema, required);
}

fn required_of(schema: &Map<String, Value>) -> Vec<Value> {
    schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Requires more of a schema, as far as it has such properties.
fn require(schema: &mut Map<String, Value>, more: Vec<Value>) {
    let mut all = required_of(schema);
    let known = schema.get("properties").and_then(Value::as_object);
    for it in more {
        let is_known = it.as_str().is_some_and(|key| known.is_none_or(|it| it.contains_key(key)));
        if is_known && !all.contains(&it) {
            all.push(it);
        }
    }
    if !all.is_empty() {
        schema.insert("required".to_owned(), all.into());
    }
}

/// A property that branches describe differently may be either.
fn add_properties(schema: &mut Map<String, Value>, more: Map<String, Value>) {
    let Value::Object(known) = schema.entry("properties").or_insert_with(|| json!({})) else { return };
    for (key, it) in more {
        match known.get_mut(&key) {
            None => _ = known.insert(key, it),
            Some(there) if *there == it => (),
            Some(there) => join_either(there, it),
        }
    }
}

fn join_either(there: &mut Value, other: Value) {
    let is_union = there.as_object().is_some_and(|it| it.len() == 1);
    match there.get_mut("anyOf") {
        Some(Value::Array(branches)) if is_union && branches.contains(&other) => (),
        Some(Value::Array(branches)) if is_union => branches.push(other),
        _ => *there = json!({ "anyOf": [there.take(), other] }),
    }
}
