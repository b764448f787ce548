//! Questions of an agent with fields (`elicitation/create`), as a client reads them.

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::read_value;

/// A question, with what is to be filled in.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldForm {
    pub session_id: String,
    pub tool_call_id: String,
    pub message: Option<String>,
    mode: String,
    requested_schema: FormSchema,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct FormSchema {
    required: Vec<String>,
    #[serde(deserialize_with = "read_fields")]
    properties: Vec<(String, FormField)>,
}

/// A field, by the keywords of JSON Schema that forms have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FormField {
    #[serde(rename = "type")]
    pub form: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub default: Value,
    pub format: Option<String>,
    pub one_of: Option<Vec<FieldChoice>>,
    pub items: ItemChoices,
    #[serde(flatten)]
    pub bounds: FieldBounds,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldBounds {
    pub min_length: Option<i64>,
    pub max_length: Option<i64>,
    pub min_items: Option<i64>,
    pub max_items: Option<i64>,
    pub minimum: Option<f64>,
    pub maximum: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ItemChoices {
    pub any_of: Vec<FieldChoice>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FieldChoice {
    #[serde(rename = "const")]
    pub value: String,
    pub title: String,
    #[serde(default)]
    pub description: Option<String>,
}

impl FieldForm {
    /// Whether it has fields; other questions are pages to visit.
    pub fn has_fields(&self) -> bool {
        self.mode == "form"
    }

    /// The fields in their order, and whether each has to be filled in.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &FormField, bool)> {
        let schema = &self.requested_schema;
        schema.properties.iter().map(|(name, it)| (name.as_str(), it, schema.required.contains(name)))
    }
}

fn read_fields<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(String, FormField)>, D::Error> {
    let fields = Map::<String, Value>::deserialize(from)?;
    Ok(fields.into_iter().map(|(name, it)| (name, read_value(it).unwrap_or_default())).collect())
}
