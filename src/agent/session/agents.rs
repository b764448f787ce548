//! Agents of a session: definitions from files and castor's own, as the settings change them.

use serde_json::Value;

use crate::{
    session::policies::own_tools,
    settings::{self, AgentOverride, McpSettings, Settings, Sources},
};
use castor_base::{
    agent::{AgentDefinition, AgentKind, AgentOrigin, AgentRun, Agents, ClientAgent, FolderAgents, LocalAgent},
    mcp::merge_servers,
    peer_agent::PeerAgent,
    trust::TrustedFileKind,
};
use castor_engine::{policy::current_name, routing::aliases::Aliases};
use castor_tools::workspace::{Warning, agents::FoundAgents, folder_config::FolderConfig, settings as settings_files};

/// Words of Claude Code for models. They mean something only where an alias says what.
const CLAUDE_MODELS: &[&str] = &["haiku", "opus", "sonnet"];

/// The agents of a folder; those that settings switch off are marked. Empty where there are to be none.
pub fn agents(ground: &FolderConfig, settings: &Settings) -> (Agents, Vec<Warning>) {
    agents_with(ground, settings, None)
}

fn agents_with(ground: &FolderConfig, settings: &Settings, of_client: Option<&ClientAgent>) -> (Agents, Vec<Warning>) {
    let layers = ground.layers();
    // Their form was checked with all other settings.
    let (wanted, _) = settings::agents(Sources { layers, env: &ground.env, flags: &[] });
    if !wanted.enabled {
        return (Agents::default(), Vec::new());
    }
    let mut found = ground.agents(&tool_name);
    if let Some(it) = of_client {
        found = found.with_client(it, &tool_name);
    }
    let FoundAgents { mut definitions, warnings } = found;
    for it in &mut definitions {
        it.enabled &= wanted.auto_memory || it.origin != AgentOrigin::BuiltIn || it.rights.is_empty();
        if let Some(change) = wanted.overrides.get(&it.descriptor.name) {
            apply(change, it);
        }
        // As servers: the folder could put a program in their way.
        it.enabled &= ground.trust.is_trusted() || it.descriptor.executor != AgentKind::Acp;
        bind_program(it, ground);
        if let AgentRun::Local(run) = &mut it.run {
            run.model = run.model.take().filter(|it| has_meaning(it, &settings.models.aliases));
            bind_servers(run, ground, &settings.mcp);
        }
    }
    (definitions.into(), warnings)
}

/// The same with what is to be said of the files.
pub fn folder_agents(ground: &FolderConfig, settings: &Settings) -> (FolderAgents, Vec<Warning>) {
    session_agents(ground, settings, None)
}

/// The same for a session whose client may have brought one.
pub fn session_agents(
    ground: &FolderConfig,
    settings: &Settings,
    of_client: Option<&ClientAgent>,
) -> (FolderAgents, Vec<Warning>) {
    let (definitions, warnings) = agents_with(ground, settings, of_client);
    let notes = if definitions.is_empty() { Vec::new() } else { notes(ground) };
    let notes = notes.into_iter().chain(warnings.iter().map(ToString::to_string)).collect();
    (FolderAgents { definitions, notes }, warnings)
}

/// Agent files of the folder that are not used, and why.
pub fn notes(ground: &FolderConfig) -> Vec<String> {
    let FolderConfig { trust, project, folder, .. } = ground;
    let untrusted = (!trust.is_trusted())
        .then(|| format!("{folder} is not trusted: its own agents are not used, nor those that are programs."));
    let changes = project.changes(TrustedFileKind::Agent);
    let changes = changes.into_iter().map(|it| format!("{it}; `castor trust` trusts its current content."));
    untrusted.into_iter().chain(changes).collect()
}

/// What castor calls a tool of its own today.
pub fn tool_name(name: &str) -> Option<String> {
    let name = current_name(name);
    own_tools().iter().any(|it| it.name == name).then(|| name.to_owned())
}

fn has_meaning(model: &str, aliases: &Aliases) -> bool {
    !CLAUDE_MODELS.contains(&model) || aliases.knows(model)
}

fn apply(change: &AgentOverride, it: &mut AgentDefinition) {
    it.enabled = change.enabled.unwrap_or(it.enabled);
    let limits = &mut it.descriptor.constraints;
    limits.max_turns = change.max_turns.or(limits.max_turns);
    limits.max_time_minutes = change.max_time_minutes.or(limits.max_time_minutes);
    let AgentRun::Local(run) = &mut it.run else { return };
    if let Some(model) = &change.model {
        run.model = Some(model.clone()).filter(|it| it != "inherit");
    }
    run.temperature = change.temperature.or(run.temperature);
    if let Some(tools) = &change.tools {
        let tools: Vec<String> = tools.iter().map(|it| current_name(it).to_owned()).collect();
        it.descriptor.required_tools = tools.iter().filter(|it| *it != "*").cloned().collect();
        run.tools = Some(tools);
    }
    if !change.mcp_servers.is_empty() {
        run.mcp_servers = merge_servers(change.mcp_servers.clone(), std::mem::take(&mut run.mcp_servers));
        it.descriptor.own_tools = run.mcp_servers.iter().map(|it| format!("mcp_{}_*", it.name)).collect();
    }
}

