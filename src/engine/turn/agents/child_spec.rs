//! The spec of a sub-agent's session, made from that of the session that starts it and from its definition.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::turn::{
    agents::{
        conversation_text::conversation_text,
        template::{FilledTemplate, fill_template},
    },
    spec::{AgentRole, Spec, TurnBounds},
};
use crate::{
    record::Record,
    routing::Chain,
    session_tools::delegate::{AgentTask, Composition, Delegation, MAX_DEPTH, ResultForm, agents_of},
};
use castor_base::{
    agent::{AgentKind, AgentRun, CompositeAgent, LocalAgent},
    limits::{Caps, LimitSpan, Limits},
    money::Money,
    peer_agent::PeerAgent,
    state::StateMap,
};

/// The prompt of an agent that was given no arguments.
const DEFAULT_QUERY: &str = "Get Started!";
const LOOP_RULE: &str = "\n- Agents work in a loop here, and you are one of them. When its goal is reached, call `escalate`: that ends \
                         the loop.";

/// What a sub-agent begins with.
#[derive(Debug)]
pub struct ChildStart {
    pub spec: Spec,
    /// What it is told before its prompt.
    pub context: Option<String>,
    pub prompt: String,
    pub model: ChildModel,
}

/// What answers a sub-agent's requests.
#[derive(Debug)]
pub enum ChildModel {
    /// As the definition or the session above names it.
    Named(String),
    /// An agent that is not castor's, under this name, with the memory that its last run in this session left to it.
    Peer { name: String, peer: Box<PeerAgent>, memory: Option<String> },
}

impl ChildModel {
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) | Self::Peer { name, .. } => name,
        }
    }
}

/// What a sub-agent's session is made from. `state`: that of the session above. `today`: as people write a date.
///
/// # Errors
/// For the model: a template that names arguments or keys which are not there.
pub fn child_spec(
    parent: &Spec,
    record: &Record,
    what: &Delegation<'_>,
    state: &StateMap,
    today: &str,
) -> Result<ChildStart, String> {
    match &what.agent.run {
        AgentRun::Local(local) => local_start(parent, record, (what, local), state, today),
        AgentRun::Composite(it) => composite_start(parent, record, what, it),
        AgentRun::Peer(peer) => Ok(peer_start(parent, record, what, peer)),
    }
}

