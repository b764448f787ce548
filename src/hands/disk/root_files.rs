//! Carries out orders about files beneath roots. No link leads out of them, also where one is put there meanwhile.

use std::{collections::BTreeMap, io, io::Write, os::unix::ffi::OsStrExt, path::Path};

use globset::{Glob, GlobSet, GlobSetBuilder};
use rustix::fs::{FileType, Stat};

use super::{
    dirfd::{self, DirFd},
    real_path,
};
use castor_base::{
    guarded_names::SECRETS,
    path::AbsPath,
    root_files::{FileAct, FileAnswer, FileFacts, FileKind, FileOrder, FileTrouble, FileWrite, ScanFilter, WritePlace},
};

/// Most that is read or written, in bytes.
const MAX_FILE: u64 = 16 << 20;
const MAX_ENTRIES: usize = 10_000;
/// git's own files change with every command, and are nobody's work.
const NOT_SCANNED: &[u8] = b".git";

/// A path within an open root.
struct Place {
    root: DirFd,
    /// Below the root; empty: the root itself.
    below: Vec<u8>,
    real: AbsPath,
}

type FileResult = Result<FileAnswer, FileTrouble>;

/// Carries out one order. What lies in `hidden` is not there for it, and neither are files where secrets are kept.
///
/// # Errors
/// What kept it from being done.
pub fn carry_out(order: &FileOrder, hidden: &[AbsPath]) -> FileResult {
    let find = |path: &AbsPath, follows: bool| locate((&order.roots, hidden), path, follows);
    match &order.act {
        FileAct::Read => read(&find(&order.path, true)?).map(FileAnswer::Bytes),
        FileAct::List => list(&find(&order.path, true)?),
        FileAct::Resolve { follows } => Ok(FileAnswer::Facts(facts(&find(&order.path, *follows)?)?)),
        FileAct::Write(it) => write(&find(&order.path, true)?, it),
        FileAct::MakeFolder => make_folder(&find(&order.path, true)?),
        FileAct::Delete { recursive } => delete(&find(&order.path, false)?, *recursive),
        FileAct::Move { to, replaces } => move_to(&find(&order.path, false)?, &find(to, true)?, *replaces),
        FileAct::Copy { to, replaces } => copy_to(&find(&order.path, true)?, &find(to, true)?, *replaces),
        FileAct::Scan(filter) => scan(&find(&order.path, true)?, filter),
    }
}

/// `follows`: the last name may be a link, which is followed. Links on the way always are.
fn locate((roots, hidden): (&[AbsPath], &[AbsPath]), path: &AbsPath, follows: bool) -> Result<Place, FileTrouble> {
    let real = match (follows, path.parent(), path.as_path().file_name()) {
        (false, Some(parent), Some(name)) => real_path(&parent)?.join(name),
        _ => real_path(path)?,
    };
    let roots = roots.iter().filter_map(|it| real_path(it).ok());
    let Some(root) = roots.into_iter().find(|it| real.is_within(it)) else {
        return Err(FileTrouble::Denied(format!("{path} is in no folder of your sessions")));
    };
    let is_secret = SECRETS.find_below(root.as_path(), real.as_path()).is_some();
    if is_secret || hidden.iter().any(|it| real.is_within(it)) {
        return Err(FileTrouble::Denied(format!("secrets may be kept in {path}")));
    }
    let below = real.as_path().strip_prefix(root.as_path() as &Path).unwrap_or(Path::new(""));
    let below = below.as_os_str().as_bytes().to_vec();
    Ok(Place { root: DirFd::open_real(&root)?, below, real })
}

fn read(place: &Place) -> Result<Vec<u8>, FileTrouble> {
    let stat = place.stat()?.ok_or(FileTrouble::Missing)?;
    match kind(&stat) {
        FileKind::Folder => return Err(failed("it is a folder")),
        _ if u64::try_from(stat.st_size).unwrap_or_default() > MAX_FILE => return Err(too_large()),
        _ => (),
    }
    place.root.read(&place.below)?.ok_or(FileTrouble::Missing)
}

