//! Whether a command failed at the sandbox, read from what it printed. A guess: it only leads to a question.

use std::{
    fs,
    net::{IpAddr, SocketAddr},
    path::Path,
};

use crate::base::{
    path::AbsPath,
    sandbox::{Confinement, Denial},
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
/// What a connection to nobody is called. In a network of its own a command finds nobody at its loopback.
const NOBODY: &[&str] =
    &["connection refused", "econnrefused", "couldn't connect", "could not connect", "failed to connect"];
const LOOPBACK: &[&str] = &["localhost", "127.0.0.", "::1"];
/// Where the system tells who listens in the network that castor is in.
const LISTENERS: &[&str] = &["/proc/self/net/tcp", "/proc/self/net/tcp6"];
const READ_ONLY: &[&str] = &[": read-only file system", ": device or resource busy", "erofs"];
const NOT_PERMITTED: &[&str] = &[": operation not permitted", "- operation not permitted", "eperm"];
const NO_ACCESS: &[&str] = &[": permission denied", "eacces"];

/// What a failed command was most likely denied; `None`: it failed by itself.
pub fn recognise(it: &Confinement, cwd: &AbsPath, output: &str) -> Option<Denial> {
    guess(it, cwd, output, listens)
}

/// `listens`: whether somebody outside waits at that port of the loopback.
fn guess(it: &Confinement, cwd: &AbsPath, output: &str, listens: impl Fn(u16) -> bool) -> Option<Denial> {
    let lines: Vec<String> = output.lines().rev().take(LINES).map(str::to_lowercase).collect();
    let originals: Vec<&str> = output.lines().rev().take(LINES).collect();
    let says = |words: &[&str]| lines.iter().zip(&originals).find(|(low, _)| words.iter().any(|it| low.contains(it)));
    for words in [READ_ONLY, NO_ACCESS, NOT_PERMITTED] {
        let Some((low, line)) = says(words) else { continue };
        match named(line, low, words).map(|path| cwd.join(path)) {
            Some(path) if !it.writes(&path) => return Some(write_denial(it, &path)),
            // Where it may write, it was not the sandbox that said no.
            Some(_) => (),
            None if words != NO_ACCESS => return Some(Denial::Other),
            None => (),
        }
    }
    if it.network {
        return None;
    }
    // Somebody is there, only not for this command: a server that was never started is a failure like any other.
    let kept_apart = || lines.iter().any(|it| loopback_ports(it).into_iter().any(&listens));
    let far = || lines.iter().any(|it| NOBODY.iter().any(|words| it.contains(words)) && names_far_address(it));
    (says(NO_NETWORK).is_some() || kept_apart() || far()).then_some(Denial::Network)
}

/// Whether a line has an address that is not the loopback's. Nobody there can be reached without the network, whatever
/// programs call it: curl says of all of them that it could not connect.
fn names_far_address(line: &str) -> bool {
    let words = line.split(|it: char| !it.is_ascii_hexdigit() && !".:[]".contains(it));
    let read = |it: &str| -> Option<IpAddr> {
        let socket = it.parse::<SocketAddr>().map(|it| it.ip());
        socket.or_else(|_| it.trim_matches(['[', ']']).parse()).ok()
    };
    words.map(|it| it.trim_end_matches([':', '.'])).any(|it| {
        // `::1:80` is an address, and meant as the loopback's with a port.
        let host = it.rsplit_once(':').and_then(|(host, _)| read(host));
        let is_near = |it: &IpAddr| it.is_loopback() || it.is_unspecified();
        read(it).is_some_and(|it| !is_near(&it)) && !host.is_some_and(|it| is_near(&it))
    })
}

/// The ports of a connection to the loopback that was refused, as a line in lower case tells it.
fn loopback_ports(line: &str) -> Vec<u16> {
    if ![NOBODY, LOOPBACK].iter().all(|words| words.iter().any(|it| line.contains(it))) {
        return Vec::new();
    }
    let after = ["port ", "port=", ":"].iter().flat_map(|mark| line.match_indices(mark).map(|(at, it)| at + it.len()));
    let numbers = after.filter_map(|at| line.get(at..)?.split(|it: char| !it.is_ascii_digit()).next()?.parse().ok());
    numbers.filter(|it| *it > 1).collect()
}

/// In the network that castor is in.
fn listens(port: u16) -> bool {
    let waits = |row: &str| {
        // `sl local_address rem_address st …`: the port in hexadecimal, and 0A for who listens.
        let mut fields = row.split_ascii_whitespace().skip(1);
        let local = fields.next().and_then(|it| it.rsplit_once(':')).and_then(|it| u16::from_str_radix(it.1, 16).ok());
        local == Some(port) && fields.nth(1) == Some("0A")
    };
    LISTENERS.iter().any(|it| fs::read_to_string(it).is_ok_and(|it| it.lines().any(waits)))
}

/// A folder that may be offered: not configuration, and not so wide that a yes would say nothing.
fn write_denial(it: &Confinement, path: &AbsPath) -> Denial {
    let folder = match path.as_path().is_dir() {
        true => Some(path.clone()),
        false => path.parent(),
    };
    let narrow = |it: &AbsPath| it.as_path().components().count() > 2 || it.as_path() == Path::new("/tmp");
    match folder.filter(|folder| narrow(folder) && !it.obeyed(path) && !holds_kept(it, folder)) {
        Some(folder) => Denial::Write { folder },
        None => Denial::Other,
    }
}

fn holds_kept(it: &Confinement, folder: &AbsPath) -> bool {
    it.kept.iter().any(|it| it.is_within(folder) || folder.is_within(it))
}

/// The path that a message names: in quotes, or between the last two colons.
fn named<'l>(line: &'l str, low: &str, words: &[&str]) -> Option<&'l str> {
    let at = words.iter().filter(|it| it.starts_with(':')).find_map(|it| low.find(it))?;
    let before = line.get(..at)?.trim_end();
    let quoted = before.strip_suffix(['\'', '"', '’', '`']).and_then(|it| {
        let start = it.rfind(['\'', '"', '‘', '`'])?;
        it.get(start..)?.get(it.get(start..)?.chars().next()?.len_utf8()..)
    });
    let bare = || before.rsplit(": ").next().filter(|it| it.contains('/') || before.contains(": "));
    quoted.or_else(bare).map(str::trim).filter(|it| !it.is_empty() && !it.contains(' ') || quoted.is_some())
}

