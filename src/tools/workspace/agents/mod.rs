//! Definitions of sub-agents: Markdown files with front matter in folders of user and workspace, and the built-in ones.

mod built_in;
mod claude;
mod keys;
mod program_keys;
mod remote_keys;
mod values;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

pub use super::front_matter::FileFault;
use super::{extension_files::ExtensionTier, front_matter};
pub use claude::TOOLS as CLAUDE_TOOLS;

use crate::workspace::{FolderOwner, Reader, Warning, castor_home, gemini_home, policies::FolderAccess};
use castor_base::{
    agent::{AgentDefinition, AgentDescriptor, AgentKind, AgentOrigin, AgentRun, ClientAgent},
    path::AbsPath,
    peer_agent::PeerAgent,
    sandbox::ProgramSandbox,
};
use castor_hands::secrets::Env;

/// Larger files define nothing.
const MAX_BYTES: usize = 1 << 20;
/// More files in one folder are not read.
const MAX_FILES: usize = 200;

/// Where agents lie below a workspace, the strongest first.
pub const FOLDERS: &[(&str, AgentFormat)] = &[
    (".castor/agents", AgentFormat::Castor),
    (".gemini/agents", AgentFormat::Castor),
    (".claude/agents", AgentFormat::Claude),
];

/// The keys of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentFormat {
    /// Gemini CLI's, with more keys.
    Castor,
    /// Claude Code's.
    Claude,
}

/// The name that castor has today for a tool of its own; `None`: there is no such tool.
pub type ToolLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What the files define, and what of them does not count.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FoundAgents {
    /// Castor's own, the workspace's, the user's; of one name the first.
    pub definitions: Vec<AgentDefinition>,
    pub warnings: Vec<Warning>,
}

/// Tells whether a file of this name is one of an agent.
pub fn is_agent_file(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('_')
}

/// How a file is written: folders of Claude Code have its own keys.
pub fn format_of(file: &AbsPath) -> AgentFormat {
    let folder = file.parent();
    let is_of = |(name, _): &&(&str, AgentFormat)| folder.as_ref().is_some_and(|it| it.as_path().ends_with(name));
    FOLDERS.iter().find(is_of).map_or(AgentFormat::Castor, |it| it.1)
}

/// Files that Gemini CLI reads, too, have braces that mean nothing.
fn is_of_gemini(file: &AbsPath) -> bool {
    file.parent().is_some_and(|it| it.as_path().ends_with(".gemini/agents"))
}

/// The programs that an agent file would start, and the servers that it would reach, as settings would say it.
pub fn servers(file: &AbsPath, bytes: &[u8]) -> Option<Value> {
    let (yaml, _) = front_matter::split(str::from_utf8(bytes).ok()?).ok()?;
    match (format_of(file), keys::kind(yaml).ok()?) {
        (AgentFormat::Castor, AgentKind::Local) => keys::servers(yaml),
        (AgentFormat::Castor, AgentKind::Acp) => program_keys::program(yaml),
        _ => None,
    }
}

/// Reads one file.
///
/// # Errors
/// The first fault. The faults beside a definition are what of the file does not count.
pub fn parse(
    bytes: &[u8],
    format: AgentFormat,
    origin: AgentOrigin,
    tools: ToolLookup<'_>,
) -> Result<(AgentDefinition, Vec<FileFault>), FileFault> {
    if bytes.len() > MAX_BYTES {
        return Err(FileFault::new(None, format!("is over {} MiB", MAX_BYTES >> 20)));
    }
    let text = str::from_utf8(bytes).map_err(|_| FileFault::new(None, "is not UTF-8"))?;
    let (yaml, body) = front_matter::split(text)?;
    let draft = match format {
        AgentFormat::Castor => match keys::kind(yaml)? {
            AgentKind::Acp => program_keys::read(yaml, body, tools)?,
            AgentKind::Remote => remote_keys::read(yaml, tools)?,
            _ => keys::read(yaml, body, tools)?,
        },
        AgentFormat::Claude => claude::read(yaml, body, tools)?,
    };
    let keys::Draft { descriptor, run, folders, rights, .. } = draft;
    if matches!(origin, AgentOrigin::Workspace(_) | AgentOrigin::Extension(..)) && !rights.is_empty() {
        let why = "memory_inbox and memory_extraction are for agents in your own folders, not in a workspace's";
        return Err(FileFault::new(None, why));
    }
    let mut definition = AgentDefinition { descriptor, origin, enabled: true, folders, rights, run };
    if let AgentRun::Local(it) = &mut definition.run {
        it.takes_state = match &definition.origin {
            AgentOrigin::BuiltIn => false,
            AgentOrigin::User(file) | AgentOrigin::Workspace(file) => {
                format == AgentFormat::Castor && !is_of_gemini(file)
            }
            // They are written for Gemini CLI, where braces mean nothing.
            AgentOrigin::Extension(..) => false,
            AgentOrigin::Client => true,
        };
    }
    if let (AgentOrigin::Workspace(_), AgentRun::Local(it)) = (&definition.origin, &mut definition.run) {
        for server in &mut it.mcp_servers {
            // A repository must not answer its own question.
            (server.trust, server.of_project) = (false, true);
            server.sandbox = ProgramSandbox::default();
        }
    }
    if let (AgentOrigin::Extension(..), AgentRun::Local(it)) = (&definition.origin, &mut definition.run) {
        for server in &mut it.mcp_servers {
            (server.trust, server.sandbox) = (false, ProgramSandbox::default());
        }
    }
    if let (AgentOrigin::Workspace(_) | AgentOrigin::Extension(..), AgentRun::Peer(it)) =
        (&definition.origin, &definition.run)
    {
        match &**it {
            PeerAgent::Remote(it) => remote_keys::check_workspace(it)?,
            PeerAgent::Program(it) => program_keys::check_workspace(&it.sandbox)?,
        }
    }
    Ok((definition, draft.notes))
}

