//! Records of placeholders on disk, so that the next castor removes those of one that was killed.
//!
//! One file for each castor, with a line for each place. Its lock says that the castor lives: the kernel takes it from
//! whoever is gone, however that came. What is removed must still be what was made: empty, with a mark that nobody sets
//! by accident, and nobody's that works there now.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::placeholder_files::{
    is_ours, is_same_file, lock_placeholders, open_folder, open_quietly, remove as remove_it, unmark,
};
use castor_base::{path_text, sandbox::Placeholder};

/// Kinds of records, by the ends of their names: what stands, and what was there before a command.
const STANDING: &str = "jsonl";
const BEFORE: &str = "before";
/// A longer record is not one of ours.
const MAX_RECORD: u64 = 1024 * 1024;
/// A sweep may take a record between its making and its lock, but not for ever.
const TRIES: usize = 20;

/// A place where something stands, or stood.
#[derive(Serialize, Deserialize)]
struct RecordLine {
    #[serde(with = "path_text")]
    path: PathBuf,
    /// What is in it; `None`: a folder.
    text: Option<String>,
}

/// The record of this process in one home, and what is in it: each place is written down once.
#[derive(Debug)]
struct OwnRecord {
    path: PathBuf,
    file: File,
    known: BTreeSet<PathBuf>,
}

static OWN: Mutex<BTreeMap<PathBuf, OwnRecord>> = Mutex::new(BTreeMap::new());

fn own() -> MutexGuard<'static, BTreeMap<PathBuf, OwnRecord>> {
    OWN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes down that something will stand there. Where that cannot be done (the disk is full), it is made all the same:
/// to guard is more than to tidy up.
/// `looks`: whether the record is there is looked at, which the first of many is enough for.
pub(super) fn record_placeholder(folder: &Path, path: &Path, what: Placeholder, looks: bool) {
    let line = RecordLine { path: path.to_owned(), text: what.text().map(str::to_owned) };
    if let Err(it) = try_record(folder, &line, looks) {
        tracing::warn!("{} cannot be written down in {}: {it}", line.path.display(), folder.display());
    }
}

fn try_record(folder: &Path, line: &RecordLine, looks: bool) -> io::Result<()> {
    let mut all = own();
    // Of castor itself; whoever removed it wants none, but a kill needs one.
    let is_there = all.get(folder).is_some_and(|it| !looks || is_same_file(&it.file, &it.path));
    if !is_there {
        all.insert(folder.to_owned(), create_record(folder, STANDING)?);
    }
    let Some(own) = all.get_mut(folder).filter(|it| !it.known.contains(&line.path)) else { return Ok(()) };
    let path = line.path.clone();
    let line = serde_json::to_string(line).map_err(io::Error::other)?;
    own.file.write_all(format!("{line}\n").as_bytes())?;
    own.known.insert(path);
    Ok(())
}

fn create_record(folder: &Path, kind: &str) -> io::Result<OwnRecord> {
    super::make_private(folder)?;
    for _ in 0..TRIES {
        let path = folder.join(uuid::Uuid::now_v7().simple().to_string()).with_extension(kind);
        let file = File::options().append(true).create_new(true).open(&path)?;
        if file.try_lock().is_ok() && is_same_file(&file, &path) {
            return Ok(OwnRecord { path, file, known: BTreeSet::new() });
        }
    }
    Err(io::Error::other("somebody removes it again and again"))
}

/// The configuration before a command, recorded until this is dropped.
#[derive(Debug)]
pub(super) struct QuarantineRecord(OwnRecord);

impl Drop for QuarantineRecord {
    fn drop(&mut self) {
        _ = fs::remove_file(&self.0.path);
    }
}

/// Records the configuration before a command, since a castor that is killed quarantines nothing.
pub(super) fn record_quarantine(folder: &Path, before: &impl Serialize) -> Option<QuarantineRecord> {
    let text = serde_json::to_vec(before).map_err(io::Error::other);
    let noted = text.and_then(|text| {
        let mut own = create_record(folder, BEFORE)?;
        own.file.write_all(&text).map(|()| QuarantineRecord(own))
    });
    noted.inspect_err(|it| tracing::warn!("what is there is not written down in {}: {it}", folder.display())).ok()
}

