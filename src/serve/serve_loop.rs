//! The loop of `castor serve`: it owns all principals, their hubs and agents, and every connection.

use std::{
    collections::{BTreeMap, VecDeque},
    time::Duration,
};

use tokio::sync::mpsc;

use super::{
    ServeLimits,
    agents::{AgentEvent, AgentNews, RunningAgent},
    connections::ConnectionTable,
    local_machine::{LocalMachine, MachineNews, read_memory},
    principal::AgentGround,
    tokens::{self, PrincipalRights, TokenFile},
};
use castor_agent::server::event_loop::unix_ms;
use castor_hands::{
    disk::{self, Stamp},
    process::{Groups, heap::release_free_heap},
};
use castor_host::{
    ahp::{AhpHost, AhpInput, AhpOutput, HostSettings},
    hub::{Hub, HubInput, HubOutput},
    remote::{Arrival, StreamNews},
};

const TICK: Duration = Duration::from_secs(1);
/// After so many in which no agent said anything, free memory goes back to the system; once more after the next ping, by
/// which clients say what they have.
const RELEASE_TICKS: [u32; 2] = [3, 25];
/// How long an agent is kept that has no session and no client.
const AGENT_IDLE_MS: u64 = 60_000;
/// How long agents may take to end.
const END: Duration = Duration::from_secs(3);
const AGENT_QUEUE: usize = 64;
/// The AHP host's number in a hub; connections of clients count from 1.
const AHP_LANE: u64 = 0;
const FULL: &str = "you do not keep up, and messages are lost: load the session again";

pub struct ServeLoop {
    pub(super) limits: ServeLimits,
    pub(super) tokens: TokenFile,
    /// By what a change of their file is seen; `None`: it is to be read.
    token_stamp: Option<Stamp>,
    pub(super) connections: ConnectionTable,
    pub(super) now_ms: u64,
    ground: AgentGround,
    /// By principal; empty: the user.
    principals: BTreeMap<String, PrincipalState>,
    groups: Groups,
    agent_news: mpsc::Sender<AgentNews>,
    machine_news: mpsc::Sender<MachineNews>,
    n_agents: u64,
}

/// One principal's hub and agent.
struct PrincipalState {
    hub: Hub,
    /// For clients that speak AHP; one client of the hub.
    ahp: AhpHost,
    machine: LocalMachine,
    agent: Option<RunningAgent>,
    /// By which the agent was started, and the host reads files.
    rights: Option<PrincipalRights>,
    /// Since when nobody needs it.
    idle_since_ms: Option<u64>,
}

/// Something that a hub or a host wants done.
enum Deed {
    Hub(HubOutput),
    Ahp(AhpOutput),
}

/// What the loop is woken by.
pub struct ServeInbox {
    pub arrivals: mpsc::Receiver<Arrival>,
    pub news: mpsc::UnboundedReceiver<StreamNews>,
    pub agents: mpsc::Receiver<AgentNews>,
    pub machine: mpsc::Receiver<MachineNews>,
    /// The process is to end.
    pub end: mpsc::Receiver<()>,
}

impl ServeLoop {
    /// The loop, and where it hears of its agents and of its machine.
    pub fn new(
        ground: AgentGround,
        tokens: TokenFile,
        limits: ServeLimits,
    ) -> (Self, mpsc::Receiver<AgentNews>, mpsc::Receiver<MachineNews>) {
        let (agent_news, agents) = mpsc::channel(AGENT_QUEUE);
        let (machine_news, machine) = mpsc::channel(AGENT_QUEUE);
        let this = Self {
            limits,
            tokens,
            token_stamp: None,
            connections: ConnectionTable::default(),
            now_ms: unix_ms(),
            ground,
            principals: BTreeMap::new(),
            groups: Groups::default(),
            agent_news,
            machine_news,
            n_agents: 0,
        };
        (this, agents, machine)
    }