/// Reads a definition that a client brings.
///
/// # Errors
/// The first fault, in words: what a client sends has no lines.
pub fn parse_client(keys: &ClientAgent, tools: ToolLookup<'_>) -> Result<(AgentDefinition, Vec<FileFault>), String> {
    let mut keys = Map::clone(keys);
    let instructions = keys.remove("instructions");
    let Some(instructions) = instructions.as_ref().and_then(Value::as_str).filter(|it| !it.trim().is_empty()) else {
        return Err("instructions should be a text".to_owned());
    };
    // JSON is YAML, too: it has the same keys and checks.
    let text = format!("---\n{}\n---\n{instructions}", Value::Object(keys));
    parse(text.as_bytes(), AgentFormat::Castor, AgentOrigin::Client, tools).map_err(|it| it.message)
}

/// Reads all agents. `workspace` is `None` where it is not trusted, or is the user's home.
pub fn read(
    env: &Env,
    workspace: Option<&AbsPath>,
    extensions: &ExtensionTier,
    tools: ToolLookup<'_>,
    (reader, folders): (Reader<'_>, FolderAccess<'_>),
) -> FoundAgents {
    let mut res = FoundAgents { definitions: built_in::all(), ..FoundAgents::default() };
    for AgentFolder { at, format, owner } in agent_folders(env, workspace, extensions) {
        for file in res.list(&at, folders) {
            let bytes = (reader.read)(&file).map_err(|it| FileFault::new(None, format!("cannot be read: {it}")));
            match bytes.and_then(|it| parse(&it, format, owner.origin(file.clone()), tools)) {
                Ok((definition, notes)) => {
                    notes.into_iter().for_each(|it| res.warn(&file.to_string(), it));
                    res.add(&file, definition);
                }
                Err(it) => res.warn(&file.to_string(), FileFault { message: skipped(&it.message), ..it }),
            }
        }
    }
    res.link();
    res
}

fn skipped(why: &str) -> String {
    format!("{why}; the file is skipped")
}

struct AgentFolder {
    at: AbsPath,
    format: AgentFormat,
    owner: FolderOwner,
}

fn agent_folders(env: &Env, workspace: Option<&AbsPath>, extensions: &ExtensionTier) -> Vec<AgentFolder> {
    let user = [
        (castor_home(env).map(|it| it.join("agents")), AgentFormat::Castor),
        (gemini_home(env).map(|it| it.join("agents")), AgentFormat::Castor),
        (env.get("HOME").and_then(AbsPath::new).map(|it| it.join(".claude/agents")), AgentFormat::Claude),
    ];
    let user =
        user.into_iter().filter_map(|(at, format)| Some(AgentFolder { at: at?, format, owner: FolderOwner::User }));
    let user: Vec<AgentFolder> = user.collect();
    let own = workspace.into_iter().flat_map(|root| FOLDERS.iter().map(|(name, format)| (root.join(name), *format)));
    let own = own.map(|(at, format)| AgentFolder { at, format, owner: FolderOwner::Workspace });
    // CASTOR_HOME may point into the workspace: a folder counts once, as the user's.
    let own: Vec<AgentFolder> = own.filter(|own| user.iter().all(|it| it.at != own.at)).collect();
    let more = extensions.agents.iter().cloned().map(|(name, at)| AgentFolder {
        at,
        format: AgentFormat::Castor,
        owner: FolderOwner::Extension(name),
    });
    own.into_iter().chain(user).chain(more).collect()
}

