//! Attempts: the call that a process is about to make, and whether its sandbox will refuse it.

use std::{
    ffi::OsStr,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    os::unix::{
        ffi::OsStrExt,
        fs::{FileTypeExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use nix::{
    errno::Errno,
    libc,
    unistd::{AccessFlags, access},
};

use super::{
    filter::{self, HERE, Subject},
    memory,
};
use crate::door::{inside, local::is_served};
use castor_base::{path::AbsPath, sandbox::Refused};

/// Nothing there is a matter of a sandbox's folders.
const OF_SYSTEM: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];
/// The port of name servers.
const NAMES: u16 = 53;
/// Longest address that is read: a path of a socket.
const MAX_ADDRESS: usize = 110;

/// The device and the number of a folder, by which the system knows it under each of its names.
pub(super) type FolderId = (u64, u64);

/// A call of a process, which waits.
pub(super) struct Attempt {
    pub pid: i32,
    pub number: i32,
    pub args: [u64; 6],
    /// It has the machine's network.
    pub is_online: bool,
}

impl Attempt {
    /// What is no argument is the current folder.
    pub fn argument(&self, number: u8) -> u64 {
        self.args.get(usize::from(number)).copied().unwrap_or(libc::AT_FDCWD as u64)
    }

    /// What will be refused. `closed`: device and number of folders that are written, but in which no name comes or goes.
    pub fn refused(&self, closed: &[FolderId]) -> Option<Refused> {
        let keeps_name = |path: &Path| path.ancestors().skip(1).find_map(|it| keeps_names(it, closed)).unwrap_or(false);
        // What is hidden looks absent, and castor knows whether it is.
        let stays = |path: &Path| match keeps_name(path) {
            true => is_there(path),
            false => is_read_only(path) && !path.is_symlink(),
        };
        // Else it is only made where it is not there, or it must not be there.
        let is_alone = libc::O_CREAT | libc::O_EXCL;
        let writes = |flags| flags & (libc::O_ACCMODE | libc::O_TRUNC) != 0 && flags & is_alone != is_alone;
        let opened = |path: PathBuf, flags: i32| match access(&path, AccessFlags::W_OK) {
            Err(Errno::ENOENT) => (flags & libc::O_CREAT != 0 && keeps_name(&path)).then_some(path),
            Err(Errno::EROFS) => writes(flags).then_some(path),
            _ => None,
        };
        let found = match filter::find(self.number)? {
            Subject::Open(path, flags) => opened(self.path(path)?, self.argument(flags) as i32),
            Subject::OpenHow(path, how) => {
                let flags = memory::read_array(self.pid, self.argument(how)).map(u64::from_ne_bytes)?;
                opened(self.path(path)?, flags as i32)
            }
            Subject::Create(path) => opened(self.path(path)?, libc::O_WRONLY | libc::O_CREAT),
            Subject::Make(path) => self.path(path).filter(|it| keeps_name(it) && !is_there(it)),
            Subject::Change(path) => self.path(path).filter(|it| is_read_only(it)),
            Subject::Remove(path) => self.path(path).filter(|it| stays(it)),
            Subject::Move(from, to) => {
                let (from, to) = (self.path(from).filter(|it| is_there(it))?, self.path(to)?);
                let is_kept = stays(&from);
                Some(if is_kept { from } else { to }).filter(|it| is_kept || stays(it) || keeps_name(it))
            }
            Subject::Address(at, length) => return self.connection(self.argument(at), self.argument(length)),
            Subject::Message(head) => {
                // It begins with the address and its length.
                let head: [u8; 12] = memory::read_array(self.pid, self.argument(head))?;
                let (at, length) = (u64::from_ne_bytes(*head.first_chunk()?), u32::from_ne_bytes(*head.last_chunk()?));
                return self.connection(at, length.into());
            }
            Subject::Exit => None,
        };
        real_path(&found?).map(Refused::Write)
    }

    /// Under a name by which this process finds it, too.
    fn path(&self, (folder, path): (u8, u8)) -> Option<PathBuf> {
        let path = memory::read_path(self.pid, self.argument(path))?;
        (!OF_SYSTEM.iter().any(|it| path.starts_with(it))).then(|| self.place(folder, &path))
    }

    fn place(&self, folder: u8, path: &Path) -> PathBuf {
        // A number is the lower half of an argument.
        let base = match self.argument(folder) as i32 {
            libc::AT_FDCWD => "cwd".to_owned(),
            it => format!("fd/{it}"),
        };
        // One that is absolute takes the place of all that is before it.
        Path::new("/proc").join(self.pid.to_string()).join(base).join(path)
    }

    fn connection(&self, at: u64, length: u64) -> Option<Refused> {
        let mut bytes = [0; MAX_ADDRESS];
        let wanted = bytes.get_mut(..usize::try_from(length).ok()?.min(MAX_ADDRESS))?;
        let count = memory::read(self.pid, at, wanted)?;
        let bytes = bytes.get(..count)?;
        if let Some(path) = socket_path(bytes).map(|it| self.place(HERE, it)) {
            // What hides one is a file. Whether there is one outside castor knows.
            let is_seen = path.metadata().is_ok_and(|it| it.file_type().is_socket());
            return real_path(&path).filter(|_| !is_seen).map(Refused::Socket);
        }
        let to = address(bytes).filter(|it| it.port() != 0 && !self.is_online)?;
        let is_here = to.ip().is_loopback() || to.ip().is_unspecified();
        match to.port() {
            _ if inside::is_doors(&to) => Some(Refused::Door),
            port if is_here && is_served(port) => None,
            NAMES => Some(Refused::Lookup(String::new())),
            _ => Some(Refused::Connect(to)),
        }
    }
}

/// Of a socket that has a file: what has none begins with a zero.
fn socket_path(bytes: &[u8]) -> Option<&Path> {
    let path = bytes.strip_prefix(&(libc::AF_UNIX as u16).to_ne_bytes())?;
    let path = path.split(|it| *it == 0).next().filter(|it| !it.is_empty())?;
    Some(Path::new(OsStr::from_bytes(path)))
}

/// Family, port, address; in the long form something else lies between the last two.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let rest = bytes.get(2..)?;
    let port = u16::from_be_bytes(*rest.first_chunk()?);
    let ip: IpAddr = match family {
        libc::AF_INET => Ipv4Addr::from(*rest.get(2..)?.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*rest.get(6..)?.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(SocketAddr::new(ip.to_canonical(), port))
}

/// Whether no name comes or goes in a folder. `None`: it is not there.
fn keeps_names(folder: &Path, closed: &[FolderId]) -> Option<bool> {
    match access(folder, AccessFlags::W_OK) {
        Err(Errno::ENOENT) => None,
        Err(Errno::EROFS) => Some(true),
        _ => Some(!closed.is_empty() && folder_id(folder).is_some_and(|it| closed.contains(&it))),
    }
}

/// `None`: it cannot be looked at.
pub(super) fn folder_id(folder: &Path) -> Option<FolderId> {
    folder.metadata().ok().map(|it| (it.dev(), it.ino()))
}

/// Whether the user may write it, and the sandbox does not let it be written. What the user may not comes first.
fn is_read_only(path: &Path) -> bool {
    access(path, AccessFlags::W_OK) == Err(Errno::EROFS)
}

fn is_there(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Without links on the way to it, as far as that is there.
fn real_path(path: &Path) -> Option<AbsPath> {
    let there = path.ancestors().skip(1).find(|it| is_there(it))?;
    AbsPath::new(there.canonicalize().ok()?.join(path.strip_prefix(there).ok()?))
}

#[cfg(test)]
mod tests;
