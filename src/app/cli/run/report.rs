//! The JSON object of `castor run -o json`: answer, spent tokens and how it ended.

use std::time::Duration;

use serde_json::{Value, json};

use super::{calls::CallTracker, failure::Failure};

/// Facts for the report, as they come in.
#[derive(Debug, Default)]
pub struct Report {
    usage: Value,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    pub session: Option<&'a str>,
    /// The stop reason.
    pub end: &'a Result<String, Failure>,
    pub took: Duration,
}

impl Report {
    /// A `usage_update`.
    pub fn take_usage(&mut self, update: &Value) {
        self.usage.clone_from(update);
    }

    pub fn to_json(&self, end: &RunEnd<'_>, response: String, calls: &CallTracker) -> Value {
        let number = |key: &str| self.usage.get(key).cloned().unwrap_or(Value::Null);
        let millis = u64::try_from(end.took.as_millis()).unwrap_or(u64::MAX);
        let mut object = json!({
            "session_id": end.session,
            "response": response,
            "stop_reason": end.end.as_ref().ok(),
            "stats": {
                "tokens": {"used": number("used"), "size": number("size")},
                "tool_calls": calls.stats(),
                "duration_ms": millis,
            },
        });
        if let (Some(members), Err(failure)) = (object.as_object_mut(), end.end) {
            members.insert("error".to_owned(), failure.to_json());
        }
        object
    }
}
