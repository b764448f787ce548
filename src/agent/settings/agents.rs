//! Sub-agents in settings: whether there are any, and what is changed of each.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Getter, Sources, mcp};
use castor_base::mcp::McpServerConfig;
use castor_tools::workspace::Warning;

const OVERRIDES: &str = "agents.overrides";

/// Sub-agents in settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSettings {
    pub enabled: bool,
    /// The agent that learns from earlier sessions is on.
    pub auto_memory: bool,
    /// By name of the agent.
    pub overrides: BTreeMap<String, AgentOverride>,
}

/// What takes the place of an agent's own words; `None`: nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentOverride {
    pub enabled: Option<bool>,
    pub max_turns: Option<u32>,
    pub max_time_minutes: Option<f64>,
    /// `inherit`: that of the session.
    pub model: Option<String>,
    pub temperature: Option<f64>,
    pub tools: Option<Vec<String>>,
    pub mcp_servers: Vec<McpServerConfig>,
}

/// Reads them. A member that is not well formed is left out by itself.
pub fn agents(sources: Sources<'_>) -> (AgentSettings, Vec<Warning>) {
    let get = Getter(sources);
    let mut warnings = Vec::new();
    let (enabled, auto_memory) = (get.flag("experimental.enableAgents"), get.flag("experimental.autoMemory"));
    let mut res = AgentSettings { enabled, auto_memory, ..AgentSettings::default() };
    for (name, it) in get.value(OVERRIDES).as_object().into_iter().flatten() {
        let mut members = Members { at: format!("{OVERRIDES}.{name}"), warnings: &mut warnings };
        if let Some(it) = members.object(it) {
            res.overrides.insert(name.clone(), members.read(it));
        }
    }
    (res, warnings)
}

struct Members<'w> {
    /// The path of the object.
    at: String,
    warnings: &'w mut Vec<Warning>,
}