/// Castor ends in order: nothing of its own stands any more, unless another one uses it.
pub(in crate::process) fn remove_records(folders: &BTreeSet<PathBuf>) {
    let mut all = own();
    for it in folders.iter().filter_map(|it| all.remove(it)) {
        clear(&it.path);
    }
}

/// Records of castors that are no more, locked.
fn orphan_records(folder: &Path, kind: &'static str) -> impl Iterator<Item = (PathBuf, File)> {
    // Nobody was ever confined: the common case.
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok).map(|it| it.path());
    entries.filter(move |it| it.extension().is_some_and(|it| it == kind)).filter_map(|path| {
        let record = File::options().read(true).open(&path).ok()?;
        // It lives, or another one sweeps.
        (record.try_lock().is_ok() && is_same_file(&record, &path)).then_some((path, record))
    })
}

/// Removes what castors that are no more left standing; what was removed.
pub fn remove_orphans(folder: &Path) -> Vec<PathBuf> {
    let mut res: Vec<PathBuf> = orphan_records(folder, STANDING).flat_map(|(path, _record)| clear(&path)).collect();
    res.sort();
    res
}

/// Records of ended castors: the configuration before their commands.
pub(super) fn take_quarantines<T: DeserializeOwned>(folder: &Path) -> impl Iterator<Item = T> {
    orphan_records(folder, BEFORE).filter_map(|(path, record)| {
        let before = serde_json::from_reader(record.take(MAX_RECORD)).inspect_err(|it| {
            tracing::warn!("{}: {it}; castor leaves what appeared since then", path.display());
        });
        _ = fs::remove_file(path);
        before.ok()
    })
}

/// Removes the placeholders of a record, and then the record, unless one is in use. Returns those removed.
fn clear(path: &Path) -> Vec<PathBuf> {
    let mut text = String::new();
    // What was cut off by the end was not made yet.
    _ = File::open(path).and_then(|it| it.take(MAX_RECORD).read_to_string(&mut text));
    let (mut res, mut is_used) = (Vec::new(), false);
    for it in text.lines().filter_map(|it| serde_json::from_str::<RecordLine>(it).ok()) {
        match remove(&it) {
            Some(true) => res.push(it.path),
            Some(false) => (),
            None => is_used = true,
        }
    }
    if !is_used {
        _ = fs::remove_file(path);
    }
    res
}

