//! Changes of several files, all or none: everything that may fail for want of room or rights comes before the first
//! name changes.

use std::{fs, io};

use super::fs_error;
#[cfg(unix)]
use super::real;
use castor_base::{
    fs::{ChangeError, FsError, PlannedChange},
    path::AbsPath,
};

/// Makes all changes, or none.
///
/// # Errors
/// What could not be made. Nothing is changed then, but for the files that it names as left.
pub async fn change_files(changes: Vec<PlannedChange>) -> Result<(), ChangeError> {
    let Some(path) = changes.first().map(|it| it.path.clone()) else { return Ok(()) };
    let done = tokio::task::spawn_blocking(move || change_now(&changes)).await;
    done.unwrap_or_else(|it| Err(FsError::Other { path, message: it.to_string() }.into()))
}

fn change_now(changes: &[PlannedChange]) -> Result<(), ChangeError> {
    let new_folders = missing_folders(changes);
    let res = stage_and_rename(changes);
    if res.is_err() {
        // Those that somebody else uses by now are not empty.
        new_folders.iter().for_each(|it| _ = fs::remove_dir(it));
    }
    res
}

/// One after the other, up to the first that fails.
#[cfg(not(unix))]
fn stage_and_rename(changes: &[PlannedChange]) -> Result<(), ChangeError> {
    changes.iter().try_for_each(|it| {
        let done = match &it.after {
            Some(bytes) => super::write_atomic(&it.path, bytes),
            None => super::remove_file(&it.path),
        };
        done.map_err(|why| fs_error(&it.path, &why).into())
    })
}

#[cfg(unix)]
fn stage_and_rename(changes: &[PlannedChange]) -> Result<(), ChangeError> {
    let fail = |path: &AbsPath, error: &io::Error| ChangeError::from(fs_error(path, error));
    let written = || changes.iter().filter_map(|it| Some((&it.path, it.after.as_ref()?, &it.moved_from)));
    let mut staged = Vec::new();
    for (path, bytes, moved_from) in written() {
        let file = real::stage(path, bytes).map_err(|it| fail(path, &it))?;
        if let Some(it) = moved_from {
            file.take_rights(it).map_err(|why| fail(it, &why))?;
        }
        staged.push(file);
    }
    let mut removed = Vec::new();
    for it in changes.iter().filter(|it| it.after.is_none()) {
        match real::set_aside(&it.path) {
            Ok(file) => removed.push((&it.path, file)),
            Err(why) => return Err(undo(&[], removed, fail(&it.path, &why))),
        }
    }
    for (n, (file, (path, ..))) in staged.into_iter().zip(written()).enumerate() {
        let named = file.link_as(path.as_path().file_name().unwrap_or_default());
        if let Err(why) = named {
            let done: Vec<&PlannedChange> = changes.iter().filter(|it| it.after.is_some()).take(n).collect();
            return Err(undo(&done, removed, fail(path, &why)));
        }
    }
    Ok(())
}

/// Puts back what was done.
#[cfg(unix)]
fn undo(done: &[&PlannedChange], removed: Vec<(&AbsPath, real::UnnamedFile)>, mut why: ChangeError) -> ChangeError {
    for (path, file) in removed {
        if file.link_as(path.as_path().file_name().unwrap_or_default()).is_err() {
            why.left.push(path.clone());
        }
    }
    for it in done {
        let put_back = match &it.before {
            Some(bytes) => real::write(&it.path, bytes),
            None => real::set_aside(&it.path).map(drop),
        };
        if put_back.is_err() {
            why.left.push(it.path.clone());
        }
    }
    why
}

/// The folders that have to be made, the deepest first.
fn missing_folders(changes: &[PlannedChange]) -> Vec<AbsPath> {
    let mut res: Vec<AbsPath> = Vec::new();
    for it in changes.iter().filter(|it| it.after.is_some()) {
        let mut folder = it.path.parent();
        while let Some(it) = folder.filter(|it| fs::symlink_metadata(it).is_err()) {
            folder = it.parent();
            res.push(it);
        }
    }
    res.sort_by_key(|it| std::cmp::Reverse(it.as_path().components().count()));
    res.dedup();
    res
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::change_now;
    use crate::disk::real_path;
    use castor_base::{
        fs::{FsError, PlannedChange},
        path::AbsPath,
    };

    fn bytes(it: Option<&str>) -> Option<Vec<u8>> {
        it.map(|it| it.as_bytes().to_vec())
    }

    fn change(path: AbsPath, before: Option<&str>, after: Option<&str>) -> PlannedChange {
        PlannedChange { path, before: bytes(before), after: bytes(after), moved_from: None }
    }

    /// All names below a folder, with the contents of files.
    fn listing(dir: &AbsPath) -> Vec<String> {
        let mut res = Vec::new();
        for entry in fs::read_dir(dir).unwrap() {
            let path = dir.join(entry.unwrap().file_name());
            match path.as_path().is_dir() {
                true => res.extend(listing(&path).into_iter().chain([format!("{path}/")])),
                false => res.push(format!("{path}={}", fs::read_to_string(&path).unwrap())),
            }
        }
        res.sort();
        res
    }

    #[test]
    fn all_or_nothing() {
        let keep = tempfile::tempdir().unwrap();
        let dir = real_path(&AbsPath::new(keep.path()).unwrap()).unwrap();
        for name in ["a", "gone", "folder/x"] {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "old").unwrap();
        }
        fs::set_permissions(dir.join("a"), fs::Permissions::from_mode(0o750)).unwrap();
        let before = listing(&dir);
        let good = || {
            vec![
                change(dir.join("a"), Some("old"), Some("new")),
                change(dir.join("n/e/w"), None, Some("new")),
                change(dir.join("gone"), Some("old"), None),
            ]
        };
        // A folder, and what is not there, are no files to be removed; a folder is none to be written.
        let bad = [
            change(dir.join("folder"), None, None),
            change(dir.join("nothing"), None, None),
            change(dir.join("folder"), None, Some("x")),
            change(dir.join("a/b"), None, Some("x")),
        ];
        for it in bad {
            for at in 0..=3 {
                let mut all = good();
                all.insert(at, it.clone());
                let error = change_now(&all).unwrap_err();
                assert_eq!(error.left, []);
                assert_eq!(listing(&dir), before, "{it:?} at {at}");
            }
        }
        assert!(matches!(
            change_now(&[change(dir.join("nothing"), None, None)]).unwrap_err().error,
            FsError::NotFound(_)
        ));
        let mut all = good();
        all[1].moved_from = Some(dir.join("a"));
        change_now(&all).unwrap();
        let texts: Vec<String> = listing(&dir).iter().map(|it| it.replace(&dir.to_string(), "")).collect();
        assert_eq!(texts, ["/a=new", "/folder/", "/folder/x=old", "/n/", "/n/e/", "/n/e/w=new"]);
        for it in ["a", "n/e/w"] {
            assert_eq!(fs::metadata(dir.join(it)).unwrap().permissions().mode() & 0o777, 0o750, "{it}");
        }
        let back: Vec<PlannedChange> = good().iter().map(PlannedChange::inverse).collect();
        change_now(&back).unwrap();
        assert_eq!(fs::read(dir.join("gone")).unwrap(), b"old");
    }
}
