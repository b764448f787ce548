//! The agent process of `castor run`: start, stderr and end.

use std::{collections::VecDeque, ffi::OsString, io, process::ExitStatus, process::Stdio, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    sync::mpsc,
    time::timeout,
};

use crate::cli::terminal_text::clean_line;

/// How long an agent may take to leave once its stdin is closed. castor's own needs a second at most, on a machine that has
/// time for it; one that is killed leaves placeholders in its repository.
const GRACE: Duration = Duration::from_secs(3);
/// How long to wait for what a dead agent still has to tell on stderr.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// Lines of stderr that may wait to be shown; an agent that writes faster waits.
const STDERR_QUEUE: usize = 64;
const MAX_STDERR_LINE: u64 = 64 << 10;
/// Of stderr, the lines that are kept for the report of a sudden end.
const KEPT_LINES: usize = 5;

/// The agent's command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentCommand {
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Variables beside those of this process.
    pub env: Vec<(&'static str, &'static str)>,
}

/// A running agent; its whole process group is killed when this is dropped before [`Agent::wait_or_kill`].
pub struct Agent {
    child: Child,
    group: Option<i32>,
}

pub struct Pipes {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    /// Lines of stderr.
    pub stderr: mpsc::Receiver<String>,
}

// The companion CLI is a client outside the agent: what it starts is the agent, by the user's own command line.
#[allow(clippy::disallowed_methods)]
fn command(launch: &AgentCommand) -> Command {
    let mut command = Command::new(&launch.program);
    command.args(&launch.args).envs(launch.env.iter().copied());
    command
}

/// Starts an agent with its three streams piped, in a process group of its own: Ctrl-C on the terminal is ours.
pub fn spawn(launch: &AgentCommand) -> io::Result<(Agent, Pipes)> {
    let mut command = command(launch);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut child = command.spawn()?;
    let group = child.id().and_then(|it| i32::try_from(it).ok());
    let missing = || io::Error::other("the agent has no pipes");
    let stdin = child.stdin.take().ok_or_else(missing)?;
    let stdout = child.stdout.take().ok_or_else(missing)?;
    let stderr = child.stderr.take().ok_or_else(missing)?;
    let (to, lines) = mpsc::channel(STDERR_QUEUE);
    tokio::spawn(read_stderr(stderr, to));
    Ok((Agent { child, group }, Pipes { stdin, stdout, stderr: lines }))
}

async fn read_stderr(stderr: ChildStderr, to: mpsc::Sender<String>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(MAX_STDERR_LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => (),
        }
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        // Without a listener the pipe is still emptied: an agent must not hang on its log.
        _ = to.send(text).await;
    }
}

impl Agent {
    /// Waits for the exit that follows the end of stdin, kills the group after three seconds. Whether it left by itself.
    pub async fn wait_or_kill(mut self) -> bool {
        let left = timeout(GRACE, self.child.wait()).await.is_ok();
        if left {
            self.group = None;
            return true;
        }
        self.kill();
        // Only when it is gone others may tidy up.
        _ = timeout(GRACE, self.child.wait()).await;
        false
    }

    fn kill(&mut self) {
        #[cfg(unix)]
        if let Some(group) = self.group.take() {
            use nix::{sys::signal, unistd::Pid};
            _ = signal::killpg(Pid::from_raw(group), signal::Signal::SIGKILL);
        }
    }

    /// How it ended, once its stdout was closed.
    pub async fn exit_status(&mut self) -> Option<ExitStatus> {
        let status = timeout(GRACE, self.child.wait()).await.ok()?.ok()?;
        self.group = None;
        Some(status)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a process ended, in words.
pub fn describe_status(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("was killed by signal {signal}");
    }
    if let Some(code) = status.code() { format!("exited with status {code}") } else { "exited".to_owned() }
}

/// The last lines of an agent's stderr.
#[derive(Debug, Default)]
pub struct StderrTail(VecDeque<String>);

impl StderrTail {
    pub fn push(&mut self, line: &str) {
        let line = clean_line(line, 300);
        if line.is_empty() {
            return;
        }
        if self.0.len() == KEPT_LINES {
            self.0.pop_front();
        }
        self.0.push_back(line);
    }

    /// The line that says most about the end: the last one that speaks of an error, else the last.
    pub fn hint(&self) -> Option<&str> {
        let speaks = |it: &&String| it.to_lowercase().contains("error") || it.contains("panicked");
        self.0.iter().rev().find(speaks).or(self.0.back()).map(String::as_str)
    }

    /// Takes what still comes, until the pipe is closed or time is up: a grandchild may hold it open.
    pub async fn drain_stderr(&mut self, lines: &mut mpsc::Receiver<String>) {
        _ = timeout(LAST_WORDS, async {
            while let Some(line) = lines.recv().await {
                self.push(&line);
            }
        })
        .await;
    }
}

/// Splits a command line into words as a shell does, without expansions: quotes and backslashes.
pub fn split_words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(it) = chars.next() {
        match (quote, it) {
            (Some(open), _) if it == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(it);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let escaped = chars.next().ok_or("it ends in a backslash")?;
                word.get_or_insert_default().push(escaped);
            }
            (None, _) if it.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(it),
        }
    }
    match quote {
        Some(_) => Err("a quote is not closed"),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{AgentCommand, StderrTail, spawn, split_words};

    fn shell(script: &str) -> AgentCommand {
        AgentCommand { program: "sh".into(), args: vec!["-c".into(), script.into()], env: Vec::new() }
    }

    #[cfg(unix)]
    #[tokio::test(flavor = "current_thread")]
    async fn a_dead_agent_leaves_its_status_and_its_last_words() {
        let (mut agent, mut pipes) = spawn(&shell("echo starting >&2; echo error: no key >&2; exit 3")).unwrap();
        assert_eq!(agent.exit_status().await.unwrap().code(), Some(3));
        let mut tail = StderrTail::default();
        tail.drain_stderr(&mut pipes.stderr).await;
        assert_eq!(tail.hint(), Some("error: no key"));
    }

    #[cfg(unix)]
    #[tokio::test(flavor = "current_thread")]
    async fn an_agent_that_stays_is_killed_with_its_group() {
        let (agent, mut pipes) = spawn(&shell("sleep 1000 & echo up >&2; wait")).unwrap();
        assert_eq!(pipes.stderr.recv().await.as_deref(), Some("up"));
        drop(pipes.stdin);
        let start = Instant::now();
        assert!(!agent.wait_or_kill().await);
        // The grandchild held the pipe open, too.
        assert_eq!(pipes.stderr.recv().await, None);
        assert!(start.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn splits_words() {
        for (line, expected) in [
            ("a b  c", vec!["a", "b", "c"]),
            ("'a b' \"c d\"e ''", vec!["a b", "c de", ""]),
            (r#"a\ b "c\"d" 'e\f'"#, vec!["a b", "c\"d", "e\\f"]),
            ("  ", vec![]),
        ] {
            assert_eq!(split_words(line).unwrap(), expected, "{line}");
        }
        assert!(split_words("a 'b").is_err());
        assert!(split_words("a\\").is_err());
    }

    #[test]
    fn the_hint_is_the_last_error() {
        let mut tail = StderrTail::default();
        assert_eq!(tail.hint(), None);
        for line in ["starting", "error: no such model", "", "bye"] {
            tail.push(line);
        }
        assert_eq!(tail.hint(), Some("error: no such model"));
    }
}
