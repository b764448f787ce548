//! Model requests and responses in the JSON that hooks see: text only, no provider's words. What they change of a request
//! goes to the model, and nowhere else: the conversation stays as it is.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use castor_base::{
    content::{Part, joined_text},
    history::{Role, Turn, TurnPart},
    model::{Chunk, Finish, ModelRequest, Usage},
};

/// `llm_request`. Turns without text are left out; results of tools have a list of their own.
pub fn request_json(it: &ModelRequest) -> Value {
    let said = it.contents.iter().filter_map(|it| Some((it.role(), text_of(it)?)));
    let messages: Vec<Value> = said.map(|(role, text)| json!({ "role": word_of(role), "content": text })).collect();
    let mut config = Map::new();
    let mut put = |name: &str, value: Option<Value>| _ = value.map(|it| config.insert(name.to_owned(), it));
    put("temperature", it.params.temperature.map(Into::into));
    put("maxOutputTokens", it.params.max_output_tokens.map(Into::into));
    put("topP", it.params.top_p.map(Into::into));
    put("topK", it.params.top_k.map(Into::into));
    let mut res = json!({ "model": &*it.model, "messages": messages, "config": config });
    let results = it.contents.iter().flat_map(|it| it.parts()).filter_map(|it| match it {
        TurnPart::Result(it) => Some(json!({ "id": it.id, "name": it.name, "content": joined_text(&it.content) })),
        _ => None,
    });
    let results: Vec<Value> = results.collect();
    if let (Some(members), false) = (res.as_object_mut(), results.is_empty()) {
        members.insert("tool_results".to_owned(), results.into());
    }
    res
}

fn word_of(role: Role) -> &'static str {
    match role {
        Role::Model => "model",
        Role::User | Role::Tool => "user",
    }
}

fn is_text(it: &TurnPart) -> bool {
    matches!(it, TurnPart::Content(Part::Text { .. }))
}

fn text_of(turn: &Turn) -> Option<String> {
    let texts = turn.parts().iter().filter_map(|it| match it {
        TurnPart::Content(Part::Text { text, .. }) => Some(text.as_str()),
        _ => None,
    });
    let text: String = texts.collect();
    (!text.is_empty()).then_some(text)
}

/// Puts a changed `llm_request` into the request: the text of the n-th message into the n-th turn that has text; what
/// is more follows; what else a turn has stays behind its text. The model is the caller's matter.
pub fn apply_change(request: &mut ModelRequest, said: &Map<String, Value>) {
    if let Some(messages) = said.get("messages").and_then(Value::as_array) {
        let mut messages = messages.iter().filter_map(read_message).collect::<Vec<_>>().into_iter();
        for turn in request.contents.iter_mut().filter(|it| text_of(it).is_some()) {
            let Some((_, text)) = messages.next() else { break };
            if text_of(turn).as_deref() != Some(text.as_str()) {
                let mut changed = Turn::clone(turn);
                let parts = changed.parts_mut();
                parts.retain(|it| !is_text(it));
                // Providers want results first.
                let at = if turn.role() == Role::Tool { parts.len() } else { 0 };
                parts.insert(at, TurnPart::Content(Part::text(text)));
                *turn = Arc::new(changed);
            }
        }
        for (role, text) in messages {
            let mut turn = Turn::new(role);
            turn.parts_mut().push(TurnPart::Content(Part::text(text)));
            request.contents.push(Arc::new(turn));
        }
    }
    for it in said.get("tool_results").and_then(Value::as_array).into_iter().flatten() {
        let id = it.get("id").and_then(Value::as_str);
        if let (Some(id), Some((_, text))) = (id, read_message(it)) {
            request.contents.iter_mut().for_each(|turn| replace_result(turn, id, &text));
        }
    }
    let Some(config) = said.get("config").and_then(Value::as_object) else { return };
    let number = |name: &str| config.get(name).and_then(Value::as_f64).filter(|it| it.is_finite());
    let count = |name: &str| config.get(name).and_then(Value::as_u64).and_then(|it| u32::try_from(it).ok());
    let params = &mut request.params;
    params.temperature = number("temperature").or(params.temperature);
    params.top_p = number("topP").or(params.top_p);
    params.top_k = count("topK").or(params.top_k);
    params.max_output_tokens = count("maxOutputTokens").or(params.max_output_tokens);
}

