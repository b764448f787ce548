//! Process groups that castor started, and the thread that kills what is left of them.
//!
//! One thread owns the list and is told by messages, so nothing is locked; a thread and not a task, because a child
//! may be dropped while the runtime goes away, and its KILL must come all the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    },
    thread,
    time::{Duration, Instant},
};

use nix::sys::signal::Signal;
use tokio::{sync::oneshot, time::timeout};

use super::{
    sandbox::{Placeholders, RemovedPlaceholders, placeholder_records},
    table::{Process, Table, send_signal},
};

/// From TERM to KILL.
const GRACE: Duration = Duration::from_millis(500);
/// The pause between checks of processes that got a TERM.
const TICK: Duration = Duration::from_millis(10);
/// How long castor's end waits for temporary files to be removed.
const REMOVING: Duration = Duration::from_millis(300);
/// The pause between checks of processes that outlive their command; placeholders stay as long.
const LOOK: Duration = Duration::from_millis(500);
/// At castor's end, the longest wait for a process that is being started.
const STARTING: Duration = Duration::from_secs(1);
/// After KILL: a process that is left hangs in the kernel, and waiting does not help.
const GIVE_UP: Duration = Duration::from_millis(200);

/// The handle to all groups. Clone it freely; when the last handle and the last child are gone, so are all groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Started with the first child.
    reaper: Arc<OnceLock<Option<Sender<GroupOrder>>>>,
    /// How all marks of these groups begin.
    prefix: Arc<OnceLock<String>>,
}

#[derive(Debug)]
enum GroupOrder {
    /// A process is being started, and its placeholders are being made.
    StartBegins,
    /// It was added by now, or did not come to be.
    StartEnded,
    Add(Process, String, Box<Placeholders>),
    /// The group is empty; reported when everything held for it is released.
    Forget(u32, oneshot::Sender<()>),
    /// Its first process is dead; reported with the processes that are left.
    Exited(u32, oneshot::Sender<Vec<u32>>),
    End(u32),
    EndAll(oneshot::Sender<()>),
}

/// A process that is being started, until it is dropped.
#[derive(Debug)]
pub(super) struct StartingProcess(Groups);

impl Drop for StartingProcess {
    fn drop(&mut self) {
        self.0.send_order(GroupOrder::StartEnded);
    }
}

impl Groups {
    /// Ends all groups: TERM, and KILL for those that are left 500 ms later. Returns when they are gone, at
    /// the latest after 700 ms, and a second for what is just being started. What is started afterwards is ended at once:
    /// this is for castor's own end.
    pub async fn kill_all(&self) {
        let Some(Some(reaper)) = self.reaper.get() else { return };
        let (done, all_gone) = oneshot::channel();
        if reaper.send(GroupOrder::EndAll(done)).is_ok() {
            // An error means that the reaper is gone, and with it all groups.
            _ = timeout(STARTING + GRACE + GIVE_UP, all_gone).await;
        }
    }

    /// Held while a process is started: until the process is added, only the starter knows what was made for it.
    pub(super) fn hold_start(&self) -> StartingProcess {
        self.send_order(GroupOrder::StartBegins);
        StartingProcess(self.clone())
    }

    fn send_order(&self, order: GroupOrder) {
        if let Some(it) = self.reaper.get_or_init(|| start_reaper(self.prefix().to_owned())) {
            // Without a reaper there is nobody to hear of it.
            _ = it.send(order);
        }
    }

    /// The mark of one more process: a process with it in the environment belongs to that one.
    pub(super) fn mark(&self) -> String {
        format!("{}{}", self.prefix(), uuid::Uuid::now_v7().simple())
    }

    fn prefix(&self) -> &str {
        self.prefix.get_or_init(|| format!("{}.", uuid::Uuid::now_v7().simple()))
    }

    /// `placeholders` are released when the group is empty.
    pub(super) fn add(&self, pid: u32, mark: String, placeholders: Placeholders) {
        self.send_or_kill(pid, GroupOrder::Add(Process::now(pid), mark, Box::new(placeholders)));
    }

    /// Ends all processes that the one of this number began.
    pub fn end(&self, pid: u32) {
        self.send_or_kill(pid, GroupOrder::End(pid));
    }

