//! All MCP servers of the process: their sessions, their status and their tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use tokio_util::sync::CancellationToken;

use castor_base::{
    held_program::ProgramName,
    ids::SessionId,
    mcp::{McpLink, McpServerConfig, ServerRules},
    path::AbsPath,
    sandbox::{Confinement, SandboxGrant},
    server_order::login_hint,
    text,
};
use castor_engine::step::{ForeignTool, McpTools, Server, ServerDown, ServerHealth, ServerStatus};
use castor_hands::{http, process::program_rights::ProgramRights};
use castor_tools::mcp::{Connection, ServerIdentity, ServerLists, ServerOutage, ServerTool, ToolNames};

use super::{
    mcp_access::{ConnectedServer, McpAccess, McpTool, tool_spec},
    server_ground::{ServerGround, ground},
};

/// All servers, shared by the sessions that want the same one.
#[derive(Default)]
pub struct Servers {
    shared: BTreeMap<u64, SharedServer>,
    by_owner: BTreeMap<ServerOwner, SessionServers>,
    n_started: u64,
}

/// The owner of servers: a session, or one agent in all of its runs there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerOwner {
    pub session: SessionId,
    pub agent: Option<String>,
}

impl ServerOwner {
    pub fn session(session: &SessionId) -> Self {
        Self { session: session.clone(), agent: None }
    }

    /// `session`: any of the session's tree.
    pub fn agent(session: &SessionId, agent: &str) -> Self {
        Self { session: session.root(), agent: Some(agent.to_owned()) }
    }
}

struct SharedServer {
    launch: ServerIdentity,
    stop: CancellationToken,
    since_ms: u64,
    stage: Stage,
    health: ServerHealth,
}

/// The stage of a server.
pub enum Stage {
    /// Its process starts, or a connection is made.
    Starting,
    /// Its tools can be called.
    Ready { connection: Connection, lists: Arc<ServerLists> },
    /// It is gone, and is started again; without an offer: it was never there.
    Down { offer: Option<(Connection, Arc<ServerLists>)>, outage: ServerDown },
    /// It could not be reached: why.
    Lost(String),
    /// The same, as it wants another credential.
    Unauthorized(String),
}

/// A server that is to be started, under its number.
pub type FreshServer = (u64, ServerIdentity, CancellationToken);

/// The servers of one owner.
struct SessionServers {
    uses: Vec<ServerUse>,
    /// Those that are not to be started, and why.
    off: Vec<(String, ServerStatus)>,
    /// Servers that the user switched off in this session.
    parked: Vec<(McpServerConfig, ServerIdentity)>,
    names: ToolNames,
    rules: ServerRules,
}

/// A session's own view of a server.
struct ServerUse {
    config: McpServerConfig,
    server: u64,
    /// The last notice to the user of its end.
    last_notice: Option<String>,
    /// The tools that the user knows to be listed more than once.
    told_repeated: Vec<String>,
}

/// The servers that a session asks for.
pub struct ServerRequest {
    pub servers: Vec<McpServerConfig>,
    /// Servers that are configured and must not start: names, and why.
    pub off: Vec<(String, ServerStatus)>,
    pub cwd: AbsPath,
    pub roots: Arc<[AbsPath]>,
    pub env: Arc<Vec<(String, String)>>,
    /// The confinement of those that are to be confined, where there is a sandbox.
    pub confined: Option<Arc<Confinement>>,
    /// What the user gave them in this session.
    pub rights: ProgramRights,
    pub rules: ServerRules,
}

impl Servers {
    pub fn has(&self, owner: &ServerOwner) -> bool {
        self.by_owner.contains_key(owner)
    }

    /// From now on a session, or an agent in it, has these servers. Returns those that must be started.
    pub fn set_servers(&mut self, owner: &ServerOwner, mut request: ServerRequest, now_ms: u64) -> Vec<FreshServer> {
        let mut fresh = Vec::new();
        let mut uses = Vec::new();
        for config in std::mem::take(&mut request.servers) {
            let launch = launch(&config, &request);
            let (server, is_fresh) = self.share(launch, now_ms);
            fresh.extend(is_fresh);
            uses.push(ServerUse::new(config, server));
        }
        let names = self.by_owner.remove(owner).map(|it| it.names).unwrap_or_default();
        let ServerRequest { off, rules, .. } = request;
        self.by_owner.insert(owner.clone(), SessionServers { uses, off, parked: Vec::new(), names, rules });
        self.stop_unused();
        fresh
    }

