//! Clients that wait for sessions, snapshots for them, and sessions that no client is subscribed to any more.

use std::collections::BTreeSet;

use ahp::ahp_types::{
    actions::{SessionActiveClientRemovedAction, StateAction},
    commands::{
        Implementation, InitializeResult, ReconnectReplayResult, ReconnectResult, ReconnectSnapshotResult,
        SubscribeResult,
    },
    state::{Snapshot, SnapshotState},
};

use crate::ahp::sessions::{
    HostedSession, SessionStage, TreeAction,
    acts::number,
    messages::{SHELL_PREFIX, uri_of},
};
use crate::ahp::{AhpHost, Channel, ClientRefusal, Next, WaitingClient, clients};
use castor_wire::acp::client::AgentRequest;

/// A client that waits for the sessions of its subscriptions.
pub struct Handshake {
    pub asker: WaitingClient,
    pub purpose: Purpose,
    /// The channels as the client wrote them; `None`: there is no such channel.
    pub channels: Vec<(String, Option<Channel>)>,
    /// Sessions that are opened first.
    pub waits_for: BTreeSet<String>,
}

pub enum Purpose {
    Initialize { version: String },
    Reconnect { last_seen: u64 },
    Subscribe,
}

/// A session is open, or is not to be had.
pub fn finish_opening(host: &mut AhpHost, session: &str) {
    for it in &mut host.handshakes {
        it.waits_for.remove(session);
    }
    answer_handshakes(host);
}

pub fn answer_handshakes(host: &mut AhpHost) {
    let all = std::mem::take(&mut host.handshakes);
    let (ready, waiting) = all.into_iter().partition(|it: &Handshake| it.waits_for.is_empty());
    host.handshakes = waiting;
    ready.into_iter().for_each(|it| answer_handshake(host, it));
}

fn answer_handshake(host: &mut AhpHost, it: Handshake) {
    let Handshake { asker, purpose, channels, .. } = it;
    let mut missing = Vec::new();
    let mut there = Vec::new();
    for (uri, channel) in channels {
        match channel.filter(|it| has_channel(host, it)) {
            Some(channel) => there.push(channel),
            None => missing.push(uri),
        }
    }
    match host.clients.all.get_mut(&asker.from) {
        Some(client) => client.subscriptions.extend(there.iter().cloned()),
        None => return note_idle(host),
    }
    match purpose {
        Purpose::Initialize { version } => host.clients.answer(&asker, &introduction(host, version, &there)),
        Purpose::Reconnect { last_seen } => host.clients.answer(&asker, &resumption(host, last_seen, &there, missing)),
        Purpose::Subscribe => {
            let uri = missing.pop().unwrap_or_default();
            let found = there.first().map(|it| SubscribeResult { snapshot: snapshot(host, it) });
            host.clients.settle_client(&asker, found.ok_or_else(|| ClientRefusal::no_channel(&uri)));
        }
    }
    note_idle(host);
}

fn has_channel(host: &AhpHost, channel: &Channel) -> bool {
    match channel {
        Channel::Terminal(it) => host.machine.terminals.contains_key(it),
        Channel::Watch(it) => host.machine.watches.contains_key(it),
        Channel::Logs(level) => clients::least_severity(level).is_some(),
        it => it.session().is_none_or(|it| host.sessions.all.contains_key(it)),
    }
}

