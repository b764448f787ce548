//! Requests of OpenAI's chat completions API. Messages come last, so that prompt caches match.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::response::reasoning::ThoughtMember;
use crate::providers::{
    call_ids::SentIds,
    json::{encode_tools, push_item, push_list, push_member, push_members, push_written},
    legal_answer,
    legal_schema::{COMPATIBLE, OPENAI, SchemaRules, legalize},
    message_pieces::{Blob, MessagePiece, pieces, split_output, user_content},
    provider_limits,
};
use castor_base::{
    history::{Role, Turn},
    model::{ModelRequest, Thinking},
    model_table::{Parameter, row::CallIds},
    tool::{CallResult, ToolCall, ToolSpec},
};

/// The whole body of a request. `signer`: whose marks on thoughts are sent back.
pub fn body(request: &ModelRequest, newest: bool, signer: &str) -> Vec<u8> {
    let counts_calls = request.traits.call_ids == CallIds::Counted;
    let turns = SentIds::of_turns(request.contents.iter().map(|it| &**it), signer, counts_calls);
    let encoded = |(it, ids): (&Turn, SentIds<'_>)| {
        it.encoded_at(dialect(it, ids), ids.native.unwrap_or_default(), |it| messages(it, ids))
    };
    let messages: Vec<Bytes> = turns.map(encoded).collect();
    let mut out = head(request, newest);
    out.reserve(messages.iter().map(|it| it.len() + 1).sum::<usize>() + request.system.len() + 64);
    out.extend_from_slice(br#","messages":["#);
    let system = (!request.system.is_empty()).then(|| {
        let mut out = Vec::new();
        push_item(&mut out, &json!({ "role": "system", "content": &*request.system }));
        Bytes::from(out)
    });
    push_list(&mut out, system.iter().chain(&messages));
    out.extend_from_slice(b"]}");
    out
}

/// What comes before the messages; nothing here changes from turn to turn.
fn head(request: &ModelRequest, newest: bool) -> Vec<u8> {
    let mut out = vec![b'{'];
    let params = &request.params;
    push_member(&mut out, "model", &&*request.model);
    push_member(&mut out, "stream", &true);
    let refused = request.traits.refused;
    if !refused.has(Parameter::StreamOptions) {
        push_member(&mut out, "stream_options", &json!({ "include_usage": true }));
    }
    let is_new_name = newest != refused.has(Parameter::MaxTokensName);
    let limit = if is_new_name { "max_completion_tokens" } else { "max_tokens" };
    // Some take no word for thinking beside tools, in this dialect.
    let takes_effort =
        request.tools.is_empty() || !(refused.has(Parameter::ChatTools) || refused.has(Parameter::ChatToolsWithEffort));
    let effort = params.thinking.as_ref().filter(|_| takes_effort).and_then(|it| match it {
        Thinking::Level(level) => Some(level.to_lowercase()),
        // Servers of this kind know no budgets; leaving it out is their own choice.
        Thinking::Budget(_) => None,
    });
    let fields = [
        ("temperature", params.temperature.map(Value::from)),
        ("top_p", params.top_p.map(Value::from)),
        (limit, params.max_output_tokens.map(Value::from)),
        ("reasoning_effort", effort.map(Value::from)),
        ("stop", (!params.stop.is_empty()).then(|| Value::from(params.stop.clone()))),
        ("response_format", params.schema.as_deref().and_then(|it| format(it, newest))),
    ];
    push_members(&mut out, &fields);
    if !request.tools.is_empty() {
        let tools = match newest {
            true => encode_tools(&request.tools, "openai", |out, it| push_item(out, &tool(it, &OPENAI))),
            false => encode_tools(&request.tools, "chat", |out, it| push_item(out, &tool(it, &COMPATIBLE))),
        };
        push_written(&mut out, "tools", &[b"[", &tools, b"]"]);
    }
    out
}

fn format(schema: &Value, newest: bool) -> Option<Value> {
    let (schema, strict) = legal_answer::of_openai(schema, newest)?;
    let format = json!({ "name": "answer", "strict": strict, "schema": schema });
    Some(json!({ "type": "json_schema", "json_schema": format }))
}

fn tool(it: &ToolSpec, rules: &SchemaRules) -> Value {
    let (name, parameters) = (provider_limits::tool_name(&it.name), legalize(&it.parameters, rules).value);
    json!({
        "type": "function",
        "function": { "name": name, "description": it.description, "parameters": parameters },
    })
}

/// A turn has marks of one provider at most: all others get the same bytes.
fn dialect(turn: &Turn, ids: SentIds<'_>) -> &'static str {
    let is_own = |it: &MessagePiece<'_>| match it {
        MessagePiece::Thought { signature: Some(it), .. } => provider_limits::unsign(ids.signer, it).is_some(),
        _ => false,
    };
    let is_own = pieces(turn).iter().any(is_own) || turn.role() != Role::User && ids.has_own();
    match (ids.native, is_own) {
        (None, false) => "chat",
        (None, true) => "chat-own",
        (Some(_), false) => "chat-native",
        (Some(_), true) => "chat-native-own",
    }
}

/// The messages of one turn, with commas between; empty where nothing of it goes to the model.
fn messages(turn: &Turn, ids: SentIds<'_>) -> Bytes {
    let mut out = Vec::new();
    match turn.role() {
        Role::User => user(&mut out, turn),
        Role::Model => assistant(&mut out, turn, ids),
        Role::Tool => results(&mut out, turn, ids),
    }
    out.into()
}

fn user(out: &mut Vec<u8>, turn: &Turn) {
    user_message(out, user_content(turn, |it| json!({ "type": "text", "text": it }), media));
}

/// A message of the user, where there is something in it.
fn user_message(out: &mut Vec<u8>, content: Vec<Value>) {
    let only = match &*content {
        [] => return,
        [one] => one.get("text").cloned(),
        _ => None,
    };
    // Small servers read a plain text only.
    push_item(out, &json!({ "role": "user", "content": only.unwrap_or(Value::Array(content)) }));
}

fn media(it: Blob<'_>) -> Value {
    let format = match it.mime {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    };
    match format {
        Some(format) => json!({ "type": "input_audio", "input_audio": { "data": it.data, "format": format } }),
        None if it.mime.starts_with("image/") => {
            json!({ "type": "image_url", "image_url": { "url": it.data_url() } })
        }
        None => json!({ "type": "file", "file": { "filename": "file", "file_data": it.data_url() } }),
    }
}

fn assistant(out: &mut Vec<u8>, turn: &Turn, ids: SentIds<'_>) {
    let (mut content, mut thought) = (String::new(), String::new());
    let mut calls = Vec::new();
    let mut mark = None;
    for piece in pieces(turn) {
        match piece {
            MessagePiece::Text { text, .. } => content.push_str(&text),
            MessagePiece::Call { call, .. } => calls.push(tool_call(call, ids)),
            MessagePiece::Thought { text, signature } => {
                thought.push_str(text);
                mark = signature.and_then(|it| provider_limits::unsign(ids.signer, it)).or(mark);
            }
            _ => (),
        }
    }
    let said = (!content.is_empty()).then_some(content);
    if said.is_none() && calls.is_empty() {
        return;
    }
    let mut message = Map::from_iter([("role".to_owned(), "assistant".into()), ("content".to_owned(), said.into())]);
    let mut set = |key: &str, value: Value| _ = message.insert(key.to_owned(), value);
    match mark {
        // Thoughts of one request are mostly of no use to the next, and some servers refuse them.
        None => (),
        Some(mark) => match ThoughtMember::from_mark(mark) {
            None => set("reasoning_details", serde_json::from_str(mark).unwrap_or_default()),
            // Servers that send them plainly want them back beside calls, the empty ones too.
            Some(it) if !calls.is_empty() => set(it.name(), thought.into()),
            Some(_) => (),
        },
    }
    if !calls.is_empty() {
        set("tool_calls", calls.into());
    }
    push_item(out, &message);
}

fn tool_call(call: &ToolCall, ids: SentIds<'_>) -> Value {
    let arguments = provider_limits::arguments(&call.args).to_string();
    json!({
        "id": ids.sent(call.id.as_str()),
        "type": "function",
        "function": { "name": provider_limits::tool_name(&call.name), "arguments": arguments },
    })
}

/// One message for each result; what of them is no text, and what is said beside them, comes in a message of the user
/// behind all of them.
fn results(out: &mut Vec<u8>, turn: &Turn, ids: SentIds<'_>) {
    let mut seen: Vec<Value> = Vec::new();
    for piece in pieces(turn) {
        let it = match piece {
            MessagePiece::Result(it) => it,
            MessagePiece::Text { text, .. } => {
                seen.push(json!({ "type": "text", "text": text }));
                continue;
            }
            _ => continue,
        };
        let (blobs, text) = split_output(&it.content);
        push_item(out, &result(it, &text, ids));
        if !blobs.is_empty() {
            seen.push(json!({ "type": "text", "text": format!("What {} gave:", it.name) }));
            seen.extend(blobs.into_iter().map(media));
        }
    }
    user_message(out, seen);
}

fn result(it: &CallResult, text: &str, ids: SentIds<'_>) -> Value {
    let content = if it.is_error { format!("Error: {text}") } else { text.to_owned() };
    json!({ "role": "tool", "tool_call_id": ids.sent(it.id.as_str()), "content": content })
}
