//! Programs of the user's that the sandbox holds: their names, and what the user is asked about each of them.

use std::fmt;

use crate::{path::AbsPath, sandbox::Denial};

/// The line of the user's configuration that castor starts a program by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProgramName {
    Hook(String),
    Server(String),
    Checker(String),
    Agent(String),
}

impl fmt::Display for ProgramName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Hook(it) => ("hook", it),
            Self::Server(it) => ("MCP server", it),
            Self::Checker(it) => ("safety checker", it),
            Self::Agent(it) => ("agent", it),
        };
        write!(f, "the {kind} {name:?}")
    }
}

/// A program that the sandbox holds, and why the user hears of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldProgram {
    pub program: ProgramName,
    pub why: HoldReason,
}

/// The reason why the user hears of a program that the sandbox holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldReason {
    /// Its settings say outside, and nobody looked at what it works in or names: these places.
    Unseen(Vec<AbsPath>),
    /// The sandbox refused it something, which did harm.
    Lacks(Denial),
}

/// For the user, behind the name of a program: what it was denied, and the key that gives it that for good.
pub fn lack_in_words(denial: &Denial) -> String {
    let (why, key) = (denial.in_words(), denial.settings_key());
    format!("It runs in the sandbox of commands. {why} If it needs that, add {key} to it in your settings")
}
