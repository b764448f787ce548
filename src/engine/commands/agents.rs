//! The slash command `/agents`: lists agents, shows one, switches them for the session, and reads their files again.

use super::definitions_reading::{self, names};
use crate::{
    record::Step,
    turn::{agents::session_agent::switched_agents, flow::Flow, spec::TurnContext},
};
use castor_base::{
    agent::{AgentDefinition, AgentRun, FolderAgents, LocalAgent},
    log::Fact,
    text,
};

const USAGE: &str = "`/agents` lists the agents, `/agents show NAME` shows one, `/agents enable NAME` and `/agents disable NAME` \
                     switch one, `/agents reload` reads their files again.";
/// Longest instructions that are shown, in bytes.
const MAX_SHOWN: usize = 8_000;

pub(super) fn run(cx: &mut TurnContext<'_, '_>, args: &str) -> Flow {
    let (verb, name) = args.split_once(char::is_whitespace).unwrap_or((args, ""));
    let name = name.trim();
    Flow::report(match (verb, name) {
        ("" | "list", "") => list(cx),
        ("reload" | "refresh", "") => {
            return definitions_reading::read(cx.step, |cx, agents, _| {
                let now = switched_agents(&agents, cx.step.record);
                format!("{}{}", changes(&cx.spec.choices.agents, &now), notes(&now))
            });
        }
        ("show" | "enable" | "disable", "") => USAGE.to_owned(),
        ("show" | "enable" | "disable", name) => match cx.spec.choices.agents.find(name) {
            Some(it) if verb == "show" => page(cx, it),
            Some(it) => switch(cx.step, it, verb == "enable"),
            None => format!("There is no agent `{}`; `/agents` lists them.", text::first_line(name, 100)),
        },
        _ => USAGE.to_owned(),
    })
}

fn list(cx: &TurnContext<'_, '_>) -> String {
    let agents = &cx.spec.choices.agents;
    let lines: String = agents.definitions.iter().map(|it| line(cx, it)).collect();
    format!("{lines}{}", notes(agents))
}

fn line(cx: &TurnContext<'_, '_>, it: &AgentDefinition) -> String {
    let name = &it.descriptor.name;
    let state = if it.enabled { "on" } else { "off" };
    let own = if cx.step.record.chosen_agent() == Some(name) { ", this session's" } else { "" };
    let about = text::first_line(&it.descriptor.description, 200);
    format!("- `{name}` ({}, {state}{own}): {about}\n", it.origin.scope().as_str())
}

fn notes(agents: &FolderAgents) -> String {
    agents.notes.iter().map(|it| format!("\n{}\n", text::first_line(it, 500))).collect()
}

fn page(cx: &TurnContext<'_, '_>, it: &AgentDefinition) -> String {
    let constraints = &it.descriptor.constraints;
    let mut res = line(cx, it);
    let mut row = |name: &str, value: String| res += &format!("  - {name}: {value}\n");
    if let Some(file) = it.origin.file() {
        row("File", format!("`{}`", text::path_in_words(&file.to_string())));
    }
    let AgentRun::Local(run) = &it.run else { return res };
    let LocalAgent { instructions, model, tools, mcp_servers, .. } = &**run;
    row(
        "Model",
        model.as_ref().map_or("that of the session".to_owned(), |it| format!("`{}`", text::first_line(it, 200))),
    );
    row("Tools", tools.as_ref().map_or("all".to_owned(), |it| names(it)));
    if !mcp_servers.is_empty() {
        row("MCP servers", names(&mcp_servers.iter().map(|it| it.name.clone()).collect::<Vec<_>>()));
    }
    row("Limits", format!("{} requests, {} minutes", constraints.turns(), constraints.minutes()));
    format!("{res}\n{}\n", text::head(instructions, MAX_SHOWN))
}

fn switch(step: &mut Step<'_>, it: &AgentDefinition, enabled: bool) -> String {
    let what = if enabled { "on" } else { "off" };
    if it.enabled == enabled {
        return format!("It is {what} already.");
    }
    step.log(Fact::AgentSwitched { agent: it.descriptor.name.clone(), enabled });
    format!("It is {what} in this session.")
}

/// The changes that a new look at the files found, in words.
fn changes(before: &FolderAgents, now: &FolderAgents) -> String {
    definitions_reading::changes(("agent", "agents"), &by_name(before), &by_name(now))
}

fn by_name(all: &FolderAgents) -> Vec<(&str, &AgentDefinition)> {
    all.definitions.iter().map(|it| (it.descriptor.name.as_str(), it)).collect()
}
