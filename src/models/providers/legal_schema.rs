//! Legal schemas: what each dialect refuses in a tool's JSON Schema is changed or left out, at every depth.

mod combine;
mod gemini;
mod keywords;
mod references;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::provider_limits::fit_name;

/// Longest name of a property where names are narrow.
const MAX_KEY: usize = 64;
/// Deeper schemas end in one that allows everything.
const MAX_DEPTH: usize = 32;
/// Schemas that references bring in, at most: written out they must not fill a request.
const MAX_WRITTEN: usize = 1_000;
/// Members that hold one schema each.
const SINGLE: &[&str] = &[
    "items",
    "additionalProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];
/// Members that hold a list of schemas.
const LISTS: &[&str] = &["anyOf", "oneOf", "allOf", "prefixItems"];
/// Members that hold schemas by name.
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

/// The rules of a dialect, beyond JSON Schema's own. References are written out for all of them.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaRules {
    /// The only combination is `anyOf`.
    pub is_plain: bool,
    /// Names of properties have 64 letters, digits, `_`, `.` and `-` at most.
    pub has_narrow_keys: bool,
    /// Gemini's subset of keywords.
    pub is_gemini: bool,
}

pub const OPENAI: SchemaRules = SchemaRules { is_plain: true, has_narrow_keys: false, is_gemini: false };
/// Of servers that speak OpenAI's dialect, with models of any house behind them.
pub const COMPATIBLE: SchemaRules = SchemaRules { is_plain: true, has_narrow_keys: true, is_gemini: false };
pub const ANTHROPIC: SchemaRules = SchemaRules { is_plain: false, has_narrow_keys: true, is_gemini: false };
pub const GEMINI: SchemaRules = SchemaRules { is_plain: true, has_narrow_keys: false, is_gemini: true };

/// The schema of a tool's arguments as a dialect takes it.
#[derive(Debug, Default, PartialEq)]
pub struct LegalSchema {
    pub value: Value,
    /// Keys that had to change: the legal one, and the tool's own.
    pub keys: Vec<(String, String)>,
}

/// A schema of arguments: an object, with no combination at its top.
pub fn legalize(schema: &Value, rules: &SchemaRules) -> LegalSchema {
    let mut walk = Walk { root: schema, rules, keys: Vec::new(), open: Vec::new(), n_written: 0 };
    let mut top = match walk.schema(&walk.plain_top(), 0) {
        Value::Object(it) => it,
        _ => Map::new(),
    };
    combine::flatten_top(&mut top);
    if !rules.is_gemini {
        top.entry("properties").or_insert_with(|| json!({}));
    }
    LegalSchema { value: Value::Object(top), keys: walk.keys }
}

/// A schema of any value, legal at every depth.
pub fn legalize_part(schema: &Value, rules: &SchemaRules) -> Value {
    Walk { root: schema, rules, keys: Vec::new(), open: Vec::new(), n_written: 0 }.schema(schema, 0)
}

/// The arguments under the tool's own keys, at every depth.
pub fn restore_keys(args: &mut Value, keys: &[(String, String)]) {
    match args {
        _ if keys.is_empty() => (),
        Value::Object(members) => {
            let own = |key: String| keys.iter().find(|(legal, _)| *legal == key).map_or(key, |(_, own)| own.clone());
            let renamed = std::mem::take(members).into_iter().map(|(key, mut it)| {
                restore_keys(&mut it, keys);
                (own(key), it)
            });
            *members = renamed.collect();
        }
        Value::Array(items) => items.iter_mut().for_each(|it| restore_keys(it, keys)),
        _ => (),
    }
}

/// Makes one schema legal, and those within.
struct Walk<'a> {
    root: &'a Value,
    rules: &'a SchemaRules,
    keys: Vec<(String, String)>,
    /// References that are being written out.
    open: Vec<String>,
    n_written: usize,
}

