//! Flow of a turn: the stations of the recipe, and what a station or a phase comes to.

use std::fmt::Debug;

use super::{endings::Cause, spec::TurnContext, state::TurnState};
use crate::{record::Step, step::Input};
use castor_base::ids::MessageId;

/// A place on the way of a turn. Their order is the recipe's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Station {
    /// The prompt joins the history.
    UserMessage,
    /// What turn and session may still take.
    Budget,
    BeforeRun,
    Trust,
    Memory,
    Servers,
    /// Servers that want another credential.
    Credentials,
    /// Of servers, that arose since the last turn.
    Questions,
    /// What programs outside would reach that an agent wrote.
    HeldPrograms,
    /// What user and model are told before it begins.
    Notices,
    /// Resources of servers that the prompt names.
    Mentions,
    SessionStart,
    /// The prompt that a typed command stands for.
    Expand,
    BeforeAgent,
    Limits,
    /// What came up since the last request.
    Inbox,
    /// A composite runs the next of its agents, and goes from here to the calls.
    Compose,
    Model,
    Build,
    /// A classifier chooses the model, in auto mode.
    Route,
    BeforeModel,
    ToolChoice,
    Send,
    Calls,
    /// The same, of hooks around the calls.
    HeldAfterCalls,
    /// Memory files of the folders that the calls came to.
    Discovery,
    /// The same calls again and again.
    Repetition,
    /// A model is asked whether the turn leads anywhere.
    Progress,
    NextSpeaker,
    AfterAgent,
}

/// What a station or a phase came to.
#[derive(Debug)]
pub enum Flow {
    /// The next station of the recipe.
    Next,
    /// This one, before or behind.
    Go(Station),
    /// Something has to happen first.
    Wait(Box<dyn Phase>),
    /// The input was not for this phase, which still waits.
    Unrelated(Box<dyn Phase>, Input),
    End(Cause),
    /// A command's turn ends with this, if there is something to say; the conversation goes back to before a message, where one is named.
    Report {
        text: String,
        rewind_to: Option<MessageId>,
    },
}

impl Flow {
    pub fn wait(phase: impl Phase + 'static) -> Self {
        Self::Wait(Box::new(phase))
    }

    pub fn report(text: impl Into<String>) -> Self {
        Self::Report { text: text.into(), rewind_to: None }
    }
}

/// Something that a turn waits for.
pub trait Phase: Debug + Send {
    /// Takes one thing that happened.
    fn step(self: Box<Self>, turn: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow;

    /// The turn ends from outside, and nobody waits any more.
    fn leave(&mut self, step: &mut Step<'_>);
}
