//! Whether a command failed at the sandbox, read from what it printed. A guess: it only leads to a question.

use std::path::Path;

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
];
const READ_ONLY: &[&str] = &[": read-only file system", ": device or resource busy", "erofs"];
const NOT_PERMITTED: &[&str] = &[": operation not permitted", "- operation not permitted", "eperm"];
const NO_ACCESS: &[&str] = &[": permission denied", "eacces"];

/// What a failed command was most likely denied; `None`: it failed by itself.
pub fn recognise(it: &Confinement, cwd: &AbsPath, output: &str) -> Option<Denial> {
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
    (!it.network && says(NO_NETWORK).is_some()).then_some(Denial::Network)
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
    use super::recognise;
    use crate::base::{path::AbsPath, sandbox::Confinement};

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
        let online = Confinement { network: true, ..it.clone() };
        assert_eq!(recognise(&online, &path("/w"), "Could not resolve host: x"), None);
    }
}
