//! The recipe of a turn: every station from the prompt to the end, in order, with its function.

use super::{
    agent_hooks, calls,
    flow::{Flow, Station},
    held_programs, inbox, limits,
    spec::TurnContext,
    state::TurnState,
    trust,
};
use crate::turn::{
    agents::composing,
    checks::{loop_recovery, model_checks},
    model::{build, request_hooks, route, sampling},
    prompt::{expansion, memory_discovery, memory_reading},
    servers::{mentions, server_credentials, server_questions, server_wait},
};

type Enter = fn(&mut TurnState, &mut TurnContext<'_, '_>) -> Flow;

/// A station says [`Flow::Next`], or waits, and what it waited for says so later. Other ways are named where they leave.
const RECIPE: &[(Station, Enter)] = &[
    // Once for each prompt.
    (Station::UserMessage, agent_hooks::on_user_message),
    (Station::Budget, limits::check_budget),
    (Station::BeforeRun, agent_hooks::before_run),
    (Station::Trust, trust::ask_trust),
    (Station::Memory, memory_reading::read_at_start),
    (Station::Servers, server_wait::wait_for_servers),
    (Station::Credentials, server_credentials::ask_for_credentials),
    (Station::Questions, server_questions::ask_waiting),
    (Station::HeldPrograms, held_programs::ask_about_held),
    (Station::Notices, server_wait::tell_notices),
    (Station::Mentions, mentions::read_mentioned),
    (Station::SessionStart, agent_hooks::session_start),
    (Station::Expand, expansion::expand),
    (Station::BeforeAgent, agent_hooks::before_agent),
    // For each request to the model. Another attempt begins at the inbox, the same one made anew at the model.
    (Station::Limits, limits::begin_sample),
    (Station::Inbox, inbox::take_inbox),
    (Station::Compose, composing::run_members),
    (Station::Model, route::select_model),
    (Station::Build, build::build_draft),
    (Station::Route, route::find_model),
    (Station::BeforeModel, request_hooks::before_model),
    (Station::ToolChoice, request_hooks::choose_tools),
    (Station::Send, sampling::send_request),
    // The answer made calls. From the last of these it goes back to the limits.
    (Station::Calls, calls::run_calls),
    (Station::HeldAfterCalls, held_programs::ask_about_held),
    (Station::Discovery, memory_discovery::discover_memory),
    (Station::Repetition, loop_recovery::check_repetition),
    (Station::Progress, model_checks::check_progress),
    // The answer made none. What sends the agent back to work leads to the limits; else the turn ends here.
    (Station::NextSpeaker, model_checks::check_next_speaker),
    (Station::AfterAgent, agent_hooks::after_agent),
];

impl Station {
    pub const FIRST: Self = Self::UserMessage;

    /// What comes behind it; `None`: the end of the turn.
    pub fn next(self) -> Option<Self> {
        RECIPE.iter().map(|(it, _)| *it).skip_while(|it| *it != self).nth(1)
    }

    /// Does what is to be done there.
    pub fn enter(self, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
        match RECIPE.iter().find(|(it, _)| *it == self) {
            Some((_, enter)) => enter(turn, cx),
            None => Flow::Next,
        }
    }
}
