//! Whether a command failed at the sandbox, read from what it printed. A guess: it only leads to a question.

use std::path::Path;

use super::{
    held, named,
    refused::{NOBODY, listens, loopback_ports, names_far_address},
};
use crate::{
    base::{
        guarded,
        path::AbsPath,
        sandbox::{Confinement, Denial},
    },
    world::disk,
};

/// How much of the end of an output is looked at, in lines.
const LINES: usize = 200;

const NO_NETWORK: &[&str] = &[
    "could not resolve host",
    "temporary failure in name resolution",
    "name or service not known",
    "network is unreachable",
    "network unreachable",
    "enetunreach",
    "enotfound",
    "eai_again",
    "dns error",
    "no such host",
    "couldn't resolve host",
    "unable to resolve host",
    "failed to lookup address",
    "nodename nor servname",
    "no address associated with hostname",
    "unknownhostexception",
    "dial tcp: lookup ",
    "could not resolve '",
    "temporary failure resolving",
    "could not translate host name",
    "no servers could be reached",
    "getaddrinfo failed",
    "bad address '",
    "unknown host",
    "no route to host",
    "ehostunreach",
];
const READ_ONLY: &[&str] =
    &[": read-only file system", "erofs", "] read-only file system", ": device or resource busy"];
const NOT_PERMITTED: &[&str] = &[": operation not permitted", "- operation not permitted", "eperm"];
const NO_ACCESS: &[&str] = &[": permission denied", "eacces"];
/// What a stand-in is called that is there while the command runs: who makes a folder finds one, and so does who opens a
/// file.
const IN_THE_WAY: &[&str] = &[
    ": file exists",
    "] file exists",
    ": is a directory",
    "] is a directory",
    "eexist",
    "eisdir",
    "cannot overwrite directory",
    "already exists",
];

/// What a failed command was most likely denied; `None`: it failed by itself.
pub fn recognise(it: &Confinement, cwd: &AbsPath, home: Option<&Path>, output: &str) -> Option<Denial> {
    let is_there = |path: &AbsPath| path.as_path().symlink_metadata().is_ok();
    let is_free = |path: &AbsPath| !is_there(path) || held::is_placeholder(path.as_path());
    let is_dir = |path: &AbsPath| path.as_path().is_dir();
    let real = |path: &AbsPath| disk::real_path(path).ok();
    let named = |path: &AbsPath| named::names(path.as_path(), &it.roots, home).ok().flatten().and_then(AbsPath::new);
    let world = World {
        listens: &listens,
        is_free: &is_free,
        is_there: &is_there,
        is_dir: &is_dir,
        real: &real,
        named: &named,
    };
    guess(it, cwd, output, &world)
}

/// What is to be known beside the output.
struct World<'w> {
    /// Whether somebody outside waits at that port of the loopback.
    listens: &'w dyn Fn(u16) -> bool,
    /// Whether nothing of the user's is there, at most a stand-in.
    is_free: &'w dyn Fn(&AbsPath) -> bool,
    is_there: &'w dyn Fn(&AbsPath) -> bool,
    is_dir: &'w dyn Fn(&AbsPath) -> bool,
    /// Where a path leads; `None`: nobody knows.
    real: &'w dyn Fn(&AbsPath) -> Option<AbsPath>,
    /// What the settings of a repository name and it belongs to.
    named: &'w dyn Fn(&AbsPath) -> Option<AbsPath>,
}

