//! Output of programs that the sandbox stopped, and the grant that is offered.

use std::fs;

use super::recognise_denial;
use castor_base::{
    network::HostGrant,
    path::AbsPath,
    sandbox::{Confinement, Denial, OpenSecret, OwnFolders, Refusal, Refused, SandboxGrant},
};

/// A workspace, a home and a folder outside, of which the first may be written.
struct World {
    _dir: tempfile::TempDir,
    top: AbsPath,
    it: Confinement,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for it in ["w/.git", "w/.vscode", "w/big", "w/sub", "home/.ssh", "home/.config", "out/in", "home/.castor/tmp"] {
            fs::create_dir_all(top.join(it).as_path()).unwrap();
        }
        for it in ["w/.git/HEAD", "w/.git/config", "home/.npmrc"] {
            fs::write(top.join(it).as_path(), "").unwrap();
        }
        let at = |it: &str| top.join(it);
        let it = Confinement {
            never_written: vec![at("home/.castor"), at("home/.config"), at("home/.ssh")],
            masked: vec![at("home/.ssh"), at("home/.castor")],
            home: Some(at("home")),
            read_only_paths: vec![at("w/big")],
            own_folders: OwnFolders {
                tmp: at("home/.castor/tmp"),
                records: at("home/.castor/stand-ins"),
                caches: None,
            },
            ..Confinement::for_folder(&at("w"))
        };
        Self { _dir: dir, top, it }
    }

    /// `$W` is the top of all.
    fn said(&self, it: &Confinement, line: &str) -> String {
        let line = line.replace("$W", &self.top.to_string());
        let found = recognise_denial(it, &self.top.join("w"), "make", Some(1), &format!("first\n{line}\nlast\n"));
        let shown = |it: &AbsPath| it.to_string().replace(&self.top.to_string(), "$W");
        match found {
            None => "-".to_owned(),
            Some(Denial::Network) => "network".to_owned(),
            Some(Denial::Credential { path, .. }) => format!("credential {}", shown(&path)),
            Some(Denial::Write { folder }) => format!("write {}", shown(&folder)),
            Some(Denial::UntrustedFolder { folder }) => format!("untrusted {}", shown(&folder)),
            Some(Denial::Hidden { folder }) => format!("hidden {}", shown(&folder)),
            Some(Denial::Config { path }) => format!("config {}", shown(&path)),
            Some(Denial::NotKept { path }) => format!("not kept {}", shown(&path)),
            Some(Denial::Unopenable { path }) => format!("unopenable {}", shown(&path)),
            Some(
                it @ (Denial::Hosts { .. } | Denial::Port { .. } | Denial::Socket { .. } | Denial::Secrets { .. }),
            ) => it.in_words(),
            Some(Denial::Looks) => "looks".to_owned(),
            Some(Denial::Other) => "other".to_owned(),
        }
    }
}

