//! MCP servers, commands, skills and extensions of a session as customizations, which clients see and switch.

use ahp::ahp_types::{
    actions::{ActionOrigin, SessionCustomizationUpdatedAction, StateAction},
    state::{ChildCustomization, Customization, CustomizationEnablement, McpServerState},
};
use serde_json::{Value, json};

use super::{
    AhpHost,
    actions::not_for_clients,
    hosted_session::{HostedSession, Tree, TreeAction},
    hub_requests::{CustomizationList, HubOutcome, HubRequest},
    messages::file_uri,
    with_members,
};

const SERVER: &str = "castor-mcp-";
const SKILL: &str = "castor-skill-";
const EXTENSION: &str = "castor-extension-";

impl CustomizationList {
    const ALL: [Self; 2] = [Self::Servers, Self::Definitions];

    fn method(self) -> &'static str {
        match self {
            Self::Servers => "_castor/mcp/servers",
            Self::Definitions => "_castor/definitions/list",
        }
    }

    /// Whether an entry of the session comes from this list. Those of agents come from options.
    fn has(self, it: &Customization) -> bool {
        match it {
            Customization::McpServer(_) => self == Self::Servers,
            Customization::Directory(_) => self == Self::Definitions,
            Customization::Plugin(it) => self == Self::Definitions && it.id.starts_with(EXTENSION),
            Customization::Unknown(_) => false,
        }
    }

    fn entries(self, answer: &Value) -> Vec<Customization> {
        let rows = |name: &str| answer.get(name).and_then(Value::as_array).into_iter().flatten();
        let all: Vec<Option<Value>> = match self {
            Self::Servers => rows("servers").map(server).collect(),
            Self::Definitions => {
                let folders = [("commands", "prompt", "castor-command-"), ("skills", "skill", SKILL)];
                let folders =
                    folders.map(|(name, kind, id)| folder(name, kind, rows(name).map(|it| child(it, kind, id))));
                folders.into_iter().chain(rows("extensions").map(extension)).collect()
            }
        };
        all.into_iter().flatten().filter_map(|it| serde_json::from_value(it).ok()).collect()
    }
}

impl AhpHost {
    pub(super) fn read_customizations(&mut self, session: &str) {
        for list in CustomizationList::ALL {
            let request = HubRequest::Customizations { session: session.to_owned(), list };
            self.ask_hub(request, list.method(), &json!({ "sessionId": session }));
        }
    }

    pub(super) fn follow_customizations(&mut self, session: &str, list: CustomizationList, outcome: HubOutcome) {
        let (Ok(answer), Some(hosted)) = (outcome, self.sessions.get(session)) else { return };
        let now = list.entries(&answer);
        let known: Vec<&Customization> = hosted.customizations().filter(|it| list.has(it)).collect();
        let gone = known.iter().filter_map(|it| id_of(it)).filter(|id| !now.iter().any(|it| id_of(it) == Some(id)));
        let gone = gone.map(|id| TreeAction::session(json!({ "type": "session/customizationRemoved", "id": id })));
        let changed = now.iter().filter(|it| !known.contains(it)).map(|it| {
            let action = Box::new(SessionCustomizationUpdatedAction { customization: it.clone() });
            TreeAction::new(Tree::Session, StateAction::SessionCustomizationUpdated(action))
        });
        let acts = gone.chain(changed).collect();
        self.emit(session, acts);
    }