impl FoundAgents {
    /// With the one that a client brings, which counts before others of its name.
    #[must_use]
    pub fn with_client(mut self, keys: &ClientAgent, tools: ToolLookup<'_>) -> Self {
        let origin = "the client's agent";
        match parse_client(keys, tools) {
            Ok((definition, notes)) => {
                notes.into_iter().for_each(|it| self.warn(origin, FileFault { at: None, ..it }));
                self.definitions.retain(|it| it.descriptor.name != definition.descriptor.name);
                self.definitions.insert(0, definition);
                self.link();
            }
            Err(why) => self.warn(origin, FileFault::new(None, why)),
        }
        self
    }

    fn warn(&mut self, origin: &str, it: FileFault) {
        self.warnings.push(Warning { origin: origin.to_owned(), at: it.at, key: None, message: it.message });
    }

    /// The agent files in a folder, by name.
    fn list(&mut self, folder: &AbsPath, folders: FolderAccess<'_>) -> Vec<AbsPath> {
        let mut names = (folders.list)(folder).unwrap_or_default();
        names.retain(|it| is_agent_file(it));
        names.sort();
        if names.len() > MAX_FILES {
            let message = format!("has {} agents; those after the first {MAX_FILES} are skipped", names.len());
            self.warn(&folder.to_string(), FileFault::new(None, message));
            names.truncate(MAX_FILES);
        }
        names.iter().map(|it| folder.join(it)).collect()
    }

    /// Of one name the first counts.
    fn add(&mut self, file: &AbsPath, it: AgentDefinition) {
        let name = &it.descriptor.name;
        match self.definitions.iter().find(|it| it.descriptor.name == *name) {
            None => self.definitions.push(it),
            Some(first) => {
                let place = first.origin.file().map_or_else(|| "castor itself".to_owned(), ToString::to_string);
                let message = skipped(&format!("the agent {name} is defined by {place}"));
                self.warn(&file.to_string(), FileFault::new(None, message));
            }
        }
    }

    /// Gives agents the descriptors of those that they name, without theirs: they may name each other. Compositions that
    /// cannot end, or lack an agent, are left out.
    fn link(&mut self) {
        let mut faults = Vec::new();
        let all = index(&self.definitions);
        let mut sound = BTreeSet::new();
        for it in &self.definitions {
            if let Err(why) = check_members(&it.descriptor.name, &all, &mut Vec::new(), &mut sound) {
                faults.push((it.descriptor.name.clone(), file_of(it), why));
            }
        }
        self.definitions.retain(|it| faults.iter().all(|(name, ..)| *name != it.descriptor.name));
        let known: BTreeMap<String, AgentDescriptor> = self
            .definitions
            .iter()
            .map(|it| {
                let alone = AgentDescriptor { sub_agents: Vec::new(), ..it.descriptor.clone() };
                (alone.name.clone(), alone)
            })
            .collect();
        let mut missing = Vec::new();
        for it in &mut self.definitions {
            let file = file_of(it);
            it.descriptor.sub_agents.retain_mut(|stub| match known.get(&stub.name) {
                Some(it) => {
                    *stub = it.clone();
                    true
                }
                None => {
                    missing.push((file.clone(), format!("there is no agent {}; it is left out", stub.name)));
                    false
                }
            });
        }
        faults.into_iter().for_each(|(_, file, why)| self.warn(&file, FileFault::new(None, skipped(&why))));
        missing.into_iter().for_each(|(file, why)| self.warn(&file, FileFault::new(None, why)));
    }
}

fn file_of(it: &AgentDefinition) -> String {
    it.origin.file().map_or_else(|| "castor".to_owned(), ToString::to_string)
}

fn index(all: &[AgentDefinition]) -> BTreeMap<&str, &AgentDefinition> {
    all.iter().map(|it| (it.descriptor.name.as_str(), it)).collect()
}

/// Whether all that a composition runs is there, and none of it is itself. `sound`: those of which it is known.
fn check_members<'a>(
    name: &'a str,
    all: &BTreeMap<&'a str, &'a AgentDefinition>,
    path: &mut Vec<&'a str>,
    sound: &mut BTreeSet<&'a str>,
) -> Result<(), String> {
    let Some(definition) = all.get(name) else { return Err(format!("there is no agent {name}")) };
    let AgentRun::Composite(it) = &definition.run else { return Ok(()) };
    if sound.contains(name) {
        return Ok(());
    }
    if path.contains(&name) {
        return Err(format!("its agents run each other without end: {}, {name}", path.join(", ")));
    }
    path.push(name);
    it.agents.iter().try_for_each(|it| check_members(it, all, path, sound))?;
    path.pop();
    sound.insert(name);
    Ok(())
}

#[cfg(test)]
mod tests;