    /// A server like this one that is there, or a new one that must be started.
    fn share(&mut self, launch: ServerIdentity, now_ms: u64) -> (u64, Option<FreshServer>) {
        let is_up = |it: &Stage| matches!(it, Stage::Starting | Stage::Ready { .. });
        let alive = |it: &SharedServer| it.launch == launch && is_up(&it.stage);
        if let Some((id, _)) = self.shared.iter().find(|(_, it)| alive(it)) {
            return (*id, None);
        }
        self.n_started += 1;
        let (stop, stage) = (CancellationToken::new(), Stage::Starting);
        let fresh = (self.n_started, launch.clone(), stop.clone());
        self.shared.insert(
            self.n_started,
            SharedServer { launch, stop, since_ms: now_ms, stage, health: ServerHealth::default() },
        );
        (self.n_started, Some(fresh))
    }

    /// The link to a server of this owner's that could not be reached.
    pub fn lost_link(&self, owner: &ServerOwner, name: &str) -> Option<&McpLink> {
        let it = self.by_owner.get(owner)?.uses.iter().find(|it| it.config.name == name)?;
        let shared = self.shared.get(&it.server)?;
        matches!(shared.stage, Stage::Unauthorized(_)).then_some(&shared.launch.link)
    }

    /// Begins anew with a server of this owner that could not be reached, by this link. Returns it if it must be started.
    pub fn restart(&mut self, owner: &ServerOwner, name: &str, link: &McpLink, now_ms: u64) -> Option<FreshServer> {
        self.lost_link(owner, name)?;
        let fresh = self.replace(owner, name, now_ms, |it| it.link = link.clone());
        let uses = &mut self.by_owner.get_mut(owner)?.uses;
        uses.iter_mut().find(|it| it.config.name == name)?.config.link.clone_from(link);
        fresh
    }

    /// The user gives a server of this owner more. Returns it if it must be started.
    pub fn widen(&mut self, owner: &ServerOwner, name: &str, grant: &SandboxGrant, now_ms: u64) -> Option<FreshServer> {
        self.replace(owner, name, now_ms, |it| {
            let wider = it.confined.as_ref().and_then(|it| it.with_grant(grant)).map(Arc::new);
            it.confined = wider.or(it.confined.take());
        })
    }

    /// A server of this owner is another one from now on. Returns it if it must be started.
    fn replace(
        &mut self,
        owner: &ServerOwner,
        name: &str,
        now_ms: u64,
        change: impl FnOnce(&mut ServerIdentity),
    ) -> Option<FreshServer> {
        let is_it = |it: &&mut ServerUse| it.config.name == name;
        let old = self.by_owner.get_mut(owner)?.uses.iter_mut().find(is_it)?.server;
        let mut launch = self.shared.get(&old)?.launch.clone();
        change(&mut launch);
        let (server, fresh) = self.share(launch, now_ms);
        let it = self.by_owner.get_mut(owner)?.uses.iter_mut().find(is_it)?;
        (it.server, it.last_notice) = (server, None);
        self.stop_unused();
        fresh
    }

    /// Tells whether it is a server of this owner's that is on, or was switched off.
    pub fn knows(&self, owner: &ServerOwner, name: &str) -> bool {
        self.by_owner.get(owner).is_some_and(|it| {
            it.uses.iter().any(|it| it.config.name == name) || it.parked.iter().any(|it| it.0.name == name)
        })
    }

    /// The link to a server of this owner's that is on.
    pub fn link_of(&self, owner: &ServerOwner, name: &str) -> Option<&McpLink> {
        let it = self.by_owner.get(owner)?.uses.iter().find(|it| it.config.name == name)?;
        self.link(it.server)
    }

    /// The servers of this owner that are on, each as it is started.
    pub fn launches_of(&self, owner: &ServerOwner) -> Vec<(McpServerConfig, ServerIdentity)> {
        let uses = self.by_owner.get(owner).into_iter().flat_map(|it| &it.uses);
        uses.filter_map(|it| Some((it.config.clone(), self.shared.get(&it.server)?.launch.clone()))).collect()
    }