fn list(place: &Place) -> FileResult {
    let folder = place.stat()?.ok_or(FileTrouble::Missing)?;
    if kind(&folder) != FileKind::Folder {
        return Err(failed("it is no folder"));
    }
    let mut res = Vec::new();
    for name in place.root.list(&place.below)?.into_iter().take(MAX_ENTRIES) {
        let stat = place.root.stat(&dirfd::join(&place.below, &name))?;
        if let (Some(stat), Ok(name)) = (stat, String::from_utf8(name)) {
            // What a link leads to, a client sees when it opens it.
            let target = place.real.join(&name);
            let is_folder = kind(&stat) == FileKind::Link && super::metadata(&target).is_ok_and(|it| it.is_dir);
            res.push((name, if is_folder { FileKind::Folder } else { kind(&stat) }));
        }
    }
    Ok(FileAnswer::Entries(res))
}

fn facts(place: &Place) -> Result<FileFacts, FileTrouble> {
    let stat = place.stat()?.ok_or(FileTrouble::Missing)?;
    let modified_ms = u64::try_from(stat.st_mtime).unwrap_or_default() * 1000;
    let len = u64::try_from(stat.st_size).unwrap_or_default();
    Ok(FileFacts { path: place.real.clone(), kind: kind(&stat), len, modified_ms, etag: etag(&stat) })
}

/// In one step: a reader sees the old file or the new one.
fn write(place: &Place, order: &FileWrite) -> FileResult {
    let stat = place.stat()?;
    if stat.is_some() && order.is_new {
        return Err(FileTrouble::Exists);
    }
    if order.etag.is_some() && order.etag != stat.as_ref().map(etag) {
        return Err(FileTrouble::Conflict);
    }
    let old = if stat.is_some() { read(place)? } else { Vec::new() };
    let at = match order.place {
        WritePlace::Append => old.len().saturating_sub(order.position),
        _ => order.position.min(old.len()),
    };
    let (head, tail) = old.split_at(at);
    let tail = if order.place == WritePlace::Truncate { &[][..] } else { tail };
    put(place, &[head, &order.bytes, tail].concat(), stat.map_or(0o666, |it| it.st_mode & 0o777))
}

fn put(place: &Place, bytes: &[u8], mode: u32) -> FileResult {
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_large());
    }
    let temporary = format!(".castor-{}", uuid::Uuid::now_v7().simple());
    place.root.at(place.name()?, |dir, name| {
        let written = dirfd::create_new(dir, temporary.as_bytes(), mode).and_then(|mut it| it.write_all(bytes));
        let put = written.and_then(|()| dirfd::rename((dir, temporary.as_bytes()), (dir, name)));
        if put.is_err() {
            _ = dirfd::remove(dir, temporary.as_bytes());
        }
        put
    })?;
    Ok(FileAnswer::Done)
}

/// With all folders above it that are missing.
fn make_folder(place: &Place) -> FileResult {
    let mut above: Vec<&[u8]> = dirfd::ancestors(&place.below).filter(|it| !it.is_empty()).collect();
    above.reverse();
    for it in above.into_iter().chain([place.below.as_slice()]).filter(|it| !it.is_empty()) {
        place.root.at(it, |dir, name| dirfd::make_dir(dir, name, 0o777))?;
        if !place.root.stat(it)?.is_some_and(|it| kind(&it) == FileKind::Folder) {
            return Err(FileTrouble::Exists);
        }
    }
    Ok(FileAnswer::Done)
}

fn delete(place: &Place, recursive: bool) -> FileResult {
    let stat = place.stat()?.ok_or(FileTrouble::Missing)?;
    let name = place.name()?;
    match (kind(&stat), recursive) {
        (FileKind::Folder, true) => place.root.remove_tree_at(name)?,
        (FileKind::Folder, false) => place.root.at(name, dirfd::remove_dir)?,
        _ => place.root.at(name, dirfd::remove)?,
    }
    Ok(FileAnswer::Done)
}

