//! Outputs of failed commands, and what they tell.

use super::{World, guess, listens, made_before, recognise};
use crate::base::{
    path::AbsPath,
    sandbox::{Confinement, Denial, Granted},
};

fn world() -> World<'static> {
    let real = &|it: &AbsPath| Some(it.clone());
    let (named, is_there) = (&|_: &AbsPath| None, &|_: &AbsPath| true);
    let (is_dir, opens, could) = (&|_: &AbsPath| false, &|_: &AbsPath| true, &|_: &AbsPath, _| true);
    World { home: None, listens: &|_| false, is_free: &|_| false, is_there, is_dir, opens, could, real, named }
}

#[test]
fn denials_are_told_from_failures() {
    let path = |it: &str| AbsPath::new(it).unwrap();
    let it =
        Confinement { kept: vec![path("/h/u/.castor")], tmp: path("/h/u/.castor/tmp"), ..Confinement::of(&path("/w")) };
    let home = path("/h/u");
    let check = |output: &str, want: &str| {
        let there = ["/h/u/.cache/x", "/h/u/.cargo/registry", "/h/u/.npm/_cacache", "/opt/a", "/tmp", "/w"];
        let is_there = |it: &AbsPath| there.iter().any(|there| path(there).is_within(it));
        // `/h/u/link` leads to a folder that is kept, and the rest is what it is.
        let real = |it: &AbsPath| match it.as_path().strip_prefix("/h/u/link") {
            Ok(rest) => Some(path("/h/u/.castor").join(rest)),
            Err(_) => Some(it.clone()),
        };
        let world = World {
            home: Some(&home),
            listens: &|_| false,
            is_free: &|it| !is_there(it),
            is_there: &is_there,
            is_dir: &is_there,
            real: &real,
            opens: &|it| *it != path("/opt/shut"),
            could: &|it, _| !it.is_within(&path("/root")),
            named: &|it| Some(path("/w/dev/hooks")).filter(|place| it.is_within(place)),
        };
        let said = guess(&it, &path("/w"), output, &world).map(|it| it.in_words()).unwrap_or_default();
        let said = said.trim_start_matches("The sandbox kept this command from ");
        assert!(said.starts_with(want) && want.is_empty() == said.is_empty(), "{output}: {said}");
    };
    check("touch: cannot touch '/h/u/.cache/x/y': Read-only file system", "writing below /h/u/.cache/x.");
    check("bash: line 1: /opt/a/b: Permission denied", "writing below /opt/a.");
    check("bash: line 1: /tmp/out: Read-only file system", "writing below /tmp.");
    let push = "error: remote unpack failed: unable to create temporary object directory\nTo ../opt/a\n ! [rejected]";
    check(push, "writing below /opt/a.");
    check(&push.replace("../opt/a", "https://opt/a"), "");
    check("warning: failed to remove ../opt/a/: Device or resource busy", "writing below /opt/a.");
    check("warning: failed to remove .zed/: Device or resource busy", "");
    check("touch: cannot touch '/x': Read-only file system", "writing /x, which is outside");
    check("touch: cannot touch 'dev/hooks/x': Read-only file system", "writing /w/dev/hooks, which editors");
    check("touch: cannot touch 'dev/x': Read-only file system", "");
    check("sh: 1: cannot create /opt/x: Read-only file system", "writing /opt/x, which is outside");
    check("touch: cannot touch '/h/u/x': Read-only file system", "writing /h/u/x, which is outside");
    check("touch: cannot touch '/h/u/.castor/x': Read-only file system", "something");
    check("OSError: [Errno 30] Read-only file system: '/opt/a/b'", "writing below /opt/a.");
    check("Error: EROFS: read-only file system, open '/opt/a/b'", "writing below /opt/a.");
    check("Error: EACCES: permission denied, mkdir '/opt/a/b'", "writing below /opt/a/b.");
    // Of Node.js, which makes folders on the way: the disk is read-only.
    check("Error: ENOENT: no such file or directory, mkdir '/h/u/.npm/_cacache'", "writing below /h/u/.npm.");
    check("npm error ENOENT: no such file or directory, mkdir '/w/a/b'", "");
    check("Error: ENOENT: no such file or directory, open '/opt/a/b'", "");
    let npm = "npm error code ENOENT\nnpm error syscall mkdir\nnpm error path /h/u/.npm/_cacache\nnpm error errno -2";
    check(npm, "writing below /h/u/.npm.");
    check(&npm.replace("npm error", "npm ERR!"), "writing below /h/u/.npm.");
    check(&npm.replace("mkdir", "open"), "");
    check(&npm.replace("/h/u/.npm", "/w/.npm"), "");
    // Of a tool's cache all, but not what is held beside it.
    check("Error: EROFS: read-only file system, open '/h/u/.npm/_cacache/index-v5/c4/f7'", "writing below /h/u/.npm.");
    check("open '/h/u/.cargo/registry/cache/a/b': Read-only file system", "writing below /h/u/.cargo/registry.");
    check("touch: cannot touch '/h/u/.cache/x/a/b': Read-only file system", "writing below /h/u/.cache/x.");
    check("mkdir: cannot create directory '/h/u/.cargo/bin': Read-only file system", "writing below /h/u/.cargo/bin.");
    check("touch: cannot touch '/h/u/.npm/.npmrc': Read-only file system", "writing below /h/u/.npm.");
    check("mkdir: cannot create directory '/h/u/.npm/.ssh': Read-only file system", "something");
    check("mkdir: cannot create directory '/h/u/go/pkg/mod/a': Read-only file system", "writing below /h/u/go.");
    // Of a home folder no more than what is wanted: the first folder that is not there, or one file.
    check("mkdir: cannot create directory '/h/u/.npm': Read-only file system", "writing below /h/u/.npm.");
    check("mkdir: cannot create directory '/h/u/.pnpm/a/b': Read-only file system", "writing below /h/u/.pnpm.");
    check("OSError: [Errno 30] Read-only file system: '/h/u/store'", "writing below /h/u/store.");
    check("OSError: [Errno 30] Read-only file system: '/h/u/q.txt'", "writing /h/u/q.txt, which is outside");
    check("tar (child): /h/u/a.tgz: Cannot open: Read-only file system", "writing /h/u/a.tgz, which is outside");
    let node = "Error: EROFS: read-only file system, open '/h/u/o.json'\n  code: 'EROFS',\n  syscall: 'open'";
    check(node, "writing /h/u/o.json, which is outside");
    // What would be in the way if castor made it.
    check("mv: cannot move 'a' to '/h/u/y.md': Read-only file system", "making /h/u/y.md, which is outside");
    let moved = "mv: inter-device move failed: 'a' to '/h/u/y.md'; unable to remove target: Read-only file system";
    check(moved, "making /h/u/y.md, which is outside");
    check("ln: failed to create symbolic link '/h/u/l': Read-only file system", "making /h/u/l, which is outside");
    check("cp: cannot create directory '/h/u/sub': Read-only file system", "making /h/u/sub, which is outside");
    check("fatal: could not create work tree dir '/h/u/c': Read-only file system", "making /h/u/c, which is outside");
    check("mv: cannot move 'a' to '/opt/a/y.md': Read-only file system", "writing below /opt/a.");
    check("bash: line 1: /h/u/notes: Read-only file system", "writing /h/u/notes, which is outside");
    check("mkdir: cannot create directory '/h/u': Read-only file system", "something");
    check("mkdir: cannot create directory '/h/u/.aws': Read-only file system", "something");
    check("touch: cannot touch '/h/u/link/x': Read-only file system", "something");
    check("touch: cannot touch '/proc/self/root/h/u/.cache/x/y': Read-only file system", "");
    // What the user may not do himself, and what is behind it.
    check("ls: cannot open directory '/root': Permission denied", "");
    check("cat: /root/x: Permission denied", "");
    check("touch: cannot touch '/root/x': Read-only file system", "");
    check("rm: cannot remove '/root/x': Operation not permitted", "");
    check(
        "bash: line 1: /opt/a/b: Permission denied\nls: cannot open directory '/root': Permission denied",
        "writing below /opt/a.",
    );
    // What nobody can look into is not given.
    check("chmod: changing permissions of '/opt/shut': Read-only file system", "writing /opt/shut, which is outside");
    check("bash: line 1: kill: (1) - Operation not permitted", "something");
    check("curl: (6) Could not resolve host: example.org", "the network");
    check("npm error code EAI_AGAIN", "the network");
    check("cat: secret: Permission denied", "");
    check("bash: ./script: Permission denied", "");
    check("assertion failed", "");
    check("getaddrinfo EAI_AGAIN registry.npmjs.org", "the network");
    check("dial tcp: lookup a.example on 127.0.0.53:53: read udp: connection refused", "the network");
    check("ssh: Could not resolve hostname a.example: Temporary failure in name resolution", "the network");
    check("wget: unable to resolve host address 'a.example'", "the network");
    let pip = "ERROR: Could not find a version that satisfies the requirement six (from versions: none)";
    check(pip, "the network");
    check("thread 'main' panicked: failed to resolve the symbol host_of", "");
    let online = Confinement { network: true, ..it.clone() };
    assert_eq!(recognise(&online, &path("/w"), None, "Could not resolve host: x"), None);
}

