//! The limit of a session's temporary files: a command that fills them is stopped.

use std::time::{Duration, Instant};

use crate::{
    base::path::AbsPath,
    world::{disk, tools::paths},
};

/// What the session's folder for temporary files holds at most, in bytes.
const MAX_BYTES: u64 = 2 << 30;
/// Entries that are looked at; those beyond are not counted.
const MAX_ENTRIES: usize = 100_000;
const PAUSE: Duration = Duration::from_secs(1);
/// How many times as long as a look takes it waits for the next one.
const SHARE: u32 = 20;

/// To the model, of a command that was stopped.
pub const STOPPED: &str = "Command was stopped, because the session's folder for temporary files (/tmp) holds more than \
                           2 GB. Remove what is no longer needed there, or write to the workspace.";
/// The same, of one that ended.
pub const FULL: &str = "The session's folder for temporary files (/tmp) holds more than 2 GB: the next command that adds to \
                        it is stopped. Remove what is no longer needed there.";

/// Waits until the folder is full, and fuller than before: what makes room there goes on.
pub async fn wait_until_full(folder: Option<AbsPath>) {
    let Some(folder) = folder else { return std::future::pending().await };
    let (mut before, mut pause) = (None, PAUSE);
    loop {
        tokio::time::sleep(pause).await;
        let began = Instant::now();
        let now = size(&folder).await;
        if is_overrun(before.replace(now), now) {
            return;
        }
        pause = PAUSE.max(began.elapsed() * SHARE);
    }
}

pub async fn is_full(folder: &AbsPath) -> bool {
    size(folder).await > MAX_BYTES
}

async fn size(folder: &AbsPath) -> u64 {
    let folder = folder.clone();
    paths::run_blocking(move || disk::tree_size(&folder, MAX_ENTRIES)).await.unwrap_or_default()
}

/// `before`: at the look before, if there was one.
fn is_overrun(before: Option<u64>, now: u64) -> bool {
    now > MAX_BYTES && before.is_some_and(|it| now > it)
}

#[cfg(test)]
mod tests {
    use super::{MAX_BYTES, is_overrun};

    #[test]
    fn only_who_fills_it_further_is_stopped() {
        for (before, now, want) in [
            (None, MAX_BYTES + 5, false),
            (Some(0), MAX_BYTES, false),
            (Some(0), MAX_BYTES + 1, true),
            (Some(MAX_BYTES + 5), MAX_BYTES + 5, false),
            (Some(MAX_BYTES + 5), MAX_BYTES + 1, false),
            (Some(MAX_BYTES + 5), MAX_BYTES + 9, true),
        ] {
            assert_eq!(is_overrun(before, now), want, "{before:?} {now}");
        }
    }
}
