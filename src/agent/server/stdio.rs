//! Stdin and stdout of `castor acp`: a plain thread each. No other code touches them.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, OnceLock, mpsc},
    thread,
};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
#[cfg(target_os = "linux")]
use tokio::io::{Interest, unix::AsyncFd};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::server::event::Event;

/// Bytes of one read.
const READ: usize = 64 * 1024;
/// Reads of a thread that wait.
const QUEUE: usize = 16;
/// Where a descriptor stands, not at an offset.
#[cfg(target_os = "linux")]
const CURRENT_OFFSET: u64 = u64::MAX;

/// The ordered queue of lines for the client.
pub struct Stdout {
    fd: OwnedFd,
    lines: mpsc::Sender<Vec<u8>>,
    /// Why no more is written. Known before the loop hears that it is so.
    failed: Arc<OnceLock<io::Error>>,
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
    pub fn finish(self) -> io::Result<()> {
        match self.failed.get().filter(|it| it.kind() != io::ErrorKind::BrokenPipe) {
            Some(it) => Err(it.raw_os_error().map_or_else(|| it.kind().into(), io::Error::from_raw_os_error)),
            None => Ok(()),
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

/// The client's input. The reader stays close to the loop: the client waits, and memory is bounded.
pub enum Stdin {
    /// The loop reads by itself: to hand each line over from a thread takes longer than to read it.
    #[cfg(target_os = "linux")]
    Nonblocking(Box<StdioSource>),
    /// A thread reads: for what can only be waited for, as a file or a terminal.
    Thread(Receiver<Event>),
}

impl Stdin {
    /// Must be called within a tokio runtime with I/O.
    ///
    /// # Errors
    /// When there is no thread to be had.
    pub fn open() -> io::Result<Self> {
        Self::of(io::stdin().as_fd().try_clone_to_owned()?)
    }

    fn of(fd: OwnedFd) -> io::Result<Self> {
        #[cfg(target_os = "linux")]
        if let Some(it) = StdioSource::new(&fd) {
            return Ok(Self::Nonblocking(Box::new(it)));
        }
        let (events, queue) = channel(QUEUE);
        read_on_thread(fd, events)?;
        Ok(Self::Thread(queue))
    }

    /// The next bytes, or their end. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Event {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(it) => it.next().await,
            Self::Thread(queue) => queue.recv().await.unwrap_or(Event::StdinClosed),
        }
    }

    /// Those that are there already.
    pub fn ready(&mut self) -> Option<Event> {
        match self {
            #[cfg(target_os = "linux")]
            Self::Nonblocking(it) => it.ready(),
            Self::Thread(queue) => queue.try_recv().ok(),
        }
    }
}

#[cfg(target_os = "linux")]
pub struct StdioSource {
    fd: AsyncFd<OwnedFd>,
    bytes: Vec<u8>,
    /// What was read to see whether it can be read so.
    first: Option<Event>,
}

#[cfg(target_os = "linux")]
impl StdioSource {
    /// `None`: it cannot be asked for without waiting.
    fn new(fd: &OwnedFd) -> Option<Self> {
        // SAFETY: it owns the descriptor, and closes it after it was forgotten by the runtime.
        let fd = unsafe { AsyncFd::register_with_interest(fd.try_clone().ok()?, Interest::READABLE) }.ok()?;
        let mut bytes = vec![0; READ];
        let first = match read_at_once(&fd, &mut bytes) {
            Err(it) if it.kind() == io::ErrorKind::WouldBlock => None,
            Err(_) => return None,
            read => Some(heard(&read, &bytes)),
        };
        Some(Self { fd, bytes, first })
    }

    async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready() {
                return event;
            }
            if self.fd.readable().await.is_err() {
                return Event::StdinClosed;
            }
        }
    }

    fn ready(&mut self) -> Option<Event> {
        let Self { fd, bytes, first } = self;
        first.take().or_else(|| match fd.try_io(Interest::READABLE, |it| read_at_once(it, bytes)) {
            Err(it) if it.kind() == io::ErrorKind::WouldBlock => None,
            read => Some(heard(&read, bytes)),
        })
    }
}

/// Also where somebody else took what was there: the descriptor is not only ours, and nobody may make it one that never waits.
#[cfg(target_os = "linux")]
fn read_at_once(fd: impl AsFd, bytes: &mut [u8]) -> io::Result<usize> {
    use rustix::io::{Errno, ReadWriteFlags, preadv2};
    loop {
        match preadv2(&fd, &mut [io::IoSliceMut::new(bytes)], CURRENT_OFFSET, ReadWriteFlags::NOWAIT) {
            Err(Errno::INTR) => (),
            read => return Ok(read?),
        }
    }
}

