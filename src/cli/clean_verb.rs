//! `castor clean`: shows the size of checkpoints and deletes them.

use std::{
    io::Write,
    time::{Duration, UNIX_EPOCH},
};

use clap::Args;

use crate::cli::sessions::CommandError;
use castor_agent::server::tasks::checkpoint_tasks;
use castor_hands::{
    checkpoints::{Retention, sweep},
    disk,
};
use castor_store::sessions::SessionStore;

/// Shows how much room checkpoints take, and frees what no open session needs.
#[derive(Args, Clone, Debug)]
pub struct CleanArgs {
    /// Without asking: the changes of all sessions that are closed can no longer be undone
    #[arg(short, long)]
    pub yes: bool,
}

/// `ask` puts a question to the user; `None`: no user is there.
///
/// # Errors
/// With the line for stderr.
pub fn run(
    args: &CleanArgs,
    store: &SessionStore,
    now_ms: u64,
    out: &mut dyn Write,
    ask: Option<&mut dyn FnMut(&str) -> bool>,
) -> Result<(), CommandError> {
    let failed = |it: &dyn ToString| CommandError::new(it.to_string());
    let home = store.home();
    // What belongs to no session any more goes in any case.
    checkpoint_tasks::sweep(store, now_ms).map_err(|it| failed(&it))?;
    let emptied = store.sweep_temporary(now_ms);
    if emptied > 0 {
        writeln!(out, "Removed the temporary files of {emptied} session(s) that were closed a week ago or earlier.")?;
    }
    let size = disk::tree_size(&home.join("checkpoints"), usize::MAX);
    writeln!(out, "Checkpoints take {} in {}.", in_words(size), home.join("checkpoints"))?;
    let wanted = match (args.yes, ask) {
        _ if size == 0 => false,
        (true, _) => true,
        (false, Some(ask)) => ask("Free them? What closed sessions changed can no longer be undone then."),
        (false, None) => {
            writeln!(out, "`castor clean --yes` frees those of closed sessions.")?;
            false
        }
    };
    if wanted {
        let retention = Retention { store: 0, used_since: UNIX_EPOCH + Duration::from_millis(now_ms) };
        let swept = sweep(home, &retention, &|_| true).map_err(|it| failed(&it))?;
        writeln!(out, "Freed {}, of {} session(s).", in_words(swept.bytes), swept.n_sessions)?;
    }
    Ok(())
}

fn in_words(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{} MB", bytes / 1_000_000),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}
