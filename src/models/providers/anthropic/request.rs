//! Requests of Anthropic's Messages API. Messages come last, so that prompt caches match.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::{ANSWER, HIDDEN_SIGNER, SIGNER};
use crate::providers::{
    call_ids::SentIds,
    json::{encode_tools, push_item, push_member, push_members, push_messages, push_written},
    legal_answer,
    legal_schema::{ANTHROPIC, legalize},
    message_pieces::{Blob, MessagePiece, pieces, split_output},
    provider_limits,
};
use castor_base::{
    history::{Role, Turn},
    model::{ModelParams, ModelRequest, Thinking},
    model_table::{
        Parameter,
        row::StructuredOutput,
        thinking::{ThinkingKind, budget_of},
    },
    tool::{CallResult, ToolSpec},
    tool_offer::ToolOffer,
};

/// The default limit of an answer in tokens: the API requires one.
const MAX_TOKENS: u32 = 32_000;
/// What every model gives, where another limit was refused.
const LEAST_MAX_TOKENS: u32 = 4_096;
/// The least that the API takes as a budget for thoughts, in tokens.
const MIN_BUDGET: u32 = 1_024;

/// The whole body of a request.
pub fn body(request: &ModelRequest) -> Vec<u8> {
    let turns = SentIds::of_turns(request.contents.iter().map(|it| &**it), SIGNER, false);
    let turns: Vec<(&'static str, Bytes)> = turns
        .map(|(it, ids)| (role(it.role()), it.encoded("anthropic", |it| blocks(it, ids))))
        .filter(|(_, blocks)| !blocks.is_empty())
        .collect();
    let mut out = head(request);
    out.extend_from_slice(br#","messages":"#);
    push_messages(&mut out, &turns, "content");
    out
}

/// What comes before the messages; nothing here changes from turn to turn.
fn head(request: &ModelRequest) -> Vec<u8> {
    let mut out = vec![b'{'];
    let params = &request.params;
    let max_tokens = match request.traits.refused.has(Parameter::MaxOutputTokens) {
        true => LEAST_MAX_TOKENS,
        false => params.max_output_tokens.unwrap_or(MAX_TOKENS.min(request.traits.max_output.unwrap_or(MAX_TOKENS))),
    };
    push_member(&mut out, "model", &&*request.model);
    push_member(&mut out, "max_tokens", &max_tokens);
    push_member(&mut out, "stream", &true);
    // The last block that can be kept is: of the history, too.
    let kept = (!request.traits.refused.has(Parameter::CacheControl)).then(|| json!({ "type": "ephemeral" }));
    kept.iter().for_each(|it| push_member(&mut out, "cache_control", it));
    // Nobody who thinks can be made to call a tool.
    let shape = forced_shape(request);
    let thinking = thinking(params, request.traits.thinking, max_tokens).filter(|_| shape.is_none());
    // The API takes no temperature beside thoughts.
    let temperature = params.temperature.filter(|_| thinking.is_none());
    let top_p = params.top_p.filter(|_| thinking.is_none() && temperature.is_none());
    let system = json!({ "type": "text", "text": &*request.system });
    let system = match (system, kept) {
        (Value::Object(mut it), Some(kept)) => {
            it.insert("cache_control".to_owned(), kept);
            json!([it])
        }
        (it, _) => json!([it]),
    };
    let fields = [
        ("temperature", temperature.map(Value::from)),
        ("top_p", top_p.map(Value::from)),
        // Neither does it take this one.
        ("top_k", params.top_k.filter(|_| thinking.is_none()).map(Value::from)),
        ("stop_sequences", (!params.stop.is_empty()).then(|| Value::from(params.stop.clone()))),
        ("output_config", output_config(request)),
        ("thinking", thinking),
        ("tool_choice", shape.map(|_| json!({ "type": "tool", "name": ANSWER }))),
        ("system", (!request.system.is_empty()).then_some(system)),
    ];
    push_members(&mut out, &fields);
    push_tools(&mut out, &request.tools, shape);
    out
}

/// The form that the model itself is held to, and how hard it works.
fn output_config(request: &ModelRequest) -> Option<Value> {
    let format = format(request).map(|it| ("format".to_owned(), json!({ "type": "json_schema", "schema": it })));
    let effort = effort(&request.params, request.traits.thinking).map(|it| ("effort".to_owned(), it));
    let all: Map<String, Value> = effort.into_iter().chain(format).collect();
    (!all.is_empty()).then_some(Value::Object(all))
}

fn format(request: &ModelRequest) -> Option<Value> {
    let schema = request.params.schema.as_deref();
    schema.filter(|_| request.traits.structured == StructuredOutput::Yes).and_then(legal_answer::of_anthropic)
}

/// The answer's form, where a tool that has to be called takes it: beside other tools none could be used any more.
pub fn forced_shape(request: &ModelRequest) -> Option<&Value> {
    request.params.schema.as_deref().filter(|_| request.tools.is_empty() && format(request).is_none())
}

/// Some models decide by themselves how long to think; others want a budget.
fn thinking(params: &ModelParams, kind: ThinkingKind, max_tokens: u32) -> Option<Value> {
    let budget = match params.thinking.as_ref()? {
        Thinking::Budget(0) => return None,
        Thinking::Budget(it) => u32::try_from(*it).ok(),
        Thinking::Level(word) => budget_of(word).and_then(|it| u32::try_from(it).ok()),
    };
    if kind == ThinkingKind::Adaptive {
        let display = if params.include_thoughts { "summarized" } else { "omitted" };
        return Some(json!({ "type": "adaptive", "display": display }));
    }
    // Thoughts and answer share the limit.
    let most = max_tokens.saturating_sub(MIN_BUDGET);
    let budget = budget.unwrap_or(most / 2).min(most);
    (budget >= MIN_BUDGET).then(|| json!({ "type": "enabled", "budget_tokens": budget }))
}

fn effort(params: &ModelParams, kind: ThinkingKind) -> Option<Value> {
    match &params.thinking {
        Some(Thinking::Level(word)) if kind == ThinkingKind::Adaptive => Some(word.as_str().into()),
        _ => None,
    }
}

fn tool(it: &ToolSpec) -> Value {
    let (name, schema) = (provider_limits::tool_name(&it.name), legalize(&it.parameters, &ANTHROPIC).value);
    json!({ "name": name, "description": it.description, "input_schema": schema })
}

/// Appends the tools, and that which takes an answer of this shape.
fn push_tools(out: &mut Vec<u8>, tools: &ToolOffer, shape: Option<&Value>) {
    let tools = encode_tools(tools, "anthropic", |out, it| push_item(out, &tool(it)));
    let mut last = Vec::new();
    shape.into_iter().for_each(|it| push_item(&mut last, &output_format(it)));
    let comma = if tools.is_empty() || last.is_empty() { "" } else { "," };
    if !(tools.is_empty() && last.is_empty()) {
        push_written(out, "tools", &[b"[", &tools, comma.as_bytes(), &last, b"]"]);
    }
}

/// The tool that takes an answer of this shape.
fn output_format(shape: &Value) -> Value {
    json!({ "name": ANSWER, "description": "Takes your answer.", "input_schema": legalize(shape, &ANTHROPIC).value })
}

/// Results are the user's here.
fn role(role: Role) -> &'static str {
    match role {
        Role::User | Role::Tool => "user",
        Role::Model => "assistant",
    }
}

/// The blocks of a turn, with commas between; empty where nothing of it goes to the model.
fn blocks(turn: &Turn, ids: SentIds<'_>) -> Bytes {
    let mut out = Vec::new();
    // Thoughts come in pieces; the signature at their end makes them one block.
    let mut thought = String::new();
    for piece in pieces(turn) {
        match piece {
            MessagePiece::Text { text, .. } if text.trim().is_empty() => (),
            MessagePiece::Text { text, .. } => push_item(&mut out, &json!({ "type": "text", "text": text })),
            MessagePiece::Thought { text, signature } => {
                thought.push_str(text);
                if let Some(signature) = signature {
                    thinking_block(&mut out, &std::mem::take(&mut thought), signature);
                }
            }
            MessagePiece::Blob(it) => push_item(&mut out, &media(it)),
            MessagePiece::Call { call, .. } => push_item(
                &mut out,
                &json!({
                    "type": "tool_use",
                    "id": ids.sent(call.id.as_str()),
                    "name": provider_limits::tool_name(&call.name),
                    "input": provider_limits::arguments(&call.args),
                }),
            ),
            MessagePiece::Result(it) => push_item(&mut out, &result(it, ids)),
        }
    }
    out.into()
}

/// Thoughts without a signature of this provider's would be refused, and are left out.
fn thinking_block(out: &mut Vec<u8>, thought: &str, signature: &str) {
    if let Some(signature) = provider_limits::unsign(SIGNER, signature) {
        push_item(out, &json!({ "type": "thinking", "thinking": thought, "signature": signature }));
    } else if let Some(data) = provider_limits::unsign(HIDDEN_SIGNER, signature) {
        push_item(out, &json!({ "type": "redacted_thinking", "data": data }));
    }
}

fn media(it: Blob<'_>) -> Value {
    let source = json!({ "type": "base64", "media_type": it.mime, "data": it.data });
    match it.mime {
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => json!({ "type": "image", "source": source }),
        "application/pdf" => json!({ "type": "document", "source": source }),
        other => json!({ "type": "text", "text": format!("[{other}: this model cannot take it]") }),
    }
}

fn result(it: &CallResult, ids: SentIds<'_>) -> Value {
    let (blobs, text) = split_output(&it.content);
    let text = (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }));
    let content: Vec<Value> = text.into_iter().chain(blobs.into_iter().map(media)).collect();
    json!({
        "type": "tool_result",
        "tool_use_id": ids.sent(it.id.as_str()),
        "content": content,
        "is_error": it.is_error,
    })
}
