//! Which stand-ins were made is written down before they are made: a castor that is killed cannot remove its own, and the
//! next one, or `castor doctor`, does.
//!
//! One file for each castor, with a line for each place. Its lock says that the castor lives: the kernel takes it from
//! whoever is gone, however that came. What is removed must still be what was made: empty, with a mark that nobody sets
//! by accident, and nobody's that works there now.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use nix::{
    fcntl::{OFlag, openat},
    sys::stat::Mode,
    unistd::{UnlinkatFlags, geteuid, unlinkat},
};
use serde::{Deserialize, Serialize};

use super::{
    coded,
    held::{alone, open_folder, same},
};
use crate::base::sandbox::StandIn;

/// The mark of what castor made: on a folder it is without effect where only its owner writes, on a file without any.
pub(super) const MARK: u32 = 0o1000;
/// A longer record is not one of ours.
const MAX_RECORD: u64 = 1024 * 1024;
/// A sweep may take a record between its making and its lock, but not for ever.
const TRIES: usize = 20;

/// A place where something stands, or stood.
#[derive(Serialize, Deserialize)]
struct Line {
    #[serde(with = "coded::one")]
    path: PathBuf,
    /// What is in it; `None`: a folder.
    text: Option<String>,
}

/// The record of this process in one home, and what is in it: each place is written down once.
struct Own {
    path: PathBuf,
    file: File,
    known: BTreeSet<PathBuf>,
}

static OWN: Mutex<BTreeMap<PathBuf, Own>> = Mutex::new(BTreeMap::new());

fn own() -> MutexGuard<'static, BTreeMap<PathBuf, Own>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes down that something will stand there. Where that cannot be done (the disk is full), it is made all the same:
/// to guard is more than to tidy up.
/// `looks`: whether the record is there is looked at, which the first of many is enough for.
pub(super) fn note(folder: &Path, path: &Path, what: StandIn, looks: bool) {
    if let Err(it) = try_note(folder, path, what, looks) {
        tracing::warn!("{} cannot be written down in {}: {it}", path.display(), folder.display());
    }
}

fn try_note(folder: &Path, path: &Path, what: StandIn, looks: bool) -> io::Result<()> {
    let mut all = own();
    // Of castor itself; whoever removed it wants none, but a kill needs one.
    let is_there = all.get(folder).is_some_and(|it| !looks || same(&it.file, &it.path));
    if !is_there {
        all.insert(folder.to_owned(), begin(folder)?);
    }
    let Some(own) = all.get_mut(folder).filter(|it| !it.known.contains(path)) else { return Ok(()) };
    let line = Line { path: path.to_owned(), text: what.text().map(str::to_owned) };
    let line = serde_json::to_string(&line).map_err(io::Error::other)?;
    own.file.write_all(format!("{line}\n").as_bytes())?;
    own.known.insert(path.to_owned());
    Ok(())
}

fn begin(folder: &Path) -> io::Result<Own> {
    super::make_private(folder)?;
    for _ in 0..TRIES {
        let path = folder.join(format!("{}.jsonl", uuid::Uuid::now_v7().simple()));
        let file = File::options().append(true).create_new(true).open(&path)?;
        if file.try_lock().is_ok() && same(&file, &path) {
            return Ok(Own { path, file, known: BTreeSet::new() });
        }
    }
    Err(io::Error::other("somebody removes it again and again"))
}

/// Castor ends in order: nothing of its own stands any more.
pub(in crate::world::process) fn end(folders: &BTreeSet<PathBuf>) {
    let mut all = own();
    for it in folders.iter().filter_map(|it| all.remove(it)) {
        _ = fs::remove_file(it.path);
    }
}

/// Removes what castors that are no more left standing; what was removed.
pub fn sweep(folder: &Path) -> Vec<PathBuf> {
    // Nobody was ever confined: the common case.
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut res = Vec::new();
    for path in entries.filter_map(Result::ok).map(|it| it.path()) {
        let Ok(record) = File::options().read(true).open(&path) else { continue };
        // It lives, or another one sweeps.
        if record.try_lock().is_err() || !same(&record, &path) {
            continue;
        }
        let mut text = String::new();
        // What was cut off by the end was not made yet.
        _ = record.take(MAX_RECORD).read_to_string(&mut text);
        let lines = text.lines().filter_map(|it| serde_json::from_str::<Line>(it).ok());
        res.extend(lines.filter(|it| remove(&it.path, it.text.as_deref())).map(|it| it.path));
        _ = fs::remove_file(&path);
    }
    res.sort();
    res
}

