//! Handshake check of `castor doctor`: runs `castor acp` as a child and prompts the demo model.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::client::{child::StderrTail, probe::Probe};
use castor_base::path::AbsPath;
use castor_client::{failure::RequestFailure, opening::greeting};
use castor_wire::acp::client::ClientEvent;

/// One step of an editor may take this long.
const PATIENCE: Duration = Duration::from_secs(20);
const PROMPT: &str = "hello";

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
    // Notices alone are looked at.
    let is_notice = |event: &ClientEvent| matches!(event, ClientEvent::Notice(_));
    let mut probe = Probe::start(program, is_notice).map_err(|it| format!("castor cannot be started: {it}"))?;
    let mut worked = ask(&probe, "initialize", greeting("castor-doctor", true), steps).await.map(|_| ());
    if worked.is_some() {
        worked = run_session(&probe, folder, steps).await;
    }
    if let (Some(()), Some(folder)) = (worked, with_servers) {
        worked = start_servers(&mut probe, folder, steps).await;
    }
    let mut stderr = probe.end().await;
    if let (None, Some(step)) = (worked, steps.last_mut()) {
        let mut tail = StderrTail::default();
        tail.drain_stderr(&mut stderr).await;
        if let (Some(problem), Some(hint)) = (&mut step.problem, tail.hint()) {
            *problem = format!("{problem} ({hint})");
        }
    }
    Ok(())
}

/// One session with one prompt.
async fn run_session(probe: &Probe, folder: &Path, steps: &mut Vec<ProbeStep>) -> Option<()> {
    let session = ask(probe, "session/new", json!({"cwd": folder, "mcpServers": []}), steps).await?;
    let id = session.get("sessionId").cloned().unwrap_or_default();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": PROMPT}]});
    let answered = ask(probe, "session/prompt", prompt, steps).await;
    ask(probe, "session/delete", json!({"sessionId": id}), steps).await?;
    answered.map(|_| ())
}

/// The step that starts what the settings name.
pub const SERVERS: &str = "MCP servers";

/// A prompt waits for the servers of its folder, and tells which of them did not come.
async fn start_servers(probe: &mut Probe, folder: &AbsPath, steps: &mut Vec<ProbeStep>) -> Option<()> {
    let (start, mut parts) = (Instant::now(), Vec::new());
    probe.take_events();
    let worked = run_session(probe, folder.as_path(), &mut parts).await;
    let failed = parts.into_iter().find_map(|it| it.problem);
    let mut missing = Vec::new();
    for event in probe.take_events() {
        let ClientEvent::Notice(notice) = event else { continue };
        let lines = notice.title.lines().chain(notice.description.lines());
        missing.extend(lines.filter(|it| it.starts_with("MCP server ")).map(str::to_owned));
    }
    let problem = failed.or_else(|| (!missing.is_empty()).then(|| missing.join(" ")));
    steps.push(ProbeStep { name: SERVERS, took: start.elapsed(), problem });
    worked
}

async fn ask(probe: &Probe, name: &'static str, params: Value, steps: &mut Vec<ProbeStep>) -> Option<Value> {
    let start = Instant::now();
    let answer = timeout(PATIENCE, probe.ask(name, params)).await;
    let (result, problem) = match answer {
        Ok(Ok(result)) => (Some(result), None),
        Ok(Err(it)) => {
            let gone = || "castor ended before it answered".to_owned();
            (
                None,
                Some(match it {
                    RequestFailure::Gone => gone(),
                    failure => failure.in_words(),
                }),
            )
        }
        Err(_) => (None, Some(format!("no answer within {} s", PATIENCE.as_secs()))),
    };
    steps.push(ProbeStep { name, took: start.elapsed(), problem });
    result
}
