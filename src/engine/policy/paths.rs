//! Paths that are asked about: outside the roots, configuration that would run things, and where secrets are kept.

use super::shell::{Word, WordKind};
use crate::base::{
    path::AbsPath,
    tool::{Access, TargetPath},
};

/// Folders and files whose content is run or obeyed by castor, editors or git.
const CONFIG: &[&str] = &[".castor", ".gemini", ".vscode", ".idea", ".zed", ".git", ".mcp.json", ".envrc"];

/// Names below which secrets are kept.
const SECRET: &[&str] = &[
    ".ssh",
    ".aws",
    ".castor",
    ".gemini",
    ".config",
    ".env",
    ".envrc",
    ".gnupg",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".kube",
    ".docker",
    ".azure",
    ".git-credentials",
    ".pgpass",
    ".password-store",
    "shadow",
    "gshadow",
];

/// Whether a write to it would change what castor, an editor or git does next. Some disks do not tell case.
pub(super) fn is_config(target: &TargetPath) -> bool {
    let obeyed = |it: &AbsPath| path_has(it, CONFIG) || makes_repository(it);
    target.access == Access::Write && [&target.path, &target.real].into_iter().any(obeyed)
}

/// A folder with a file of that name in it may count as a repository, whose configuration git obeys.
fn makes_repository(path: &AbsPath) -> bool {
    path.as_path().file_name().is_some_and(|it| it.eq_ignore_ascii_case("HEAD"))
}

/// Whether a session's standing yes does not reach it.
pub(super) fn is_secret_path(path: &AbsPath) -> bool {
    path_has(path, SECRET) || names(&path.to_string()).any(is_env_file)
}

fn path_has(path: &AbsPath, list: &[&str]) -> bool {
    // Trailing dots and blanks do not count on some disks.
    let text = path.to_string();
    names(&text).any(|name| list.contains(&name.to_ascii_lowercase().trim_end_matches(['.', ' '])))
}

fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(['/', '\\', '=', ':', ','])
}

fn is_env_file(name: &str) -> bool {
    name.to_ascii_lowercase().starts_with(".env")
}

/// Whether a command's word may name something secret. Reading elsewhere is fine; guessing is not.
pub(super) fn is_secret(word: &Word) -> bool {
    let text = word.text.to_ascii_lowercase();
    // `-f.env`: the file sticks to its option.
    let glued = text.starts_with('-') && SECRET.iter().any(|it| it.starts_with('.') && text.contains(it));
    let listed = names(&text).any(|it| SECRET.contains(&it) || is_env_file(it));
    // `.e*`, `~/.s*`, `/etc/sh*`: a pattern could find what is listed.
    let pattern = word.kind == WordKind::Pattern
        && (text.starts_with('~') && text.contains("/.") || text.contains(".[") || names(&text).any(may_find_secret));
    glued || listed || pattern || is_kernel_file(word)
}

/// The same for a folder in which a command would run.
pub(super) fn is_secret_dir(dir: &str) -> bool {
    is_secret(&Word { text: dir.to_owned(), kind: WordKind::Literal })
}

fn may_find_secret(name: &str) -> bool {
    let Some(fixed) = name.split(['*', '?', '[']).next().filter(|it| it.len() < name.len()) else { return false };
    // A bare `*` does not find names that begin with a dot.
    !fixed.is_empty() && SECRET.iter().any(|it| it.starts_with(fixed))
}

/// Other processes' environment and memory, and devices.
fn is_kernel_file(word: &Word) -> bool {
    const PLAIN: &[&str] =
        &["/proc/cpuinfo", "/proc/meminfo", "/proc/version", "/proc/loadavg", "/proc/uptime", "/dev/null"];
    let path = word.text.rsplit(['=', ':']).next().unwrap_or_default();
    !PLAIN.contains(&path) && may_reach_kernel(word, false) || names(&word.text).any(|it| it == "environ")
}

/// Whether a word may lead into the kernel's folders, by dots and patterns too; a relative one, when commands run
/// `elsewhere`.
pub(super) fn may_reach_kernel(word: &Word, elsewhere: bool) -> bool {
    let path = word.text.rsplit(['=', ':']).next().unwrap_or_default();
    // The root may be here: at the start, and after dots that lead upwards.
    let mut at_root = elsewhere || path.starts_with(['/', '-', '~']);
    for name in path.split('/').filter(|it| !matches!(*it, "" | ".")) {
        let fixed = name.split(['*', '?', '[']).next().unwrap_or_default();
        let pattern = word.kind == WordKind::Pattern && fixed.len() < name.len();
        if at_root && ["proc", "dev", "sys"].iter().any(|it| *it == name || pattern && it.starts_with(fixed)) {
            return true;
        }
        // `-f/proc/1/maps`: the path sticks to its option.
        at_root = name == ".." || at_root && name.starts_with(['-', '~']);
    }
    false
}

/// Whether more lies below a path than anybody means: a home, the whole disk, what is above the workspace.
pub(super) fn is_wide(word: &Word) -> bool {
    let names: Vec<&str> = word.text.split('/').filter(|it| !matches!(*it, "" | ".")).collect();
    match names.as_slice() {
        it if it.contains(&"..") => true,
        [] => word.text.starts_with('/'),
        [_] => word.text.starts_with(['/', '~']),
        [homes, _] => word.text.starts_with('/') && matches!(*homes, "home" | "Users"),
        _ => false,
    }
}

/// Whether a redirection stays below the working directory and out of configuration, symlinks aside.
pub(super) fn is_plain_below(target: &Word) -> bool {
    target.literal().is_some_and(|it| {
        let config = |name: &str| CONFIG.contains(&name.to_ascii_lowercase().as_str());
        !it.is_empty() && !it.starts_with('/') && !it.split('/').any(|it| it == ".." || config(it))
    })
}
