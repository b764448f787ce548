//! The clients of a host, and all that goes out: messages for them, requests to the hub, orders to the machine.

mod action_log;
pub mod channel;
pub mod hub_requests;
pub mod refusals;
mod telemetry;
mod uri_style;

use std::collections::{BTreeMap, BTreeSet};

use ahp::{
    ahp_types::{
        actions::{ActionEnvelope, ActionOrigin, StateAction},
        state::RootState,
    },
    reducers::{self, ReduceOutcome},
};
use bytes::Bytes;
use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;

use super::{AhpOutput, MachineOrder, sessions::acts::TreeAction};
use action_log::ActionLog;
use castor_wire::acp::client::{AgentRequest, ClientName};
use castor_wire::jsonrpc::{message::RequestId, open_requests::OutgoingRequests, write};
use channel::Channel;
use hub_requests::{HubRequest, Next, WaitingClient};
use refusals::ClientRefusal;
pub use telemetry::{capabilities, least_severity};
use uri_style::UriStyle;

/// One client, by its own introduction.
#[derive(Default)]
pub struct AhpClient {
    /// `None` until initialize or reconnect.
    pub id: Option<String>,
    pub subscriptions: BTreeSet<Channel>,
    pub uri_style: UriStyle,
    /// Requests without an answer.
    pub n_open: usize,
}

impl AhpClient {
    /// Takes a client's name; one of an older version has other URIs.
    pub fn introduce(&mut self, id: String, is_older: bool) {
        if is_older {
            self.uri_style = UriStyle::of_older();
        }
        self.id = Some(id);
    }
}

/// The clients, what they were told, and what waits to be sent.
pub struct Clients {
    pub now_ms: u64,
    /// The tree of the root, which all sessions share.
    pub root: RootState,
    pub all: BTreeMap<u64, AhpClient>,
    log: ActionLog,
    hub_requests: OutgoingRequests<HubRequest>,
    /// Whether the host is a client of the hub now.
    pub is_in_hub: bool,
    /// Outputs of the present input, in order.
    pub out: Vec<AhpOutput>,
}

impl Clients {
    pub fn new(root: RootState, now_ms: u64) -> Self {
        Self {
            now_ms,
            root,
            all: BTreeMap::new(),
            log: ActionLog::new(now_ms),
            hub_requests: OutgoingRequests::default(),
            is_in_hub: false,
            out: Vec::new(),
        }
    }

    /// Whether a client is subscribed to such a channel.
    pub fn follow(&self, is_it: impl Fn(&Channel) -> bool) -> bool {
        self.all.values().any(|it| it.subscriptions.iter().any(&is_it))
    }

    /// Ends all subscriptions to such channels.
    pub fn unsubscribe(&mut self, is_it: impl Fn(&Channel) -> bool) {
        self.all.values_mut().for_each(|it| it.subscriptions.retain(|it| !is_it(it)));
    }

    /// The number of the last action.
    pub fn last_action(&self) -> u64 {
        self.log.last()
    }

    /// The actions behind a number on these channels; `None`: some of them are gone.
    pub fn missed(&self, number: u64, channels: &[Channel]) -> Option<Vec<ActionEnvelope>> {
        let own = self.log.after(number)?.filter(|it| channels.contains(&it.0));
        Some(own.filter_map(|it| serde_json::from_str(it.1.get()).ok()).collect())
    }

    /// Sends a request to the hub, which the host joins before its first one.
    pub fn ask(&mut self, session: &str, next: Next, request: &AgentRequest<'_>) {
        if !self.is_in_hub {
            self.is_in_hub = true;
            self.out.push(AhpOutput::JoinHub);
            let client_info = ClientName { name: "AHP", version: env!("CARGO_PKG_VERSION") };
            self.ask("", Next::Nothing, &AgentRequest::Initialize { protocol_version: 1, client_info });
        }
        let number = self.hub_requests.register(HubRequest { session: session.to_owned(), next });
        self.out.push(AhpOutput::Hub(request.message(number).into()));
    }

