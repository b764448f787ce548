//! Whether a command failed at the sandbox, read from what it printed. A guess: it only leads to a question.

use std::path::Path;

use super::{
    caches,
    environment::is_new,
    held, named,
    refused::{NOBODY, listens, loopback_ports, names_far_address, names_shut_socket},
    rights::{self, Refusal},
};
use crate::{
    base::{
        guarded,
        path::AbsPath,
        sandbox::{Confinement, Denial, NEVER_MADE, held_below},
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
    // pip's of an index that it did not reach, where it does not try again.
    "(from versions: none)",
];
const READ_ONLY: &[&str] =
    &[": read-only file system", "erofs", "] read-only file system", ": device or resource busy"];
const NOT_PERMITTED: &[&str] = &[": operation not permitted", "- operation not permitted", "eperm"];
const NO_ACCESS: &[&str] = &[": permission denied", "eacces"];
/// Of Node.js, which makes the folders on the way, too: of a disk that is read-only it says that they are not there.
const NOT_MADE: &[&str] = &["no such file or directory, mkdir "];
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
    let opens = |path: &AbsPath| rights::opens(path.as_path());
    let could = |path: &AbsPath, refusal| {
        rights::could(path.as_path(), refusal, |it| AbsPath::new(it).is_none_or(|it| is_free(&it)))
    };
    let real = |path: &AbsPath| disk::real_path(path).ok();
    let named = |path: &AbsPath| named::names(path.as_path(), &it.roots, home).ok().flatten().and_then(AbsPath::new);
    let home = home.and_then(AbsPath::new).map(|it| real(&it).unwrap_or(it));
    let world = World {
        home: home.as_ref(),
        listens: &listens,
        is_free: &is_free,
        is_there: &is_there,
        is_dir: &is_dir,
        opens: &opens,
        could: &could,
        real: &real,
        named: &named,
    };
    guess(it, cwd, output, &world)
}

/// The folder that castor made for a command, as who makes one himself finds it: it is there, and empty.
pub fn made_before(it: &Confinement, cwd: &AbsPath, output: &str) -> Option<AbsPath> {
    let folders: Vec<&AbsPath> = it.granted.iter().filter_map(is_new).filter(|it| it.as_path().is_dir()).collect();
    let mut lines = output.lines().rev().take(LINES).filter(|_| !folders.is_empty());
    lines.find_map(|line| {
        let path = cwd.join(named(line, &line.to_lowercase(), IN_THE_WAY)?);
        let path = disk::real_path(&path).unwrap_or(path);
        folders.contains(&&path).then_some(path)
    })
}

/// What is to be known beside the output.
struct World<'w> {
    /// The user's, canonical.
    home: Option<&'w AbsPath>,
    /// Whether somebody outside waits at that port of the loopback.
    listens: &'w dyn Fn(u16) -> bool,
    /// Whether nothing of the user's is there, at most a stand-in.
    is_free: &'w dyn Fn(&AbsPath) -> bool,
    is_there: &'w dyn Fn(&AbsPath) -> bool,
    is_dir: &'w dyn Fn(&AbsPath) -> bool,
    /// Whether castor can look into a folder, if it is there.
    opens: &'w dyn Fn(&AbsPath) -> bool,
    /// Whether the user himself could do what was refused there.
    could: &'w dyn Fn(&AbsPath, Refusal) -> bool,
    /// Where a path leads; `None`: nobody knows.
    real: &'w dyn Fn(&AbsPath) -> Option<AbsPath>,
    /// What the settings of a repository name and it belongs to.
    named: &'w dyn Fn(&AbsPath) -> Option<AbsPath>,
}

