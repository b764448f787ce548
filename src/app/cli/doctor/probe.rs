//! The handshake of an editor, done with castor itself: `castor acp` as a child, a prompt to the demo model.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::time::timeout;

use crate::app::cli::run::{
    child::{self, Launch, Tail},
    client::{Incoming, Peer},
    failure,
};

/// One step of an editor may take this long.
const PATIENCE: Duration = Duration::from_secs(20);
const PROMPT: &str = "hello";

/// One step, how long it took, and what went wrong.
#[derive(Clone, Debug)]
pub struct Step {
    pub name: &'static str,
    pub took: Duration,
    pub problem: Option<String>,
}

/// The steps in order, up to the first that fails. The session that is made is deleted again.
pub fn shake(program: &Path) -> Vec<Step> {
    let mut steps = Vec::new();
    let failed = |why: String| Step { name: "start", took: Duration::ZERO, problem: Some(why) };
    let folder = tempfile::Builder::new().prefix("castor-doctor-").tempdir();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match (folder, runtime) {
        (Ok(folder), Ok(runtime)) => {
            let done = runtime.block_on(converse(program, folder.path(), &mut steps));
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

async fn converse(program: &Path, folder: &Path, steps: &mut Vec<Step>) -> Result<(), String> {
    let launch = Launch { program: program.into(), args: ["acp", "--model", "demo"].map(Into::into).to_vec() };
    let (agent, pipes) = child::spawn(&launch).map_err(|it| format!("castor cannot be started: {it}"))?;
    let (peer, mut incoming) = Peer::connect(pipes.stdout, pipes.stdin);
    let outbox = peer.outbox();
    // What the agent says is not looked at; it waits for who does not read.
    tokio::spawn(async move {
        while let Some(it) = incoming.recv().await {
            if let Incoming::Request { id, .. } = it {
                let refusal =
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32601,\"message\":\"no\"}}}}\n");
                _ = outbox.send(refusal.into_bytes()).await;
            }
        }
    });
    let mut stderr = pipes.stderr;
    let worked = ask_all(&peer, folder, steps).await;
    peer.hang_up();
    agent.leave().await;
    if let (None, Some(step)) = (worked, steps.last_mut()) {
        let mut tail = Tail::default();
        tail.last_words(&mut stderr).await;
        if let (Some(problem), Some(hint)) = (&mut step.problem, tail.hint()) {
            *problem = format!("{problem} ({hint})");
        }
    }
    Ok(())
}

async fn ask_all(peer: &Peer, folder: &Path, steps: &mut Vec<Step>) -> Option<()> {
    let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "castor-doctor", "version": env!("CARGO_PKG_VERSION")},
        "clientCapabilities": {"_meta": {"castor": {"interactive": false}}}});
    ask(peer, "initialize", hello, steps).await?;
    let session = ask(peer, "session/new", json!({"cwd": folder, "mcpServers": []}), steps).await?;
    let id = session.get("sessionId").cloned().unwrap_or_default();
    let prompt = json!({"sessionId": id, "prompt": [{"type": "text", "text": PROMPT}]});
    let answered = ask(peer, "session/prompt", prompt, steps).await;
    ask(peer, "session/delete", json!({"sessionId": id}), steps).await?;
    answered.map(|_| ())
}

async fn ask(peer: &Peer, name: &'static str, params: Value, steps: &mut Vec<Step>) -> Option<Value> {
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
    steps.push(Step { name, took: start.elapsed(), problem });
    result
}
