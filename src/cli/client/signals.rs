//! Signals of the user or the system to `castor run` and `castor chat`.

use std::io;

use tokio::sync::mpsc;

/// Signals that may wait.
const QUEUE: usize = 16;

/// Signals of the user or the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserSignal {
    /// Ctrl-C: cancel; the second one quits.
    Interrupt,
    /// Quit at once.
    Terminate,
}

/// # Errors
/// When signals cannot be heard.
#[cfg(unix)]
pub fn listen_signals() -> io::Result<mpsc::Receiver<UserSignal>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (to, signals) = mpsc::channel(QUEUE);
    for (kind, meaning) in [
        (SignalKind::interrupt(), UserSignal::Interrupt),
        (SignalKind::terminate(), UserSignal::Terminate),
        (SignalKind::hangup(), UserSignal::Terminate),
        // It would leave the terminal as it is.
        (SignalKind::quit(), UserSignal::Terminate),
    ] {
        let (mut heard, to) = (signal(kind)?, to.clone());
        tokio::spawn(async move { while heard.recv().await.is_some() && to.send(meaning).await.is_ok() {} });
    }
    Ok(signals)
}

/// # Errors
/// When signals cannot be heard.
#[cfg(not(unix))]
pub fn listen_signals() -> io::Result<mpsc::Receiver<UserSignal>> {
    let (to, signals) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        while tokio::signal::ctrl_c().await.is_ok() && to.send(UserSignal::Interrupt).await.is_ok() {}
    });
    Ok(signals)
}