fn guess(it: &Confinement, cwd: &AbsPath, output: &str, world: &World<'_>) -> Option<Denial> {
    let lines: Vec<String> = output.lines().rev().take(LINES).map(str::to_lowercase).collect();
    let originals: Vec<&str> = output.lines().rev().take(LINES).collect();
    let says = |words: &[&str]| lines.iter().zip(&originals).find(|(low, _)| words.iter().any(|it| low.contains(it)));
    for words in [READ_ONLY, NO_ACCESS, NOT_PERMITTED] {
        let Some((low, line)) = says(words) else { continue };
        let path = named(line, low, words).map(|path| cwd.join(path));
        match path.as_ref().and_then(|it| place(it, world)).or(path) {
            // Nothing there is for anybody, and its names may be other ones to the command.
            Some(path) if is_of_the_system(&path) => (),
            Some(path) if !it.writes(&path) => return Some(write_denial(it, &path, says_kind(low), world)),
            Some(path) if held_for_git(it, &path, world).is_some() => {
                return held_for_git(it, &path, world).map(|path| Denial::Config { path });
            }
            // Where it may write, it was not the sandbox that said no.
            Some(_) => (),
            None if words != NO_ACCESS => return Some(Denial::Other),
            None => (),
        }
    }
    let in_the_way = lines.iter().zip(&originals).find_map(|(low, line)| {
        let path = cwd.join(named(line, low, IN_THE_WAY)?);
        (world.is_free)(&path).then(|| config_denial(it, &path, world)).flatten()
    });
    if in_the_way.is_some() || it.network {
        return in_the_way;
    }
    // Somebody is there, only not for this command: a server that was never started is a failure like any other.
    let kept_apart = || lines.iter().any(|it| loopback_ports(it).into_iter().any(world.listens));
    let far = || lines.iter().any(|it| NOBODY.iter().any(|words| it.contains(words)) && names_far_address(it));
    (says(NO_NETWORK).is_some() || kept_apart() || far()).then_some(Denial::Network)
}

/// Where a path leads, by whatever links. Where one of the system's is on the way it stays what it is.
fn place(path: &AbsPath, world: &World<'_>) -> Option<AbsPath> {
    if is_of_the_system(path) { None } else { (world.real)(path) }
}

fn is_of_the_system(path: &AbsPath) -> bool {
    ["/dev", "/proc", "/sys"].iter().any(|it| path.as_path().starts_with(it))
}

