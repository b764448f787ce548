//! `castor mcp`: starts the MCP servers of a folder as a session does, and tells how they are.

use std::{
    io::{self, Write},
    time::Duration,
};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::timeout};

use super::{
    exits::EXIT_FAILED,
    run::child::{self, AgentCommand},
};
use crate::{
    base::path::AbsPath,
    world::acp_agent::connection::{Incoming, Peer},
};

/// Servers have the start budget of the settings; this is for a castor that hangs.
const PATIENCE: Duration = Duration::from_secs(180);
const QUEUE: usize = 64;

/// Tells how the MCP servers of this folder are.
#[derive(Args, Clone, Debug)]
pub struct McpArgs {
    #[command(subcommand)]
    pub verb: Option<McpVerb>,
}

#[derive(Subcommand, Clone, Debug)]
pub enum McpVerb {
    /// Starts them and says how each is, as without a verb
    List,
    /// The same with all that they offer; fails if one that should start does not
    Test {
        /// Only this server
        name: Option<String>,
    },
}

/// Returns the exit code.
pub fn run(args: &McpArgs, cwd: &AbsPath, out: &mut dyn Write) -> io::Result<u8> {
    let command = if matches!(args.verb, Some(McpVerb::Test { .. })) { "/mcp desc" } else { "/mcp" };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let said = runtime.block_on(async { timeout(PATIENCE, ask_agent(cwd, command)).await });
    runtime.shutdown_background();
    let said = match said {
        Ok(Ok(said)) => said,
        Ok(Err(why)) => return writeln!(out, "castor: {why}").map(|()| EXIT_FAILED),
        Err(_) => return writeln!(out, "castor: no answer within {} s", PATIENCE.as_secs()).map(|()| EXIT_FAILED),
    };
    let Some(McpVerb::Test { name }) = &args.verb else {
        return writeln!(out, "{}", said.trim_end()).map(|()| 0);
    };
    let chosen = sections(&said, name.as_deref());
    if let (Some(name), true) = (name, chosen.is_empty()) {
        return writeln!(out, "There is no MCP server {name:?}; `castor mcp` lists them.").map(|()| EXIT_FAILED);
    }
    writeln!(out, "{}", if chosen.is_empty() { said.trim_end() } else { chosen.trim_end() })?;
    Ok(if has_failed(&chosen) { EXIT_FAILED } else { 0 })
}

/// The lines about one server, or about all.
fn sections(said: &str, name: Option<&str>) -> String {
    let mut is_its = false;
    let mut res = String::new();
    for line in said.lines() {
        if let Some(server) = line.strip_prefix("- `") {
            is_its = name.is_none_or(|name| server.starts_with(&format!("{name}`: ")));
        }
        if is_its {
            res += &format!("{line}\n");
        }
    }
    res
}

fn has_failed(said: &str) -> bool {
    said.lines().any(|it| it.starts_with("- `") && !it.contains("`: ready") && !it.contains("`: off: "))
}

/// What a session in the folder answers, once its servers are there: a prompt to the demo model waits for them.
async fn ask_agent(cwd: &AbsPath, command: &str) -> Result<String, String> {
    let program = std::env::current_exe().unwrap_or_else(|_| "castor".into());
    let args = ["acp", "--model", "demo"].map(Into::into).to_vec();
    let launch = AgentCommand { program: program.into(), args, env: Vec::new() };
    let (agent, pipes) = child::spawn(&launch).map_err(|it| format!("castor cannot be started: {it}"))?;
    let (peer, mut incoming) = Peer::connect(pipes.stdout, pipes.stdin);
    let outbox = peer.outbox();
    let (heard, mut texts) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        while let Some(it) = incoming.recv().await {
            match it {
                Incoming::Request { id, .. } => {
                    let error = "{\"code\":-32601,\"message\":\"nobody is asked\"}";
                    let refusal = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{error}}}\n");
                    _ = outbox.send(refusal.into_bytes()).await;
                }
                Incoming::Notification { params, .. } => {
                    if let Some(text) = message_text(params.get()) {
                        _ = heard.try_send(text);
                    }
                }
                Incoming::Noise(_) => (),
            }
        }
    });
    let answer = ask_session(&peer, cwd, command, &mut texts).await;
    peer.close();
    agent.wait_or_kill().await;
    answer
}

async fn ask_session(
    peer: &Peer,
    cwd: &AbsPath,
    command: &str,
    texts: &mut mpsc::Receiver<String>,
) -> Result<String, String> {
    let ask = async |method: &'static str, params: Value| {
        peer.request(method, params)
            .await
            .map_err(|_| format!("castor does not answer {method}; `castor doctor` says more"))
    };
    let hello = json!({"protocolVersion": 1, "clientInfo": {"name": "castor-mcp", "version": env!("CARGO_PKG_VERSION")},
        "clientCapabilities": {"_meta": {"castor": {"interactive": false}}}});
    ask("initialize", hello).await?;
    let session = ask("session/new", json!({"cwd": cwd, "mcpServers": []})).await?;
    let id = session.get("sessionId").cloned().unwrap_or_default();
    let prompt = |text: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    ask("session/prompt", prompt("hello")).await?;
    // Texts travel apart from answers: they are here when another answer is.
    ask("session/list", json!({})).await?;
    while texts.try_recv().is_ok() {}
    ask("session/prompt", prompt(command)).await?;
    ask("session/delete", json!({"sessionId": id})).await?;
    let mut said = String::new();
    while let Ok(it) = texts.try_recv() {
        said += &it;
    }
    Ok(said)
}

/// What the agent says in a chunk of its message.
fn message_text(params: &str) -> Option<String> {
    let params: Value = serde_json::from_str(params).ok()?;
    let update =
        params.get("update").filter(|it| it.get("sessionUpdate").is_some_and(|it| it == "agent_message_chunk"))?;
    Some(update.get("content")?.get("text")?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{has_failed, sections};

    #[test]
    fn a_server_that_should_start_and_does_not_is_a_failure() {
        let said = "- `a`: ready, 1 tool\n  - `mcp_a_x`: x\n- `b`: off: excluded\n- `c`: failed: it ended\n";
        assert_eq!(sections(said, None), said);
        assert_eq!(sections(said, Some("a")), "- `a`: ready, 1 tool\n  - `mcp_a_x`: x\n");
        assert_eq!(sections(said, Some("d")), "");
        assert!(has_failed(said) && !has_failed(&sections(said, Some("a"))) && !has_failed(&sections(said, Some("b"))));
    }
}