fn guess(it: &Confinement, cwd: &AbsPath, output: &str, world: &World<'_>) -> Option<Denial> {
    let originals: Vec<&str> = output.lines().rev().take(LINES).filter(|it| !passes_by(it, cwd, world)).collect();
    let lines: Vec<String> = originals.iter().map(|it| it.to_lowercase()).collect();
    let says = |words: &[&str]| lines.iter().zip(&originals).find(|(low, _)| words.iter().any(|it| low.contains(it)));
    let is_there = |socket: &str| AbsPath::new(socket).is_some_and(|it| (world.is_there)(&it));
    if lines.iter().zip(&originals).any(|(low, line)| names_shut_socket(line, low, is_there)) {
        return Some(Denial::Other);
    }
    if let Some(it) = refused(it, cwd, &lines, &originals, world) {
        return Some(it);
    }
    if let Some(path) = not_pushed(&originals).map(|it| cwd.join(it)).and_then(|it| (world.real)(&it)) {
        let is_closed = (world.is_dir)(&path) && !it.writes(&path.join("objects"));
        if is_closed && !is_of_the_system(&path) && (world.could)(&path, Refusal::ReadOnly) {
            return Some(write_denial(it, &path, Some(Kind::Folder), world));
        }
    }
    if let Some(path) = not_made_by_npm(&originals).map(|it| cwd.join(it)) {
        let path = place(&path, world).unwrap_or(path);
        if !is_of_the_system(&path) && !it.writes(&path) && (world.could)(&path, Refusal::ReadOnly) {
            return Some(write_denial(it, &path, Some(Kind::Folder), world));
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

/// The first that was refused for its place, from the last line up. What the user himself may not do is no denial.
fn refused(it: &Confinement, cwd: &AbsPath, lines: &[String], originals: &[&str], world: &World<'_>) -> Option<Denial> {
    for words in [READ_ONLY, NO_ACCESS, NOT_PERMITTED, NOT_MADE] {
        let said = lines.iter().zip(originals).filter(|(low, _)| words.iter().any(|it| low.contains(it)));
        let mut said = said.map(|(low, line)| {
            let path = named(line, low, words).map(|path| cwd.join(path));
            (low, path.as_ref().and_then(|it| place(it, world)).or(path))
        });
        let is_denied = |(low, path): &(&String, Option<AbsPath>)| {
            let could = |path: &AbsPath| (world.could)(path, refusal(words, low));
            path.as_ref().is_none_or(|path| is_of_the_system(path) || it.writes(path) || could(path))
        };
        // Node.js says the reason once more, on a line that names nothing.
        let denied: Vec<_> = said.by_ref().filter(is_denied).collect();
        let names = denied.iter().position(|it| it.1.is_some()).unwrap_or_default();
        let Some((low, path)) = denied.into_iter().nth(names) else { continue };
        match path {
            // Nothing there is for anybody, and its names may be other ones to the command.
            Some(path) if is_of_the_system(&path) => (),
            Some(path) if !it.writes(&path) => return Some(write_denial(it, &path, says_kind(low), world)),
            Some(path) if held_for_git(it, &path, world).is_some() => {
                return held_for_git(it, &path, world).map(|path| Denial::Config { path });
            }
            // Where it may write, it was not the sandbox that said no.
            Some(_) => (),
            None if [READ_ONLY, NOT_PERMITTED].contains(&words) => return Some(Denial::Other),
            None => (),
        }
    }
    None
}

/// How a line in lower case calls what could not be done.
fn refusal(words: &[&str], low: &str) -> Refusal {
    let removes = ["remove", "unlink", "rmdir", "rename", "move"].iter().any(|it| low.contains(it));
    match words == NO_ACCESS {
        true if removes => Refusal::NotRemoved,
        true => Refusal::NoAccess,
        false => Refusal::ReadOnly,
    }
}

/// A stand-in that `git clean` would not find at another time; it may be gone by now.
fn passes_by(line: &str, cwd: &AbsPath, world: &World<'_>) -> bool {
    let name = line.strip_prefix("warning: failed to remove ").and_then(|it| it.split_once(": "));
    name.is_some_and(|it| (world.is_free)(&cwd.join(it.0)))
}

/// The repository in a folder that `git push` could not write, as the other side says in lines of its own.
fn not_pushed<'l>(lines: &[&'l str]) -> Option<&'l str> {
    const SAID: &str = "unable to create temporary object directory";
    lines.iter().find(|it| it.contains(SAID))?;
    let to = lines.iter().find_map(|it| it.strip_prefix("To "))?.trim();
    let path = to.strip_prefix("file://").unwrap_or(to);
    (!path.contains(':')).then_some(path)
}

/// The folder that npm could not make, which it says in lines of their own.
fn not_made_by_npm<'l>(lines: &[&'l str]) -> Option<&'l str> {
    let word = |line: &'l str| ["npm error ", "npm ERR! "].iter().find_map(|it| line.strip_prefix(it));
    let said = |what: &str| lines.iter().find_map(|it| word(it)?.strip_prefix(what)).map(str::trim);
    (said("code ")? == "ENOENT" && said("syscall ")? == "mkdir").then(|| said("path "))?
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
    const NEW: &[&str] = &[
        "cannot move",
        "cp: cannot create directory",
        "hard link",
        "inter-device move",
        "symbolic link",
        "work tree dir",
    ];
    let says = |words: &[&str]| words.iter().any(|it| low.contains(it));
    if says(NEW) {
        return Some(Kind::New);
    }
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
    /// What has to be new there.
    New,
}

/// `out.json`, not `.npm`: what is called so is a file, whoever says nothing of it.
fn is_called_file(path: &AbsPath) -> bool {
    let name = path.as_path().file_name().and_then(|it| it.to_str()).and_then(|it| it.rsplit_once('.'));
    let is_ending = |it: &str| (1..=5).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_alphanumeric());
    name.is_some_and(|(stem, ending)| !stem.is_empty() && is_ending(ending))
}