/// A program gets the variables that its file names, and what a workspace runs is bound to what was trusted.
fn bind_program(it: &mut AgentDefinition, ground: &FolderConfig) {
    let AgentRun::Peer(run) = &mut it.run else { return };
    let PeerAgent::Program(program) = &mut **run else { return };
    *program = ground.expand_program(program);
    let expand = match it.origin {
        // What it names was not shown: an extension gets no more than a workspace.
        AgentOrigin::Extension(..) => settings_files::expand_workspace_vars,
        AgentOrigin::Workspace(_) => {
            *program = ground.bind_program(&it.descriptor.name, program);
            settings_files::expand_workspace_vars
        }
        AgentOrigin::BuiltIn | AgentOrigin::User(_) | AgentOrigin::Client => settings_files::expand_user_vars,
    };
    for (_, value) in &mut program.env {
        let mut text = Value::from(value.as_str());
        expand(&mut text, &ground.env);
        *value = text.as_str().unwrap_or_default().to_owned();
    }
}

/// As servers of settings: in an untrusted folder none starts, as it could put a program in their way.
fn bind_servers(run: &mut LocalAgent, ground: &FolderConfig, settings: &McpSettings) {
    run.mcp_servers.retain(|it| ground.trust.is_trusted() && settings.exclusion_reason(&it.name).is_none());
    run.mcp_servers.iter_mut().for_each(|it| *it = ground.bind_server(it));
}

#[cfg(test)]
mod tests {
    use super::agents;
    use crate::{session::place::load_ground, settings::options::Options};
    use castor_base::agent::{AgentDefinition, AgentRun};
    use castor_fixtures::Ground;

    const FILE: &str = "---\nname: a\ndescription: d\nmodel: sonnet\ntools: [read_file, edit]\nmcp_servers:\n  s: {command: ./run}\n  t: {command: x}\n---\nT";

    /// Name, whether it is enabled, its model, turns, tools and servers.
    fn found(ground: &Ground, trust: &str) -> Vec<String> {
        let (ground, settings) = load_ground(&Options::default(), &ground.env(trust), &ground.root.join("w"));
        let shown = |it: &AgentDefinition| {
            let AgentRun::Local(run) = &it.run else { panic!("{it:?}") };
            let server = |it: &castor_base::mcp::McpServerConfig| format!("{}:{}", it.name, it.scripts.len());
            let servers: Vec<String> = run.mcp_servers.iter().map(server).collect();
            let (own, model) = (&it.descriptor, run.model.as_deref().unwrap_or("-"));
            let turns = own.constraints.turns();
            format!("{} {} {model} {turns} {:?} {servers:?}", own.name, it.enabled, run.tools.as_deref().unwrap_or(&[]))
        };
        agents(&ground, &settings).0.iter().map(shown).collect()
    }

    #[test]
    fn settings_change_agents() {
        let ground = Ground::new();
        ground.write("w/.castor/agents/a.md", FILE);
        ground.write("w/run", "");
        let built_in = |tail: &str| {
            let tools = r#"["list_directory", "read_file", "glob", "grep_search"]"#;
            let learns = "memory_extractor false - 40 [] []".to_owned();
            vec![format!("codebase_investigator true - 50 {tools} []"), format!("generalist {tail}"), learns]
        };
        let with = |mut all: Vec<String>, it: &str| {
            all.push(it.to_owned());
            all
        };
        let plain = "true - 20 [] []";
        let own = r#"a true - 30 ["read_file", "replace"] ["s:1", "t:0"]"#;
        assert_eq!(found(&ground, "true"), with(built_in(plain), own));
        assert_eq!(found(&ground, "false"), built_in(plain));
        let settings = r#"{"agents": {"overrides": {
            "generalist": {"enabled": false, "runConfig": {"maxTurns": 5}, "modelConfig": {"model": "flash"}},
            "a": {"tools": ["search_file_content"], "mcpServers": {"t": {"command": "y"}, "u": {"command": "z"}}}
        }}, "mcp": {"excluded": ["u"]}, "modelConfigs": {"customAliases": {"sonnet": {"modelConfig": {"model": "m"}}}}}"#;
        ground.write("h/.castor/settings.json", settings);
        let own = r#"a true sonnet 30 ["grep_search"] ["t:0", "s:1"]"#;
        assert_eq!(found(&ground, "true"), with(built_in("false flash 5 [] []"), own));
        ground.write("w/.castor/settings.json", r#"{"experimental": {"enableAgents": false}}"#);
        assert!(found(&ground, "true").is_empty());
    }

    /// The folder could put a program in the way of the user's own servers.
    #[test]
    fn servers_of_agents_start_in_trusted_folders_only() {
        let ground = Ground::new();
        ground.write("h/.gemini/agents/a.md", FILE);
        ground.write("w/x", "");
        assert!(found(&ground, "true")[3].ends_with(r#"["s:0", "t:0"]"#));
        assert!(found(&ground, "false")[3].ends_with("[]"));
    }
}
