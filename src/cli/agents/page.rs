//! A sub-agent as text for a terminal.

use std::fmt::Write;

use crate::cli::terminal_text::escape_line;
use castor_base::{
    agent::{AgentDefinition, AgentRun, LocalAgent, OnFailure},
    peer_agent::{CardSource, PeerAgent, RemoteAuth},
};

/// What is known of it, a line each, then its instructions.
pub fn page(it: &AgentDefinition) -> String {
    let mut res = String::new();
    let mut add = |key: &str, value: &str| {
        _ = writeln!(res, "{key:<13} {}", escape_line(value));
    };
    let own = &it.descriptor;
    add("name", &own.name);
    add("description", &own.description);
    let kind = serde_json::to_value(own.executor).unwrap_or_default();
    add("kind", kind.as_str().unwrap_or_default());
    add("from", &it.origin.file().map_or_else(|| "castor".to_owned(), ToString::to_string));
    add("state", if it.enabled { "on" } else { "off" });
    if !own.sub_agents.is_empty() && matches!(it.run, AgentRun::Local(_)) {
        add("sub-agents", &names(own.sub_agents.iter().map(|it| it.name.as_str())));
    }
    if !it.folders.is_empty() {
        add("folders", &names(it.folders.iter().map(String::as_str)));
    }
    match &it.run {
        AgentRun::Local(run) => {
            let limits = own.constraints;
            let budget = limits.max_budget_usd.map(|it| format!(", {it} USD")).unwrap_or_default();
            add("limits", &format!("{} turns, {} minutes{budget}", limits.turns(), limits.minutes()));
            local(run, &mut add);
            for line in run.instructions.lines() {
                // Behind blanks, so that no line looks like one of the above.
                _ = write!(res, "\n{}", format!("  {}", escape_line(line)).trim_end());
            }
        }
        AgentRun::Composite(run) => {
            add("agents", &names(run.agents.iter().map(String::as_str)));
            add("rounds", &run.max_iterations.to_string());
            run.output_key.iter().for_each(|it| add("output key", it));
            add("on failure", if run.on_failure == OnFailure::Stop { "stop" } else { "continue" });
            res.truncate(res.trim_end().len());
        }
        AgentRun::Peer(run) => {
            peer(run, &mut add);
            res.truncate(res.trim_end().len());
        }
    }
    res
}

fn local(run: &LocalAgent, add: &mut dyn FnMut(&str, &str)) {
    add("model", run.model.as_deref().unwrap_or("that of the session"));
    run.temperature.iter().for_each(|it| add("temperature", &it.to_string()));
    let tools = run.tools.as_ref().map(|it| names(it.iter().map(String::as_str)));
    add("tools", tools.as_deref().unwrap_or("all of the session"));
    if !run.mcp_servers.is_empty() {
        add("MCP servers", &names(run.mcp_servers.iter().map(|it| it.name.as_str())));
    }
}

fn peer(run: &PeerAgent, add: &mut dyn FnMut(&str, &str)) {
    match run {
        PeerAgent::Remote(it) => {
            match &it.card {
                CardSource::Url(_) => add("card", it.card.place()),
                CardSource::Json(_) => add("card", "in its file"),
            }
            add("auth", it.auth.as_ref().map_or("none", RemoteAuth::kind));
        }
        PeerAgent::Program(it) => {
            let words = std::iter::once(it.command.as_str()).chain(it.args.iter().map(String::as_str));
            add("command", &words.collect::<Vec<_>>().join(" "));
            let own = &it.sandbox;
            let network = if own.network == Some(false) { "no" } else { "yes" };
            add("network", if own.is_off { "outside the sandbox" } else { network });
            for (key, all) in [("readable", &own.readable), ("writable", &own.writable), ("sockets", &own.sockets)] {
                if key == "readable" || !all.is_empty() {
                    add(key, &names(all.iter().map(String::as_str)));
                }
            }
        }
    }
}

fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    let all: Vec<&str> = all.collect();
    if all.is_empty() { "none".to_owned() } else { all.join(", ") }
}
