//! Terminal input of `castor run`, read from /dev/tty, since stdin may carry a piped prompt.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    thread,
};

use tokio::sync::mpsc;

/// Lines that may wait.
const QUEUE: usize = 8;

/// Reads in a thread that lives as long as the process: a read that waits cannot be taken back.
pub fn lines() -> mpsc::Receiver<String> {
    let (to, lines) = mpsc::channel(QUEUE);
    thread::spawn(move || {
        let Ok(terminal) = open() else { return };
        let mut terminal = BufReader::new(terminal);
        loop {
            let mut line = String::new();
            if terminal.buffer().is_empty() {
                wait(terminal.get_ref());
            }
            match terminal.read_line(&mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => (),
            }
            let line = line.trim_end_matches(['\n', '\r']).to_owned();
            if to.blocking_send(line).is_err() {
                return;
            }
        }
    });
    lines
}

fn open() -> io::Result<File> {
    // A terminal is no file of anybody's: there is nothing for the disk's rules to guard.
    #[allow(clippy::disallowed_methods)]
    File::open("/dev/tty")
}

/// Until a line is there that is for us. Who reads a terminal from the background is stopped by the system, and what is
/// typed meanwhile is for the shell.
#[cfg(unix)]
fn wait(terminal: &File) {
    use std::{os::fd::AsFd, time::Duration};

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    const LATER: Duration = Duration::from_millis(100);
    loop {
        let mut fds = [PollFd::new(terminal.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) if is_in_front(terminal) => return,
            Ok(_) | Err(nix::errno::Errno::EINTR) => thread::sleep(LATER),
            // The read says what is wrong.
            Err(_) => return,
        }
    }
}

#[cfg(unix)]
fn is_in_front(terminal: &File) -> bool {
    nix::unistd::tcgetpgrp(terminal).is_ok_and(|it| it == nix::unistd::getpgrp())
}

/// Drops what was begun and not sent with a return: a question that comes up now must not be answered with its end.
#[cfg(unix)]
pub fn discard_typed() {
    use nix::sys::termios::{FlushArg, tcflush};

    if let Ok(terminal) = open()
        && is_in_front(&terminal)
    {
        _ = tcflush(&terminal, FlushArg::TCIFLUSH);
    }
}

#[cfg(not(unix))]
fn wait(_: &File) {}

#[cfg(not(unix))]
pub fn discard_typed() {}
