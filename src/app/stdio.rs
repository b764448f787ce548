//! stdin and stdout of `castor acp`: a plain thread each. No other code touches them.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::mpsc,
    thread::{self, JoinHandle},
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::sync::mpsc::Sender;

use crate::app::event::Event;

/// Bytes of one read.
const READ: usize = 64 * 1024;

/// Where lines for the client go, in order.
pub struct Stdout {
    lines: mpsc::Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Stdout {
    /// Queues bytes; the loop bounds what is queued by the `Written` events.
    pub fn send(&self, lines: Vec<u8>) {
        // The thread ends only when the client stopped reading, and has said so.
        _ = self.lines.send(lines);
    }

    /// How the writing ended, if it has.
    ///
    /// # Errors
    /// When lines are lost, as on a full disk. A client that reads no more is gone, and misses none.
    pub fn ended(self) -> io::Result<()> {
        if !self.thread.is_finished() {
            return Ok(());
        }
        match self.thread.join() {
            Ok(Err(it)) if it.kind() != io::ErrorKind::BrokenPipe => Err(it),
            _ => Ok(()),
        }
    }
}

/// Takes fd 1 aside and points it at stderr: whatever prints to stdout by mistake cannot break the protocol.
///
/// # Errors
/// When a descriptor cannot be duplicated.
pub fn take_stdout() -> io::Result<OwnedFd> {
    let private = io::stdout().as_fd().try_clone_to_owned()?;
    nix::unistd::dup2_stdout(io::stderr().as_fd())?;
    Ok(private)
}

/// Reads stdin until it ends. A full queue stops the reading: the client waits, not our memory.
pub fn read_stdin(events: Sender<Event>) -> io::Result<()> {
    let mut stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut bytes = vec![0; READ];
        loop {
            let event = match stdin.read(&mut bytes) {
                Err(it) if it.kind() == io::ErrorKind::Interrupted => continue,
                Ok(0) | Err(_) => Event::StdinClosed,
                Ok(n) => Event::Stdin(bytes.get(..n).unwrap_or_default().to_vec()),
            };
            let last = matches!(event, Event::StdinClosed);
            if events.blocking_send(event).is_err() || last {
                return;
            }
        }
    })?;
    Ok(())
}

/// Whether nobody will write to stdin any more, whatever is still in it.
pub fn stdin_is_closed() -> bool {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::empty())];
    let closed = |it: PollFlags| it.intersects(PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL);
    poll(&mut fds, PollTimeout::ZERO).is_ok() && fds.iter().filter_map(PollFd::revents).any(closed)
}

/// Writes what is queued, one write for each piece.
pub fn write_stdout(fd: OwnedFd, events: Sender<Event>) -> io::Result<Stdout> {
    let mut stdout = File::from(fd);
    let (lines, queue) = mpsc::channel::<Vec<u8>>();
    let thread = thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        for piece in queue {
            let written = stdout.write_all(&piece);
            let event = written.as_ref().map_or(Event::StdoutClosed, |()| Event::Written(piece.len()));
            let is_heard = events.blocking_send(event).is_ok();
            written?;
            if !is_heard {
                break;
            }
        }
        Ok(())
    })?;
    Ok(Stdout { lines, thread })
}
