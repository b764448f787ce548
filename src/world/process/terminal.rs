//! The trait `Terminal` over processes of ours.

use std::{io, sync::Arc};

use super::{Child, Groups, Happening, Spawn, Stdin};
use crate::base::{
    fs::BoxFuture,
    path::AbsPath,
    sandbox::Confinement,
    terminal::{CommandLine, Findings, Running, Screen, Terminal},
};

/// Runs command lines with bash, or with sh where there is none.
#[derive(Clone, Debug)]
pub struct OwnTerminal {
    pub groups: Groups,
    /// All that commands see, but for what a command line adds.
    pub env: Arc<Vec<(String, String)>>,
    /// In a pseudo-terminal, whose output the client draws.
    pub drawn: bool,
    pub confined: Option<Arc<Confinement>>,
}

impl OwnTerminal {
    fn spawn(&self, line: CommandLine<'_>) -> io::Result<Box<dyn Running>> {
        let mut env = self.env.to_vec();
        env.extend(line.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        // The dashes keep a command that begins with one from being read as options.
        let args = ["-c", "--", line.text];
        let confined = self.confined.as_deref();
        let spawn = Spawn { program: "bash", args: &args, cwd: line.cwd, env: &env, stdin: Stdin::Null, confined };
        let start = |it: &Spawn<'_>| match self.drawn {
            true => it.start_in_pty(&self.groups),
            false => it.start(&self.groups),
        };
        let child = match start(&spawn) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => start(&Spawn { program: "sh", ..spawn })?,
            it => it?,
        };
        Ok(Box::new(Own { child, drawn: self.drawn.then(|| line.cwd.clone()) }))
    }
}

impl Terminal for OwnTerminal {
    fn start<'a>(&'a self, line: CommandLine<'a>) -> BoxFuture<'a, io::Result<Box<dyn Running>>> {
        Box::pin(async move { self.spawn(line) })
    }
}

struct Own {
    child: Child,
    /// The folder that it runs in, if the client draws it.
    drawn: Option<AbsPath>,
}

impl Running for Own {
    fn next(&mut self) -> BoxFuture<'_, Happening> {
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

    fn gone(&mut self) -> BoxFuture<'static, Findings> {
        Box::pin(self.child.gone())
    }

    fn screen(&self) -> Option<Screen> {
        self.drawn.clone().map(|cwd| Screen::Drawn { cwd })
    }
}
