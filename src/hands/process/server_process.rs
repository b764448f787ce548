//! The process of an MCP server or another agent: its end, and what it logged about that.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::ChildStderr,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{Exit, ObeyedFindings, ProcessGuard, program_rights::ProcessRefusals};
use crate::disk;
use castor_base::{
    path::AbsPath,
    sandbox::{Confinement, Denial},
    text,
};

/// How long a server that closed the connection may take to exit and say why.
const FAREWELL: Duration = Duration::from_millis(200);
/// One line of a server's log, in bytes.
const MAX_LINE: u64 = 4 * 1024;
/// Lines about the error that are shown: `npm error code E404`, and what that means.
const MAX_ERRORS: usize = 2;
/// What is kept of its log for whoever asks next, in bytes.
const MAX_TAIL: usize = 4 * 1024;
/// Longest line that is shown, in characters.
const MAX_SHOWN: usize = 300;

/// The process of a server. Dropping it ends all its processes.
pub struct ServerProcess {
    life: ProcessGuard,
    exit: Option<Exit>,
    /// Ends with stderr.
    log: JoinHandle<LogDigest>,
    trace: ProcessTrace,
}

/// The newest lines of a server's log, until somebody takes them. Cheap to clone: all hold the same.
#[derive(Clone, Default)]
struct LogTail(Arc<Mutex<String>>);

impl LogTail {
    fn add(&self, lines: &str) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *kept = text::tail(&format!("{kept}{lines}"), MAX_TAIL).to_owned();
    }

    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What tells of a running process what it lacks: its log, and what its sandbox refused. Cheap to clone.
#[derive(Clone, Default)]
pub struct ProcessTrace {
    log: LogTail,
    refusals: ProcessRefusals,
}

impl ProcessTrace {
    /// What it lacked for its work since this was asked last. `failure`: what it answered; `None`: its work went well.
    pub fn take_lack(&self, it: &Confinement, failure: Option<&str>) -> Option<Denial> {
        let log = self.log.take();
        match failure {
            Some(why) => self.refusals.lack_of_failure(it, &format!("{log}\n{why}")),
            None => self.refusals.lack_of_work(it, &log),
        }
    }
}

impl ServerProcess {
    pub fn new(life: ProcessGuard, stderr: ChildStderr, secrets: Vec<String>) -> Self {
        let trace = ProcessTrace { log: LogTail::default(), refusals: life.refusals() };
        Self { life, exit: None, log: tokio::spawn(log(stderr, secrets, trace.log.clone())), trace }
    }

    pub fn trace(&self) -> ProcessTrace {
        self.trace.clone()
    }

    /// New configuration from its start is quarantined; what appears between its calls may be the user's.
    pub fn startup_findings(&self) -> ObeyedFindings {
        self.life.settle()
    }

    /// Waits for its end, and for what it said before. A child of its may hold its stdout open: that says nothing more.
    pub async fn wait_for_exit(&mut self) {
        if self.exit.is_none() {
            self.exit = Some(self.life.wait().await);
        }
        sleep(FAREWELL).await;
    }

    /// Ends it with all its children, and waits until the last is gone.
    pub async fn end(&mut self) {
        if let Some(it) = self.life.end().await {
            self.exit.get_or_insert(it);
        }
    }

    /// What is found when it is gone.
    pub async fn final_findings(&self) -> ObeyedFindings {
        self.life.final_findings().await
    }

    /// Why it is gone, as far as it said so.
    pub async fn exit_reason(mut self) -> String {
        if self.exit.is_none() {
            self.exit = timeout(FAREWELL, self.life.wait()).await.ok();
        }
        let how = match self.exit {
            Some(Exit { code: Some(0), .. }) => "it ended (exit code 0)".to_owned(),
            Some(Exit { code: Some(code), .. }) => format!("it crashed (exit code {code})"),
            Some(Exit { signal: Some(signal), .. }) => format!("it crashed ({signal})"),
            Some(_) | None => "it closed the connection".to_owned(),
        };
        let log = timeout(FAREWELL, self.log).await.ok().and_then(Result::ok).unwrap_or_default();
        match log.in_words() {
            it if it.is_empty() => how,
            it => format!("{how}: {it}"),
        }
    }
}

/// What a server's log says of its end.
#[derive(Debug, Default)]
struct LogDigest {
    /// The first lines that name an error.
    errors: Vec<String>,
    last: String,
    /// The file that it names last, such as npm's `…-debug-0.log`.
    file: Option<AbsPath>,
}

impl LogDigest {
    fn add(&mut self, line: &str) {
        // Code and stack frames are indented.
        let is_error = ["error", "fatal", "panic"].iter().any(|it| line.to_ascii_lowercase().contains(it))
            && !line.starts_with(char::is_whitespace);
        let file =
            line.split_whitespace().find(|it| it.starts_with('/') && it.ends_with(".log")).and_then(AbsPath::new);
        if is_error && file.is_none() && self.errors.len() < MAX_ERRORS {
            self.errors.push(line.trim().to_owned());
        }
        self.file = file.or(self.file.take());
        self.last = line.trim().to_owned();
    }

    fn in_words(&self) -> String {
        let shown = match self.errors.as_slice() {
            [] => self.last.clone(),
            errors => errors.join("; "),
        };
        let shown = text::first_line(&shown, MAX_SHOWN);
        match self.file.as_ref().filter(|it| disk::metadata(it).is_ok()) {
            Some(file) if !shown.contains(&file.to_string()) => format!("{shown} (its log: {file})"),
            _ => shown,
        }
    }
}

/// Passes a server's log on to ours, and keeps what it says of errors. Some servers print what they were started with:
/// secrets do not go further, neither to the log nor to the model.
async fn log(stderr: ChildStderr, secrets: Vec<String>, tail: LogTail) -> LogDigest {
    let (mut reader, mut line, mut digest) = (BufReader::new(stderr), Vec::new(), LogDigest::default());
    loop {
        line.clear();
        // A line without an end is taken in pieces.
        match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return digest,
            Ok(_) => (),
        }
        let text =
            secrets.iter().fold(String::from_utf8_lossy(&line).into_owned(), |it, secret| it.replace(secret, "***"));
        if !text.trim().is_empty() {
            tracing::debug!(target: "castor_hands::server::stderr", "{}", text.trim_end());
            digest.add(&text);
            tail.add(&text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::LogDigest;

    #[test]
    fn the_first_errors_and_a_log_that_is_there_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x-debug-0.log");
        let check = |lines: &[&str], expected: &str| {
            let mut digest = LogDigest::default();
            lines.iter().for_each(|it| digest.add(it));
            assert_eq!(digest.in_words(), expected, "{lines:?}");
        };
        let named = format!("npm error A complete log of this run can be found in: {}", file.display());
        let npm = ["npm warn old", "npm error code E404", "npm error 404 Not Found", "npm error 404 again", &named];
        check(&npm, "npm error code E404; npm error 404 Not Found");
        #[allow(clippy::disallowed_methods)]
        std::fs::write(&file, "").unwrap();
        check(&npm, &format!("npm error code E404; npm error 404 Not Found (its log: {})", file.display()));
        let node = ["node:internal:1228", "  throw err; // Error", "Error: Cannot find module '/x'", "Node.js v22"];
        check(&node, "Error: Cannot find module '/x'");
        check(&["starting", "giving up"], "giving up");
        check(&[], "");
    }
}
