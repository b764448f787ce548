//! The memory of a process that waits for an answer: only read, and believed as a word of it, since it may change at once.

use std::{ffi::OsString, os::unix::ffi::OsStringExt, path::PathBuf};

use nix::libc::{self, c_void, iovec};

/// Longest path that the system takes.
const MAX_PATH: usize = 4096;

/// Fills the beginning of `to` with what lies at an address. Returns how much that was.
pub(super) fn read(pid: i32, address: u64, to: &mut [u8]) -> Option<usize> {
    let own = iovec { iov_base: to.as_mut_ptr().cast::<c_void>(), iov_len: to.len() };
    let other = iovec { iov_base: usize::try_from(address).ok()? as *mut c_void, iov_len: to.len() };
    // SAFETY: the kernel writes within `to`, and checks the other address by itself.
    let res = unsafe { libc::process_vm_readv(pid, &raw const own, 1, &raw const other, 1, 0) };
    usize::try_from(res).ok()
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
