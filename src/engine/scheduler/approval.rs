//! Approval questions: the text and choices that the user sees before castor runs a tool call.

use std::sync::Arc;

use serde_json::Value;

use crate::{
    base::{
        event::{ToolDisplay, ToolProgress},
        ids::EffectId,
        log::Grant,
        question::Form,
        text,
        tool::{Preview, ToolKind},
    },
    engine::{
        policy,
        record::Step,
        scheduler::{
            call::{Call, CallState, Toolbox},
            display::{TITLE, describe_grant},
            plan,
        },
        step::{Confirmation, Effect, QuestionTopic, UserQuestion},
    },
};

impl Call {
    pub fn ask_approval(&mut self, step: &mut Step<'_>, tools: &Toolbox, preview: Preview) {
        let CallState::Previewing { grant, .. } = &self.state else { return };
        let grant = grant.clone();
        if std::mem::take(&mut self.display_dirty) {
            self.send_progress(step, ToolProgress::Described { display: self.display.clone() });
        }
        if let Some(display) = preview.display.clone() {
            self.send_progress(step, ToolProgress::Proposed { display });
        }
        let lasting = grant.as_ref().and_then(|it| tools.persistent_grant(&self.call, it, step.record.mode));
        let lasting = lasting.as_ref().map(policy::persistent_in_words);
        let id = step.new_question_id();
        let about = QuestionTopic::Confirmation(Confirmation {
            call: self.call.id.clone(),
            title: self.question_title(),
            kind: self.display.kind,
            args: self.call.args.clone(),
            locations: self.display.locations.clone(),
            display: preview.display,
            reason: self.reasons(),
            session_grant: grant.as_ref().map(describe_grant),
            persistent_grant: lasting,
            offers_auto: self.offers_auto,
        });
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id, about })));
        self.state = CallState::AwaitingApproval { question: id, grant, base: preview.base };
    }

    /// All that is said of why it is asked.
    fn reasons(&self) -> Option<String> {
        let all: Vec<&str> = self.policy_reason.iter().chain(&self.ask_reason).map(String::as_str).collect();
        (!all.is_empty()).then(|| {
            all.join(
                "
",
            )
        })
    }

    /// There is nothing to look at first, at most what the model says of it.
    pub fn ask_without_preview(&mut self, step: &mut Step<'_>, tools: &Toolbox, grant: Option<Grant>) {
        // No effect has this id: nobody will answer it.
        self.state = CallState::Previewing { effect: EffectId(0), grant };
        self.ask_approval(step, tools, Preview { display: plan::plan_reason(&self.call), ..Preview::default() });
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

    /// What runs is named by itself: the model's words for it are no ground for a yes.
    pub(super) fn question_title(&self) -> String {
        match self.call.args.get("command").and_then(Value::as_str) {
            Some(command) if self.display.kind == ToolKind::Execute => command.to_owned(),
            _ => self.display.title.clone(),
        }
    }
}
