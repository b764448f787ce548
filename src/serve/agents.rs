//! Agent processes: started for a principal, fed line by line, read until they end.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{ChildStderr, ChildStdin, ChildStdout},
    sync::mpsc,
};

use super::principal::AgentStart;
use castor_base::text;
use castor_hands::process::{Groups, PipedProcess, ProcessGuard, Spawn, Stdin};
use castor_wire::jsonrpc::frame::{Frame, Framer};

/// The longest line of an agent: a whole conversation may be in one.
const MAX_LINE: usize = 256 << 20;
const READ: usize = 256 << 10;
const MAX_STDERR: u64 = 4 << 10;
/// Bytes that an agent has not taken yet, above which nothing more is sent to it.
const MAX_QUEUED: usize = 64 << 20;

/// What an agent does, and which one.
pub struct AgentNews {
    pub principal: String,
    /// Of all that were started.
    pub number: u64,
    pub what: AgentEvent,
}

pub enum AgentEvent {
    Lines(Vec<Bytes>),
    /// One line of its stderr.
    Logged(String),
    /// In words.
    Ended(String),
}

/// A running agent. Dropping it closes its input, and it ends.
pub struct RunningAgent {
    pub number: u64,
    lines: mpsc::UnboundedSender<Vec<u8>>,
    queued: Arc<AtomicUsize>,
}

impl RunningAgent {
    /// Starts it. Must be called within a runtime.
    ///
    /// # Errors
    /// In words.
    pub fn start(
        start: &AgentStart,
        program: &str,
        (principal, number): (&str, u64),
        groups: &Groups,
        news: mpsc::Sender<AgentNews>,
    ) -> Result<Self, String> {
        let args: Vec<&str> = start.args.iter().map(String::as_str).collect();
        let spawn = Spawn {
            program,
            args: &args,
            cwd: &start.cwd,
            env: &start.env,
            stdin: Stdin::Piped,
            confined: start.confined.as_ref(),
        };
        let started = spawn.start_piped(groups).map_err(|it| format!("the agent does not start: {it}"))?;
        let PipedProcess { life, stdin, stdout, stderr } = started;
        let (lines, queue) = mpsc::unbounded_channel();
        let queued = Arc::new(AtomicUsize::new(0));
        tokio::spawn(write_lines(stdin, queue, queued.clone()));
        let to = Outlet { principal: principal.to_owned(), number, news };
        let last = tokio::spawn(read_stderr(stderr, to.clone()));
        tokio::spawn(async move {
            read_lines(stdout, &to).await;
            let why = end(life, last).await;
            to.send(AgentEvent::Ended(why)).await;
        });
        Ok(Self { number, lines, queued })
    }

    pub fn send(&self, line: Vec<u8>) {
        self.queued.fetch_add(line.len(), Ordering::Relaxed);
        // One that is gone says so by itself.
        _ = self.lines.send(line);
    }

    /// Tells whether it takes what it is sent.
    pub fn keeps_up(&self) -> bool {
        self.queued.load(Ordering::Relaxed) < MAX_QUEUED
    }
}

#[derive(Clone)]
struct Outlet {
    principal: String,
    number: u64,
    news: mpsc::Sender<AgentNews>,
}

impl Outlet {
    /// Tells whether anybody listens.
    async fn send(&self, what: AgentEvent) -> bool {
        let news = AgentNews { principal: self.principal.clone(), number: self.number, what };
        self.news.send(news).await.is_ok()
    }
}

async fn write_lines(mut stdin: ChildStdin, mut queue: mpsc::UnboundedReceiver<Vec<u8>>, queued: Arc<AtomicUsize>) {
    while let Some(line) = queue.recv().await {
        let written = stdin.write_all(&line).await;
        queued.fetch_sub(line.len(), Ordering::Relaxed);
        if written.is_err() {
            return;
        }
    }
}

async fn read_lines(mut stdout: ChildStdout, to: &Outlet) {
    let mut framer = Framer::new(MAX_LINE);
    let mut buffer = vec![0; READ];
    loop {
        let n = stdout.read(&mut buffer).await.unwrap_or_default();
        if n == 0 {
            return;
        }
        framer.push(buffer.get(..n).unwrap_or_default());
        let mut lines = Vec::new();
        while let Some(frame) = framer.next() {
            match frame {
                // A copy: a line that waits for a slow client would keep all that was read with it.
                Frame::Line(it) => lines.push(Bytes::copy_from_slice(&it)),
                Frame::TooLong => tracing::warn!("a line of the agent of {} was too long", to.principal),
            }
        }
        if !lines.is_empty() && !to.send(AgentEvent::Lines(lines)).await {
            return;
        }
    }
}

/// Passes on what it logs; returns its last line.
async fn read_stderr(stderr: ChildStderr, to: Outlet) -> String {
    let mut reader = BufReader::new(stderr);
    let (mut line, mut last) = (Vec::new(), String::new());
    loop {
        line.clear();
        match (&mut reader).take(MAX_STDERR).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => (),
        }
        let said = String::from_utf8_lossy(&line).trim().to_owned();
        if !said.is_empty() {
            let of = if to.principal.is_empty() { "the user" } else { &to.principal };
            tracing::warn!("the agent of {of}: {said}");
            to.send(AgentEvent::Logged(said.clone())).await;
            last = said;
        }
    }
}

async fn end(mut life: ProcessGuard, last: tokio::task::JoinHandle<String>) -> String {
    let exit = life.wait().await;
    _ = life.end().await;
    let last = last.await.unwrap_or_default();
    let how = match (exit.code, exit.signal) {
        (Some(code), _) => format!("the agent ended with exit code {code}"),
        (None, Some(signal)) => format!("the agent was ended by {signal}"),
        (None, None) => "the agent ended".to_owned(),
    };
    if last.is_empty() { how } else { format!("{how}: {}", text::head(&last, 300)) }
}
