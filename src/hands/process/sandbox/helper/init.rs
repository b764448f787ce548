//! The init process of a sandbox: starts the command, adopts orphans, and ends everything with itself.
//!
//! With namespaces it is number 1 of its own, and the kernel kills all with it. Without them it is only the one to whom
//! orphans fall, and ends them by itself. Three processes stand in a row: the one that castor started waits and reports
//! the command's end; this one; the command.

use std::{
    convert::Infallible,
    fs::File,
    io::{self, PipeReader, PipeWriter, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
};

use nix::{
    errno::Errno,
    libc,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::{
        prctl,
        signal::{SigHandler, SigSet, Signal, kill, raise, signal},
        signalfd::{SfdFlags, SignalFd},
        wait::{WaitPidFlag, WaitStatus, waitpid},
    },
    unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, getpid},
};

use super::{SetupError, failed};
use crate::process::{
    record::{Installer, Recorder},
    sandbox::{HELPER_FAILED, SandboxPlan},
    table::{Process, Table},
};

/// By which castor knows this process among those that a command left behind.
pub const NAME: &std::ffi::CStr = c"castor-init";

/// The command's end: its exit code or signal, and whether processes are left.
pub(super) struct Report {
    code: i32,
    signal: i32,
    pub(super) left: bool,
}

/// In the place of a signal that ended the command: it was stopped, and may go on.
const STOPPED: u8 = u8::MAX;

/// How the first process of a sandbox works.
pub(super) struct InitMode {
    /// It has numbers of its own, and the kernel kills all with it.
    pub own_numbers: bool,
    /// The command has the user's terminal: when it stops, so do those above it.
    pub in_front: bool,
    /// Where it writes what was refused.
    pub record: Option<OwnedFd>,
}

/// Runs `command` in the last of the three processes, with what `arrange` in the second read from `life`. Returns only
/// where something went wrong. All three live no longer than somebody holds the other end of `life`.
pub(super) fn start(
    life: PipeReader,
    mode: InitMode,
    arrange: impl FnOnce(&mut PipeReader) -> Result<SandboxPlan, SetupError>,
    command: impl FnOnce(SandboxPlan, Option<Installer>) -> SetupError,
) -> Result<Infallible, SetupError> {
    let (reader, writer) = io::pipe().map_err(failed("pipe"))?;
    // What is sent to the group is for the command alone.
    SigSet::all().thread_block().map_err(failed("signals"))?;
    // SAFETY: there is one thread only, so the new process may do anything.
    match unsafe { fork() }.map_err(failed("fork"))? {
        ForkResult::Parent { child } => {
            drop((life, writer));
            wait_and_report(child, reader)
        }
        ForkResult::Child => {
            drop(reader);
            be_first(life, writer, mode, arrange, command)
        }
    }
}

/// The process that castor started: it ends as the command ended.
fn wait_and_report(first: Pid, mut reader: PipeReader) -> ! {
    silence();
    let report = loop {
        match Report::read(&mut reader) {
            // Whoever began to wait for us goes on, and wakes all of us some day.
            Some(Report { signal, .. }) if signal == i32::from(STOPPED) => _ = raise(Signal::SIGSTOP),
            it => break it,
        }
    };
    if !report.as_ref().is_some_and(|it| it.left) {
        // Whoever asks now who is left must not find it.
        let end = waitpid(first, None);
        if let (None, Ok(WaitStatus::Exited(_, code))) = (&report, end) {
            std::process::exit(code);
        }
    }
    end_as(report)
}

/// There was no report: the command was killed.
pub(super) fn end_as(report: Option<Report>) -> ! {
    match report {
        Some(Report { code, signal: 0, .. }) => std::process::exit(code),
        Some(it) => die_of(it.signal),
        None => die_of(libc::SIGKILL),
    }
}

fn die_of(number: i32) -> ! {
    if let Ok(it) = Signal::try_from(number) {
        // SAFETY: gives back the default; no code of ours is called.
        _ = unsafe { signal(it, SigHandler::SigDfl) };
        // The command wrote its core, if anybody wants one.
        _ = prctl::set_dumpable(false);
        _ = raise(it);
        let mut only = SigSet::empty();
        only.add(it);
        _ = only.thread_unblock();
    }
    std::process::exit(128 + number)
}

/// The second of the three processes; it never returns but in the third, where the command cannot be had.
pub(super) fn be_first(
    mut life: PipeReader,
    writer: PipeWriter,
    mode: InitMode,
    arrange: impl FnOnce(&mut PipeReader) -> Result<SandboxPlan, SetupError>,
    command: impl FnOnce(SandboxPlan, Option<Installer>) -> SetupError,
) -> Result<Infallible, SetupError> {
    let InitMode { own_numbers, in_front, record } = mode;
    prctl::set_name(NAME).map_err(failed("name"))?;
    if !own_numbers {
        prctl::set_child_subreaper(true).map_err(failed("subreaper"))?;
    }
    let plan = arrange(&mut life)?;
    let ends = UnixStream::pair().map_err(failed("record"))?;
    let mut child_ended = SigSet::empty();
    child_ended.add(Signal::SIGCHLD);
    let ended = SignalFd::with_flags(&child_ended, SfdFlags::SFD_CLOEXEC).map_err(failed("signalfd"))?;
    // SAFETY: there is one thread only, so the new process may do anything.
    let main = match unsafe { fork() }.map_err(failed("fork"))? {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            let (ours, theirs) = ends;
            drop((life, writer, ended, ours));
            SigSet::empty().thread_set_mask().map_err(failed("signals"))?;
            return Err(command(plan, record.map(|_| Installer(theirs))));
        }
    };
    let bounds = (plan.closed_folders(), plan.network.is_whole);
    let recorder = record.and_then(|it| Recorder::start(it, ends, main, bounds));
    // Nobody looks into it, and its ends of the command's pipes are no reason to wait for more.
    _ = prctl::set_dumpable(false);
    silence();
    FirstProcess { main, life, ended, writer, recorder, own_numbers, in_front }.watch()
}

