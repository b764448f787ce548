//! Unseen files of agents as a question shows them: whole texts, and the bytes that an approval is about.

use castor_base::{
    path::AbsPath,
    tool::FileDiff,
    unseen_files::{SeenBytes, UnseenFiles},
};
use castor_hands::{
    disk,
    provenance::{LineSet, LookedBytes, Provenance, Unseen},
};

/// Most that a question shows: files, and bytes of all of them.
const MAX_FILES: usize = 20;
const MAX_BYTES: usize = 256 << 10;

/// All that nobody looked at in these places; `None`: it is nothing, or more than a question can show.
pub fn all_unseen(provenance: &Provenance, places: &[AbsPath]) -> Option<UnseenFiles> {
    let mut res = UnseenFiles::default();
    let mut left = MAX_BYTES;
    for place in places {
        for it in provenance.unseen_below(place).ok()? {
            if res.bytes.iter().any(|(known, _)| known.as_path() == it.path) {
                continue;
            }
            let (seen, diff) = shown(&it)?;
            left = left.checked_sub(text_len(&diff))?;
            res.bytes.push(seen);
            res.diffs.push(diff);
        }
    }
    (1..=MAX_FILES).contains(&res.bytes.len()).then_some(res)
}

/// One file with the bytes that are unseen; `None`: it is no text, long, or another one by now.
fn shown(it: &Unseen) -> Option<(SeenBytes, FileDiff)> {
    let (path, hash) = (AbsPath::new(&it.path)?, it.hash?);
    let bytes = disk::read_real_head(&path, MAX_BYTES as u64 + 1).ok()?;
    if disk::hash_of(&bytes) != hash || bytes.contains(&0) {
        return None;
    }
    let after = String::from_utf8(bytes).ok()?;
    let before = it.lines.as_ref().map(|own| without_lines(&after, own)).filter(|it| !it.is_empty());
    let diff = FileDiff { path: path.clone(), before: before.map(Into::into), after: Some(after.into()) };
    Some(((path, hash), diff))
}

fn without_lines(text: &str, own: &LineSet) -> String {
    let lines = (0..).zip(text.split_inclusive('\n'));
    lines.filter(|(at, _)| !own.contains(at)).map(|it| it.1).collect()
}

fn text_len(it: &FileDiff) -> usize {
    it.after.as_ref().map_or(0, |it| it.len())
}

/// Files of a trust question: what an agent wrote of them, and what changed since they were trusted (`true`). Those that
/// cannot be shown whole are left out, and so is a look at them.
pub fn unseen_or_changed(provenance: &Provenance, root: &AbsPath, files: &[(AbsPath, bool)]) -> UnseenFiles {
    let (mut res, mut left) = (UnseenFiles::default(), MAX_BYTES);
    // What cannot be known does not count, which its own notice says.
    let unseen = provenance.unseen_below(root).unwrap_or_default();
    for (path, is_changed) in files {
        let entry = unseen.iter().find(|it| it.path == path.as_path());
        let (seen, diff) = match (entry.map(shown), is_changed) {
            (Some(Some((seen, diff))), _) => (Some(seen), diff),
            (None, true) => match changed(path) {
                Some(it) => (None, it),
                None => continue,
            },
            _ => continue,
        };
        let Some(rest) = left.checked_sub(text_len(&diff)).filter(|_| res.diffs.len() < MAX_FILES) else { continue };
        left = rest;
        res.bytes.extend(seen);
        res.diffs.push(diff);
    }
    res
}

/// All of a file: what it was when it was trusted nobody kept.
fn changed(path: &AbsPath) -> Option<FileDiff> {
    let bytes = disk::read_real_head(path, MAX_BYTES as u64).ok()?;
    let after = String::from_utf8(bytes).ok().filter(|it| !it.contains('\0'))?;
    Some(FileDiff { path: path.clone(), before: None, after: Some(after.into()) })
}

/// A person looked at exactly these bytes.
pub fn looked(bytes: &[SeenBytes]) -> Vec<LookedBytes> {
    bytes.iter().map(|(path, hash)| LookedBytes { path: path.clone(), hash: Some(*hash), lines: None }).collect()
}
