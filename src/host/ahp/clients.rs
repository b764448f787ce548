//! Clients of the host: how they introduce themselves and come back, their subscriptions, and snapshots for them.

use std::collections::BTreeSet;

use ahp::ahp_types::{
    commands::{
        Implementation, InitializeResult, ReconnectReplayResult, ReconnectResult, ReconnectSnapshotResult,
        SubscribeResult,
    },
    state::{Snapshot, SnapshotState},
    version,
};
use serde_json::{Value, json};

use super::{
    AhpHost,
    channel::Channel,
    client_requests::{ClientRefusal, HostCall, RequestOutcome},
    hosted_session::{SessionStage, TreeAction},
    hub_requests::{HubRequest, WaitingClient},
    messages::{SHELL_PREFIX, file_uri},
    telemetry,
    uri_style::UriStyle,
};

/// One client, as it introduced itself.
#[derive(Default)]
pub struct AhpClient {
    /// `None` until initialize or reconnect.
    pub id: Option<String>,
    pub subscriptions: BTreeSet<Channel>,
    pub uri_style: UriStyle,
    /// Requests without an answer.
    pub n_open: usize,
}

/// A client that waits for the sessions of its subscriptions.
pub struct Handshake {
    asker: WaitingClient,
    purpose: Purpose,
    /// As the client wrote them; `None`: there is no such channel.
    channels: Vec<(String, Option<Channel>)>,
    /// Sessions that are opened for it.
    pub waits_for: BTreeSet<String>,
}

enum Purpose {
    Initialize { version: String },
    Reconnect { last_seen: u64 },
    Subscribe,
}

impl AhpHost {
    pub(super) fn initialize(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let params = call.params;
        let offered: Vec<String> = serde_json::from_value(params["protocolVersions"].clone()).unwrap_or_default();
        let version = version::negotiate_protocol_version(&offered).map_err(|it| ClientRefusal::params(&it))?;
        let version = version.ok_or_else(ClientRefusal::version)?.to_owned();
        let id = call.text("clientId")?;
        self.catalog.note_version(&id, version.starts_with("0."));
        self.introduce(call.from, id);
        let channels = uris(&params["initialSubscriptions"]);
        self.open_channels(call.asker(), Purpose::Initialize { version }, channels);
        Ok(())
    }

    pub(super) fn reconnect(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let id = call.text("clientId")?;
        let last_seen = call.params["lastSeenServerSeq"].as_u64();
        let last_seen = last_seen.ok_or_else(|| ClientRefusal::params("lastSeenServerSeq is a whole number"))?;
        self.introduce(call.from, id);
        let channels = uris(&call.params["subscriptions"]);
        self.open_channels(call.asker(), Purpose::Reconnect { last_seen }, channels);
        Ok(())
    }

    fn introduce(&mut self, from: u64, id: String) {
        let Some(client) = self.clients.get_mut(&from) else { return };
        if self.catalog.is_older_client(&id) {
            client.uri_style = UriStyle::of_older();
        }
        client.id = Some(id);
    }

    pub(super) fn subscribe(&mut self, call: HostCall<'_>) -> RequestOutcome {
        let uri = call.text("channel")?;
        if Channel::read(&uri).is_none() {
            return Err(ClientRefusal::no_channel(&uri));
        }
        self.open_channels(call.asker(), Purpose::Subscribe, vec![uri]);
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, from: u64, uri: &str) {
        let Some(channel) = Channel::read(uri) else { return };
        if let Some(client) = self.clients.get_mut(&from) {
            client.subscriptions.remove(&channel);
        }
        if let Channel::Session(session) = &channel {
            self.leave_session(from, session);
        }
        self.note_idle();
    }

