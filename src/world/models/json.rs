//! JSON that is written piece by piece, since whole requests are too large to be built as values.

use serde::Serialize;

/// Appends one element of a list.
pub fn item(out: &mut Vec<u8>, value: &impl Serialize) {
    if !out.is_empty() {
        out.push(b',');
    }
    put(out, value);
}

/// Appends `,"name":value`, or without the comma at the beginning of an object.
pub fn member(out: &mut Vec<u8>, name: &str, value: &impl Serialize) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
    put(out, &name);
    out.push(b':');
    put(out, value);
}

pub fn put(out: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory cannot fail, and all our maps have text keys.
    let _ = serde_json::to_writer(out, value);
}
