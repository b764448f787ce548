//! The stdio transport of MCP: a child process with JSON lines on stdin and stdout.

use std::time::Duration;

use rmcp::transport::async_rw::AsyncRwTransport;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, BufReader},
    process::ChildStderr,
    task::JoinHandle,
    time::{sleep, timeout},
};

use super::{
    ServerIdentity,
    server::{Listener, OpenConnection},
};
use crate::{
    base::{mcp::McpLink, sandbox::Confinement, text},
    world::{
        disk,
        process::{Exit, Groups, ObeyedFindings, PipedProcess, ProcessGuard, Spawn, Stdin},
        secrets::{name_looks_secret, value_looks_secret},
    },
};

/// The answer to session/new goes first: many starting processes take all cores.
const HEAD_START: Duration = Duration::from_millis(10);
/// How long a server that closed the connection may take to exit and say why.
const FAREWELL: Duration = Duration::from_millis(200);
/// One line of a server's log, in bytes.
const MAX_LINE: u64 = 4 * 1024;

/// Shorter ones are too likely to be a part of something else.
const MIN_SECRET: usize = 6;

/// The process of a server. Dropping it ends all its processes.
pub(super) struct Process {
    life: ProcessGuard,
    exit: Option<Exit>,
    /// Ends with stderr; returns its last line.
    log: JoinHandle<String>,
}

pub(super) async fn open(
    launch: &ServerIdentity,
    groups: &Groups,
    listener: Listener,
) -> Result<OpenConnection, String> {
    let McpLink::Stdio { command, args, env, cwd } = &launch.link else { return Err("it is no process".to_owned()) };
    sleep(HEAD_START).await;
    let scripts = launch.scripts.clone();
    let changed = tokio::task::spawn_blocking(move || disk::changed_file(&scripts)).await;
    if let Some(why) = changed.unwrap_or_else(|it| Some(it.to_string())) {
        return Err(why);
    }
    let cwd = cwd.as_ref().map_or_else(|| launch.cwd.clone(), |it| launch.cwd.join(it));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let confined = launch.confined.as_deref();
    let caches = confined.map(caches).unwrap_or_default();
    let env: Vec<(String, String)> = launch.env.iter().chain(&caches).chain(env).cloned().collect();
    let is_secret = |(name, value): &&(String, String)| name_looks_secret(name) || value_looks_secret(value);
    let secrets = env.iter().filter(is_secret).map(|(_, it)| it.clone()).filter(|it| it.len() >= MIN_SECRET).collect();
    let spawn = Spawn { program: command, args: &args, cwd: &cwd, env: &env, stdin: Stdin::Piped, confined };
    let PipedProcess { life, stdin, stdout, stderr } =
        spawn.start_piped(groups).map_err(|it| format!("{command} could not be started: {it}"))?;
    let process = Process { life, exit: None, log: tokio::spawn(log(stderr, secrets)) };
    OpenConnection::handshake(AsyncRwTransport::new_client(stdout, stdin), listener, Some(process)).await
}

/// Programs that fetch servers keep them below the home folder, which a confined one cannot write.
fn caches(it: &Confinement) -> Vec<(String, String)> {
    let below = |name: &str| it.own_folders.tmp.join(name).to_string();
    vec![("XDG_CACHE_HOME".to_owned(), below("cache")), ("npm_config_cache".to_owned(), below("npm"))]
}

impl Process {
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
