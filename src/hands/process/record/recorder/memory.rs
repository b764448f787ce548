//! The memory of a process that waits for an answer: only read, and believed as a word of it, since it may change at once.

use std::{ffi::OsString, io::IoSliceMut, os::unix::ffi::OsStringExt, path::PathBuf};

use nix::{
    sys::uio::{RemoteIoVec, process_vm_readv},
    unistd::Pid,
};

/// Longest path that the system takes.
const MAX_PATH: usize = 4096;

/// Fills the beginning of `to` with what lies at an address. Returns how much that was.
pub(super) fn read(pid: i32, address: u64, to: &mut [u8]) -> Option<usize> {
    let from = RemoteIoVec { base: usize::try_from(address).ok()?, len: to.len() };
    process_vm_readv(Pid::from_raw(pid), &mut [IoSliceMut::new(to)], &[from]).ok()
}

pub(super) fn read_array<const N: usize>(pid: i32, address: u64) -> Option<[u8; N]> {
    let mut res = [0; N];
    (read(pid, address, &mut res)? == N).then_some(res)
}

/// The text that ends with a zero.
pub(super) fn read_path(pid: i32, address: u64) -> Option<PathBuf> {
    // What lies behind its page may not be there: then less is read.
    let mut text = [0; MAX_PATH];
    let count = read(pid, address, &mut text)?;
    let end = text.get(..count)?.iter().position(|it| *it == 0).filter(|it| *it > 0)?;
    Some(OsString::from_vec(text.get(..end)?.to_vec()).into())
}
