//! Words of the user that come while a turn runs: the model has them with its next request, or they come back.

use super::{Turn, circles::Circles};
use crate::{
    base::{
        content::Part,
        event::{EventKind, Outcome, Speaker, Steered},
        ids::{MessageId, PromptId},
    },
    engine::{
        record::{STEERING, Step},
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

/// Answers the one who steers.
pub fn answer(step: &mut Step<'_>, prompt: PromptId, steered: Steered) {
    step.effect(Effect::Settle { prompt, outcome: Outcome::Steered(steered), usage: None });
}

/// Why words do not reach a turn that is not there.
pub const NO_TURN: &str = "no turn is running; send it as a prompt";

impl Turn {
    /// It enters with the next request.
    pub fn steer(&mut self, step: &mut Step<'_>, prompt: PromptId, content: Vec<Part>) {
        match self.talk.steering.waiting.len() < MAX_WAITING {
            true => self.talk.steering.waiting.push((prompt, content)),
            false => {
                let why = format!("{MAX_WAITING} such texts wait for the model already; wait for its next request");
                answer(step, prompt, Steered::Failed(why));
            }
        }
    }

    /// It is not wanted any more. Whether it was waiting here.
    pub fn unsteer(&mut self, step: &mut Step<'_>, prompt: PromptId) -> bool {
        let Some(at) = self.talk.steering.waiting.iter().position(|(it, _)| *it == prompt) else { return false };
        self.talk.steering.waiting.remove(at);
        answer(step, prompt, Steered::Failed("it was cancelled".to_owned()));
        true
    }

    pub(super) fn is_steered(&self) -> bool {
        !self.talk.steering.waiting.is_empty()
    }

    /// A request is about to be built: what waits is part of the conversation.
    pub(super) fn take_steering(&mut self, step: &mut Step<'_>) {
        for (prompt, content) in std::mem::take(&mut self.talk.steering.waiting) {
            let message_id = MessageId::from(step.fresh("m"));
            let meta = serde_json::Map::from_iter([(STEERING.to_owned(), true.into())]);
            step.event_with(EventKind::Message { role: Speaker::User, message_id, content, cuts: Vec::new() }, meta);
            answer(step, prompt, Steered::Injected);
            self.circles = Circles::from(self.n_samples);
        }
    }

    /// The turn is over: nothing is lost.
    pub fn leave_steering(&mut self, step: &mut Step<'_>) {
        for (prompt, _) in std::mem::take(&mut self.talk.steering.waiting) {
            let why = "the turn ended before the model could be told; send it as a prompt".to_owned();
            answer(step, prompt, Steered::PromptRequired(why));
        }
    }
}
