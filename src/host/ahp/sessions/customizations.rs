//! MCP servers, commands, skills and extensions of a session as customizations, which clients see and switch.

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ActionOrigin, SessionCustomizationRemovedAction, SessionCustomizationUpdatedAction, StateAction},
    state::{
        ChildCustomization, Customization, CustomizationEnablement, CustomizationErrorState, CustomizationLoadState,
        CustomizationLoadedState, CustomizationType, DirectoryCustomization, ErrorInfo, McpServerCustomization,
        McpServerErrorState, McpServerReadyState, McpServerStartingState, McpServerState, McpServerStoppedState,
        PluginCustomization, PromptCustomization, SkillCustomization,
    },
};
use serde_json::{Value, json};

use super::{SessionDesk, TreeAction, Trees, acts::castor_meta, config::plugin, messages::uri_of};
use crate::ahp::clients::hub_requests::{ClientAct, CustomizationList};
use crate::ahp::{HubOutcome, Next, not_for_clients};
use castor_wire::acp::client::{
    AgentRequest, DefinitionList, ListedCommand, ListedExtension, ListedSkill, McpServerReport,
    McpServerState as ServerState, McpServers, read_value,
};

const SERVER: &str = "castor-mcp-";
const COMMAND: &str = "castor-command-";
const SKILL: &str = "castor-skill-";
const EXTENSION: &str = "castor-extension-";

impl CustomizationList {
    /// Whether an entry of the session comes from this list. Those of agents come from options.
    fn has(self, it: &Customization) -> bool {
        match it {
            Customization::McpServer(_) => self == Self::Servers,
            Customization::Directory(_) => self == Self::Definitions,
            Customization::Plugin(it) => self == Self::Definitions && it.id.starts_with(EXTENSION),
            Customization::Unknown(_) => false,
        }
    }

    fn entries(self, answer: Value) -> Vec<Customization> {
        match self {
            Self::Servers => {
                let list: McpServers = read_value(answer).unwrap_or_default();
                list.servers.into_iter().map(server).collect()
            }
            Self::Definitions => {
                let list: DefinitionList = read_value(answer).unwrap_or_default();
                let commands = list.commands.into_iter().map(command).collect();
                let skills = list.skills.into_iter().map(skill).collect();
                let folders = [
                    folder("commands", CustomizationType::Prompt, commands),
                    folder("skills", CustomizationType::Skill, skills),
                ];
                folders.into_iter().flatten().chain(list.extensions.into_iter().map(extension)).collect()
            }
        }
    }
}

pub fn read_customizations(desk: &mut SessionDesk<'_>) {
    let id = desk.hosted.id.as_str();
    let next = Next::Customizations;
    desk.clients.ask(id, next(CustomizationList::Servers), &AgentRequest::Servers(id.into()));
    desk.clients.ask(id, next(CustomizationList::Definitions), &AgentRequest::Definitions(id.into()));
}

pub fn follow_customizations(desk: &mut SessionDesk<'_>, list: CustomizationList, outcome: HubOutcome) {
    let Ok(answer) = outcome else { return };
    let now = list.entries(answer);
    let known: Vec<&Customization> = desk.hosted.trees.customizations().filter(|it| list.has(it)).collect();
    let gone = known.iter().filter_map(|it| id_of(it)).filter(|id| !now.iter().any(|it| id_of(it) == Some(id)));
    let gone = gone.map(|id| {
        let action = SessionCustomizationRemovedAction { id: id.to_owned() };
        TreeAction::session(StateAction::SessionCustomizationRemoved(action))
    });
    let changed = now.iter().filter(|it| !known.contains(it)).map(|it| {
        let action = Box::new(SessionCustomizationUpdatedAction { customization: it.clone() });
        TreeAction::session(StateAction::SessionCustomizationUpdated(action))
    });
    let acts: Vec<TreeAction> = gone.chain(changed).collect();
    desk.emit(acts);
}

/// A client starts or stops a server, or switches a skill, for this session alone.
///
/// # Errors
/// The reason, in words.
pub fn switch_customization(
    desk: &mut SessionDesk<'_>,
    from: u64,
    action: StateAction,
    origin: ActionOrigin,
) -> Result<(), String> {
    let (switched, on) = match &action {
        StateAction::SessionMcpServerStartRequested(it) => (it.id.clone(), true),
        StateAction::SessionMcpServerStopRequested(it) => (it.id.clone(), false),
        StateAction::SessionCustomizationToggled(it) => match it.enablement.first() {
            Some(CustomizationEnablement::Session { enabled }) => (it.id.clone(), *enabled),
            _ => return Err("castor switches for a session alone; its settings hold for all".to_owned()),
        },
        _ => return Err(not_for_clients()),
    };
    let session_id = desk.hosted.id.as_str();
    let is_known = desk.hosted.trees.has_customization(&switched);
    let request = match (switched.strip_prefix(SERVER), switched.strip_prefix(SKILL)) {
        (Some(server), _) if is_known => AgentRequest::SwitchServer { session_id, server, on },
        (_, Some(skill)) if is_known => {
            AgentRequest::SwitchSkills { session_id, skills: BTreeMap::from([(skill, on)]) }
        }
        _ => return Err(format!("{switched} is no MCP server and no skill of this session")),
    };
    let act = Box::new(TreeAction::session(action).by(origin));
    desk.clients.ask(session_id, Next::Switch(ClientAct { from, act }), &request);
    Ok(())
}

