//! Pseudo calls: castor's own questions, shown to the client as tool calls that the model never sees.

use serde_json::{Map, Value, json};

use crate::{
    base::{
        content::Part,
        event::{EventKind, ToolDisplay},
        ids::CallId,
        tool::{ToolError, ToolKind},
    },
    engine::record::{COMMAND_META, Step},
};

/// A kind of question.
#[derive(Clone, Copy, Debug)]
pub(super) struct PseudoCallKind {
    /// The call's.
    pub name: &'static str,
    /// The kind of error that a no is.
    pub error: &'static str,
}

impl PseudoCallKind {
    pub fn announce(self, step: &mut Step<'_>, title: String) -> CallId {
        let call = CallId::from(step.fresh_id("q"));
        let display = ToolDisplay { title, kind: ToolKind::Other, locations: Vec::new() };
        let (request_id, name) = (call.clone(), self.name.to_owned());
        step.emit_event_with(
            EventKind::ToolRequest { request_id, name, args: json!({}), display, signature: None },
            ours(),
        );
        call
    }

    pub fn end(self, step: &mut Step<'_>, call: &CallId, text: &str, failed: bool) {
        let response = EventKind::ToolResponse {
            request_id: call.clone(),
            name: self.name.to_owned(),
            content: vec![Part::text(text)],
            display: None,
            summary: None,
            error: failed.then(|| ToolError::new(self.error, text)),
            data: Value::Null,
            seen: None,
        };
        step.emit_event_with(response, ours());
    }
}

fn ours() -> Map<String, Value> {
    Map::from_iter([(COMMAND_META.to_owned(), true.into())])
}