impl Walk<'_> {
    /// Any value where a schema should stand.
    fn schema(&mut self, schema: &Value, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return json!({});
        }
        self.n_written += usize::from(!self.open.is_empty());
        match schema {
            Value::Object(it) if references::address(it).is_some() => self.reference(it, depth),
            Value::Object(it) => Value::Object(self.members(it, depth)),
            // A type, where its name stands alone.
            Value::String(_) => {
                Value::Object(self.members(&Map::from_iter([("type".to_owned(), schema.clone())]), depth))
            }
            _ => json!({}),
        }
    }

    fn members(&mut self, schema: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let schema = keywords::modern(schema);
        let mut res = Map::new();
        for (name, it) in &*schema {
            let legal = match name.as_str() {
                it if is_definitions(it) => None,
                "properties" => it.as_object().map(|it| Value::Object(self.properties(it, depth))),
                "required" => self.required(&schema),
                name if SINGLE.contains(&name) => self.single(name, it, depth),
                name if LISTS.contains(&name) => self.list(it, depth),
                name if NAMED.contains(&name) => {
                    it.as_object().map(|it| Value::Object(self.legalize_members(it, depth)))
                }
                name => keywords::plain(name, it),
            };
            res.extend(legal.map(|it| (name.clone(), it)));
        }
        if !schema.contains_key("required") {
            res.extend(self.required(&schema).map(|it| ("required".to_owned(), it)));
        }
        if self.rules.is_plain {
            combine::make_plain(&mut res);
        }
        combine::add_items(&mut res);
        if self.rules.is_gemini {
            gemini::narrow(&mut res);
        }
        res
    }

    fn single(&mut self, name: &str, schema: &Value, depth: usize) -> Option<Value> {
        match schema {
            Value::Null => None,
            Value::Bool(_) => (name != "not").then(|| schema.clone()),
            it => Some(self.schema(it, depth + 1)),
        }
    }

    fn list(&mut self, schemas: &Value, depth: usize) -> Option<Value> {
        let possible = schemas.as_array()?.iter().filter(|it| **it != false);
        let legal: Vec<Value> = possible.map(|it| self.schema(it, depth + 1)).collect();
        (!legal.is_empty()).then_some(legal.into())
    }

    fn legalize_members(&mut self, schemas: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        schemas.iter().map(|(name, it)| (name.clone(), self.schema(it, depth + 1))).collect()
    }

    /// What must never be there is no property.
    fn properties(&mut self, properties: &Map<String, Value>, depth: usize) -> Map<String, Value> {
        let mut res = Map::new();
        for (own, it) in properties.iter().filter(|(_, it)| **it != false) {
            let (key, mut legal) = (self.key(own), self.schema(it, depth + 1));
            if let Some(it) = legal.as_object_mut().filter(|_| key != *own) {
                it.entry("title").or_insert_with(|| own.clone().into());
            }
            res.insert(key, legal);
        }
        res
    }

    /// Those among the properties, where there are any. In an older draft a property says it of itself.
    fn required(&mut self, schema: &Map<String, Value>) -> Option<Value> {
        let properties = schema.get("properties").and_then(Value::as_object);
        let listed = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let is_marked = |it: &Value| it.get("required") == Some(&Value::Bool(true));
        let marked = properties.into_iter().flatten().filter(|(_, it)| is_marked(it)).map(|(key, _)| key.as_str());
        let is_known = |key: &str| properties.is_none_or(|it| it.get(key).is_some_and(|it| *it != false));
        let mut res: Vec<Value> = Vec::new();
        for key in listed.chain(marked).filter(|it| is_known(it)) {
            let key = Value::from(self.key(key));
            if !res.contains(&key) {
                res.push(key);
            }
        }
        (!res.is_empty()).then_some(res.into())
    }

    /// The key as the dialect takes it. One key always becomes the same other one.
    fn key(&mut self, own: &str) -> String {
        let legal = match self.rules.has_narrow_keys {
            true => legal_key(own),
            false => own.into(),
        };
        if let Cow::Owned(legal) = &legal {
            let pair = (legal.clone(), own.to_owned());
            if !self.keys.contains(&pair) {
                self.keys.push(pair);
            }
        }
        legal.into_owned()
    }
}

fn is_definitions(name: &str) -> bool {
    matches!(name, "$defs" | "definitions")
}

pub fn has_type(schema: &Map<String, Value>, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|it| it == name),
        Some(it) => it == name,
        None => false,
    }
}

fn legal_key(own: &str) -> Cow<'_, str> {
    fit_name(own, MAX_KEY, "_.-")
}
