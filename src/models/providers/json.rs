//! JSON writer for large requests, piece by piece.

use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

use castor_base::{tool::ToolSpec, tool_offer::ToolOffer};

/// Appends one element of a list.
pub fn push_item(out: &mut Vec<u8>, value: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    push_value(out, value);
}

/// Appends `,"name":value`, or without the comma at the beginning of an object.
pub fn push_member(out: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    push_written(out, name, &[]);
    push_value(out, value);
}

/// Appends the members that have a value.
pub fn push_members(out: &mut Vec<u8>, members: &[(&str, Option<Value>)]) {
    for (name, value) in members.iter().filter_map(|(name, it)| Some((name, it.as_ref()?))) {
        push_member(out, name, value);
    }
}

/// Appends a list of messages, each with a role and the parts that are written already, and the end of the body. Turns of
/// one role in a row become one message. `list`: what the provider calls the parts.
pub fn push_messages(out: &mut Vec<u8>, turns: &[(&str, Bytes)], list: &str) {
    // 40 bytes hold what surrounds the parts of a message.
    out.reserve(64 + turns.iter().map(|(_, it)| it.len() + 40).sum::<usize>());
    out.push(b'[');
    let mut open = None;
    for (role, parts) in turns {
        if open == Some(role) {
            out.push(b',');
        } else {
            let end_of_last = if open.is_some() { "]}," } else { "" };
            let begin = [end_of_last, r#"{"role":""#, role, r#"",""#, list, r#"":["#];
            begin.iter().for_each(|it| out.extend_from_slice(it.as_bytes()));
        }
        out.extend_from_slice(parts);
        open = Some(role);
    }
    out.extend_from_slice(if open.is_some() { b"]}]}" } else { b"]}" });
}

/// Appends elements that are written already, with commas between; empty ones are none.
pub fn push_list<'a>(out: &mut Vec<u8>, written: impl Iterator<Item = &'a Bytes>) {
    for (at, it) in written.filter(|it| !it.is_empty()).enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(it);
    }
}

/// Appends `,"name":` and a value that is written already, in pieces.
pub fn push_written(out: &mut Vec<u8>, name: &str, pieces: &[&[u8]]) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    push_value(out, &name);
    out.push(b':');
    pieces.iter().for_each(|it| out.extend_from_slice(it));
}

/// All tools, each written by `push`, with commas between. They are kept: `push` goes by the tool alone.
pub fn encode_tools(tools: &ToolOffer, dialect: &'static str, push: fn(&mut Vec<u8>, &ToolSpec)) -> Bytes {
    tools.encoded(dialect, |tools| {
        let mut out = Vec::new();
        tools.iter().for_each(|it| push(&mut out, it));
        out.into_boxed_slice().into()
    })
}

pub fn push_value(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory cannot fail, and all our maps have text keys.
    let _ = serde_json::to_writer(out, value);
}