    /// Switches a server for this owner. Returns what must be started; `None`: nothing changes.
    pub fn switch(&mut self, owner: &ServerOwner, name: &str, is_on: bool, now_ms: u64) -> Option<Vec<FreshServer>> {
        let party = self.by_owner.get_mut(owner)?;
        if is_on {
            let at = party.parked.iter().position(|it| it.0.name == name)?;
            let (config, launch) = party.parked.remove(at);
            party.off.retain(|it| it.0 != name);
            let (server, fresh) = self.share(launch, now_ms);
            let party = self.by_owner.get_mut(owner)?;
            party.uses.push(ServerUse::new(config, server));
            return Some(fresh.into_iter().collect());
        }
        let at = party.uses.iter().position(|it| it.config.name == name)?;
        let it = party.uses.remove(at);
        let why = format!("switched off in this session; `/mcp enable {name}` switches it on");
        party.off.push((name.to_owned(), ServerStatus::Off(why)));
        party.parked.extend(self.shared.get(&it.server).map(|shared| (it.config, shared.launch.clone())));
        self.stop_unused();
        Some(Vec::new())
    }

    /// Credentials changed: whoever has a server with this link reaches it anew. Returns what must be started.
    pub fn reconnect(&mut self, link: &McpLink, now_ms: u64) -> Vec<FreshServer> {
        let mut lost = Vec::new();
        for shared in self.shared.values().filter(|it| it.launch.link == *link) {
            if let Some(it) = shared.stage.connection() {
                it.renew(link.clone());
            }
        }
        for (owner, party) in &self.by_owner {
            let names = party.uses.iter().map(|it| it.config.name.clone());
            lost.extend(names.filter(|it| self.lost_link(owner, it) == Some(link)).map(|it| (owner.clone(), it)));
        }
        lost.iter().filter_map(|(owner, name)| self.restart(owner, name, link, now_ms)).collect()
    }

    pub fn count(&self) -> usize {
        self.shared.len()
    }

    /// The session is over: its servers and those of its agents end, but for those that another session uses.
    pub fn release(&mut self, session: &SessionId) {
        self.by_owner.retain(|it, _| it.session != *session);
        self.stop_unused();
    }

    /// All at once; their processes are waited for with all others.
    pub fn stop_all(&mut self) {
        self.by_owner.clear();
        self.stop_unused();
    }

    fn stop_unused(&mut self) {
        let used: BTreeSet<u64> = self.by_owner.values().flat_map(|it| &it.uses).map(|it| it.server).collect();
        self.shared.retain(|id, it| {
            let keep = used.contains(id);
            if !keep {
                it.stop.cancel();
            }
            keep
        });
    }

    /// The link to a server.
    pub fn link(&self, server: u64) -> Option<&McpLink> {
        self.shared.get(&server).map(|it| &it.launch.link)
    }

    /// The connection of a server that is ready.
    pub fn connection(&self, server: u64) -> Option<Connection> {
        match &self.shared.get(&server)?.stage {
            Stage::Ready { connection, .. } => Some(connection.clone()),
            Stage::Starting | Stage::Down { .. } | Stage::Lost(_) | Stage::Unauthorized(_) => None,
        }
    }

    /// Reaches a server that is there by another link; whether it is another one.
    pub fn renew(&mut self, server: u64, link: McpLink) -> bool {
        let Some(shared) = self.shared.get_mut(&server).filter(|it| it.launch.link != link) else { return false };
        let Some(connection) = shared.stage.connection() else { return false };
        connection.renew(link.clone());
        shared.launch.link = link;
        true
    }

    /// The sessions that have it, and what they call it.
    pub fn sessions_of(&self, server: u64) -> Vec<(SessionId, String)> {
        let name = |it: &SessionServers| it.uses.iter().find(|it| it.server == server).map(|it| it.config.name.clone());
        self.by_owner.iter().filter_map(|(owner, it)| Some((owner.session.clone(), name(it)?))).collect()
    }

    /// It is gone, and may come back: what it had to offer stays on offer.
    pub fn down_stage(&self, server: u64, outage: ServerOutage, now_ms: u64) -> Option<Stage> {
        let ServerOutage { why, pause, number } = outage;
        let retry_ms = now_ms.saturating_add(u64::try_from(pause.as_millis()).unwrap_or(u64::MAX));
        let outage = ServerDown { why, retry_ms, number };
        match &self.shared.get(&server)?.stage {
            Stage::Ready { connection, lists } => {
                Some(Stage::Down { offer: Some((connection.clone(), lists.clone())), outage })
            }
            Stage::Down { offer, .. } => Some(Stage::Down { offer: offer.clone(), outage }),
            Stage::Starting => Some(Stage::Down { offer: None, outage }),
            Stage::Lost(_) | Stage::Unauthorized(_) => None,
        }
    }

