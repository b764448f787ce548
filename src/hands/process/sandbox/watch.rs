//! Watches folders below roots while commands run, so that a repository that is not plain goes aside at once.
//!
//! One thread for all commands. It begins when a command has run for a while: what a short one made is looked at when it
//! ends. A folder is watched for new names, and one of git's for new contents, too.

use std::{
    collections::{BTreeSet, HashMap},
    ffi::OsStr,
    fs,
    mem::MaybeUninit,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::{
        LazyLock, Weak,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use nix::poll::{PollFd, PollFlags, poll};
use rustix::fs::inotify::{CreateFlags, ReadFlags, Reader, WatchFlags, add_watch, init};

use super::{nested_config, repository::is_repository};

/// Shorter commands are not watched.
const SHORT: Duration = Duration::from_millis(30);
/// New commands are taken up that often, in milliseconds.
const PAUSE: u8 = 25;
/// Folders beyond that are looked at when the command ends. Other programs of the user need the most of what the system has.
const MOST: usize = 16_384;
const LIMIT: &str = "/proc/sys/fs/inotify/max_user_watches";
const PART: usize = 4;
const BUFFER: usize = 64 << 10;
/// In a git folder these hold what git writes all the time, and obeys nothing of.
const BUSY: &[&str] = &["lfs", "logs", "refs"];
const OBJECTS: &str = "objects";
/// What stands in a bare repository, and git obeys.
const PARTS: &[&str] = &["HEAD", "commondir", "config", "config.worktree", "hooks", "info", OBJECTS, "refs"];

static WATCHER: LazyLock<Option<Sender<Weak<dyn WatchedCommand>>>> = LazyLock::new(|| {
    let (sender, commands) = channel();
    let run = || Watcher { commands, running: Vec::new(), live: None }.run();
    thread::Builder::new().name("watch".to_owned()).stack_size(512 * 1024).spawn(run).ok()?;
    Some(sender)
});

/// What is asked for repositories that are not plain, as long as it is there.
pub(super) trait WatchedCommand: Send + Sync {
    /// Whether what appears now may be the command's.
    fn is_watched(&self) -> bool;
    fn roots(&self) -> Vec<PathBuf>;
    /// Looks everywhere below the roots.
    fn put_all_aside(&self);
    fn put_aside(&self, places: &BTreeSet<PathBuf>);
}

/// Watches for a command, until it is over.
pub(super) fn watch(command: Weak<dyn WatchedCommand>) {
    if let Some(it) = &*WATCHER {
        _ = it.send(command);
    }
}

struct Watcher {
    commands: Receiver<Weak<dyn WatchedCommand>>,
    /// With their starts.
    running: Vec<(Instant, Weak<dyn WatchedCommand>)>,
    live: Option<Watches>,
}

/// Folders that are watched, by number.
struct Watches {
    inotify: OwnedFd,
    folders: HashMap<i32, PathBuf>,
    roots: BTreeSet<PathBuf>,
    most: usize,
    buffer: Vec<MaybeUninit<u8>>,
}

impl Watcher {
    fn run(mut self) {
        loop {
            let wait = Duration::from_millis(PAUSE.into());
            let new = match (&self.live, self.running.is_empty()) {
                (Some(it), _) => {
                    it.wait();
                    self.commands.try_recv().ok()
                }
                (None, false) => match self.commands.recv_timeout(wait) {
                    Err(RecvTimeoutError::Disconnected) => return,
                    it => it.ok(),
                },
                (None, true) => match self.commands.recv() {
                    Ok(it) => Some(it),
                    Err(_) => return,
                },
            };
            self.running.extend(new.map(|it| (Instant::now(), it)));
            self.turn();
        }
    }

    fn turn(&mut self) {
        self.running.retain(|it| it.1.upgrade().is_some_and(|it| it.is_watched()));
        let due = self.running.iter().filter(|it| it.0.elapsed() >= SHORT).filter_map(|it| it.1.upgrade());
        let due: Vec<_> = due.collect();
        if due.is_empty() {
            self.live = None;
            return;
        }
        if self.live.is_none() {
            self.live = Watches::new();
        }
        let Some(live) = &mut self.live else { return self.running.clear() };
        let mut places = live.take_changes();
        for command in &due {
            let new: Vec<_> = command.roots().into_iter().filter(|it| live.add_root(it, &mut places)).collect();
            if !new.is_empty() {
                // What came before its folder was watched, and then what came since.
                command.put_all_aside();
                new.iter().for_each(|it| live.adopt_all(nested_config::known_folders(it), &mut places));
            }
        }
        if places.remove(Path::new("")) {
            due.iter().for_each(|it| it.put_all_aside());
        }
        due.iter().for_each(|it| it.put_aside(&places));
    }
}

impl Watches {
    fn new() -> Option<Self> {
        let inotify = init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK);
        let said =
            |it: &rustix::io::Errno| tracing::warn!("new repositories are put aside only when commands end: {it}");
        let limit: Option<usize> = fs::read_to_string(LIMIT).ok().and_then(|it| it.trim().parse().ok());
        let most = limit.map_or(MOST, |it| MOST.min(it / PART));
        let inotify = inotify.inspect_err(said).ok()?;
        let buffer = vec![MaybeUninit::uninit(); BUFFER];
        Some(Self { inotify, folders: HashMap::new(), roots: BTreeSet::new(), most, buffer })
    }

    fn wait(&self) {
        _ = poll(&mut [PollFd::new(self.inotify.as_fd(), PollFlags::POLLIN)], PAUSE);
    }

    /// Whether a root is new here.
    fn add_root(&mut self, root: &Path, places: &mut BTreeSet<PathBuf>) -> bool {
        if !self.roots.insert(root.to_owned()) {
            return false;
        }
        for folder in nested_config::known_folders(root) {
            self.add(&folder);
            if folder.ends_with(".git") {
                self.adopt_all(folders_in(&folder), places);
            }
        }
        true
    }

    fn add(&mut self, folder: &Path) -> bool {
        let mut flags = WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::ONLYDIR | WatchFlags::DONT_FOLLOW;
        if is_gits(folder) {
            flags |= WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE;
        }
        let added = (self.folders.len() < self.most).then(|| add_watch(&self.inotify, folder, flags));
        let number = added.and_then(Result::ok);
        // One that was moved has its number still, and another path.
        number.is_some_and(|it| self.folders.insert(it, folder.to_owned()).is_none_or(|it| it != folder))
    }

    /// Places where git may find something else than before. The empty one: anywhere.
    fn take_changes(&mut self) -> BTreeSet<PathBuf> {
        let (mut places, mut folders) = (BTreeSet::new(), Vec::new());
        let mut reader = Reader::new(&self.inotify, &mut self.buffer);
        while let Ok(event) = reader.next() {
            if event.events().contains(ReadFlags::QUEUE_OVERFLOW) {
                places.insert(PathBuf::new());
            }
            if event.events().contains(ReadFlags::IGNORED) {
                self.folders.remove(&event.wd());
            }
            let Some((folder, name)) = self.folders.get(&event.wd()).zip(event.file_name()) else { continue };
            let path = folder.join(OsStr::from_bytes(name.to_bytes()));
            places.extend(places_around(&path));
            if event.events().contains(ReadFlags::ISDIR) {
                folders.push(path);
            }
        }
        self.adopt_all(folders, &mut places);
        places
    }

    /// Watches new folders, and looks at what is in them by then.
    fn adopt_all(&mut self, mut folders: Vec<PathBuf>, places: &mut BTreeSet<PathBuf>) {
        while let Some(folder) = folders.pop() {
            self.adopt(&folder, places, &mut folders);
        }
    }

    fn adopt(&mut self, folder: &Path, places: &mut BTreeSet<PathBuf>, more: &mut Vec<PathBuf>) {
        let name = folder.file_name().unwrap_or_default();
        let is_in_git = folder.parent().is_some_and(is_gits);
        let is_busy = is_in_git && BUSY.iter().any(|it| name == *it);
        let is_objects = folder.parent().is_some_and(|it| it.ends_with(OBJECTS) && it.parent().is_some_and(is_gits));
        if is_busy || is_objects && name != "info" || !self.add(folder) {
            return;
        }
        for entry in fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok) {
            places.extend(places_around(&entry.path()));
            if entry.file_type().is_ok_and(|it| it.is_dir()) {
                more.push(entry.path());
            }
        }
    }
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    entries.filter(|it| it.file_type().is_ok_and(|it| it.is_dir())).map(|it| it.path()).collect()
}

/// Whether git obeys what is in a folder.
fn is_gits(folder: &Path) -> bool {
    folder.iter().any(|it| it == ".git") || is_repository(folder) || folder.parent().is_some_and(is_repository)
}

/// Repositories that a change at a path may be about.
fn places_around(path: &Path) -> impl Iterator<Item = PathBuf> {
    let is_git = |it: &&Path| it.ends_with(".git") || it.parent().is_some_and(|it| it.ends_with(".git/worktrees"));
    let parts = [path.file_name(), path.parent().and_then(Path::file_name)];
    let is_part = parts.into_iter().flatten().any(|it| PARTS.iter().any(|part| it == *part));
    let bare = path.ancestors().skip(1).take(2).filter(|it| is_part && is_repository(it));
    path.ancestors().filter(is_git).chain(bare).map(Path::to_owned).collect::<Vec<_>>().into_iter()
}
