//! Approval questions: the text and choices that the user sees before castor runs a tool call.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    policy,
    record::Step,
    scheduler::{
        call::{Call, CallState},
        display::{TITLE, describe_grant},
        toolbox::{CallContext, Toolbox},
    },
    session_tools::{is_session_tool, plan},
    step::{Confirmation, Effect, QuestionTopic, UserQuestion},
};
use castor_base::{
    event::{ToolDisplay, ToolProgress},
    log::Grant,
    question::Form,
    text,
    tool::{BaseHash, Display, PolicyClass, ToolKind},
};

/// The reason for a question about a command that nothing else is about.
const NO_RULE: &str = "no rule allows this command";

impl Call {
    /// Asks whether it may run. Where its tool shows what it would do, that is looked at first.
    pub fn ask(&mut self, cx: &mut CallContext<'_, '_>, grant: Option<Grant>) {
        if !self.has_preview(cx.tools) {
            return self.ask_approval(cx, grant, plan::plan_reason(&self.call), None);
        }
        let (call, places, seen) = (self.call.clone(), self.places.clone(), self.seen_files(cx.step));
        let effect = cx.step.start_effect(Effect::Preview { call, places, seen });
        self.state = CallState::Previewing { effect, grant };
    }

    /// A yes to this call alone: whoever read its diff looked at what it writes.
    pub(super) fn allow_once(&mut self, tools: &Toolbox) {
        self.is_looked_at = self.shows_diff(tools);
        self.allow();
    }

    /// Tells whether its question is a diff, and a person reads it.
    fn shows_diff(&self, tools: &Toolbox) -> bool {
        tools.interactive && self.display.kind == ToolKind::Edit && self.has_preview(tools)
    }

    fn has_preview(&self, tools: &Toolbox) -> bool {
        let is_of_world = tools.foreign_tool(&self.call.name).is_none() && !is_session_tool(&self.call.name);
        is_of_world && matches!(self.display.kind, ToolKind::Edit | ToolKind::Execute | ToolKind::SwitchMode)
    }

    pub(super) fn ask_approval(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        grant: Option<Grant>,
        display: Option<Display>,
        base: Option<BaseHash>,
    ) {
        if std::mem::take(&mut self.display_dirty) {
            self.send_progress(cx.step, ToolProgress::Described { display: self.display.clone() });
        }
        if let Some(display) = display.clone() {
            self.send_progress(cx.step, ToolProgress::Proposed { display });
        }
        if self.is_approved_as_edited() {
            self.is_looked_at = self.shows_diff(cx.tools);
            return self.allow_on(base);
        }
        let lasting = grant.as_ref().and_then(|it| cx.tools.persistent_grant(&self.call, it, cx.step.record.mode));
        let lasting = lasting.as_ref().map(policy::persistent_in_words);
        let id = cx.step.new_question_id();
        let about = Confirmation {
            reason: self.reasons(),
            session_grant: grant.as_ref().map(describe_grant),
            persistent_grant: lasting,
            offers_auto: self.offers_auto,
            is_editable: !self.asks_only,
            ..self.confirmation(display)
        };
        let about = QuestionTopic::Confirmation(about);
        cx.step.start_effect(Effect::AskUser(Box::new(UserQuestion { id, about })));
        self.state = CallState::AwaitingApproval { question: id, grant, base };
    }

    /// The question whether it may run, with nothing but "once" to choose.
    pub(super) fn confirmation(&self, display: Option<Display>) -> Confirmation {
        Confirmation {
            call: self.call.id.clone(),
            tool: self.call.name.as_str().into(),
            title: self.question_title(),
            kind: self.display.kind,
            args: self.call.args.clone(),
            locations: self.display.locations.clone(),
            display,
            reason: None,
            session_grant: None,
            persistent_grant: None,
            offers_auto: false,
            is_editable: false,
        }
    }

    /// All that is said of why it is asked. An edit shows its change in place of a reason.
    pub(super) fn reasons(&self) -> Option<String> {
        let all: Vec<&str> = self.policy_reason.iter().chain(&self.ask_reason).map(String::as_str).collect();
        match all.is_empty() {
            true => self.is_of(PolicyClass::Run).then(|| NO_RULE.to_owned()),
            false => Some(all.join("\n")),
        }
    }

    /// Puts the question that the call is.
    pub fn ask_form(&mut self, step: &mut Step<'_>, form: Form) {
        let display = ToolDisplay { title: text::first_line(&form.message, TITLE), ..self.display.clone() };
        self.display = display.clone();
        self.send_progress(step, ToolProgress::Started { display: Some(display) });
        let (question, form) = (step.new_question_id(), Arc::new(form));
        let about = QuestionTopic::Form { call: Some(self.call.id.clone()), form: form.clone() };
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
        self.state = CallState::AwaitingAnswer { question, form };
    }

    /// The title names what runs: the model's words for it are no ground for an approval.
    pub(super) fn question_title(&self) -> String {
        match self.call.args.get("command").and_then(Value::as_str) {
            Some(command) if self.display.kind == ToolKind::Execute => command.to_owned(),
            _ if self.is_of(PolicyClass::Delegate) && self.display.kind == ToolKind::Fetch => {
                format!("Call Remote Agent: {}", self.display.title)
            }
            _ => self.display.title.clone(),
        }
    }
}