#[cfg(test)]
mod tests {
    use super::{guess, listens, recognise};
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, Denial},
    };

    #[test]
    fn denials_are_told_from_failures() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement {
            read_only: false,
            roots: vec![path("/w")],
            writable: Vec::new(),
            kept: vec![path("/h/u/.castor")],
            tmp: path("/h/u/.castor/tmp"),
            network: false,
        };
        let check = |output: &str, want: &str| {
            let said = recognise(&it, &path("/w"), output).map(|it| it.in_words()).unwrap_or_default();
            let said = said.trim_start_matches("The sandbox kept this command from ");
            assert!(said.starts_with(want) && want.is_empty() == said.is_empty(), "{output}: {said}");
        };
        check("touch: cannot touch '/h/u/.cache/x/y': Read-only file system", "writing below /h/u/.cache/x.");
        check("bash: line 1: /opt/a/b: Permission denied", "writing below /opt/a.");
        check("bash: line 1: /tmp/out: Read-only file system", "writing below /tmp.");
        check("touch: cannot touch '.git/hooks/x': Read-only file system", "something");
        check("touch: cannot touch '/x': Read-only file system", "something");
        check("touch: cannot touch '/h/u/x': Read-only file system", "something");
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
        assert_eq!(recognise(&online, &path("/w"), "Could not resolve host: x"), None);
    }
    /// At port 8080 somebody waits, outside of the sandbox.
    #[test]
    fn a_server_out_of_reach_is_told_from_none() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement {
            read_only: false,
            roots: vec![path("/w")],
            writable: Vec::new(),
            kept: Vec::new(),
            tmp: path("/t"),
            network: false,
        };
        let check = |it: &Confinement, output: &str, want: bool| {
            let said = guess(it, &path("/w"), output, |port| port == 8080);
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
