//! Looks at an agent's bytes by the user, and lists of unseen files.

use std::path::{Path, PathBuf};

use castor_base::{path::AbsPath, path_text};
use castor_hands::{
    checkpoints::FileDiff,
    disk,
    provenance::{self, LineSet, LookedBytes, Provenance, ProvenanceError, Unseen},
};

/// The mark of a file.
pub const MARK: &str = "written by an agent, not looked at";
/// Most that a list names.
const NAMED: usize = 100;

/// Tells whether something that nobody looked at stands at a path, in it or around it.
pub fn is_marked(unseen: &[Unseen], path: &Path) -> bool {
    unseen.iter().any(|it| it.path.starts_with(path) || path.starts_with(&it.path))
}

/// A person saw these diffs: the lines in them are looked at, and no others of the files.
///
/// # Errors
/// When it cannot be written down.
pub fn look_at_diffs(provenance: &Provenance, diffs: &[FileDiff]) -> Result<(), ProvenanceError> {
    provenance.look(&diffs.iter().filter_map(seen_lines).collect::<Vec<_>>())
}

fn seen_lines(diff: &FileDiff) -> Option<LookedBytes> {
    let after = diff.after.as_deref().filter(|_| !diff.too_long)?;
    let lines = provenance::after_agent(diff.before.as_deref().unwrap_or_default(), &LineSet::new(), after)?;
    Some(LookedBytes { path: AbsPath::new(&diff.path)?, hash: Some(disk::hash_of(after)), lines: Some(lines) })
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
        (false, Some(lines)) => format!(" ({} line(s))", lines.len()),
        (false, None) => String::new(),
    };
    let by = it.by.as_ref().map(|it| format!(", by session {}", it.0)).unwrap_or_default();
    let note = it.note.as_ref().map(|it| format!(": {it}")).unwrap_or_default();
    format!("  {}{what}{by}{note}", path.display())
}

/// A person answers for what was listed.
///
/// # Errors
/// When it cannot be written down.
pub fn look(provenance: &Provenance, found: &[Unseen]) -> Result<(), ProvenanceError> {
    let looked = |it: &Unseen| Some(LookedBytes { path: AbsPath::new(&it.path)?, hash: it.hash, lines: None });
    provenance.look(&found.iter().filter_map(looked).collect::<Vec<_>>())
}