/// The first process of a sandbox, while others live in it.
struct FirstProcess {
    main: Pid,
    life: PipeReader,
    ended: SignalFd,
    writer: PipeWriter,
    recorder: Option<Recorder>,
    own_numbers: bool,
    in_front: bool,
}

impl FirstProcess {
    fn watch(mut self) -> ! {
        let mut reported = false;
        loop {
            let (report, anybody) = reap(self.main, |it| {
                if self.in_front && it == self.main {
                    _ = Report { code: 0, signal: i32::from(STOPPED), left: true }.write(&mut self.writer);
                }
            });
            if let Some(it) = report {
                if let Some(recorder) = &mut self.recorder {
                    recorder.end_command(if it.signal == 0 { it.code } else { 128 + it.signal });
                }
                reported = Report { left: anybody, ..it }.write(&mut self.writer).is_ok();
            }
            if !anybody {
                std::process::exit(if reported { 0 } else { HELPER_FAILED });
            }
            if self.waits_for_end() {
                end_all(self.own_numbers);
            }
        }
    }

    /// Waits until a child ends, or castor closes the pipe: then it is true. Answers the recorder's calls meanwhile.
    fn waits_for_end(&mut self) -> bool {
        loop {
            let listener = self.recorder.as_ref().and_then(|it| it.listener.as_ref());
            let wanted = if listener.is_some() { PollFlags::POLLIN } else { PollFlags::empty() };
            let mut all = [
                PollFd::new(self.life.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.ended.as_fd(), PollFlags::POLLIN),
                PollFd::new(listener.map_or(self.ended.as_fd(), AsFd::as_fd), wanted),
            ];
            match poll(&mut all, PollTimeout::NONE) {
                Ok(_) => (),
                Err(Errno::EINTR) => return false,
                Err(_) => return true,
            }
            let [over, ended, called] = all.map(|it| it.revents().unwrap_or(PollFlags::POLLHUP));
            match &mut self.recorder {
                Some(it) if called.contains(PollFlags::POLLIN) => it.answer(),
                Some(it) if !called.is_empty() => it.listener = None,
                _ => (),
            }
            // One word for many: all who ended are asked for anyway.
            if !ended.is_empty() {
                _ = self.ended.read_signal();
            }
            if !over.is_empty() || !ended.is_empty() {
                return !over.is_empty();
            }
        }
    }
}

/// Reaps ended processes. Returns the command's end, if it is among them, and whether processes are left.
fn reap(main: Pid, mut stopped: impl FnMut(Pid)) -> (Option<Report>, bool) {
    let mut report = None;
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG | WaitPidFlag::WUNTRACED)) {
            Ok(WaitStatus::Stopped(it, _)) => stopped(it),
            Ok(WaitStatus::Exited(it, code)) if it == main => report = Some(Report { code, signal: 0, left: false }),
            Ok(WaitStatus::Signaled(it, by, _)) if it == main => {
                report = Some(Report { code: 0, signal: by as i32, left: false });
            }
            Ok(WaitStatus::StillAlive) => return (report, true),
            Ok(_) | Err(Errno::EINTR) => (),
            Err(_) => return (report, false),
        }
    }
}

/// Castor is gone or wants no more of it.
fn end_all(own_numbers: bool) -> ! {
    // The kernel does the rest at the end of number 1.
    if own_numbers {
        std::process::exit(0);
    }
    while let Ok(own) = u32::try_from(getpid().as_raw()).map(Process::now) {
        let left = Table::read().members(own, &[own]);
        for it in left.iter().filter(|it| it.pid != own.pid) {
            _ = i32::try_from(it.pid).map(|it| kill(Pid::from_raw(it), Signal::SIGKILL));
        }
        // Whoever was made meanwhile falls to us.
        if waitpid(None, None) == Err(Errno::ECHILD) {
            break;
        }
    }
    std::process::exit(0)
}

/// Lets go of the command's pipes.
pub(super) fn silence() {
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        _ = dup2_stdin(&null);
        _ = dup2_stdout(&null);
        _ = dup2_stderr(&null);
    }
}

impl Report {
    fn write(&self, to: &mut PipeWriter) -> io::Result<()> {
        let [a, b, c, d] = self.code.to_ne_bytes();
        let signal = u8::try_from(self.signal).unwrap_or_default();
        to.write_all(&[a, b, c, d, signal, u8::from(self.left)])
    }

    pub(super) fn read(from: &mut PipeReader) -> Option<Self> {
        let mut bytes = [0; 6];
        from.read_exact(&mut bytes).ok()?;
        let [a, b, c, d, signal, left] = bytes;
        Some(Self { code: i32::from_ne_bytes([a, b, c, d]), signal: signal.into(), left: left != 0 })
    }
}
