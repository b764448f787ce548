//! `castor agents new`: the file of a new sub-agent.

use std::io;

use castor_agent::session::agents::tool_name;
use castor_base::{
    agent::{AgentOrigin, Agents},
    path::AbsPath,
};
use castor_hands::{disk, secrets::Env};
use castor_tools::workspace::{
    NO_HOME,
    agents::{AgentFormat, parse},
    castor_home,
};

/// Writes it, and says where; or why not.
///
/// # Errors
/// A file that cannot be written.
pub fn write(
    name: &str,
    workspace: Option<&AbsPath>,
    env: &Env,
    known: &Agents,
) -> io::Result<Result<AbsPath, String>> {
    let home = workspace.map(|it| it.join(".castor")).or_else(|| castor_home(env));
    let Some(home) = home else { return Ok(Err(NO_HOME.to_owned())) };
    let text = template(name);
    if let Err(it) = parse(text.as_bytes(), AgentFormat::Castor, AgentOrigin::BuiltIn, &tool_name) {
        return Ok(Err(it.message));
    }
    if known.iter().any(|it| it.descriptor.name == name) {
        return Ok(Err(format!("there is an agent {name} already; `castor agents show {name}` shows it")));
    }
    let file = home.join("agents").join(format!("{name}.md"));
    if disk::metadata(&file).is_ok() {
        return Ok(Err(format!("{file} is there already")));
    }
    disk::write_atomic(&file, text.as_bytes())?;
    Ok(Ok(file))
}

fn template(name: &str) -> String {
    format!(
        "---
name: {}
description: When to use it, in one or two sentences for the model that starts it.
# The tools that it may use; without this key all of the session.
tools: [list_directory, read_file, glob, grep_search]
# A model of its own, and limits of one run:
# model: inherit
# max_turns: 30
# timeout_mins: 10
---
You do one task for another agent. Say here who you are, how you work and what you report.
",
        serde_json::Value::from(name)
    )
}
