//! Questions with fields: forms of the agent (ACP's elicitation) as questions of AHP, and answers as the form's content.

use ahp::ahp_types::state::{
    ChatInputAnswer, ChatInputAnswerValue, ChatInputBooleanQuestion, ChatInputMultiSelectQuestion,
    ChatInputNumberQuestion, ChatInputOption, ChatInputQuestion, ChatInputSingleSelectQuestion, ChatInputTextQuestion,
};
use serde_json::{Map, Value, json};

use castor_wire::acp::client::{FieldChoice, FieldForm, FormField};

/// The questions of a form.
pub fn questions(form: &FieldForm) -> Vec<ChatInputQuestion> {
    form.fields().map(|(name, field, is_required)| question(name, field, is_required)).collect()
}

fn question(name: &str, field: &FormField, is_required: bool) -> ChatInputQuestion {
    let id = name.to_owned();
    let (title, required, bounds) = (field.title.clone(), Some(is_required), &field.bounds);
    let message = field.description.as_ref().or(field.title.as_ref()).unwrap_or(&id).clone();
    match (field.form.as_str(), &field.one_of) {
        ("string", Some(choices)) => {
            let options = choices.iter().map(option).collect();
            ChatInputQuestion::SingleSelect(with_none!(ChatInputSingleSelectQuestion {
                id, title, message, required, options
            } allow_freeform_input))
        }
        ("array", _) => ChatInputQuestion::MultiSelect(with_none!(ChatInputMultiSelectQuestion {
            id, title, message, required,
            options: field.items.any_of.iter().map(option).collect(),
            min: bounds.min_items,
            max: bounds.max_items,
        } allow_freeform_input)),
        (form @ ("number" | "integer"), _) => {
            let default_value = field.default.as_f64();
            let (min, max) = (bounds.minimum, bounds.maximum);
            let question = ChatInputNumberQuestion { id, title, message, required, min, max, default_value };
            if form == "number" { ChatInputQuestion::Number(question) } else { ChatInputQuestion::Integer(question) }
        }
        ("boolean", _) => {
            let default_value = field.default.as_bool();
            ChatInputQuestion::Boolean(ChatInputBooleanQuestion { id, title, message, required, default_value })
        }
        _ => ChatInputQuestion::Text(ChatInputTextQuestion {
            id,
            title,
            message,
            required,
            format: field.format.clone(),
            min: bounds.min_length,
            max: bounds.max_length,
            default_value: field.default.as_str().map(str::to_owned),
        }),
    }
}

fn option(it: &FieldChoice) -> ChatInputOption {
    with_none!(ChatInputOption {
        id: it.value.clone(), label: it.title.clone(), description: it.description.clone()
    } recommended)
}

/// The answers by the names of fields. Skipped ones are left out.
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
