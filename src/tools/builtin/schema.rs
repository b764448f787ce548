//! JSON Schema helpers for the arguments of built-in tools.

use serde_json::{Map, Value, json};

use castor_base::schema::Schema;

pub fn object<const N: usize>(required: &[&str], properties: [(&str, Value); N]) -> Schema {
    let properties: Map<String, Value> = properties.into_iter().map(|(name, it)| (name.to_owned(), it)).collect();
    json!({"type": "object", "properties": properties, "required": required}).into()
}

pub fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

pub fn flag(description: &str) -> Value {
    json!({"type": "boolean", "description": description})
}

/// A whole number.
pub fn count(min: u64, description: &str) -> Value {
    json!({"type": "integer", "minimum": min, "description": description})
}
