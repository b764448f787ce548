//! Steering: text that the user sends while a turn runs. It joins the next request or returns to the user.

use super::{Turn, loop_recovery::LoopRecovery};
use crate::{
    base::{
        content::Part,
        event::{EventKind, PromptOutcome, Speaker, SteerOutcome},
        ids::{MessageId, PromptId},
    },
    engine::{
        record::{STEERING_META, Step},
        step::Effect,
    },
};

/// Most that wait for a request of the model.
const MAX_WAITING: usize = 16;

/// What has not reached the model yet.
#[derive(Debug, Default)]
pub(super) struct Steering {
    waiting: Vec<(PromptId, Vec<Part>)>,
}

/// Answers the steering prompt.
pub fn answer(step: &mut Step<'_>, prompt: PromptId, steered: SteerOutcome) {
    step.start_effect(Effect::AnswerPrompt { prompt, outcome: PromptOutcome::Steered(steered), usage: None });
}

/// Why words do not reach a turn that is not there.
pub const NO_TURN: &str = "no turn is running; send it as a prompt";

impl Turn {
    /// It enters with the next request.
    pub fn steer(&mut self, step: &mut Step<'_>, prompt: PromptId, content: Vec<Part>) {
        match self.transcript.steering.waiting.len() < MAX_WAITING {
            true => self.transcript.steering.waiting.push((prompt, content)),
            false => {
                let why = format!("{MAX_WAITING} such texts wait for the model already; wait for its next request");
                answer(step, prompt, SteerOutcome::Failed(why));
            }
        }
    }

    /// It is not wanted any more. Whether it was waiting here.
    pub fn cancel_steering(&mut self, step: &mut Step<'_>, prompt: PromptId) -> bool {
        let Some(at) = self.transcript.steering.waiting.iter().position(|(it, _)| *it == prompt) else { return false };
        self.transcript.steering.waiting.remove(at);
        answer(step, prompt, SteerOutcome::Failed("it was cancelled".to_owned()));
        true
    }

    pub(super) fn is_steered(&self) -> bool {
        !self.transcript.steering.waiting.is_empty()
    }

    /// A request is about to be built: what waits is part of the conversation.
    pub(super) fn take_steering(&mut self, step: &mut Step<'_>) {
        for (prompt, content) in std::mem::take(&mut self.transcript.steering.waiting) {
            let message_id = MessageId::from(step.fresh_id("m"));
            let meta = serde_json::Map::from_iter([(STEERING_META.to_owned(), true.into())]);
            step.emit_event_with(
                EventKind::Message { role: Speaker::User, message_id, content, cuts: Vec::new() },
                meta,
            );
            answer(step, prompt, SteerOutcome::Injected);
            self.loop_recovery = LoopRecovery::from(self.n_samples);
        }
    }

    /// The turn is over: nothing is lost.
    pub fn reject_steering(&mut self, step: &mut Step<'_>) {
        for (prompt, _) in std::mem::take(&mut self.transcript.steering.waiting) {
            let why = "the turn ended before the model could be told; send it as a prompt".to_owned();
            answer(step, prompt, SteerOutcome::PromptRequired(why));
        }
    }
}
