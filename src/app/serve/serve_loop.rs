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
    principal::AgentGround,
    tokens::{self, PrincipalRights, TokenFile},
};
use crate::{
    app::{
        hub::{Hub, HubInput, HubOutput},
        server::event_loop::unix_ms,
    },
    world::{
        disk::{self, Stamp},
        process::Groups,
        remote::{Arrival, StreamNews},
    },
};

const TICK: Duration = Duration::from_secs(1);
/// How long an agent is kept that has no session and no client.
const AGENT_IDLE_MS: u64 = 60_000;
/// How long agents may take to end.
const END: Duration = Duration::from_secs(3);
const AGENT_QUEUE: usize = 64;

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
    n_agents: u64,
}

/// One principal's hub and agent.
struct PrincipalState {
    hub: Hub,
    agent: Option<RunningAgent>,
    /// By which the agent was started.
    rights: Option<PrincipalRights>,
    /// Since when nobody needs it.
    idle_since_ms: Option<u64>,
}

/// What the loop is woken by.
pub struct ServeInbox {
    pub arrivals: mpsc::Receiver<Arrival>,
    pub news: mpsc::UnboundedReceiver<StreamNews>,
    pub agents: mpsc::Receiver<AgentNews>,
    /// The process is to end.
    pub end: mpsc::Receiver<()>,
}

impl ServeLoop {
    /// The loop, and where it hears of its agents.
    pub fn new(ground: AgentGround, tokens: TokenFile, limits: ServeLimits) -> (Self, mpsc::Receiver<AgentNews>) {
        let (agent_news, agents) = mpsc::channel(AGENT_QUEUE);
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
            n_agents: 0,
        };
        (this, agents)
    }

    /// Runs until it is to end.
    pub async fn run(mut self, mut inbox: ServeInbox) {
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                _ = inbox.end.recv() => break,
                _ = ticks.tick() => {
                    self.now_ms = unix_ms();
                    self.tick();
                }
                Some(news) = inbox.news.recv() => {
                    self.now_ms = unix_ms();
                    self.take_news(news);
                }
                // What agents say goes first: it is bounded by what the clients take.
                Some(news) = inbox.agents.recv() => {
                    self.now_ms = unix_ms();
                    self.take_agent_news(news);
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
        let limits = self.limits.hub;
        let state = self.principals.entry(principal.to_owned()).or_insert_with(|| {
            let name = if principal.is_empty() { "user" } else { principal };
            PrincipalState { hub: Hub::new(name, limits), agent: None, rights: None, idle_since_ms: None }
        });
        let mut open: VecDeque<HubOutput> = state.hub.handle(input, now).into();
        while let Some(it) = open.pop_front() {
            match it {
                HubOutput::Agent(line) => {
                    if let Err(why) = self.tell_agent(principal, line)
                        && let Some(state) = self.principals.get_mut(principal)
                    {
                        open.extend(state.hub.handle(HubInput::AgentEnded(&why), now));
                    }
                }
                HubOutput::Send { to, message } => {
                    if !self.connections.push(to, message, now) {
                        self.connections.close(to, "you do not keep up, and messages are lost: load the session again");
                        if let Some(state) = self.principals.get_mut(principal) {
                            open.extend(state.hub.handle(HubInput::Disconnected(to), now));
                        }
                    }
                }
            }
        }
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
            AgentEvent::Ended(why) => {
                state.agent = None;
                self.step(&principal, HubInput::AgentEnded(&why));
            }
        }
    }

    fn take_news(&mut self, news: StreamNews) {
        let now = self.now_ms;
        match news {
            StreamNews::Written(key, n) => self.connections.mark_written(key, n, now),
            StreamNews::Heard(key, number) => self.connections.mark_heard(key, number),
            StreamNews::Broken(key) => _ = self.connections.end_stream(key, now),
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
            self.step(&it.principal, HubInput::Disconnected(number));
        }
    }

    fn tick(&mut self) {
        let now = self.now_ms;
        self.reload_tokens();
        for it in self.connections.abandoned(self.limits.grace_ms, now) {
            self.disconnect(it, "the client did not come back");
        }
        for it in self.connections.full(now) {
            self.disconnect(it, "you do not keep up, and messages are lost: load the session again");
        }
        let names: Vec<String> = self.principals.keys().cloned().collect();
        for name in names {
            self.step(&name, HubInput::Tick);
            let Some(state) = self.principals.get_mut(&name) else { continue };
            match state.hub.is_idle() {
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

    /// The agent of a principal has the rights of its start, whatever the file says by now.
    fn end_changed_principals(&mut self) {
        let now = &self.tokens.principals;
        let is_other = |it: &(&String, &PrincipalState)| it.1.agent.is_some() && it.1.rights.as_ref() != now.get(it.0);
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