/// Node.js reports a folder that it could not make as missing; that is a denial, too.
#[test]
fn denials_are_distinguished_from_failures() {
    let world = World::new();
    for (line, want) in [
        ("curl: (6) Could not resolve host: example.com", "network"),
        ("npm error code ENOTFOUND", "network"),
        ("Get \"https://x\": dial tcp: lookup x: no such host", "network"),
        ("ssh: connect to host h port 22: Network is unreachable", "network"),
        ("curl: (7) Failed to connect to 192.0.2.1 port 80: Could not connect to server", "network"),
        ("curl: (7) Failed to connect to localhost port 80: Could not connect to server", "-"),
        ("git@github.com: Permission denied (publickey).", "credential $W/home/.ssh"),
        ("Host key verification failed.", "credential $W/home/.ssh"),
        // Nobody has those.
        ("Unable to locate credentials", "-"),
        ("touch: cannot touch '$W/out/in/x': Read-only file system", "write $W/out/in"),
        ("mkdir: cannot create directory ‘$W/out/a’: Read-only file system", "write $W/out"),
        ("bash: line 1: $W/out/x: Read-only file system", "write $W/out"),
        ("bash: line 1: ../out/x: Permission denied", "write $W/out"),
        ("OSError: [Errno 30] Read-only file system: '$W/out/x'", "write $W/out"),
        ("Error: EROFS: read-only file system, open '$W/out/x'", "write $W/out"),
        ("open $W/out/x: read-only file system", "write $W/out"),
        ("error: could not write config file .git/config: Device or resource busy", "config $W/w/.git/config"),
        ("cp: cannot create regular file '.vscode/a.json': Read-only file system", "config $W/w/.vscode"),
        ("sh: 1: cannot create big/x: Read-only file system", "not kept $W/w/big/x"),
        ("touch: cannot touch '$W/home/notes': Read-only file system", "unopenable $W/home/notes"),
        ("touch: cannot touch '$W/home/.ssh/x': Read-only file system", "unopenable $W/home/.ssh/x"),
        ("kill: (1) - Operation not permitted", "other"),
        ("Cannot connect to the Docker daemon at unix:///var/run/docker.sock.", "other"),
        ("error: gpg failed to sign the data", "other"),
        // The user's own rights, or nobody's matter.
        ("cat: sub/x: Permission denied", "-"),
        ("bash: ./run: Permission denied", "-"),
        ("tee: /proc/1/mem: Permission denied", "-"),
        ("touch: cannot touch 'sub/x': Read-only file system", "-"),
        ("Permission denied", "-"),
        ("error: test failed", "-"),
    ] {
        assert_eq!(world.said(&world.it, line), want, "{line}");
    }
}

/// One question for what a line needs in several places, but not for all that lies around the workspace.
#[test]
fn folders_of_one_line_are_asked_about_together() {
    let world = World::new();
    for it in ["bare/info", "bare/branches", "out/deep/er", "home/p/x", "home/q/y"] {
        fs::create_dir_all(world.top.join(it).as_path()).unwrap();
    }
    for (paths, want) in [
        (&["bare/info/exclude", "bare/branches", "bare/config"][..], "write $W/bare"),
        (&["bare/info/exclude", "bare/branches/x"], "write $W/bare"),
        (&["out/in/x", "out/deep/er/x", "out/in/y"], "write $W/out"),
        (&["out/in/x", "out/in/y"], "write $W/out/in"),
        // Above both lies the workspace, or a home.
        (&["out/in/x", "bare/x"], "write $W/bare"),
        (&["home/p/x/a", "home/q/y/a"], "write $W/home/q/y"),
    ] {
        let line = |it: &&str| format!("rm: cannot remove '$W/{it}': Read-only file system");
        assert_eq!(world.said(&world.it, &paths.iter().map(line).collect::<Vec<_>>().join("\n")), want, "{paths:?}");
    }
}

#[test]
fn granted_access_is_not_offered_again() {
    let world = World::new();
    let at = |it: &str| world.top.join(it);
    let it = Confinement { network: true, ..world.it.clone() };
    let it = it.with_grant(&SandboxGrant { config: vec![at("w/.git/config")], ..SandboxGrant::default() }).unwrap();
    assert_eq!(world.said(&it, "Could not resolve host: x"), "-");
    assert_eq!(world.said(&it, "could not write config file .git/config: Device or resource busy"), "-");
    let it = it
        .with_grant(&SandboxGrant { credentials: vec![OpenSecret::once(at("home/.ssh"))], ..SandboxGrant::default() })
        .unwrap();
    assert_eq!(world.said(&it, "Permission denied (publickey)"), "-");
}

#[test]
fn read_only_command_is_offered_write_access() {
    let world = World::new();
    let it = world.it.clone().into_read_only();
    assert_eq!(world.said(&it, "touch: cannot touch 'sub/x': Read-only file system"), "looks");
    assert_eq!(world.said(&it, "Could not resolve host: x"), "network");
}

