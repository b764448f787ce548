//! The sandbox's record: what a sandbox refused to a command, as the kernel tells it before each call that may be refused.
//!
//! The command's process installs a filter (`filter`) whose listener the sandbox's init process takes over (`recorder`).
//! That one lets each call go on, and writes down those that the sandbox will refuse (`attempt`) with the process that met
//! it (`findings`). Castor reads the record when a command has ended, and while a server runs. It leads to questions, and
//! never gives a right.

#[cfg(target_os = "linux")]
mod attempt;
#[cfg(target_os = "linux")]
mod filter;
#[cfg(target_os = "linux")]
mod findings;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod recorder;

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::Path,
};

use crate::base::sandbox::{Refusal, Refused};

#[cfg(target_os = "linux")]
pub(super) use self::{
    filter::can_install,
    recorder::{Installer, Recorder},
};

/// Whether a program in this process's network listens on a port, of whichever protocol.
pub fn is_served(port: u16) -> bool {
    // Of those without connections all are.
    [("tcp", Some("0A")), ("tcp6", Some("0A")), ("udp", None), ("udp6", None)].into_iter().any(|(name, state)| {
        let table = fs::read_to_string(format!("/proc/net/{name}")).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let own = words.next().and_then(|it| u16::from_str_radix(it.rsplit_once(':')?.1, 16).ok());
            own == Some(port) && state.is_none_or(|it| words.nth(1) == Some(it))
        })
    })
}

/// The record of one sandbox.
#[derive(Debug)]
pub struct SandboxRecord(File);

impl SandboxRecord {
    /// With the file for the sandbox's init process.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> std::io::Result<(Self, File)> {
        use nix::sys::memfd::{MFdFlags, memfd_create};
        let file = File::from(memfd_create("castor-record", MFdFlags::MFD_CLOEXEC)?);
        Ok((Self(file.try_clone()?), file))
    }

    /// `None`: nothing was recorded, as the system does not tell.
    pub fn read(&self) -> Option<Vec<Refusal>> {
        let size = usize::try_from(self.0.metadata().ok()?.len()).ok()?;
        let mut text = vec![0; size];
        self.0.read_exact_at(&mut text, 0).ok()?;
        let mut all: Vec<Refusal> = serde_json::Deserializer::from_slice(&text).into_iter().next()?.ok()?;
        // Where no folder is, nobody makes anything.
        all.retain(|it| !matches!(&it.what, Refused::Write(it) if !it.as_path().parent().is_some_and(Path::is_dir)));
        Some(all)
    }
}
