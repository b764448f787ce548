//! Folder trees of others: listed without following links, hashed and copied, within bounds.
#![allow(clippy::disallowed_methods)]

use std::{
    fs,
    io::{self, ErrorKind, Read, Write},
};

use sha2::{Digest, Sha256};

use castor_base::path::AbsPath;

/// How deep folders go.
const MAX_DEPTH: usize = 32;

/// How much a tree may hold.
#[derive(Clone, Copy, Debug)]
pub struct TreeBounds {
    pub files: usize,
    pub bytes: u64,
}

/// A file or a link of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeFile {
    /// From the tree's root, with slashes.
    pub name: String,
    pub kind: TreeKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeKind {
    /// `stamp`: what changes with any write to it; nobody can set that back.
    File { stamp: String, is_program: bool },
    /// It leads to a place in the tree.
    Link { to: String },
}

/// The size of all files of a tree in bytes, without their holes, links not followed. Of a tree with more entries than
/// `max`, that of as many.
pub fn tree_size(root: &AbsPath, max: usize) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = entries_below(root, max).filter_map(|it| it.metadata().ok()).filter(|it| !it.is_dir());
    files.map(|it| it.len().min(512 * it.blocks())).sum()
}

/// Free bytes of the disk that a path lies on; `None`: the system does not tell.
pub fn free_bytes(path: &AbsPath) -> Option<u64> {
    let disk = rustix::fs::statvfs(path.as_path()).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Tells whether there is anything but folders among the first `max` entries of a tree.
pub fn has_files(root: &AbsPath, max: usize) -> bool {
    entries_below(root, max).any(|it| it.file_type().is_ok_and(|it| !it.is_dir()))
}

fn entries_below(root: &AbsPath, max: usize) -> impl Iterator<Item = fs::DirEntry> {
    let mut folders = vec![root.as_path().to_owned()];
    let mut open: Option<fs::ReadDir> = None;
    let next = move || loop {
        match open.as_mut().and_then(Iterator::next) {
            Some(Ok(entry)) => {
                folders.extend(entry.file_type().is_ok_and(|it| it.is_dir()).then(|| entry.path()));
                return Some(entry);
            }
            Some(Err(_)) => (),
            None => open = fs::read_dir(folders.pop()?).ok(),
        }
    };
    std::iter::from_fn(next).take(max)
}

/// Every file of a tree, by name. `skips`: names of files and folders that are not looked at.
///
/// # Errors
/// What cannot be read, leads out of the tree, is neither file nor folder, or is too much.
pub fn list_tree(root: &AbsPath, skips: &dyn Fn(&str) -> bool, bounds: TreeBounds) -> io::Result<Vec<TreeFile>> {
    let mut listing = Listing { root, skips, bounds, bytes: 0, files: Vec::new() };
    listing.folder(root, "", MAX_DEPTH)?;
    listing.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(listing.files)
}

struct Listing<'a> {
    root: &'a AbsPath,
    skips: &'a dyn Fn(&str) -> bool,
    bounds: TreeBounds,
    bytes: u64,
    files: Vec<TreeFile>,
}

impl Listing<'_> {
    fn folder(&mut self, at: &AbsPath, prefix: &str, depth: usize) -> io::Result<()> {
        let depth = depth.checked_sub(1).ok_or_else(|| odd(format!("{at} is over {MAX_DEPTH} folders deep")))?;
        for entry in fs::read_dir(at)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_str().ok_or_else(|| odd(format!("a name in {at} is not UTF-8")))?;
            if (self.skips)(name) {
                continue;
            }
            let (path, name) = (at.join(name), format!("{prefix}{name}"));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.folder(&path, &format!("{name}/"), depth)?;
                continue;
            }
            let kind = match (kind.is_symlink(), kind.is_file()) {
                (true, _) => self.link(&path)?,
                (_, true) => self.file(&path)?,
                _ => return Err(odd(format!("{path} is neither a file nor a folder"))),
            };
            self.files.push(TreeFile { name, kind });
            if self.files.len() > self.bounds.files {
                return Err(odd(format!("{} has over {} files", self.root, self.bounds.files)));
            }
        }
        Ok(())
    }

    fn link(&self, path: &AbsPath) -> io::Result<TreeKind> {
        let to = fs::read_link(path)?;
        let real = super::real_path(path).ok().filter(|it| it.is_within(self.root));
        match (to.to_str(), real) {
            (Some(to), Some(_)) if !to.starts_with('/') => Ok(TreeKind::Link { to: to.to_owned() }),
            _ => Err(odd(format!("{path} is a link that leads out of the folder"))),
        }
    }

    fn file(&mut self, path: &AbsPath) -> io::Result<TreeKind> {
        let meta = fs::symlink_metadata(path)?;
        self.bytes += meta.len();
        if self.bytes > self.bounds.bytes {
            return Err(odd(format!("{} is over {} MiB", self.root, self.bounds.bytes >> 20)));
        }
        let (stamp, is_program) = stamp(&meta);
        Ok(TreeKind::File { stamp, is_program })
    }
}

