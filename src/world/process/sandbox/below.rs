//! Configuration in the folders below a root: looked for before each command, and so no folder is read again in which nothing
//! was made, renamed or removed.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::base::{guarded::SECRETS, sandbox::PROTECTED_BELOW};

/// How far below a root it is looked for, and in how many folders.
const DEPTH: usize = 4;
const FOLDERS: usize = 200;
/// Not looked into: made by tools, removed by tools, large, and full of others' configuration.
const PASSED_OVER: &[&str] = &["node_modules", "target", "vendor", "venv", "__pycache__"];
/// Disks count time in ticks, the coarsest in two seconds: what changed that lately may change once more in the same tick.
const SETTLED: Duration = Duration::from_secs(3);

/// What is remembered of a root, as long as castor lives.
#[derive(Debug, Default)]
struct Known {
    /// All that was ever found, and by which look: a command that makes hundreds of folders does not hide from the next one
    /// what was guarded before.
    met: BTreeMap<PathBuf, usize>,
    looks: usize,
    folders: Folders,
    secrets: BTreeSet<PathBuf>,
    said: bool,
}

/// Those of the last look, by their paths.
type Folders = HashMap<OsString, Folder>;

/// A folder as it was read.
#[derive(Debug)]
struct Folder {
    /// `None`: it is read again the next time.
    version: Option<Version>,
    protected: Vec<OsString>,
    secrets: Vec<OsString>,
    /// No more of them than are ever looked into.
    folders: Vec<OsString>,
}

/// Device, number, and when something in it was last made, renamed or removed, which nobody can set: seconds and nanoseconds.
type Version = (u64, u64, i64, i64);

static KNOWN: Mutex<BTreeMap<PathBuf, Known>> = Mutex::new(BTreeMap::new());

/// Files and folders below a root by whose names secrets are kept there, the top included.
pub(super) fn secrets(root: &Path) -> BTreeSet<PathBuf> {
    protected(root);
    let all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let deep =
        SECRETS.paths_below(root).into_iter().map(|it| root.join(it.1)).filter(|it| it.symlink_metadata().is_ok());
    all.get(root).map(|it| it.secrets.clone()).unwrap_or_default().into_iter().chain(deep).collect()
}

fn secrets_in(folders: &Folders) -> BTreeSet<PathBuf> {
    let of_folder = |(path, it): (&OsString, &Folder)| -> Vec<PathBuf> {
        it.secrets.iter().map(|name| Path::new(path).join(name)).collect()
    };
    folders.iter().flat_map(of_folder).collect()
}

/// What is protected below a root: found now or before any command of this castor, and still there. First what was found first.
pub(super) fn protected(root: &Path) -> Vec<PathBuf> {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.entry(root.to_owned()).or_default();
    let (found, all) = look(root, &mut known.folders);
    known.secrets = secrets_in(&known.folders);
    known.looks += 1;
    found.into_iter().for_each(|it| _ = known.met.entry(it).or_insert(known.looks));
    known.met.retain(|it, _| it.symlink_metadata().is_ok());
    // Only the log: of most large folders it is true, and few of them hold other repositories.
    if !all && !std::mem::replace(&mut known.said, true) {
        tracing::info!("{}", unseen(root));
    }
    let mut res: Vec<_> = known.met.iter().collect();
    res.sort_by_key(|it| it.1);
    res.into_iter().map(|it| it.0.clone()).collect()
}

/// Whether not all folders below a root are looked at before a command, in words.
pub(super) fn not_all_seen(root: &Path) -> Option<String> {
    let (_, all) = look(root, &mut Folders::new());
    (!all).then(|| unseen(root))
}

fn unseen(root: &Path) -> String {
    format!(
        "{} has more than {FOLDERS} folders: repositories and editors' folders in those that come later are not protected \
         while commands run.",
        root.display()
    )
}

/// What there is, and whether those were all folders.
fn look(root: &Path, folders: &mut Folders) -> (BTreeSet<PathBuf>, bool) {
    let (mut found, mut looked) = (BTreeSet::new(), Folders::new());
    let mut waiting = VecDeque::from([(root.to_owned(), 0)]);
    for _ in 0..FOLDERS {
        let Some((path, depth)) = waiting.pop_front() else { break };
        let before = folders.remove(path.as_os_str());
        // Gone, or not ours to read.
        let Some(folder) = Folder::look(&path, before) else { continue };
        // The top is guarded already.
        if depth > 0 {
            found.extend(folder.protected.iter().map(|it| path.join(it)));
        }
        if depth < DEPTH {
            waiting.extend(folder.folders.iter().map(|it| (path.join(it), depth + 1)));
        }
        looked.insert(path.into_os_string(), folder);
    }
    *folders = looked;
    (found, waiting.is_empty())
}

