//! Watches a command until it ends, is cancelled, or is silent for too long.

use std::time::Duration;

use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{live::Live, output::Output};
use crate::base::terminal::{Exit, Happening, Running};

/// How watching ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    Exited(Exit),
    Cancelled,
    /// It printed nothing for this long.
    Silent(Duration),
    /// It still runs, as wished.
    Running,
    /// Its terminal was lost: why.
    Lost(String),
}

/// When to stop watching.
#[derive(Clone, Debug, Default)]
pub struct Until {
    pub cancel: CancellationToken,
    /// The longest silence.
    pub silence: Option<Duration>,
    /// For commands that should go on in the background.
    pub delay: Option<Duration>,
}

/// Watches a command; what it prints goes to `output` and `live`. Ends it unless it goes on as wished.
pub async fn watch(running: &mut dyn Running, until: &Until, output: &mut Output, live: &mut Live) -> Ending {
    let started = Instant::now();
    let mut heard = started;
    let res = loop {
        tokio::select! {
            // A cancel comes first, however much is printed.
            biased;
            () = until.cancel.cancelled() => break Ending::Cancelled,
            () = live.step() => (),
            () = after(started, until.delay) => break Ending::Running,
            it = running.next() => match it {
                Happening::Output(text) => {
                    heard = Instant::now();
                    if let Some(it) = output.push(&text) {
                        live.push(it);
                    }
                }
                Happening::Heard => heard = Instant::now(),
                Happening::Exited(exit) => break Ending::Exited(exit),
                Happening::Closed => break Ending::Exited(Exit::default()),
                Happening::Lost(why) => break Ending::Lost(why),
            },
            () = after(heard, until.silence) => break Ending::Silent(until.silence.unwrap_or_default()),
        }
    };
    if matches!(res, Ending::Cancelled | Ending::Silent(_)) {
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
