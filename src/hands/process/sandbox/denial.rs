//! Sandbox denials: what a command was kept from, by the sandbox's record; where there is none, a guess from exit code and
//! output.

use std::path::Path;

use crate::{disk, door::local};
use castor_base::{
    guarded_names::{SECRETS, TOOL_FOLDERS},
    path::AbsPath,
    sandbox::{Confinement, Denial, Refusal, Refused, SHARED_TMP},
};

/// How much of the end of an output is looked at, in lines.
const LINES: usize = 200;

/// In lower case, as all phrases here.
const PHRASES: &str = include_str!("denial/phrases.txt");
const NO_NETWORK: &str = "network: ";
const REFUSED: &str = "refused: ";
const SOCKETS: &str = "socket: ";
const NO_CREDENTIAL: &str = "credential ";
/// Only of other machines: a server of its own that was never started is a failure like any other.
const NOT_CONNECTED: &[&str] = &["could not connect to server", "couldn't connect to server", "failed to connect to "];
const LOOPBACK: &[&str] = &["localhost", "127.0.0.", "::1"];
/// A hidden path is named by no program.
const MISSING: &[&str] = &["no such file or directory", "enoent", "not a directory", "enotdir"];
/// Such a refusal may be the user's own rights: without a path in what is read-only here it says nothing.
const OF_RIGHTS: &[&str] = &["permission denied", "eacces"];
/// Programs that often run quietly, with the exit code of a failed connection.
const SILENT: &[(&str, i32)] = &[("curl", 6), ("wget", 4)];

/// What the sandbox's record says that a command was denied, where that did harm. `output`: of what lies in no folder that can
/// be opened, the gravest question is only asked where the command speaks of it.
pub fn recorded_denial(it: &Confinement, refusals: &[Refusal], output: &str) -> Option<Denial> {
    let failed = || refusals.iter().rev().filter(|it| it.failed).map(|it| &it.what);
    let has_door = super::has_door(it);
    // By the door there is a resolver.
    let is_unreached = |what: &Refused| what.is_far() && !(has_door && matches!(what, Refused::Lookup(_)));
    if !it.network && failed().any(is_unreached) {
        return Some(Denial::Network);
    }
    if let Some(it) = hidden_secrets(it, refusals) {
        return Some(it);
    }
    let port = |what: &Refused| match what {
        Refused::Connect(to) if has_door && !what.is_far() => local::listener(to.port()),
        _ => None,
    };
    if let Some(port) = failed().find_map(port).filter(|port| !it.grant.reach.ports.contains(port)) {
        return Some(Denial::Port { port });
    }
    let socket = |what: &Refused| match what {
        Refused::Socket(path) if !it.is_never_written(path) => Some(path.clone()),
        _ => None,
    };
    if let Some(path) = failed().find_map(socket) {
        return Some(Denial::Socket { path });
    }
    let is_told = |path: &AbsPath| {
        let (low, name) = (output.to_lowercase(), path.as_path().file_name().unwrap_or_default().to_string_lossy());
        output.contains(&*name) || phrases(REFUSED).any(|it| low.contains(it))
    };
    let denial = |what: &Refused| match what {
        Refused::Write(path) => denied_write(it, path),
        _ => None,
    };
    let is_asked = |it: &Denial| !matches!(it, Denial::Unopenable { path } if !is_told(path));
    let (grave, open): (Vec<Denial>, Vec<Denial>) =
        failed().filter_map(denial).filter(is_asked).partition(|it| matches!(it, Denial::Unopenable { .. }));
    join_writes(it, open.into_iter().chain(grave))
}

/// Secret files that a command wanted to read, and did not see for its network's sake. What it lacked then nobody knows from
/// its exit code: in their place it saw empty ones.
fn hidden_secrets(it: &Confinement, refusals: &[Refusal]) -> Option<Denial> {
    let secret = |it: &Refusal| match &it.what {
        Refused::Read(path) => Some(path.clone()),
        _ => None,
    };
    let files: Vec<AbsPath> = refusals.iter().filter_map(secret).collect();
    let hosts = if it.network { Vec::new() } else { it.grant.reach.hosts.allowed.clone() };
    let is_reaching = it.network || !hosts.is_empty();
    (!files.is_empty() && is_reaching).then_some(Denial::Secrets { files, hosts })
}

