//! Sandbox denial detection: guesses from exit code and output whether a command failed at the sandbox.

use std::path::Path;

use crate::{
    base::{
        guarded_names::TOOL_FOLDERS,
        path::AbsPath,
        sandbox::{Confinement, Denial},
    },
    world::disk,
};

/// How much of the end of an output is looked at, in lines.
const LINES: usize = 200;

/// In lower case, as all phrases here.
const NO_NETWORK: &[&str] = &[
    "could not resolve",
    "couldn't resolve host",
    "unable to resolve host",
    "temporary failure in name resolution",
    "temporary failure resolving",
    "name or service not known",
    "failed to lookup address",
    "getaddrinfo failed",
    "could not translate host name",
    "network is unreachable",
    "network unreachable",
    "enetunreach",
    "enotfound",
    "eai_again",
    "dns error",
    "no such host",
    "unknown host",
    "unknownhostexception",
    "dial tcp: lookup ",
    "no route to host",
    // pip's of an index that it did not reach, where it does not try again.
    "(from versions: none)",
];
/// Only of other machines: a server of its own that was never started is a failure like any other.
const NOT_CONNECTED: &[&str] = &["could not connect to server", "couldn't connect to server", "failed to connect to "];
const LOOPBACK: &[&str] = &["localhost", "127.0.0.", "::1"];
/// What is said where a credential is missing, and which it is, below the home folder.
const NO_CREDENTIAL: &[(&str, &str)] = &[
    ("permission denied (publickey", ".ssh"),
    ("host key verification failed", ".ssh"),
    ("no ssh keys", ".ssh"),
    ("could not read username for 'https://", ".git-credentials"),
    ("gh auth login", ".config/gh"),
    ("unable to locate credentials", ".aws"),
    ("could not find default credentials", ".config/gcloud"),
    ("you do not currently have an active account selected", ".config/gcloud"),
    ("invalid configuration: no configuration has been provided", ".kube"),
    ("no basic auth credentials", ".docker/config.json"),
    ("eneedauth", ".npmrc"),
    ("no token found, please run `cargo login`", ".cargo/credentials.toml"),
    ("az login", ".azure"),
];
const REFUSED: &[&str] = &[
    "read-only file system",
    "erofs",
    "operation not permitted",
    "eperm",
    "device or resource busy",
    "permission denied",
    "eacces",
];
/// A hidden path is named by no program.
const MISSING: &[&str] = &["no such file or directory", "enoent", "not a directory", "enotdir"];
/// Such a refusal may be the user's own rights: without a path in what is read-only here it says nothing.
const OF_RIGHTS: &[&str] = &["permission denied", "eacces"];
const SOCKETS: &[&str] = &[
    "cannot connect to the docker daemon",
    "failed to connect to the docker api",
    "permission denied while trying to connect to the docker",
    "unable to connect to podman",
    "cannot connect to podman",
    "gpg failed to sign",
];
/// Programs that often run quietly, with the exit code of a failed connection.
const SILENT: &[(&str, i32)] = &[("curl", 6), ("wget", 4)];

