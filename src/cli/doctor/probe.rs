//! Handshake check of `castor doctor`: runs `castor acp` as a child and prompts the demo model.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use crate::cli::client::{
    child::{self, AgentCommand, StderrTail},
    failure,
};
use castor_base::path::AbsPath;
use castor_models::acp_agent::connection::{Incoming, Peer};

/// One step of an editor may take this long.
const PATIENCE: Duration = Duration::from_secs(20);
const PROMPT: &str = "hello";
/// Notices that are kept until they are looked at.
const QUEUE: usize = 16;

/// One step, how long it took, and what went wrong.
#[derive(Clone, Debug)]
pub struct ProbeStep {
    pub name: &'static str,
    pub took: Duration,
    pub problem: Option<String>,
}

/// The steps in order, up to the first that fails. Sessions that are made are deleted again. `with_servers`: the folder
/// whose settings name MCP servers; what the session says of them is a step of its own.
pub fn run_handshake(program: &Path, with_servers: Option<&AbsPath>) -> Vec<ProbeStep> {
    let mut steps = Vec::new();
    let failed = |why: String| ProbeStep { name: "start", took: Duration::ZERO, problem: Some(why) };
    let folder = tempfile::Builder::new().prefix("castor-doctor-").tempdir();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (folder, runtime) {
        (Ok(folder), Ok(runtime)) => {
            let done = runtime.block_on(run_agent(program, (folder.path(), with_servers), &mut steps));
            runtime.shutdown_background();
            if let Err(why) = done {
                steps.push(failed(why));
            }
        }
        (Err(it), _) => steps.push(failed(format!("no temporary folder can be made: {it}"))),
        (_, Err(it)) => steps.push(failed(format!("castor cannot be started: {it}"))),
    }
    steps
}

async fn run_agent(
    program: &Path,
    (folder, with_servers): (&Path, Option<&AbsPath>),
    steps: &mut Vec<ProbeStep>,
) -> Result<(), String> {
    let args = ["acp", "--model", "demo"].map(Into::into).to_vec();
    let launch = AgentCommand { program: program.into(), args, env: Vec::new() };
    let (agent, pipes) = child::spawn(&launch).map_err(|it| format!("castor cannot be started: {it}"))?;
    let (peer, mut incoming) = Peer::connect(pipes.stdout, pipes.stdin);
    let outbox = peer.outbox();
    let (noticed, mut notices) = mpsc::channel(QUEUE);
    // Only notices are looked at, but all is read: the agent waits for who does not.
    tokio::spawn(async move {
        while let Some(it) = incoming.recv().await {
            match it {
                Incoming::Request { id, .. } => {
                    let refusal = format!(
                        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}\n"
                    );
                    _ = outbox.send(refusal.into_bytes()).await;
                }
                Incoming::Notification { params, .. } => {
                    if let Some(it) = notice(params.get()) {
                        _ = noticed.try_send(it);
                    }
                }
                Incoming::Noise(_) => (),
            }
        }
    });
    let mut stderr = pipes.stderr;
    let mut worked = ask_all(&peer, folder, steps).await;
    if let (Some(()), Some(folder)) = (worked, with_servers) {
        worked = start_servers(&peer, folder, &mut notices, steps).await;
    }
    peer.close();
    agent.wait_or_kill().await;
    if let (None, Some(step)) = (worked, steps.last_mut()) {
        let mut tail = StderrTail::default();
        tail.drain_stderr(&mut stderr).await;
        if let (Some(problem), Some(hint)) = (&mut step.problem, tail.hint()) {
            *problem = format!("{problem} ({hint})");
        }
    }
    Ok(())
}

async fn ask_all(peer: &Peer, folder: &Path, steps: &mut Vec<ProbeStep>) -> Option<()> {
    let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "castor-doctor", "version": env!("CARGO_PKG_VERSION")},
        "clientCapabilities": {"session": {"notices": {}}, "_meta": {"castor": {"interactive": false}}}});
    ask(peer, "initialize", hello, steps).await?;
    run_session(peer, folder, steps).await
}

/// One session with one prompt.
async fn run_session(peer: &Peer, folder: &Path, steps: &mut Vec<ProbeStep>) -> Option<()> {
    let session = ask(peer, "session/new", json!({"cwd": folder, "mcpServers": []}), steps).await?;
    let id = session.get("sessionId").cloned().unwrap_or_default();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": PROMPT}]});
    let answered = ask(peer, "session/prompt", prompt, steps).await;
    ask(peer, "session/delete", json!({"sessionId": id}), steps).await?;
    answered.map(|_| ())
}

/// The step that starts what the settings name.
pub const SERVERS: &str = "MCP servers";

/// A prompt waits for the servers of its folder, and tells which of them did not come.
async fn start_servers(
    peer: &Peer,
    folder: &AbsPath,
    notices: &mut mpsc::Receiver<String>,
    steps: &mut Vec<ProbeStep>,
) -> Option<()> {
    let (start, mut parts) = (Instant::now(), Vec::new());
    while notices.try_recv().is_ok() {}
    let worked = run_session(peer, folder.as_path(), &mut parts).await;
    let failed = parts.into_iter().find_map(|it| it.problem);
    let mut missing = Vec::new();
    while let Ok(it) = notices.try_recv() {
        missing.extend(it.lines().filter(|it| it.starts_with("MCP server ")).map(str::to_owned));
    }
    let problem = failed.or_else(|| (!missing.is_empty()).then(|| missing.join(" ")));
    steps.push(ProbeStep { name: SERVERS, took: start.elapsed(), problem });
    worked
}

/// The text of a notice.
fn notice(params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    let update = params.get("update").filter(|it| it.get("sessionUpdate").is_some_and(|it| it == "notice"))?;
    let text = |key: &str| update.get(key).and_then(Value::as_str).unwrap_or_default();
    Some(format!("{}\n{}", text("title"), text("description")))
}

async fn ask(peer: &Peer, name: &'static str, params: Value, steps: &mut Vec<ProbeStep>) -> Option<Value> {
    let start = Instant::now();
    let answer = timeout(PATIENCE, peer.request(name, params)).await;
    let (result, problem) = match answer {
        Ok(Ok(result)) => (Some(result), None),
        Ok(Err(it)) => {
            let gone = || "castor ended before it answered".to_owned();
            (None, Some(failure::from_answer(&it).map_or_else(gone, |it| it.message)))
        }
        Err(_) => (None, Some(format!("no answer within {} s", PATIENCE.as_secs()))),
    };
    steps.push(ProbeStep { name, took: start.elapsed(), problem });
    result
}
