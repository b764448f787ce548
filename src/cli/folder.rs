//! The flag `--cwd`: the folder that a command works in.

use std::path::Path;

use castor_base::path::AbsPath;
use castor_hands::disk;

/// `dir` as seen from `here`.
///
/// # Errors
/// When it is no folder: whatever was said of it would be about nothing.
pub fn folder(here: &AbsPath, dir: Option<impl AsRef<Path>>) -> Result<AbsPath, String> {
    let Some(dir) = dir else { return Ok(here.clone()) };
    let path = here.join(dir);
    match disk::metadata(&path) {
        Ok(it) if it.is_dir => Ok(path),
        Ok(_) => Err(format!("{path} is not a folder; choose one with --cwd")),
        Err(it) => Err(format!("{path} cannot be looked into ({it}); choose a folder that exists with --cwd")),
    }
}
