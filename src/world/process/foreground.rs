//! A program of the user's in the foreground: it has the terminal until it ends.

use std::{
    io,
    process::{Command, ExitStatus},
};

use super::cbreak::open_terminal;
use crate::base::path::AbsPath;

/// Runs it in our own process group, so that the terminal is its own and Ctrl-Z stops both. It is a program that the user
/// named, on a text of the user's: no sandbox. Blocks.
///
/// # Errors
/// When it cannot be started, or there is no terminal.
pub fn run_in_front(argv: &[&str], cwd: &AbsPath, env: &[(String, String)]) -> io::Result<ExitStatus> {
    let [program, args @ ..] = argv else { return Err(io::ErrorKind::InvalidInput.into()) };
    let terminal = open_terminal()?;
    Command::new(program)
        .args(args)
        .current_dir(cwd.as_path())
        .env_clear()
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(terminal.try_clone()?)
        .stdout(terminal.try_clone()?)
        .stderr(terminal)
        .status()
}