/// What the record says, and what it cannot say: of sockets, credentials and what a command does not see.
pub fn find_denial(
    it: &Confinement,
    cwd: &AbsPath,
    command: &str,
    end: (Option<i32>, Option<&[Refusal]>),
    output: &str,
) -> Option<Denial> {
    let (code, Some(refusals)) = end else { return recognise_denial(it, cwd, command, end.0, output) };
    let unseen = || {
        let lines = low_lines(output);
        let hidden = || lines.iter().find_map(|(line, low)| hidden_path(it, cwd, command, line, low));
        unrecorded_denial(it, &lines).or_else(hidden).filter(|_| code != Some(0))
    };
    // What only looks, and ended well, saw what it wanted to see.
    let is_asked = |it: &Denial| code != Some(0) || *it != Denial::Looks;
    recorded_denial(it, refusals, output).filter(is_asked).or_else(unseen)
}

/// What a command was most likely denied; `None`: it failed by itself. `code`: its exit code.
pub fn recognise_denial(
    it: &Confinement,
    cwd: &AbsPath,
    command: &str,
    code: Option<i32>,
    output: &str,
) -> Option<Denial> {
    let lines = low_lines(output);
    if let Some(it) = unrecorded_denial(it, &lines) {
        return Some(it);
    }
    let kept_from = |(line, low): &(&str, String)| {
        refused_path(it, cwd, line, low).or_else(|| hidden_path(it, cwd, command, line, low))
    };
    if let Some(first) = lines.iter().find_map(kept_from) {
        let others = lines.iter().filter_map(|(line, low)| refused_path(it, cwd, line, low));
        return join_writes(it, std::iter::once(first).chain(others));
    }
    let is_silent = |(program, end): &(&str, i32)| code == Some(*end) && words(command).any(|it| it == *program);
    let far =
        |low: &str| NOT_CONNECTED.iter().any(|it| low.contains(it)) && !LOOPBACK.iter().any(|it| low.contains(it));
    let unreached = says(&lines, NO_NETWORK) || SILENT.iter().any(is_silent) || lines.iter().any(|(_, low)| far(low));
    (!it.network && unreached).then_some(Denial::Network)
}

/// What the model is told of a program that the sandbox keeps from its work without a word.
pub fn silent_program_note(command: &str) -> Option<&'static str> {
    let mut known = phrases("program ").filter_map(|it| it.split_once(": "));
    known.find(|(name, _)| words(command).any(|it| it.rsplit('/').next() == Some(name))).map(|it| it.1)
}

/// The last lines first, and each in lower case as well.
fn low_lines(output: &str) -> Vec<(&str, String)> {
    output.lines().rev().take(LINES).map(|it| (it, it.to_lowercase())).collect()
}

/// What means `kind`.
fn phrases(kind: &str) -> impl Iterator<Item = &'static str> {
    PHRASES.lines().filter_map(move |it| it.strip_prefix(kind))
}

fn says(lines: &[(&str, String)], kind: &str) -> bool {
    lines.iter().any(|(_, low)| phrases(kind).any(|it| low.contains(it)))
}

/// Sockets of other programs and credentials: no record tells of them.
fn unrecorded_denial(it: &Confinement, lines: &[(&str, String)]) -> Option<Denial> {
    if says(lines, SOCKETS) {
        return Some(Denial::Other);
    }
    lines
        .iter()
        .find_map(|(_, low)| missing_credential(it, low))
        .map(|path| Denial::Credential { path, hosts: it.grant.reach.hosts.allowed.clone() })
}

fn words(command: &str) -> impl Iterator<Item = &str> {
    command.split(|it: char| it.is_whitespace() || ";|&()<>`\"'".contains(it)).filter(|it| !it.is_empty())
}

/// The credential that a line misses, where there is one, and the command did not see it.
fn missing_credential(it: &Confinement, low: &str) -> Option<AbsPath> {
    let mut known = phrases(NO_CREDENTIAL).filter_map(|it| it.split_once(": "));
    let (name, _) = known.find(|(_, phrase)| low.contains(phrase))?;
    let home = it.home.as_ref()?;
    let path = home.join(name);
    let is_there = path.as_path().symlink_metadata().is_ok();
    let is_shut = disk::real_path(&path).is_ok_and(|path| it.masks_secret(&path));
    (is_there && is_shut).then_some(path)
}