/// What a command was most likely denied; `None`: it failed by itself. `code`: its exit code.
pub fn recognise_denial(
    it: &Confinement,
    cwd: &AbsPath,
    command: &str,
    code: Option<i32>,
    output: &str,
) -> Option<Denial> {
    let lines: Vec<(&str, String)> = output.lines().rev().take(LINES).map(|it| (it, it.to_lowercase())).collect();
    let says = |phrases: &[&str]| lines.iter().any(|(_, low)| phrases.iter().any(|it| low.contains(it)));
    if says(SOCKETS) {
        return Some(Denial::Other);
    }
    if let Some(path) = lines.iter().find_map(|(_, low)| missing_credential(it, low)) {
        return Some(Denial::Credential { path });
    }
    let kept_from = |(line, low): &(&str, String)| {
        refused_path(it, cwd, line, low).or_else(|| hidden_path(it, cwd, command, line, low))
    };
    if let Some(first) = lines.iter().find_map(kept_from) {
        let Denial::Write { folder } = first else { return Some(first) };
        let others = lines.iter().filter_map(|(line, low)| match refused_path(it, cwd, line, low)? {
            Denial::Write { folder } => Some(folder),
            _ => None,
        });
        return Some(Denial::Write { folder: others.fold(folder, |all, more| join_folders(it, &all, &more)) });
    }
    let is_silent = |(program, end): &(&str, i32)| code == Some(*end) && words(command).any(|it| it == *program);
    let far =
        |low: &str| NOT_CONNECTED.iter().any(|it| low.contains(it)) && !LOOPBACK.iter().any(|it| low.contains(it));
    let unreached = says(NO_NETWORK) || SILENT.iter().any(is_silent) || lines.iter().any(|(_, low)| far(low));
    (!it.network && unreached).then_some(Denial::Network)
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|it: char| it.is_whitespace() || ";|&()<>`\"'".contains(it)).filter(|it| !it.is_empty())
}

/// The credential that a line misses, where there is one, and it is masked.
fn missing_credential(it: &Confinement, low: &str) -> Option<AbsPath> {
    let (_, name) = NO_CREDENTIAL.iter().find(|(phrase, _)| low.contains(phrase))?;
    let home = it.home.as_ref()?;
    let path = home.join(*name);
    let is_there = path.as_path().symlink_metadata().is_ok();
    let masked = disk::real_path(&path).is_ok_and(|path| it.masked.contains(&path) && it.masks_secret(&path));
    (is_there && masked).then_some(path)
}

/// What a line says was refused for its place.
fn refused_path(it: &Confinement, cwd: &AbsPath, line: &str, low: &str) -> Option<Denial> {
    let phrase = REFUSED.iter().find(|it| low.contains(**it))?;
    let Some(path) = path_in_line(line, low, phrase).map(|it| cwd.join(it)) else {
        return (!OF_RIGHTS.contains(phrase)).then_some(Denial::Other);
    };
    // Nothing there is for anybody, and its names may be other ones to the command.
    if ["/dev", "/proc", "/sys"].iter().any(|it| path.as_path().starts_with(it)) {
        return None;
    }
    let real = disk::real_path(&path).unwrap_or(path);
    // Where it may write, it was not the sandbox that said no; nor where the user could not either.
    if it.allows_write(&real) || !is_users(real.as_path(), phrase) {
        return None;
    }
    Some(match it.config_root(&real) {
        _ if it.grant.read_only && it.roots.iter().any(|root| real.is_within(root)) => Denial::Looks,
        Some(path) => Denial::Config { path },
        None if it.lacks_checkpoint(&real) => match it.git_dirs.iter().find(|git| real.is_within(git)) {
            Some(git) => Denial::Write { folder: git.clone() },
            None => Denial::NotKept { path: real },
        },
        None => grantable_folder(it, &real).map_or(Denial::Other, |folder| Denial::Write { folder }),
    })
}

/// What a line says is not there, or else what a word of the command names: below a home of which nothing but tools is seen,
/// and there outside of it, or with a folder that is.
fn hidden_path(it: &Confinement, cwd: &AbsPath, command: &str, line: &str, low: &str) -> Option<Denial> {
    let home = it.home.as_ref().filter(|_| it.network)?;
    let phrase = MISSING.iter().find(|it| low.contains(**it)).filter(|_| super::has_mounts())?;
    let said = path_in_line(line, low, phrase).map(|it| cwd.join(it));
    let of_word = |it| match str::strip_prefix(it, "~/").or_else(|| it.strip_prefix("$HOME/")) {
        Some(rest) => Some(home.join(rest)),
        None => AbsPath::new(it),
    };
    said.into_iter().chain(words(command).filter_map(of_word)).find_map(|path| {
        let path = disk::real_path(&path).unwrap_or(path);
        let seen = TOOL_FOLDERS.iter().map(|it| home.join(it));
        let mut seen = seen.chain(it.writable_folders().cloned()).chain(it.masked.iter().cloned());
        let top = path.as_path().strip_prefix(home.as_path()).ok()?.iter().next()?;
        let is_there = home.join(top).as_path().symlink_metadata().is_ok();
        let is_hidden =
            is_there && !it.allows_write(&path) && !it.is_never_written(&path) && !seen.any(|it| path.is_within(&it));
        is_hidden.then(|| grantable_folder(it, &path).map_or(Denial::Other, |folder| Denial::Hidden { folder }))
    })
}

