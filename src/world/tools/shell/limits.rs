//! Limits of a running command: its processes, their memory, and what it leaves of the disk. Who passes one is stopped.

use std::time::{Duration, Instant};

use crate::{
    base::path::AbsPath,
    world::{
        disk,
        process::table::{Process, ProcessWeight, Table, machine_memory},
        tools::paths,
    },
};

/// Between two looks.
const PAUSE: Duration = Duration::from_secs(1);
/// How many times as long as a look takes it waits for the next one.
const SHARE: u32 = 20;
const GB: u64 = 1 << 30;

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

/// A command, as it is looked at.
#[derive(Clone, Debug)]
pub struct LimitedCommand {
    /// `None`: its processes are not ours to count.
    pub leader: Option<Process>,
    pub folder: AbsPath,
    pub limits: CommandLimits,
}

/// One look.
#[derive(Clone, Copy, Debug, Default)]
struct Look {
    weight: ProcessWeight,
    /// Free bytes of the disk; `None`: they are not known.
    free: Option<u64>,
}

/// Waits until a limit is passed. What is said of it is for the model.
pub async fn wait_until_passed(command: LimitedCommand) -> String {
    let memory = match command.limits.max_memory_gb {
        0 => machine_memory().map(|it| it / 10 * 9),
        it => Some(it.saturating_mul(GB)),
    };
    let (mut before, mut pause) = (None, PAUSE);
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        let (leader, folder) = (command.leader, command.folder.clone());
        let now = paths::run_blocking(move || Look {
            weight: leader.map(|it| Table::read().weigh(it)).unwrap_or_default(),
            free: disk::free_bytes(&folder),
        });
        let now = now.await.unwrap_or_default();
        if let Some(why) = passed(command.limits, memory, before.replace(now), now) {
            return why;
        }
        pause = PAUSE.max(began.elapsed() * SHARE);
    }
}

fn passed(limits: CommandLimits, memory: Option<u64>, before: Option<Look>, now: Look) -> Option<String> {
    let CommandLimits { max_processes, min_free_gb, .. } = limits;
    let ProcessWeight { processes, memory: used } = now.weight;
    if max_processes > 0 && processes > max_processes {
        let what = format!("it had {processes} processes, and {max_processes} are the most");
        return Some(stop_reason(&what, "tools.shell.maxProcesses"));
    }
    if let Some(most) = memory.filter(|it| used > *it) {
        let what = format!("its processes used more than {} GB of memory", most / GB);
        return Some(stop_reason(&what, "tools.shell.maxMemoryGb"));
    }
    // Who makes room goes on.
    let falls = |free: u64| before.and_then(|it| it.free).is_some_and(|before| free < before);
    let is_short = now.free.is_some_and(|it| it < min_free_gb.saturating_mul(GB) && falls(it));
    is_short
        .then(|| stop_reason(&format!("less than {min_free_gb} GB of the disk are free"), "tools.shell.minFreeDiskGb"))
}

fn stop_reason(why: &str, key: &str) -> String {
    format!("Command was stopped, because {why}. The user's setting {key} says so.")
}

#[cfg(test)]
mod tests {
    use super::{CommandLimits, GB, Look, ProcessWeight, passed};

    #[test]
    fn who_passes_a_limit_is_stopped_with_its_name() {
        let limits = CommandLimits { max_processes: 10, max_memory_gb: 2, min_free_gb: 1 };
        let none = CommandLimits { max_processes: 0, min_free_gb: 0, ..limits };
        let look = |processes, memory, free| Look { weight: ProcessWeight { processes, memory }, free };
        let full = Some(GB - 5);
        for (limits, before, now, want) in [
            (limits, None, look(10, 2 * GB, Some(GB)), None),
            (limits, None, look(11, 0, None), Some("maxProcesses")),
            (none, None, look(11, 0, Some(0)), None),
            (limits, None, look(1, 2 * GB + 1, None), Some("maxMemoryGb")),
            (limits, None, look(1, 1, full), None),
            (limits, Some(look(1, 1, Some(2 * GB))), look(1, 1, full), Some("minFreeDiskGb")),
            (limits, Some(look(1, 1, full)), look(1, 1, full), None),
            (limits, Some(look(1, 1, Some(0))), look(1, 1, full), None),
        ] {
            let memory = Some(limits.max_memory_gb * GB);
            let reason = passed(limits, memory, before, now);
            assert_eq!(reason.is_some(), want.is_some(), "{now:?}");
            assert!(want.is_none_or(|it| reason.unwrap().contains(it)), "{now:?}");
        }
    }
}