fn local_start(
    parent: &Spec,
    record: &Record,
    (what, local): (&Delegation<'_>, &LocalAgent),
    state: &StateMap,
    today: &str,
) -> Result<ChildStart, String> {
    let own = local.model.as_deref().filter(|it| *it != "inherit");
    let model = own.unwrap_or(&record.model).to_owned();
    let mut inputs = what.input.clone();
    add_facts(&mut inputs, &model, today);
    let state = local.takes_state.then_some(state);
    let instructions = FilledTemplate::new(&local.instructions, &inputs, state).complete(&inputs)?;
    let prompt = match &local.query {
        Some(it) => fill_template(it, &inputs)?,
        None => query(&what.input),
    };
    let result = ResultForm::Submission(local.output.clone());
    let base = base_spec(parent, record, what, result);
    let rules = rules(local.output.is_some(), base.toolbox.task.as_ref().is_some_and(|it| it.in_loop));
    let spec = Spec {
        instructions: parent.instructions.for_agent(&instructions, &rules),
        role: Some(Arc::new(role_of(&what.agent.descriptor.name, local))),
        ..base
    };
    let context = local.include_contents.then(|| conversation_text(record.turns())).flatten();
    Ok(ChildStart { spec, context, prompt, model: ChildModel::Named(model) })
}

/// It has instructions of its own: it gets the prompt alone, and its answer is the result.
fn peer_start(parent: &Spec, record: &Record, what: &Delegation<'_>, peer: &PeerAgent) -> ChildStart {
    let agent = what.agent.descriptor.name.clone();
    let memory = record.peer_memory(&agent).map(str::to_owned);
    let model = ChildModel::Peer { name: peer.model(&agent), peer: Box::new(peer.clone()), memory };
    let base = base_spec(parent, record, what, ResultForm::Answer);
    let turn = Caps { requests: None, ..base.bounds.limits.turn };
    let limits = Limits { turn, ..base.bounds.limits };
    let bounds = TurnBounds { limits, compress_above: 0.0, distill: None, ..base.bounds };
    let role = Some(Arc::new(AgentRole { agent, temperature: None, output_key: None }));
    let instructions = parent.instructions.for_agent("", "");
    // Another model cannot answer in its place.
    let spec = Spec { instructions, role, bounds, chain: Chain::default(), ..base };
    ChildStart { spec, context: None, prompt: query(&what.input), model }
}

/// It asks no model: what it has of the session above is for its agents.
fn composite_start(
    parent: &Spec,
    record: &Record,
    what: &Delegation<'_>,
    composite: &CompositeAgent,
) -> Result<ChildStart, String> {
    let kind = what.agent.descriptor.executor;
    let result = ResultForm::Members(Composition { kind, composite: composite.clone() });
    let spec = base_spec(parent, record, what, result);
    let depth = spec.toolbox.task.as_ref().map_or(0, |it| it.depth);
    let members = agents_of(&spec.choices.agents.definitions, what.agent, depth);
    let is_there = |name: &&String| members.iter().any(|it| it.enabled && it.descriptor.name == **name);
    match composite.agents.iter().find(|it| !is_there(it)) {
        Some(_) if depth >= MAX_DEPTH => {
            Err(format!("agents start agents {MAX_DEPTH} deep at most, and it is the last"))
        }
        Some(name) => Err(format!("its agent {name} is not there, or it is off")),
        None => {
            let agent = what.agent.descriptor.name.clone();
            let output_key = composite.output_key.clone();
            let role = Some(Arc::new(AgentRole { agent, temperature: None, output_key }));
            let (prompt, model) = (query(&what.input), ChildModel::Named(record.model.clone()));
            Ok(ChildStart { spec: Spec { role, ..spec }, context: None, prompt, model })
        }
    }
}

/// What all kinds of sub-agents have from the session above them.
fn base_spec(parent: &Spec, record: &Record, what: &Delegation<'_>, result: ResultForm) -> Spec {
    let task = task(parent, what, result);
    let limits = limits(parent, record, what);
    let mut toolbox = parent.toolbox.clone().of_prompt(record).for_agent(what.agent, task);
    // What the session above read may stand in its task.
    toolbox.sandbox.facts.exposed |= record.secrets_exposed();
    Spec {
        toolbox,
        bounds: TurnBounds { limits, watches_loops: false, asks_next_speaker: false, ..parent.bounds },
        ..parent.clone()
    }
}

/// What templates can name beside arguments.
pub(in crate::turn) fn add_facts(inputs: &mut Map<String, Value>, model: &str, today: &str) {
    for (name, value) in [("cliVersion", env!("CARGO_PKG_VERSION")), ("activeModel", model), ("today", today)] {
        inputs.entry(name).or_insert_with(|| value.into());
    }
}

pub(in crate::turn) fn role_of(agent: &str, local: &LocalAgent) -> AgentRole {
    AgentRole { agent: agent.to_owned(), temperature: local.temperature, output_key: local.output_key.clone() }
}

fn task(parent: &Spec, what: &Delegation<'_>, result: ResultForm) -> AgentTask {
    let constraints = &what.agent.descriptor.constraints;
    let above = parent.toolbox.task.as_deref();
    let runs_in_loop = |it: &AgentTask| it.composition().is_some_and(|its| its.kind == AgentKind::Loop || it.in_loop);
    AgentTask {
        result,
        turns: constraints.turns(),
        minutes: constraints.minutes(),
        depth: above.map_or(1, |it| it.depth + 1),
        in_loop: above.is_some_and(runs_in_loop),
    }
}

/// Its own, and of money what is left above it: a model without a price is asked nothing where money counts.
fn limits(parent: &Spec, record: &Record, what: &Delegation<'_>) -> Limits {
    let constraints = &what.agent.descriptor.constraints;
    let above = crate::turn::limits(record, parent);
    let left = [LimitSpan::Turn, LimitSpan::Session].into_iter().filter_map(|span| {
        let used = record.limit_usage(span).cost;
        above.caps(span).cost.map(|it| it.minus(used))
    });
    let own = constraints.max_budget_usd.map(Money::dollars);
    // A composite takes as long as its agents may, unless it says how long.
    let has_default = !matches!(what.agent.run, AgentRun::Composite(_));
    let minutes = constraints.max_time_minutes.or_else(|| has_default.then(|| constraints.minutes()));
    let turn = Caps {
        requests: Some(u64::from(constraints.turns())),
        seconds: minutes.map(|it| (it * 60.0).ceil().max(1.0) as u64),
        cost: left.chain(own).min(),
        tokens: None,
    };
    Limits { turn, session: Caps::default() }
}

/// The only text of the arguments, or all of them.
fn query(input: &Map<String, Value>) -> String {
    let mut values = input.values();
    match (values.next(), values.next()) {
        (None, _) => DEFAULT_QUERY.to_owned(),
        (Some(Value::String(it)), None) => it.clone(),
        _ => serde_json::to_string_pretty(input).unwrap_or_default(),
    }
}

fn rules(has_output: bool, in_loop: bool) -> String {
    let result = match has_output {
        true => "- When the task is done, call `complete_task` with your structured output.",
        false => {
            "- When the task is done, call `complete_task` with all that you found in `result`: nothing else of your work \
             is seen."
        }
    };
    format!(
        "# Rules of this run\n- Nobody can be asked: decide by yourself, and say what you assumed.\n- Work step by step \
         with your tools. Use absolute paths.\n- A refused call is an answer: think of another way, or say in your result \
         that you could not.\n{result}\n- Call `complete_task` alone. It is the only way to finish: a run that stops \
         without it has failed.{}",
        if in_loop { LOOP_RULE } else { "" }
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::query;

    #[test]
    fn the_prompt_is_the_only_text() {
        for (input, prompt) in [
            (json!({}), "Get Started!"),
            (json!({ "objective": "Find it." }), "Find it."),
            (json!({ "a": 1, "b": "c" }), "{\n  \"a\": 1,\n  \"b\": \"c\"\n}"),
        ] {
            assert_eq!(query(input.as_object().unwrap()), prompt);
        }
    }
}