fn heard(read: &io::Result<usize>, bytes: &[u8]) -> Event {
    match read {
        Ok(0) | Err(_) => Event::StdinClosed,
        Ok(n) => Event::Stdin(bytes.get(..*n).unwrap_or_default().to_vec()),
    }
}

/// Reads until it ends. A full queue stops the reading.
fn read_on_thread(fd: OwnedFd, events: Sender<Event>) -> io::Result<()> {
    let mut stdin = File::from(fd);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        let mut bytes = vec![0; READ];
        loop {
            let event = match stdin.read(&mut bytes) {
                Err(it) if it.kind() == io::ErrorKind::Interrupted => continue,
                read => heard(&read, &bytes),
            };
            let last = matches!(event, Event::StdinClosed);
            if events.blocking_send(event).is_err() || last {
                return;
            }
        }
    })?;
    Ok(())
}

/// Tells whether stdin is closed for writing, whatever is still in it.
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
    pwritev2(fd, &[io::IoSlice::new(bytes)], CURRENT_OFFSET, ReadWriteFlags::NOWAIT).unwrap_or(0)
}

#[cfg(not(target_os = "linux"))]
fn write_at_once(_fd: &OwnedFd, _bytes: &[u8]) -> usize {
    0
}

/// Writes what is queued, one write for each piece.
pub fn write_stdout(fd: OwnedFd, events: Sender<Event>) -> io::Result<Stdout> {
    let mut stdout = File::from(fd.try_clone()?);
    let (lines, queue) = mpsc::channel::<Vec<u8>>();
    let failed = Arc::new(OnceLock::new());
    let why = failed.clone();
    thread::Builder::new().name("stdout".to_owned()).spawn(move || {
        for piece in queue {
            let written = stdout.write_all(&piece);
            let event = written.as_ref().map_or(Event::StdoutClosed, |()| Event::Written(piece.len()));
            let goes_on = written.map_err(|it| why.set(it)).is_ok();
            if events.blocking_send(event).is_err() || !goes_on {
                break;
            }
        }
    })?;
    Ok(Stdout { fd, lines, failed })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use tokio::sync::mpsc::channel;

    use super::{Stdin, write_stdout};
    use crate::server::event::Event;

    fn text(event: Event) -> String {
        match event {
            Event::Stdin(bytes) => String::from_utf8(bytes).unwrap(),
            other => other.name().to_owned(),
        }
    }

    #[tokio::test]
    async fn what_a_client_says_is_heard_when_it_is_there() {
        let (ours, mut client) = std::io::pipe().unwrap();
        let somebody = ours.try_clone().unwrap();
        client.write_all(b"first").unwrap();
        let mut stdin = Stdin::of(ours.into()).unwrap();
        assert_eq!(text(stdin.next().await), "first");
        assert!(stdin.ready().is_none());
        let (heard, ()) = tokio::join!(stdin.next(), async { client.write_all(b"second").unwrap() });
        assert_eq!(text(heard), "second");
        // What somebody else takes is not waited for.
        if !matches!(stdin, Stdin::Thread(_)) {
            client.write_all(b"x").unwrap();
            (&somebody).read_exact(&mut [0]).unwrap();
            assert!(stdin.ready().is_none());
        }
        client.write_all(b"last").unwrap();
        drop(client);
        assert_eq!([text(stdin.next().await), text(stdin.next().await)], ["last", "stdin closed"]);
    }

    #[tokio::test]
    async fn a_file_is_heard_to_its_end() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"all of it").unwrap();
        file.rewind().unwrap();
        let mut stdin = Stdin::of(file.into()).unwrap();
        assert!(matches!(stdin, Stdin::Thread(_)));
        assert_eq!([text(stdin.next().await), text(stdin.next().await)], ["all of it", "stdin closed"]);
    }

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

    /// Not only when the thread is over: who ends at once would end well.
    #[cfg(target_os = "linux")]
    #[test]
    // A device, which the hands do not open.
    #[allow(clippy::disallowed_methods)]
    fn lines_that_are_lost_are_known_before_it_is_said() {
        for _ in 0..100 {
            let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
            let (events, mut written) = channel(4);
            let stdout = write_stdout(full.into(), events).unwrap();
            stdout.send(b"{}\n".to_vec(), true);
            assert!(matches!(written.blocking_recv(), Some(Event::StdoutClosed)));
            assert_eq!(stdout.finish().unwrap_err().kind(), std::io::ErrorKind::StorageFull);
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