    /// Runs until it is to end.
    pub async fn run(mut self, mut inbox: ServeInbox) {
        let mut ticks = tokio::time::interval(TICK);
        // Since an agent said something.
        let mut n_quiet_ticks = 0_u32;
        loop {
            tokio::select! {
                biased;
                _ = inbox.end.recv() => break,
                _ = ticks.tick() => {
                    self.now_ms = unix_ms();
                    self.tick();
                    n_quiet_ticks += 1;
                    if RELEASE_TICKS.contains(&n_quiet_ticks) {
                        release_free_heap();
                    }
                }
                Some(news) = inbox.news.recv() => {
                    self.now_ms = unix_ms();
                    self.take_news(news);
                }
                // What agents say goes first: it is bounded by what the clients take.
                Some(news) = inbox.agents.recv() => {
                    self.now_ms = unix_ms();
                    n_quiet_ticks = 0;
                    self.take_agent_news(news);
                }
                Some(MachineNews { principal, event }) = inbox.machine.recv() => {
                    self.now_ms = unix_ms();
                    // One that is gone has nobody to tell.
                    if self.principals.contains_key(&principal) {
                        self.step_ahp(&principal, AhpInput::Machine(event));
                    }
                }
                Some(arrival) = inbox.arrivals.recv() => {
                    self.now_ms = unix_ms();
                    self.take_arrival(arrival);
                }
            }
        }
        self.end(inbox).await;
    }

    /// Agents are told by the end of their input, and end their turns as they do when an editor is closed.
    async fn end(mut self, mut inbox: ServeInbox) {
        let mut n_running = self.principals.values().filter(|it| it.agent.is_some()).count();
        self.principals.values_mut().for_each(|it| it.agent = None);
        let ended = async {
            while n_running > 0 {
                match inbox.agents.recv().await {
                    Some(AgentNews { what: AgentEvent::Ended(_), .. }) => n_running -= 1,
                    Some(_) => (),
                    None => return,
                }
            }
        };
        _ = tokio::time::timeout(END, ended).await;
        self.groups.kill_all().await;
    }

    /// Takes an input into a principal's hub, and does what it says.
    pub(super) fn step(&mut self, principal: &str, input: HubInput<'_>) {
        let now = self.now_ms;
        let open = self.principal(principal).hub.handle(input, now).into_iter().map(Deed::Hub).collect();
        self.carry_out(principal, open);
    }

    /// The same for its AHP host.
    pub(super) fn step_ahp(&mut self, principal: &str, input: AhpInput<'_>) {
        let now = self.now_ms;
        let open = self.principal(principal).ahp.handle(input, now).into_iter().map(Deed::Ahp).collect();
        self.carry_out(principal, open);
    }

    fn principal(&mut self, principal: &str) -> &mut PrincipalState {
        let (now, limits) = (self.now_ms, self.limits);
        let rights = self.tokens.principals.get(principal);
        let roots = rights.map(|it| it.roots.clone()).unwrap_or_default();
        let folder = roots.first().cloned().unwrap_or_else(|| self.ground.cwd.to_string());
        let (ground, groups, news) = (&self.ground, &self.groups, &self.machine_news);
        self.principals.entry(principal.to_owned()).or_insert_with(|| {
            let name = if principal.is_empty() { "user" } else { principal };
            let settings = HostSettings {
                is_user: principal.is_empty(),
                roots,
                folder,
                max_requests: limits.hub.requests,
                keep_ms: limits.grace_ms,
            };
            let ahp = AhpHost::new(settings, read_memory(ground, principal), now);
            let machine = LocalMachine::new(ground, principal, groups, news.clone());
            let (hub, rights) = (Hub::new(name, limits.hub), rights.cloned());
            PrincipalState { hub, ahp, machine, agent: None, rights, idle_since_ms: None }
        })
    }

    fn carry_out(&mut self, principal: &str, mut open: VecDeque<Deed>) {
        while let Some(it) = open.pop_front() {
            self.do_one(principal, it, &mut open);
        }
    }