#[test]
fn who_makes_a_folder_that_castor_made_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    std::fs::create_dir_all(top.join("old/x").as_path()).unwrap();
    std::fs::create_dir(top.join("new").as_path()).unwrap();
    let granted = ["new", "old", "gone"].map(|it| Granted::Folder(top.join(it))).to_vec();
    let it = Confinement { granted, ..Confinement::of(&top.join("ws")) };
    let said = |output: &str| made_before(&it, &top.join("ws"), output);
    assert_eq!(said("x\nmkdir: cannot create directory ‘../new’: File exists"), Some(top.join("new")));
    for no in [
        "mkdir: cannot create directory ‘../old’: File exists",
        "../gone: File exists",
        "new: File exists",
        "../new: x",
    ] {
        assert_eq!(said(no), None, "{no}");
    }
}

/// A repository is there, and the user's own `.zed`; all else is free, or has a stand-in.
#[test]
fn what_a_stand_in_was_in_the_way_of_is_told_from_failures() {
    let path = |it: &str| AbsPath::new(it).unwrap();
    let it = |open: &[&str]| Confinement {
        roots: vec![path("/w"), path("/new")],
        kept: vec![path("/w/.castor")],
        open: open.iter().map(|it| path(it)).collect(),
        ..Confinement::of(&path("/w"))
    };
    let there = ["/w/.git", "/w/.git/config", "/w/.git/index", "/w/.zed", "/w/src", "/new/.idea"];
    let said = |it: &Confinement, output: &str| {
        let world = World { is_free: &|it| !there.contains(&it.to_string().as_str()), ..world() };
        guess(it, &path("/w"), output, &world)
    };
    for (output, want) in [
        ("mkdir: cannot create directory '.vscode': File exists", "/w/.vscode"),
        ("mkdir: cannot create directory ‘.vscode/a’: Read-only file system", "/w/.vscode"),
        ("mkdir .vscode: File exists at -e line 1.", "/w/.vscode"),
        ("bash: line 1: .envrc: Is a directory", "/w/.envrc"),
        ("sh: 1: cannot create .envrc: Is a directory", "/w/.envrc"),
        ("tee: .envrc: Is a directory", "/w/.envrc"),
        ("cp: cannot create regular file '.envrc/x': Read-only file system", "/w/.envrc"),
        (
            "mv: inter-device move failed: 'a' to '.envrc/a'; unable to remove target: Read-only file system",
            "/w/.envrc",
        ),
        ("FileExistsError: [Errno 17] File exists: '.idea'", "/w/.idea"),
        ("IsADirectoryError: [Errno 21] Is a directory: '/w/.mcp.json'", "/w/.mcp.json"),
        ("Error: EEXIST: file already exists, mkdir '.vscode'", "/w/.vscode"),
        ("Error: EISDIR: illegal operation on a directory, open '.envrc'", "/w/.envrc"),
        ("touch: cannot touch 'sub/.vscode/x': Read-only file system", "/w/sub/.vscode"),
        ("touch: cannot touch '.github/workflows/x': Read-only file system", "/w/.github/workflows"),
        ("touch: cannot touch '.zed/x': Read-only file system", "/w/.zed"),
        // Of a repository that is there no more than what was wanted, and one that is not there yet as a whole.
        ("touch: cannot touch '.git/hooks/x': Read-only file system", "/w/.git/hooks"),
        ("error: could not lock config file .git/config: Read-only file system", "/w/.git/config"),
        ("fatal: cannot copy '/usr/x' to '/new/.git/description': Read-only file system", "/new/.git"),
        ("fatal: cannot mkdir /new/.git/refs/: Read-only file system", "/new/.git"),
    ] {
        let want = Denial::Config { path: path(want) };
        assert_eq!(said(&it(&[]), output), Some(want.clone()), "{output}");
        let Denial::Config { path } = want else { panic!() };
        let again = said(&it(&[&path.to_string()]), output);
        assert!(!matches!(again, Some(Denial::Config { .. })), "the same is not asked twice: {output}");
    }
    for own in [
        "mkdir: cannot create directory '.zed': File exists",
        "mkdir: cannot create directory 'src': File exists",
        "mkdir: cannot create directory 'gone': File exists",
        "bash: line 1: src: Is a directory",
        "touch: cannot touch '.git/index': Read-only file system",
        "fatal: destination path 'x' already exists and is not an empty directory.",
    ] {
        assert_eq!(said(&it(&[]), own), None, "{own}");
    }
    assert_eq!(said(&it(&[]), "touch: cannot touch '.castor/x': Read-only file system"), Some(Denial::Other));
}

