//! Results of background commands: added to the model's next request.

use std::collections::VecDeque;

use super::messages::tell_model;
use crate::engine::record::Step;

/// More of them are counted only: a session that is left alone must not fill its next request with them.
const MAX_WAITING: usize = 16;

/// What the model was not told yet.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    waiting: VecDeque<String>,
    n_forgotten: usize,
}

impl Completions {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn add(&mut self, text: String) {
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
            self.n_forgotten += 1;
        }
        self.waiting.push_back(text);
    }

    /// A request is about to be built: what waits is part of the conversation, before what the user says.
    pub(super) fn tell(&mut self, step: &mut Step<'_>) {
        let Self { waiting, n_forgotten } = std::mem::take(self);
        if waiting.is_empty() {
            return;
        }
        let mut text = "Background execution update:".to_owned();
        if n_forgotten > 0 {
            text += &format!("\n({n_forgotten} more ended before these.)");
        }
        waiting.iter().for_each(|it| text += &format!("\n{it}"));
        tell_model(step, text);
    }
}