/// What a line in lower case says of what could not be written: that it is a folder, or a file; `None`: neither.
fn says_kind(low: &str) -> Option<Kind> {
    let says = |words: &[&str]| words.iter().any(|it| low.contains(it));
    match (says(&["mkdir", "director"]), says(&["touch", "open", "cannot create", ": line "])) {
        (true, _) => Some(Kind::Folder),
        (false, true) => Some(Kind::File),
        (false, false) => None,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Folder,
    File,
}

/// What may be offered: configuration for once, the first folder that is not there, and a folder not so wide that a yes
/// would say nothing for longer.
fn write_denial(it: &Confinement, path: &AbsPath, kind: Option<Kind>, world: &World<'_>) -> Denial {
    if it.obeyed(path) {
        return config_denial(it, path, world).unwrap_or(Denial::Other);
    }
    let narrow = |it: &AbsPath| it.as_path().components().count() > 2 || it.as_path() == Path::new("/tmp");
    let is_given = |folder: &AbsPath| narrow(folder) && !it.is_too_wide(folder);
    let above = |it: &AbsPath| it.as_path().ancestors().filter_map(AbsPath::new).collect::<Vec<_>>();
    let missing = above(path).into_iter().take_while(|it| !(world.is_there)(it)).last();
    let Some(around) = missing.as_ref().unwrap_or(path).parent() else { return Denial::Other };
    let is_guarded =
        |path: &AbsPath| [guarded::CONFIG, guarded::SECRETS].iter().any(|it| it.find(path.as_path()).is_some());
    match missing {
        // Who makes a folder needs no more than that one.
        Some(new) if new != *path || kind == Some(Kind::Folder) || kind.is_none() && !is_given(&around) => {
            match (is_given(&new), is_guarded(&new)) {
                (true, false) => return Denial::Write { folder: new },
                (_, true) => return Denial::Other,
                (false, false) => (),
            }
        }
        None if (world.is_dir)(path) && is_given(path) => return Denial::Write { folder: path.clone() },
        _ => (),
    }
    match (is_given(&around), it.is_too_wide(&around)) {
        (true, _) => Denial::Write { folder: around },
        (_, false) => Denial::Outside { path: path.clone(), folder: around },
        _ if is_guarded(path) || it.is_too_wide(path) || (world.is_dir)(path) => Denial::Other,
        _ => Denial::File { path: path.clone() },
    }
}

/// The configuration in the workspace that a path belongs to: no more than that is offered. `None`: it belongs to none, or
/// the command was let write it already.
fn config_denial(it: &Confinement, path: &AbsPath, world: &World<'_>) -> Option<Denial> {
    if it.keeps(path) || !it.obeyed(path) {
        return None;
    }
    let root = it.folders().chain(&it.gits).find(|root| path.is_within(root))?;
    let mut whole = root.clone();
    for part in path.as_path().strip_prefix(root.as_path()).ok()?.iter() {
        whole = whole.join(part);
        // Of a repository that is there, only what was wanted.
        let is_repository =
            whole.as_path().parent() == Some(root.as_path()) && part == ".git" && !(world.is_free)(&whole);
        if it.obeyed(&whole) && (!is_repository || whole == *path) {
            break;
        }
    }
    (!it.open.contains(&whole) && !it.keeps(&whole)).then_some(Denial::Config { path: whole })
}

/// What is held though its own name does not tell: a repository that is not there yet, or what settings of one name.
fn held_for_git(it: &Confinement, path: &AbsPath, world: &World<'_>) -> Option<AbsPath> {
    let named = || (world.named)(path).filter(|place| !it.open.contains(place) && !it.keeps(place));
    new_repository(it, path, world).or_else(named)
}

/// The repository that a path would be in, where only a stand-in is: most of what is in one may be written.
fn new_repository(it: &Confinement, path: &AbsPath, world: &World<'_>) -> Option<AbsPath> {
    let repositories = it.folders().map(|it| it.join(".git"));
    repositories.filter(|git| !it.open.contains(git) && (world.is_free)(git)).find(|it| path.is_within(it))
}

/// The path that a message names: in quotes, or between the last two colons, or as the last word before the reason.
fn named<'l>(line: &'l str, low: &str, words: &[&str]) -> Option<&'l str> {
    let (at, words) = words.iter().find_map(|it| Some((low.find(it)?, it)))?;
    let (before, after) = (line.get(..at)?.trim_end(), line.get(at + words.len()..)?.trim_end());
    // Of `mv`, which says this last.
    let before = before.strip_suffix("; unable to remove target").unwrap_or(before);
    // Python and Node.js say it behind.
    let quoted = in_quotes(before).or_else(|| in_quotes(after));
    if quoted.is_some() || !words.starts_with(':') {
        return quoted;
    }
    let between = before.rsplit(": ").next()?;
    if !between.contains(' ') && (between.contains('/') || before.contains(": ")) {
        return Some(between).filter(|it| !it.is_empty());
    }
    // `sh: 1: cannot create .envrc: Is a directory`, and `mkdir .vscode: File exists` of Perl.
    between.rsplit(' ').next().filter(|it| it.contains('/') || it.starts_with('.'))
}

/// What stands in quotes at the end of a text.
fn in_quotes(text: &str) -> Option<&str> {
    let text = text.strip_suffix(['\'', '"', '’', '`'])?;
    let start = text.rfind(['\'', '"', '‘', '`'])?;
    let mut chars = text.get(start..)?.chars();
    chars.next()?;
    Some(chars.as_str()).filter(|it| !it.is_empty())
}

