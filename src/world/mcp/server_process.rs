//! The process of an MCP server: its end, and the last line that it logged.

use std::time::Duration;

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::ChildStderr,
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    base::text,
    world::process::{Exit, ObeyedFindings, ProcessGuard},
};

/// How long a server that closed the connection may take to exit and say why.
const FAREWELL: Duration = Duration::from_millis(200);
/// One line of a server's log, in bytes.
const MAX_LINE: u64 = 4 * 1024;

/// The process of a server. Dropping it ends all its processes.
pub(super) struct ServerProcess {
    life: ProcessGuard,
    exit: Option<Exit>,
    /// Ends with stderr; returns its last line.
    log: JoinHandle<String>,
}

impl ServerProcess {
    pub(super) fn new(life: ProcessGuard, stderr: ChildStderr, secrets: Vec<String>) -> Self {
        Self { life, exit: None, log: tokio::spawn(log(stderr, secrets)) }
    }

    /// New configuration from its start is quarantined; what appears between its calls may be the user's.
    pub(super) fn startup_findings(&self) -> ObeyedFindings {
        self.life.settle()
    }

    /// Waits for its end, and for what it said before. A child of its may hold its stdout open: that says nothing more.
    pub(super) async fn wait_for_exit(&mut self) {
        if self.exit.is_none() {
            self.exit = Some(self.life.wait().await);
        }
        sleep(FAREWELL).await;
    }

    /// Why it is gone, as far as it said so.
    pub(super) async fn exit_reason(mut self) -> String {
        if self.exit.is_none() {
            self.exit = timeout(FAREWELL, self.life.wait()).await.ok();
        }
        let how = match self.exit {
            Some(Exit { code: Some(0), .. }) => "it ended (exit code 0)".to_owned(),
            Some(Exit { code: Some(code), .. }) => format!("it crashed (exit code {code})"),
            Some(Exit { signal: Some(signal), .. }) => format!("it crashed ({signal})"),
            Some(_) | None => "it closed the connection".to_owned(),
        };
        let last = timeout(FAREWELL, self.log).await.ok().and_then(Result::ok).unwrap_or_default();
        match text::first_line(&last, 300) {
            it if it.is_empty() => how,
            it => format!("{how}: {it}"),
        }
    }
}

/// Passes a server's log on to ours; returns its last line that says something. Some servers print what they were
/// started with: secrets do not go further, neither to the log nor, with the last line, to the model.
async fn log(stderr: ChildStderr, secrets: Vec<String>) -> String {
    let (mut reader, mut line, mut last) = (BufReader::new(stderr), Vec::new(), String::new());
    loop {
        line.clear();
        // A line without an end is taken in pieces.
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => (),
        }
        let text =
            secrets.iter().fold(String::from_utf8_lossy(&line).into_owned(), |it, secret| it.replace(secret, "***"));
        if !text.trim().is_empty() {
            tracing::debug!(target: "castor::mcp::stderr", "{}", text.trim_end());
            last = text.trim().to_owned();
        }
    }
}
