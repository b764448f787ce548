//! The trait `Terminal` over castor's own processes.

use std::{io, sync::Arc};

use super::{Child, CommandEvent, Groups, Spawn, Stdin, command_group::CommandGroup};
use castor_base::{
    fs::BoxFuture,
    path::AbsPath,
    sandbox::Confinement,
    terminal::{CommandLine, ObeyedFindings, RunningCommand, Screen, Terminal},
};

/// Runs command lines with bash, or with sh where there is none.
#[derive(Clone, Debug)]
pub struct OwnTerminal {
    pub groups: Groups,
    /// All that commands see, but for what a command line adds.
    pub env: Arc<Vec<(String, String)>>,
    /// In a pseudo-terminal, whose output the client draws.
    pub use_pty: bool,
    pub confined: Option<Arc<Confinement>>,
    /// In which the kernel holds them to their limits.
    pub group: Option<Arc<CommandGroup>>,
}

impl OwnTerminal {
    fn spawn(&self, line: CommandLine<'_>) -> io::Result<Box<dyn RunningCommand>> {
        let mut env = self.env.to_vec();
        env.extend(line.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        // The dashes keep a command that begins with one from being read as options.
        let args = ["-c", "--", line.text];
        let confined = self.confined.as_deref();
        let spawn = Spawn { program: "bash", args: &args, cwd: line.cwd, env: &env, stdin: Stdin::Null, confined };
        let start = |it: &Spawn<'_>| it.start_in_group(&self.groups, self.use_pty, self.group.clone());
        let child = match start(&spawn) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => start(&Spawn { program: "sh", ..spawn })?,
            it => it?,
        };
        Ok(Box::new(OwnProcess { child, drawn: self.use_pty.then(|| line.cwd.clone()) }))
    }
}

impl Terminal for OwnTerminal {
    fn start<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, io::Result<Box<dyn RunningCommand>>> {
        Box::pin(async move { self.spawn(line) })
    }
}

struct OwnProcess {
    child: Child,
    /// The folder that it runs in, if the client draws it.
    drawn: Option<AbsPath>,
}

impl RunningCommand for OwnProcess {
    fn next(&mut self) -> BoxFuture<'_, CommandEvent> {
        Box::pin(self.child.next())
    }

    fn end(&mut self) -> BoxFuture<'_, String> {
        self.child.end();
        Box::pin(async { String::new() })
    }

    fn pid(&self) -> Option<u32> {
        Some(self.child.pid())
    }

    fn is_open(&self) -> bool {
        self.child.is_open()
    }

    fn final_findings(&mut self) -> BoxFuture<'static, ObeyedFindings> {
        Box::pin(self.child.final_findings())
    }

    fn screen(&self) -> Option<Screen> {
        self.drawn.clone().map(|cwd| Screen::Drawn { cwd })
    }
}