    /// The group's first process is dead: who is left? Returns when nothing stands in for anything any more, unless
    /// somebody is. Dropping the future loses nothing: it can be asked again.
    pub(super) async fn leader_exited(&self, pid: u32) -> Vec<u32> {
        let (done, left) = oneshot::channel();
        self.send_or_kill(pid, GroupOrder::Exited(pid, done));
        // An error means that the reaper is gone, and with it all groups.
        left.await.unwrap_or_default()
    }

    /// Releases what was made for it, which kills processes left in its sandbox. Returns when they are gone.
    pub(super) async fn release_group(&self, pid: u32) {
        let (done, gone) = oneshot::channel();
        self.send_or_kill(pid, GroupOrder::Forget(pid, done));
        // An error means that the reaper is gone, and with it what it held.
        _ = gone.await;
    }

    fn send_or_kill(&self, pid: u32, order: GroupOrder) {
        let reaper = self.reaper.get_or_init(|| start_reaper(self.prefix().to_owned()));
        let told = reaper.as_ref().is_some_and(|it| it.send(order).is_ok());
        if !told {
            // No thread could be started: better a hard end than nobody who would end it.
            let leader = Process { pid, start: 0 };
            send_signal(Signal::SIGKILL, leader, &[leader]);
        }
    }
}

/// Whether it is the init process of a sandbox, which no command started.
fn is_helper(pid: u32) -> bool {
    #[cfg(target_os = "linux")]
    return std::fs::read(format!("/proc/{pid}/comm"))
        .is_ok_and(|it| it.trim_ascii() == super::sandbox::helper::init::NAME.to_bytes());
    #[cfg(not(target_os = "linux"))]
    return pid == 0;
}

fn start_reaper(prefix: String) -> Option<Sender<GroupOrder>> {
    let (sender, orders) = channel();
    let (groups, tmps, records) = Default::default();
    let reaper = Reaper { prefix, groups, waiting: Vec::new(), closing: false, starting: 0, tmps, records };
    let reaper = move || reaper.run(&orders);
    thread::Builder::new().name("reaper".to_owned()).stack_size(256 * 1024).spawn(reaper).ok()?;
    Some(sender)
}

/// Removes folders with their contents. A very full one does not delay castor's end.
fn remove_folders(folders: BTreeSet<PathBuf>) {
    if folders.is_empty() {
        return;
    }
    let (sender, done) = channel();
    let all = move || {
        for it in folders {
            _ = std::fs::remove_dir_all(&it);
            // Long outputs that the session's log names stay with it, and so do its temporary files.
            _ = it.parent().map(std::fs::remove_dir);
        }
        _ = sender.send(());
    };
    if thread::Builder::new().name("remove".to_owned()).spawn(all).is_ok() {
        _ = done.recv_timeout(REMOVING);
    }
}

struct Group {
    leader: Process,
    mark: String,
    /// Released with the group.
    placeholders: Placeholders,
    /// Its known members: found again even when their parents are dead.
    known: Vec<Process>,
    /// When TERM was sent.
    term_sent: Option<Instant>,
    /// The end of its last process is not reported.
    outlives_leader: bool,
}

struct Reaper {
    prefix: String,
    groups: BTreeMap<u32, Group>,
    /// Waiters for the end of all groups; not empty: castor is about to exit.
    waiting: Vec<oneshot::Sender<()>>,
    closing: bool,
    /// How many processes are being started.
    starting: usize,
    /// Folders of what was mounted on what commands do not see.
    tmps: BTreeSet<PathBuf>,
    /// Where it was written down what stood in for configuration.
    records: BTreeSet<PathBuf>,
}