    /// The request that an answer of the hub is for.
    pub fn settle(&mut self, id: &RequestId) -> Option<HubRequest> {
        self.hub_requests.settle(id)
    }

    pub fn notify_hub(&mut self, method: &str, params: &impl Serialize) {
        self.out.push(AhpOutput::Hub(one_message(|out| _ = write::notification(out, method, params))));
    }

    pub fn answer_hub(&mut self, id: &RequestId, result: &impl Serialize) {
        self.out.push(AhpOutput::Hub(one_message(|out| write::result(out, id, result))));
    }

    /// Leaves the hub, if nothing of the host's is left there.
    pub fn leave_hub(&mut self) {
        if self.is_in_hub && self.all.is_empty() && self.hub_requests.is_empty() {
            self.is_in_hub = false;
            self.out.push(AhpOutput::LeaveHub);
        }
    }

    pub fn order(&mut self, order: MachineOrder) {
        self.out.push(AhpOutput::Machine(order));
    }

    /// Tells an action that the channel's tree has taken.
    pub fn send_action(&mut self, channel: Channel, action: StateAction, origin: Option<ActionOrigin>) {
        let (channel, envelope) = self.log.envelope(channel, action, origin);
        self.broadcast(&channel, "action", &envelope);
    }

    /// Takes an action on the root's tree, and tells all that see the tree.
    pub fn emit_root(&mut self, action: StateAction) {
        if reducers::apply_action_to_root(&mut self.root, &action) == ReduceOutcome::Applied {
            self.send_action(Channel::Root, action, None);
        }
    }

    /// Sends a notification to all that are subscribed to a channel.
    pub fn broadcast(&mut self, channel: &Channel, method: &str, params: &impl Serialize) {
        let plain = one_message(|out| _ = write::notification(out, method, params));
        for (to, client) in &self.all {
            if client.subscriptions.contains(channel) {
                self.out.push(AhpOutput::Send { to: *to, message: client.uri_style.apply(&plain) });
            }
        }
    }

    pub fn send_with(&mut self, to: u64, write: impl FnOnce(&mut Vec<u8>)) {
        let plain = one_message(write);
        if let Some(client) = self.all.get(&to) {
            self.out.push(AhpOutput::Send { to, message: client.uri_style.apply(&plain) });
        }
    }

    pub fn answer(&mut self, asker: &WaitingClient, result: &impl Serialize) {
        self.close_request(asker);
        self.send_with(asker.from, |out| write::result(out, &asker.id, result));
    }

    pub fn refuse(&mut self, asker: &WaitingClient, why: ClientRefusal) {
        self.close_request(asker);
        let error = ErrorObjectOwned::from(why);
        self.send_with(asker.from, |out| write::error(out, &asker.id, &error));
    }

    /// Answers, or says why not.
    pub fn settle_client(&mut self, asker: &WaitingClient, outcome: Result<impl Serialize, ClientRefusal>) {
        match outcome {
            Ok(it) => self.answer(asker, &it),
            Err(it) => self.refuse(asker, it),
        }
    }

    fn close_request(&mut self, asker: &WaitingClient) {
        if let Some(it) = self.all.get_mut(&asker.from) {
            it.n_open = it.n_open.saturating_sub(1);
        }
    }

    /// Gives a client its action back, which holds not.
    pub fn reject(&mut self, to: u64, session: &str, act: TreeAction, why: &str) {
        let uri = act.tree.channel(session).uri();
        if let Some(origin) = act.origin {
            self.send_rejection(to, &uri, act.action, (origin, why));
        }
    }

    pub fn send_rejection(&mut self, to: u64, uri: &str, action: StateAction, (origin, why): (ActionOrigin, &str)) {
        let envelope = self.log.rejection(uri, action, origin, why);
        self.send_with(to, |out| _ = write::notification(out, "action", &envelope));
    }
}

/// One message without the end of its line.
fn one_message(write: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut line = Vec::new();
    write(&mut line);
    line.pop();
    line.into()
}
