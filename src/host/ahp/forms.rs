//! Questions with fields: forms of the agent (ACP's elicitation) as questions of AHP, and answers as the form's content.

use ahp::ahp_types::state::{ChatInputAnswer, ChatInputAnswerValue};
use serde_json::{Map, Value, json};

use super::with_members;

/// The questions of a form, and the message above them.
pub fn questions(params: &Value) -> Vec<Value> {
    let schema = &params["requestedSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten();
    fields.map(|(name, field)| question(name, field, required.contains(&json!(name)))).collect()
}

fn question(name: &str, field: &Value, is_required: bool) -> Value {
    let (title, description) = (field.get("title").cloned(), field["description"].as_str());
    let message = description.or(field["title"].as_str()).unwrap_or(name);
    let base = json!({ "id": name, "message": message, "required": is_required });
    let base = with_members(base, [("title", title)]);
    let (default, member) = (field.get("default").cloned(), |name: &str| field.get(name).cloned());
    let options = |list: &Value| json!(list.as_array().into_iter().flatten().map(option).collect::<Vec<_>>());
    let members = |kind: &str| [("kind", Some(json!(kind))), ("defaultValue", default.clone())];
    match field["type"].as_str() {
        Some("string") if field["oneOf"].is_array() => {
            with_members(base, [("kind", Some(json!("single-select"))), ("options", Some(options(&field["oneOf"])))])
        }
        Some("array") => {
            let own = [("kind", Some(json!("multi-select"))), ("options", field.pointer("/items/anyOf").map(options))];
            with_members(with_members(base, own), [("min", member("minItems")), ("max", member("maxItems"))])
        }
        Some(kind @ ("number" | "integer")) => {
            with_members(with_members(base, members(kind)), [("min", member("minimum")), ("max", member("maximum"))])
        }
        Some("boolean") => with_members(base, members("boolean")),
        _ => {
            let own = [("min", member("minLength")), ("max", member("maxLength")), ("format", member("format"))];
            with_members(with_members(base, members("text")), own)
        }
    }
}

fn option(it: &Value) -> Value {
    let option = json!({ "id": it["const"], "label": it["title"] });
    with_members(option, [("description", it.get("description").cloned())])
}

/// What was answered, by the names of fields. What was skipped is not in it.
pub fn content<'a>(answers: impl Iterator<Item = (&'a String, &'a ChatInputAnswer)>) -> Map<String, Value> {
    answers.filter_map(|(name, it)| Some((name.clone(), value(it)?))).collect()
}

fn value(answer: &ChatInputAnswer) -> Option<Value> {
    let (ChatInputAnswer::Draft(it) | ChatInputAnswer::Submitted(it)) = answer else { return None };
    Some(match &it.value {
        ChatInputAnswerValue::Text(it) => json!(it.value),
        // A form tells whole numbers from others.
        ChatInputAnswerValue::Number(it) if it.value.fract() == 0.0 && it.value.abs() < 1e15 => {
            #[allow(clippy::cast_possible_truncation, reason = "it is whole, and small enough")]
            let whole = it.value as i64;
            json!(whole)
        }
        ChatInputAnswerValue::Number(it) => json!(it.value),
        ChatInputAnswerValue::Boolean(it) => json!(it.value),
        ChatInputAnswerValue::Selected(it) => {
            let own = it.freeform_values.as_ref().and_then(|it| it.first()).filter(|_| it.value.is_empty());
            json!(own.unwrap_or(&it.value))
        }
        ChatInputAnswerValue::SelectedMany(it) => {
            json!(it.value.iter().chain(it.freeform_values.iter().flatten()).collect::<Vec<_>>())
        }
        ChatInputAnswerValue::Unknown(_) => return None,
    })
}
