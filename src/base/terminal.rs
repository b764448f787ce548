//! The trait `Terminal`: where command lines run, in processes of ours or in the editor's terminals.

use std::{io, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::{fs::BoxFuture, path::AbsPath};

/// A command line to run.
#[derive(Clone, Copy, Debug)]
pub struct CommandLine<'a> {
    /// As a shell reads it.
    pub text: &'a str,
    pub cwd: &'a AbsPath,
    /// On top of the environment that the terminal has by itself.
    pub env: &'a [(&'a str, &'a str)],
    /// Bytes of its output that are of use; its end is kept.
    pub limit: usize,
    /// The longest silence that its caller bears: it wants to hear of output more often than this.
    pub silence: Option<Duration>,
}

/// A place where command lines run.
pub trait Terminal: Send + Sync {
    /// Starts a command.
    ///
    /// # Errors
    /// The command was not started at all.
    fn start<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, io::Result<Box<dyn Running>>>;
}

/// A command that was started. Dropping it before its end ends it.
pub trait Running: Send {
    /// Waits for the next thing. Dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, Happening>;

    /// Ends it and all its children. Returns what it had printed and nobody heard yet.
    fn end(&mut self) -> BoxFuture<'_, String>;

    /// The id of its process and of its group, where these are ours.
    fn pid(&self) -> Option<u32>;

    /// Whether somebody can still print.
    fn is_open(&self) -> bool;

    /// Its caller returns and it goes on: what appears from now on may be anybody's.
    fn goes_on_alone(&mut self) {}

    /// How the client sees its output, if not as text.
    fn screen(&self) -> Option<Screen>;
}

/// What a command does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happening {
    /// It, or a child of it, printed this to stdout or stderr; the order is true.
    Output(String),
    /// It printed something, which comes as a whole before its end.
    Heard,
    /// It ended, and what it printed was delivered before.
    Exited(Exit),
    /// After the exit: nobody can print any more.
    Closed,
    /// Its terminal is lost, and with it all knowledge of it: why.
    Lost(String),
}

/// How a process ended: by itself with a code, or by a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    /// Such as `SIGKILL`.
    pub signal: Option<String>,
    /// Its children that still run, by process id, where they are ours.
    pub left: Vec<u32>,
    /// What it made and got another name, since programs obey files of that name.
    pub aside: Vec<AbsPath>,
}

/// A terminal on the client's screen that shows what a call prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Screen {
    /// The client's own terminal: it runs the command, and knows what is printed.
    Client { terminal: String },
    /// The client draws what our process prints. The terminal has the call's id.
    Drawn { cwd: AbsPath },
}
