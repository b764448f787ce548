//! The questions about a call: what the user is shown of it, and why it is asked.

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
            call::{Call, State, Toolbox},
            display::{TITLE, in_words},
            plan,
        },
        step::{About, Confirmation, Effect, Question},
    },
};

impl Call {
    pub fn ask(&mut self, step: &mut Step<'_>, tools: &Toolbox, preview: Preview) {
        let State::Previewing { grant, .. } = &self.state else { return };
        let grant = grant.clone();
        if std::mem::take(&mut self.news) {
            self.tell(step, ToolProgress::Described { display: self.display.clone() });
        }
        if let Some(display) = preview.display.clone() {
            self.tell(step, ToolProgress::Proposed { display });
        }
        let lasting = grant.as_ref().and_then(|it| tools.lasting(&self.call, it, step.record.mode));
        let lasting = lasting.as_ref().map(policy::persistent_in_words);
        let id = step.question();
        let about = About::Confirmation(Confirmation {
            call: self.call.id.clone(),
            title: self.asked_title(),
            kind: self.display.kind,
            args: self.call.args.clone(),
            locations: self.display.locations.clone(),
            display: preview.display,
            reason: self.reasons(),
            always: grant.as_ref().map(in_words),
            lasting,
            offers_auto: self.offers_auto,
        });
        step.effect(Effect::Ask(Box::new(Question { id, about })));
        self.state = State::Asking { question: id, grant, base: preview.base };
    }

    /// All that is said of why it is asked.
    fn reasons(&self) -> Option<String> {
        let all: Vec<&str> = self.why.iter().chain(&self.reason).map(String::as_str).collect();
        (!all.is_empty()).then(|| {
            all.join(
                "
",
            )
        })
    }

    /// There is nothing to look at first, at most what the model says of it.
    pub fn ask_at_once(&mut self, step: &mut Step<'_>, tools: &Toolbox, grant: Option<Grant>) {
        // No effect has this id: nobody will answer it.
        self.state = State::Previewing { effect: EffectId(0), grant };
        self.ask(step, tools, Preview { display: plan::said(&self.call), ..Preview::default() });
    }

    /// Puts the question that the call is.
    pub fn inquire(&mut self, step: &mut Step<'_>, form: Form) {
        let display = ToolDisplay { title: text::first_line(&form.message, TITLE), ..self.display.clone() };
        self.display = display.clone();
        self.tell(step, ToolProgress::Started { display: Some(display) });
        let (question, form) = (step.question(), Arc::new(form));
        let about = About::Form { call: Some(self.call.id.clone()), form: form.clone() };
        step.effect(Effect::Ask(Box::new(Question { id: question, about })));
        self.state = State::Inquiring { question, form };
    }

    /// What runs is named by itself: the model's words for it are no ground for a yes.
    pub(super) fn asked_title(&self) -> String {
        match self.call.args.get("command").and_then(Value::as_str) {
            Some(command) if self.display.kind == ToolKind::Execute => command.to_owned(),
            _ => self.display.title.clone(),
        }
    }
}
