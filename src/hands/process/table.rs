//! The process table: all members of a session that castor started, and their descendants.

use std::{collections::HashSet, fs::File, io::Read};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, getpgid},
};

/// The variable by which those are found who left both their session and their parents.
pub(super) const MARK_VARIABLE: &str = "CASTOR_COMMAND";

/// More than fifty numbers and a name of at most 64 bytes take.
const STAT: usize = 2048;

/// A process that cannot be mistaken for a later one with the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    /// In clock ticks since boot; 0 where the system does not tell.
    pub start: u64,
}

#[derive(Debug)]
struct Row {
    process: Process,
    parent: u32,
    session: u32,
    /// A zombie: dead, but not reaped. In a container it may stay so for ever.
    zombie: bool,
}

/// What a command and all that it started weigh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessWeight {
    pub processes: u64,
    /// In bytes; what they share is not counted.
    pub memory: u64,
}

/// The machine's memory in bytes, where the system tells.
pub fn machine_memory() -> Option<u64> {
    kilobytes(&std::fs::read_to_string("/proc/meminfo").ok()?, "MemTotal:").map(|it| it.saturating_mul(1024))
}

/// The number of a line such as `Name:   12 kB`.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|it| it.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok())
}

/// All processes at one instant; `None` inside where the system has no `/proc`.
#[derive(Debug)]
pub struct Table(Option<Vec<Row>>);

impl Process {
    /// The process with that id, as it is now.
    pub fn now(pid: u32) -> Self {
        let start = read_row(pid).map_or(0, |it| it.process.start);
        Self { pid, start }
    }
}

impl Table {
    /// Reads it: some microseconds for each process of the machine.
    pub fn read() -> Self {
        let Ok(entries) = std::fs::read_dir("/proc") else { return Self(None) };
        let ids = entries.flatten().filter_map(|it| it.file_name().to_str()?.parse().ok());
        let rows: Vec<Row> = ids.filter_map(read_row).collect();
        Self((!rows.is_empty()).then_some(rows))
    }

    /// The living of `leader`'s session, the living of `known`, and the descendants of all these.
    ///
    /// A process in a session of its own whose parent is dead is found only if `known` from before.
    pub fn members(&self, leader: Process, known: &[Process]) -> Vec<Process> {
        let Some(rows) = &self.0 else { return group_only(leader) };
        // The leader's id was given to somebody else: so the session ended, since its id is not given away before.
        let recycled = rows.iter().any(|it| it.process.pid == leader.pid && it.process.start != leader.start);
        let belongs = |it: &&Row| (it.session == leader.pid && !recycled) || known.contains(&it.process);
        let mut found: HashSet<u32> = rows.iter().filter(belongs).map(|it| it.process.pid).collect();
        loop {
            let before = found.len();
            let children = rows.iter().filter(|it| found.contains(&it.parent)).map(|it| it.process.pid);
            let children: Vec<u32> = children.collect();
            found.extend(children);
            if found.len() == before {
                break;
            }
        }
        let living = rows.iter().filter(|it| !it.zombie && found.contains(&it.process.pid));
        living.map(|it| it.process).collect()
    }

    /// The members as above, and the memory that is theirs alone, in bytes.
    pub fn weigh(&self, leader: Process) -> ProcessWeight {
        let members = self.members(leader, &[]);
        let own = |it: &Process| {
            let status = std::fs::read_to_string(format!("/proc/{}/status", it.pid)).ok()?;
            kilobytes(&status, "RssAnon:")
        };
        let memory = members.iter().filter_map(own).sum::<u64>().saturating_mul(1024);
        ProcessWeight { processes: u64::try_from(members.len()).unwrap_or(u64::MAX), memory }
    }

    /// The oldest child of a process.
    pub fn first_child(&self, parent: u32) -> Option<u32> {
        let children = self.0.iter().flatten().filter(|it| it.parent == parent && !it.zombie);
        children.min_by_key(|it| (it.process.start, it.process.pid)).map(|it| it.process.pid)
    }