/// Whether the user himself may do it, as far as modes tell. Of "permission denied" nobody knows whether it was to be read
/// or written.
fn is_users(path: &Path, phrase: &str) -> bool {
    use nix::unistd::{AccessFlags, access};
    let may = |it: &Path, what| access(it, what).is_ok();
    let Some(there) = path.ancestors().find(|it| it.symlink_metadata().is_ok()) else { return false };
    match OF_RIGHTS.contains(&phrase) && there == path {
        true => may(there, AccessFlags::R_OK | AccessFlags::W_OK),
        false => {
            may(there, AccessFlags::W_OK) || there == path && path.parent().is_some_and(|it| may(it, AccessFlags::W_OK))
        }
    }
}

/// The folder that may be offered: the one that is there, if it is not as wide as a home.
fn grantable_folder(it: &Confinement, path: &AbsPath) -> Option<AbsPath> {
    let there = path.as_path().ancestors().find(|it| it.is_dir()).and_then(AbsPath::new)?;
    let is_top = there.parent().is_none();
    (!is_top && !it.is_too_wide(&there) && !it.is_obeyed(&there) && super::opens(there.as_path())).then_some(there)
}

/// One folder to ask about in place of two: the nearest above both, if it can be offered and no workspace lies in it. Else
/// the first.
fn join_folders(it: &Confinement, first: &AbsPath, second: &AbsPath) -> AbsPath {
    let above = first.as_path().ancestors().find(|it| second.as_path().starts_with(it)).and_then(AbsPath::new);
    let is_apart = |folder: &AbsPath| !it.roots.iter().chain(&it.git_dirs).any(|known| known.is_within(folder));
    let offered = above.filter(|folder| is_apart(folder) && grantable_folder(it, folder).as_ref() == Some(folder));
    offered.unwrap_or_else(|| first.clone())
}

/// The path that a line names: in quotes, or the last word before the phrase.
fn path_in_line<'l>(line: &'l str, low: &str, phrase: &str) -> Option<&'l str> {
    let at = low.find(phrase)?;
    let (before, after) = (line.get(..at)?, line.get(at + phrase.len()..)?);
    let quoted = in_quotes(before).or_else(|| in_quotes(after));
    let before = before.trim_end_matches([':', ' ', '-', '[', '(']);
    // `bash: line 1: notes`, and `open /x/notes`.
    let piece = before.rsplit_once(": ").map(|it| it.1).filter(|it| !it.contains([' ', '(']));
    let is_path = |it: &&str| it.contains('/') || it.starts_with('.');
    let word = || piece.or_else(|| before.rsplit(": ").filter_map(|it| it.rsplit(' ').next()).find(is_path));
    quoted.or_else(word).filter(|it| !it.is_empty())
}

/// What stands in the last quotes of a text.
fn in_quotes(text: &str) -> Option<&str> {
    const QUOTES: [char; 5] = ['\'', '"', '‘', '’', '`'];
    let (rest, _) = text.rsplit_once(QUOTES)?;
    Some(rest.rsplit_once(QUOTES)?.1).filter(|it| !it.contains(": "))
}

#[cfg(test)]
mod tests;
