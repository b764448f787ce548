//! JSON writer for large requests, piece by piece.

use bytes::Bytes;
use serde::Serialize;

/// Appends one element of a list.
pub fn push_item(out: &mut Vec<u8>, value: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    push_value(out, value);
}

/// Appends `,"name":value`, or without the comma at the beginning of an object.
pub fn push_member(out: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    push_value(out, &name);
    out.push(b':');
    push_value(out, value);
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

pub fn push_value(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory cannot fail, and all our maps have text keys.
    let _ = serde_json::to_writer(out, value);
}
