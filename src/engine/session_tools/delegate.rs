//! Calls that start a sub-agent: the tool `invoke_agent`, and agents that are tools by their own names.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::{complete_task, escalate, transfer};
use crate::policy::{Rule, RuleSet, Tier};
use castor_base::{
    agent::{AgentDefinition, AgentKind, AgentOutput, AgentRun, Agents, CompositeAgent, INVOKE_AGENT},
    peer_agent::PeerAgent,
    text,
    tool::{PolicyClass, ToolCall, ToolError, ToolKind, ToolOutput, ToolSpec, ToolTraits},
};

/// Starts any agent with a text.
pub const INVOKE: &str = INVOKE_AGENT;
/// The argument of agents that name none.
pub(crate) const QUERY: &str = "query";
/// Children that run at once; more wait for one of them.
pub const MAX_CHILDREN: usize = 8;
/// So deep agents start agents.
pub(crate) const MAX_DEPTH: usize = 3;

/// The task that makes a session the run of a sub-agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentTask {
    pub result: ResultForm,
    /// Requests to the model, and minutes of work.
    pub turns: u32,
    pub minutes: f64,
    /// The number of agents above it; the agent that the user speaks to is one.
    pub depth: usize,
    /// It is one of those that a loop runs, and may end that loop.
    pub in_loop: bool,
}

/// The form in which a run hands in its result.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultForm {
    /// A call of `complete_task`, with a text or with this output.
    Submission(Option<AgentOutput>),
    /// The text of an answer without calls.
    Answer,
    /// Other agents hand in theirs: no model is asked.
    Members(Composition),
}

/// Agents that are run as one, and in which way.
#[derive(Clone, Debug, PartialEq)]
pub struct Composition {
    pub kind: AgentKind,
    pub composite: CompositeAgent,
}

impl AgentTask {
    pub(crate) fn submits(&self) -> bool {
        matches!(self.result, ResultForm::Submission(_))
    }

    /// Tells whether something else than a model answers in its session.
    pub fn is_of_peer(&self) -> bool {
        self.result == ResultForm::Answer
    }

    /// Tells whether the result is a value in place of a text.
    pub(crate) fn has_output(&self) -> bool {
        self.output().is_some()
    }

    /// The form of a submission, where it is not a text.
    pub fn output(&self) -> Option<&AgentOutput> {
        match &self.result {
            ResultForm::Submission(output) => output.as_ref(),
            ResultForm::Answer | ResultForm::Members(_) => None,
        }
    }

    /// The agents that it runs in place of asking a model.
    pub(crate) fn composition(&self) -> Option<&Composition> {
        match &self.result {
            ResultForm::Members(it) => Some(it),
            ResultForm::Submission(_) | ResultForm::Answer => None,
        }
    }

    /// The tools with which it ends its run.
    pub fn exit_tools(&self) -> Vec<ToolSpec> {
        let ResultForm::Submission(output) = &self.result else { return Vec::new() };
        [complete_task::spec(output.as_ref())].into_iter().chain(self.in_loop.then(escalate::spec)).collect()
    }
}

/// The agent that a call starts, and its arguments.
#[derive(Debug, PartialEq)]
pub struct Delegation<'a> {
    pub agent: &'a AgentDefinition,
    pub input: Map<String, Value>,
}

/// The tools with which these agents are started; none for no agents. `by_text`: all of them with a text.
pub fn agent_tools(agents: &Agents, by_text: bool) -> Vec<ToolSpec> {
    let is_own_tool = |it: &&AgentDefinition| !by_text && is_own_tool(it);
    let enabled = || agents.iter().filter(|it| it.enabled);
    let by_text: Vec<&AgentDefinition> = enabled().filter(|it| !is_own_tool(it)).collect();
    let own = enabled().filter(|it| is_own_tool(it)).map(|it| {
        let descriptor = &it.descriptor;
        tool(&descriptor.name, &descriptor.description, descriptor.input())
    });
    let invoke =
        (!by_text.is_empty()).then(|| tool(INVOKE, &invoke_description(&by_text), invoke_parameters(&by_text)));
    invoke.into_iter().chain(own).collect()
}

