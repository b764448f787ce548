//! Keys of an agent file, by the kind of agent, and what they make.

use std::{
    collections::BTreeMap,
    num::{NonZeroU32, NonZeroU64},
};

use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Map, Value, json};
use serde_saphyr::Spanned;

use super::{
    ToolLookup,
    front_matter::{self, FileFault, KeyNames},
    values::{AgentName, Amount, Description, ObjectSchema, Temperature, Text},
};
use castor_base::{
    agent::{
        AGENT_TOOLS, AgentCapability, AgentConstraints, AgentDescriptor, AgentKind, AgentOutput, AgentRun,
        CompositeAgent, LocalAgent, OnFailure,
    },
    agent_right::AgentRight,
    mcp::{McpLink, McpServerConfig, McpTransport},
    state::check_key,
};

/// Agents that one may name, each in one list.
const MAX_MEMBERS: usize = 50;
/// Rounds of a loop, unless its file says otherwise.
const MAX_ITERATIONS: u32 = 10;

/// What a file defines; its sub-agents have nothing but names yet.
pub struct Draft {
    pub descriptor: AgentDescriptor,
    pub run: AgentRun,
    pub folders: Vec<String>,
    pub rights: Vec<AgentRight>,
    /// What of it does not count.
    pub notes: Vec<FileFault>,
}

/// What decides about all other keys.
#[derive(Deserialize)]
struct Head {
    kind: Option<Spanned<String>>,
    agent_card_url: Option<IgnoredAny>,
    agent_card_json: Option<IgnoredAny>,
}

/// Keys of a local agent. Each struct below has a part of them.
const LOCAL: &[&str] = &[
    "kind",
    "name",
    "display_name",
    "description",
    "tools",
    "mcp_servers",
    "sub_agents",
    "model",
    "temperature",
    "query",
    "input",
    "output",
    "output_key",
    "include_contents",
    "max_turns",
    "timeout_mins",
    "max_budget_usd",
    "workspace_directories",
    "memory_inbox",
    "memory_extraction",
    "metadata",
];

