//! Command groups: a cgroup of version 2 for each command, where the system lends one to the user. The kernel holds it to its
//! limits, and counts what is in it.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use nix::unistd::{AccessFlags, access, geteuid};

use super::table::ProcessWeight;

/// Where systems have it.
const ROOT: &str = "/sys/fs/cgroup";
const OWN: &str = "/proc/self/cgroup";
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// What a group gives those below it.
const GIVES: &str = "cgroup.subtree_control";
const PROCESSES: &str = "cgroup.procs";
/// The beginning of a command's group, before the numbers of its castor and of the command.
const NAME: &str = "castor-";
/// Where castor goes, so that groups beside it can have limits.
const OF_CASTOR: &str = "castor";

/// Limits that the kernel holds a group to; `None`: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GroupLimits {
    pub max_processes: Option<u64>,
    /// In bytes.
    pub max_memory: Option<u64>,
}

/// Which limits a group has met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeldBack {
    /// A process was not made.
    pub processes: bool,
    /// Its processes were killed.
    pub memory: bool,
}

/// A group that may have others below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LentGroup(PathBuf);

/// The group of one command. It goes when this is dropped, after the last of its processes.
#[derive(Debug)]
pub struct CommandGroup(PathBuf);

/// What the system lends to this process; found once.
pub fn lent() -> Option<&'static LentGroup> {
    static LENT: OnceLock<Option<LentGroup>> = OnceLock::new();
    let find = || LentGroup::find(Path::new(ROOT), &fs::read_to_string(OWN).ok()?, geteuid().is_root());
    LENT.get_or_init(find).as_ref()
}

impl LentGroup {
    /// `own`: what the kernel says of this process. Of a root user, who may write all, only what is its own counts.
    fn find(root: &Path, own: &str, is_root: bool) -> Option<Self> {
        let own = root.join(own.lines().find_map(|it| it.strip_prefix("0::/"))?);
        let lends = |it: &&Path| has_controllers(it, GIVES) && is_ours(it);
        let above = own.ancestors().take_while(|it| it.starts_with(root)).take(if is_root { 1 } else { usize::MAX });
        let found = above.into_iter().find(lends).map(Path::to_owned).or_else(|| take_over(&own));
        found.inspect(|it| remove_leftovers(it)).map(Self)
    }

    /// # Errors
    /// The kernel does not make it, or takes no such limits.
    pub fn make(&self, limits: GroupLimits) -> io::Result<CommandGroup> {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let res = CommandGroup(self.0.join(format!("{NAME}{}-{number}", std::process::id())));
        fs::create_dir(&res.0)?;
        let set =
            |name: &str, limit: Option<u64>| limit.map_or(Ok(()), |it| fs::write(res.0.join(name), it.to_string()));
        set("pids.max", limits.max_processes)?;
        set("memory.max", limits.max_memory)?;
        // A command of which a part is killed goes on with nonsense.
        set("memory.oom.group", limits.max_memory.map(|_| 1))?;
        Ok(res)
    }
}

/// Whether all that is needed is listed in a file of a group.
fn has_controllers(group: &Path, list: &str) -> bool {
    let listed = fs::read_to_string(group.join(list)).unwrap_or_default();
    CONTROLLERS.iter().all(|it| listed.split_whitespace().any(|word| word == *it))
}

/// Whether this process may make groups there, and move its children into them.
fn is_ours(group: &Path) -> bool {
    [group.to_owned(), group.join(PROCESSES)].iter().all(|it| access(it, AccessFlags::W_OK).is_ok())
}

/// The group that castor has for itself alone. No group with processes has limits for those below: castor moves down.
fn take_over(own: &Path) -> Option<PathBuf> {
    let pid = std::process::id().to_string();
    let is_alone = || fs::read_to_string(own.join(PROCESSES)).is_ok_and(|it| it.split_whitespace().eq([pid.as_str()]));
    (has_controllers(own, "cgroup.controllers") && is_ours(own) && is_alone()).then_some(())?;
    let below = own.join(OF_CASTOR);
    if !below.is_dir() {
        fs::create_dir(&below).ok()?;
    }
    fs::write(below.join(PROCESSES), &pid).ok()?;
    fs::write(own.join(GIVES), CONTROLLERS.map(|it| format!("+{it}")).join(" ")).ok()?;
    Some(own.to_owned())
}

/// What killed castors left.
fn remove_leftovers(group: &Path) {
    let entries = fs::read_dir(group).into_iter().flatten().filter_map(Result::ok);
    for it in entries {
        let name = it.file_name();
        let pid = name.to_str().and_then(|it| it.strip_prefix(NAME)?.split_once('-')).map(|it| it.0.to_owned());
        if pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists()) {
            _ = fs::remove_dir(it.path());
        }
    }
}

