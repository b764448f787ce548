//! The spec that a session's turns go by: that of its folder, with the agents that may be started and the agent that it is.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::turn::{
    agents::{
        child_spec::{add_facts, role_of},
        template::FilledTemplate,
    },
    spec::{Choices, MemorySources, Spec, TurnBounds},
};
use crate::{record::Record, session_tools::delegate::agents_of};
use castor_base::{
    agent::{AgentDefinition, AgentDescriptor, AgentRun, FolderAgents, LocalAgent},
    file_prompt::{ACTIVATE_SKILL, FolderPrompts, Skill},
    limits::{Caps, Limits},
    money::Money,
    state::StateMap,
};

/// The value of each argument of the agent, as the user says in prompts what to do.
const ARGUMENT: &str = "what the user asks for";

/// Its agents as they were switched in the session.
pub fn switched_agents(folder: &FolderAgents, record: &Record) -> FolderAgents {
    let switched = |it: &AgentDefinition| {
        let enabled = record.agent_switch(&it.descriptor.name).unwrap_or(it.enabled);
        AgentDefinition { enabled, ..it.clone() }
    };
    FolderAgents { definitions: folder.definitions.iter().map(switched).collect(), notes: folder.notes.clone() }
}

/// Its commands and skills as they were switched in the session.
pub fn switched_prompts(folder: &FolderPrompts, record: &Record) -> FolderPrompts {
    let switched = |it: &Skill| Skill { enabled: record.skill_switch(&it.name).unwrap_or(it.enabled), ..it.clone() };
    FolderPrompts { skills: folder.skills.iter().map(switched).collect(), ..folder.clone() }
}

/// What the model may ask for.
fn active_skills(prompts: &FolderPrompts) -> Arc<[Skill]> {
    prompts.skills.iter().filter(|it| it.enabled).cloned().collect()
}

/// Those that a session can be: an agent of several has no instructions of its own.
pub fn session_agents(agents: &FolderAgents) -> impl Iterator<Item = (&AgentDefinition, &LocalAgent)> {
    let local = |it: &AgentDefinition| matches!(it.run, AgentRun::Local(_)) && it.enabled;
    agents.definitions.iter().filter(move |it| local(it)).filter_map(|it| match &it.run {
        AgentRun::Local(run) => Some((it, &**run)),
        AgentRun::Composite(_) | AgentRun::Peer(_) => None,
    })
}

/// The agent of this name, if a session can be it.
pub fn find_session_agent<'a>(agents: &'a FolderAgents, name: &str) -> Option<(&'a AgentDefinition, &'a LocalAgent)> {
    session_agents(agents).find(|(it, _)| it.descriptor.name == name)
}

/// `folder`: as the session's folder has it, or a run's own. `agent`: whose turns they are; `None`: castor's own.
/// `state`: all values. `today`: as people write a date.
pub fn session_spec(folder: &Spec, record: &Record, agent: Option<&str>, state: &StateMap, today: &str) -> Spec {
    let host = folder.toolbox.host();
    let host = record.prompt_host().map_or_else(|| host.clone(), |it| Arc::new(host.with_prompt(it)));
    if host.is_empty() {
        return agent_spec(folder, record, agent, state, today);
    }
    let mut folder = folder.clone();
    if host.runs_all() {
        // What the model is to know of the workspace is the host's to say.
        folder.memory_sources = MemorySources { at_start: false, just_in_time: false };
    }
    folder.toolbox = folder.toolbox.for_host(host);
    let spec = agent_spec(&folder, record, agent, state, today);
    Spec { toolbox: spec.toolbox.with_host_tools(), ..spec }
}

fn agent_spec(folder: &Spec, record: &Record, agent: Option<&str>, state: &StateMap, today: &str) -> Spec {
    let agents = switched_agents(&folder.choices.agents, record);
    if let Some(task) = &folder.toolbox.task {
        let own = record.principal.agent().and_then(|it| agents.find(it));
        let starts = own.map(|it| agents_of(&agents.definitions, it, task.depth)).unwrap_or_default();
        return Spec { toolbox: folder.toolbox.clone().with_agents(starts), ..folder.clone() };
    }
    let prompts = switched_prompts(&folder.choices.prompts, record);
    let Some((definition, local)) = agent.and_then(|it| find_session_agent(&agents, it)) else {
        let toolbox = folder.toolbox.for_session(None).with_agents(agents.definitions.clone());
        let toolbox = toolbox.with_skills(active_skills(&prompts));
        let choices = Choices { agents, prompts, ..folder.choices.clone() };
        let instructions = folder.instructions.with_client_prompt(record.client_prompt());
        return Spec { toolbox, instructions, choices, ..folder.clone() };
    };
    let starts = agents_of(&agents.definitions, definition, 1);
    let role = instructions((definition, local), &record.model, state, today);
    let instructions = folder.instructions.for_session_of(&role).with_client_prompt(record.client_prompt());
    let limits = session_limits(folder.bounds.limits, definition);
    let role = Some(Arc::new(role_of(&definition.descriptor.name, local)));
    let successors = successors(&agents, definition);
    let toolbox = folder.toolbox.for_session(Some(definition)).with_agents(starts).with_successors(successors);
    let has_skills = local.tools.as_ref().is_none_or(|it| it.iter().any(|it| it == "*" || it == ACTIVATE_SKILL));
    let toolbox = toolbox.with_skills(if has_skills { active_skills(&prompts) } else { Arc::default() });
    let bounds = TurnBounds { limits, ..folder.bounds };
    let choices = Choices { agents, prompts, ..folder.choices.clone() };
    Spec { toolbox, instructions, bounds, role, choices, ..folder.clone() }
}

/// Who may take over the session of an agent: the agents that it names, and those that name it.
fn successors(agents: &FolderAgents, agent: &AgentDefinition) -> Vec<(String, String)> {
    let names = |one: &AgentDescriptor, other: &str| one.sub_agents.iter().any(|it| it.name == other);
    let own = &agent.descriptor;
    let related = session_agents(agents)
        .map(|(it, _)| &it.descriptor)
        .filter(|it| it.name != own.name && (names(own, &it.name) || names(it, &own.name)));
    related.map(|it| (it.name.clone(), it.description.clone())).collect()
}

fn instructions(
    (definition, local): (&AgentDefinition, &LocalAgent),
    model: &str,
    state: &StateMap,
    today: &str,
) -> String {
    let schema = definition.descriptor.input();
    let names = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys);
    let mut inputs: Map<String, Value> = names.map(|it| (it.clone(), ARGUMENT.into())).collect();
    add_facts(&mut inputs, model, today);
    let state = local.takes_state.then_some(state);
    // Instructions that name something without a value stay as they are.
    FilledTemplate::new(&local.instructions, &inputs, state).text
}

/// How far a turn goes: as the settings say, and no farther than the definition says.
pub fn session_limits(settings: Limits, agent: &AgentDefinition) -> Limits {
    let own = &agent.descriptor.constraints;
    let Caps { requests, seconds, cost, tokens } = settings.turn;
    let nearer = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    let turn = Caps {
        requests: nearer(requests, own.max_turns.map(u64::from)),
        seconds: nearer(seconds, own.max_time_minutes.map(|it| (it * 60.0).ceil().max(1.0) as u64)),
        cost: cost.into_iter().chain(own.max_budget_usd.map(Money::dollars)).min(),
        tokens,
    };
    Limits { turn, ..settings }
}