/// Removes it if it is a stand-in that nobody uses.
fn remove(path: &Path, text: Option<&str>) -> bool {
    let _alone = alone();
    let (Some(Ok(folder)), Some(name)) = (path.parent().map(open_folder), path.file_name()) else { return false };
    let flags = OFlag::O_RDONLY | OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC;
    let Ok(there) = openat(&folder, name, flags, Mode::empty()).map(File::from) else { return false };
    if !is_ours(&there, text) || there.try_lock().is_err() || !same(&there, path) {
        return false;
    }
    let how = if text.is_some() { UnlinkatFlags::NoRemoveDir } else { UnlinkatFlags::RemoveDir };
    // A folder goes only if it is empty.
    unlinkat(&folder, name, how).is_ok()
}

/// Whether it looks like a stand-in: of that kind, ours, marked, and with nothing else in it. Whether a folder is empty its
/// removal finds out.
pub(super) fn is_ours(there: &File, text: Option<&str>) -> bool {
    let Ok(it) = there.metadata() else { return false };
    let is_marked = it.mode() & MARK != 0 && it.uid() == geteuid().as_raw();
    match text {
        None => is_marked && it.is_dir(),
        Some(text) => is_marked && it.is_file() && it.len() == text.len() as u64 && reads(there, text),
    }
}

fn reads(there: &File, text: &str) -> bool {
    let mut found = Vec::new();
    there.take(text.len() as u64 + 1).read_to_end(&mut found).is_ok() && found == text.as_bytes()
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::PermissionsExt,
        path::Path,
    };

    use super::{Line, MARK, sweep};
    use crate::base::sandbox::{ITSELF, StandIn};
    use crate::world::process::sandbox::held::Held;

    fn marked(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode | MARK)).unwrap();
    }

    fn record(folder: &Path, lines: &[(&Path, Option<&str>)]) {
        fs::create_dir_all(folder).unwrap();
        let line = |(path, text): &(&Path, Option<&str>)| {
            let it = Line { path: (*path).to_owned(), text: text.map(str::to_owned) };
            serde_json::to_string(&it).unwrap() + "\n"
        };
        let text: String = lines.iter().map(line).collect();
        fs::write(folder.join("dead.jsonl"), text + "{\"path\":\"/cut o").unwrap();
    }

    #[test]
    fn what_the_dead_left_goes_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |it: &str| root.join(it);
        for it in ["left", "filled", "own", "used", "elsewhere/left"] {
            fs::create_dir_all(at(it)).unwrap();
        }
        for it in ["left", "filled", "used", "elsewhere/left"] {
            marked(&at(it));
        }
        fs::write(at("filled/x"), "mine").unwrap();
        for (name, text) in [("empty", ""), ("itself", "././.\n"), ("written", "mine"), ("unmarked", "")] {
            fs::write(at(name), text).unwrap();
            if name != "unmarked" {
                marked(&at(name));
            }
        }
        std::os::unix::fs::symlink("elsewhere", at("link")).unwrap();
        let used = File::open(at("used")).unwrap();
        used.lock_shared().unwrap();
        let lines = ["left", "filled", "own", "used", "link", "link/left", "gone", "itself"].map(at);
        let files = ["empty", "written", "unmarked"].map(at);
        let itself = at("itself");
        let mut all: Vec<(&Path, Option<&str>)> = lines.iter().map(|it| (it.as_path(), None)).collect();
        all.extend(files.iter().map(|it| (it.as_path(), Some(""))));
        all.push((&itself, Some("././.\n")));
        let records = at("records");
        record(&records, &all);
        assert_eq!(sweep(&records), ["empty", "itself", "left"].map(at));
        for it in ["filled/x", "own", "used", "link", "elsewhere/left", "written", "unmarked"] {
            assert!(at(it).symlink_metadata().is_ok(), "{it}");
        }
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
        assert!(sweep(&records).is_empty() && sweep(&at("nowhere")).is_empty());
    }

    /// What is written before it is made: a kill may come at any moment.
    #[test]
    fn what_lives_is_left_alone_and_all_that_stands_is_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let records = root.join("records");
        let mut held = Held::new(&records);
        held.make(&root.join(".vscode"), StandIn::Folder).unwrap();
        held.make(&root.join("commondir"), ITSELF).unwrap();
        let files: Vec<_> = fs::read_dir(&records).unwrap().map(|it| it.unwrap().path()).collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(".vscode") && text.contains("commondir") && text.lines().count() == 2, "{text}");
        assert!(sweep(&records).is_empty(), "its castor lives");
        drop(held);
        let mut held = Held::new(&records);
        held.make(&root.join(".vscode"), StandIn::Folder).unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), text, "once is enough");
        // As after a kill: the lock is gone, and so are those of the stand-ins.
        fs::copy(file, records.join("dead.jsonl")).unwrap();
        assert!(sweep(&records).is_empty() && root.join(".vscode").exists(), "somebody uses it");
        std::mem::forget(held);
    }
}
