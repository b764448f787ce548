//! Masks of secret files: an empty file in the place of each, by which castor hears of an attempt to read the secret.

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

use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

use crate::base::path::AbsPath;

/// The folder of all masks of a session, each command's in one of its own.
const MASKS: &str = "masks";
const BUFFER: usize = 4096;

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

/// Makes one that has this number in its folder.
pub(super) fn make_mask(folder: &Path, number: usize) -> io::Result<PathBuf> {
    super::make_private(folder)?;
    let path = folder.join(number.to_string());
    fs::OpenOptions::new().write(true).create_new(true).mode(0o400).open(&path)?;
    Ok(path)
}

impl SecretMasks {
    /// Watches what is a mask of this, each with its secret; `None`: nothing is, or the system watches no more.
    pub(super) fn watch<'p>(mounts: impl Iterator<Item = (&'p Path, &'p Path)> + Clone) -> Option<Self> {
        let mut masks = mounts.filter(|it| it.0.ancestors().nth(2).is_some_and(|it| it.ends_with(MASKS))).peekable();
        let folder = masks.peek()?.0.parent()?.to_owned();
        let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
        let secrets =
            masks.filter_map(|(mask, it)| Some((add_watch(&watch, mask, WatchFlags::OPEN).ok()?, AbsPath::new(it)?)));
        Some(Self { folder, secrets: secrets.collect(), watch, opened: Mutex::default() })
    }

    /// Secrets that the command wanted to read by now.
    pub fn opened(&self) -> BTreeSet<AbsPath> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut events = Reader::new(&self.watch, &mut buffer);
        while let Ok(it) = events.next() {
            opened.extend(self.secrets.get(&it.wd()).cloned());
        }
        opened.clone()
    }
}

impl Drop for SecretMasks {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.folder);
    }
}
