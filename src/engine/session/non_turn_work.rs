//! Work of a session that belongs to no turn.

use super::{
    client_rewind::{self, ClientRewind},
    event_hooks::EventHooks,
    policy_queries::PolicyQueries,
    question_hooks::QuestionHooks,
};
use crate::{step::Input, turn::TurnContext};
use castor_base::held_program::HeldProgram;

#[derive(Debug, Default)]
pub(super) struct NonTurnWork {
    pub rewinding: Option<ClientRewind>,
    pub event_hooks: EventHooks,
    pub question_hooks: QuestionHooks,
    pub policy_queries: PolicyQueries,
}

impl NonTurnWork {
    /// Before anything else is done about an input.
    pub fn handle_input(&mut self, input: &Input, cx: &mut TurnContext<'_, '_>, has_turn: bool) {
        client_rewind::handle_input(&mut self.rewinding, input, cx, has_turn);
        self.policy_queries.handle_input(input, cx.step, &cx.spec.toolbox);
        self.question_hooks.observe_input(input, cx.step, has_turn);
        match input {
            Input::ServerQuestionWaits(it) => self.question_hooks.tell_waiting(it, &cx.spec.toolbox, cx.step),
            Input::ProgramHeld(it) => note_held_program(it, cx, has_turn),
            Input::HookFinished { report, .. } => {
                report.held.iter().for_each(|it| note_held_program(it, cx, has_turn));
            }
            _ => (),
        }
    }
}

fn note_held_program(it: &HeldProgram, cx: &mut TurnContext<'_, '_>, has_turn: bool) {
    match cx.scratch.preamble.add_held_program(it, cx.spec.toolbox.interactive) {
        Some(notice) if has_turn => cx.step.emit_notice(&notice),
        Some(notice) => cx.scratch.preamble.notice(notice),
        None => (),
    }
}
