//! Messages that an agent sends on its own, as the connection brings them.

use serde_json::value::RawValue;

#[derive(Debug)]
pub enum Incoming {
    /// No answer is wanted.
    Notification { method: String, params: Box<RawValue> },
    /// It waits for an answer with this id.
    Request { id: Box<RawValue>, method: String, params: Box<RawValue> },
    /// A line that is no message, cut short.
    Noise(String),
}
