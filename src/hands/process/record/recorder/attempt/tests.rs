//! Calls of this process, as a sandbox would see them that lets no name come or go in one folder.

use std::{
    ffi::CString,
    net::{TcpListener, UdpSocket},
    os::unix::{ffi::OsStrExt, fs::symlink, net::UnixListener},
    path::Path,
};

use nix::libc;

use super::{Attempt, address, folder_id};
use castor_base::{path::AbsPath, sandbox::Refused};

fn call(number: libc::c_long, args: &[u64]) -> Attempt {
    let mut all = [0; 6];
    all[..args.len()].copy_from_slice(args);
    Attempt { pid: std::process::id() as i32, number: number as i32, args: all, is_online: false }
}

/// What is refused of a call with these texts, which come where an argument is `u64::MAX`, one after the other.
fn refused(closed: &Path, number: libc::c_long, args: &[u64], texts: &[&Path]) -> Option<String> {
    let texts: Vec<CString> = texts.iter().map(|it| CString::new(it.as_os_str().as_bytes()).unwrap()).collect();
    let mut next = texts.iter().map(|it| it.as_ptr().addr() as u64);
    let args: Vec<u64> = args.iter().map(|it| if *it == u64::MAX { next.next().unwrap() } else { *it }).collect();
    match call(number, &args).refused(&[folder_id(closed).unwrap()])? {
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
        (v4([127, 0, 0, 1], 10_053), Some("connecting to castor's door".to_owned())),
        (v4([198, 18, 1, 7], 443), Some("connecting to castor's door".to_owned())),
        ((libc::AF_UNIX as u16).to_ne_bytes().to_vec(), None),
        (vec![2], None),
        (Vec::new(), None),
    ] {
        let attempt = call(libc::SYS_connect, &[3, bytes.as_ptr().addr() as u64, bytes.len() as u64]);
        assert_eq!(attempt.refused(&[]).map(|it| it.in_words()), want, "{bytes:?}");
        assert_eq!(Attempt { is_online: true, ..attempt }.refused(&[]), None, "{bytes:?}");
        assert!(address(bytes.get(..3).unwrap_or_default()).is_none());
    }
}

/// What lies in the place of a hidden socket is none; one that has no file belongs to the sandbox.
#[test]
fn sockets_are_refused_where_there_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let _listens = UnixListener::bind(root.join("own.sock")).unwrap();
    std::fs::write(root.join("hidden.sock"), "").unwrap();
    symlink(&root, root.join("way")).unwrap();
    for (path, want) in [
        ("own.sock", None),
        ("hidden.sock", Some("hidden.sock")),
        ("absent.sock", Some("absent.sock")),
        ("way/absent.sock", Some("absent.sock")),
        ("way/own.sock", None),
        ("none/absent.sock", Some("none/absent.sock")),
    ] {
        let path = root.join(path);
        for end in [&b""[..], b"\0", b"\0rest"] {
            let bytes = [&(libc::AF_UNIX as u16).to_ne_bytes()[..], path.as_os_str().as_bytes(), end].concat();
            let attempt = call(libc::SYS_connect, &[3, bytes.as_ptr().addr() as u64, bytes.len() as u64]);
            let want = want.map(|it| Refused::Socket(AbsPath::new(root.join(it)).unwrap()));
            assert_eq!(attempt.refused(&[]), want, "{path:?}");
            // With the machine's network sockets are hidden, too.
            assert_eq!(Attempt { is_online: true, ..attempt }.refused(&[]), want, "{path:?}");
        }
    }
    let nameless = [&(libc::AF_UNIX as u16).to_ne_bytes()[..], b"\0/tmp/.X11-unix/X0"].concat();
    let attempt = call(libc::SYS_connect, &[3, nameless.as_ptr().addr() as u64, nameless.len() as u64]);
    assert_eq!(attempt.refused(&[]), None);
}