#[cfg(test)]
mod tests {
    use super::{World, guess, listens, recognise};
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, Denial},
    };

    fn world() -> World<'static> {
        let real = &|it: &AbsPath| Some(it.clone());
        let (named, is_there) = (&|_: &AbsPath| None, &|_: &AbsPath| true);
        World { listens: &|_| false, is_free: &|_| false, is_there, is_dir: &|_| false, real, named }
    }

    #[test]
    fn denials_are_told_from_failures() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement {
            read_only: false,
            roots: vec![path("/w")],
            writable: Vec::new(),
            granted: Vec::new(),
            gits: Vec::new(),
            kept: vec![path("/h/u/.castor")],
            open: Vec::new(),
            tmp: path("/h/u/.castor/tmp"),
            records: path("/h/u/.castor/stand-ins"),
            network: false,
        };
        let check = |output: &str, want: &str| {
            let there = ["/h/u/.cache/x", "/opt/a", "/tmp", "/w"];
            let is_there = |it: &AbsPath| there.iter().any(|there| path(there).is_within(it));
            // `/h/u/link` leads to a folder that is kept, and the rest is what it is.
            let real = |it: &AbsPath| match it.as_path().strip_prefix("/h/u/link") {
                Ok(rest) => Some(path("/h/u/.castor").join(rest)),
                Err(_) => Some(it.clone()),
            };
            let world = World {
                listens: &|_| false,
                is_free: &|it| !is_there(it),
                is_there: &is_there,
                is_dir: &is_there,
                real: &real,
                named: &|it| Some(path("/w/dev/hooks")).filter(|place| it.is_within(place)),
            };
            let said = guess(&it, &path("/w"), output, &world).map(|it| it.in_words()).unwrap_or_default();
            let said = said.trim_start_matches("The sandbox kept this command from ");
            assert!(said.starts_with(want) && want.is_empty() == said.is_empty(), "{output}: {said}");
        };
        check("touch: cannot touch '/h/u/.cache/x/y': Read-only file system", "writing below /h/u/.cache/x.");
        check("bash: line 1: /opt/a/b: Permission denied", "writing below /opt/a.");
        check("bash: line 1: /tmp/out: Read-only file system", "writing below /tmp.");
        check("touch: cannot touch '/x': Read-only file system", "writing /x, which is outside");
        check("touch: cannot touch 'dev/hooks/x': Read-only file system", "writing /w/dev/hooks, which editors");
        check("touch: cannot touch 'dev/x': Read-only file system", "");
        check("sh: 1: cannot create /opt/x: Read-only file system", "writing /opt/x, which is outside");
        check("touch: cannot touch '/h/u/x': Read-only file system", "writing /h/u/x, which is outside");
        check("touch: cannot touch '/h/u/.castor/x': Read-only file system", "something");
        check("OSError: [Errno 30] Read-only file system: '/opt/a/b'", "writing below /opt/a.");
        check("Error: EROFS: read-only file system, open '/opt/a/b'", "writing below /opt/a.");
        check("Error: EACCES: permission denied, mkdir '/opt/a/b'", "writing below /opt/a/b.");
        // Of a home folder no more than what is wanted: the first folder that is not there, or one file.
        check("mkdir: cannot create directory '/h/u/.npm': Read-only file system", "writing below /h/u/.npm.");
        check("mkdir: cannot create directory '/h/u/.pnpm/a/b': Read-only file system", "writing below /h/u/.pnpm.");
        check("OSError: [Errno 30] Read-only file system: '/h/u/store'", "writing below /h/u/store.");
        check("bash: line 1: /h/u/notes: Read-only file system", "writing /h/u/notes, which is outside");
        check("mkdir: cannot create directory '/h/u': Read-only file system", "something");
        check("mkdir: cannot create directory '/h/u/.aws': Read-only file system", "something");
        check("touch: cannot touch '/h/u/link/x': Read-only file system", "something");
        check("touch: cannot touch '/proc/self/root/h/u/.cache/x/y': Read-only file system", "");
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
        check("thread 'main' panicked: failed to resolve the symbol host_of", "");
        let online = Confinement { network: true, ..it.clone() };
        assert_eq!(recognise(&online, &path("/w"), None, "Could not resolve host: x"), None);
    }

    /// A repository is there, and the user's own `.zed`; all else is free, or has a stand-in.
    #[test]
    fn what_a_stand_in_was_in_the_way_of_is_told_from_failures() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = |open: &[&str]| Confinement {
            read_only: false,
            roots: vec![path("/w"), path("/new")],
            writable: Vec::new(),
            granted: Vec::new(),
            gits: Vec::new(),
            kept: vec![path("/w/.castor")],
            open: open.iter().map(|it| path(it)).collect(),
            tmp: path("/t"),
            records: path("/r"),
            network: false,
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
        let it = Confinement {
            read_only: false,
            roots: vec![path("/w")],
            writable: Vec::new(),
            granted: Vec::new(),
            gits: Vec::new(),
            kept: Vec::new(),
            open: Vec::new(),
            tmp: path("/t"),
            records: path("/r"),
            network: false,
        };
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
}
