//! Limits of a running command: its processes, their memory, what it leaves of the disk, and its temporary files. A command
//! that passes one is stopped.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use crate::builtin::paths;
use castor_base::path::AbsPath;
use castor_hands::{
    disk,
    process::{
        command_group::{CommandGroup, GroupLimits},
        table::{Process, ProcessWeight, Table, machine_memory},
    },
};

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// How many times as long as a look takes it waits for the next one.
const SHARE: u32 = 20;
const GB: u64 = 1 << 30;
/// What the session's folder for temporary files holds at most, in bytes.
const MAX_TMP: u64 = 2 * GB;
/// Entries of that folder that are looked at; those beyond are not counted.
const MAX_ENTRIES: usize = 100_000;

/// To the model, of a command that ended.
pub const TMP_IS_FULL: &str = "The session's folder for temporary files (/tmp) holds more than 2 GB: the next command that adds \
                               to it is stopped. Remove what is no longer needed there.";

/// As the settings say; 0: no limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    pub max_processes: u64,
    /// In GB; 0: nine tenths of the machine's.
    pub max_memory_gb: u64,
    /// In GB, of the disk that it works on.
    pub min_free_gb: u64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { max_processes: 4_096, max_memory_gb: 0, min_free_gb: 1 }
    }
}

impl CommandLimits {
    /// Those that the kernel can hold a command to.
    pub fn of_group(self) -> GroupLimits {
        GroupLimits { max_processes: Some(self.max_processes).filter(|it| *it > 0), max_memory: self.max_memory() }
    }

    /// In bytes; `None`: the system does not tell how much there is.
    fn max_memory(self) -> Option<u64> {
        match self.max_memory_gb {
            0 => machine_memory().map(|it| it / 10 * 9),
            it => Some(it.saturating_mul(GB)),
        }
    }
}

/// A command, as it is looked at.
#[derive(Clone, Debug)]
pub struct LimitedCommand {
    /// `None`: its processes are not ours to count.
    pub leader: Option<Process>,
    /// In which the kernel counts them.
    pub group: Option<Arc<CommandGroup>>,
    pub folder: AbsPath,
    /// The session's folder for temporary files, where the command has it.
    pub tmp: Option<AbsPath>,
    pub limits: CommandLimits,
}

impl LimitedCommand {
    fn look(&self) -> Look {
        let in_group = self.group.as_ref().and_then(|it| it.weight());
        let weight = in_group.or_else(|| self.leader.map(|it| Table::read().weigh(it))).unwrap_or_default();
        Look {
            weight,
            free: disk::free_bytes(&self.folder),
            tmp: self.tmp.as_ref().map(|it| disk::tree_size(it, MAX_ENTRIES)).unwrap_or_default(),
        }
    }

    /// What the kernel did to hold it to its limits.
    fn held_back(&self) -> Option<String> {
        let held = self.group.as_ref()?.held_back();
        let limits = self.limits;
        match held {
            _ if held.processes => Some(too_many_processes(limits)),
            _ if held.memory => Some(too_much_memory(limits.max_memory()?)),
            _ => None,
        }
    }

    /// Why it ended, if the kernel's limits were the reason.
    pub async fn limit_of_end(&self) -> Option<String> {
        let it = self.clone();
        paths::run_blocking(move || it.held_back()).await.ok()?
    }
}

/// One look.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    weight: ProcessWeight,
    /// Free bytes of the disk; `None`: they are not known.
    free: Option<u64>,
    /// Bytes of temporary files.
    tmp: u64,
}

/// Waits until a limit is passed. What is said of it is for the model, behind "was stopped, ".
pub async fn wait_until_passed(command: LimitedCommand) -> String {
    let (limits, memory) = (command.limits, command.limits.max_memory());
    let (mut before, mut pause) = (None, PAUSE);
    loop {
        tokio::time::sleep(pause).await;
        let (began, it) = (Instant::now(), command.clone());
        let look = paths::run_blocking(move || (it.held_back(), it.look()));
        let (held_back, now) = look.await.unwrap_or_default();
        if let Some(why) = held_back.or_else(|| passed(limits, memory, before.replace(now), now)) {
            return why;
        }
        pause = PAUSE.max(began.elapsed() * SHARE);
    }
}

