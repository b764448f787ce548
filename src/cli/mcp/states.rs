//! `castor mcp list` and `test`: start the MCP servers of a folder as a session does, and tell how they are.

use std::{
    io::{self, Write},
    time::Duration,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::cli::{client::probe::Probe, exits::EXIT_FAILED};
use castor_base::path::AbsPath;
use castor_client::opening::greeting;
use castor_wire::acp::client::{ClientEvent, Voice};

/// Servers have the start budget of the settings; this is for a castor that hangs.
const PATIENCE: Duration = Duration::from_secs(180);

/// How one server is.
#[derive(Debug, Deserialize)]
struct ServerReport {
    name: String,
    status: String,
}

/// What castor says of the servers, and how each is.
struct ServersAnswer {
    said: String,
    servers: Vec<ServerReport>,
}

/// Those in which a server is as it should be: `off` is the user's own word.
const WELL: &[&str] = &["ready", "off"];

pub fn list(cwd: &AbsPath, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    match ask(cwd, "/mcp")? {
        Ok(it) => writeln!(out, "{}", it.said.trim_end()).map(|()| 0),
        Err(why) => writeln!(err, "castor: {why}").map(|()| EXIT_FAILED),
    }
}

pub fn test(cwd: &AbsPath, name: Option<&str>, out: &mut dyn Write, err: &mut dyn Write) -> io::Result<u8> {
    let found = match ask(cwd, "/mcp desc")? {
        Ok(it) => it,
        Err(why) => return writeln!(err, "castor: {why}").map(|()| EXIT_FAILED),
    };
    let chosen: Vec<&ServerReport> =
        found.servers.iter().filter(|it| name.is_none_or(|name| it.name == name)).collect();
    if let (Some(name), []) = (name, chosen.as_slice()) {
        return writeln!(out, "There is no MCP server {name:?}; `castor mcp` lists them.").map(|()| EXIT_FAILED);
    }
    let said = name.map_or_else(|| found.said.clone(), |it| section(&found.said, it));
    writeln!(out, "{}", said.trim_end())?;
    Ok(if chosen.iter().all(|it| WELL.contains(&it.status.as_str())) { 0 } else { EXIT_FAILED })
}

/// The outer error: no runtime.
fn ask(cwd: &AbsPath, command: &str) -> io::Result<Result<ServersAnswer, String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(async { timeout(PATIENCE, ask_agent(cwd, command)).await });
    runtime.shutdown_background();
    Ok(found.unwrap_or_else(|_| Err(format!("no answer within {} s", PATIENCE.as_secs()))))
}

/// The lines about one server.
fn section(said: &str, name: &str) -> String {
    let mut is_its = false;
    let mut res = String::new();
    for line in said.lines() {
        if let Some(server) = line.strip_prefix("- `") {
            is_its = server.starts_with(&format!("{name}`: "));
        }
        if is_its {
            res += &format!("{line}\n");
        }
    }
    res
}

/// What a session in the folder answers, once its servers are there: a prompt to the demo model waits for them.
async fn ask_agent(cwd: &AbsPath, command: &str) -> Result<ServersAnswer, String> {
    let program = std::env::current_exe().unwrap_or_else(|_| "castor".into());
    let is_text = |event: &ClientEvent| matches!(event, ClientEvent::Chunk(Voice::Answer, _));
    let mut probe = Probe::start(&program, is_text).map_err(|it| format!("castor cannot be started: {it}"))?;
    let answer = ask_session(&mut probe, cwd, command).await;
    probe.end().await;
    answer
}

async fn ask_session(probe: &mut Probe, cwd: &AbsPath, command: &str) -> Result<ServersAnswer, String> {
    ask_castor(probe, "initialize", greeting("castor-mcp", false)).await?;
    let session = ask_castor(probe, "session/new", json!({"cwd": cwd, "mcpServers": []})).await?;
    let id = session.get("sessionId").cloned().unwrap_or_default();
    let prompt = |text: &str| json!({"sessionId": id, "prompt": [{"type": "text", "text": text}]});
    ask_castor(probe, "session/prompt", prompt("hello")).await?;
    // Texts travel apart from answers: they are here when another answer is.
    ask_castor(probe, "session/list", json!({})).await?;
    probe.take_events();
    ask_castor(probe, "session/prompt", prompt(command)).await?;
    let states = ask_castor(probe, "_castor/mcp/servers", json!({"sessionId": id})).await?;
    let servers = states.get("servers").cloned().unwrap_or_default();
    let servers = serde_json::from_value(servers).map_err(|_| "castor says nothing of its servers".to_owned())?;
    ask_castor(probe, "session/delete", json!({"sessionId": id})).await?;
    let events = probe.take_events();
    let chunks = events.iter().filter_map(|it| if let ClientEvent::Chunk(_, chunk) = it { chunk.text() } else { None });
    Ok(ServersAnswer { said: chunks.collect(), servers })
}

async fn ask_castor(probe: &Probe, method: &'static str, params: Value) -> Result<Value, String> {
    let answer = probe.ask(method, params).await;
    answer.map_err(|_| format!("castor does not answer {method}; `castor doctor` says more"))
}

#[cfg(test)]
mod tests {
    use super::section;

    #[test]
    fn one_server_has_its_own_lines() {
        let said = "- `a`: ready, 1 tool\n  - `mcp_a_x`: x\n- `ab`: off: excluded\n";
        assert_eq!(section(said, "a"), "- `a`: ready, 1 tool\n  - `mcp_a_x`: x\n");
        assert_eq!(section(said, "d"), "");
    }
}
