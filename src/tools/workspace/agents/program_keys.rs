//! Keys of an agent file of the kind `acp`: a program that speaks ACP.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    ToolLookup,
    front_matter::{self, FileFault, KeyNames},
    keys::{Draft, NameKeys, checked_name},
    values::{Amount, Text},
};
use castor_base::{
    agent::{AgentCapability, AgentConstraints, AgentDescriptor, AgentKind, AgentRun},
    peer_agent::{PeerAgent, ProgramAgent},
    sandbox::ProgramSandbox,
};

/// Keys of such an agent: [`NameKeys`] and [`ProgramKeys`] have them.
const PROGRAM: &[&str] = &[
    "kind",
    "name",
    "display_name",
    "description",
    "command",
    "args",
    "env",
    "network",
    "readable",
    "sandbox",
    "timeout_mins",
    "max_budget_usd",
    "workspace_directories",
    "metadata",
];

#[derive(Deserialize)]
struct ProgramKeys {
    command: Text,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    network: Option<bool>,
    #[serde(default)]
    readable: Vec<String>,
    sandbox: Option<Value>,
    #[serde(default)]
    workspace_directories: Vec<Text>,
    timeout_mins: Option<Amount>,
    max_budget_usd: Option<Amount>,
}

impl ProgramKeys {
    /// `network` and `readable` may also stand by themselves.
    fn sandbox(&self) -> Result<ProgramSandbox, FileFault> {
        let mut res = ProgramSandbox::read(self.sandbox.as_ref())
            .map_err(|why| FileFault::new(None, format!("sandbox {}", why.trim_end_matches("; ignored"))))?;
        res.network = res.network.or(self.network).or(Some(true));
        res.readable.extend(self.readable.iter().cloned());
        Ok(res)
    }
}

/// What a workspace or an extension must not widen.
///
/// # Errors
/// What it must not name.
pub(super) fn check_workspace(sandbox: &ProgramSandbox) -> Result<(), FileFault> {
    let widens = sandbox.is_off || !sandbox.writable.is_empty() || !sandbox.sockets.is_empty();
    let why = "sandbox opens more than an agent of a workspace may have; put the file in ~/.castor/agents";
    if widens { Err(FileFault::new(None, why)) } else { Ok(()) }
}

/// # Errors
/// The first fault.
pub fn read(yaml: &str, body: &str, tools: ToolLookup<'_>) -> Result<Draft, FileFault> {
    front_matter::read::<KeyNames>(yaml)?.check(PROGRAM)?;
    let own: NameKeys = front_matter::read(yaml)?;
    let keys: ProgramKeys = front_matter::read(yaml)?;
    let sandbox = keys.sandbox()?;
    let notes = match body.is_empty() {
        true => Vec::new(),
        false => {
            vec![FileFault::new(None, "the program has instructions of its own: the text below the keys is not used")]
        }
    };
    let descriptor = AgentDescriptor {
        name: checked_name(&own.name, tools)?,
        display_name: own.display_name.map(|it| it.0),
        description: own.description.0,
        executor: AgentKind::Acp,
        capabilities: vec![AgentCapability::Streaming, AgentCapability::HostToolExecution],
        constraints: AgentConstraints {
            max_turns: None,
            max_time_minutes: keys.timeout_mins.map(|it| it.0),
            max_budget_usd: keys.max_budget_usd.map(|it| it.0),
        },
        metadata: own.metadata,
        ..AgentDescriptor::default()
    };
    let program = ProgramAgent {
        command: keys.command.0,
        args: keys.args,
        env: keys.env.into_iter().collect(),
        sandbox,
        scripts: Vec::new(),
    };
    let folders = keys.workspace_directories.into_iter().map(|it| it.0).collect();
    Ok(Draft {
        descriptor,
        run: AgentRun::Peer(Box::new(PeerAgent::Program(program))),
        folders,
        rights: Vec::new(),
        notes,
    })
}

/// The program that a file would start, as settings would say it.
pub fn program(yaml: &str) -> Option<Value> {
    let own: NameKeys = front_matter::read(yaml).ok()?;
    let keys: ProgramKeys = front_matter::read(yaml).ok()?;
    let program = json!({ "command": keys.command.0, "args": keys.args, "env": keys.env });
    Some(json!({ "agents": { own.name.value.0: program } }))
}