/// Puts another text into the result of that call; what else the result has stays behind it.
fn replace_result(turn: &mut Arc<Turn>, id: &str, text: &str) {
    let is_it =
        |it: &TurnPart| matches!(it, TurnPart::Result(it) if it.id.as_str() == id && joined_text(&it.content) != text);
    if !turn.parts().iter().any(is_it) {
        return;
    }
    let mut changed = Turn::clone(turn);
    for part in changed.parts_mut().iter_mut().filter(|it| is_it(it)) {
        let TurnPart::Result(result) = part else { continue };
        result.content.retain(|it| it.as_text().is_none());
        result.content.insert(0, Part::text(text));
    }
    *turn = Arc::new(changed);
}

fn read_message(it: &Value) -> Option<(Role, String)> {
    let role = if it.get("role").and_then(Value::as_str) == Some("model") { Role::Model } else { Role::User };
    let content = it.get("content")?;
    let text = match content {
        Value::String(it) => it.clone(),
        Value::Array(parts) => parts.iter().filter_map(part_text).collect(),
        _ => return None,
    };
    Some((role, text))
}

fn part_text(it: &Value) -> Option<&str> {
    it.as_str().or_else(|| it.get("text")?.as_str())
}

/// `llm_response`, of a whole answer.
pub fn response_json(chunks: &[Chunk]) -> Value {
    let text: String = chunks.iter().filter_map(text_chunk).collect();
    let finish = chunks.iter().rev().find_map(|it| match it {
        Chunk::Finish(it) => Some(finish_word(it)),
        _ => None,
    });
    let usage = chunks.iter().rev().find_map(|it| match it {
        Chunk::Usage(it) => Some(*it),
        _ => None,
    });
    let parts = if text.is_empty() { Vec::new() } else { vec![text.clone()] };
    let content = json!({ "role": "model", "parts": parts });
    let candidate = match finish {
        Some(word) => json!({ "content": content, "index": 0, "finishReason": word }),
        None => json!({ "content": content, "index": 0 }),
    };
    let Some(Usage { input, output, total, .. }) = usage else {
        return json!({ "text": text, "candidates": [candidate] });
    };
    let usage = json!({ "promptTokenCount": input, "candidatesTokenCount": output, "totalTokenCount": total });
    json!({ "text": text, "candidates": [candidate], "usageMetadata": usage })
}

fn text_chunk(it: &Chunk) -> Option<&str> {
    match it {
        Chunk::Text { text, .. } => Some(text),
        _ => None,
    }
}

fn finish_word(it: &Finish) -> &str {
    match it {
        Finish::Stop => "STOP",
        Finish::MaxTokens => "MAX_TOKENS",
        Finish::MalformedCall => "MALFORMED_FUNCTION_CALL",
        Finish::UnexpectedCall => "UNEXPECTED_TOOL_CALL",
        Finish::Safety(word) | Finish::Other(word) => word,
    }
}

/// The text of a changed `llm_response`: of its candidate, else of `text`. `None`: it says nothing, so nothing changes.
pub fn response_text(said: &Map<String, Value>) -> Option<String> {
    let Some(candidates) = said.get("candidates") else {
        return said.get("text").and_then(Value::as_str).map(str::to_owned);
    };
    let parts = candidates.get(0)?.get("content")?.get("parts")?.as_array()?;
    (!parts.is_empty()).then(|| parts.iter().filter_map(part_text).collect())
}

/// The answer with other text; its thoughts, calls and figures stay.
pub fn replace_text(chunks: Vec<Chunk>, text: &str) -> Vec<Chunk> {
    let fresh = Chunk::Text { text: text.to_owned(), signature: None };
    let mut fresh = (!text.is_empty()).then_some(fresh);
    let mut res = Vec::with_capacity(chunks.len() + 1);
    for it in chunks {
        // In the first text's place; without one, before what ends the answer.
        match it {
            Chunk::Text { .. } => res.extend(fresh.take()),
            it @ (Chunk::Call { .. } | Chunk::Finish(_) | Chunk::Usage(_)) => {
                res.extend(fresh.take());
                res.push(it);
            }
            it => res.push(it),
        }
    }
    res.extend(fresh.take());
    res
}
