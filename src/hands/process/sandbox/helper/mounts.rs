//! Namespaces and mounts of the sandbox: a command gets a read-only disk with writable exceptions, and no network.

use std::{
    fs, io,
    net::{Ipv4Addr, UdpSocket},
    os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, Flock, FlockArg, OFlag, OpenHow, ResolveFlag, openat2},
    libc,
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    unistd::{getegid, geteuid},
};

use super::{super::make_private, SetupError, failed};
use crate::{
    door::inside,
    process::sandbox::{SHARED_MEMORY, SandboxPlan, View},
};

const READ_ONLY: u64 = 1;
/// Layers above one folder: as many commands at once write there.
const MAX_LAYERS: usize = 16;

/// As the kernel takes it; older libc crates do not have it on all systems.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    userns: u64,
}

/// Moves this process into namespaces of its own.
pub(super) fn isolate(network: bool) -> Result<(), SetupError> {
    let (uid, gid) = (geteuid(), getegid());
    let mut flags = CloneFlags::CLONE_NEWUSER
        | CloneFlags::CLONE_NEWNS
        | CloneFlags::CLONE_NEWIPC
        // Of its children: it stays where it is itself.
        | CloneFlags::CLONE_NEWPID;
    if !network {
        flags |= CloneFlags::CLONE_NEWNET;
    }
    unshare(flags).map_err(failed("namespaces"))?;
    let write = |name: &'static str, text: String| fs::write(format!("/proc/self/{name}"), text).map_err(failed(name));
    // Without this the group cannot be mapped.
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{uid} {uid} 1"))?;
    write("gid_map", format!("{gid} {gid} 1"))?;
    if !network {
        loopback_up().map_err(failed("loopback"))?;
    }
    Ok(())
}

/// Mounts what there is to see, as number 1 of the namespace.
pub(super) fn arrange(plan: &SandboxPlan) -> Result<(), SetupError> {
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).map_err(failed("private /"))?;
    open(Path::new("/")).and_then(|it| change(&it, true, READ_ONLY, 0)).map_err(failed("/"))?;
    let mut beneath = Vec::new();
    for it in &plan.writable {
        match open(it) {
            Ok(place) => beneath.push((it.as_path(), place)),
            // It went since it was looked for: then it is not written.
            Err(why) if why.kind() == io::ErrorKind::NotFound => (),
            Err(why) => return Err(said(it, "open")(why)),
        }
    }
    for (it, _) in &beneath {
        open_up(it)?;
    }
    for it in &plan.fixed {
        hold(it, &beneath)?;
    }
    for (it, read_only) in plan.nested_mounts() {
        if read_only { bind(it, true, READ_ONLY, 0)? } else { open_up(it)? }
    }
    // Last: it lies within castor's own folder, which may lie within what is protected.
    if plan.tmp.is_absolute() {
        bind(&plan.tmp, false, 0, READ_ONLY)?;
    }
    show(&plan.views)?;
    if plan.has_own_memory() && Path::new(SHARED_MEMORY).is_dir() {
        let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
        mount(Some("tmpfs"), SHARED_MEMORY, Some("tmpfs"), flags, Some("mode=1777")).map_err(failed(SHARED_MEMORY))?;
    }
    terminals()?;
    proc()
}

/// Hides places, and mounts again what is seen in them. All is taken before anything hides it.
fn show(views: &[View]) -> Result<(), SetupError> {
    let taken = views.iter().map(|it| {
        let from = it.shows.as_deref().unwrap_or(&it.place);
        let tree = open(from).and_then(|place| clone(&place)).map_err(said(from, "clone"))?;
        if it.shows.is_some() {
            let (set, clear) = if it.written { (0, READ_ONLY) } else { (READ_ONLY, 0) };
            change(&tree, false, set, clear).map_err(said(from, "attributes"))?;
        }
        let layer = it.own.as_deref().and_then(|own| Layer::take(own).ok().flatten());
        Ok((tree, layer, it))
    });
    for (tree, layer, it) in taken.collect::<Result<Vec<_>, SetupError>>()? {
        match open(&it.place) {
            // A socket comes and goes: what went need not be hidden.
            Err(why) if why.kind() == io::ErrorKind::NotFound && it.shows.is_some() => (),
            place => place.and_then(|to| attach(&tree, &to)).map_err(said(&it.place, "mount"))?,
        }
        if let Some(layer) = layer {
            let below = views.iter().filter_map(|view| view.place.strip_prefix(&it.place).ok());
            // Where the kernel has none for us, what is there is read.
            _ = layer.put_above(&it.place, below.filter(|it| it.components().next().is_some()));
        }
    }
    Ok(())
}

/// A layer above a folder, which takes what is written there.
struct Layer {
    upper: OwnedFd,
    work: OwnedFd,
    lock: Flock<fs::File>,
}

