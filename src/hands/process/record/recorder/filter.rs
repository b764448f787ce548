//! The filter of the sandbox's record: which system calls the sandbox's init process is told of. It refuses nothing.

use std::{
    io,
    os::fd::{FromRawFd, OwnedFd},
};

use nix::libc::{self, c_int, c_long};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompRule, sock_filter,
};

use crate::process::seccomp::{CallRules, compile, when_any_bit};

/// What a call is about, by the numbers of its arguments. Of a path: the folder that it begins in, and the path.
#[derive(Clone, Copy, Debug)]
pub(super) enum Subject {
    /// A file is opened. Last: the flags.
    Open((u8, u8), u8),
    /// The same. Last: what has the flags at its beginning.
    OpenHow((u8, u8), u8),
    /// A file is opened for writing, or made.
    Create((u8, u8)),
    /// A name comes to be.
    Make((u8, u8)),
    /// What has this name changes.
    Change((u8, u8)),
    /// A name goes.
    Remove((u8, u8)),
    /// A name goes, and another comes to be.
    Move((u8, u8), (u8, u8)),
    /// An address, and its length.
    Address(u8, u8),
    /// The head of a message, which may have an address.
    Message(u8),
    /// The process ends with a code.
    Exit,
}

use Subject::{Address, Change, Create, Exit, Make, Message, Move, Open, OpenHow, Remove};

/// In the place of a folder's number: the current one.
pub(super) const HERE: u8 = u8::MAX;

/// Openings that only read have none of these, and cost nothing.
const WRITES: c_int = libc::O_WRONLY | libc::O_RDWR | libc::O_CREAT | libc::O_TRUNC;

/// Calls by their numbers, which are about the same.
type Calls = (Subject, &'static [c_long]);

/// In the order in which they are looked for: what is frequent comes first.
const OF_FILES: &[Calls] = &[
    (Open((0, 1), 2), &[libc::SYS_openat]),
    (Exit, &[libc::SYS_exit_group]),
    (Remove((0, 1)), &[libc::SYS_unlinkat]),
    (Make((0, 1)), &[libc::SYS_mkdirat, libc::SYS_mknodat]),
    (Move((0, 1), (2, 3)), &[libc::SYS_renameat, libc::SYS_renameat2]),
    (Make((2, 3)), &[libc::SYS_linkat]),
    (Make((1, 2)), &[libc::SYS_symlinkat]),
    (OpenHow((0, 1), 2), &[libc::SYS_openat2]),
    (Change((HERE, 0)), &[libc::SYS_truncate]),
    (Change((0, 1)), &[libc::SYS_fchmodat]),
];

/// Calls of old, which newer architectures do not have.
#[cfg(target_arch = "x86_64")]
const OF_OLD: &[Calls] = &[
    (Open((HERE, 0), 1), &[libc::SYS_open]),
    (Remove((HERE, 0)), &[libc::SYS_unlink, libc::SYS_rmdir]),
    (Move((HERE, 0), (HERE, 1)), &[libc::SYS_rename]),
    (Make((HERE, 0)), &[libc::SYS_mkdir, libc::SYS_mknod]),
    (Create((HERE, 0)), &[libc::SYS_creat]),
    (Make((HERE, 1)), &[libc::SYS_link, libc::SYS_symlink]),
    (Change((HERE, 0)), &[libc::SYS_chmod]),
];
#[cfg(not(target_arch = "x86_64"))]
const OF_OLD: &[Calls] = &[];

/// Behind the first, which leads to other programs' sockets, too: only where the sandbox has a network of its own.
const OF_NETWORK: &[Calls] = &[
    (Address(1, 2), &[libc::SYS_connect]),
    (Address(4, 5), &[libc::SYS_sendto]),
    (Message(1), &[libc::SYS_sendmsg, libc::SYS_sendmmsg]),
];

pub(super) fn find(number: c_int) -> Option<Subject> {
    let mut all = OF_FILES.iter().chain(OF_OLD).chain(OF_NETWORK);
    all.find(|it| it.1.contains(&c_long::from(number))).map(|it| it.0)
}

/// From now on this process and its children are told of. What comes is answered by the holder of what is returned.
pub(super) fn install(with_network: bool) -> io::Result<OwnedFd> {
    let network = OF_NETWORK.iter().take(if with_network { OF_NETWORK.len() } else { 1 });
    listen(&program(OF_FILES.iter().chain(OF_OLD).chain(network)).map_err(io::Error::other)?)
}

/// Whether the system gives such a filter at all, and nobody above has one. For a process that does nothing else.
pub fn can_install() -> bool {
    program(std::iter::empty()).is_ok_and(|it| listen(&it).is_ok())
}

fn listen(program: &[sock_filter]) -> io::Result<OwnedFd> {
    let program = libc::sock_fprog { len: program.len() as u16, filter: program.as_ptr().cast_mut().cast() };
    let install = |flags: libc::c_ulong| {
        // SAFETY: the program lives through the call, and the new descriptor has no other owner.
        unsafe {
            let res = libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const program);
            let res = c_int::try_from(res).ok().filter(|it| *it >= 0).ok_or_else(io::Error::last_os_error)?;
            Ok(OwnedFd::from_raw_fd(res))
        }
    };
    // A signal does not interrupt a call that is being looked at; older kernels do not know that.
    install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
        .or_else(|_: io::Error| install(libc::SECCOMP_FILTER_FLAG_NEW_LISTENER))
}

fn program<'n>(calls: impl Iterator<Item = &'n Calls>) -> Result<BpfProgram, BackendError> {
    let mut rules = CallRules::new();
    for (about, numbers) in calls {
        let told = match *about {
            Open(_, flags) => when_any_bit(flags, WRITES as u64)?,
            // What has no address goes to a socket that is connected.
            Address(at, _) => vec![SeccompRule::new(vec![SeccompCondition::new(at, Len::Qword, Op::Ne, 0)?])?],
            _ => Vec::new(),
        };
        rules.extend(numbers.iter().map(|it| (*it, told.clone())));
    }
    let mut res = compile(rules, SeccompAction::Trace(0))?;
    // The crate knows no filter that tells a listener.
    let told = res.iter_mut().filter(|it| it.k == libc::SECCOMP_RET_TRACE);
    told.for_each(|it| it.k = libc::SECCOMP_RET_USER_NOTIF);
    Ok(res)
}
