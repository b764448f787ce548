//! The AHP host: an agent's sessions as state trees of the Agent Host Protocol, which many clients see and change.
//!
//! Messages come in, messages go out; it has no thread, socket or clock. To the hub it is one client that speaks ACP,
//! and shares sessions with all other clients of the hub. What its clients see is the fold of the actions that they get,
//! by the protocol's own reducers.
//!
//! Four parts, each with its own state. `host` takes what comes in: the table of clients' requests, the actions that they
//! dispatch, messages of the hub. `clients` has the connections, and all that goes out. `sessions` has the sessions with
//! their state trees, and what an agent tells of them. `machine` has files and terminals, by orders to the server.

/// A value of the protocol with the given members; those that are named behind it are `None`.
macro_rules! with_none {
    ($type:ident { $($given:ident $(: $value:expr)?),* $(,)? } $($absent:ident)*) => {
        $type { $($given $(: $value)?,)* $($absent: None,)* }
    };
    ($module:ident :: $type:ident { $($given:ident $(: $value:expr)?),* $(,)? } $($absent:ident)*) => {
        $module::$type { $($given $(: $value)?,)* $($absent: None,)* }
    };
}

mod clients;
mod host;
mod machine;
mod sessions;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use clients::{
    AhpClient, Clients,
    channel::Channel,
    hub_requests::{HubOutcome, Next, WaitingClient},
    refusals::{ClientRefusal, RequestOutcome, not_for_clients},
};
use host::handshakes::Handshake;
use machine::HostMachine;
pub use machine::orders::{MachineEvent, MachineOrder, TerminalEvent, TerminalOrder};
use sessions::Sessions;
pub use sessions::catalog::HostMemory;
use sessions::customizations::follow_starting_servers;
use sessions::desk::SessionDesk;

/// Settings of a host, the same for all its clients.
#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Whether its principal is the user that runs the server.
    pub is_user: bool,
    /// The only folders, for another principal.
    pub roots: Vec<String>,
    /// Where sessions begin that name no folder.
    pub folder: String,
    /// Most requests of one client without an answer.
    pub max_requests: usize,
    /// Time after which a session is dropped that no client is subscribed to.
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
    /// The agent ended, and closed all sessions.
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

/// One principal's sessions, for clients that speak AHP.
pub struct AhpHost {
    settings: HostSettings,
    clients: Clients,
    sessions: Sessions,
    machine: HostMachine,
    /// Clients that wait for sessions to be opened.
    handshakes: Vec<Handshake>,
}

impl AhpHost {
    pub fn new(settings: HostSettings, memory: HostMemory, now_ms: u64) -> Self {
        Self {
            settings,
            clients: Clients::new(sessions::config::root_state(), now_ms),
            sessions: Sessions::new(memory),
            machine: HostMachine::default(),
            handshakes: Vec::new(),
        }
    }

    /// Handles one input that happens at `now_ms`; returns what is to be done, in order.
    pub fn handle(&mut self, input: AhpInput<'_>, now_ms: u64) -> Vec<AhpOutput> {
        self.clients.now_ms = now_ms;
        match input {
            AhpInput::Connected(number) => _ = self.clients.all.insert(number, AhpClient::default()),
            AhpInput::Disconnected(number) => host::handshakes::forget_client(self, number),
            AhpInput::Message { from, text } => host::client_requests::take_message(self, from, text),
            AhpInput::Hub(message) => host::hub_messages::take_message(self, message),
            AhpInput::AgentEnded(why) => self.each_desk(|desk| desk.mark_dormant(why)),
            AhpInput::AgentLogged(line) => self.clients.export_log(line),
            AhpInput::Machine(MachineEvent::File { job, outcome }) => {
                self.machine.take_file_outcome(&mut self.clients, job, outcome);
            }
            AhpInput::Machine(MachineEvent::Terminal { id, event }) => {
                self.machine.take_terminal_event(&mut self.clients, &id, event);
            }
            AhpInput::Tick => {
                host::handshakes::drop_unused_sessions(self);
                self.machine.drop_unused_terminals(&mut self.clients, self.settings.keep_ms);
                self.machine.scan_watches(&mut self.clients);
                self.each_desk(follow_starting_servers);
            }
        }
        if let Some(memory) = self.sessions.catalog.take_changed() {
            self.clients.order(MachineOrder::Remember(memory));
        }
        std::mem::take(&mut self.clients.out)
    }

    /// Whether there is nothing that anybody would miss.
    pub fn is_idle(&self) -> bool {
        self.clients.all.is_empty() && self.machine.terminals.is_empty() && !self.clients.is_in_hub
    }

    /// The desk of a session that is here, open or on the way.
    fn desk(&mut self, session: &str) -> Option<SessionDesk<'_>> {
        self.sessions.desk(&mut self.clients, session)
    }

    fn each_desk(&mut self, mut act: impl FnMut(&mut SessionDesk<'_>)) {
        for session in self.sessions.ids() {
            if let Some(mut desk) = self.desk(&session) {
                act(&mut desk);
            }
        }
    }
}
