//! Changes of calls for people: paths and diffs.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use similar::{ChangeTag, TextDiff};

use super::{
    Change, Delta, Failure, FileDiff, Kind, Node, NotHeld, Part, RelPath, Store, git, plan::absolute, plan::shown_path,
};
use castor_base::checkpoint::{ChangeKind, Changes, FileChange, MAX_CHANGES};

/// Longest text whose lines are counted, in bytes; and of all together.
const MAX_TEXT: u64 = 512 << 10;
const MAX_TEXTS: u64 = 8 << 20;
/// Longest content that a diff shows, in bytes.
const MAX_SHOWN: u64 = 1 << 20;
/// A diff that takes longer is coarser.
const PATIENCE: Duration = Duration::from_millis(50);

/// The net effect of deltas, sorted by path.
pub fn net_changes(deltas: &[Delta]) -> Vec<Change> {
    let mut res: BTreeMap<RelPath, Change> = BTreeMap::new();
    for change in deltas.iter().flat_map(|it| &it.changes) {
        res.entry(change.path.clone()).or_insert_with(|| change.clone()).new.clone_from(&change.new);
    }
    res.into_values().filter(|it| !it.is_still()).collect()
}

/// What is told of changes in some roots. A repository is one path; that git looked at files' times is nothing.
pub fn describe<'a>(roots: impl Iterator<Item = (&'a Store, &'a [Change])>) -> Changes {
    let (mut res, mut budget) = (Changes::default(), MAX_TEXTS);
    let mut files: BTreeMap<PathBuf, FileChange> = BTreeMap::new();
    for (store, changes) in roots {
        for change in changes {
            if is_lost(change) {
                res.not_kept.push(absolute(&store.path, &change.path));
                continue;
            }
            let Some((path, kind)) = shown_kind(change) else { continue };
            let path = absolute(&store.path, path);
            let (added, removed) = count_lines(store, change, &mut budget);
            res.added += added;
            res.removed += removed;
            let it = files.entry(path.clone()).or_insert(FileChange { path, change: kind, added, removed });
            if it.change != kind {
                it.change = ChangeKind::Changed;
            }
        }
    }
    res.n_files = files.len() as u64;
    res.files = files.into_values().take(MAX_CHANGES).collect();
    res.not_kept.sort();
    res.not_kept.dedup();
    res
}

/// Tells whether a change cannot be taken back. That something was built is no loss.
fn is_lost(change: &Change) -> bool {
    !matches!((change.old.why(), change.new.why()), (None, None | Some(NotHeld::Exempt)))
}

/// What is told of one change; `None`: nothing.
fn shown_kind(change: &Change) -> Option<(&[u8], ChangeKind)> {
    let is_dir = |it: &Node| it.is_absent() || it.is_dir() || it.why().is_some();
    let (part, kind) = (git::part(&change.path), change.kind());
    match part {
        Some(Part::Top) => Some((&change.path, kind)),
        Some(Part::Index | Part::Object | Part::ObjectDir | Part::Temporary) => None,
        Some(_) if change.is_placeholder() => None,
        None if change.old.is_dir() && change.new.is_dir() => Some((&change.path, kind)),
        // Folders are told by the files in them, unless they are all that changed.
        _ if is_dir(&change.old) && is_dir(&change.new) && (part.is_some() || kind == ChangeKind::Changed) => None,
        None | Some(Part::Config) => Some((&change.path, kind)),
        Some(_) => Some((shown_path(&change.path), ChangeKind::Changed)),
    }
}

/// Tells whether it is a file of the user's, with text that may be shown.
fn is_own(change: &Change) -> bool {
    git::part(&change.path).is_none_or(|it| it == Part::Config)
}

fn count_lines(store: &Store, change: &Change, budget: &mut u64) -> (u64, u64) {
    let size = |it: &Node| it.hash().map_or(0, |_| it.mark.size);
    let (old, new) = (size(&change.old), size(&change.new));
    if !is_own(change) || old > MAX_TEXT || new > MAX_TEXT || old + new > *budget {
        return (0, 0);
    }
    *budget -= old + new;
    let text = |it: &Node| match it.hash() {
        Some(it) => String::from_utf8(store.blobs.read(&it).ok()?).ok().filter(|it| !it.contains('\0')),
        None => Some(String::new()),
    };
    let (Some(old), Some(new)) = (text(&change.old), text(&change.new)) else { return (0, 0) };
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(&old, &new);
    let count = |tag| diff.iter_all_changes().filter(|it| it.tag() == tag).count() as u64;
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

/// The contents on both sides of changes.
pub fn diff(store: &Store, changes: &[Change]) -> Result<Vec<FileDiff>, Failure> {
    let mut res = Vec::new();
    for change in changes {
        let Some((path, kind)) = shown_kind(change) else { continue };
        let path = absolute(&store.path, path);
        let too_long = change.old.mark.size.max(change.new.mark.size) > MAX_SHOWN;
        let damaged = |_| Failure::Damaged { path: path.clone() };
        let bytes = |it: &Node| match &it.kind {
            _ if too_long || !is_own(change) => Ok(None),
            Kind::File(hash) => store.blobs.read(hash).map(Some).map_err(damaged),
            Kind::Link(to) => Ok(Some(to.to_vec())),
            _ => Ok(None),
        };
        let (before, after) = (bytes(&change.old)?, bytes(&change.new)?);
        res.push(FileDiff { path: path.clone(), change: kind, before, after, too_long });
    }
    res.dedup_by(|b, a| a.path == b.path);
    Ok(res)
}
