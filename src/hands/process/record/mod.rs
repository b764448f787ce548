//! The sandbox's record: what a sandbox refused to a command, as the kernel tells it before each call that may be refused.
//!
//! The command's process installs a filter whose listener the sandbox's init process takes over (`recorder`).
//! That one lets each call go on, and writes down those that the sandbox will refuse (`attempt`) with the process that met
//! it (`findings`). Castor reads the record when a command has ended, and while a server runs. It leads to questions, and
//! never gives a right.

#[cfg(target_os = "linux")]
mod recorder;

use std::{
    fs::{self, File},
    os::{fd::AsRawFd, unix::fs::FileTypeExt},
    path::Path,
};

#[cfg(target_os = "linux")]
use super::sandbox::secret_masks::SecretMasks;
use crate::door::local::is_served;
use castor_base::sandbox::{Refusal, Refused};

#[cfg(target_os = "linux")]
pub(super) use recorder::{Installer, Recorder, can_install};

/// The record of one sandbox.
#[derive(Debug)]
pub struct SandboxRecord {
    pub(super) file: File,
    /// It tells of attempts to read these secrets, too.
    #[cfg(target_os = "linux")]
    pub(super) masks: Option<SecretMasks>,
}

impl SandboxRecord {
    /// With the file for the sandbox's init process.
    #[cfg(target_os = "linux")]
    pub(super) fn new() -> std::io::Result<(Self, File)> {
        use nix::sys::memfd::{MFdFlags, memfd_create};
        let file = File::from(memfd_create("castor-record", MFdFlags::MFD_CLOEXEC)?);
        Ok((Self { file: file.try_clone()?, masks: None }, file))
    }

    /// `None`: nothing was recorded, as the system does not tell.
    pub fn read(&self) -> Option<Vec<Refusal>> {
        // Opened anew it is read from its beginning.
        let text = fs::read(format!("/proc/self/fd/{}", self.file.as_raw_fd())).ok()?;
        let mut all: Vec<Refusal> = serde_json::Deserializer::from_slice(&text).into_iter().next()?.ok()?;
        all.retain(|it| match &it.what {
            // Where no folder is, nobody makes anything.
            Refused::Write(it) => it.as_path().parent().is_some_and(Path::is_dir),
            Refused::Socket(it) => it.as_path().metadata().is_ok_and(|it| it.file_type().is_socket()),
            // Without a server there it fails everywhere.
            Refused::Connect(to) if !it.what.is_far() => is_served(to.port()),
            _ => true,
        });
        #[cfg(target_os = "linux")]
        all.extend(self.masks.iter().flat_map(SecretMasks::opened).map(|it| Refusal::failed(Refused::Read(it))));
        Some(all)
    }
}
