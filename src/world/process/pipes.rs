//! Processes that are talked with: stdin, stdout and stderr each on a pipe of its own.

use std::{io, os::unix::process::ExitStatusExt, process::Stdio, sync::Arc};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{Exit, Findings, Groups, Spawn, begin, sandbox::Quarantine, signal_name};

/// A process that we started, and its streams.
pub struct Piped {
    pub life: Life,
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// The life of a process. Dropping it ends the process with all its children.
pub struct Life {
    child: tokio::process::Child,
    pid: u32,
    groups: Groups,
    over: bool,
    quarantine: Arc<Quarantine>,
}

/// Whose findings these are, in the log.
const WHO: &str = "a hook or a server";

impl Spawn<'_> {
    /// Starts it with three pipes, whatever `stdin` says. Must be called within a tokio runtime with I/O.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub fn start_piped(&self, groups: &Groups) -> io::Result<Piped> {
        let mark = groups.mark();
        let (mut command, rest) = self.bare_command(&mark)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, placeholders) = begin(command, rest)?;
        let streams = (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = streams else {
            _ = child.start_kill();
            return Err(io::Error::other("the process ended before it could be spoken to"));
        };
        let quarantine = placeholders.quarantine();
        groups.add(pid, mark, placeholders);
        let life = Life { child, pid, groups: groups.clone(), over: false, quarantine };
        Ok(Piped { life, stdin, stdout, stderr })
    }
}

impl Life {
    /// Waits for its end. Dropping the future loses nothing.
    pub async fn wait(&mut self) -> Exit {
        let status = self.child.wait().await.ok();
        let left = self.groups.exited(self.pid).await;
        // Children that it left behind are ended with this value.
        self.over = left.is_empty();
        let signal = status.and_then(|it| it.signal()).map(signal_name);
        let findings = logged(self.quarantine.findings());
        Exit { code: status.and_then(|it| it.code()), signal, left, findings }
    }

    /// What is found when the last of it is gone, beside what was told by then.
    pub fn gone(&self) -> impl Future<Output = Findings> + Send + use<> {
        self.quarantine.clone().gone()
    }

    /// It goes on for long: what it made by now is put aside, and what comes later may be the user's.
    pub fn settle(&self) -> Findings {
        logged(self.quarantine.settle())
    }
}

fn logged(findings: Findings) -> Findings {
    if let Some(it) = findings.in_words(WHO) {
        tracing::warn!("{it}");
    }
    findings
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.over {
            self.groups.end(self.pid);
        }
    }
}