/// At port 8080 somebody waits, outside of the sandbox.
#[test]
fn a_server_out_of_reach_is_told_from_none() {
    let path = |it: &str| AbsPath::new(it).unwrap();
    let it = Confinement::of(&path("/w"));
    let check = |it: &Confinement, output: &str, want: bool| {
        let world = World { listens: &|port| port == 8080, ..world() };
        let said = guess(it, &path("/w"), output, &world);
        assert_eq!(said, want.then_some(Denial::Network), "{output}");
    };
    let at = |port: u16| {
        [
            format!("curl: (7) Failed to connect to 127.0.0.1 port {port} after 0 ms: Couldn't connect to server"),
            format!("Connecting to localhost (localhost)|::1|:{port}... failed: Connection refused."),
            format!("Error: connect ECONNREFUSED ::1:{port}"),
            format!("dial tcp 127.0.0.1:{port}: connect: connection refused"),
            format!("connection to server at \"localhost\" (127.0.0.1), port {port} failed: Connection refused"),
            format!("HTTPConnectionPool(host='localhost', port={port}): [Errno 111] Connection refused"),
        ]
    };
    for (there, missing) in at(8080).iter().zip(&at(8081)) {
        check(&it, there, true);
        check(&it, missing, false);
        check(&Confinement { network: true, ..it.clone() }, there, false);
    }
    for no in [
        "listening on 127.0.0.1:8080",
        "assertion failed: expected connection refused",
        "localhost: connection refused",
        "::: the test: could not connect",
    ] {
        check(&it, no, false);
    }
    for far in [
        "curl: (7) Failed to connect to 10.1.2.3 port 81 after 0 ms: Couldn't connect to server",
        "curl: (7) Failed to connect to 2001:db8::1 port 80 after 0 ms: Couldn't connect to server",
        "dial tcp 10.0.0.1:8080: connect: connection refused",
        "Error: connect ECONNREFUSED [2001:db8::1]:443",
        "E: Temporary failure resolving 'deb.debian.org'",
        "psql: error: could not translate host name \"db\" to address",
        ";; connection timed out; no servers could be reached",
        "wget: bad address 'example.org'",
    ] {
        check(&it, far, true);
        check(&Confinement { network: true, ..it.clone() }, far, false);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn who_listens_is_known() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    assert!(listens(port));
    drop(server);
    assert!(!listens(port));
}

/// `/run/x.sock` is there.
#[test]
fn sockets_that_cannot_be_opened_are_told_from_those_of_nobody() {
    let path = |it: &str| AbsPath::new(it).unwrap();
    let it = Confinement { network: true, ..Confinement::of(&path("/w")) };
    let world = World { is_there: &|it| it.to_string() == "/run/x.sock", ..world() };
    let said = |output: &str| guess(&it, &path("/w"), output, &world);
    for shut in [
        "permission denied while trying to connect to the docker API at unix:///run/x.sock",
        "Cannot connect to the Docker daemon at unix:///run/x.sock. Is the docker daemon running?",
        "Got permission denied while trying to connect to the Docker daemon socket at unix:///run/x.sock: Get \"http://x\"",
        "error: dial unix /run/x.sock: socket: operation not permitted",
        "Error: connect EPERM /run/x.sock",
        "Cannot connect to Podman. Please verify your connection to the Linux system",
        "Error: unable to connect to Podman socket: Get \"http://d/v5/_ping\": dial unix /run/x.sock: socket: operation not permitted",
    ] {
        assert_eq!(said(shut), Some(Denial::Other), "{shut}");
        // Of Node.js nobody knows what it was that was not permitted.
        let named = shut.contains("/run/x") && !shut.contains("EPERM");
        assert_eq!(said(&shut.replace("/run/x.sock", "/run/y.sock")).is_none(), named, "{shut}");
    }
    for other in [
        "Cannot connect to the Docker daemon at tcp://localhost:2375. Is the docker daemon running?",
        "dial unix /run/x.sock: connect: connection refused",
        "listening at unix:///run/x.sock",
    ] {
        assert_eq!(said(other), None, "{other}");
    }
}