    /// Opens the sessions that are wanted, and answers when each is open or is not to be had.
    fn open_channels(&mut self, asker: WaitingClient, purpose: Purpose, uris: Vec<String>) {
        if let Some(client) = self.clients.get_mut(&asker.from) {
            uris.iter().for_each(|it| client.uri_style.note(it));
        }
        let channels: Vec<_> = uris.into_iter().map(|it| (it.clone(), Channel::read(&it))).collect();
        let wanted: BTreeSet<String> =
            channels.iter().filter_map(|it| it.1.as_ref()?.session()).map(str::to_owned).collect();
        let is_open = |it: &String| self.sessions.get(it).is_some_and(|it| !it.is_opening());
        let waits_for: BTreeSet<String> = wanted.into_iter().filter(|it| !is_open(it)).collect();
        if channels.iter().any(|it| it.1 == Some(Channel::Root)) && !self.is_in_hub {
            let folder = self.settings.folder.clone();
            self.ask_hub(HubRequest::ReadModels, "_castor/options/list", &json!({ "cwd": folder }));
        }
        let missing: Vec<String> = waits_for.iter().cloned().collect();
        self.handshakes.push(Handshake { asker, purpose, channels, waits_for });
        missing.iter().for_each(|it| self.open_session(it));
        self.answer_handshakes();
    }

    /// A session is open, or is not to be had.
    pub(super) fn finish_opening(&mut self, session: &str) {
        for it in &mut self.handshakes {
            it.waits_for.remove(session);
        }
        self.answer_handshakes();
    }

    fn answer_handshakes(&mut self) {
        let (ready, waiting) =
            std::mem::take(&mut self.handshakes).into_iter().partition(|it: &Handshake| it.waits_for.is_empty());
        self.handshakes = waiting;
        ready.into_iter().for_each(|it| self.answer_handshake(it));
    }

    fn answer_handshake(&mut self, it: Handshake) {
        let Handshake { asker, purpose, channels, .. } = it;
        if !self.clients.contains_key(&asker.from) {
            return self.note_idle();
        }
        let mut missing = Vec::new();
        let mut there = Vec::new();
        for (uri, channel) in channels {
            match channel.filter(|it| self.has_channel(it)) {
                Some(channel) => there.push(channel),
                None => missing.push(uri),
            }
        }
        if let Some(client) = self.clients.get_mut(&asker.from) {
            client.subscriptions.extend(there.iter().cloned());
        }
        let answer = match purpose {
            Purpose::Initialize { version } => json!(self.introduction(version, &there)),
            Purpose::Reconnect { last_seen } => json!(self.resumption(last_seen, &there, missing)),
            Purpose::Subscribe => match there.first() {
                Some(it) => json!(SubscribeResult { snapshot: self.snapshot(it) }),
                None => {
                    let uri = missing.pop().unwrap_or_default();
                    return self.refuse(&asker, &ClientRefusal::no_channel(&uri));
                }
            },
        };
        self.answer(&asker, &answer);
        self.note_idle();
    }

    fn has_channel(&self, channel: &Channel) -> bool {
        match channel {
            Channel::Terminal(it) => self.work.terminals.contains_key(it),
            Channel::Watch(it) => self.work.watches.contains_key(it),
            Channel::Logs(level) => telemetry::least_severity(level).is_some(),
            it => it.session().is_none_or(|it| self.sessions.contains_key(it)),
        }
    }

    fn introduction(&self, version: String, channels: &[Channel]) -> InitializeResult {
        InitializeResult {
            protocol_version: version,
            server_seq: number(self.action_log.last()),
            server_info: Some(Implementation {
                name: "castor".to_owned(),
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
                title: None,
            }),
            meta: None,
            snapshots: channels.iter().filter_map(|it| self.snapshot(it)).collect(),
            default_directory: Some(file_uri(&self.settings.folder)),
            completion_trigger_characters: Some(vec!["/".to_owned(), "@".to_owned()]),
            terminal_command_prefix: Some(SHELL_PREFIX.to_owned()),
            telemetry: Some(telemetry::capabilities()),
            automations: None,
        }
    }

