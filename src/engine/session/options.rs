//! Options of a session: what a client chooses, for good or for one prompt.

use crate::{
    record::{Step, TitleSource},
    step::{Effect, OptionValue},
    turn::{Spec, TurnContext, model::windows},
};
use castor_base::{event::EventKind, log::Fact, prompt_options::PromptOptions};

/// What a prompt has for itself holds until its turn is over.
pub(super) fn begin_prompt_options(step: &mut Step<'_>, spec: &Spec, options: &PromptOptions) {
    if options.is_empty() {
        return;
    }
    let mut options = options.clone();
    if let Some(model) = &mut options.model
        && let Fact::Model { window, .. } = windows::model_fact(spec, &model.name)
    {
        model.window = window;
    }
    step.log(Fact::PromptOptions { options });
}

/// A client changes what the session is called, or chose this model: both are told as an event.
pub(super) fn update(step: &mut Step<'_>, title: Option<String>, model: Option<String>) {
    let title = title.and_then(|it| TitleSource::Update.title(step.record, &it));
    step.emit_event(EventKind::SessionUpdate { title, model, state: Default::default() });
}

/// What the client chose holds from the next request on; choosing what is chosen says nothing.
pub(super) fn apply_choice(cx: &mut TurnContext<'_, '_>, choice: OptionValue) {
    let is_model = matches!(choice, OptionValue::Model(_));
    // Of what a prompt has for itself, the same is another choice.
    let is_new = cx.step.record.has_prompt_options();
    match choice {
        OptionValue::Mode(mode) if is_new || mode != cx.step.record.mode => cx.step.log(Fact::Mode { mode }),
        OptionValue::Model(model) if is_new || model != cx.step.record.model => {
            cx.step.log(windows::model_fact(cx.spec, &model));
        }
        OptionValue::Tuning(tuning) if tuning != cx.step.record.tuning => cx.step.log(Fact::Tuning { tuning }),
        OptionValue::Agent(agent) if agent.as_deref() != cx.step.record.chosen_agent() => {
            cx.step.log(Fact::Agent { agent, definition: None });
        }
        OptionValue::Limits(limits) if is_new || limits != cx.step.record.limits() => {
            cx.step.log(Fact::Limits { limits })
        }
        OptionValue::Mode(_)
        | OptionValue::Model(_)
        | OptionValue::Tuning(_)
        | OptionValue::Agent(_)
        | OptionValue::Limits(_) => (),
    }
    if is_model {
        clear_outage(cx);
    }
}

/// The user wants this model tried, whatever was known of it; and of it only.
pub(super) fn clear_outage(cx: &mut TurnContext<'_, '_>) {
    let model = cx.spec.aliases.model_of(&cx.step.record.model);
    if cx.scratch.health.mark_available(&model) {
        cx.step.start_effect(Effect::UpdateHealth { model, outage: None });
    }
}