/// What may be offered: configuration for once, a tool's cache as a whole, the first folder that is not there, and a folder not so wide that a yes
/// would say nothing for longer.
fn write_denial(it: &Confinement, path: &AbsPath, kind: Option<Kind>, world: &World<'_>) -> Denial {
    if it.obeyed(path) {
        return config_denial(it, path, world).unwrap_or(Denial::Other);
    }
    let narrow = |it: &AbsPath| it.as_path().components().count() > 2 || it.as_path() == Path::new("/tmp");
    let is_given = |folder: &AbsPath| narrow(folder) && !it.is_too_wide(folder) && (world.opens)(folder);
    let above = |it: &AbsPath| it.as_path().ancestors().filter_map(AbsPath::new).collect::<Vec<_>>();
    let missing = above(path).into_iter().take_while(|it| !(world.is_there)(it)).last();
    let Some(around) = missing.as_ref().unwrap_or(path).parent() else { return Denial::Other };
    let kind = kind.or_else(|| (missing.as_ref() == Some(path) && is_called_file(path)).then_some(Kind::File));
    let is_new = kind == Some(Kind::New) && missing.is_some();
    let is_guarded =
        |path: &AbsPath| [guarded::CONFIG, guarded::SECRETS].iter().any(|it| it.find(path.as_path()).is_some());
    let offered = |cache: &AbsPath| {
        let may = is_given(cache) && ![path, cache].into_iter().any(is_guarded) && !it.obeyed(cache);
        // Castor makes one folder, not those above; and a cache that holds a root, or is in one, is no cache to it.
        let of_root = |root: &AbsPath| path.is_within(root) || root.is_within(cache);
        may && cache.parent().is_some_and(|it| (world.is_there)(&it)) && !it.folders().any(of_root)
    };
    if let Some(folder) = world.home.and_then(|home| caches::around(path, home)).filter(offered) {
        return Denial::Write { folder };
    }
    match missing {
        // Who makes a folder needs no more than that one.
        Some(new)
            if !is_new && (new != *path || kind == Some(Kind::Folder) || kind.is_none() && !is_given(&around)) =>
        {
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
        (_, false) if (world.opens)(&around) => Denial::Outside { path: path.clone(), folder: around },
        _ if is_guarded(path) || it.is_too_wide(path) || (world.is_dir)(path) => Denial::Other,
        _ if is_new => Denial::New { path: path.clone() },
        _ => Denial::File { path: path.clone() },
    }
}

/// The configuration in the workspace that a path belongs to: no more than that is offered. `None`: it belongs to none, or
/// the command was let write it already.
fn config_denial(it: &Confinement, path: &AbsPath, world: &World<'_>) -> Option<Denial> {
    if it.keeps(path) || !it.obeyed(path) {
        return None;
    }
    // Of a repository that is there, only what was wanted.
    let is_repository =
        |root: &AbsPath, whole: &AbsPath| *whole == root.join(".git") && !(world.is_free)(whole) && whole != path;
    let whole = whole(it, path, &is_repository)?.1;
    (!it.open.contains(&whole) && !it.keeps(&whole)).then_some(Denial::Config { path: whole })
}

/// The folder that commands write and a path lies in, and the first on the way from there that is obeyed as a whole.
fn whole(it: &Confinement, path: &AbsPath, passes: &dyn Fn(&AbsPath, &AbsPath) -> bool) -> Option<(AbsPath, AbsPath)> {
    let root = it.folders().chain(&it.gits).find(|root| path.is_within(root))?;
    let mut whole = root.clone();
    for part in path.as_path().strip_prefix(root.as_path()).ok()?.iter() {
        whole = whole.join(part);
        if it.obeyed(&whole) && !passes(root, &whole) {
            break;
        }
    }
    Some((root.clone(), whole))
}

/// What a command cannot make or write of a file in a work tree, or what would be put aside after it: the whole piece of
/// configuration, which a yes may open. Deeper than at the top of a root only what is there is held.
pub fn piece(it: &Confinement, path: &AbsPath) -> Option<AbsPath> {
    if it.keeps(path) || !it.obeyed(path) {
        return None;
    }
    let (root, whole) = whole(it, path, &|_, _| false)?;
    let below = whole.as_path().strip_prefix(root.as_path()).ok()?;
    let is_deep = || held_below(root.as_path()).iter().any(|it| it.as_os_str().eq_ignore_ascii_case(below.as_os_str()));
    let is_known = || whole.as_path().file_name().is_some_and(|it| NEVER_MADE.iter().any(|name| it == *name));
    let is_there = || whole.as_path().symlink_metadata().is_ok();
    let is_held = below.iter().count() == 1 || is_deep() || is_known() && is_there();
    (is_held && !it.keeps(&whole)).then_some(whole)
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
    // `tar (child): /x/a.tgz: Cannot open: Read-only file system`
    let whole = before.rsplit(": ").skip(1).find(|it| it.starts_with('/') && !it.contains(' '));
    if whole.is_some() {
        return whole;
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
mod tests;
