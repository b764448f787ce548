//! Namespaces of its own: the whole disk read-only but for what may be written, and a network with nobody in it.

use std::{fs, io, path::Path};

use nix::{
    errno::Errno,
    libc,
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{getegid, geteuid},
};

use crate::world::process::sandbox::Plan;

const READ_ONLY: u64 = 1;

/// As the kernel takes it; older libc crates do not have it on all systems.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Moves this process into namespaces of its own.
pub(super) fn isolate(plan: &Plan) -> Result<(), String> {
    let (uid, gid) = (geteuid(), getegid());
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        // Of its children: it stays where it is itself.
        | CloneFlags::CLONE_NEWPID;
    if !plan.network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(|it| format!("namespaces: {it}"))?;
    let write =
        |name: &str, text: String| fs::write(format!("/proc/self/{name}"), text).map_err(|it| format!("{name}: {it}"));
    // Without this the group cannot be mapped.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))?;
    if !plan.network {
        loopback_up().map_err(|it| format!("loopback: {it}"))?;
    }
    Ok(())
}

/// Mounts what there is to see, as number 1 of the namespace.
pub(super) fn arrange(plan: &Plan) -> Result<(), String> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(|it| format!("private /: {it}"))?;
    set(Path::new("/"), true, READ_ONLY, 0)?;
    for it in &plan.writable {
        bind(it)?;
        set(it, false, 0, READ_ONLY)?;
    }
    // Mount points can be neither renamed nor removed.
    for it in &plan.fixed {
        bind(it)?;
    }
    for it in plan.protected.iter().chain(&plan.deep) {
        bind(it)?;
        set(it, true, READ_ONLY, 0)?;
    }
    // Last: it lies within castor's own folder, which may lie within what is protected.
    if plan.tmp.is_absolute() {
        bind(&plan.tmp)?;
        set(&plan.tmp, false, 0, READ_ONLY)?;
    }
    if Path::new("/dev/shm").is_dir() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), "/dev/shm", Some("tmpfs"), flags, Some("mode=1777"))
            .map_err(|it| format!("/dev/shm: {it}"))?;
    }
    proc()
}

/// Its own processes alone. In a container parts of `/proc` may be covered, and then the kernel gives nobody a fresh
/// one: the old one stays, in which Landlock lets nobody look into processes outside.
fn proc() -> Result<(), String> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    match mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>) {
        Ok(()) | Err(Errno::EPERM) => Ok(()),
        Err(it) => Err(format!("/proc: {it}")),
    }
}

fn bind(path: &Path) -> Result<(), String> {
    let none = None::<&str>;
    mount(Some(path), path, none, MsFlags::MS_BIND | MsFlags::MS_REC, none)
        .map_err(|it| format!("{}: {it}", path.display()))
}

fn set(path: &Path, recursive: bool, set: u64, clear: u64) -> Result<(), String> {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(|it| it.to_string())?;
    let attributes = Attributes { set, clear, propagation: 0, userns: 0 };
    let flags = if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers live through the call, and the size is the struct's.
    let res = unsafe {
        let (name, size) = (name.as_ptr(), size_of::<Attributes>());
        libc::syscall(libc::SYS_mount_setattr, libc::AT_FDCWD, name, flags, &raw const attributes, size)
    };
    match res {
        0 => Ok(()),
        _ => Err(format!("{}: {}", path.display(), io::Error::last_os_error())),
    }
}

/// A new network has its loopback switched off; tests and build tools talk over it.
fn loopback_up() -> io::Result<()> {
    // SAFETY: the request is a valid struct for both calls, and the socket is closed by its owner.
    unsafe {
        use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(socket);
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = libc::c_char::try_from(*from).unwrap_or_default();
        }
        request.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
        match libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

/// Of a root user, and of everybody in a user namespace of their own: none is left after the next exec.
pub(super) fn drop_capabilities() {
    for capability in 0..64 as libc::c_ulong {
        // SAFETY: takes numbers only; what is not there or not ours to drop is refused without effect.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}