/// Tools that sessions have only with agents, or as a sub-agent's.
pub fn tools_of_agents() -> [ToolSpec; 4] {
    let invoke = tool(INVOKE, &invoke_description(&[]), invoke_parameters(&[]));
    [invoke, complete_task::spec(None), escalate::spec(), transfer::spec(&[])]
}

/// An agent with arguments of its own is a tool of its own, but for a single text.
fn is_own_tool(agent: &AgentDefinition) -> bool {
    agent.descriptor.input_schema.is_some() && text_argument(agent).is_none()
}

/// The only argument, where that is a text.
fn text_argument(agent: &AgentDefinition) -> Option<String> {
    let schema = agent.descriptor.input();
    let properties = schema.get("properties")?.as_object()?;
    let (name, property) = properties.iter().next().filter(|_| properties.len() == 1)?;
    (property.get("type").and_then(Value::as_str) == Some("string")).then(|| name.clone())
}

fn tool(name: &str, description: &str, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: name.to_owned().into(),
        title: "Agent".into(),
        description: description.to_owned().into(),
        kind: ToolKind::Other,
        traits: ToolTraits::DELEGATES,
        parameters: parameters.into(),
    }
}

fn invoke_description(agents: &[&AgentDefinition]) -> String {
    let rows: String =
        agents.iter().map(|it| format!("\n- {}: {}", it.descriptor.name, it.descriptor.description)).collect();
    format!(
        "Starts a sub-agent, waits for its end and returns its result. It knows nothing of this conversation: say all that \
         it needs. Independent tasks go out together; they run side by side. Agents:{rows}"
    )
}

fn invoke_parameters(agents: &[&AgentDefinition]) -> Value {
    let names: Vec<&str> = agents.iter().map(|it| it.descriptor.name.as_str()).collect();
    json!({
        "type": "object",
        "properties": {
            "agent_name": { "type": "string", "enum": names },
            "prompt": { "type": "string", "description": "The whole task, with all that the agent has to know." }
        },
        "required": ["agent_name", "prompt"]
    })
}

/// Each call of a remote agent is asked about, as Gemini CLI does: its prompt leaves this machine. Above what all agents
/// may, below the mode that asks nothing and below what people write.
pub fn remote_rules(agents: &Agents) -> Vec<Rule> {
    let names = agents.iter().filter(|it| it.enabled && it.descriptor.executor == AgentKind::Remote);
    let rule = |it: &AgentDefinition| {
        // A name has nothing that patterns or TOML would read in another way.
        let pattern = format!(r#"\x00"agent_name":"{}"\x00"#, it.descriptor.name);
        let head = format!("[[rule]]\ntoolName = \"{INVOKE}\"\ndecision = \"ask_user\"\npriority = 60\n");
        let text = format!("{head}argsPattern = '{pattern}'\n");
        RuleSet::load(&text, Tier::Default, "default/remote-agents").0.rules
    };
    names.flat_map(rule).collect()
}

/// The reason why castor asks about a call of such an agent.
pub fn remote_reason(agents: &[AgentDefinition], call: &ToolCall) -> Option<String> {
    let AgentRun::Peer(peer) = &find(agents, agent_name(call))?.run else { return None };
    let PeerAgent::Remote(it) = &**peer else { return None };
    Some(format!("the prompt goes to the remote agent {} at {}", it.name, it.card.place()))
}

/// Name and arguments of a call for rules: they speak of all calls of agents as of `invoke_agent`.
/// `peer` tells that it is none of castor's, and `kind` which.
pub fn as_rules_see(agents: &[AgentDefinition], call: &ToolCall, class: PolicyClass) -> (String, Value) {
    let ToolCall { name, args, .. } = call.clone();
    if class != PolicyClass::Delegate {
        return (name, args);
    }
    let mut args = args.as_object().cloned().unwrap_or_default();
    args.entry("agent_name").or_insert_with(|| name.into());
    let peer = find(agents, agent_name(call)).filter(|it| matches!(it.run, AgentRun::Peer(_)));
    if let Some(it) = peer {
        args.insert("kind".to_owned(), json!(it.descriptor.executor));
        args.insert("peer".to_owned(), true.into());
    }
    (INVOKE.to_owned(), args.into())
}

/// The agent that a call starts, as the call names it.
pub fn agent_name(call: &ToolCall) -> &str {
    let named = call.args.get("agent_name").and_then(Value::as_str).filter(|_| call.name == INVOKE);
    named.unwrap_or(&call.name)
}

/// What a call of one of these tools starts.
///
/// # Errors
/// For the model: an agent that is not there, or arguments that do not fit.
pub fn delegation<'a>(agents: &'a [AgentDefinition], tool: &str, args: &Value) -> Result<Delegation<'a>, ToolError> {
    let invalid = |why: String| ToolError::new("invalid_tool_params", why);
    let args = args.as_object().cloned().unwrap_or_default();
    if tool != INVOKE {
        let agent = find(agents, tool).ok_or_else(|| not_found(agents, tool))?;
        check_input(agent, &args).map_err(invalid)?;
        return Ok(Delegation { agent, input: args });
    }
    let said = |key: &str| args.get(key).and_then(Value::as_str).filter(|it| !it.trim().is_empty());
    let name = said("agent_name").ok_or_else(|| invalid(format!("{INVOKE} needs `agent_name`.")))?;
    let prompt = said("prompt").ok_or_else(|| invalid(format!("{INVOKE} needs `prompt`, a text.")))?;
    let agent = find(agents, name).ok_or_else(|| not_found(agents, name))?;
    let key = text_argument(agent).unwrap_or_else(|| QUERY.to_owned());
    Ok(Delegation { agent, input: Map::from_iter([(key, prompt.into())]) })
}