    /// A client starts or stops a server, or switches a skill, for this session alone.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub(super) fn switch_customization(
        &mut self,
        (from, session): (u64, String),
        action: StateAction,
        origin: ActionOrigin,
    ) -> Result<(), String> {
        let (id, on) = match &action {
            StateAction::SessionMcpServerStartRequested(it) => (&it.id, true),
            StateAction::SessionMcpServerStopRequested(it) => (&it.id, false),
            StateAction::SessionCustomizationToggled(it) => match it.enablement.first() {
                Some(CustomizationEnablement::Session { enabled }) => (&it.id, *enabled),
                _ => return Err("castor switches for a session alone; its settings hold for all".to_owned()),
            },
            _ => return Err(not_for_clients()),
        };
        let is_known = self.sessions.get(&session).is_some_and(|it| it.has_customization(id));
        let (server, skill) = (id.strip_prefix(SERVER), id.strip_prefix(SKILL));
        let (method, params) = match (server, skill) {
            (Some(it), _) if is_known => ("_castor/mcp/switch", json!({ "server": it, "on": on })),
            (_, Some(it)) if is_known => ("_castor/session/update", json!({ "skills": { it: on } })),
            _ => return Err(format!("{id} is no MCP server and no skill of this session")),
        };
        let params = with_members(params, [("sessionId", Some(json!(session)))]);
        let act = Box::new(TreeAction::new(Tree::Session, action).by(origin));
        self.ask_hub(HubRequest::Switch { from, session, act }, method, &params);
        Ok(())
    }

    pub(super) fn follow_switch(&mut self, from: u64, session: &str, act: TreeAction, outcome: HubOutcome) {
        match outcome {
            Ok(_) => {
                self.emit(session, vec![act]);
                self.read_tools(session);
            }
            Err(it) => self.reject(from, session, act, &it.message),
        }
    }

    /// The agent does not tell when a server is ready: it is asked while a client looks on.
    pub(super) fn follow_starting_servers(&mut self) {
        let now = self.now_ms;
        let waits = |it: &HostedSession| it.idle_since_ms == now && it.customizations().any(is_starting);
        let waiting: Vec<String> = self.sessions.iter().filter(|it| waits(it.1)).map(|it| it.0.clone()).collect();
        waiting.iter().for_each(|it| self.read_tools(it));
    }
}

impl HostedSession {
    fn customizations(&self) -> impl Iterator<Item = &Customization> {
        self.trees.session.customizations.iter().flatten()
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

/// What a login would want of a client is not known here: a server that needs one is in error, with the reason.
fn server(it: &Value) -> Option<Value> {
    let (name, status) = (it.get("name")?.as_str()?, it.get("status")?.as_str()?);
    let state = match status {
        "starting" | "down" => json!({ "kind": "starting" }),
        "ready" => json!({ "kind": "ready" }),
        "off" | "untrusted" => json!({ "kind": "stopped" }),
        _ => {
            let why = it.get("why").and_then(Value::as_str).unwrap_or(status);
            json!({ "kind": "error", "error": { "errorType": status, "message": why } })
        }
    };
    let res = json!({
        "type": "mcpServer", "id": format!("{SERVER}{name}"), "uri": format!("castor-mcp:/{name}"), "name": name,
        "state": state, "_meta": { "castor": it },
    });
    let off = (status == "off").then(|| json!([{ "kind": "session", "enabled": false }]));
    Some(with_members(res, [("enablement", off)]))
}

/// Entries of one kind; `None`: there are none.
fn folder(name: &str, kind: &str, children: impl Iterator<Item = Option<Value>>) -> Option<Value> {
    let children: Vec<Value> = children.flatten().collect();
    (!children.is_empty()).then(|| {
        json!({
            "type": "directory", "id": format!("castor-{name}"), "uri": format!("castor-{name}:/"),
            "name": format!("castor's {name}"), "enabled": true, "contents": kind, "writable": false, "children": children,
        })
    })
}

fn child(it: &Value, kind: &str, id: &str) -> Option<Value> {
    let name = it.get("name")?.as_str()?;
    let uri = match it.get("file").and_then(Value::as_str) {
        Some(file) => file_uri(file),
        None => format!("{id}builtin:/{name}"),
    };
    let res = json!({ "type": kind, "id": format!("{id}{name}"), "uri": uri, "name": name });
    let members = ["description", "enabled"].map(|name| (name, it.get(name).cloned()));
    Some(with_members(res, members))
}

fn extension(it: &Value) -> Option<Value> {
    let name = it.get("name")?.as_str()?;
    let state = it.get("state")?.as_str()?;
    let load = match state {
        "on" => json!({ "kind": "loaded" }),
        why => json!({ "kind": "error", "message": why }),
    };
    Some(json!({
        "type": "plugin", "id": format!("{EXTENSION}{name}"), "uri": format!("castor-extension:/{name}"), "name": name,
        "version": it.get("version"), "load": load, "_meta": { "castor": { "brings": it.get("brings") } },
    }))
}