impl Layer {
    /// The first that is free below a folder: the kernel knows no layer that two commands write at once.
    fn take(own: &Path) -> io::Result<Option<Self>> {
        for number in 0..MAX_LAYERS {
            let folder = own.join(number.to_string());
            let (upper, work) = (folder.join("upper"), folder.join("work"));
            fs::create_dir_all(&upper)?;
            fs::create_dir_all(&work)?;
            if let Ok(lock) = Flock::lock(fs::File::open(&folder)?, FlockArg::LockExclusiveNonblock) {
                return Ok(Some(Self { upper: open(&upper)?, work: open(&work)?, lock }));
            }
        }
        Ok(None)
    }

    /// `hidden`: places below it, on which something else comes to lie.
    fn put_above<'h>(self, place: &Path, hidden: impl Iterator<Item = &'h Path>) -> io::Result<()> {
        let path = |it: &OwnedFd| format!("/proc/self/fd/{}", it.as_raw_fd());
        let (upper, work) = (path(&self.upper), path(&self.work));
        // What an earlier command put there would be in the way.
        for there in hidden.map(|it| Path::new(&upper).join(it)) {
            _ = fs::remove_file(&there).or_else(|_| fs::remove_dir_all(&there));
        }
        let Some(lower) = place.to_str().filter(|it| !it.contains([',', ':', '\\'])) else { return Ok(()) };
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work},userxattr");
        mount(Some("overlay"), place, Some("overlay"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(options.as_str()))?;
        // It is this command's until the last of its processes is gone, and with them this one.
        std::mem::forget(self.lock);
        Ok(())
    }
}

/// Mounts a layer as commands get them, all of it below a folder.
pub(super) fn try_layer(folder: &Path) -> Result<(), SetupError> {
    let place = folder.join("tool");
    make_private(&place).map_err(failed("folder"))?;
    isolate(true)?;
    let layer = Layer::take(folder).map_err(failed("layer"))?.ok_or(Errno::EBUSY).map_err(failed("layer"))?;
    layer.put_above(&place, std::iter::empty()).map_err(failed("overlay"))
}

/// Terminals of its own: on the user's, whoever opens them reads what is typed, and sets how they behave.
fn terminals() -> Result<(), SetupError> {
    if !Path::new("/dev/pts").is_dir() {
        return Ok(());
    }
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NOEXEC;
    let options = Some("newinstance,ptmxmode=0666,mode=620");
    match mount(Some("devpts"), "/dev/pts", Some("devpts"), flags, options) {
        Ok(()) => (),
        // Somebody keeps even this from the namespace: the old ones stay, which Landlock keeps from being written.
        Err(Errno::EPERM) => return Ok(()),
        Err(it) => return Err(failed("/dev/pts")(it)),
    }
    // In a container it is often a link, and then leads there by itself.
    match Path::new("/dev/ptmx").is_symlink() {
        true => Ok(()),
        false => mount(Some("/dev/pts/ptmx"), "/dev/ptmx", None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .map_err(failed("/dev/ptmx")),
    }
}

/// Its own processes alone. In a container parts of `/proc` may be covered, and then the kernel gives nobody a fresh
/// one: the old one stays, in which Landlock lets nobody look into processes outside.
fn proc() -> Result<(), SetupError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    match mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>) {
        Ok(()) | Err(Errno::EPERM) => Ok(()),
        Err(it) => Err(failed("/proc")(it)),
    }
}

/// Makes a folder one that is written. Where the disk itself is mounted read-only, nobody here can: then it is not.
fn open_up(path: &Path) -> Result<(), SetupError> {
    // Anew: it may lie in one that was mounted just now.
    let place = open(path).map_err(said(path, "open"))?;
    let tree = clone(&place).map_err(said(path, "clone"))?;
    match change(&tree, false, 0, READ_ONLY) {
        Ok(()) => attach(&tree, &place).map_err(said(path, "mount")),
        Err(it) if it.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        Err(it) => Err(said(path, "attributes")(it)),
    }
}

/// Mounts what lies at a path onto itself. By descriptors: nobody can put another folder in its place meanwhile.
fn bind(path: &Path, recursive: bool, set: u64, clear: u64) -> Result<(), SetupError> {
    let place = open(path).map_err(said(path, "open"))?;
    let tree = clone(&place).map_err(said(path, "clone"))?;
    change(&tree, recursive, set, clear).map_err(said(path, "attributes"))?;
    attach(&tree, &place).map_err(said(path, "mount"))
}

