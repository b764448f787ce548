//! The recorder: in the sandbox's init process it is told of calls before they are made, and lets each of them go on.

mod attempt;
mod filter;
mod findings;
mod memory;

use std::{
    fs::File,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd, RawFd},
        unix::{fs::FileExt, net::UnixStream},
    },
    path::PathBuf,
};

use nix::{
    libc::{self, seccomp_notif, seccomp_notif_resp},
    unistd::Pid,
};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use self::{
    attempt::{Attempt, FolderId, folder_id},
    filter::Subject,
    findings::Findings,
};

pub use filter::can_install;

/// Lies at the same address in a process that was forked just now.
static PROBE: [u8; 4] = *b"cast";

/// In the process that becomes the command, its end of what it and the sandbox's init process say to each other before.
pub struct Installer(pub UnixStream);

/// What a listener hears, and what it has found.
#[derive(Debug)]
pub struct Recorder {
    to: File,
    /// `None`: no process is left that it could hear of.
    pub listener: Option<OwnedFd>,
    /// Folders that are written, but in which no name comes or goes.
    closed: Vec<FolderId>,
    is_online: bool,
    findings: Findings,
    /// The command's process.
    command: i32,
}

impl Recorder {
    /// In the init process, whose child the other one is. `record`: a file that castor reads. `None`: the system does not let
    /// it see what it must; then nothing was installed.
    pub fn start(
        record: OwnedFd,
        (mut ours, theirs): (UnixStream, UnixStream),
        child: Pid,
        (closed, is_online): (Vec<PathBuf>, bool),
    ) -> Option<Self> {
        let number = theirs.as_raw_fd();
        // With it open here, nobody would notice that the child is gone.
        drop(theirs);
        let pid = child.as_raw();
        let handle = pidfd_open(rustix::process::Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        let take = |number: RawFd| pidfd_getfd(&handle, number, PidfdGetfdFlags::empty()).ok();
        let probe: [u8; 4] = memory::read_array(pid, PROBE.as_ptr().addr() as u64)?;
        (probe == PROBE && take(number).is_some()).then_some(())?;
        ours.write_all(&[1]).ok()?;
        let mut number = [0; 4];
        ours.read_exact(&mut number).ok()?;
        let listener = take(RawFd::from_ne_bytes(number))?;
        let closed = closed.iter().filter_map(|it| folder_id(it)).collect();
        let findings = Findings::default();
        let res = Self { to: record.into(), listener: Some(listener), closed, is_online, findings, command: pid };
        // That there is a record at all is known from now on.
        res.write().ok()?;
        // Before it the command does not start.
        ours.write_all(&[1]).ok()?;
        Some(res)
    }

    /// Takes one call, and lets it go on. What is refused is refused by what refuses it anyway: so it does not matter that
    /// the process may change its words meanwhile.
    pub fn answer(&mut self) {
        let Some(listener) = self.listener.as_ref().map(AsRawFd::as_raw_fd) else { return };
        // SAFETY: numbers, of which each may be 0.
        let mut call: seccomp_notif = unsafe { std::mem::zeroed() };
        // SAFETY: the kernel writes one such struct, which lives through the call.
        if unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &raw mut call) } != 0 {
            // The process was killed meanwhile.
            return;
        }
        let (pid, [first, ..]) = (call.pid as i32, call.data.args);
        // SAFETY: the kernel reads a number, which lives through the call.
        let is_same = || unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &raw const call.id) } == 0;
        let attempt = Attempt { pid, number: call.data.nr, args: call.data.args, is_online: self.is_online };
        let is_new = match filter::find(attempt.number) {
            // As the kernel cuts it.
            Some(Subject::Exit) => self.findings.end_of_thread(pid, (first & 0xff) as i32),
            _ => {
                let new = attempt.refused(&self.closed).and_then(|what| self.findings.of_thread(pid, what));
                // Else the number may have been another process's, and so may what was read.
                new.filter(|_| is_same()).map(|it| self.findings.add(it)).is_some()
            }
        };
        if is_new {
            // Before the process goes on, so that castor knows what a server speaks of.
            _ = self.write();
        }
        let flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32;
        let answer = seccomp_notif_resp { id: call.id, val: 0, error: 0, flags };
        // SAFETY: the kernel reads one such struct, which lives through the call. It fails where the process was killed.
        _ = unsafe { libc::ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &raw const answer) };
    }

    /// `code`: its exit code, or what shells make of a signal. What comes later nobody asks about.
    pub fn end_command(&mut self, code: i32) {
        self.findings.end_of_process(self.command, code);
        _ = self.write();
    }

    fn write(&self) -> io::Result<()> {
        // Behind a shorter one an older rest stays, which nobody reads.
        self.to.write_all_at(&serde_json::to_vec(&self.findings.refusals())?, 0)
    }
}

impl Installer {
    /// From here on this process is told of.
    ///
    /// # Errors
    /// Nobody would answer: the command must not start.
    pub fn install(mut self, with_network: bool) -> io::Result<()> {
        let mut word = [0];
        if self.0.read(&mut word)? == 0 {
            // Nobody can record.
            return Ok(());
        }
        let listener = filter::install(with_network);
        let number = listener.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        self.0.write_all(&number.to_ne_bytes())?;
        match listener {
            // Another listener stands above, or the system has none.
            Err(_) => Ok(()),
            Ok(_) => self.0.read_exact(&mut word),
        }
    }
}