    /// The living whose environment has a mark in it that begins so: daemons that left session and parents, too.
    pub fn marked(&self, prefix: &str) -> Vec<Process> {
        let wanted = format!("{MARK_VARIABLE}={prefix}");
        let has = |it: &&Row| {
            let environ = std::fs::read(format!("/proc/{}/environ", it.process.pid)).unwrap_or_default();
            environ.split(|it| *it == 0).any(|it| it.starts_with(wanted.as_bytes()))
        };
        let rows = self.0.iter().flatten().filter(|it| !it.zombie);
        rows.filter(has).map(|it| it.process).collect()
    }
}

/// Sends `signal` to the leader's group at one stroke, and to those `members` who left the group.
pub fn send_signal(signal: Signal, leader: Process, members: &[Process]) {
    let group = pid_of(leader.pid);
    let (inside, outside): (Vec<Pid>, Vec<Pid>) =
        members.iter().map(|it| pid_of(it.pid)).partition(|it| getpgid(Some(*it)) == Ok(group));
    // Without a member in it, the group's id may be somebody else's by now.
    if !inside.is_empty() {
        _ = killpg(group, signal);
    }
    for member in outside {
        // It may have died since: then there is nothing to do.
        _ = kill(member, signal);
    }
}

/// Without a table: whether the group has anybody in it is all that can be known. (macOS answers EPERM for zombies.)
fn group_only(leader: Process) -> Vec<Process> {
    if killpg(pid_of(leader.pid), None).is_ok() { vec![leader] } else { Vec::new() }
}

fn pid_of(pid: u32) -> Pid {
    // Ids are positive and far below 2^31; the fallback is an id that nobody can have, and never 0 or -1, which
    // would mean us or everybody.
    Pid::from_raw(i32::try_from(pid).ok().filter(|it| *it > 1).unwrap_or(i32::MAX))
}

/// In one go: the kernel says no size, and reading by and by is five calls for each process of the machine.
fn read_row(pid: u32) -> Option<Row> {
    let mut stat = [0; STAT];
    let len = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut stat).ok()?;
    parse_row(pid, stat.get(..len)?)
}

/// `pid (name) state parent group session … start …`: the name may hold anything, also spaces and `)`.
fn parse_row(pid: u32, stat: &[u8]) -> Option<Row> {
    let after = stat.iter().rposition(|it| *it == b')')? + 1;
    let text = std::str::from_utf8(stat.get(after..)?).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let session = fields.nth(1)?.parse().ok()?;
    let start = fields.nth(15)?.parse().ok()?;
    let zombie = matches!(state, "Z" | "X" | "x");
    Some(Row { process: Process { pid, start }, parent, session, zombie })
}

#[cfg(test)]
mod tests {
    use super::{Process, Row, Table, parse_row};

    #[test]
    fn a_name_can_hold_anything() {
        let stat = b"42 (a) R (b)) Z 7 8 9 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 12345 1000 2 3";
        let row = parse_row(42, stat).unwrap();
        assert_eq!((row.parent, row.session, row.process.start, row.zombie), (7, 9, 12345, true));
        assert!(parse_row(1, b"garbage").is_none());
        assert!(parse_row(1, b"1 (x) R 1").is_none());
    }

    #[test]
    fn a_process_has_a_weight() {
        assert_eq!(super::kilobytes("Name:\tx\nRssAnon:\t     128 kB\nThreads: 1\n", "RssAnon:"), Some(128));
        assert_eq!(super::kilobytes("RssAnon: many\n", "RssAnon:"), None);
    }

    #[test]
    fn members_are_session_known_and_descendants() {
        let row = |pid, parent, session, zombie| Row { process: at(pid), parent, session, zombie };
        let rows = vec![
            row(10, 1, 10, true),
            row(11, 10, 10, false),
            row(12, 11, 12, false),
            row(13, 12, 12, false),
            row(20, 1, 20, false),
            row(30, 1, 30, false),
        ];
        let table = Table(Some(rows));
        let ids = |known: &[Process]| table.members(at(10), known).iter().map(|it| it.pid).collect::<Vec<_>>();
        assert_eq!(ids(&[]), [11, 12, 13]);
        assert_eq!(ids(&[at(20)]), [11, 12, 13, 20]);
        assert_eq!(ids(&[Process { pid: 20, start: 5 }]), [11, 12, 13]);
        let other = Process { pid: 10, start: 99 };
        assert!(table.members(other, &[]).is_empty(), "the id belongs to somebody else now");
    }

    fn at(pid: u32) -> Process {
        Process { pid, start: u64::from(pid) }
    }
}
