//! Process start: every child gets its own session, ends as a group, and never stays behind.
#![allow(clippy::disallowed_methods)]

pub mod cbreak;
pub mod command_group;
mod decode;
mod file_limit;
pub mod foreground;
mod groups;
pub mod heap;
pub mod outside;
mod pipes;
pub mod program_rights;
pub mod reach;
pub mod record;
pub mod sandbox;
#[cfg(target_os = "linux")]
mod seccomp;
pub mod server_process;
pub mod surroundings;
pub mod table;
mod terminal;
mod typed_terminal;

use std::{
    io,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::process::ExitStatusExt,
    },
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    pty::Winsize,
    sys::signal::{SigHandler, Signal, signal},
};
use tokio::{
    io::AsyncReadExt,
    net::unix::pipe,
    process::{ChildStdin, Command},
    time::{Instant, sleep_until},
};

use crate::door::SharedRecord;
use castor_base::{path::AbsPath, sandbox::Confinement};

pub use castor_base::terminal::{CommandEvent, Exit, ObeyedFindings};
use command_group::CommandGroup;
pub use decode::Utf8Decoder;
pub use file_limit::raise_file_limit;
pub use foreground::ForegroundEnd;
pub use groups::Groups;
pub use pipes::{PipedProcess, ProcessGuard};
use record::SandboxRecord;
use sandbox::{AfterSpawn, Placeholders, Quarantine};
pub use terminal::OwnTerminal;
pub use typed_terminal::TerminalKeys;

/// How much is read at once: a pipe holds no more than this by default.
const READ_SIZE: usize = 64 * 1024;
/// After the process ended, its children may hold the pipe open for ever: silence this long ends the reading.
const QUIET: Duration = Duration::from_millis(100);
/// After the process ended, talkative children are listened to no longer than this.
const DRAIN: Duration = Duration::from_millis(500);

/// Rows and columns of our terminals; most programs cut or wrap their lines to it.
const PTY_SIZE: Winsize = Winsize { ws_row: 40, ws_col: 120, ws_xpixel: 0, ws_ypixel: 0 };

/// What to start. Nothing of our own environment reaches the process: `env` is all it gets, and a mark by which it and
/// its children are found again.
#[derive(Clone, Copy, Debug)]
pub struct Spawn<'a> {
    /// Looked up in `env`'s `PATH` when it has no slash.
    pub program: &'a str,
    pub args: &'a [&'a str],
    pub cwd: &'a AbsPath,
    /// A later entry wins over an earlier one of the same name.
    pub env: &'a [(String, String)],
    pub stdin: Stdin,
    /// `None`: it may do what the user may.
    pub confined: Option<&'a Confinement>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stdin {
    Null,
    /// Take the writing end with [`Child::take_stdin`]; dropping it is the end of the file.
    Piped,
    /// The terminal that it prints to, which is its controlling terminal.
    Terminal,
    /// Castor's own, as the other two streams are, with castor's session: see [`foreground::run_confined`].
    Inherited,
}

enum State {
    Running,
    /// It ended; what is still in the pipe is read until silence or `last`.
    Draining {
        status: Option<ExitStatus>,
        quiet: Instant,
        last: Instant,
    },
    Over,
}

enum ChildEvent {
    Read(io::Result<usize>),
    Died(Option<ExitStatus>),
    Drained,
}

/// A process that we started, with all its children. Dropping it before it ended ends them all.
pub struct Child {
    child: tokio::process::Child,
    pid: u32,
    groups: Groups,
    pipe: Option<pipe::Receiver>,
    buffer: Box<[u8]>,
    decoder: Utf8Decoder,
    state: State,
    quarantine: Arc<Quarantine>,
    record: Option<Arc<SandboxRecord>>,
    network: SharedRecord,
}