fn move_to(from: &Place, to: &Place, replaces: bool) -> FileResult {
    from.stat()?.ok_or(FileTrouble::Missing)?;
    let rename = if replaces { dirfd::rename } else { dirfd::rename_noreplace };
    from.root.at(from.name()?, |from_dir, from_name| {
        to.root.at(to.name().map_err(|_| io::ErrorKind::InvalidInput)?, |to_dir, to_name| {
            rename((from_dir, from_name), (to_dir, to_name))
        })
    })?;
    Ok(FileAnswer::Done)
}

fn copy_to(from: &Place, to: &Place, replaces: bool) -> FileResult {
    let bytes = read(from)?;
    if !replaces && to.stat()?.is_some() {
        return Err(FileTrouble::Exists);
    }
    let mode = from.stat()?.map_or(0o666, |it| it.st_mode & 0o777);
    put(to, &bytes, mode)
}

fn scan(place: &Place, filter: &ScanFilter) -> FileResult {
    let includes = filter.includes.as_deref().map(globs).transpose()?;
    let excludes = globs(&filter.excludes)?;
    let counts = |name: &Path| !excludes.is_match(name) && includes.as_ref().is_none_or(|it| it.is_match(name));
    let mut res = BTreeMap::new();
    // A file that is not there yet can be waited for.
    let Some(top) = place.stat()? else { return Ok(FileAnswer::Scan(res)) };
    res.insert(place.real.to_string(), if kind(&top) == FileKind::Folder { String::new() } else { etag(&top) });
    let mut open = vec![(place.below.clone(), kind(&top), 0)];
    while let Some((folder, kind_of, depth)) = open.pop() {
        if kind_of != FileKind::Folder || depth > 0 && !filter.recursive {
            continue;
        }
        for name in place.root.list(&folder)?.into_iter().filter(|it| it != NOT_SCANNED) {
            let path = dirfd::join(&folder, &name);
            let Some(stat) = place.root.stat(&path)? else { continue };
            let relative = dirfd::strip_dir(&path, &place.below);
            let relative = Path::new(std::ffi::OsStr::from_bytes(relative)).to_path_buf();
            if excludes.is_match(&relative) {
                continue;
            }
            if counts(&relative) {
                let version = if kind(&stat) == FileKind::Folder { String::new() } else { etag(&stat) };
                res.insert(place.real.join(&relative).to_string(), version);
            }
            open.push((path, kind(&stat), depth + 1));
        }
        if res.len() + open.len() > MAX_ENTRIES {
            return Err(failed(&format!("more than {MAX_ENTRIES} files are in it")));
        }
    }
    Ok(FileAnswer::Scan(res))
}

fn globs(patterns: &[String]) -> Result<GlobSet, FileTrouble> {
    let mut res = GlobSetBuilder::new();
    for it in patterns {
        res.add(Glob::new(it).map_err(|it| failed(&it.to_string()))?);
    }
    res.build().map_err(|it| failed(&it.to_string()))
}

impl Place {
    fn stat(&self) -> io::Result<Option<Stat>> {
        self.root.stat(&self.below)
    }

    /// The root itself is not changed.
    fn name(&self) -> Result<&[u8], FileTrouble> {
        match self.below.is_empty() {
            true => Err(FileTrouble::Denied("it is a folder of a session itself".to_owned())),
            false => Ok(&self.below),
        }
    }
}

fn kind(stat: &Stat) -> FileKind {
    match dirfd::file_type(stat) {
        FileType::Directory => FileKind::Folder,
        FileType::Symlink => FileKind::Link,
        _ => FileKind::File,
    }
}

fn etag(stat: &Stat) -> String {
    format!("{}.{}-{}-{}", stat.st_mtime, stat.st_mtime_nsec, stat.st_size, stat.st_ino)
}

fn failed(why: &str) -> FileTrouble {
    FileTrouble::Failed(why.to_owned())
}