fn introduction(host: &AhpHost, version: String, channels: &[Channel]) -> InitializeResult {
    InitializeResult {
        protocol_version: version,
        server_seq: number(host.clients.last_action()),
        server_info: Some(Implementation {
            name: "castor".to_owned(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            title: None,
        }),
        meta: None,
        snapshots: channels.iter().filter_map(|it| snapshot(host, it)).collect(),
        default_directory: Some(uri_of(&host.settings.folder)),
        completion_trigger_characters: Some(vec!["/".to_owned(), "@".to_owned()]),
        terminal_command_prefix: Some(SHELL_PREFIX.to_owned()),
        telemetry: Some(clients::capabilities()),
        automations: None,
    }
}

/// The missed actions, if all are kept; else snapshots.
fn resumption(host: &AhpHost, last_seen: u64, channels: &[Channel], missing: Vec<String>) -> ReconnectResult {
    let is_known = |it: &Channel| {
        let hosted = it.session().and_then(|it| host.sessions.all.get(it));
        hosted.is_none_or(|it| it.known_since <= last_seen)
    };
    match host.clients.missed(last_seen, channels).filter(|_| channels.iter().all(is_known)) {
        Some(actions) => ReconnectResult::Replay(ReconnectReplayResult { actions, missing }),
        None => {
            let snapshots = channels.iter().filter_map(|it| snapshot(host, it)).collect();
            ReconnectResult::Snapshot(ReconnectSnapshotResult { snapshots })
        }
    }
}

fn snapshot(host: &AhpHost, channel: &Channel) -> Option<Snapshot> {
    let trees = channel.session().and_then(|it| host.sessions.all.get(it)).map(|it| &it.trees);
    let state = match channel {
        Channel::Root => SnapshotState::Root(Box::new(host.clients.root.clone())),
        Channel::Session(_) => SnapshotState::Session(Box::new(trees?.session.clone())),
        Channel::Chat(_) => SnapshotState::Chat(Box::new(trees?.chat.clone())),
        Channel::Changes(_) => SnapshotState::Changeset(Box::new(trees?.changes.clone())),
        Channel::Annotations(_) => SnapshotState::Annotations(Box::new(trees?.annotations.clone())),
        Channel::Terminal(it) => SnapshotState::Terminal(Box::new(host.machine.terminals.get(it)?.state.clone())),
        Channel::Logs(_) | Channel::Metrics => return None,
        Channel::Watch(it) => SnapshotState::ResourceWatch(Box::new(host.machine.watches.get(it)?.state.clone())),
    };
    Some(Snapshot { resource: channel.uri(), state, from_seq: number(host.clients.last_action()) })
}

/// A client is gone; its turns go on.
pub fn forget_client(host: &mut AhpHost, number: u64) {
    for session in host.sessions.ids() {
        leave_session(host, number, &session);
    }
    host.clients.all.remove(&number);
    note_idle(host);
}

/// A client takes part in a session no more.
pub fn leave_session(host: &mut AhpHost, from: u64, session: &str) {
    let client_id = host.clients.all.get(&from).and_then(|it| it.id.clone());
    let (Some(client_id), Some(mut desk)) = (client_id, host.desk(session)) else { return };
    let action = SessionActiveClientRemovedAction { client_id: client_id.clone() };
    desk.emit([TreeAction::session(StateAction::SessionActiveClientRemoved(action))]);
    desk.end_tool_calls(Some(&client_id));
}

/// Sessions that a client is subscribed to are in use until now.
pub fn note_idle(host: &mut AhpHost) {
    for (id, hosted) in &mut host.sessions.all {
        if host.clients.follow(|it| it.session() == Some(id)) {
            hosted.idle_since_ms = host.clients.now_ms;
        }
    }
}

/// Sessions that no client looks at are left to the hub, where they may be open for others.
pub fn drop_unused_sessions(host: &mut AhpHost) {
    note_idle(host);
    let (now, keep_ms) = (host.clients.now_ms, host.settings.keep_ms);
    let is_unused = |it: &HostedSession| {
        let is_moving = matches!(it.stage, SessionStage::Opening | SessionStage::Reopening);
        !it.is_busy() && !is_moving && now.saturating_sub(it.idle_since_ms) >= keep_ms
    };
    let unused: Vec<String> = host.sessions.all.values().filter(|it| is_unused(it)).map(|it| it.id.clone()).collect();
    for id in unused {
        host.sessions.all.remove(&id);
        host.clients.ask("", Next::Nothing, &AgentRequest::Detach(id.as_str().into()));
    }
    if host.sessions.all.is_empty() {
        host.clients.leave_hub();
    }
}
