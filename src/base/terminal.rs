//! The trait `Terminal`: runs command lines in castor's own processes or in the editor's terminals.

use std::{io, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    fs::BoxFuture,
    network::NetworkRecord,
    path::AbsPath,
    sandbox::{Refusal, Refused},
};

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
    fn start<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, io::Result<Box<dyn RunningCommand>>>;
}

/// A command that was started. Dropping it before its end ends it.
pub trait RunningCommand: Send {
    /// Waits for the next thing. Dropping the future loses nothing.
    fn next(&mut self) -> BoxFuture<'_, CommandEvent>;

    /// Ends it and all its children. Returns the output that was not read yet.
    fn end(&mut self) -> BoxFuture<'_, String>;

    /// The id of its process and of its group, where these are ours.
    fn pid(&self) -> Option<u32>;

    /// Tells whether a process can still print.
    fn is_open(&self) -> bool;

    /// What is found when the last of it is gone. Its exit tells nothing of that any more.
    fn final_findings(&mut self) -> BoxFuture<'static, ObeyedFindings> {
        Box::pin(std::future::ready(ObeyedFindings::default()))
    }

    /// How the client sees its output, if not as text.
    fn screen(&self) -> Option<Screen>;
}

/// The end of a command that outlived its call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandReport {
    /// Which command ended, and how: castor's own words.
    pub how: String,
    /// The end of what it printed since, which is the command's word.
    pub printed: String,
    /// All of its output.
    pub log: Option<AbsPath>,
}

/// An event of a running command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEvent {
    /// It, or a child of it, printed this to stdout or stderr; the order is true.
    Output(String),
    /// It printed something, which comes as a whole before its end.
    OutputPending,
    /// It ended, and what it printed was delivered before.
    Exited(Exit),
    /// After the exit: no process can print any more.
    Closed,
    /// Its terminal is lost, and with it all knowledge of it: why.
    TerminalLost(String),
}

/// The end of a process: an exit code or a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    pub code: Option<i32>,
    /// Such as `SIGKILL`.
    pub signal: Option<String>,
    /// Its children that still run, by process id, where they are ours.
    pub left_running: Vec<u32>,
    pub findings: ObeyedFindings,
    /// What the sandbox kept it and its children from; `None`: nobody knows.
    pub refusals: Option<Vec<Refusal>>,
    pub network: Box<NetworkRecord>,
}

impl Exit {
    /// Whether the door's refusals may have done harm: it does not know whom it refused. `hides_codes`: the exit code may be
    /// another one's than that of the program that failed. Many programs take an answer of the web for a success.
    pub fn failed_at_door(&self, hides_codes: bool) -> bool {
        let failed = match &self.refusals {
            Some(all) => all.contains(&Refusal::failed(Refused::Door)),
            None => self.code != Some(0) || hides_codes,
        };
        failed || self.network.is_answered
    }
}

/// Configuration files that a confined command made or changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObeyedFindings {
    /// New ones: they got another name.
    pub quarantined: Vec<AbsPath>,
    /// Heads of repositories that were gone, or none any more: they are what they were.
    pub restored: Vec<AbsPath>,
    /// Files of git's unfinished work that named programs: those are out of them.
    pub disarmed: Vec<AbsPath>,
    /// Repositories that are new in git's index, without an entry in `.gitmodules`.
    pub staged: Vec<AbsPath>,
    /// Processes that outlived the command were ended: their right to write was for its call alone.
    pub ended_leftovers: bool,
}

impl ObeyedFindings {
    /// For model and user; `None`: there is nothing to say. `whose`: who ran.
    pub fn in_words(&self, whose: &str) -> Option<String> {
        let named = |them: &[AbsPath]| them.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut res = Vec::new();
        if !self.quarantined.is_empty() {
            res.push(format!(
                "The sandbox put aside what appeared while {whose} ran and other programs would obey: {}. It is kept \
                 beside it, with `.castor-aside` in its name; only the user may put it back.",
                named(&self.quarantined)
            ));
        }
        if !self.restored.is_empty() {
            res.push(format!("The sandbox restored what git needs to know its repository: {}.", named(&self.restored)));
        }
        if !self.disarmed.is_empty() {
            res.push(format!(
                "While {whose} ran, programs were written into git's unfinished work, which git would start when somebody \
                 continues it: {}. castor took them out. The file as it was lies beside it, with `.castor-aside` in its name. \
                 Run the commands of its `exec` lines yourself.",
                named(&self.disarmed)
            ));
        }
        if !self.staged.is_empty() {
            res.push(format!(
                "While {whose} ran, repositories were staged in git's index that `.gitmodules` does not name: {}. Git \
                 looks into them at each `git status`; `git rm --cached` takes them out.",
                named(&self.staged)
            ));
        }
        if self.ended_leftovers {
            res.push(format!(
                "What was left of {whose} in the background was ended: the configuration that it was let write was for \
                 this one call."
            ));
        }
        (!res.is_empty()).then(|| res.join("\n"))
    }
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
