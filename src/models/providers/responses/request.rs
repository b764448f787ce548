//! Requests of OpenAI's Responses API. The input comes last, so that prompt caches match.

use bytes::Bytes;
use serde_json::{Value, json};

use super::SIGNER;
use crate::providers::{
    call_ids::SentIds,
    json::{encode_tools, push_item, push_list, push_member, push_members, push_written},
    legal_answer,
    legal_schema::{OPENAI, legalize},
    message_pieces::{Blob, MessagePiece, pieces, split_output, user_content},
    provider_limits,
};
use castor_base::{
    history::{Role, Turn},
    model::{ModelParams, ModelRequest, Thinking},
    model_table::Parameter,
    patch::{self, APPLY_PATCH, PATCH_OPERATION},
    tool::{CallResult, ToolCall, ToolSpec},
};

/// The whole body of a request.
pub fn body(request: &ModelRequest) -> Vec<u8> {
    // What a model without the custom tool is told of its calls are calls of a function.
    let (dialect, has_patches) = match request.tools.iter().any(|it| it.traits.is_patch) {
        true => ("responses with patches", true),
        false => ("responses", false),
    };
    let turns = SentIds::of_turns(request.contents.iter().map(|it| &**it), SIGNER, false);
    let items = |(turn, ids): (&Turn, SentIds<'_>)| turn.encoded(dialect, |it| items(it, (ids, has_patches)));
    let items: Vec<Bytes> = turns.map(items).collect();
    let mut out = head(request);
    out.reserve(items.iter().map(|it| it.len() + 1).sum::<usize>() + 16);
    out.extend_from_slice(br#","input":["#);
    push_list(&mut out, items.iter());
    out.extend_from_slice(b"]}");
    out
}

/// What comes before the input; nothing here changes from turn to turn.
fn head(request: &ModelRequest) -> Vec<u8> {
    let mut out = vec![b'{'];
    let params = &request.params;
    push_member(&mut out, "model", &&*request.model);
    push_member(&mut out, "stream", &true);
    if !request.traits.refused.has(Parameter::Store) {
        push_member(&mut out, "store", &false);
    }
    // Without the server's memory the reasoning has to travel with the conversation.
    if !request.traits.refused.has(Parameter::Include) {
        push_member(&mut out, "include", &["reasoning.encrypted_content"]);
    }
    let fields = [
        ("temperature", params.temperature.map(Value::from)),
        ("top_p", params.top_p.map(Value::from)),
        ("max_output_tokens", params.max_output_tokens.map(Value::from)),
        ("reasoning", reasoning(params)),
        ("text", params.schema.as_deref().and_then(format)),
    ];
    push_members(&mut out, &fields);
    if !request.tools.is_empty() {
        let tools = encode_tools(&request.tools, "responses", |out, it| push_item(out, &tool(it)));
        push_written(&mut out, "tools", &[b"[", &tools, b"]"]);
    }
    if !request.system.is_empty() {
        push_member(&mut out, "instructions", &&*request.system);
    }
    out
}

fn format(schema: &Value) -> Option<Value> {
    let (schema, strict) = legal_answer::of_openai(schema, true)?;
    Some(json!({ "format": { "type": "json_schema", "name": "answer", "strict": strict, "schema": schema } }))
}

fn reasoning(params: &ModelParams) -> Option<Value> {
    let Some(Thinking::Level(level)) = &params.thinking else { return None };
    let effort = level.to_lowercase();
    Some(match params.include_thoughts {
        true => json!({ "effort": effort, "summary": "auto" }),
        false => json!({ "effort": effort }),
    })
}

fn tool(it: &ToolSpec) -> Value {
    let name = provider_limits::tool_name(&it.name);
    if it.traits.is_patch {
        let format = json!({ "type": "grammar", "syntax": "lark", "definition": patch::GRAMMAR });
        return json!({ "type": "custom", "name": name, "description": it.description, "format": format });
    }
    let parameters = legalize(&it.parameters, &OPENAI).value;
    json!({
        "type": "function",
        "name": name,
        "description": it.description,
        "parameters": parameters,
        "strict": false,
    })
}

/// The items of one turn, with commas between; empty where nothing of it goes to the model.
fn items(turn: &Turn, told: (SentIds<'_>, bool)) -> Bytes {
    let mut out = Vec::new();
    match turn.role() {
        Role::User => user(&mut out, turn),
        Role::Model => assistant(&mut out, turn, told),
        Role::Tool => results(&mut out, turn, told),
    }
    out.into()
}

fn user(out: &mut Vec<u8>, turn: &Turn) {
    let content = user_content(turn, input_text, media);
    if !content.is_empty() {
        push_item(out, &json!({ "type": "message", "role": "user", "content": content }));
    }
}

fn assistant(out: &mut Vec<u8>, turn: &Turn, told: (SentIds<'_>, bool)) {
    // Thoughts come in pieces; the signature at their end makes them one item.
    let mut thought = String::new();
    for piece in pieces(turn) {
        match piece {
            MessagePiece::Text { text, .. } if !text.is_empty() => {
                let content = [json!({ "type": "output_text", "text": text })];
                push_item(out, &json!({ "type": "message", "role": "assistant", "content": content }));
            }
            MessagePiece::Thought { text, signature } => {
                thought.push_str(text);
                let ours = signature.map(|it| provider_limits::unsign(SIGNER, it));
                if let Some(encrypted) = ours {
                    let summary = std::mem::take(&mut thought);
                    encrypted.into_iter().for_each(|it| push_item(out, &reasoning_item(&summary, it)));
                }
            }
            MessagePiece::Call { call, .. } => push_item(out, &call_item(call, told)),
            _ => (),
        }
    }
}

fn call_item(call: &ToolCall, (ids, has_patches): (SentIds<'_>, bool)) -> Value {
    let (id, arguments) = (ids.sent(call.id.as_str()), provider_limits::arguments(&call.args));
    match &*call.name {
        PATCH_OPERATION => {
            json!({ "type": "apply_patch_call", "call_id": id, "status": "completed", "operation": arguments })
        }
        APPLY_PATCH if has_patches => {
            let text = patch::text_of(&call.args).or(call.args.as_str());
            let input = text.map_or_else(|| arguments.to_string(), str::to_owned);
            json!({ "type": "custom_tool_call", "call_id": id, "name": APPLY_PATCH, "input": input })
        }
        name => json!({
            "type": "function_call",
            "call_id": id,
            "name": provider_limits::tool_name(name),
            "arguments": arguments.to_string(),
        }),
    }
}

fn reasoning_item(summary: &str, encrypted: &str) -> Value {
    let summary: Vec<Value> = match summary.is_empty() {
        true => Vec::new(),
        false => vec![json!({ "type": "summary_text", "text": summary })],
    };
    json!({ "type": "reasoning", "summary": summary, "encrypted_content": encrypted })
}

fn results(out: &mut Vec<u8>, turn: &Turn, told: (SentIds<'_>, bool)) {
    for piece in pieces(turn) {
        if let MessagePiece::Result(it) = piece {
            push_item(out, &result(it, told));
        }
    }
    // What is said beside them.
    user(out, turn);
}

fn result(it: &CallResult, (ids, has_patches): (SentIds<'_>, bool)) -> Value {
    let (blobs, text) = split_output(&it.content);
    let text = if it.is_error { format!("Error: {text}") } else { text };
    let output = match blobs.is_empty() {
        true => Value::from(text),
        false => std::iter::once(input_text(&text)).chain(blobs.into_iter().map(media)).collect(),
    };
    let id = ids.sent(it.id.as_str());
    let kind = match &*it.name {
        PATCH_OPERATION => {
            let status = if it.is_error { "failed" } else { "completed" };
            return json!({ "type": "apply_patch_call_output", "call_id": id, "status": status, "output": output });
        }
        APPLY_PATCH if has_patches => "custom_tool_call_output",
        _ => "function_call_output",
    };
    json!({ "type": kind, "call_id": id, "output": output })
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
