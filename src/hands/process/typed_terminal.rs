//! Terminals for typing: a program with a terminal of its own, for input, output and signals.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};

use nix::{
    fcntl::{FcntlArg, FdFlag, OFlag, fcntl},
    pty::{OpenptyResult, Winsize, openpty},
};
use tokio::{
    io::AsyncWriteExt,
    net::unix::pipe::{Receiver, Sender},
};

use super::{Child, Groups, Spawn};

/// The keys and the size of a terminal.
pub struct TerminalKeys(Sender);

impl TerminalKeys {
    /// # Errors
    /// The program is gone.
    pub async fn write(&mut self, keys: &[u8]) -> io::Result<()> {
        self.0.write_all(keys).await
    }

    /// # Errors
    /// The program is gone.
    pub fn resize(&self, rows: u16, columns: u16) -> io::Result<()> {
        let size = rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(rustix::termios::tcsetwinsize(self.0.as_fd(), size)?)
    }
}

impl Spawn<'_> {
    /// Starts it in a terminal of so many rows and columns. `stdin` is [`super::Stdin::Terminal`]. Must be called within a
    /// tokio runtime with I/O and time.
    ///
    /// # Errors
    /// When the system has no terminal, or cannot start it.
    pub fn start_typed(&self, (rows, columns): (u16, u16), groups: &Groups) -> io::Result<(Child, TerminalKeys)> {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let (master, slave) = open_pty(size)?;
        let keys = Sender::from_owned_fd_unchecked(master.try_clone()?)?;
        let output = Receiver::from_owned_fd_unchecked(master)?;
        Ok((self.start_with((output, slave), groups, None)?, TerminalKeys(keys)))
    }
}

/// The two ends of a terminal: ours, which never blocks, and that of the program.
pub fn open_pty(size: Winsize) -> io::Result<(OwnedFd, OwnedFd)> {
    let OpenptyResult { master, slave } = openpty(Some(&size), None)?;
    for it in [&master, &slave] {
        fcntl(it, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    }
    fcntl(&master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((master, slave))
}
