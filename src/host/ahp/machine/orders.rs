//! Orders of the host to its machine, and their outcomes: the host itself touches no file and starts no program.

use castor_base::{
    path::AbsPath,
    root_files::{FileAnswer, FileOrder, FileTrouble},
};

#[derive(Debug, PartialEq, Eq)]
pub enum MachineOrder {
    File {
        job: u64,
        order: FileOrder,
    },
    Terminal {
        id: String,
        order: TerminalOrder,
    },
    /// The host's memory, which it gets back when it starts again.
    Remember(Vec<u8>),
}

#[derive(Debug, PartialEq, Eq)]
pub enum TerminalOrder {
    /// The user's shell, in a folder.
    Start {
        cwd: AbsPath,
        rows: u16,
        columns: u16,
    },
    Keys(String),
    Resize {
        rows: u16,
        columns: u16,
    },
    End,
}

#[derive(Debug)]
pub enum MachineEvent {
    File { job: u64, outcome: Result<FileAnswer, FileTrouble> },
    Terminal { id: String, event: TerminalEvent },
}

#[derive(Debug)]
pub enum TerminalEvent {
    Output(String),
    /// Its exit code, unless a signal ended it.
    Exited(Option<i32>),
}
