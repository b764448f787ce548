//! Pseudo calls: castor's own questions, shown to the client as tool calls that the model never sees.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    base::{
        content::Part,
        event::{EventKind, ToolDisplay},
        ids::{CallId, QuestionId},
        question::Form,
        tool::{ToolError, ToolKind},
    },
    engine::{
        record::{COMMAND_META, Step},
        step::{Effect, QuestionTopic, UserQuestion},
    },
};

/// A kind of question.
#[derive(Clone, Copy, Debug)]
pub(super) struct PseudoCallKind {
    /// The call's.
    pub name: &'static str,
    /// The kind of error that a no is.
    pub error: &'static str,
    pub topic: fn(CallId, Arc<Form>) -> QuestionTopic,
}

/// A question that the user has before them, or had.
#[derive(Debug)]
pub(super) struct PseudoCall {
    kind: PseudoCallKind,
    call: CallId,
    question: QuestionId,
}

impl PseudoCallKind {
    /// How to continue with something that does not go well.
    pub const fn fallback(name: &'static str, error: &'static str) -> Self {
        Self { name, error, topic: |call, form| QuestionTopic::Fallback { call, form } }
    }

    pub fn ask(self, step: &mut Step<'_>, title: String, form: impl Into<Arc<Form>>) -> PseudoCall {
        let call = CallId::from(step.fresh_id("q"));
        let display = ToolDisplay { title, kind: ToolKind::Other, locations: Vec::new() };
        let (request_id, name) = (call.clone(), self.name.to_owned());
        step.emit_event_with(
            EventKind::ToolRequest { request_id, name, args: json!({}), display, signature: None },
            ours(),
        );
        let (id, about) = (step.new_question_id(), (self.topic)(call.clone(), form.into()));
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id, about })));
        PseudoCall { kind: self, call, question: id }
    }
}

impl PseudoCall {
    pub fn is_about(&self, question: QuestionId) -> bool {
        self.question == question
    }

    /// Nobody waits for the answer any more.
    pub fn withdraw(&self, step: &mut Step<'_>, text: &str) {
        step.start_effect(Effect::WithdrawQuestion { question: self.question });
        self.end(step, text, true);
    }

    pub fn end(&self, step: &mut Step<'_>, text: &str, failed: bool) {
        let response = EventKind::ToolResponse {
            request_id: self.call.clone(),
            name: self.kind.name.to_owned(),
            content: vec![Part::text(text)],
            display: None,
            summary: None,
            error: failed.then(|| ToolError::new(self.kind.error, text)),
            data: Value::Null,
            seen: None,
        };
        step.emit_event_with(response, ours());
    }
}

fn ours() -> Map<String, Value> {
    Map::from_iter([(COMMAND_META.to_owned(), true.into())])
}