pub fn follow_switch(desk: &mut SessionDesk<'_>, ClientAct { from, act }: ClientAct, outcome: HubOutcome) {
    match outcome {
        Ok(_) => {
            desk.emit([*act]);
            desk.read_tools();
        }
        Err(it) => desk.reject(from, *act, &it.message),
    }
}

/// The agent does not tell when a server is ready: the host asks while a client looks on.
pub fn follow_starting_servers(desk: &mut SessionDesk<'_>) {
    let is_seen = desk.hosted.idle_since_ms == desk.clients.now_ms;
    if is_seen && desk.hosted.trees.customizations().any(is_starting) {
        desk.read_tools();
    }
}

impl Trees {
    fn customizations(&self) -> impl Iterator<Item = &Customization> {
        self.session.customizations.iter().flatten()
    }

    fn has_customization(&self, id: &str) -> bool {
        let is_child = |it: &ChildCustomization| matches!(it, ChildCustomization::Skill(it) if it.id == id);
        self.customizations().any(|it| match it {
            Customization::Directory(it) => it.children.iter().flatten().any(is_child),
            it => id_of(it) == Some(id),
        })
    }
}

fn id_of(it: &Customization) -> Option<&str> {
    match it {
        Customization::McpServer(it) => Some(&it.id),
        Customization::Directory(it) => Some(&it.id),
        Customization::Plugin(it) => Some(&it.id),
        Customization::Unknown(_) => None,
    }
}

fn is_starting(it: &Customization) -> bool {
    matches!(it, Customization::McpServer(it) if matches!(it.state, McpServerState::Starting(_)))
}

/// An MCP server. Nobody knows here what a login would want of a client: such a server is in error, with the reason.
fn server(it: McpServerReport) -> Customization {
    let is_off = it.status == ServerState::Off;
    let state = match it.status {
        ServerState::Starting | ServerState::Down => McpServerState::Starting(McpServerStartingState::default()),
        ServerState::Ready => McpServerState::Ready(McpServerReadyState {}),
        ServerState::Off | ServerState::Untrusted => McpServerState::Stopped(McpServerStoppedState {}),
        ServerState::Failed => failed_server("failed", &it),
        ServerState::NeedsLogin => failed_server("needs_login", &it),
        ServerState::Unauthorized => failed_server("unauthorized", &it),
    };
    Customization::McpServer(Box::new(with_none!(McpServerCustomization {
        id: format!("{SERVER}{}", it.name),
        uri: format!("castor-mcp:/{}", it.name),
        name: it.name.clone(),
        meta: castor_meta(it),
        enablement: is_off.then(|| vec![CustomizationEnablement::Session { enabled: false }]),
        state,
    } icons range channel mcp_app)))
}

fn failed_server(kind: &str, it: &McpServerReport) -> McpServerState {
    let message = it.why.clone().unwrap_or_else(|| kind.to_owned());
    let error = ErrorInfo { error_type: kind.to_owned(), message, stack: None, meta: None };
    McpServerState::Error(McpServerErrorState { error })
}

/// Entries of one kind; `None`: there are none.
fn folder(name: &str, contents: CustomizationType, children: Vec<ChildCustomization>) -> Option<Customization> {
    (!children.is_empty()).then(|| {
        Customization::Directory(with_none!(DirectoryCustomization {
            id: format!("castor-{name}"),
            uri: format!("castor-{name}:/"),
            name: format!("castor's {name}"),
            children: Some(children),
            enabled: true,
            contents,
            writable: false,
        } icons range meta client_id load))
    })
}

fn command(it: ListedCommand) -> ChildCustomization {
    ChildCustomization::Prompt(with_none!(PromptCustomization {
        id: format!("{COMMAND}{}", it.name),
        uri: place_of(it.file.as_ref(), COMMAND, &it.name),
        name: it.name,
        description: Some(it.description),
    } icons range meta enabled))
}

fn skill(it: ListedSkill) -> ChildCustomization {
    ChildCustomization::Skill(with_none!(SkillCustomization {
        id: format!("{SKILL}{}", it.name),
        uri: place_of(it.file.as_ref(), SKILL, &it.name),
        name: it.name,
        enabled: Some(it.enabled),
        description: Some(it.description),
    } icons range meta disable_model_invocation disable_user_invocation))
}

fn place_of(file: Option<&String>, kind: &str, name: &str) -> String {
    file.map_or_else(|| format!("{kind}builtin:/{name}"), |it| uri_of(it))
}

fn extension(it: ListedExtension) -> Customization {
    let load = match it.state.as_str() {
        "on" => CustomizationLoadState::Loaded(CustomizationLoadedState {}),
        why => CustomizationLoadState::Error(CustomizationErrorState { message: why.to_owned() }),
    };
    Customization::Plugin(PluginCustomization {
        load: Some(load),
        version: Some(it.version),
        meta: castor_meta(json!({ "brings": it.brings })),
        ..plugin(format!("{EXTENSION}{}", it.name), format!("castor-extension:/{}", it.name), it.name)
    })
}
