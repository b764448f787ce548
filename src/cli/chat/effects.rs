//! Orders of the chat's state to the world, such as a prompt, a mode or an external editor.

use super::lower::{Draft, ProposedText, RewindWhat};
use crate::cli::render::text::Line;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// A turn begins with this message.
    Prompt(Draft),
    /// Words for the turn that is under way.
    Steer(String),
    /// The turn is cancelled.
    Cancel,
    SetMode(String),
    SetOption {
        id: String,
        value: String,
    },
    OpenSession(String),
    /// A picker of sessions is wanted.
    ListSessions,
    /// A picker of messages to go back to is wanted.
    ListMessages,
    Redo,
    Rewind {
        prompt: String,
        what: RewindWhat,
    },
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