impl Spawn<'_> {
    /// Starts it. Must be called within a tokio runtime with I/O and time.
    pub fn start(&self, groups: &Groups) -> io::Result<Child> {
        self.start_in_group(groups, false, None)
    }

    /// Starts it with a terminal of its own to print to, so that it shows colours and progress. As [`Self::start`].
    ///
    /// It is no controlling terminal: nobody could type there, so a program that opens `/dev/tty` to ask for a
    /// password must fail at once instead of waiting; and children that it leaves behind get no SIGHUP at its end.
    pub fn start_in_pty(&self, groups: &Groups) -> io::Result<Child> {
        self.start_in_group(groups, true, None)
    }

    /// As one of these, and in a group that the kernel holds to limits.
    pub fn start_in_group(
        &self,
        groups: &Groups,
        use_pty: bool,
        group: Option<Arc<CommandGroup>>,
    ) -> io::Result<Child> {
        let (pipe, output) = if use_pty {
            let (master, slave) = typed_terminal::open_pty(PTY_SIZE)?;
            // Only reading is done here, and for that a terminal is as good as a pipe; its end is EIO.
            (pipe::Receiver::from_owned_fd_unchecked(master)?, slave)
        } else {
            let (reader, writer) = io::pipe()?;
            (pipe::Receiver::from_owned_fd(OwnedFd::from(reader))?, OwnedFd::from(writer))
        };
        self.start_with((pipe, output), groups, group)
    }

    fn start_with(
        &self,
        (pipe, output): (pipe::Receiver, OwnedFd),
        groups: &Groups,
        group: Option<Arc<CommandGroup>>,
    ) -> io::Result<Child> {
        // Castor's end waits for it: what is made for it must not stay.
        let _starting = groups.hold_start();
        let mark = groups.mark();
        let (mut command, rest) = self.command(output, &mark)?;
        if let Some(entrance) = group.as_ref().and_then(|it| it.entrance().ok()) {
            // A 0 is the process that writes it. Outside of its group it is counted as where there is none.
            let join = move || nix::unistd::write(&entrance, b"0").map(drop).or(Ok(()));
            // SAFETY: runs between fork and exec; it makes one system call.
            unsafe { command.pre_exec(join) };
        }
        let (mut child, mut placeholders) = spawn_child(command, rest)?;
        placeholders.group = group;
        let Some(pid) = child.id() else {
            _ = child.start_kill();
            return Err(io::Error::other("the process ended before it had an id"));
        };
        let (quarantine, record) = (placeholders.quarantine(), placeholders.record());
        let network = placeholders.network_record();
        groups.add(pid, mark, placeholders);
        let buffer = vec![0; READ_SIZE].into_boxed_slice();
        let (groups, state) = (groups.clone(), State::Running);
        let (pipe, decoder) = (Some(pipe), Utf8Decoder::default());
        Ok(Child { child, pid, groups, pipe, buffer, decoder, state, quarantine, record, network })
    }

    fn command(&self, output: OwnedFd, mark: &str) -> io::Result<(Command, AfterSpawn<'_>)> {
        let (mut res, rest) = self.bare_command(mark)?;
        res.stdin(match self.stdin {
            Stdin::Null => Stdio::null(),
            Stdin::Piped => Stdio::piped(),
            Stdin::Terminal | Stdin::Inherited => output.try_clone()?.into(),
        });
        res.stdout(output.try_clone()?).stderr(output);
        Ok((res, rest))
    }

    /// All but the three streams.
    fn bare_command(&self, mark: &str) -> io::Result<(Command, AfterSpawn<'_>)> {
        let (mut res, rest, passed): (_, AfterSpawn<'_>, _) = match self.confined {
            None => {
                let mut res = Command::new(self.program);
                res.args(self.args).env_clear().envs(self.env.iter().map(|(name, value)| (name, value)));
                (res, Box::new(|| Ok(Placeholders::default())), Vec::new())
            }
            Some(it) => {
                let door = sandbox::prepare_start(it, self)?;
                let mut res = Command::new(door.program);
                res.args(door.args).env_clear().envs(sandbox::scrubbed(
                    it,
                    self.env,
                    (sandbox::has_mounts(), sandbox::has_door(it)),
                ));
                (res, door.rest, door.passed)
            }
        };
        res.current_dir(self.cwd).env(table::MARK_VARIABLE, mark).env_remove(surroundings::VARIABLE);
        if self.confined.is_some() || surroundings::is_inside() {
            res.env(surroundings::VARIABLE, "1");
        }
        let stdin = self.stdin;
        // SAFETY: runs between fork and exec; `prepare_child` makes system calls only and touches no memory of ours.
        unsafe { res.pre_exec(move || prepare_child(&passed, stdin)) };
        Ok((res, rest))
    }
}

impl Child {
    /// Its process id, which is also its group's and its session's.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Where to write what it reads; `None` unless [`Stdin::Piped`], and the second time.
    pub fn take_stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Whether a process can still print.
    pub fn is_open(&self) -> bool {
        self.pipe.is_some()
    }

    /// Waits for the next thing. Dropping the future loses nothing. After `Exited`, goes on with what children that
    /// were left print: whoever stops reading then ends them with SIGPIPE at their next word.
    pub async fn next(&mut self) -> CommandEvent {
        loop {
            if self.pipe.is_none() {
                match self.state {
                    State::Over => return CommandEvent::Closed,
                    State::Draining { .. } => return self.finish_exit().await,
                    State::Running => (),
                }
            }
            match self.wait().await {
                ChildEvent::Read(count) => match self.take(count.unwrap_or(0)) {
                    text if text.is_empty() => (),
                    text => return CommandEvent::Output(text),
                },
                ChildEvent::Died(status) => {
                    let now = Instant::now();
                    self.state = State::Draining { status, quiet: now + QUIET, last: now + DRAIN };
                }
                ChildEvent::Drained => return self.finish_exit().await,
            }
        }
    }

