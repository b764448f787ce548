//! Conversation history for safety checkers: prompts, messages and calls.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use castor_base::{
    history::{Role, Turn, TurnPart},
    text,
};

/// Turns of the user, at most; the last ones.
const MAX_TURNS: usize = 20;
/// Bytes of a text, or of a call's arguments.
const MAX_TEXT: usize = 4 * 1024;

/// `[{"user": {"text"}, "model": {"text", "toolCalls": [{"name", "args"}]}}]`, oldest first.
pub fn checker_history(turns: &[Arc<Turn>]) -> Value {
    let mut res: Vec<TranscriptTurn> = Vec::new();
    for turn in turns {
        match turn.role() {
            Role::User => res.push(TranscriptTurn { user: texts(turn), ..TranscriptTurn::default() }),
            // Results of calls are not what anybody said.
            Role::Tool => (),
            Role::Model => {
                if res.is_empty() {
                    res.push(TranscriptTurn::default());
                }
                let Some(last) = res.last_mut() else { continue };
                last.model.push_str(&texts(turn));
                last.calls.extend(turn.parts().iter().filter_map(call));
            }
        }
    }
    let from = res.len().saturating_sub(MAX_TURNS);
    res.split_off(from).into_iter().map(TranscriptTurn::into_json).collect()
}

#[derive(Default)]
struct TranscriptTurn {
    user: String,
    model: String,
    calls: Vec<Value>,
}

impl TranscriptTurn {
    fn into_json(self) -> Value {
        let mut model = Map::new();
        if !self.model.is_empty() {
            model.insert("text".to_owned(), text::head(&self.model, MAX_TEXT).into());
        }
        if !self.calls.is_empty() {
            model.insert("toolCalls".to_owned(), self.calls.into());
        }
        json!({ "user": { "text": text::head(&self.user, MAX_TEXT) }, "model": model })
    }
}

fn texts(turn: &Turn) -> String {
    let text = |it: &TurnPart| match it {
        TurnPart::Content(it) => it.as_text().map(str::to_owned),
        TurnPart::Call { .. } | TurnPart::Result(_) => None,
    };
    turn.parts().iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

fn call(part: &TurnPart) -> Option<Value> {
    let TurnPart::Call { call, .. } = part else { return None };
    let length = call.args.to_string().len();
    let args = if length > MAX_TEXT { json!({ "omitted": format!("{length} bytes") }) } else { call.args.clone() };
    Some(json!({ "name": call.name, "args": args }))
}