    fn do_one(&mut self, principal: &str, deed: Deed, open: &mut VecDeque<Deed>) {
        let now = self.now_ms;
        match deed {
            Deed::Hub(HubOutput::Agent(line)) => {
                if let Err(why) = self.tell_agent(principal, line) {
                    open.extend(self.agent_ended(principal, &why));
                }
            }
            Deed::Hub(HubOutput::Send { to: AHP_LANE, message }) => {
                let said = self.principal(principal).ahp.handle(AhpInput::Hub(&message), now);
                open.extend(said.into_iter().map(Deed::Ahp));
            }
            Deed::Hub(HubOutput::Send { to, message }) | Deed::Ahp(AhpOutput::Send { to, message }) => {
                if !self.connections.push(to, message, now)
                    && let Some(it) = self.connections.close(to, FULL)
                {
                    open.extend(self.forget_client(principal, to, it.is_ahp));
                }
            }
            Deed::Ahp(AhpOutput::Machine(order)) => self.principal(principal).machine.carry_out(order),
            Deed::Ahp(it) => {
                let input = match &it {
                    AhpOutput::JoinHub => HubInput::HostConnected(AHP_LANE),
                    AhpOutput::LeaveHub => HubInput::Disconnected(AHP_LANE),
                    AhpOutput::Hub(text) => HubInput::Message { from: AHP_LANE, text },
                    AhpOutput::Send { .. } | AhpOutput::Machine(_) => return,
                };
                open.extend(self.principal(principal).hub.handle(input, now).into_iter().map(Deed::Hub));
            }
        }
    }

    /// What follows from the end of a connection.
    fn forget_client(&mut self, principal: &str, number: u64, is_ahp: bool) -> Vec<Deed> {
        let now = self.now_ms;
        let state = self.principal(principal);
        match is_ahp {
            true => state.ahp.handle(AhpInput::Disconnected(number), now).into_iter().map(Deed::Ahp).collect(),
            false => state.hub.handle(HubInput::Disconnected(number), now).into_iter().map(Deed::Hub).collect(),
        }
    }

    /// What follows from the end of an agent: the hub says it first, as it answers what waits.
    fn agent_ended(&mut self, principal: &str, why: &str) -> Vec<Deed> {
        let now = self.now_ms;
        let state = self.principal(principal);
        let mut res: Vec<Deed> = state.hub.handle(HubInput::AgentEnded(why), now).into_iter().map(Deed::Hub).collect();
        res.extend(state.ahp.handle(AhpInput::AgentEnded(why), now).into_iter().map(Deed::Ahp));
        res
    }

    fn tell_agent(&mut self, principal: &str, line: Vec<u8>) -> Result<(), String> {
        let Some(state) = self.principals.get_mut(principal) else { return Ok(()) };
        if state.agent.is_none() {
            state.rights = self.tokens.principals.get(principal).cloned();
            let start = match &state.rights {
                _ if principal.is_empty() => self.ground.of_user(),
                Some(rights) => self.ground.of_principal(principal, rights)?,
                None => return Err(format!("there is no principal {principal} any more")),
            };
            self.n_agents += 1;
            let who = (principal, self.n_agents);
            let news = self.agent_news.clone();
            state.agent = Some(RunningAgent::start(&start, &self.ground.program, who, &self.groups, news)?);
        }
        if let Some(agent) = &state.agent {
            agent.send(line);
        }
        Ok(())
    }

    pub(super) fn agent_keeps_up(&self, principal: &str) -> bool {
        self.principals.get(principal).and_then(|it| it.agent.as_ref()).is_none_or(RunningAgent::keeps_up)
    }

