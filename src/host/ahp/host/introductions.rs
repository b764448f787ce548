//! Introductions of clients: versions, clients that come back, and the channels that they subscribe to.

use std::collections::BTreeSet;

use ahp::ahp_types::version;
use serde::Deserialize;

use super::{
    handshakes::{Handshake, Purpose, answer_handshakes, leave_session, note_idle},
    host_call::{HostCall, given},
    opening,
};
use crate::ahp::{AhpHost, Channel, ClientRefusal, Next, RequestOutcome, WaitingClient};
use castor_wire::acp::client::AgentRequest;

/// The params of `initialize` and `reconnect`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct IntroductionParams {
    client_id: String,
    protocol_versions: Vec<String>,
    initial_subscriptions: Vec<String>,
    last_seen_server_seq: Option<u64>,
    subscriptions: Vec<String>,
}

pub fn initialize(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let params: IntroductionParams = call.read_known();
    let version = version::negotiate_protocol_version(&params.protocol_versions).map_err(ClientRefusal::params)?;
    let version = version.ok_or_else(ClientRefusal::version)?.to_owned();
    host.sessions.catalog.note_version(given("clientId", &params.client_id)?, version.starts_with("0."));
    introduce(host, call.asker.from, params.client_id);
    open_channels(host, call.asker, Purpose::Initialize { version }, params.initial_subscriptions);
    Ok(())
}

pub fn reconnect(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let params: IntroductionParams = call.read_known();
    given("clientId", &params.client_id)?;
    let last_seen = params.last_seen_server_seq;
    let last_seen = last_seen.ok_or_else(|| ClientRefusal::params("lastSeenServerSeq is a whole number"))?;
    introduce(host, call.asker.from, params.client_id);
    open_channels(host, call.asker, Purpose::Reconnect { last_seen }, params.subscriptions);
    Ok(())
}

fn introduce(host: &mut AhpHost, from: u64, id: String) {
    let is_older = host.sessions.catalog.is_older_client(&id);
    if let Some(client) = host.clients.all.get_mut(&from) {
        client.introduce(id, is_older);
    }
}

pub fn subscribe(host: &mut AhpHost, call: HostCall) -> RequestOutcome {
    let uri = call.channel_uri()?.to_owned();
    if Channel::read(&uri).is_none() {
        return Err(ClientRefusal::no_channel(&uri));
    }
    open_channels(host, call.asker, Purpose::Subscribe, vec![uri]);
    Ok(())
}

pub fn unsubscribe(host: &mut AhpHost, from: u64, uri: &str) {
    let Some(channel) = Channel::read(uri) else { return };
    if let Some(client) = host.clients.all.get_mut(&from) {
        client.subscriptions.remove(&channel);
    }
    if let Channel::Session(session) = &channel {
        leave_session(host, from, session);
    }
    note_idle(host);
}

/// Opens the sessions that are wanted, and answers when each is open or is not to be had.
fn open_channels(host: &mut AhpHost, asker: WaitingClient, purpose: Purpose, uris: Vec<String>) {
    if let Some(client) = host.clients.all.get_mut(&asker.from) {
        uris.iter().for_each(|it| client.uri_style.note(it));
    }
    let channels: Vec<_> = uris.into_iter().map(|it| (it.clone(), Channel::read(&it))).collect();
    let wanted = channels.iter().filter_map(|it| it.1.as_ref()?.session());
    let waits_for: BTreeSet<String> = wanted.filter(|it| host.sessions.open(it).is_none()).map(str::to_owned).collect();
    if channels.iter().any(|it| it.1 == Some(Channel::Root)) && !host.clients.is_in_hub {
        host.clients.ask("", Next::ReadModels, &AgentRequest::Options { cwd: &host.settings.folder });
    }
    let missing = waits_for.clone();
    host.handshakes.push(Handshake { asker, purpose, channels, waits_for });
    missing.iter().for_each(|it| opening::open_session(host, it));
    answer_handshakes(host);
}