impl Reaper {
    fn run(mut self, orders: &Receiver<GroupOrder>) {
        loop {
            let busy = self.groups.values().any(|it| it.term_sent.is_some());
            let left = self.groups.values().any(|it| it.outlives_leader);
            let order = match (busy, left) {
                (true, _) => orders.recv_timeout(TICK),
                (false, true) => orders.recv_timeout(LOOK),
                (false, false) => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match order {
                Ok(it) => self.handle_order(it),
                Err(RecvTimeoutError::Timeout) if !busy => self.forget_empty(),
                Err(RecvTimeoutError::Timeout) => (),
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.reap();
        }
        self.end_all();
        while !self.groups.is_empty() {
            thread::sleep(TICK);
            self.reap();
        }
    }

    fn handle_order(&mut self, order: GroupOrder) {
        match order {
            GroupOrder::StartBegins => self.starting += 1,
            GroupOrder::StartEnded => self.starting = self.starting.saturating_sub(1),
            GroupOrder::Add(leader, mark, placeholders) => {
                self.forget_empty();
                self.tmps.extend(placeholders.temporary());
                self.records.extend(placeholders.records());
                self.groups.insert(
                    leader.pid,
                    Group {
                        leader,
                        mark,
                        placeholders: *placeholders,
                        known: Vec::new(),
                        term_sent: None,
                        outlives_leader: false,
                    },
                );
                if self.closing {
                    self.end(leader.pid);
                }
            }
            GroupOrder::Forget(pid, done) => {
                let gone = self.remove_group(pid);
                // Who asked may not care any more.
                _ = done.send(());
                drop(gone);
            }
            GroupOrder::Exited(pid, done) => {
                let mut left = self.survivors(pid);
                let gone = left.is_empty().then(|| self.remove_group(pid));
                if let Some(helper) = left.iter().position(|it| is_helper(*it)) {
                    left.remove(helper);
                }
                // As for `Forget`.
                _ = done.send(left);
                drop(gone);
            }
            GroupOrder::End(pid) => self.end(pid),
            GroupOrder::EndAll(done) => {
                self.closing = true;
                self.waiting.push(done);
                self.end_all();
            }
        }
    }

    /// Members that are left when a group's first process is dead.
    fn survivors(&mut self, pid: u32) -> Vec<u32> {
        let group = self.groups.get_mut(&pid);
        if group.as_ref().is_some_and(|it| it.placeholders.is_sandbox_empty()) {
            return Vec::new();
        }
        // It was reaped, so nobody has its id unless the session is over: any start time will do.
        let left = Table::read().members(Process { pid, start: 0 }, &[]);
        if let Some(it) = group {
            it.outlives_leader = !left.is_empty();
        }
        left.iter().map(|it| it.pid).collect()
    }

    /// Lets go what was made for a group.
    fn remove_group(&mut self, pid: u32) -> Option<RemovedPlaceholders> {
        self.groups.remove(&pid).map(|mut it| it.placeholders.release())
    }

    fn end_all(&mut self) {
        for pid in self.groups.keys().copied().collect::<Vec<_>>() {
            self.end(pid);
        }
        // Daemons of commands that are over long since.
        let strays = Table::read().marked(&self.prefix);
        for leader in strays {
            if !self.groups.values().any(|it| it.known.contains(&leader)) {
                let (mark, placeholders) = (String::new(), Placeholders::default());
                let group =
                    Group { leader, mark, placeholders, known: vec![leader], term_sent: None, outlives_leader: false };
                self.groups.insert(leader.pid, group);
                self.end(leader.pid);
            }
        }
    }

    fn end(&mut self, pid: u32) {
        let Some(group) = self.groups.get_mut(&pid) else { return };
        // A second TERM means "now!" to some programs.
        if group.term_sent.is_none() {
            group.term_sent = Some(Instant::now());
            let table = Table::read();
            if !group.mark.is_empty() {
                group.known.extend(table.marked(&group.mark));
            }
            group.known = table.members(group.leader, &group.known);
            send_signal(Signal::SIGTERM, group.leader, &group.known);
        }
    }

    /// Sends KILL where it is due and forgets ended processes.
    fn reap(&mut self) {
        if self.groups.values().any(|it| it.term_sent.is_some()) {
            let table = Table::read();
            self.groups.retain(|_, it| it.term_sent.is_none_or(|since| it.remains(since, &table)));
        }
        if self.groups.is_empty() && self.starting == 0 {
            if self.closing {
                remove_folders(std::mem::take(&mut self.tmps));
                placeholder_records::remove_records(&std::mem::take(&mut self.records));
            }
            self.waiting.drain(..).for_each(|it| _ = it.send(()));
        }
    }

    /// Ids are given anew some day: groups that emptied by themselves must not wait for that.
    fn forget_empty(&mut self) {
        if self.groups.is_empty() {
            return;
        }
        let table = Table::read();
        self.groups.retain(|_, it| !table.members(it.leader, &it.known).is_empty());
    }
}

impl Group {
    fn remains(&mut self, since: Instant, table: &Table) -> bool {
        self.known = table.members(self.leader, &self.known);
        let waited = since.elapsed();
        if waited >= GRACE {
            send_signal(Signal::SIGKILL, self.leader, &self.known);
        }
        !self.known.is_empty() && waited < GRACE + GIVE_UP
    }
}
