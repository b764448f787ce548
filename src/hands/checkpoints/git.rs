//! Checkpoints of `.git` folders: objects by hard links, refs one by one.

use std::{borrow::Cow, collections::BTreeMap, iter};

use super::{node::ancestors, node::split, node::strip_dir};
use crate::disk::git_index::{MODE, SIZE, entries};

/// The role of a path in a `.git` folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The folder itself.
    Top,
    /// A loose object or a pack: written once, named by its content.
    Object,
    /// A folder of those.
    ObjectDir,
    /// Half written by git, or held by it for a moment.
    Temporary,
    /// `HEAD`, `packed-refs`, and what lies below `refs`.
    Ref,
    Index,
    /// What git obeys: its configuration, hooks, rules of attributes and of what it ignores.
    Config,
    /// What git can do without: logs of refs, marks of the last merge.
    Other,
}

/// A path in a folder of git's: that folder, and the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GitPath<'a> {
    pub dir: &'a [u8],
    pub inner: &'a [u8],
}

/// What marks the folder of a submodule.
const OWN: &str = "HEAD ORIG_HEAD FETCH_HEAD config description hooks index info logs modules objects packed-refs refs \
    shallow worktrees";

/// `None`: it is in no folder of git's.
pub fn git_path(path: &[u8]) -> Option<GitPath<'_>> {
    let mut above = iter::once(path).chain(ancestors(path));
    let mut dir = above.find(|it| split(it).is_some_and(|it| it.1 == b".git"))?;
    while let Some(len) = module(strip_dir(path, dir)) {
        dir = path.get(..dir.len() + 1 + len)?;
    }
    Some(GitPath { dir, inner: strip_dir(path, dir) })
}

/// How long the way to a submodule's own folder is: `modules`, then its name, which may have slashes in it.
fn module(inner: &[u8]) -> Option<usize> {
    let mut end = 0;
    for (idx, part) in inner.split(|it| *it == b'/').enumerate() {
        match idx {
            0 if part != b"modules" => return None,
            0 | 1 => (),
            _ if OWN.split(' ').any(|it| it.as_bytes() == part) => return Some(end - 1),
            _ => (),
        }
        end += part.len() + 1;
    }
    None
}

impl GitPath<'_> {
    pub fn part(&self) -> Part {
        let parts: Vec<&[u8]> = self.inner.split(|it| *it == b'/').collect();
        let name = parts.last().copied().unwrap_or_default();
        match *parts {
            [b""] => Part::Top,
            [b"objects", dir] if is_hex(dir, &[2]) || dir == b"pack" => Part::ObjectDir,
            [b"objects", dir, name] if is_hex(dir, &[2]) && is_hex(name, &[38, 62]) => Part::Object,
            [b"objects", b"pack", name] if name.starts_with(b"pack-") => Part::Object,
            [b"objects", ..] if name.starts_with(b"tmp_") || name.starts_with(b".tmp") => Part::Temporary,
            _ if name.ends_with(b".lock") => Part::Temporary,
            [b"HEAD" | b"packed-refs"] | [b"refs", ..] => Part::Ref,
            [b"index"] => Part::Index,
            [b"config" | b"config.worktree" | b"description"] | [b"hooks" | b"info", ..] => Part::Config,
            _ => Part::Other,
        }
    }
}

fn is_hex(text: &[u8], lens: &[usize]) -> bool {
    lens.contains(&text.len()) && text.iter().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

pub fn part(path: &[u8]) -> Option<Part> {
    git_path(path).map(|it| it.part())
}

pub fn is_object(path: &[u8]) -> bool {
    // Asked of every path.
    path.windows(8).any(|it| it == b"objects/") && part(path) == Some(Part::Object)
}

/// Targets of refs, by their names.
pub type Refs = BTreeMap<Vec<u8>, Vec<u8>>;

/// The refs that files hold, by their paths in git's folder, in order: a file of its own is stronger than `packed-refs`.
pub fn refs<'a>(files: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Refs {
    let mut res = Refs::new();
    for (name, bytes) in files {
        if name == b"packed-refs" {
            let lines = bytes.split(|it| *it == b'\n').filter_map(packed_line);
            res.extend(lines.map(|(name, value)| (name.to_vec(), value.to_vec())));
        } else {
            res.insert(name.to_vec(), bytes.trim_ascii().to_vec());
        }
    }
    res
}

fn packed_line(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = line.iter().position(|it| *it == b' ')?;
    let (value, name) = (line.get(..at)?, line.get(at + 1..)?);
    is_hex(value, &[40, 64]).then_some((name, value))
}

/// `packed-refs` without one ref, and what that was peeled to; `None`: it is not in it.
pub fn without_ref(bytes: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let mut inside = false;
    let lines = bytes.split_inclusive(|it| *it == b'\n').filter(|line| {
        let is_peeled = line.starts_with(b"^");
        inside = (inside && is_peeled) || packed_line(line.trim_ascii_end()).is_some_and(|it| it.0 == name);
        !inside
    });
    let res = lines.collect::<Vec<_>>().concat();
    (res.len() < bytes.len()).then_some(res)
}

/// Of an entry of an index: mode, object and flags, name. What git notes of the file's times is no part of it.
pub type Staged<'a> = (Option<&'a [u8]>, Option<&'a [u8]>, Cow<'a, [u8]>);

/// What is staged; `None`: the index cannot be read, and then all bytes count.
pub fn staged(bytes: &[u8]) -> Option<Vec<Staged<'_>>> {
    Some(entries(bytes)?.into_iter().map(|(head, name)| (head.get(MODE), head.get(SIZE.end..), name)).collect())
}
