//! Configuration files in subfolders of a root: found before each command. Unchanged folders are not read again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    ffi::OsString,
    fs,
    os::unix::fs::{DirEntryExt, FileTypeExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use nix::unistd::geteuid;

use castor_base::{
    guarded_names::{SECRETS, TOOL_FOLDERS},
    sandbox::PROTECTED_BELOW,
};

/// The most folders that are scanned below a root. Secrets beyond them stay unknown.
const FOLDERS: usize = 20_000;
/// Below a folder of the home.
const FOLDERS_OF_HOME: usize = 200;
const DEPTH_OF_HOME: usize = 1;
/// In how many folders, and how deep, all that others obey is protected, and how much of it beyond: to hold a repository takes
/// open files and mounts.
const NEAR: usize = 200;
const DEPTH: usize = 4;
const FAR: usize = 50;
/// Not looked into: made by tools, removed by tools, large, and full of others' examples.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", "target", "venv", ".venv", "__pycache__"];
/// In how many of these, and how deep, repositories are looked for all the same.
const FETCHED_FOLDERS: usize = 2_000;
const FETCHED_DEPTH: usize = 2;
/// Here nothing is protected: what tools fetch, they have to write.
const FETCHED: &str = "vendor";
/// Disks count time in ticks, the coarsest in two seconds: what changed that lately may change once more in the same tick.
const SETTLED: Duration = Duration::from_secs(3);

/// What is remembered of a root, as long as castor lives.
#[derive(Debug, Default)]
struct KnownRoot {
    /// All that was ever found, and by which look: a command that makes hundreds of folders does not hide from the next one
    /// what was guarded before.
    met: BTreeMap<PathBuf, usize>,
    looks: usize,
    folders: Folders,
    secrets: BTreeSet<PathBuf>,
    /// The last look came to an end.
    is_all: bool,
}

/// How far is looked: how many folders, and how deep.
#[derive(Clone, Copy)]
struct ScanLimits {
    folders: usize,
    depth: usize,
}

const ROOT: ScanLimits = ScanLimits { folders: FOLDERS, depth: usize::MAX };

/// What a look found.
#[derive(Default)]
struct ScanResult {
    protected: BTreeSet<PathBuf>,
    /// Closed folders of the user, which any program of the user could open.
    closed: BTreeSet<PathBuf>,
    folders: Folders,
    is_all: bool,
}

impl ScanResult {
    fn secrets(&self) -> BTreeSet<PathBuf> {
        let of_folder = |(path, it): (&OsString, &Folder)| -> Vec<PathBuf> {
            it.secrets.iter().map(|name| Path::new(path).join(name)).collect()
        };
        self.folders
            .iter()
            .filter(|it| !it.1.is_fetched)
            .flat_map(of_folder)
            .chain(self.closed.iter().cloned())
            .collect()
    }
}

/// Those of the last look, by their paths.
type Folders = HashMap<OsString, Folder>;

/// A folder as it was read.
#[derive(Debug, Default)]
struct Folder {
    /// `None`: it is read again the next time.
    version: Option<Version>,
    protected: Vec<OsString>,
    secrets: Vec<OsString>,
    sockets: Vec<OsString>,
    /// No more of them than are ever looked into.
    folders: Vec<OsString>,
    /// Git may take it for a bare repository.
    is_bare: bool,
    /// In a folder that is skipped: only repositories count.
    is_fetched: bool,
}

/// Device, number, and when something in it was last made, renamed or removed, which nobody can set: seconds and nanoseconds.
type Version = (u64, u64, i64, i64);

static KNOWN: Mutex<BTreeMap<PathBuf, KnownRoot>> = Mutex::new(BTreeMap::new());

/// Files and folders below a root by whose names secrets are kept there, the top included, and the other names of such files.
pub(super) fn secrets(root: &Path) -> BTreeSet<PathBuf> {
    protected(root);
    let all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(known) = all.get(root) else { return BTreeSet::new() };
    let mut res = known.secrets.clone();
    let numbers: BTreeSet<(u64, u64)> = known.secrets.iter().filter_map(|it| hard_link_id(it)).collect();
    if !numbers.is_empty() {
        let own = known.folders.iter().filter(|it| !it.1.is_fetched);
        let entries = own.filter_map(|it| fs::read_dir(it.0).ok()).flatten().filter_map(Result::ok);
        let same = entries.filter(|it| numbers.iter().any(|number| number.1 == it.ino())).map(|it| it.path());
        res.extend(same.filter(|it| hard_link_id(it).is_some_and(|it| numbers.contains(&it))));
    }
    res
}

/// The same of what is seen in a home folder, tools' folders and `more`, or of a whole one of what begins with a dot; not
/// deep.
pub(super) fn secrets_of_home(home: &Path, more: &[&Path], is_whole: bool) -> BTreeSet<PathBuf> {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // The home folder may be a root itself.
    let known = all.entry(home.join("*")).or_default();
    let entries = is_whole.then(|| fs::read_dir(home)).into_iter().flatten().flatten().filter_map(Result::ok);
    let dotted: Vec<PathBuf> =
        entries.filter(|it| it.file_name().as_encoded_bytes().starts_with(b".")).map(|it| it.path()).collect();
    let tools = TOOL_FOLDERS.iter().chain([&".local/share"]).map(|it| home.join(it));
    // Dotfiles are often links.
    let more = more.iter().map(|it| (*it).to_owned());
    let tops: BTreeSet<PathBuf> =
        dotted.iter().cloned().chain(tools).chain(more).filter_map(|it| it.canonicalize().ok()).collect();
    let mut looked = ScanResult::default();
    for top in tops {
        let reach = ScanLimits { folders: FOLDERS_OF_HOME, depth: DEPTH_OF_HOME };
        looked.folders.extend(scan(&top, &mut known.folders, reach).folders);
    }
    let named = dotted.into_iter().filter(|it| it.file_name().is_some_and(|it| SECRETS.find(Path::new(it)).is_some()));
    let res = looked.secrets().into_iter().chain(named).collect();
    known.folders = looked.folders;
    res
}

/// Device and number of a file that has more names than one.
fn hard_link_id(path: &Path) -> Option<(u64, u64)> {
    let it = fs::metadata(path).ok().filter(|it| it.is_file() && it.nlink() > 1)?;
    Some((it.dev(), it.ino()))
}

/// What is protected below a root: found now or before any command of this castor, and still there. First what was found first.
pub(super) fn protected(root: &Path) -> Vec<PathBuf> {
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.entry(root.to_owned()).or_default();
    let looked = scan(root, &mut known.folders, ROOT);
    known.secrets = looked.secrets();
    known.folders = looked.folders;
    known.is_all = looked.is_all;
    known.looks += 1;
    looked.protected.into_iter().for_each(|it| _ = known.met.entry(it).or_insert(known.looks));
    known.met.retain(|it, _| it.symlink_metadata().is_ok());
    let mut res: Vec<_> = known.met.iter().collect();
    res.sort_by_key(|it| it.1);
    res.into_iter().map(|it| it.0.clone()).collect()
}

/// Where git may find a repository in or below a root, as the last look found it: `.git`, whatever it is, and folders that
/// look like bare ones.
pub(super) fn repositories(root: &Path) -> Vec<PathBuf> {
    let all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let folders = all.get(root).into_iter().flat_map(|it| &it.folders);
    let found = folders.flat_map(|(path, it)| {
        let path = Path::new(path);
        let bare = (it.is_bare && !path.ends_with(".git") && path != root).then(|| path.to_owned());
        it.protected.iter().filter(|it| *it == ".git").map(|it| path.join(it)).chain(bare)
    });
    found.collect()
}

/// Sockets in and below a root, as the last look found them.
pub(super) fn sockets(root: &Path) -> Vec<PathBuf> {
    let all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let folders = all.get(root).into_iter().flat_map(|it| &it.folders);
    folders.flat_map(|(path, it)| it.sockets.iter().map(move |name| Path::new(path).join(name))).collect()
}

/// Folders below a root, as the last look found them.
pub(super) fn known_folders(root: &Path) -> Vec<PathBuf> {
    let all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(root).into_iter().flat_map(|it| it.folders.keys()).map(PathBuf::from).collect()
}

/// Whether not all folders below a root are looked at before a command, in words.
pub(super) fn unscanned_note(root: &Path) -> Option<String> {
    protected(root);
    let all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    all.get(root).is_some_and(|it| !it.is_all).then(|| {
        format!(
            "{} has more than {FOLDERS} folders. castor does not know the secrets and repositories in the rest, so commands need an approval for the network there.",
            root.display()
        )
    })
}

/// What there is. Folders that were looked at before are taken out of `before`.
fn scan(root: &Path, before: &mut Folders, reach: ScanLimits) -> ScanResult {
    let (mut res, mut held) = (ScanResult::default(), 0);
    let mut fetched = VecDeque::new();
    let mut waiting = VecDeque::from([(root.to_owned(), 0, true)]);
    for _ in 0..reach.folders {
        let Some((path, depth, is_held)) = waiting.pop_front() else { break };
        let before = before.remove(path.as_os_str());
        let Some(folder) = Folder::look(&path, before) else {
            let is_ours = |it: &fs::Metadata| it.is_dir() && it.uid() == geteuid().as_raw();
            res.closed.extend(path.symlink_metadata().is_ok_and(|it| is_ours(&it)).then_some(path));
            continue;
        };
        held += usize::from(is_held);
        let is_near = held <= NEAR && depth <= DEPTH;
        // The top is guarded already.
        if depth > 0 && is_held && (is_near || res.protected.len() < FAR) {
            res.protected.extend(folder.protected.iter().map(|it| path.join(it)));
        }
        if depth < reach.depth {
            let is_own = |it: &OsString| !it.as_encoded_bytes().starts_with(b".") && it != FETCHED;
            let (skipped, own): (Vec<_>, Vec<_>) =
                folder.folders.iter().partition(|it| SKIPPED_FOLDERS.iter().any(|name| **it == *name));
            fetched.extend(skipped.into_iter().map(|it| (path.join(it), 0)));
            waiting.extend(own.into_iter().map(|it| (path.join(it), depth + 1, is_held && is_own(it))));
        }
        res.folders.insert(path.into_os_string(), folder);
    }
    res.is_all = waiting.is_empty();
    for _ in 0..FETCHED_FOLDERS {
        let Some((path, depth)) = fetched.pop_front() else { break };
        let Some(folder) = Folder::look(&path, before.remove(path.as_os_str())) else { continue };
        let below = folder.folders.iter().filter(|_| depth < FETCHED_DEPTH);
        fetched.extend(below.map(|it| (path.join(it), depth + 1)));
        res.folders.insert(path.into_os_string(), Folder { is_fetched: true, ..folder });
    }
    res
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
        let mut res = Self { version, ..Self::default() };
        let own = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase() + "/";
        let is_begun = SECRETS.paths.iter().any(|it| it.contains(&own));
        let below = if is_begun { SECRETS.paths_below(path) } else { Vec::new() };
        // Of what git keeps, only what lies at the top.
        let is_git = path.ends_with(".git");
        for entry in fs::read_dir(path).ok()?.filter_map(Result::ok) {
            let name = entry.file_name();
            let text = name.to_string_lossy();
            let is_dir = || entry.file_type().is_ok_and(|it| it.is_dir());
            let is_end = |it: &(&str, PathBuf)| it.1.as_os_str().eq_ignore_ascii_case(&name);
            let is_secret = SECRETS.find(Path::new(&name)).is_some() || below.iter().any(is_end);
            if PROTECTED_BELOW.contains(&&*text) && !is_git {
                res.protected.push(name.clone());
            }
            if is_secret {
                res.secrets.push(name);
            } else if entry.file_type().is_ok_and(|it| it.is_socket()) {
                res.sockets.push(name);
            } else if !is_git && res.folders.len() <= FOLDERS && is_dir() {
                res.folders.push(name);
            } else if text == "HEAD" || text == "commondir" {
                res.is_bare = true;
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

    use super::{Folders, ROOT, ScanLimits, scan};

    fn found(root: &Path, folders: &mut Folders) -> Vec<String> {
        let below = |it: PathBuf| it.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let it = scan(root, folders, ROOT);
        *folders = it.folders;
        it.protected.into_iter().map(below).collect()
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
    fn what_is_protected_is_found_and_not_in_what_tools_make() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        make(
            &root,
            &[".vscode", "a/.git", "a/b/c/d/.zed", "a/b/c/d/e/.zed", "node_modules/x/.git", ".x/.git", "vendor/.git"],
        );
        fs::write(root.join("a/b/.envrc"), "").unwrap();
        let mut folders = Folders::new();
        assert_eq!(found(&root, &mut folders), ["a/.git", "a/b/.envrc", "a/b/c/d/.zed", "a/b/c/d/e/.zed"]);
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
    #[test]
    fn secrets_are_found_wherever_they_are_and_a_look_that_does_not_end_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        make(&root, &["a/b/c/d/e/f", ".x/y", "vendor/z", "node_modules/z", "a/.docker"]);
        let files =
            ["a/b/c/d/e/f/.env", ".x/y/.env.local", "vendor/z/id_rsa", "node_modules/z/.env", "a/.docker/config.json"];
        for it in files.into_iter().chain(["a/.docker/x.json", "a/.env.example"]) {
            fs::write(root.join(it), "").unwrap();
        }
        let check = |reach, n: usize, is_all| {
            let it = scan(&root, &mut Folders::new(), reach);
            assert_eq!((it.secrets().len(), it.is_all), (n, is_all), "{:?}", it.secrets());
        };
        check(ROOT, 4, true);
        check(ScanLimits { folders: 3, ..ROOT }, 0, false);
    }
}