/// Removes it if it is a placeholder; `None`: it is in use.
fn remove(line: &RecordLine) -> Option<bool> {
    let _alone = lock_placeholders();
    let (path, text) = (line.path.as_path(), line.text.as_deref());
    let (Some(Ok(folder)), Some(name)) = (path.parent().map(open_folder), path.file_name()) else { return Some(false) };
    let Ok(there) = open_quietly(Some(&folder), Path::new(name)) else { return Some(false) };
    if !is_ours(&there, text) {
        return Some(false);
    }
    there.try_lock().ok()?;
    let removed = remove_it(&folder, name, &there, text);
    if !removed {
        // With something in it by now.
        unmark(&there);
    }
    Some(removed)
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        os::unix::fs::PermissionsExt,
        path::Path,
    };

    use super::{super::placeholder_files::MARK, RecordLine, remove_orphans, remove_records};
    use crate::process::sandbox::placeholders::Placeholders;
    use castor_base::sandbox::{Placeholder, SELF_COMMONDIR};

    fn marked(path: &Path) {
        let mode = fs::metadata(path).unwrap().permissions().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode | MARK)).unwrap();
    }

    fn record(folder: &Path, lines: &[(&Path, Option<&str>)]) {
        fs::create_dir_all(folder).unwrap();
        let line = |(path, text): &(&Path, Option<&str>)| {
            let it = RecordLine { path: (*path).to_owned(), text: text.map(str::to_owned) };
            serde_json::to_string(&it).unwrap() + "\n"
        };
        let text: String = lines.iter().map(line).collect();
        fs::write(folder.join("dead.jsonl"), text + "{\"path\":\"/cut o").unwrap();
    }

    /// Placeholders of a killed castor are known by their mark.
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
        assert_eq!(remove_orphans(&records), ["empty", "itself", "left"].map(at));
        for it in ["filled/x", "own", "used", "link", "elsewhere/left", "written", "unmarked"] {
            assert!(at(it).symlink_metadata().is_ok(), "{it}");
        }
        assert!(remove_orphans(&records).is_empty() && remove_orphans(&at("nowhere")).is_empty());
        drop(used);
        // A child that another test has just forked holds the lock, too, until it runs its program.
        let tries = std::iter::repeat_with(|| remove_orphans(&records)).take(10_000);
        let gone = tries.into_iter().find(|it| !it.is_empty());
        assert_eq!(gone.as_deref(), Some(&[at("used")][..]), "its user is gone");
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
    }

    /// What is written before it is made: a kill may come at any moment.
    #[test]
    fn what_lives_is_left_alone_and_all_that_stands_is_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let records = root.join("records");
        let mut all = Placeholders::new(&records);
        all.make(&root.join(".vscode"), Placeholder::Folder).unwrap();
        all.make(&root.join("commondir"), SELF_COMMONDIR).unwrap();
        let files: Vec<_> = fs::read_dir(&records).unwrap().map(|it| it.unwrap().path()).collect();
        let [file] = files.as_slice() else { panic!("{files:?}") };
        let text = fs::read_to_string(file).unwrap();
        assert!(text.contains(".vscode") && text.contains("commondir") && text.lines().count() == 2, "{text}");
        assert!(remove_orphans(&records).is_empty(), "its castor lives");
        drop(all);
        let mut all = Placeholders::new(&records);
        all.make(&root.join(".vscode"), Placeholder::Folder).unwrap();
        assert_eq!(fs::read_to_string(file).unwrap(), text, "once is enough");
        // As after a kill: the lock is gone, and so are those of the placeholders.
        fs::copy(file, records.join("dead.jsonl")).unwrap();
        assert!(remove_orphans(&records).is_empty() && root.join(".vscode").exists(), "somebody uses it");
        std::mem::forget(all);
    }

    /// The one ends in order, the other, which uses the same, is killed.
    #[test]
    fn what_another_one_uses_is_still_written_down() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (records, place) = (root.join("records"), root.join(".vscode"));
        let mut all = Placeholders::new(&records);
        all.make(&place, Placeholder::Folder).unwrap();
        let user = File::open(&place).unwrap();
        user.lock_shared().unwrap();
        drop(all);
        remove_records(&[records.clone()].into());
        assert!(place.exists() && remove_orphans(&records).is_empty() && place.exists(), "it is in use");
        drop(user);
        assert_eq!(remove_orphans(&records), [place]);
        assert_eq!(fs::read_dir(&records).unwrap().count(), 0);
        // Who uses what another one made writes it down, too.
        let (other, place) = (root.join("other"), root.join(".zed"));
        let (mut maker, mut user) = (Placeholders::new(&records), Placeholders::new(&other));
        maker.make(&place, Placeholder::Folder).unwrap();
        user.share(&place, Placeholder::Folder);
        let file = fs::read_dir(&other).unwrap().next().unwrap().unwrap();
        assert!(fs::read_to_string(file.path()).unwrap().contains(".zed"));
    }

    /// A folder that the user filled is the user's.
    #[test]
    fn what_was_filled_has_no_mark() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let filled = root.join("info");
        fs::create_dir_all(filled.join("mine")).unwrap();
        fs::set_permissions(&filled, fs::Permissions::from_mode(0o3775)).unwrap();
        let records = root.join("records");
        record(&records, &[(&filled, None)]);
        assert!(remove_orphans(&records).is_empty() && filled.join("mine").exists());
        assert_eq!(fs::metadata(&filled).unwrap().permissions().mode() & 0o7777, 0o2775);
    }
}