    /// What was missed, if all of it is kept; else how all is now.
    fn resumption(&self, last_seen: u64, channels: &[Channel], missing: Vec<String>) -> ReconnectResult {
        let is_known = |it: &Channel| {
            let hosted = it.session().and_then(|it| self.sessions.get(it));
            hosted.is_none_or(|it| it.known_since <= last_seen)
        };
        let missed = self.action_log.after(last_seen).filter(|_| channels.iter().all(is_known));
        match missed {
            Some(all) => {
                let own = all.filter(|it| channels.contains(&it.0));
                let actions = own.filter_map(|it| serde_json::from_str(it.1.get()).ok()).collect();
                ReconnectResult::Replay(ReconnectReplayResult { actions, missing })
            }
            None => {
                let snapshots = channels.iter().filter_map(|it| self.snapshot(it)).collect();
                ReconnectResult::Snapshot(ReconnectSnapshotResult { snapshots })
            }
        }
    }

    fn snapshot(&self, channel: &Channel) -> Option<Snapshot> {
        let trees = channel.session().and_then(|it| self.sessions.get(it)).map(|it| &it.trees);
        let state = match channel {
            Channel::Root => SnapshotState::Root(Box::new(self.root.clone())),
            Channel::Session(_) => SnapshotState::Session(Box::new(trees?.session.clone())),
            Channel::Chat(_) => SnapshotState::Chat(Box::new(trees?.chat.clone())),
            Channel::Changes(_) => SnapshotState::Changeset(Box::new(trees?.changes.clone())),
            Channel::Annotations(_) => SnapshotState::Annotations(Box::new(trees?.annotations.clone())),
            Channel::Terminal(it) => SnapshotState::Terminal(Box::new(self.work.terminals.get(it)?.state.clone())),
            Channel::Logs(_) | Channel::Metrics => return None,
            Channel::Watch(it) => SnapshotState::ResourceWatch(Box::new(self.work.watches.get(it)?.state.clone())),
        };
        Some(Snapshot { resource: channel.uri(), state, from_seq: number(self.action_log.last()) })
    }

    /// A client is gone; what it began goes on.
    pub(super) fn forget_client(&mut self, number: u64) {
        let sessions: Vec<String> = self.sessions.keys().cloned().collect();
        sessions.iter().for_each(|it| self.leave_session(number, it));
        self.clients.remove(&number);
        self.note_idle();
    }

    /// It takes part in a session no more.
    fn leave_session(&mut self, from: u64, session: &str) {
        let client_id = self.clients.get(&from).and_then(|it| it.id.clone());
        let Some(client_id) = client_id else { return };
        let left = json!({ "type": "session/activeClientRemoved", "clientId": client_id });
        self.emit(session, vec![TreeAction::session(left)]);
        self.end_tool_calls(session, Some(&client_id));
    }

    /// Sessions that no client is subscribed to, from now on.
    fn note_idle(&mut self) {
        for (id, hosted) in &mut self.sessions {
            let is_seen = self.clients.values().any(|it| it.subscriptions.iter().any(|it| it.session() == Some(id)));
            if is_seen {
                hosted.idle_since_ms = self.now_ms;
            }
        }
    }

    /// Sessions that no client looks at are left to the hub, where they may be open for others.
    pub(super) fn drop_unused_sessions(&mut self) {
        self.note_idle();
        let (now, keep_ms) = (self.now_ms, self.settings.keep_ms);
        let is_unused = |it: &super::HostedSession| {
            let is_moving = matches!(it.stage, SessionStage::Opening | SessionStage::Reopening);
            let is_busy = it.is_busy() || is_moving;
            !is_busy && now.saturating_sub(it.idle_since_ms) >= keep_ms
        };
        let unused: Vec<String> = self.sessions.iter().filter(|it| is_unused(it.1)).map(|it| it.0.clone()).collect();
        for id in unused {
            self.sessions.remove(&id);
            self.ask_hub(HubRequest::Nothing, "_castor/session/detach", &json!({ "sessionId": id }));
        }
        if self.is_in_hub && self.clients.is_empty() && self.sessions.is_empty() && self.hub_requests.is_empty() {
            self.is_in_hub = false;
            self.out.push(super::AhpOutput::LeaveHub);
        }
    }
}

fn uris(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn number(it: u64) -> i64 {
    i64::try_from(it).unwrap_or(i64::MAX)
}
