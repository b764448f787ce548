//! Masks of secrets: an empty file in the place of each, by which castor hears of an attempt to read it. In the place of a
//! secret folder lies one with empty files of the same names, as what opens an absent file is not told of.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::fs::OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use castor_base::path::AbsPath;

/// The folder of all masks of a session, each command's in one of its own.
const MASKS: &str = "masks";
const BUFFER: usize = 4096;
/// Names below a secret folder. What is beyond looks absent, and nobody hears of it.
const MOST_NAMES: usize = 200;

/// The masks of one command, as long as it has them.
#[derive(Debug)]
pub struct SecretMasks {
    folder: PathBuf,
    watch: OwnedFd,
    /// By the numbers of their watches.
    secrets: BTreeMap<i32, AbsPath>,
    opened: Mutex<BTreeSet<AbsPath>>,
}

/// A new folder for the masks of one command.
pub(super) fn new_folder(view: &Path) -> PathBuf {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    view.join(MASKS).join(format!("{}-{number}", std::process::id()))
}

/// Makes the mask of a secret, under this number in its folder.
pub(super) fn make_mask(folder: &Path, number: usize, secret: &Path) -> io::Result<PathBuf> {
    super::make_private(folder)?;
    let path = folder.join(number.to_string());
    copy_names(secret, &path, &mut MOST_NAMES.clone())?;
    Ok(path)
}

fn copy_names(secret: &Path, mask: &Path, left: &mut usize) -> io::Result<()> {
    if !secret.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        return fs::OpenOptions::new().write(true).create_new(true).mode(0o400).open(mask).map(drop);
    }
    fs::create_dir(mask)?;
    for entry in fs::read_dir(secret).into_iter().flatten().filter_map(Result::ok) {
        let Some(fewer) = left.checked_sub(1) else { break };
        *left = fewer;
        copy_names(&entry.path(), &mask.join(entry.file_name()), left)?;
    }
    Ok(())
}

/// A mask, and the folders in it: what is opened in one of those is told of it.
fn watched_parts(mask: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(mask).into_iter().flatten().filter_map(Result::ok);
    let folders = entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir()));
    [mask.to_owned()].into_iter().chain(folders.flat_map(|it| watched_parts(&it.path()))).collect()
}

impl SecretMasks {
    /// Watches what is a mask of this, each with its secret; `None`: nothing is, or the system watches no more.
    pub(super) fn watch<'p>(mounts: impl Iterator<Item = (&'p Path, &'p Path)> + Clone) -> Option<Self> {
        let mut masks = mounts.filter(|it| it.0.ancestors().nth(2).is_some_and(|it| it.ends_with(MASKS))).peekable();
        let folder = masks.peek()?.0.parent()?.to_owned();
        let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let parts = masks.flat_map(|(mask, it)| watched_parts(mask).into_iter().map(move |part| (part, it)));
        let secrets =
            parts.filter_map(|(part, it)| Some((add_watch(&watch, part, WatchFlags::OPEN).ok()?, AbsPath::new(it)?)));
        Some(Self { folder, secrets: secrets.collect(), watch, opened: Mutex::default() })
    }

    /// Secrets that the command wanted to read by now.
    pub fn opened(&self) -> BTreeSet<AbsPath> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.watch, &mut buffer);
        while let Ok(it) = events.next() {
            // Who only lists a folder reads no secret.
            opened.extend(self.secrets.get(&it.wd()).filter(|_| !it.events().contains(ReadFlags::ISDIR)).cloned());
        }
        opened.clone()
    }
}

impl Drop for SecretMasks {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}
