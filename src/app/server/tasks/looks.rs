//! Looks at an agent's bytes by the user, and lists of unseen files.

use std::path::{Path, PathBuf};

use crate::{
    base::{path::AbsPath, path_text},
    world::{
        checkpoints::FileDiff,
        disk,
        provenance::{self, ContentHash, LineSet, Provenance, ProvenanceError, Unseen},
    },
};

/// The mark of a file.
pub const MARK: &str = "written by an agent, not looked at";
/// Most that a list names.
const NAMED: usize = 100;

/// Whether something that nobody looked at stands at a path, in it or around it.
pub fn is_marked(unseen: &[Unseen], path: &Path) -> bool {
    unseen.iter().any(|it| it.path.starts_with(path) || path.starts_with(&it.path))
}

/// A person saw these diffs: the lines in them are looked at, and no others of the files.
///
/// # Errors
/// When it cannot be written down.
pub fn look_at_diffs(provenance: &Provenance, diffs: &[FileDiff]) -> Result<(), ProvenanceError> {
    let seen: Vec<(AbsPath, ContentHash, Option<LineSet>)> = diffs.iter().filter_map(seen_lines).collect();
    if seen.is_empty() { Ok(()) } else { provenance.look_at_lines(&seen) }
}

fn seen_lines(diff: &FileDiff) -> Option<(AbsPath, ContentHash, Option<LineSet>)> {
    let after = diff.after.as_deref().filter(|_| !diff.too_long)?;
    let lines = provenance::changed(diff.before.as_deref().unwrap_or_default(), after)?;
    Some((AbsPath::new(&diff.path)?, disk::hash_of(after), Some(lines)))
}

/// What is unseen at or below a place, and a list of it.
///
/// # Errors
/// Why it cannot be said, in words for the user.
pub fn find(provenance: &Provenance, place: &AbsPath, cwd: &AbsPath) -> Result<(Vec<Unseen>, String), String> {
    let real = disk::real_path(place).map_err(|it| format!("{place}: {it}"))?;
    real.as_path().symlink_metadata().map_err(|it| format!("{place}: {it}"))?;
    let mut found = provenance.unseen_below(&real).map_err(|it| it.to_string())?;
    // One file of a folder that is known as a whole.
    let above = found.iter().position(|it| !it.path.starts_with(real.as_path()));
    if let Some(above) = above.map(|at| found.remove(at)) {
        let folder = path_text::to_text(&above.path).into_owned();
        let bytes = disk::open_real(&real).ok();
        let hash = bytes.and_then(|it| disk::hash_of_file(&it).ok());
        let hash = hash.ok_or_else(|| format!("{folder} is known as a whole only: castor looked {folder}"))?;
        found = vec![Unseen { path: real.as_path().to_owned(), hash: Some(hash), is_folder: false, ..above }];
    }
    let lines: Vec<String> = found.iter().take(NAMED).map(|it| line(it, cwd)).collect();
    let more = found.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("  and {more} more"));
    Ok((found, lines.into_iter().chain(more).collect::<Vec<_>>().join("\n")))
}

fn line(it: &Unseen, cwd: &AbsPath) -> String {
    let path = AbsPath::new(&it.path).map_or_else(PathBuf::new, |it| it.relative_to(cwd).into());
    let what = match (it.is_folder, &it.lines) {
        (true, _) => " (a folder, as a whole)".to_owned(),
        (false, Some(lines)) => format!(" ({} line(s))", lines.iter().map(ExactSizeIterator::len).sum::<usize>()),
        (false, None) => String::new(),
    };
    let by = if it.session.as_str().is_empty() { String::new() } else { format!(", by session {}", it.session) };
    let note = it.note.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("  {}{what}{by}{note}", path.display())
}

/// A person answers for what was listed.
///
/// # Errors
/// When it cannot be written down.
pub fn look(provenance: &Provenance, found: &[Unseen]) -> Result<(), ProvenanceError> {
    let path = |it: &Unseen| AbsPath::new(&it.path);
    let bytes: Vec<(AbsPath, ContentHash)> = found.iter().filter_map(|it| Some((path(it)?, it.hash?))).collect();
    let whole: Vec<AbsPath> = found.iter().filter(|it| it.hash.is_none()).filter_map(path).collect();
    provenance.look(&bytes)?;
    provenance.look_at_whole(&whole)
}