/// Makes a folder one that can be neither renamed nor removed: a mount point. The kernel looks whether anything in this
/// namespace is mounted on the folder itself, whichever way leads there: so the mount is made where nobody comes by,
/// `beneath` the one of the root. Who comes by the root finds no mount, and so `rename` and `link` lead in and out.
fn hold(path: &Path, beneath: &[(&Path, OwnedFd)]) -> Result<(), SetupError> {
    let root = beneath.iter().find_map(|(root, it)| Some((it, path.strip_prefix(root).ok()?)));
    let place = match root {
        Some((root, below)) => open_at(root, below),
        None => open(path),
    };
    let place = place.map_err(said(path, "open"))?;
    let tree = clone(&place).map_err(said(path, "clone"))?;
    attach(&tree, &place).map_err(said(path, "mount"))
}

fn said<'p>(path: &'p Path, what: &'static str) -> impl FnOnce(io::Error) -> SetupError + use<'p> {
    move |it| failed(format!("{}: {what}", path.display()))(it)
}

pub(super) fn open(path: &Path) -> io::Result<OwnedFd> {
    open_at(AT_FDCWD, path)
}

/// The paths of a plan had no links in them: where there is one now, somebody put it there.
fn open_at(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(ResolveFlag::RESOLVE_NO_SYMLINKS);
    Ok(openat2(folder, path, how)?)
}

/// A copy of what is mounted there and below, which is nowhere yet.
fn clone(place: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = libc::OPEN_TREE_CLONE
        | libc::OPEN_TREE_CLOEXEC
        | u32::try_from(libc::AT_EMPTY_PATH | libc::AT_RECURSIVE).unwrap_or_default();
    // SAFETY: the path lives through the call, and the new descriptor has no other owner.
    unsafe {
        let res = libc::syscall(libc::SYS_open_tree, place.as_raw_fd(), c"".as_ptr(), flags);
        let res = i32::try_from(res).ok().filter(|it| *it >= 0).ok_or_else(io::Error::last_os_error)?;
        Ok(OwnedFd::from_raw_fd(res))
    }
}

fn attach(tree: &OwnedFd, place: &OwnedFd) -> io::Result<()> {
    let (from, to) = (tree.as_raw_fd(), place.as_raw_fd());
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: both paths live through the call.
    match unsafe { libc::syscall(libc::SYS_move_mount, from, c"".as_ptr(), to, c"".as_ptr(), flags) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn change(tree: &OwnedFd, recursive: bool, set: u64, clear: u64) -> io::Result<()> {
    let attributes = Attributes { set, clear, propagation: 0, userns: 0 };
    let flags = libc::AT_EMPTY_PATH | if recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: both pointers live through the call, and the size is the struct's.
    let res = unsafe {
        let (tree, size) = (tree.as_raw_fd(), size_of::<Attributes>());
        libc::syscall(libc::SYS_mount_setattr, tree, c"".as_ptr(), flags, &raw const attributes, size)
    };
    match res {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A new network has its loopback switched off; tests and build tools talk over it. It gets a second network beside its own,
/// whose addresses stand for names, and all lead to the door.
fn loopback_up() -> io::Result<()> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    configure(&socket, libc::SIOCSIFFLAGS, b"lo", |it| {
        it.ifr_ifru.ifru_flags = libc::c_short::try_from(libc::IFF_UP | libc::IFF_RUNNING).unwrap_or_default();
    })?;
    let (address, mask) = inside::NAMES_NETWORK;
    // Where it cannot be had, programs that know no proxy find nobody.
    _ = configure(&socket, libc::SIOCSIFADDR, b"lo:1", |it| it.ifr_ifru.ifru_addr = socket_address(address));
    _ = configure(&socket, libc::SIOCSIFNETMASK, b"lo:1", |it| it.ifr_ifru.ifru_netmask = socket_address(mask));
    Ok(())
}

fn configure(
    socket: &UdpSocket,
    what: libc::Ioctl,
    device: &[u8],
    fill: impl FnOnce(&mut libc::ifreq),
) -> io::Result<()> {
    // SAFETY: all zeros is a valid request.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(device) {
        *to = libc::c_char::try_from(*from).unwrap_or_default();
    }
    fill(&mut request);
    // SAFETY: the request lives through the call.
    match unsafe { libc::ioctl(socket.as_raw_fd(), what, &raw const request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn socket_address(it: Ipv4Addr) -> libc::sockaddr {
    let (family, [a, b, c, d]) = (libc::AF_INET as libc::sa_family_t, it.octets().map(|it| it as libc::c_char));
    libc::sockaddr { sa_family: family, sa_data: [0, 0, a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0] }
}

/// Of a root user, and of everybody in a user namespace of their own: none is left after the next exec.
pub(super) fn drop_capabilities() {
    for capability in 0..64 as libc::c_ulong {
        // SAFETY: takes numbers only; what is not there or not ours to drop is refused without effect.
        let dropped = unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
        if dropped < 0 && Errno::last() == Errno::EINVAL {
            // The kernel knows no more of them.
            break;
        }
    }
}