    fn take_agent_news(&mut self, news: AgentNews) {
        let AgentNews { principal, number, what } = news;
        let state = self.principals.get_mut(&principal);
        let Some(state) = state.filter(|it| it.agent.as_ref().is_some_and(|it| it.number == number)) else { return };
        match what {
            AgentEvent::Lines(lines) => {
                lines.iter().for_each(|it| self.step(&principal, HubInput::Agent(it)));
            }
            AgentEvent::Logged(line) => self.step_ahp(&principal, AhpInput::AgentLogged(&line)),
            AgentEvent::Ended(why) => {
                state.agent = None;
                let open = self.agent_ended(&principal, &why);
                self.carry_out(&principal, open.into());
            }
        }
    }

    fn take_news(&mut self, news: StreamNews) {
        let now = self.now_ms;
        match news {
            StreamNews::Written(key, n) => self.connections.mark_written(key, n, now),
            StreamNews::Heard(key, number) => self.connections.mark_heard(key, number),
            StreamNews::Broken(key) => {
                let is_ahp = self.connections.get_mut(key.connection).is_some_and(|it| it.is_ahp);
                if self.connections.end_stream(key, now) && is_ahp {
                    self.disconnect(key.connection, "the stream broke");
                }
            }
            StreamNews::Left(key) => {
                if self.connections.end_stream(key, now) {
                    self.disconnect(key.connection, "the client left");
                }
            }
        }
    }

    /// Ends a connection for good.
    pub(super) fn disconnect(&mut self, number: u64, why: &'static str) {
        if let Some(it) = self.connections.close(number, why) {
            let open = self.forget_client(&it.principal, number, it.is_ahp);
            self.carry_out(&it.principal, open.into());
        }
    }

    fn tick(&mut self) {
        let now = self.now_ms;
        self.reload_tokens();
        for it in self.connections.abandoned(self.limits.grace_ms, now) {
            self.disconnect(it, "the client did not come back");
        }
        for it in self.connections.full(now) {
            self.disconnect(it, FULL);
        }
        let names: Vec<String> = self.principals.keys().cloned().collect();
        for name in names {
            self.step(&name, HubInput::Tick);
            self.step_ahp(&name, AhpInput::Tick);
            let Some(state) = self.principals.get_mut(&name) else { continue };
            match state.hub.is_idle() && state.ahp.is_idle() {
                false => state.idle_since_ms = None,
                true if now.saturating_sub(*state.idle_since_ms.get_or_insert(now)) >= AGENT_IDLE_MS => {
                    // It ends with its input.
                    self.principals.remove(&name);
                }
                true => (),
            }
        }
    }

    /// A token that was removed takes its connections with it, and other rights end what was begun with the old ones. A
    /// file that cannot be read changes nothing.
    pub(super) fn reload_tokens(&mut self) {
        let stamp = disk::read_stamp(&tokens::file(&self.ground.home));
        if stamp.is_some() && std::mem::replace(&mut self.token_stamp, stamp) == stamp {
            return;
        }
        match TokenFile::load(&self.ground.home) {
            Ok(it) if it != self.tokens => self.tokens = it,
            Ok(_) => return,
            Err(why) => return tracing::warn!("{why}"),
        }
        let tokens = &self.tokens.tokens;
        let gone = self.connections.with_tokens(|sha256| !tokens.iter().any(|it| it.sha256 == sha256));
        for it in gone {
            self.disconnect(it, "the token was removed");
        }
        self.end_changed_principals();
    }

    /// Agent and host of a principal have the rights of their start, whatever the file says by now.
    fn end_changed_principals(&mut self) {
        let now = &self.tokens.principals;
        let is_other = |it: &(&String, &PrincipalState)| it.1.rights.as_ref() != now.get(it.0);
        let changed: Vec<String> = self.principals.iter().filter(is_other).map(|it| it.0.clone()).collect();
        for name in changed {
            for it in self.connections.of_principal(&name) {
                self.disconnect(it, "your rights were changed: connect again");
            }
            // It ends with its input.
            self.principals.remove(&name);
        }
    }
}
