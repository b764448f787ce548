//! JSON Schema of a tool's arguments, as a value and as the text that requests carry.

use std::{
    ops::Deref,
    sync::{Arc, OnceLock},
};

use serde::{Serialize, Serializer};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// All sessions share it: it is the most of a tool. Every request carries it and counts it, so its text is written once.
#[derive(Clone, Debug, Default)]
pub struct Schema(Arc<SharedSchema>);

#[derive(Debug, Default)]
struct SharedSchema {
    value: Value,
    text: OnceLock<Box<RawValue>>,
}

impl Schema {
    pub fn text(&self) -> &RawValue {
        // A value has text keys only: it can always be written.
        self.0.text.get_or_init(|| to_raw_value(&self.0.value).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        Self(Arc::new(SharedSchema { value, text: OnceLock::new() }))
    }
}

impl Deref for Schema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0.value
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.0.value == other.0.value
    }
}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.value.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Schema;

    #[test]
    fn its_text_is_its_value() {
        let value = json!({"type": "object", "properties": {"ü": {"enum": [1.5, "\n"]}}});
        let schema = Schema::from(value.clone());
        assert_eq!(schema.text().get(), value.to_string());
        assert_eq!(serde_json::to_string(&schema).unwrap(), value.to_string());
        assert!(std::ptr::eq(schema.text(), schema.clone().text()), "a copy writes it again");
        assert_eq!((&*schema, schema == Schema::default()), (&value, false));
    }
}
