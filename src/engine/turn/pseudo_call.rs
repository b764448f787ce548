//! Pseudo calls: castor's own questions, shown to the client as tool calls that the model never sees.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    record::{COMMAND_META, Step},
    step::{Effect, QuestionTopic, UserQuestion},
};
use castor_base::{
    content::Part,
    event::{EventKind, ToolDisplay, ToolProgress},
    ids::{CallId, QuestionId},
    question::Form,
    tool::{ToolError, ToolKind},
};

/// A kind of question.
#[derive(Clone, Copy, Debug)]
pub struct PseudoCallKind {
    /// The call's.
    pub name: &'static str,
    /// The kind of error that a no is.
    pub error: &'static str,
}

/// A question that the user has before them, or had.
#[derive(Debug)]
pub struct PseudoCall {
    kind: PseudoCallKind,
    call: CallId,
    question: QuestionId,
}

impl PseudoCallKind {
    /// Asks how to continue with something that does not go well.
    pub fn ask_how(self, step: &mut Step<'_>, title: String, form: Form) -> PseudoCall {
        self.ask(step, title, |call| QuestionTopic::Fallback { call, form: Arc::new(form) })
    }

    pub fn ask(self, step: &mut Step<'_>, title: String, topic: impl FnOnce(CallId) -> QuestionTopic) -> PseudoCall {
        let call = self.show(step, title);
        self.put_question(step, call, topic)
    }

    /// The same, and its events say that the user is waited for.
    pub fn ask_and_wait(
        self,
        step: &mut Step<'_>,
        title: String,
        topic: impl FnOnce(CallId) -> QuestionTopic,
    ) -> PseudoCall {
        let call = self.show(step, title);
        send_progress(step, &call, ToolProgress::Waiting);
        self.put_question(step, call, topic)
    }

    pub fn show(self, step: &mut Step<'_>, title: String) -> CallId {
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

    fn put_question(
        self,
        step: &mut Step<'_>,
        call: CallId,
        topic: impl FnOnce(CallId) -> QuestionTopic,
    ) -> PseudoCall {
        let (id, about) = (step.new_question_id(), topic(call.clone()));
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id, about })));
        PseudoCall { kind: self, call, question: id }
    }
}

fn send_progress(step: &mut Step<'_>, call: &CallId, update: ToolProgress) {
    step.emit_event_with(EventKind::ToolUpdate { request_id: call.clone(), update }, ours());
}

impl PseudoCall {
    pub fn call(&self) -> &CallId {
        &self.call
    }

    pub fn is_about(&self, question: QuestionId) -> bool {
        self.question == question
    }

    /// Its events say that the user is not waited for any more.
    pub fn resume(&self, step: &mut Step<'_>) {
        send_progress(step, &self.call, ToolProgress::Resumed);
    }

    /// Nobody waits for the answer any more.
    pub fn withdraw(&self, step: &mut Step<'_>, text: &str) {
        step.start_effect(Effect::WithdrawQuestion { question: self.question });
        self.end(step, text, true);
    }

    pub fn end(&self, step: &mut Step<'_>, text: &str, failed: bool) {
        self.kind.end(step, &self.call, text, failed);
    }
}

fn ours() -> Map<String, Value> {
    Map::from_iter([(COMMAND_META.to_owned(), true.into())])
}