#[derive(Deserialize)]
pub(super) struct NameKeys {
    pub name: Spanned<AgentName>,
    pub display_name: Option<Text>,
    pub description: Description,
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

#[derive(Deserialize)]
struct ToolKeys {
    tools: Option<Vec<Spanned<String>>>,
    #[serde(default)]
    mcp_servers: BTreeMap<String, Spanned<ServerKeys>>,
    #[serde(default)]
    sub_agents: Vec<AgentName>,
    #[serde(default)]
    workspace_directories: Vec<Text>,
    #[serde(default)]
    memory_inbox: bool,
    #[serde(default)]
    memory_extraction: bool,
}

#[derive(Deserialize)]
struct ModelKeys {
    model: Option<Text>,
    temperature: Option<Temperature>,
    query: Option<Text>,
    input: Option<ObjectSchema>,
    output: Option<OutputKeys>,
    output_key: Option<Spanned<String>>,
    #[serde(default)]
    include_contents: bool,
}

#[derive(Deserialize)]
struct LimitKeys {
    max_turns: Option<NonZeroU32>,
    timeout_mins: Option<Amount>,
    max_budget_usd: Option<Amount>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OutputKeys {
    name: Text,
    #[serde(default)]
    description: String,
    schema: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompositeKeys {
    #[serde(rename = "kind")]
    _kind: IgnoredAny,
    name: Spanned<AgentName>,
    display_name: Option<Text>,
    description: Description,
    agents: Spanned<Vec<AgentName>>,
    max_iterations: Option<Spanned<NonZeroU32>>,
    output_key: Option<Spanned<String>>,
    #[serde(default)]
    on_failure: OnFailure,
    #[serde(default)]
    metadata: Map<String, Value>,
}

const SERVER: &[&str] = &[
    "command",
    "args",
    "env",
    "cwd",
    "url",
    "http_url",
    "headers",
    "type",
    "timeout",
    "trust",
    "description",
    "include_tools",
    "exclude_tools",
];

#[derive(Deserialize, Default)]
#[serde(default)]
struct ServerKeys {
    command: Option<String>,
    args: Vec<String>,
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    http_url: Option<String>,
    headers: BTreeMap<String, String>,
    #[serde(rename = "type")]
    transport: Option<TransportWord>,
    timeout: Option<NonZeroU64>,
    trust: bool,
    include_tools: Option<Vec<String>>,
    exclude_tools: Vec<String>,
}

/// The servers' keys.
#[derive(Deserialize)]
struct ServerKeyNames {
    #[serde(default)]
    mcp_servers: BTreeMap<String, KeyNames>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum TransportWord {
    Stdio,
    Http,
    Sse,
}

/// Reads a file of castor's or Gemini CLI's.
///
/// # Errors
/// The first fault.
pub fn read(yaml: &str, body: &str, tools: ToolLookup<'_>) -> Result<Draft, FileFault> {
    match kind(yaml)? {
        AgentKind::Local => local(yaml, body, tools),
        kind => composite(front_matter::read(yaml)?, kind),
    }
}

/// The MCP servers that a local agent's file would start or reach, as settings would say it.
pub fn servers(yaml: &str) -> Option<Value> {
    let keys: ToolKeys = front_matter::read(yaml).ok()?;
    let server = |it: &ServerKeys| json!({ "command": it.command, "args": it.args, "env": it.env, "cwd": it.cwd, "url": it.url, "httpUrl": it.http_url });
    let servers: Map<String, Value> =
        keys.mcp_servers.iter().map(|(name, it)| (name.clone(), server(&it.value))).collect();
    Some(json!({ "mcpServers": servers }))
}

/// What kind of agent a file defines.
///
/// # Errors
/// No kind of castor's.
pub fn kind(yaml: &str) -> Result<AgentKind, FileFault> {
    let not_yet = |at, what: &str| Err(FileFault::new(Some(at), format!("{what} are not supported yet")));
    let first = yaml.lines().enumerate().skip(1).find(|(_, it)| !it.trim().is_empty());
    if let Some((n, _)) = first.filter(|(_, it)| it.starts_with("- ")) {
        return not_yet((n + 1, 1), "lists of remote agents");
    }
    let head: Head = front_matter::read(yaml)?;
    let has_card = head.agent_card_url.is_some() || head.agent_card_json.is_some();
    let Some(kind) = head.kind else { return Ok(if has_card { AgentKind::Remote } else { AgentKind::Local }) };
    match kind.value.as_str() {
        "local" => Ok(AgentKind::Local),
        "sequential" => Ok(AgentKind::Sequential),
        "parallel" => Ok(AgentKind::Parallel),
        "loop" => Ok(AgentKind::Loop),
        "remote" => Ok(AgentKind::Remote),
        "acp" => Ok(AgentKind::Acp),
        _ => {
            let why = "kind should be local, remote, acp, sequential, parallel or loop";
            Err(FileFault::new(Some(place(&kind)), why))
        }
    }
}

pub(super) fn place<T>(it: &Spanned<T>) -> (usize, usize) {
    (it.referenced.line() as usize, it.referenced.column() as usize)
}

fn local(yaml: &str, body: &str, tools: ToolLookup<'_>) -> Result<Draft, FileFault> {
    front_matter::read::<KeyNames>(yaml)?.check(LOCAL)?;
    let servers: ServerKeyNames = front_matter::read(yaml)?;
    servers.mcp_servers.values().try_for_each(|it| it.check(SERVER))?;
    let own: NameKeys = front_matter::read(yaml)?;
    let name = checked_name(&own.name, tools)?;
    let of_tools: ToolKeys = front_matter::read(yaml)?;
    let mut of_model: ModelKeys = front_matter::read(yaml)?;
    let input_schema = of_model.input.take().map(|it| it.0);
    let limits: LimitKeys = front_matter::read(yaml)?;
    if body.is_empty() {
        return Err(FileFault::new(None, "has no instructions: write them below the front matter"));
    }
    let sub_agents = stubs(of_tools.sub_agents.iter().map(|it| it.0.as_str()));
    let rights =
        [(of_tools.memory_inbox, AgentRight::MemoryInbox), (of_tools.memory_extraction, AgentRight::MemoryExtraction)];
    let rights = rights.into_iter().filter(|it| it.0).map(|it| it.1).collect();
    let folders = of_tools.workspace_directories.iter().map(|it| it.0.clone()).collect();
    let (run, notes) = local_run(of_tools, of_model, body, tools)?;
    let mut capabilities = vec![AgentCapability::Elicitation, AgentCapability::Streaming];
    capabilities.extend((!sub_agents.is_empty()).then_some(AgentCapability::Composition));
    let descriptor = AgentDescriptor {
        name,
        display_name: own.display_name.map(|it| it.0),
        description: own.description.0,
        executor: AgentKind::Local,
        input_schema,
        output_schema: run.output.as_ref().map(|it| it.schema.clone()),
        capabilities,
        own_tools: run.mcp_servers.iter().map(|it| format!("mcp_{}_*", it.name)).collect(),
        required_tools: run.tools.iter().flatten().filter(|it| *it != "*").cloned().collect(),
        sub_agents,
        constraints: AgentConstraints {
            max_turns: limits.max_turns.map(NonZeroU32::get),
            max_time_minutes: limits.timeout_mins.map(|it| it.0),
            max_budget_usd: limits.max_budget_usd.map(|it| it.0),
        },
        metadata: own.metadata,
    };
    Ok(Draft { descriptor, run: AgentRun::Local(Box::new(run)), folders, rights, notes })
}

fn local_run(
    of_tools: ToolKeys,
    of_model: ModelKeys,
    body: &str,
    tools: ToolLookup<'_>,
) -> Result<(LocalAgent, Vec<FileFault>), FileFault> {
    let mut notes = Vec::new();
    let mcp_servers = of_tools.mcp_servers.into_iter().map(|(name, it)| server(name, it)).collect::<Result<_, _>>()?;
    let listed = of_tools
        .tools
        .map(|all| all.iter().filter_map(|it| tool(it, tools).map_err(|it| notes.push(it)).ok()).collect::<Vec<_>>());
    let output = |it: OutputKeys| AgentOutput { name: it.name.0, description: it.description, schema: it.schema };
    let output_key = of_model.output_key.map(checked_key).transpose()?;
    let run = LocalAgent {
        instructions: body.to_owned(),
        query: of_model.query.map(|it| it.0),
        model: of_model.model.map(|it| it.0).filter(|it| it != "inherit"),
        temperature: of_model.temperature.map(|it| it.0),
        tools: listed,
        mcp_servers,
        output: of_model.output.map(output),
        output_key,
        include_contents: of_model.include_contents,
        takes_state: false,
    };
    Ok((run, notes))
}

fn composite(keys: CompositeKeys, kind: AgentKind) -> Result<Draft, FileFault> {
    let name = keys.name.value.0;
    let fault = |at, message: &str| Err(FileFault::new(Some(at), message));
    if !(1..=MAX_MEMBERS).contains(&keys.agents.value.len()) {
        return fault(place(&keys.agents), &format!("agents should name 1 to {MAX_MEMBERS} agents"));
    }
    if let Some(it) = keys.max_iterations.as_ref().filter(|_| kind != AgentKind::Loop) {
        return fault(place(it), "max_iterations is for agents of the kind loop");
    }
    let agents: Vec<String> = keys.agents.value.into_iter().map(|it| it.0).collect();
    let descriptor = AgentDescriptor {
        name,
        display_name: keys.display_name.map(|it| it.0),
        description: keys.description.0,
        executor: kind,
        capabilities: vec![AgentCapability::Elicitation, AgentCapability::Streaming, AgentCapability::Composition],
        sub_agents: stubs(agents.iter().map(String::as_str)),
        metadata: keys.metadata,
        ..AgentDescriptor::default()
    };
    let rounds = if kind == AgentKind::Loop { MAX_ITERATIONS } else { 1 };
    let run = CompositeAgent {
        agents,
        max_iterations: keys.max_iterations.map_or(rounds, |it| it.value.get()),
        output_key: keys.output_key.map(checked_key).transpose()?,
        on_failure: keys.on_failure,
    };
    Ok(Draft { descriptor, run: AgentRun::Composite(run), folders: Vec::new(), rights: Vec::new(), notes: Vec::new() })
}

/// A key of the state, for the result.
fn checked_key(key: Spanned<String>) -> Result<String, FileFault> {
    check_key(&key.value).map_err(|it| FileFault::new(Some(place(&key)), it))?;
    Ok(key.value)
}

/// Each name once.
fn stubs<'n>(names: impl Iterator<Item = &'n str>) -> Vec<AgentDescriptor> {
    let mut res: Vec<AgentDescriptor> = Vec::new();
    for name in names.take(MAX_MEMBERS) {
        if res.iter().all(|it| it.name != name) {
            res.push(AgentDescriptor { name: name.to_owned(), ..AgentDescriptor::default() });
        }
    }
    res
}

/// An agent may be a tool by its own name.
pub(super) fn checked_name(name: &Spanned<AgentName>, tools: ToolLookup<'_>) -> Result<String, FileFault> {
    let it = name.value.0.as_str();
    match tools(it).is_some() || it.starts_with("mcp_") || AGENT_TOOLS.contains(&it) {
        true => Err(FileFault::new(Some(place(name)), format!("{it} is the name of a tool; choose another one"))),
        false => Ok(it.to_owned()),
    }
}

fn tool(name: &Spanned<String>, tools: ToolLookup<'_>) -> Result<String, FileFault> {
    let it = name.value.trim();
    if it == "*" || it.starts_with("mcp_") {
        return Ok(it.to_owned());
    }
    tools(it).ok_or_else(|| FileFault::new(Some(place(name)), format!("castor has no tool {it:?}; it is left out")))
}

fn server(name: String, keys: Spanned<ServerKeys>) -> Result<McpServerConfig, FileFault> {
    let at = place(&keys);
    let it = keys.value;
    let headers: Vec<(String, String)> = it.headers.into_iter().collect();
    let link = match (it.http_url, it.url, it.command) {
        (Some(url), None, None) => McpLink::Web { url, headers, speech: McpTransport::Http, oauth: None },
        (None, Some(url), None) => {
            let speech = match it.transport {
                Some(TransportWord::Http) => McpTransport::Http,
                Some(TransportWord::Sse) => McpTransport::Sse,
                Some(TransportWord::Stdio) | None => McpTransport::Either,
            };
            McpLink::Web { url, headers, speech, oauth: None }
        }
        (None, None, Some(command)) => {
            McpLink::Stdio { command, args: it.args, env: it.env.into_iter().collect(), cwd: it.cwd }
        }
        _ => {
            let message = format!("the server {name} should have one of command, url and http_url");
            return Err(FileFault::new(Some(at), message));
        }
    };
    Ok(McpServerConfig {
        timeout_ms: it.timeout.map_or(McpServerConfig::TIMEOUT_MS, NonZeroU64::get),
        trust: it.trust,
        include: it.include_tools,
        exclude: it.exclude_tools,
        ..McpServerConfig::new(name, link)
    })
}
