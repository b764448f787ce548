//! Orders of the chat's state to the world, such as a prompt, a mode or an external editor.

use super::lower::{Draft, ProposedText};
use crate::cli::render::text::Line;
use castor_client::{machine::ClientRequest, questions::Answer};

#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// A turn begins with this message.
    Prompt(Draft),
    /// The answer to a question of the agent, by its number.
    Answer(u64, Answer),
    /// Words for the turn that is under way.
    Steer(String),
    /// The turn is cancelled.
    Cancel,
    Ask(ClientRequest),
    OpenSession(String),
    /// A picker of sessions is wanted.
    ListSessions,
    /// A picker of messages to go back to is wanted.
    ListMessages,
    FindFiles(String),
    SearchSessions {
        query: String,
        ids: Vec<String>,
    },
    ReadClipboard,
    Page(Vec<Line>),
    EditProposal(ProposedText),
    EditText(String),
    Remember(String),
    Copy(String),
    /// The user is wanted: the bell, and a notification of the terminal.
    CallUser(&'static str),
    Quit,
}