    /// Returns whom the news are for.
    pub fn set_stage(&mut self, server: u64, stage: Stage) -> Vec<ServerOwner> {
        let Some(shared) = self.shared.get_mut(&server) else { return Vec::new() };
        shared.take_stage(stage);
        let uses = |it: &SessionServers| it.uses.iter().any(|it| it.server == server);
        self.by_owner.iter().filter(|(_, it)| uses(it)).map(|(id, _)| id.clone()).collect()
    }

    /// The tools of its servers now; each loss is reported once.
    pub fn tools_of(&mut self, owner: &ServerOwner) -> (McpTools, McpAccess) {
        let (mut mcp_tools, mut offers) = (McpTools::default(), Vec::new());
        let (mut gone, mut repeats) = (Vec::new(), Vec::new());
        let mut access = McpAccess::default();
        let Some(party) = self.by_owner.get_mut(owner) else { return (mcp_tools, access) };
        for it in &mut party.uses {
            let Some(shared) = self.shared.get(&it.server) else { continue };
            let (standing, offer) = match &shared.stage {
                Stage::Starting => {
                    (ServerStatus::Starting { until_ms: shared.since_ms + party.rules.start_budget_ms }, None)
                }
                Stage::Ready { connection, lists } => (ServerStatus::Ready, Some((connection, lists))),
                Stage::Down { offer, outage } => {
                    (ServerStatus::Down(outage.clone()), offer.as_ref().map(|it| (&it.0, &it.1)))
                }
                Stage::Lost(why) => (ServerStatus::Lost(why.clone()), None),
                Stage::Unauthorized(why) => {
                    let can_log_in = shared.launch.link.login().is_some();
                    let why = if can_log_in { login_hint(&it.config.name) } else { why.clone() };
                    let page = match &shared.launch.link {
                        McpLink::Web { url, .. } => http::origin_of(url),
                        McpLink::Stdio { .. } | McpLink::Client { .. } => None,
                    };
                    (ServerStatus::Unauthorized { why, page, can_log_in }, None)
                }
            };
            gone.extend(it.new_loss(&standing, offer.is_some()).map(|how| (it.server, how, it.config.name.clone())));
            let name = it.config.name.clone();
            if let Some((connection, lists)) = offer {
                repeats.extend(it.new_repeats(lists));
                let wanted = lists.tools.iter().filter(|tool| it.config.allows_tool(&tool.name));
                offers.extend(wanted.map(|tool| (&*it, connection, tool)));
                access.servers.push(it.connected(connection, lists));
            }
            let offer = offer.map(|it| Arc::new(it.1.offer.clone())).unwrap_or_default();
            mcp_tools.servers.push(Server { name, status: standing, offer, health: shared.health.clone() });
        }
        mcp_tools.notices = notices(gone).into_iter().chain(repeats).collect();
        mcp_tools.servers.extend(party.off.iter().cloned().map(|(name, status)| Server::new(name, status)));
        let mut name = |config: &McpServerConfig, tool: &ServerTool| party.names.name(&config.name, &tool.name);
        let names: Vec<String> = offers.iter().map(|(it, _, tool)| name(&it.config, tool)).collect();
        for (name, (ServerUse { config, server, .. }, connection, tool)) in names.into_iter().zip(offers) {
            let spec = tool_spec(name, config, tool);
            mcp_tools.tools.push(ForeignTool {
                spec: spec.clone(),
                server: config.name.clone(),
                annotations: tool.annotations.clone(),
                trusted: config.trust,
                agent: owner.agent.clone(),
            });
            let (connection, timeout) = (connection.clone(), Duration::from_millis(config.timeout_ms));
            access.tools.push(McpTool { spec, tool: tool.name.clone(), server: *server, connection, timeout });
        }
        (mcp_tools, access)
    }
}

impl Stage {
    /// The connection of a server that is, or was, there.
    fn connection(&self) -> Option<&Connection> {
        match self {
            Self::Ready { connection, .. } => Some(connection),
            Self::Down { offer, .. } => offer.as_ref().map(|it| &it.0),
            Self::Starting | Self::Lost(_) | Self::Unauthorized(_) => None,
        }
    }
}

