//! Piped processes: stdin, stdout and stderr each on a pipe.

use std::{io, os::unix::process::ExitStatusExt, process::Stdio, sync::Arc};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{
    Exit, Groups, ObeyedFindings, Spawn, program_rights::ProcessRefusals, sandbox::Quarantine, signal_name, spawn_child,
};

/// A process that we started, and its streams.
pub struct PipedProcess {
    pub life: ProcessGuard,
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// The life of a process. Dropping it ends the process with all its children.
pub struct ProcessGuard {
    child: tokio::process::Child,
    pid: u32,
    groups: Groups,
    over: bool,
    quarantine: Arc<Quarantine>,
    refusals: ProcessRefusals,
}

/// Whose findings these are, in the log.
const WHO: &str = "a hook or a server";

impl Spawn<'_> {
    /// Starts it with three pipes, whatever `stdin` says. Must be called within a tokio runtime with I/O.
    ///
    /// # Errors
    /// When the system cannot start it.
    pub fn start_piped(&self, groups: &Groups) -> io::Result<PipedProcess> {
        let mark = groups.mark();
        let (mut command, rest) = self.bare_command(&mark)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, placeholders) = spawn_child(command, rest)?;
        let streams = (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = streams else {
            _ = child.start_kill();
            return Err(io::Error::other("the process ended before it could be spoken to"));
        };
        let quarantine = placeholders.quarantine();
        let refusals = ProcessRefusals { record: placeholders.record(), network: placeholders.network_record() };
        groups.add(pid, mark, placeholders);
        let life = ProcessGuard { child, pid, groups: groups.clone(), over: false, quarantine, refusals };
        Ok(PipedProcess { life, stdin, stdout, stderr })
    }
}

impl ProcessGuard {
    /// Waits for its end. Dropping the future loses nothing.
    pub async fn wait(&mut self) -> Exit {
        let status = self.child.wait().await.ok();
        let left = self.groups.leader_exited(self.pid).await;
        // Children that it left behind are ended with this value.
        self.over = left.is_empty();
        let signal = status.and_then(|it| it.signal()).map(signal_name);
        let findings = log_findings(self.quarantine.findings());
        let end = self.refusals.read(status.and_then(|it| it.code()));
        Exit { signal, left_running: left, findings, ..end }
    }

    /// Ends it with all its children, and waits until the last is gone. Its exit, unless that was waited for before.
    pub async fn end(&mut self) -> Option<Exit> {
        if self.over {
            return None;
        }
        self.groups.end(self.pid);
        let exit = self.wait().await;
        if !self.over {
            self.groups.release_group(self.pid).await;
            self.over = true;
        }
        Some(exit)
    }

    /// What the sandbox refused it, by the time that this is read.
    pub fn refusals(&self) -> ProcessRefusals {
        self.refusals.clone()
    }

    /// What is found when the last of it is gone, beside what was told by then.
    pub fn final_findings(&self) -> impl Future<Output = ObeyedFindings> + Send + use<> {
        self.quarantine.clone().final_findings()
    }

    /// For long processes: quarantines what it made by now; later files may be the user's.
    pub fn settle(&self) -> ObeyedFindings {
        log_findings(self.quarantine.settle())
    }
}

fn log_findings(findings: ObeyedFindings) -> ObeyedFindings {
    if let Some(it) = findings.in_words(WHO) {
        tracing::warn!("{it}");
    }
    findings
}

impl Drop for ProcessGuard {
    fn drop(&mut self) {
        if !self.over {
            self.groups.end(self.pid);
        }
    }
}
