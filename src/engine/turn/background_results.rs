//! Results of background commands: added to the model's next request.

use std::collections::VecDeque;

use super::messages::{ModelNote, tell_model};
use crate::record::Step;
use castor_base::terminal::CommandReport;

/// More of them are counted only: a session that is left alone must not fill its next request with them.
const MAX_WAITING: usize = 16;

/// What the model was not told yet.
#[derive(Clone, Debug, Default)]
pub struct Completions {
    waiting: VecDeque<CommandReport>,
    n_forgotten: usize,
}

impl Completions {
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub fn add(&mut self, report: CommandReport) {
        if self.waiting.len() == MAX_WAITING {
            self.waiting.pop_front();
            self.n_forgotten += 1;
        }
        self.waiting.push_back(report);
    }

    /// A request is about to be built: what waits is part of the conversation, before what the user says.
    pub(super) fn tell(&mut self, step: &mut Step<'_>) {
        let Self { waiting, n_forgotten } = std::mem::take(self);
        if waiting.is_empty() {
            return;
        }
        let mut note = ModelNote::from("Background execution update:");
        if n_forgotten > 0 {
            note = note.and(format!("\n({n_forgotten} more ended before these.)"));
        }
        for CommandReport { how, printed, log } in waiting {
            note = match printed.is_empty() {
                true => note.and(format!("\n{how}\nIt printed nothing more.")),
                false => note.and(format!("\n{how}\nThe last it printed:\n")).and_quote(printed),
            };
            if let Some(it) = log {
                note = note.and(format!("\nAll of its output: {it}"));
            }
        }
        tell_model(step, note);
    }
}