/// In an untrusted folder the question is about the folder as a whole, where it may be opened.
#[test]
fn untrusted_folder_is_named_as_the_reason() {
    let world = World::new();
    let untrusted = |root: &str| Confinement {
        read_only: true,
        untrusted: true,
        roots: vec![world.top.join(root)],
        ..world.it.clone()
    };
    let looking = Confinement { grant: SandboxGrant { read_only: true, ..SandboxGrant::default() }, ..untrusted("w") };
    let opened =
        untrusted("w").with_grant(&Denial::UntrustedFolder { folder: world.top.join("w") }.grant_once()).unwrap();
    for (it, path, want) in [
        (&untrusted("w"), "sub/x", "untrusted $W/w"),
        (&untrusted("w"), "x", "untrusted $W/w"),
        (&untrusted("w"), ".git/index", "untrusted $W/w"),
        (&looking, "sub/x", "untrusted $W/w"),
        (&untrusted("w"), ".vscode/a.json", "config $W/w/.vscode"),
        (&untrusted("w"), "$W/out/x", "write $W/out"),
        (&untrusted("w"), "$W/home/.ssh/x", "unopenable $W/home/.ssh/x"),
        // A home is too wide to be opened as a whole.
        (&untrusted("home"), "$W/home/notes/x", "unopenable $W/home/notes/x"),
        (&opened, "sub/x", "-"),
        (&opened, ".vscode/a.json", "config $W/w/.vscode"),
    ] {
        assert_eq!(world.said(it, &format!("touch: cannot touch '{path}': Read-only file system")), want, "{path}");
    }
}

/// Of a socket and of secrets the record says it all.
#[test]
fn sockets_and_secrets_are_denied_as_the_record_has_them() {
    let world = World::new();
    let at = |it: &str| world.top.join(it);
    let socket = |path: &str, failed| Refusal { what: Refused::Socket(at(path)), failed };
    let read = |path: &str| Refusal::failed(Refused::Read(at(path)));
    let hosts: Vec<HostGrant> = vec!["a.test".to_owned().try_into().unwrap()];
    let mut reaching = world.it.clone();
    reaching.grant.reach.hosts.allowed = hosts.clone();
    let online = Confinement { network: true, ..world.it.clone() };
    let beside = Confinement {
        grant: SandboxGrant { isolation_reason: Some(String::new()), ..SandboxGrant::default() },
        ..world.it.clone()
    };
    let secrets = |files: &[&str], hosts: &[HostGrant]| {
        Some(Denial::Secrets { files: files.iter().map(|it| at(it)).collect(), hosts: hosts.to_vec() })
    };
    for (it, refusals, want) in [
        (&world.it, vec![socket("out/s", true)], Some(Denial::Socket { path: at("out/s") })),
        (&world.it, vec![socket("out/s", false)], None),
        // Castor's own never is.
        (&world.it, vec![socket("home/.castor/s", true)], None),
        (&reaching, vec![read("w/.env")], secrets(&["w/.env"], &hosts)),
        (
            &reaching,
            vec![socket("out/s", true), read("w/.env"), read("w/b.pem")],
            secrets(&["w/.env", "w/b.pem"], &hosts),
        ),
        (&online, vec![read("w/.env")], secrets(&["w/.env"], &[])),
        // Another command has the network, and the output says so.
        (&beside, vec![read("w/.env")], None),
    ] {
        assert_eq!(super::recorded_denial(it, &refusals, ""), want, "{refusals:?}");
    }
}

#[test]
fn silent_programs_are_recognised_by_exit_code() {
    let world = World::new();
    let said = |command, code| recognise_denial(&world.it, &world.top, command, Some(code), "").is_some();
    assert!(said("x=$(curl -sf https://h)", 6) && said("wget -q http://h", 4));
    assert!(!said("curl -s https://h", 22) && !said("make", 6));
}

#[test]
fn programs_that_end_without_a_word_are_known_by_their_name() {
    for (line, want) in [
        ("perf stat true", true),
        ("cd x && /usr/bin/perf record make 2>&1 | tail -3", true),
        ("chromium --headless --no-sandbox --dump-dom x.html | head", true),
        ("make perfect", false),
        ("cat perf.data", false),
    ] {
        assert_eq!(super::silent_program_note(line).is_some(), want, "{line}");
    }
}