fn too_large() -> FileTrouble {
    failed(&format!("it is larger than {} MiB", MAX_FILE >> 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(root: &AbsPath, path: &str, act: FileAct) -> FileOrder {
        FileOrder { roots: vec![root.clone()], path: root.join(path), act }
    }

    fn text(it: FileResult) -> String {
        let Ok(FileAnswer::Bytes(it)) = it else { panic!("{it:?}") };
        String::from_utf8(it).unwrap()
    }

    fn write_act(text: &str, place: WritePlace, position: usize) -> FileAct {
        FileAct::Write(FileWrite { bytes: text.into(), place, position, is_new: false, etag: None })
    }

    #[test]
    fn files_of_a_root_are_read_and_changed_and_no_others() {
        let dir = tempfile::tempdir().unwrap();
        let top = real_path(&AbsPath::new(dir.path()).unwrap()).unwrap();
        let root = top.join("root");
        std::fs::create_dir_all(root.join("sub")).unwrap();
        std::fs::write(top.join("outside"), "canary").unwrap();
        std::fs::write(root.join(".env"), "canary").unwrap();
        std::os::unix::fs::symlink(top.join("outside"), root.join("link")).unwrap();
        let run = |path: &str, act: FileAct| carry_out(&order(&root, path, act), &[root.join("hidden")]);
        for it in ["../outside", "link", ".env", "hidden/x"] {
            assert!(matches!(run(it, FileAct::Read), Err(FileTrouble::Denied(_))), "{it}");
            assert!(matches!(run(it, write_act("x", WritePlace::Truncate, 0)), Err(FileTrouble::Denied(_))), "{it}");
        }
        assert_eq!(run("a", FileAct::Read), Err(FileTrouble::Missing));
        assert_eq!(run("a", write_act("one\n", WritePlace::Truncate, 0)), Ok(FileAnswer::Done));
        assert_eq!(run("a", write_act("two\n", WritePlace::Append, 0)), Ok(FileAnswer::Done));
        assert_eq!(run("a", write_act("and ", WritePlace::Insert, 4)), Ok(FileAnswer::Done));
        assert_eq!(text(run("a", FileAct::Read)), "one\nand two\n");
        assert_eq!(run("deep/er", FileAct::MakeFolder), Ok(FileAnswer::Done));
        assert_eq!(run("a", FileAct::Copy { to: root.join("sub/b"), replaces: false }), Ok(FileAnswer::Done));
        assert_eq!(run("a", FileAct::Copy { to: root.join("sub/b"), replaces: false }), Err(FileTrouble::Exists));
        assert_eq!(run("sub/b", FileAct::Move { to: root.join("deep/er/c"), replaces: false }), Ok(FileAnswer::Done));
        assert!(matches!(run("a", FileAct::Move { to: top.join("out"), replaces: true }), Err(FileTrouble::Denied(_))));
        assert!(matches!(run("deep", FileAct::Delete { recursive: false }), Err(FileTrouble::Failed(_))));
        let Ok(FileAnswer::Scan(found)) = run("", FileAct::Scan(ScanFilter { recursive: true, ..Default::default() }))
        else {
            panic!("a scan")
        };
        let c = root.join("deep/er/c").to_string();
        assert!(found.contains_key(&c) && !found[&c].is_empty());
        assert_eq!(run("deep", FileAct::Delete { recursive: true }), Ok(FileAnswer::Done));
        assert!(matches!(run("", FileAct::Delete { recursive: true }), Err(FileTrouble::Denied(_))));
        let Ok(FileAnswer::Entries(all)) = run("", FileAct::List) else { panic!("a list") };
        assert!(all.contains(&("sub".to_owned(), FileKind::Folder)), "{all:?}");
        let Ok(FileAnswer::Facts(facts)) = run("a", FileAct::Resolve { follows: true }) else { panic!("facts") };
        let stale = FileWrite {
            bytes: Vec::new(),
            place: WritePlace::Truncate,
            position: 0,
            is_new: false,
            etag: Some(format!("{}x", facts.etag)),
        };
        assert_eq!(run("a", FileAct::Write(stale)), Err(FileTrouble::Conflict));
        assert_eq!(std::fs::read_to_string(top.join("outside")).unwrap(), "canary");
    }
}
