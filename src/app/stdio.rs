//! stdin and stdout of `castor acp`: a plain thread each, for what has to wait. No other code touches them.

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
    fd: OwnedFd,
    lines: mpsc::Sender<Vec<u8>>,
    thread: JoinHandle<io::Result<()>>,
}

impl Stdout {
    /// Writes what the client has room for, where nothing is queued, and queues the rest; the loop bounds what is queued by
    /// the `Written` events. Returns how much needs none: it is written. To wake a thread for each line, and the loop for
    /// each that is written, takes longer than to write it.
    pub fn send(&self, mut lines: Vec<u8>, is_idle: bool) -> usize {
        let n = if is_idle { write_at_once(&self.fd, &lines) } else { 0 };
        if n < lines.len() {
            lines.drain(..n);
            // The thread ends only when the client stopped reading, and has said so.
            _ = self.lines.send(lines);
        }
        n
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

/// As much as can be written without waiting; whatever keeps it from that, the thread finds out. The descriptor is the
/// client's, too: that it must not wait is asked of this one write.
#[cfg(target_os = "linux")]
fn write_at_once(fd: &OwnedFd, bytes: &[u8]) -> usize {
    use rustix::io::{ReadWriteFlags, pwritev2};
    // Where it stands, not at an offset.
    let here = u64::MAX;
    pwritev2(fd, &[io::IoSlice::new(bytes)], here, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn write_at_once(_fd: &OwnedFd, _bytes: &[u8]) -> usize {
    0
}

/// Writes what is queued, one write for each piece.
pub fn write_stdout(fd: OwnedFd, events: Sender<Event>) -> io::Result<Stdout> {
    let mut stdout = File::from(fd.try_clone()?);
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
    Ok(Stdout { fd, lines, thread })
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tokio::sync::mpsc::channel;

    use super::write_stdout;
    use crate::app::event::Event;

    #[test]
    fn a_client_that_does_not_read_holds_nobody_up_and_misses_nothing() {
        let (mut client, ours) = std::io::pipe().unwrap();
        let (events, mut written) = channel(16);
        let stdout = write_stdout(ours.into(), events).unwrap();
        let told = [vec![b'a'; 3], vec![b'b'; 1 << 20], vec![b'c'; 5]];
        let mut unsent = 0;
        for lines in &told {
            let n = stdout.send(lines.clone(), unsent == 0);
            unsent += lines.len() - n;
        }
        assert!(unsent > 1 << 19, "a pipe does not hold so much");
        let mut heard = vec![0; told.iter().map(Vec::len).sum()];
        client.read_exact(&mut heard).unwrap();
        assert!(heard == told.concat(), "lines were lost or changed places");
        while unsent > 0 {
            let Some(Event::Written(n)) = written.blocking_recv() else { panic!("the client is there") };
            unsent -= n;
        }
    }

    #[test]
    fn a_client_that_is_gone_is_said_to_be_gone() {
        let (client, ours) = std::io::pipe().unwrap();
        let (events, mut written) = channel(16);
        let stdout = write_stdout(ours.into(), events).unwrap();
        drop(client);
        assert_eq!(stdout.send(b"x".to_vec(), true), 0);
        assert!(matches!(written.blocking_recv(), Some(Event::StdoutClosed)));
    }
}