/// What a line says was refused for its place.
fn refused_path(it: &Confinement, cwd: &AbsPath, line: &str, low: &str) -> Option<Denial> {
    let phrase = phrases(REFUSED).find(|it| low.contains(it))?;
    let Some(path) = path_in_line(line, low, phrase).map(|it| cwd.join(it)) else {
        return (!OF_RIGHTS.contains(&phrase)).then_some(Denial::Other);
    };
    // Nothing there is for anybody, and its names may be other ones to the command.
    if ["/dev", "/proc", "/sys"].iter().any(|it| path.as_path().starts_with(it)) {
        return None;
    }
    let real = disk::real_path(&path).unwrap_or(path);
    // Nor was it the sandbox where the user could not write either.
    denied_write(it, &real).filter(|_| is_users(real.as_path(), phrase))
}

/// What is denied where a real path is not written. Where it may be, it was not the sandbox that said no.
fn denied_write(it: &Confinement, real: &AbsPath) -> Option<Denial> {
    if it.allows_write(real) {
        return None;
    }
    let root = it.roots.iter().find(|root| real.is_within(root));
    let untrusted_root = root.filter(|_| it.untrusted).and_then(|root| grantable_folder(it, root));
    Some(match it.config_root(real) {
        _ if root.is_some() && it.grant.read_only && !it.untrusted => Denial::Looks,
        Some(path) => Denial::Config { path },
        None if it.lacks_checkpoint(real) => match it.git_dirs.iter().find(|git| real.is_within(git)) {
            Some(git) => Denial::Write { folder: git.clone() },
            None => Denial::NotKept { path: real.clone() },
        },
        None => match (untrusted_root, grantable_folder(it, real)) {
            (Some(folder), _) => Denial::UntrustedFolder { folder },
            (None, Some(folder)) => Denial::Write { folder },
            (None, None) => Denial::Unopenable { path: real.clone() },
        },
    })
}

/// The first of several, with all folders that can be asked about together with it.
fn join_writes(it: &Confinement, mut all: impl Iterator<Item = Denial>) -> Option<Denial> {
    let first = all.next()?;
    let Denial::Write { folder } = first else { return Some(first) };
    let others = all.filter_map(|it| match it {
        Denial::Write { folder } => Some(folder),
        _ => None,
    });
    Some(Denial::Write { folder: others.fold(folder, |all, more| join_folders(it, &all, &more)) })
}

/// What a line says is not there, or else what a word of the command names: below a home of which only tools are seen, and
/// there outside of the sandbox, by itself or by its folder.
fn hidden_path(it: &Confinement, cwd: &AbsPath, command: &str, line: &str, low: &str) -> Option<Denial> {
    let home = it.home.as_ref().filter(|_| super::has_mounts())?;
    let phrase = MISSING.iter().find(|it| low.contains(**it))?;
    let said = path_in_line(line, low, phrase).map(|it| cwd.join(it));
    let of_word = |it| match str::strip_prefix(it, "~/").or_else(|| it.strip_prefix("$HOME/")) {
        Some(rest) => Some(home.join(rest)),
        None => AbsPath::new(it),
    };
    let is_hidden = |path: &AbsPath| {
        let seen = TOOL_FOLDERS.iter().map(|it| home.join(it)).chain(it.writable_folders().cloned());
        let seen = seen.chain(it.git_dirs.iter().filter_map(AbsPath::parent));
        let open = it.grant.credentials.iter().map(|it| &it.path);
        let mut seen = seen.chain(it.grant.seen.iter().chain(open).chain(&it.masked).cloned());
        let is_plain = path.is_within(home) && path != home && SECRETS.find(path.as_path()).is_none();
        is_plain && !it.allows_write(path) && !seen.any(|it| path.is_within(&it))
    };
    let is_there = |it: &AbsPath| it.as_path().symlink_metadata().is_ok();
    said.into_iter().chain(words(command).filter_map(of_word)).find_map(|path| {
        let path = disk::real_path(&path).unwrap_or(path);
        if is_there(&path) {
            return is_hidden(&path).then_some(Denial::Hidden { folder: path });
        }
        // Of what is not there anywhere something was to be made, where its folder is.
        let folder = path.parent().filter(|it| is_hidden(it) && is_there(it))?;
        grantable_folder(it, &folder).map(|folder| Denial::Write { folder })
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
    // A whole shared folder is no answer to one file in it.
    let is_shared = SHARED_TMP.iter().any(|it| there.as_path() == Path::new(it));
    let there = if is_shared && path.as_path().exists() { path.clone() } else { there };
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