    /// What is found when the last of it is gone. Its exit tells nothing of that any more.
    pub fn final_findings(&mut self) -> impl Future<Output = ObeyedFindings> + Send + use<> {
        std::mem::take(&mut self.quarantine).final_findings()
    }

    /// Ends it and all its children: TERM now, KILL for those that are left 500 ms later. Does not wait.
    pub fn end(&self) {
        self.groups.end(self.pid);
    }

    async fn wait(&mut self) -> ChildEvent {
        let running = matches!(self.state, State::Running);
        let drained = match self.state {
            State::Draining { quiet, last, .. } => Some(quiet.min(last)),
            _ => None,
        };
        tokio::select! {
            count = read(self.pipe.as_mut(), &mut self.buffer) => ChildEvent::Read(count),
            status = self.child.wait(), if running => ChildEvent::Died(status.ok()),
            () = at(drained) => ChildEvent::Drained,
        }
    }

    fn take(&mut self, count: usize) -> String {
        if let State::Draining { quiet, .. } = &mut self.state {
            *quiet = Instant::now() + QUIET;
        }
        if count == 0 {
            self.pipe = None;
            return self.decoder.finish();
        }
        self.decoder.push(self.buffer.get(..count).unwrap_or_default())
    }

    async fn finish_exit(&mut self) -> CommandEvent {
        let State::Draining { status, .. } = self.state else { return CommandEvent::Closed };
        let mut left = self.groups.leader_exited(self.pid).await;
        let ended = !left.is_empty() && self.quarantine.is_open();
        if ended {
            self.groups.release_group(self.pid).await;
            left.clear();
        }
        self.state = State::Over;
        let signal = status.and_then(|it| it.signal()).map(signal_name);
        let findings = ObeyedFindings { ended_leftovers: ended, ..self.quarantine.findings() };
        let refusals = self.record.as_ref().and_then(|it| it.read());
        let (code, network) = (status.and_then(|it| it.code()), self.network.read());
        CommandEvent::Exited(Exit { code, signal, left_running: left, findings, refusals, network: Box::new(network) })
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !matches!(self.state, State::Over) {
            self.end();
        }
    }
}

/// Starts it, and does what it waits for.
fn spawn_child(mut command: Command, rest: AfterSpawn<'_>) -> io::Result<(tokio::process::Child, Placeholders)> {
    let mut child = command.spawn()?;
    // It owns the new process's ends of all pipes. With them here, output would never be at its end, and nobody would
    // notice that the helper is gone.
    drop(command);
    match rest() {
        Ok(it) => Ok((child, it)),
        Err(why) => {
            _ = child.start_kill();
            Err(why)
        }
    }
}

/// What the new process does before it becomes the program. Only async-signal-safe calls here.
fn prepare_child(passed: &[OwnedFd], stdin: Stdin) -> io::Result<()> {
    // Ours close by themselves, but not those that castor was started with: an editor's sockets and locks.
    #[cfg(target_os = "linux")]
    // SAFETY: marks descriptors, by number; an old kernel knows no such call and does nothing.
    unsafe {
        use nix::libc::{CLOSE_RANGE_CLOEXEC, SYS_close_range, c_uint, syscall};
        _ = syscall(SYS_close_range, 3 as c_uint, c_uint::MAX, CLOSE_RANGE_CLOEXEC);
    }
    for it in passed {
        fcntl(it, FcntlArg::F_SETFD(FdFlag::empty()))?;
    }
    // What castor ignores is inherited; programs expect the default.
    // SAFETY: sets a default, which is async-signal-safe.
    unsafe { signal(Signal::SIGXFSZ, SigHandler::SigDfl) }?;
    // A session and not just a group: `ssh` or `sudo` would open the controlling terminal, which is the editor's
    // screen, and ask there for a password.
    if stdin != Stdin::Inherited {
        nix::unistd::setsid()?;
    }
    if stdin == Stdin::Terminal {
        // SAFETY: its standard input is there by now, and stays.
        rustix::process::ioctl_tiocsctty(unsafe { BorrowedFd::borrow_raw(0) })?;
    }
    // Editors that are closed in a hurry kill castor, which then cannot end anybody.
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    Ok(())
}

/// A file that may not grow is told by its write, as a full disk is; the signal that comes with that would end castor.
pub fn survive_size_limits() {
    // SAFETY: ignoring a signal runs no code of ours.
    _ = unsafe { signal(Signal::SIGXFSZ, SigHandler::SigIgn) };
}

fn signal_name(number: i32) -> String {
    nix::sys::signal::Signal::try_from(number).map_or_else(|_| format!("signal {number}"), |it| it.as_str().to_owned())
}

async fn read(pipe: Option<&mut pipe::Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match pipe {
        Some(it) => it.read(buffer).await,
        None => std::future::pending().await,
    }
}

async fn at(instant: Option<Instant>) {
    match instant {
        Some(it) => sleep_until(it).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests;
