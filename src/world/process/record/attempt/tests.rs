//! Calls of this process, as a sandbox would see them that lets no name come or go in one folder.

use std::{
    ffi::CString,
    net::{TcpListener, UdpSocket},
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
};

use nix::libc;

use super::{Attempt, address};
use crate::base::sandbox::Refused;

fn call(number: libc::c_long, args: &[u64]) -> Attempt {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Attempt { pid: std::process::id() as i32, number: number as i32, args: all }
}

/// What is refused of a call with these texts, which come where an argument is `u64::MAX`, one after the other.
fn refused(closed: &Path, number: libc::c_long, args: &[u64], texts: &[&Path]) -> Option<String> {
    let texts: Vec<CString> = texts.iter().map(|it| CString::new(it.as_os_str().as_bytes()).unwrap()).collect();
    let mut next = texts.iter().map(|it| it.as_ptr().addr() as u64);
    let args: Vec<u64> = args.iter().map(|it| if *it == u64::MAX { next.next().unwrap() } else { *it }).collect();
    match call(number, &args).refused(&[closed.to_owned()])? {
        Refused::Write(it) => Some(it.as_path().strip_prefix(closed).unwrap().display().to_string()),
        it => panic!("{it:?}"),
    }
}

#[test]
fn names_that_come_or_go_where_they_may_not_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let (closed, open) = (root.join("closed"), root.join("open"));
    for it in [&closed, &open] {
        std::fs::create_dir(it).unwrap();
        std::fs::write(it.join("old"), "").unwrap();
    }
    symlink(&closed, open.join("way")).unwrap();
    const P: u64 = u64::MAX;
    let here = libc::AT_FDCWD as u32 as u64;
    let (read, write, make) = (libc::O_RDONLY as u64, libc::O_WRONLY as u64, (libc::O_CREAT | libc::O_WRONLY) as u64);
    for (number, args, names, want) in [
        (libc::SYS_openat, &[here, P, make][..], &["closed/new"][..], Some("new")),
        (libc::SYS_openat, &[here, P, make], &["open/way/new"], Some("new")),
        (libc::SYS_openat, &[here, P, make], &["closed/old"], None),
        (libc::SYS_openat, &[here, P, write], &["closed/new"], None),
        (libc::SYS_openat, &[here, P, read], &["closed/old"], None),
        (libc::SYS_openat, &[here, P, make], &["open/new"], None),
        (libc::SYS_openat, &[here, P, make], &["closed/none/new"], Some("none/new")),
        (libc::SYS_mkdirat, &[here, P], &["closed/new"], Some("new")),
        (libc::SYS_mkdirat, &[here, P], &["closed/old"], None),
        (libc::SYS_unlinkat, &[here, P, 0], &["closed/old"], Some("old")),
        (libc::SYS_unlinkat, &[here, P, 0], &["closed/new"], None),
        (libc::SYS_unlinkat, &[here, P, 0], &["open/old"], None),
        (libc::SYS_renameat2, &[here, P, here, P, 0], &["closed/old", "open/x"], Some("old")),
        (libc::SYS_renameat2, &[here, P, here, P, 0], &["open/old", "closed/x"], Some("x")),
        (libc::SYS_renameat2, &[here, P, here, P, 0], &["open/old", "open/x"], None),
        (libc::SYS_renameat2, &[here, P, here, P, 0], &["open/none", "closed/x"], None),
        (libc::SYS_symlinkat, &[P, here, P], &["open/old", "closed/x"], Some("x")),
        (libc::SYS_linkat, &[here, P, here, P, 0], &["open/old", "closed/x"], Some("x")),
        (libc::SYS_truncate, &[P, 0], &["closed/old"], None),
        // What the system itself keeps is no matter of a folder.
        (libc::SYS_getpid, &[P], &["closed/new"], None),
    ] {
        let names: Vec<_> = names.iter().map(|it| root.join(it)).collect();
        let paths: Vec<&Path> = names.iter().map(|it| it.as_path()).collect();
        assert_eq!(refused(&closed, number, args, &paths).as_deref(), want, "{number} {names:?}");
    }
    for it in ["/dev/shm/x", "/proc/1/x", "/sys/x", ""] {
        assert_eq!(refused(&closed, libc::SYS_openat, &[here, P, make], &[Path::new(it)]), None, "{it}");
    }
}

/// A path may end anywhere, also with the last byte of what can be read; and an address may be nobody's.
#[test]
fn odd_pointers_say_nothing() {
    let here = libc::AT_FDCWD as u32 as u64;
    for at in [0, 8, 4095, u64::MAX, u64::MAX - 4095, 1 << 47] {
        assert_eq!(call(libc::SYS_openat, &[here, at, libc::O_CREAT as u64]).refused(&[]), None, "{at}");
        assert_eq!(call(libc::SYS_connect, &[3, at, 16]).refused(&[]), None, "{at}");
        assert_eq!(call(libc::SYS_sendmsg, &[3, at]).refused(&[]), None, "{at}");
        assert_eq!(call(libc::SYS_openat2, &[here, at, at, 24]).refused(&[]), None, "{at}");
    }
    let long = "x/".repeat(3000);
    assert_eq!(refused(Path::new("/"), libc::SYS_mkdirat, &[here, u64::MAX], &[Path::new(&long)]), None);
}

#[test]
fn connections_are_refused_but_to_who_listens_here() {
    let (tcp, udp) = (TcpListener::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    let [served, heard] = [tcp.local_addr(), udp.local_addr()].map(|it| it.unwrap().port());
    let unserved = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let v4 = |ip: [u8; 4], port: u16| {
        [&(libc::AF_INET as u16).to_ne_bytes()[..], &port.to_be_bytes(), &ip, &[0; 8]].concat()
    };
    let v6 = |ip: [u8; 16], port: u16| {
        [&(libc::AF_INET6 as u16).to_ne_bytes()[..], &port.to_be_bytes(), &[0; 4], &ip, &[0; 4]].concat()
    };
    let mut mapped = [0; 16];
    mapped[10..].copy_from_slice(&[255, 255, 192, 0, 2, 1]);
    let mut own = [0; 16];
    own[15] = 1;
    for (bytes, want) in [
        (v4([192, 0, 2, 1], 443), Some("connecting to 192.0.2.1:443".to_owned())),
        (v4([192, 0, 2, 1], 53), Some("looking up a host".to_owned())),
        (v4([127, 0, 0, 1], served), None),
        (v4([0, 0, 0, 0], served), None),
        (v4([127, 0, 0, 1], heard), None),
        (v4([192, 0, 2, 1], 0), None),
        (v6(mapped, 80), Some("connecting to 192.0.2.1:80".to_owned())),
        (v6([32; 16], 80), Some("connecting to [2020:2020:2020:2020:2020:2020:2020:2020]:80".to_owned())),
        (v6(own, unserved), Some(format!("connecting to [::1]:{unserved}, a server outside the sandbox"))),
        ((libc::AF_UNIX as u16).to_ne_bytes().to_vec(), None),
        (vec![2], None),
        (Vec::new(), None),
    ] {
        let found = call(libc::SYS_connect, &[3, bytes.as_ptr().addr() as u64, bytes.len() as u64]).refused(&[]);
        assert_eq!(found.map(|it| it.in_words()), want, "{bytes:?}");
        assert!(address(bytes.get(..3).unwrap_or_default()).is_none());
    }
}
