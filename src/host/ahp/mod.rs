//! The AHP host: an agent's sessions as state trees of the Agent Host Protocol, which many clients see and change.
//!
//! Messages come in, messages go out; it has no thread, socket or clock. To the hub it is one client that speaks ACP,
//! and shares sessions with all other clients of the hub. What its clients see is the fold of the actions that they get,
//! by the protocol's own reducers.
//!
//! From clients: `client_requests` has the table of requests, `actions` takes what they dispatch. From the agent:
//! `hub_messages`, with `updates` and `calls` for what a turn brings. What is asked of it: `hub_requests`; what it asks:
//! `open_requests`. `hosted_session` is one session with its trees, and `machine` names the orders for everything else.

mod action_log;
mod actions;
mod annotations;
mod calls;
mod catalog;
mod changes;
mod channel;
mod client_requests;
mod client_tools;
mod clients;
mod command_marks;
mod completions;
mod config;
mod content;
mod customizations;
mod file_requests;
mod folders;
mod forms;
mod hosted_session;
mod hub_messages;
mod hub_requests;
mod machine;
mod messages;
mod open_requests;
mod open_sessions;
mod path_begin;
mod questions;
mod session_requests;
mod summaries;
mod telemetry;
mod terminals;
#[cfg(test)]
mod tests;
mod truncation;
mod turn_end;
mod turn_progress;
mod turns;
mod updates;
mod uri_style;

use std::collections::BTreeMap;

use ahp::ahp_types::{
    actions::{ActionOrigin, StateAction},
    state::RootState,
};
use bytes::Bytes;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use action_log::ActionLog;
use castor_wire::jsonrpc::{message::RequestId, open_requests::OutgoingRequests, write};
use catalog::SessionCatalog;
use channel::Channel;
use clients::{AhpClient, Handshake};
use file_requests::{FileJob, ResourceWatch};
use hosted_session::{HostedSession, TreeAction};
use hub_requests::HubRequest;

pub use catalog::HostMemory;
pub use machine::{MachineEvent, MachineOrder, TerminalEvent, TerminalOrder};
use terminals::HostedTerminal;

/// What is so for all clients of a host.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Whether its principal is the user that runs the server.
    pub is_user: bool,
    /// The only folders, for another principal.
    pub roots: Vec<String>,
    /// Where sessions begin that name no folder.
    pub folder: String,
    /// Requests of one client without an answer.
    pub max_requests: usize,
    /// How long a session is kept that no client is subscribed to.
    pub keep_ms: u64,
}