impl SharedServer {
    fn take_stage(&mut self, stage: Stage) {
        match (&self.stage, &stage) {
            (Stage::Down { .. }, Stage::Ready { .. }) => self.health.n_restarts += 1,
            (_, Stage::Down { outage, .. }) => self.health.last_end = Some(outage.why.clone()),
            _ => (),
        }
        self.stage = stage;
    }
}

impl ServerUse {
    fn new(config: McpServerConfig, server: u64) -> Self {
        Self { config, server, last_notice: None, told_repeated: Vec::new() }
    }

    fn connected(&self, connection: &Connection, lists: &Arc<ServerLists>) -> ConnectedServer {
        ConnectedServer {
            name: self.config.name.clone(),
            server: self.server,
            lists: lists.clone(),
            connection: connection.clone(),
            timeout: Duration::from_millis(self.config.timeout_ms),
        }
    }

    /// Names that it lists more than once, if that was not reported yet.
    fn new_repeats(&mut self, lists: &ServerLists) -> Option<String> {
        if lists.repeated.is_empty() || lists.repeated == self.told_repeated {
            return None;
        }
        self.told_repeated.clone_from(&lists.repeated);
        let names = lists.repeated.iter().map(|it| format!("{:?}", text::first_line(it, 100)));
        let names = names.collect::<Vec<_>>().join(", ");
        Some(format!(
            "MCP server {:?} lists tools more than once: {names}. The first of each counts.",
            self.config.name
        ))
    }

    /// The notice of its loss, if that was not reported yet. `was_there`: it had come up before.
    fn new_loss(&mut self, standing: &ServerStatus, was_there: bool) -> Option<String> {
        let how = match standing {
            ServerStatus::Starting { .. } | ServerStatus::Ready | ServerStatus::Off(_) | ServerStatus::Untrusted => {
                return None;
            }
            ServerStatus::Down(it) if was_there => format!("gone: {}. castor starts it again.", it.why),
            ServerStatus::Down(it) => format!("not available: {}. castor tries again.", it.why),
            ServerStatus::Lost(why) | ServerStatus::Unauthorized { why, .. } => format!("not available: {why}."),
        };
        let is_new = self.last_notice.as_ref() != Some(&how);
        self.last_notice = Some(how.clone());
        is_new.then_some(how)
    }
}

/// A line for each process: servers of equal configuration are one, and end together.
fn notices(gone: Vec<(u64, String, String)>) -> Vec<String> {
    let mut res: Vec<(u64, String, Vec<String>)> = Vec::new();
    for (server, how, name) in gone {
        match res.iter_mut().find(|it| it.0 == server) {
            Some((_, _, names)) => names.push(name),
            None => res.push((server, how, vec![name])),
        }
    }
    let quoted = |it: &[String]| it.iter().map(|it| format!("{it:?}")).collect::<Vec<_>>().join(" and ");
    let line = |names: &[String], how: &str| match names {
        [name] => format!("MCP server {name:?} is {how}"),
        names => format!("The MCP servers {}, which share one process, are {how}", quoted(names)),
    };
    res.iter().map(|(_, how, names)| line(names, how)).collect()
}

fn launch(config: &McpServerConfig, request: &ServerRequest) -> ServerIdentity {
    // The client knows the session's folders.
    let roots = match config.link {
        McpLink::Client { .. } => Arc::default(),
        McpLink::Stdio { .. } | McpLink::Web { .. } => request.roots.clone(),
    };
    let ServerGround { cwd, env, confined, gate } =
        ground(config, &request.roots, &request.cwd, &request.env, request.confined.as_deref());
    let name = ProgramName::Server(config.name.clone());
    let confined = confined.map(|it| Arc::new(request.rights.widened(&name, Arc::unwrap_or_clone(it))));
    let (link, scripts) = (config.link.clone(), config.scripts.clone());
    // A server in the client has no way to ask.
    let samples = request.rules.samples && !matches!(link, McpLink::Client { .. });
    let (timeout, max_restarts) = (Duration::from_millis(config.timeout_ms), request.rules.max_restarts);
    ServerIdentity { link, cwd, env, confined, gate, scripts, roots, timeout, max_restarts, samples }
}
