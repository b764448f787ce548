//! Processes that are talked with: stdin, stdout and stderr each on a pipe of its own.

use std::{io, os::unix::process::ExitStatusExt, process::Stdio, sync::Arc};

use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{Exit, Findings, Groups, Later, Spawn, begin, sandbox::Before, signal_name};

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
    before: Arc<Before>,
}

/// Who is looked back at, in the log.
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
        let (mut child, held) = begin(command, rest)?;
        let streams = (child.id(), child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(pid), Some(stdin), Some(stdout), Some(stderr)) = streams else {
            _ = child.start_kill();
            return Err(io::Error::other("the process ended before it could be spoken to"));
        };
        let before = held.before();
        before.begins();
        groups.add(pid, mark, held);
        let life = Life { child, pid, groups: groups.clone(), over: false, before };
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
        let findings = self.look_back();
        Exit { code: status.and_then(|it| it.code()), signal, left, findings }
    }

    /// What is found when the last of it is gone, beside what was told by then.
    pub fn gone(&self) -> impl Future<Output = Findings> + Send + use<> {
        self.before.clone().gone()
    }

    /// Puts aside what is new and somebody would obey, once: what comes later may be anybody's.
    fn look_back(&mut self) -> Findings {
        let res = std::mem::take(&mut self.before).findings();
        if let Some(it) = res.in_words(WHO) {
            tracing::warn!("{it}");
        }
        res
    }

    /// The same, of who goes on: what was held is looked at again by what this returns.
    pub fn goes_on_alone(&mut self) -> (Findings, Later) {
        let before = self.before.clone();
        (self.look_back(), before.later())
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        if !self.over {
            self.groups.end(self.pid);
        }
    }
}
