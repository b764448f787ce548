//! Sub-agents in the scripts of turns: `(starts)` for a session that may start them, `(helper …)` for a run of one with
//! `turns=N`, `minutes=N` and `output`.

use serde_json::{Value, json};

use super::Spec;
use crate::turn::child_spec;
use crate::{
    record::{Record, SessionOrigin},
    session_tools::delegate::delegation,
    step::Input,
};
use castor_base::{
    agent::{AgentConstraints, AgentDefinition, AgentDescriptor, AgentOrigin, AgentOutput, AgentRun, LocalAgent},
    content::Part,
    event::{AgentEvent, EventKind, Speaker, ToolDisplay},
    ids::{CallId, EffectId, MessageId, StreamId},
    log::Mode,
    model::{Purpose, Usage},
    state::StateMap,
    tool::ToolKind,
};

fn helper(words: &str) -> AgentDefinition {
    let number = |key: &str| {
        let value = words.split_whitespace().find_map(|it| it.strip_prefix(key)?.strip_prefix('='));
        value.map(|it| it.trim_end_matches(')').parse::<u32>().unwrap())
    };
    let constraints = AgentConstraints {
        max_turns: number("turns"),
        max_time_minutes: number("minutes").map(f64::from),
        max_budget_usd: None,
    };
    let output = AgentOutput {
        name: "report".to_owned(),
        description: "What was found.".to_owned(),
        schema: json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
    };
    let local = LocalAgent {
        instructions: "You help with ${query}.".to_owned(),
        output: words.contains("output").then_some(output),
        ..LocalAgent::default()
    };
    let (name, description) = ("helper".to_owned(), "Helps.".to_owned());
    AgentDefinition {
        descriptor: AgentDescriptor { name, description, constraints, ..AgentDescriptor::default() },
        origin: AgentOrigin::BuiltIn,
        enabled: true,
        rights: Vec::new(),
        folders: Vec::new(),
        run: AgentRun::Local(Box::new(local)),
    }
}

/// `spec` as the section's name says.
pub(super) fn spec(name: &str, origin: &SessionOrigin, mut spec: Spec) -> Spec {
    let of_run = name.split_once("(helper");
    if of_run.is_none() && !name.contains("(starts") {
        return spec;
    }
    let agents = vec![helper(of_run.map_or("", |it| it.1))];
    spec.choices.agents.definitions = agents.into();
    if of_run.is_none() {
        return spec;
    }
    spec.toolbox = spec.toolbox.with_agents(spec.choices.agents.definitions.clone());
    let args = json!({ "agent_name": "helper", "prompt": "x" });
    let what = delegation(&spec.toolbox.agents, "invoke_agent", &args).unwrap();
    child_spec(
        &spec,
        &Record::new(SessionOrigin { mode: Mode::Default, ..origin.clone() }),
        &what,
        &StateMap::new(),
        "today",
    )
    .unwrap()
    .spec
}

/// `child EFFECT thought|call|result|error|usage TEXT`: what a sub-agent did; `waits EFFECT`, `goes-on EFFECT`;
/// `hint 0 TEXT`: what the agent above was told.
pub(super) fn input(verb: &str, effect: EffectId, rest: &str) -> Input {
    let (word, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let kind = match (verb, word) {
        ("waits", _) => return Input::ChildWaits { effect, waits: true },
        ("hint", _) => return Input::Hint(vec![Part::text(rest)]),
        ("goes-on", _) => return Input::ChildWaits { effect, waits: false },
        ("child", "thought") => EventKind::Message {
            role: Speaker::Agent,
            message_id: MessageId::from("m"),
            content: vec![Part::Thought { thought: text.to_owned(), signature: None }],
            cuts: Vec::new(),
        },
        ("child", "call") => EventKind::ToolRequest {
            request_id: CallId::from("z"),
            name: "read_file".to_owned(),
            args: json!({}),
            display: ToolDisplay { title: text.to_owned(), kind: ToolKind::Read, locations: Vec::new() },
            signature: None,
        },
        ("child", "result") => EventKind::ToolResponse {
            request_id: CallId::from("z"),
            name: "read_file".to_owned(),
            content: vec![Part::text(text)],
            display: None,
            summary: None,
            error: None,
            data: Value::Null,
            seen: None,
        },
        ("child", "usage") => EventKind::Usage {
            model: "m".to_owned(),
            usage: Usage { total: text.parse().unwrap(), ..Usage::default() },
            size: 1_000,
            purpose: Purpose::Agent,
            cost: None,
            session_cost: None,
        },
        other => panic!("unknown step: {other:?}"),
    };
    let event = AgentEvent::of_main("s-0".to_owned(), StreamId::from("s"), 0, kind);
    Input::ChildEvent { effect, event: Box::new(event) }
}