impl CommandGroup {
    /// Where a process writes a 0 to join it.
    pub(super) fn entrance(&self) -> io::Result<File> {
        File::options().write(true).open(self.0.join(PROCESSES))
    }

    /// What is in it; `None`: nobody is.
    pub fn weight(&self) -> Option<ProcessWeight> {
        let processes = self.read("pids.current")?.trim().parse().ok().filter(|it| *it > 0)?;
        // Not what the kernel keeps of files, which it gives back.
        Some(ProcessWeight { processes, memory: self.count("memory.stat", "anon") })
    }

    pub fn held_back(&self) -> HeldBack {
        let has = |list: &str, event: &str| self.count(list, event) > 0;
        HeldBack { processes: has("pids.events", "max"), memory: has("memory.events", "oom_kill") }
    }

    /// The number behind a name in a list.
    fn count(&self, list: &str, name: &str) -> u64 {
        let text = self.read(list).unwrap_or_default();
        let found = text.lines().filter_map(|it| it.split_once(' ')).find(|it| it.0 == name);
        found.and_then(|it| it.1.trim().parse().ok()).unwrap_or_default()
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.0.join(name)).ok()
    }
}

impl Drop for CommandGroup {
    fn drop(&mut self) {
        _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::{CommandGroup, GroupLimits, HeldBack, LentGroup};
    use crate::process::table::ProcessWeight;

    fn group(path: &Path, gives: &str, processes: &str) {
        fs::create_dir_all(path).unwrap();
        for (name, text) in
            [("cgroup.subtree_control", gives), ("cgroup.procs", processes), ("cgroup.controllers", "cpu memory pids")]
        {
            fs::write(path.join(name), text).unwrap();
        }
    }

    /// The nearest group above that gives limits, or one that castor is alone in.
    #[test]
    fn a_group_is_lent_where_groups_below_it_have_limits() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let own = std::process::id().to_string();
        group(root, "cpu memory pids", "");
        group(&root.join("user"), "memory pids", "");
        group(&root.join("user/app"), "memory", "1\n2\n");
        group(&root.join("alone"), "", &own);
        group(&root.join("alone/deep"), "", &own);
        group(&root.join("shared"), "", &format!("{own}\n7\n"));
        let find = |own: &str, is_root: bool| {
            let found = LentGroup::find(root, own, is_root);
            found.map(|it| it.0.strip_prefix(root).unwrap().display().to_string())
        };
        assert_eq!(find("12:pids:/x\n0::/user/app\n", false).as_deref(), Some("user"));
        assert_eq!(find("0::/user\n", true).as_deref(), Some("user"));
        // What root could write is not lent by that.
        assert_eq!(find("0::/user/app\n", true), None);
        assert_eq!(find("0::/shared\n", true), None);
        assert_eq!(find("4:memory:/user\n", false), None);
        assert_eq!(find("0::/alone/deep\n", true).as_deref(), Some("alone/deep"));
        let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
        assert_eq!(
            (read("alone/deep/castor/cgroup.procs"), read("alone/deep/cgroup.subtree_control")),
            (own, "+memory +pids".to_owned())
        );
    }

    #[test]
    fn a_group_has_limits_and_says_which_it_met() {
        let dir = tempfile::tempdir().unwrap();
        let lent = LentGroup(dir.path().to_owned());
        let limits = GroupLimits { max_processes: Some(20), max_memory: Some(1 << 30) };
        let it: CommandGroup = lent.make(limits).unwrap();
        let read = |name: &str| fs::read_to_string(it.0.join(name)).unwrap();
        assert_eq!(
            (read("pids.max"), read("memory.max"), read("memory.oom.group")),
            ("20".into(), (1 << 30).to_string(), "1".into())
        );
        assert_eq!((it.weight(), it.held_back()), (None, HeldBack::default()));
        let write = |name: &str, text: &str| fs::write(it.0.join(name), text).unwrap();
        write("pids.current", "3\n");
        write("memory.stat", "anon 4096\nfile 999999\n");
        assert_eq!(it.weight(), Some(ProcessWeight { processes: 3, memory: 4096 }));
        write("pids.events", "max 2\n");
        write("memory.events", "low 0\nmax 9\noom 1\noom_kill 0\n");
        assert_eq!(it.held_back(), HeldBack { processes: true, memory: false });
        write("memory.events", "oom 1\noom_kill 4\n");
        assert!(it.held_back().memory);
        let free = lent.make(GroupLimits::default()).unwrap();
        assert!(free.0.is_dir() && !free.0.join("pids.max").exists() && free.0 != it.0);
        let path = free.0.clone();
        drop(free);
        assert!(!path.exists());
    }
}