impl Folder {
    fn look(path: &Path, before: Option<Self>) -> Option<Self> {
        let there = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir)?;
        // Looked at first: what changes while it is read is read again.
        let version = (there.dev(), there.ino(), there.ctime(), there.ctime_nsec());
        match before.filter(|it| it.version == Some(version)) {
            Some(it) => Some(it),
            None => Self::read(path, Some(version).filter(|it| is_settled(*it))),
        }
    }

    fn read(path: &Path, version: Option<Version>) -> Option<Self> {
        let mut res = Self { version, protected: Vec::new(), secrets: Vec::new(), folders: Vec::new() };
        for entry in fs::read_dir(path).ok()?.filter_map(Result::ok) {
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let is_dir = || entry.file_type().is_ok_and(|it| it.is_dir());
            if SECRETS.find(Path::new(&name)).is_some() {
                res.secrets.push(name.clone());
            }
            if PROTECTED_BELOW.contains(&&*text) {
                res.protected.push(name);
            } else if res.folders.len() <= FOLDERS
                && !text.starts_with('.')
                && !PASSED_OVER.contains(&&*text)
                && is_dir()
            {
                res.folders.push(name);
            }
        }
        Some(res)
    }
}

fn is_settled((_, _, seconds, nanos): Version) -> bool {
    let (Ok(seconds), Ok(nanos)) = (u64::try_from(seconds), u32::try_from(nanos)) else { return false };
    let changed = UNIX_EPOCH + Duration::new(seconds, nanos);
    // A disk that keeps no such time says 0.
    seconds > 0 && SystemTime::now().duration_since(changed).is_ok_and(|it| it > SETTLED)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use super::{Folders, look};

    fn found(root: &Path, folders: &mut Folders) -> Vec<String> {
        let below = |it: PathBuf| it.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        look(root, folders).0.into_iter().map(below).collect()
    }

    fn make(root: &Path, folders: &[&str]) {
        folders.iter().for_each(|it| fs::create_dir_all(root.join(it)).unwrap());
    }

    /// Disks say when something in a folder changed, but not to the end: as if all had been made long ago.
    fn settle(folders: &mut Folders) {
        use std::os::unix::fs::MetadataExt;
        for (path, folder) in folders {
            let it = fs::symlink_metadata(path).unwrap();
            folder.version = Some((it.dev(), it.ino(), it.ctime(), it.ctime_nsec()));
        }
    }

    #[test]
    fn what_is_protected_is_found_four_folders_deep_and_not_in_what_tools_make() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        make(&root, &[".vscode", "a/.git", "a/b/c/d/.zed", "a/b/c/d/e/.zed", "node_modules/x/.git", ".x/.git"]);
        fs::write(root.join("a/b/.envrc"), "").unwrap();
        let mut folders = Folders::new();
        assert_eq!(found(&root, &mut folders), ["a/.git", "a/b/.envrc", "a/b/c/d/.zed"]);
        assert!(folders.values().all(|it| it.version.is_none()), "just made");
    }

    #[test]
    fn a_folder_that_did_not_change_is_not_read_and_one_that_did_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        make(&root, &["a/b", "c"]);
        let mut folders = Folders::new();
        assert!(found(&root, &mut folders).is_empty());
        settle(&mut folders);
        // As if it had been read so: nobody looks again.
        folders.get_mut(root.join("a/b").as_os_str()).unwrap().protected.push(".zed".into());
        assert_eq!(found(&root, &mut folders), ["a/b/.zed"]);
        make(&root, &["a/b/.idea", "c/d/.git"]);
        assert_eq!(found(&root, &mut folders), ["a/b/.idea", "c/d/.git"]);
        settle(&mut folders);
        fs::remove_dir(root.join("a/b/.idea")).unwrap();
        fs::remove_dir_all(root.join("c")).unwrap();
        assert!(found(&root, &mut folders).is_empty());
        // Another folder in its place.
        settle(&mut folders);
        make(&root, &["other/b/.vscode"]);
        fs::rename(root.join("a"), root.join("old")).unwrap();
        fs::rename(root.join("other"), root.join("a")).unwrap();
        assert_eq!(found(&root, &mut folders), ["a/b/.vscode"]);
    }
}
