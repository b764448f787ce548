//! Requests of the Responses API: the input comes last, so that the next request begins as this one did.

use bytes::Bytes;
use serde_json::{Value, json};

use super::SIGNER;
use crate::{
    base::{
        history::{Role, Turn},
        model::{ModelRequest, Params, Thinking},
        tool::{CallResult, ToolSpec},
    },
    world::models::{
        json::{item, list, member},
        legal,
        pieces::{Blob, Piece, output, pieces},
    },
};

/// The whole body of a request.
pub fn body(request: &ModelRequest) -> Vec<u8> {
    let items: Vec<Bytes> = request.contents.iter().map(|it| it.encoded("responses", items)).collect();
    let mut out = head(request);
    out.reserve(items.iter().map(|it| it.len() + 1).sum::<usize>() + 16);
    out.extend_from_slice(br#","input":["#);
    list(&mut out, items.iter());
    out.extend_from_slice(b"]}");
    out
}

/// What comes before the input; nothing here changes from turn to turn.
fn head(request: &ModelRequest) -> Vec<u8> {
    let mut out = vec![b'{'];
    let params = &request.params;
    member(&mut out, "model", &&*request.model);
    member(&mut out, "stream", &true);
    member(&mut out, "store", &false);
    // Without the server's memory the reasoning has to travel with the conversation.
    member(&mut out, "include", &["reasoning.encrypted_content"]);
    let fields = [
        ("temperature", params.temperature.map(Value::from)),
        ("top_p", params.top_p.map(Value::from)),
        ("max_output_tokens", params.max_output_tokens.map(Value::from)),
        ("reasoning", reasoning(params)),
        ("text", params.schema.as_deref().map(format)),
    ];
    for (name, value) in fields.iter().filter_map(|(name, it)| Some((name, it.as_ref()?))) {
        member(&mut out, name, value);
    }
    if !request.tools.is_empty() {
        let tools: Vec<Value> = request.tools.iter().map(tool).collect();
        member(&mut out, "tools", &tools);
    }
    if !request.system.is_empty() {
        member(&mut out, "instructions", &&*request.system);
    }
    out
}

fn format(schema: &Value) -> Value {
    json!({ "format": { "type": "json_schema", "name": "answer", "strict": true, "schema": schema } })
}

fn reasoning(params: &Params) -> Option<Value> {
    let Some(Thinking::Level(level)) = &params.thinking else { return None };
    let effort = level.to_lowercase();
    Some(match params.include_thoughts {
        true => json!({ "effort": effort, "summary": "auto" }),
        false => json!({ "effort": effort }),
    })
}

fn tool(it: &ToolSpec) -> Value {
    let (name, parameters) = (legal::name(&it.name), legal::schema(&it.parameters));
    json!({
        "type": "function",
        "name": name,
        "description": it.description,
        "parameters": parameters,
        "strict": false,
    })
}

/// The items of one turn, with commas between; empty where nothing of it goes to the model.
fn items(turn: &Turn) -> Bytes {
    let mut out = Vec::new();
    match turn.role() {
        Role::User => user(&mut out, turn),
        Role::Model => assistant(&mut out, turn),
        Role::Tool => results(&mut out, turn),
    }
    out.into()
}

fn user(out: &mut Vec<u8>, turn: &Turn) {
    let mut content = Vec::new();
    for piece in pieces(turn) {
        match piece {
            Piece::Text { text, .. } if !text.is_empty() => content.push(input_text(&text)),
            Piece::Blob(it) => content.push(media(it)),
            _ => (),
        }
    }
    if !content.is_empty() {
        item(out, &json!({ "type": "message", "role": "user", "content": content }));
    }
}

fn assistant(out: &mut Vec<u8>, turn: &Turn) {
    // Thoughts come in pieces; the signature at their end makes them one item.
    let mut thought = String::new();
    for piece in pieces(turn) {
        match piece {
            Piece::Text { text, .. } if !text.is_empty() => {
                let content = [json!({ "type": "output_text", "text": text })];
                item(out, &json!({ "type": "message", "role": "assistant", "content": content }));
            }
            Piece::Thought { text, signature } => {
                thought.push_str(text);
                let ours = signature.map(|it| legal::unsign(SIGNER, it));
                if let Some(encrypted) = ours {
                    let summary = std::mem::take(&mut thought);
                    encrypted.into_iter().for_each(|it| item(out, &reasoned(&summary, it)));
                }
            }
            Piece::Call { call, .. } => item(
                out,
                &json!({
                    "type": "function_call",
                    "call_id": legal::id(call.id.as_str()),
                    "name": legal::name(&call.name),
                    "arguments": legal::arguments(&call.args).to_string(),
                }),
            ),
            _ => (),
        }
    }
}

fn reasoned(summary: &str, encrypted: &str) -> Value {
    let summary: Vec<Value> = match summary.is_empty() {
        true => Vec::new(),
        false => vec![json!({ "type": "summary_text", "text": summary })],
    };
    json!({ "type": "reasoning", "summary": summary, "encrypted_content": encrypted })
}

fn results(out: &mut Vec<u8>, turn: &Turn) {
    for piece in pieces(turn) {
        if let Piece::Result(it) = piece {
            item(out, &result(it));
        }
    }
    // What is said beside them.
    user(out, turn);
}

fn result(it: &CallResult) -> Value {
    let (blobs, text) = output(&it.content);
    let text = if it.is_error { format!("Error: {text}") } else { text };
    let output = match blobs.is_empty() {
        true => Value::from(text),
        false => std::iter::once(input_text(&text)).chain(blobs.into_iter().map(media)).collect(),
    };
    json!({ "type": "function_call_output", "call_id": legal::id(it.id.as_str()), "output": output })
}

fn input_text(text: &str) -> Value {
    json!({ "type": "input_text", "text": text })
}

fn media(it: Blob<'_>) -> Value {
    match it.mime.starts_with("image/") {
        true => json!({ "type": "input_image", "image_url": it.data_url() }),
        false => json!({ "type": "input_file", "filename": "file", "file_data": it.data_url() }),
    }
}
