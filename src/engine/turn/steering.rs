//! Steering: text that the user sends while a turn runs. It joins the next request or returns to the user.

use super::messages::send_message;
use crate::turn::prompt::named_paths::open_named_paths;
use crate::{
    record::{STEERING_META, Step},
    step::Effect,
};
use castor_base::{
    content::Part,
    event::{PromptOutcome, Speaker, SteerOutcome},
    ids::PromptId,
};

/// Most that wait for a request of the model.
const MAX_WAITING: usize = 16;

/// What has not reached the model yet.
#[derive(Debug, Default)]
pub(super) struct Steering {
    waiting: Vec<(Option<PromptId>, Vec<Part>)>,
}

/// Answers the steering prompt.
pub fn answer(step: &mut Step<'_>, prompt: PromptId, steered: SteerOutcome) {
    step.start_effect(Effect::AnswerPrompt {
        prompt,
        outcome: PromptOutcome::Steered(steered),
        usage: None,
        stats: None,
    });
}

/// Why words do not reach a turn that is not there.
pub const NO_TURN: &str = "no turn is running; send it as a prompt";

impl Steering {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// It enters with the next request. Whether there was room for it.
    pub fn add(&mut self, step: &mut Step<'_>, prompt: PromptId, content: Vec<Part>) -> bool {
        let has_room = self.waiting.len() < MAX_WAITING;
        match has_room {
            true => self.waiting.push((Some(prompt), content)),
            false => {
                let why = format!("{MAX_WAITING} such texts wait for the model already; wait for its next request");
                answer(step, prompt, SteerOutcome::Failed(why));
            }
        }
        has_room
    }

    /// What the agent above was told, which answers for it.
    pub fn add_hint(&mut self, content: Vec<Part>) {
        if self.waiting.len() < MAX_WAITING {
            self.waiting.push((None, content));
        }
    }

    /// It is not wanted any more. Whether it was waiting here.
    pub fn cancel(&mut self, step: &mut Step<'_>, prompt: PromptId) -> bool {
        let Some(at) = self.waiting.iter().position(|(it, _)| *it == Some(prompt)) else { return false };
        self.waiting.remove(at);
        answer(step, prompt, SteerOutcome::Failed("it was cancelled".to_owned()));
        true
    }

    /// A request is about to be built: what waits is part of the conversation. Whether anything did.
    pub fn tell(&mut self, step: &mut Step<'_>) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        let is_told = !waiting.is_empty();
        for (prompt, content) in waiting {
            if prompt.is_some() {
                open_named_paths(step, &content);
            }
            send_message(step, Speaker::User, content, &[STEERING_META]);
            if let Some(prompt) = prompt {
                answer(step, prompt, SteerOutcome::Injected);
            }
        }
        is_told
    }

    /// The turn is over: nothing is lost.
    pub fn reject(&mut self, step: &mut Step<'_>) {
        for prompt in std::mem::take(&mut self.waiting).into_iter().filter_map(|(it, _)| it) {
            let why = "the turn ended before the model could be told; send it as a prompt".to_owned();
            answer(step, prompt, SteerOutcome::PromptRequired(why));
        }
    }
}