impl Members<'_> {
    fn warn(&mut self, key: &str, message: &str) {
        let key = Some(if key.is_empty() { self.at.clone() } else { format!("{}.{key}", self.at) });
        self.warnings.push(Warning { origin: "settings".to_owned(), at: None, key, message: message.to_owned() });
    }

    fn object<'v>(&mut self, it: &'v Value) -> Option<&'v Map<String, Value>> {
        if !it.is_object() {
            self.warn("", "should be an object {…}; ignored");
        }
        it.as_object()
    }

    /// A member as `read` takes it.
    fn take<T>(
        &mut self,
        it: &Map<String, Value>,
        key: &str,
        should: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Option<T> {
        let value = it.get(key).filter(|it| !it.is_null())?;
        let res = read(value);
        if res.is_none() {
            self.warn(key, &format!("should be {should}; ignored"));
        }
        res
    }

    fn known(&mut self, it: &Map<String, Value>, names: &[&str]) {
        for name in it.keys().filter(|it| !names.contains(&it.as_str())) {
            self.warn(name, "is not a setting that castor knows");
        }
    }

    /// The members of a member.
    fn below(&mut self, it: &Map<String, Value>, key: &str) -> (Members<'_>, Map<String, Value>) {
        let found = self.take(it, key, "an object {…}", |it| it.as_object().cloned());
        (Members { at: format!("{}.{key}", self.at), warnings: self.warnings }, found.unwrap_or_default())
    }

    fn read(&mut self, it: &Map<String, Value>) -> AgentOverride {
        self.known(it, &["enabled", "runConfig", "modelConfig", "tools", "mcpServers"]);
        let enabled = self.take(it, "enabled", "true or false", Value::as_bool);
        let tools = self.take(it, "tools", "a list of texts", |it| {
            it.as_array()?.iter().map(|it| it.as_str().map(str::to_owned)).collect()
        });
        let mcp_servers = self.servers(it);
        let (mut run, config) = self.below(it, "runConfig");
        run.known(&config, &["maxTurns", "maxTimeMinutes"]);
        let turns = |it: &Value| it.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0);
        let max_turns = run.take(&config, "maxTurns", "a whole number, at least 1", turns);
        let minutes = |it: &Value| it.as_f64().filter(|it| *it > 0.0);
        let max_time_minutes = run.take(&config, "maxTimeMinutes", "a number above 0", minutes);
        let (mut of_model, config) = self.below(it, "modelConfig");
        of_model.known(&config, &["model", "generateContentConfig"]);
        let word = |it: &Value| Some(it.as_str()?.trim().to_owned()).filter(|it| !it.is_empty());
        let model = of_model.take(&config, "model", "a text that is not empty", word);
        let (mut generation, config) = of_model.below(&config, "generateContentConfig");
        generation.known(&config, &["temperature"]);
        let warmth = |it: &Value| it.as_f64().filter(|it| (0.0..=2.0).contains(it));
        let temperature = generation.take(&config, "temperature", "a number from 0 to 2", warmth);
        AgentOverride { enabled, max_turns, max_time_minutes, model, temperature, tools, mcp_servers }
    }

    fn servers(&mut self, it: &Map<String, Value>) -> Vec<McpServerConfig> {
        let (mut members, all) = self.below(it, "mcpServers");
        let server = |(name, it): (&String, &Value)| match mcp::server(name, it).and_then(mcp::strangers_server) {
            Ok(it) => Some(it),
            Err(why) => {
                members.warn(name, &why);
                None
            }
        };
        all.iter().filter_map(server).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::agents;
    use crate::settings::Sources;
    use castor_base::path::AbsPath;
    use castor_hands::secrets::Env;
    use castor_tools::workspace::settings::{Layer, Layers, Scope, WorkspaceFiles};

    /// The override of `a`, and the warnings.
    fn check(layers: &[(Scope, Value)], want: &str) {
        let layer = |(scope, value): &(Scope, Value)| Layer {
            scope: *scope,
            file: AbsPath::new("/f").unwrap(),
            raw: value.clone(),
            value: value.clone(),
        };
        let layers = layers.iter().map(layer).collect();
        let layers = Layers { layers, workspace: WorkspaceFiles::Read, warnings: Vec::new() };
        let (found, warnings) = agents(Sources { layers: &layers, env: &Env::default(), flags: &[] });
        let mut shown = if found.enabled { String::new() } else { "off ".to_owned() };
        if let Some(it) = found.overrides.get("a") {
            let servers: Vec<&str> = it.mcp_servers.iter().map(|it| it.name.as_str()).collect();
            let (turns, minutes, model, warmth) = (it.max_turns, it.max_time_minutes, &it.model, it.temperature);
            shown += &format!("{:?} {turns:?} {minutes:?} {model:?} {warmth:?} {:?} {servers:?}", it.enabled, it.tools);
        }
        warnings.iter().for_each(|it| shown += &format!("\n{it}"));
        assert_eq!(shown, want, "{layers:?}");
    }

    fn of_a(it: Value) -> Value {
        json!({ "agents": { "overrides": { "a": it } } })
    }

    #[test]
    fn reads_what_is_changed_of_an_agent() {
        let nothing = "None None None None None None []";
        check(&[(Scope::User, of_a(json!({})))], nothing);
        check(
            &[(
                Scope::User,
                of_a(json!({
                    "enabled": false, "tools": ["glob"], "mcpServers": {"s": {"command": "x"}},
                    "runConfig": {"maxTurns": 3, "maxTimeMinutes": 1.5},
                    "modelConfig": {"model": "flash", "generateContentConfig": {"temperature": 0}}
                })),
            )],
            r#"Some(false) Some(3) Some(1.5) Some("flash") Some(0.0) Some(["glob"]) ["s"]"#,
        );
        check(
            &[(
                Scope::User,
                of_a(json!({
                    "enabled": "no", "tools": "glob", "mcpServers": {"s": {}}, "runConfig": {"maxTurns": 0, "turns": 1},
                    "modelConfig": 5, "colour": 1
                })),
            )],
            &format!(
                "{nothing}\n\
                 settings: agents.overrides.a.colour: is not a setting that castor knows\n\
                 settings: agents.overrides.a.enabled: should be true or false; ignored\n\
                 settings: agents.overrides.a.tools: should be a list of texts; ignored\n\
                 settings: agents.overrides.a.mcpServers.s: names neither command nor url nor httpUrl; ignored\n\
                 settings: agents.overrides.a.runConfig.turns: is not a setting that castor knows\n\
                 settings: agents.overrides.a.runConfig.maxTurns: should be a whole number, at least 1; ignored\n\
                 settings: agents.overrides.a.modelConfig: should be an object {{…}}; ignored"
            ),
        );
        check(&[(Scope::User, of_a(json!(5)))], "\nsettings: agents.overrides.a: should be an object {…}; ignored");
    }

    #[test]
    fn a_workspace_can_only_switch_all_off() {
        check(&[(Scope::Workspace, of_a(json!({ "enabled": true })))], "");
        check(&[(Scope::Workspace, json!({ "experimental": { "enableAgents": false } }))], "off ");
        let off = json!({ "experimental": { "enableAgents": false } });
        let on = json!({ "experimental": { "enableAgents": true } });
        check(&[(Scope::User, off), (Scope::Workspace, on)], "off ");
    }
}