pub enum AhpInput<'a> {
    Connected(u64),
    Disconnected(u64),
    /// One message of a client.
    Message {
        from: u64,
        text: &'a [u8],
    },
    /// One message of the hub.
    Hub(&'a Bytes),
    /// The agent ended: no session is open in it any more.
    AgentEnded(&'a str),
    /// One line that the agent logged.
    AgentLogged(&'a str),
    /// Something came of an order to the machine.
    Machine(MachineEvent),
    /// Time has passed.
    Tick,
}

#[derive(Debug, PartialEq, Eq)]
pub enum AhpOutput {
    /// One message for a client.
    Send {
        to: u64,
        message: Bytes,
    },
    /// The host becomes a client of the hub.
    JoinHub,
    /// One message for the hub.
    Hub(Bytes),
    LeaveHub,
    Machine(MachineOrder),
}

/// What the machine does for a host.
#[derive(Default)]
struct MachineWork {
    jobs: BTreeMap<u64, FileJob>,
    n_jobs: u64,
    watches: BTreeMap<String, ResourceWatch>,
    n_watches: u64,
    terminals: BTreeMap<String, HostedTerminal>,
}

/// One principal's sessions, for clients that speak AHP.
pub struct AhpHost {
    settings: HostSettings,
    clients: BTreeMap<u64, AhpClient>,
    sessions: BTreeMap<String, HostedSession>,
    root: RootState,
    action_log: ActionLog,
    /// Requests to the hub.
    hub_requests: OutgoingRequests<HubRequest>,
    /// Clients that wait for sessions to be opened.
    handshakes: Vec<Handshake>,
    catalog: SessionCatalog,
    work: MachineWork,
    is_in_hub: bool,
    now_ms: u64,
    out: Vec<AhpOutput>,
}

impl AhpHost {
    pub fn new(settings: HostSettings, memory: HostMemory, now_ms: u64) -> Self {
        Self {
            root: config::root_state(),
            settings,
            clients: BTreeMap::new(),
            sessions: BTreeMap::new(),
            action_log: ActionLog::new(now_ms),
            hub_requests: OutgoingRequests::default(),
            handshakes: Vec::new(),
            catalog: SessionCatalog::new(memory),
            work: MachineWork::default(),
            is_in_hub: false,
            now_ms,
            out: Vec::new(),
        }
    }

    /// Handles one input that happens at `now_ms`; returns what is to be done, in order.
    pub fn handle(&mut self, input: AhpInput<'_>, now_ms: u64) -> Vec<AhpOutput> {
        self.now_ms = now_ms;
        match input {
            AhpInput::Connected(number) => _ = self.clients.insert(number, AhpClient::default()),
            AhpInput::Disconnected(number) => self.forget_client(number),
            AhpInput::Message { from, text } => self.take_message(from, text),
            AhpInput::Hub(message) => self.take_hub_message(message),
            AhpInput::AgentEnded(why) => self.mark_dormant(why),
            AhpInput::AgentLogged(line) => self.export_log(line),
            AhpInput::Machine(MachineEvent::File { job, outcome }) => self.take_file_outcome(job, outcome),
            AhpInput::Machine(MachineEvent::Terminal { id, event }) => self.take_terminal_event(&id, event),
            AhpInput::Tick => {
                self.drop_unused_sessions();
                self.drop_unused_terminals();
                self.scan_watches();
                self.follow_starting_servers();
            }
        }
        if let Some(memory) = self.catalog.take_changed() {
            self.out.push(AhpOutput::Machine(MachineOrder::Remember(memory)));
        }
        std::mem::take(&mut self.out)
    }

    /// Whether there is nothing that anybody would miss.
    pub fn is_idle(&self) -> bool {
        self.clients.is_empty() && self.work.terminals.is_empty() && !self.is_in_hub
    }

    /// Sends a request to the hub, which the host joins before its first one.
    fn ask_hub(&mut self, request: HubRequest, method: &str, params: &Value) {
        if !self.is_in_hub {
            self.is_in_hub = true;
            self.out.push(AhpOutput::JoinHub);
            let hello = json!({
                "protocolVersion": 1,
                "clientInfo": { "name": "AHP", "version": env!("CARGO_PKG_VERSION") },
            });
            self.ask_hub(HubRequest::Nothing, "initialize", &hello);
        }
        let number = self.hub_requests.register(request);
        let line = one_message(|out| _ = write::request(out, number, method, params));
        self.out.push(AhpOutput::Hub(line));
    }

    fn notify_hub(&mut self, method: &str, params: &Value) {
        let line = one_message(|out| _ = write::notification(out, method, params));
        self.out.push(AhpOutput::Hub(line));
    }

    fn answer_hub(&mut self, id: &RequestId, result: &Value) {
        let line = one_message(|out| write::result(out, id, result));
        self.out.push(AhpOutput::Hub(line));
    }

    /// The session that an action is on.
    ///
    /// # Errors
    /// It is not open, in words.
    fn hosted(&mut self, session: &str) -> Result<&mut HostedSession, String> {
        let hosted = self.sessions.get_mut(session).filter(|it| !it.is_opening());
        hosted.ok_or_else(|| "the channel is not open; subscribe to its session".to_owned())
    }

    /// What a session did becomes the state of all that see it, in this order.
    fn emit(&mut self, session: &str, acts: Vec<TreeAction>) {
        for act in acts {
            self.emit_one(session, act);
        }
        self.announce_summary(session);
    }

    fn emit_one(&mut self, session: &str, act: TreeAction) {
        let Some(hosted) = self.sessions.get_mut(session) else { return };
        debug_assert!(!matches!(act.action, StateAction::Unknown(_)), "an action has its type: {:?}", act.action);
        if !hosted.reduce(&act) || hosted.is_opening() {
            return;
        }
        self.send_action(act.tree.channel(session), act.action, act.origin);
    }

    /// An action that the channel's tree has taken.
    fn send_action(&mut self, channel: Channel, action: StateAction, origin: Option<ActionOrigin>) {
        let envelope = self.action_log.envelope(channel, action, origin);
        self.broadcast(&envelope.0, "action", &envelope.1);
    }

    /// An action on the root's tree.
    fn emit_root(&mut self, action: StateAction) {
        if ahp::reducers::apply_action_to_root(&mut self.root, &action) == ahp::reducers::ReduceOutcome::Applied {
            self.send_action(Channel::Root, action, None);
        }
    }

    /// To all that are subscribed to a channel.
    fn broadcast(&mut self, channel: &Channel, method: &str, params: &impl Serialize) {
        let plain = one_message(|out| _ = write::notification(out, method, params));
        for (to, client) in &self.clients {
            if client.subscriptions.contains(channel) {
                self.out.push(AhpOutput::Send { to: *to, message: client.uri_style.apply(&plain) });
            }
        }
    }

    fn send_with(&mut self, to: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let plain = one_message(write);
        if let Some(client) = self.clients.get(&to) {
            self.out.push(AhpOutput::Send { to, message: client.uri_style.apply(&plain) });
        }
    }
}

/// Without the end of its line.
fn one_message(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut line = Vec::new();
    write(&mut line);
    line.pop();
    line.into()
}

/// Params as a value; none are null.
fn read_params(raw: Option<&RawValue>) -> Value {
    raw.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default()
}

/// The object with those of the optional members that are there.
fn with_members<const N: usize>(mut object: Value, optional: [(&str, Option<Value>); N]) -> Value {
    if let Some(all) = object.as_object_mut() {
        all.extend(optional.into_iter().filter_map(|(name, it)| Some((name.to_owned(), it?))));
    }
    object
}

/// As the protocol writes times.
fn time(ms: u64) -> String {
    castor_wire::acp::session::iso_time(ms)
}