fn find<'a>(agents: &'a [AgentDefinition], name: &str) -> Option<&'a AgentDefinition> {
    agents.iter().find(|it| it.enabled && it.descriptor.name == name)
}

fn not_found(agents: &[AgentDefinition], name: &str) -> ToolError {
    let names: Vec<&str> = agents.iter().filter(|it| it.enabled).map(|it| it.descriptor.name.as_str()).collect();
    let there = if names.is_empty() { "There are none".to_owned() } else { format!("There are {}", names.join(", ")) };
    ToolError::new("agent_not_found", format!("Subagent '{}' not found. {there}.", text::head(name, 200)))
}

fn check_input(agent: &AgentDefinition, args: &Map<String, Value>) -> Result<(), String> {
    let Ok(validator) = jsonschema::validator_for(&agent.descriptor.input()) else { return Ok(()) };
    let args = Value::Object(args.clone());
    let first = validator.iter_errors(&args).next().map(|it| it.to_string());
    first.map_or(Ok(()), |it| Err(format!("{}: {it}", agent.descriptor.name)))
}

/// The agent, and the first line of what it is to do.
pub fn delegation_title(call: &ToolCall) -> String {
    let said = |args: &Map<String, Value>| match args.get("prompt") {
        Some(Value::String(it)) => Some(it.clone()),
        _ => args.iter().filter(|it| it.0 != "agent_name").find_map(|it| it.1.as_str().map(str::to_owned)),
    };
    let task = call.args.as_object().and_then(said).map(|it| text::first_line(&it, 200)).unwrap_or_default();
    let agent = text::head(agent_name(call), 200);
    if task.is_empty() { agent.to_owned() } else { format!("{agent}: {task}") }
}

/// Tells whether a name fits an entry of an agent's list: itself, `*`, or a pattern with `*` at its end.
pub fn fits_tool(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(head) => name.starts_with(head),
        None => pattern == name,
    }
}

/// The words for a tool that an agent does not have.
pub fn unauthorized(name: &str) -> ToolOutput {
    let why = format!("Unauthorized tool call: '{}' is not available to this agent.", text::head(name, 200));
    ToolOutput::failed(ToolError::new("tool_not_registered", why))
}

/// The agents that an agent may start itself: those that its definition names, down to the greatest depth.
pub fn agents_of(agents: &Agents, agent: &AgentDefinition, depth: usize) -> Agents {
    let named = |it: &&AgentDefinition| agent.descriptor.sub_agents.iter().any(|sub| sub.name == it.descriptor.name);
    match depth < MAX_DEPTH {
        true => agents.iter().filter(named).cloned().collect(),
        false => Arc::default(),
    }
}
