//! Watches a running command until it ends, is cancelled, or is silent for too long.

use std::{pin::pin, time::Duration};

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{
    limits::{LimitedCommand, wait_until_passed},
    live_output::LiveOutput,
    output::Output,
};
use castor_base::terminal::{CommandEvent, Exit, RunningCommand};

/// The end of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    Exited(Exit),
    Cancelled,
    /// It printed nothing for this long.
    TimedOut(Duration),
    /// It passed a limit: which, for the model, behind "was stopped, ".
    Stopped(String),
    /// It still runs, as wished.
    Running,
    /// Its terminal was lost: why.
    TerminalLost(String),
}

impl WatchEnd {
    /// Whether castor ended the command.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Cancelled | Self::TimedOut(_) | Self::Stopped(_))
    }
}

/// The limits of a watch.
#[derive(Clone, Debug, Default)]
pub struct WatchLimit {
    pub cancel: CancellationToken,
    /// The longest silence.
    pub silence: Option<Duration>,
    /// For commands that should go on in the background.
    pub delay: Option<Duration>,
    pub command: Option<LimitedCommand>,
}

/// Watches a command; what it prints goes to `output` and `live`. Ends it unless it goes on as wished.
pub async fn watch(
    running: &mut dyn RunningCommand,
    until: &WatchLimit,
    output: &mut Output,
    live: &mut LiveOutput,
) -> WatchEnd {
    let started = Instant::now();
    let mut heard = started;
    let mut passed = pin!(async {
        match until.command.clone() {
            Some(it) => wait_until_passed(it).await,
            None => std::future::pending().await,
        }
    });
    let res = loop {
        tokio::select! {
            // A cancel comes first, however much is printed.
            biased;
            () = until.cancel.cancelled() => break WatchEnd::Cancelled,
            () = live.step() => (),
            () = after(started, until.delay) => break WatchEnd::Running,
            it = running.next() => match it {
                CommandEvent::Output(text) => {
                    heard = Instant::now();
                    if let Some(it) = output.push(&text) {
                        live.push(it);
                    }
                }
                CommandEvent::OutputPending => heard = Instant::now(),
                CommandEvent::Exited(exit) => break WatchEnd::Exited(exit),
                CommandEvent::Closed => break WatchEnd::Exited(Exit::default()),
                CommandEvent::TerminalLost(why) => break WatchEnd::TerminalLost(why),
            },
            why = &mut passed => break WatchEnd::Stopped(why),
            () = after(heard, until.silence) => break WatchEnd::TimedOut(until.silence.unwrap_or_default()),
        }
    };
    if res.is_ended() {
        output.push(&running.end().await);
    }
    tokio::select! {
        biased;
        () = until.cancel.cancelled() => (),
        () = live.finish() => (),
    }
    res
}

async fn after(start: Instant, time: Option<Duration>) {
    match time {
        Some(it) => sleep_until(start + it).await,
        None => std::future::pending().await,
    }
}
