//! A program of the user's in the foreground: it has the terminal until it ends.

use std::{
    fs, io,
    os::{
        fd::AsFd,
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::Path,
    process::{Child, Command, ExitStatus},
};

use nix::{
    libc,
    sys::signal::{SigSet, Signal, kill, raise},
    unistd::{Pid, getpgrp, tcgetpgrp, tcsetpgrp},
};

use super::{ObeyedFindings, Spawn, cbreak::open_terminal, table::Table};
use castor_base::{network::NetworkRecord, path::AbsPath, sandbox::Refusal};

/// Signals for the program that somebody may send to castor in its place.
const PASSED_ON: &[Signal] =
    &[Signal::SIGHUP, Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGUSR1, Signal::SIGUSR2];

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

/// The end of a program that had castor's streams.
pub struct ForegroundEnd {
    pub status: ExitStatus,
    /// What it made that other programs would obey.
    pub findings: ObeyedFindings,
    pub network: NetworkRecord,
    /// What the sandbox kept it from.
    pub refusals: Vec<Refusal>,
}

impl ForegroundEnd {
    /// Ends castor as the program ended.
    pub fn exit_code(&self) -> u8 {
        if let Some(signal) = self.status.signal().and_then(|it| Signal::try_from(it).ok()) {
            let mut only = SigSet::empty();
            only.add(signal);
            // It left its core, if anybody wants one.
            #[cfg(target_os = "linux")]
            let _ = nix::sys::prctl::set_dumpable(false);
            _ = raise(signal);
            _ = only.thread_unblock();
        }
        let code = self.status.code().unwrap_or_else(|| 128 + self.status.signal().unwrap_or_default());
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

/// Starts it with castor's own streams, terminal and process group, and waits for its end. What it leaves running ends
/// with it. Blocks; must be called before the process has any other thread.
///
/// # Errors
/// When it cannot be started.
#[cfg(target_os = "linux")]
pub fn run_confined(spawn: &Spawn<'_>) -> io::Result<ForegroundEnd> {
    use nix::sys::signalfd::{SfdFlags, SignalFd};
    let mut heard: SigSet = PASSED_ON.iter().copied().collect();
    heard.add(Signal::SIGCHLD);
    heard.add(Signal::SIGTTOU);
    heard.thread_block()?;
    let signals = SignalFd::with_flags(&heard, SfdFlags::SFD_CLOEXEC)?;
    let (command, rest) = spawn.bare_command(&format!("front.{}", std::process::id()))?;
    let mut command: Command = command.into_std();
    let mut child = command.spawn()?;
    // It owns the new process's end of the pipe by which the helper lives.
    drop(command);
    let mut placeholders = match rest() {
        Ok(it) => it,
        Err(why) => {
            _ = child.kill();
            _ = child.wait();
            return Err(why);
        }
    };
    let status = loop {
        if let Some(it) = child.try_wait()? {
            break it;
        }
        follow_stop(&child);
        match signals.read_signal()? {
            // What the terminal sends is sent to the whole group.
            Some(it) if it.ssi_code != libc::SI_KERNEL => pass_on(&child, it.ssi_signo),
            _ => (),
        }
    };
    take_terminal_back();
    let network = placeholders.network_record();
    let refusals = placeholders.record().and_then(|it| it.read()).unwrap_or_default();
    let quarantine = placeholders.quarantine();
    // It is no session's.
    let temporary = placeholders.tmp().map(Path::to_owned).into_iter().chain(placeholders.temporary());
    let temporary: Vec<_> = temporary.collect();
    drop(placeholders.release());
    let findings = quarantine.findings();
    for it in temporary {
        _ = fs::remove_dir_all(&it);
        _ = it.parent().map(fs::remove_dir);
    }
    Ok(ForegroundEnd { status, findings, network: network.read(), refusals })
}

/// The helper stopped as the program did: then this process does, and whoever waits for it goes on.
#[cfg(target_os = "linux")]
fn follow_stop(child: &Child) {
    use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
    let Ok(pid) = i32::try_from(child.id()) else { return };
    let stopped = waitid(Id::Pid(Pid::from_raw(pid)), WaitPidFlag::WSTOPPED | WaitPidFlag::WNOHANG);
    if matches!(stopped, Ok(WaitStatus::Stopped(..))) {
        _ = raise(Signal::SIGSTOP);
        // Only this process may have been woken.
        _ = kill(Pid::from_raw(pid), Signal::SIGCONT);
    }
}

/// To the program itself: it is the child of the sandbox's first process, and that one the helper's.
#[cfg(target_os = "linux")]
fn pass_on(child: &Child, number: u32) {
    let signal = i32::try_from(number).ok().and_then(|it| Signal::try_from(it).ok());
    let Some(signal) = signal.filter(|it| PASSED_ON.contains(it)) else { return };
    let table = Table::read();
    let program = table.first_child(child.id()).and_then(|first| table.first_child(first));
    if let Some(it) = program.and_then(|it| i32::try_from(it).ok()) {
        _ = kill(Pid::from_raw(it), signal);
    }
}

/// A shell that had jobs of its own leaves the terminal to none of us.
fn take_terminal_back() {
    let stdin = io::stdin();
    if tcgetpgrp(stdin.as_fd()).is_ok_and(|it| it != getpgrp()) {
        _ = tcsetpgrp(stdin.as_fd(), getpgrp());
    }
}

/// Becomes the program: another castor's sandbox holds it already.
pub fn become_program(argv: &[&str], cwd: &AbsPath) -> io::Error {
    let [program, args @ ..] = argv else { return io::ErrorKind::InvalidInput.into() };
    Command::new(program).args(args).current_dir(cwd.as_path()).exec()
}

/// As above, where signals are not told apart.
///
/// # Errors
/// When it cannot be started.
#[cfg(not(target_os = "linux"))]
pub fn run_confined(spawn: &Spawn<'_>) -> io::Result<ForegroundEnd> {
    let (command, rest) = spawn.bare_command(&format!("front.{}", std::process::id()))?;
    let mut child = command.into_std().spawn()?;
    let mut placeholders = rest()?;
    let status = child.wait()?;
    take_terminal_back();
    let quarantine = placeholders.quarantine();
    drop(placeholders.release());
    let (findings, network) = (quarantine.findings(), NetworkRecord::default());
    Ok(ForegroundEnd { status, findings, network, refusals: Vec::new() })
}