#[cfg(unix)]
fn stamp(it: &fs::Metadata) -> (String, bool) {
    use std::os::unix::fs::MetadataExt;
    let ns = |s: i64, ns: i64| i128::from(s) * 1_000_000_000 + i128::from(ns);
    let (modified, changed) = (ns(it.mtime(), it.mtime_nsec()), ns(it.ctime(), it.ctime_nsec()));
    (format!("{} {modified} {} {changed}", it.len(), it.ino()), it.mode() & 0o111 != 0)
}

/// Where nobody knows when a file changed, each is read.
#[cfg(not(unix))]
fn stamp(_: &fs::Metadata) -> (String, bool) {
    (String::new(), true)
}

fn odd(why: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, why)
}

/// The hash of a file at its real path, and its first `keep` bytes.
///
/// # Errors
/// A file that cannot be read, or to which a link leads.
pub fn hash_real(real: &AbsPath, keep: usize) -> io::Result<(String, Vec<u8>)> {
    let mut file = super::open_real(real)?;
    let (mut hash, mut head, mut buffer) = (Sha256::new(), Vec::new(), vec![0; 64 << 10]);
    loop {
        let n = file.read(&mut buffer)?;
        let bytes = buffer.get(..n).unwrap_or_default();
        if bytes.is_empty() {
            break;
        }
        hash.update(bytes);
        head.extend(bytes.iter().take(keep.saturating_sub(head.len())));
    }
    Ok((super::hex(&hash.finalize()), head))
}

/// Copies listed files into a new folder, for the user alone.
///
/// # Errors
/// A folder that exists, a file that cannot be read or written.
pub fn copy_tree(from: &AbsPath, to: &AbsPath, files: &[TreeFile]) -> io::Result<()> {
    super::create_private_dir(to)?;
    for it in files {
        let target = to.join(&it.name);
        if let Some(folder) = target.parent() {
            super::create_private_dir(&folder)?;
        }
        match &it.kind {
            TreeKind::File { is_program, .. } => copy_file(&from.join(&it.name), &target, *is_program)?,
            #[cfg(unix)]
            TreeKind::Link { to } => std::os::unix::fs::symlink(to, target)?,
            #[cfg(not(unix))]
            TreeKind::Link { .. } => return Err(odd(format!("{target} is a link"))),
        }
    }
    Ok(())
}

fn copy_file(from: &AbsPath, to: &AbsPath, is_program: bool) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(if is_program { 0o700 } else { 0o600 });
    }
    let mut file = options.open(to)?;
    io::copy(&mut super::open_real(from)?, &mut file)?;
    file.flush()
}

/// Puts a folder in the place of another, which is gone then.
///
/// # Errors
/// Folders that cannot be moved or removed.
pub fn replace_tree(new: &AbsPath, old: &AbsPath) -> io::Result<()> {
    if super::path_exists(old) {
        super::remove_tree(old)?;
    }
    fs::rename(new, old)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{fs, has_files, tree_size};
    use castor_base::path::AbsPath;

    #[test]
    fn a_tree_takes_what_its_files_do_and_no_link_leads_out_of_it() {
        let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let root = AbsPath::new(dir.path()).unwrap();
        fs::create_dir_all(root.join("a/b/c")).unwrap();
        assert!(!has_files(&root, 100));
        let empty = tree_size(&root, 100);
        fs::write(other.path().join("big"), vec![1; 1 << 20]).unwrap();
        symlink(other.path(), root.join("a/out")).unwrap();
        assert!(tree_size(&root, 100) < empty + (1 << 20));
        fs::write(root.join("a/b/c/f"), vec![1; 1 << 20]).unwrap();
        assert!(tree_size(&root, 100) >= empty + (1 << 20) && has_files(&root, 100));
        assert!(tree_size(&root, 2) < 1 << 20, "no more is looked at");
        assert_eq!(tree_size(&root.join("none"), 100), 0);
    }
}