pub async fn is_tmp_full(folder: &AbsPath) -> bool {
    let folder = folder.clone();
    paths::run_blocking(move || disk::tree_size(&folder, MAX_ENTRIES)).await.unwrap_or_default() > MAX_TMP
}

fn passed(limits: CommandLimits, memory: Option<u64>, before: Option<Look>, now: Look) -> Option<String> {
    let CommandLimits { max_processes, min_free_gb, .. } = limits;
    if max_processes > 0 && now.weight.processes > max_processes {
        return Some(too_many_processes(limits));
    }
    if let Some(most) = memory.filter(|it| now.weight.memory > *it) {
        return Some(too_much_memory(most));
    }
    // A command that makes room goes on.
    let before = before?;
    if now.tmp > MAX_TMP && now.tmp > before.tmp {
        return Some(
            "because the session's folder for temporary files (/tmp) holds more than 2 GB. Remove what is no longer \
             needed there, or write to the workspace."
                .to_owned(),
        );
    }
    let falls = |free: u64| before.free.is_some_and(|before| free < before);
    let is_short = now.free.is_some_and(|it| it < min_free_gb.saturating_mul(GB) && falls(it));
    let what = || format!("less than {min_free_gb} GB of the disk are free");
    is_short.then(|| stop_reason(&what(), "tools.shell.minFreeDiskGb"))
}

fn too_many_processes(limits: CommandLimits) -> String {
    stop_reason(&format!("it had more than {} processes at once", limits.max_processes), "tools.shell.maxProcesses")
}

fn too_much_memory(most: u64) -> String {
    stop_reason(&format!("its processes used more than {} GB of memory", most / GB), "tools.shell.maxMemoryGb")
}

fn stop_reason(why: &str, key: &str) -> String {
    format!("because {why}. The user's setting {key} says so.")
}

#[cfg(test)]
mod tests {
    use super::{CommandLimits, GB, Look, MAX_TMP, ProcessWeight, passed};

    #[test]
    fn a_command_that_passes_a_limit_is_stopped_with_its_name() {
        let limits = CommandLimits { max_processes: 10, max_memory_gb: 2, min_free_gb: 1 };
        let none = CommandLimits { max_processes: 0, min_free_gb: 0, ..limits };
        let look = |processes, memory, free| Look { weight: ProcessWeight { processes, memory }, free, tmp: 0 };
        let full = Some(GB - 5);
        let tmp = |bytes| Look { tmp: bytes, ..look(1, 1, None) };
        for (limits, before, now, want) in [
            (limits, None, look(10, 2 * GB, Some(GB)), None),
            (limits, None, look(11, 0, None), Some("maxProcesses")),
            (none, None, look(11, 0, Some(0)), None),
            (limits, None, look(1, 2 * GB + 1, None), Some("maxMemoryGb")),
            (limits, None, look(1, 1, full), None),
            (limits, Some(look(1, 1, Some(2 * GB))), look(1, 1, full), Some("minFreeDiskGb")),
            (limits, Some(look(1, 1, full)), look(1, 1, full), None),
            (limits, Some(look(1, 1, Some(0))), look(1, 1, full), None),
            (limits, None, tmp(MAX_TMP + 5), None),
            (limits, Some(tmp(0)), tmp(MAX_TMP), None),
            (limits, Some(tmp(0)), tmp(MAX_TMP + 1), Some("(/tmp)")),
            (limits, Some(tmp(MAX_TMP + 5)), tmp(MAX_TMP + 5), None),
            (limits, Some(tmp(MAX_TMP + 5)), tmp(MAX_TMP + 1), None),
            (limits, Some(tmp(MAX_TMP + 5)), tmp(MAX_TMP + 9), Some("(/tmp)")),
        ] {
            let memory = Some(limits.max_memory_gb * GB);
            let reason = passed(limits, memory, before, now);
            assert_eq!(reason.is_some(), want.is_some(), "{now:?}");
            assert!(want.is_none_or(|it| reason.unwrap().contains(it)), "{now:?}");
        }
    }
}
