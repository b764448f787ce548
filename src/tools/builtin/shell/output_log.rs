//! Output log of a command that outlives its call. The output is still read, or SIGPIPE would kill the command.

use std::io;

use tokio::{fs::File, io::AsyncWriteExt};

use super::completion::Completion;
use crate::builtin::private_files;
use castor_base::{
    ansi::plain,
    path::AbsPath,
    terminal::{CommandEvent, Exit, RunningCommand},
};

/// The longest log, in bytes: a forgotten server must not fill the disk.
const LONGEST: usize = 64 * 1024 * 1024;

/// A log that is being written.
pub struct OutputLog {
    file: File,
    bytes_left: usize,
}

impl OutputLog {
    /// A new log in `scratch`, with what was printed so far.
    pub async fn create(scratch: &AbsPath, so_far: &str) -> io::Result<(AbsPath, Self)> {
        let dir = scratch.join("background-processes");
        private_files::create_private_dir(dir.as_path())?;
        let path = dir.join(format!("background-{}.log", uuid::Uuid::now_v7().simple()));
        let mut res = Self { file: File::from_std(private_files::create_log(path.as_path())?), bytes_left: LONGEST };
        res.write(so_far).await;
        Ok((path, res))
    }

    /// A failure (the disk is full) ends the log, not the command.
    pub async fn write(&mut self, text: &str) {
        if self.bytes_left == 0 {
            return;
        }
        self.bytes_left = self.bytes_left.saturating_sub(text.len());
        let end = if self.bytes_left == 0 { "\n[The log is full: nothing more is kept.]\n" } else { "" };
        let written = async {
            self.file.write_all(text.as_bytes()).await?;
            self.file.write_all(end.as_bytes()).await?;
            self.file.flush().await
        };
        if written.await.is_err() {
            self.bytes_left = 0;
        }
    }
}

/// Processes that are left when nothing is printed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemainingProcess {
    Nobody,
    /// Perhaps a process that closed all outputs.
    Somebody,
}

/// Reads on until no process can print any more; reports the command's own end.
pub async fn log_output(
    running: &mut dyn RunningCommand,
    log: &mut Option<OutputLog>,
    completion: &mut Option<Completion>,
) -> RemainingProcess {
    let (mut fresh, mut left) = (String::new(), RemainingProcess::Somebody);
    loop {
        let (text, exit) = match running.next().await {
            CommandEvent::Output(text) => (text, None),
            CommandEvent::Exited(exit) => {
                if exit.left_running.is_empty() {
                    left = RemainingProcess::Nobody;
                }
                (format!("\n{}\n", last_line(&exit)), Some(exit))
            }
            CommandEvent::OutputPending => continue,
            CommandEvent::Closed | CommandEvent::TerminalLost(_) => return left,
        };
        fresh.push_str(&text);
        let (shown, rest) = plain(&fresh);
        if let Some(log) = log {
            log.write(&shown).await;
        }
        match (&mut *completion, exit) {
            (Some(it), None) => it.add_output(&shown),
            (_, Some(exit)) => {
                // Its log is whole by now: the model may read it at once.
                if let Some(it) = completion.take() {
                    it.report_end(&exit).await;
                }
            }
            (None, None) => (),
        }
        fresh = rest.to_owned();
    }
}

fn last_line(exit: &Exit) -> String {
    match (exit.code, &exit.signal) {
        (Some(code), _) => format!("[Exit Code: {code}]"),
        (None, Some(signal)) => format!("[Signal: {signal}]"),
        (None, None) => "[Ended]".to_owned(),
    }
}
