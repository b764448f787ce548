//! Requests of clients of the AHP host: the table of them, and in which order they may come.

use ahp::ahp_types::{
    commands::{DispatchActionParams, InvokeChangesetOperationParams},
    errors::json_rpc_error_codes as rpc,
};
use serde_json::value::RawValue;

use super::host_call::{ChannelParams, HostCall};
use super::{actions, completions, introductions, session_requests};
use crate::ahp::machine::files;
use crate::ahp::sessions::changes;
use crate::ahp::{AhpHost, Channel, ClientRefusal, RequestOutcome, WaitingClient};
use castor_wire::jsonrpc::{
    message::{self, InvalidMessage, Message},
    write,
};

type Route = fn(&mut AhpHost, HostCall) -> RequestOutcome;

/// Each handler answers by itself, or returns why not.
const ROUTES: &[(&str, Route)] = &[
    ("initialize", introductions::initialize),
    ("reconnect", introductions::reconnect),
    ("ping", |host, call| {
        host.clients.answer(&call.asker, &());
        Ok(())
    }),
    ("subscribe", introductions::subscribe),
    ("listSessions", session_requests::list),
    ("createSession", session_requests::create),
    ("disposeSession", session_requests::dispose),
    ("resolveSessionConfig", session_requests::resolve_config),
    ("sessionConfigCompletions", session_requests::complete_config),
    ("completions", completions::complete_message),
    ("fetchTurns", session_requests::fetch_turns),
    ("createTerminal", |host, call| {
        let client = host.clients.all.get(&call.asker.from).and_then(|it| it.id.clone()).unwrap_or_default();
        let params = call.read()?;
        host.machine.create_terminal(&mut host.clients, &host.settings, params, &client)?;
        host.clients.answer(&call.asker, &());
        host.machine.announce_terminals(&mut host.clients);
        Ok(())
    }),
    ("disposeTerminal", |host, call| {
        host.machine.dispose_terminal(&mut host.clients, call.channel_uri()?)?;
        host.clients.answer(&call.asker, &());
        Ok(())
    }),
    ("invokeChangesetOperation", |host, call| {
        let params: InvokeChangesetOperationParams = call.read()?;
        let Some(Channel::Changes(session)) = Channel::read(&params.channel) else {
            return Err(ClientRefusal::no_channel(&params.channel));
        };
        let mut desk = host.desk(&session).ok_or_else(|| ClientRefusal::no_channel(&params.channel))?;
        changes::invoke_operation(&mut desk, call.asker, &params)
    }),
    ("createResourceWatch", |host, call| {
        let params = call.read()?;
        let place = files::Places { settings: &host.settings, catalog: &host.sessions.catalog };
        host.machine.create_watch(&mut host.clients, &place, params, call.asker)
    }),
];

/// Methods that a client may send before its introduction.
const FIRST: &[&str] = &["initialize", "reconnect", "ping"];

pub fn take_message(host: &mut AhpHost, from: u64, text: &[u8]) {
    match message::parse(text) {
        Ok(Message::Request { id, method, params }) => {
            let call = HostCall::new(WaitingClient { from, id }, params.as_deref());
            take_request(host, &method, call);
        }
        Ok(Message::Notification { method, params }) => take_notice(host, from, &method, params.as_deref()),
        // The host asks its clients nothing.
        Ok(Message::Response { .. }) | Err(InvalidMessage::Ignore(_)) => (),
        Err(InvalidMessage::Answer { id, error }) => host.clients.send_with(from, |out| write::error(out, &id, &error)),
    }
}

fn take_request(host: &mut AhpHost, method: &str, call: HostCall) {
    let Some(client) = host.clients.all.get_mut(&call.asker.from) else { return };
    let is_known = client.id.is_some();
    client.n_open += 1;
    let n_open = client.n_open;
    let asker = call.asker.clone();
    let route = ROUTES.iter().find(|it| it.0 == method);
    let refused = match (route, files::request(method)) {
        (None, None) => Err(ClientRefusal::new(rpc::METHOD_NOT_FOUND, format!("castor has no {method}"))),
        _ if !is_known && !FIRST.contains(&method) => {
            Err(ClientRefusal::new(rpc::INVALID_REQUEST, "initialize or reconnect comes first"))
        }
        _ if is_known && ["initialize", "reconnect"].contains(&method) => {
            Err(ClientRefusal::new(rpc::INVALID_REQUEST, "this connection was initialized"))
        }
        _ if n_open > host.settings.max_requests => {
            let why = format!("{} requests of this connection have no answer yet; wait for some of them", n_open - 1);
            Err(ClientRefusal::new(rpc::INVALID_REQUEST, why))
        }
        (route, of_files) => {
            client.uri_style.note(&call.channel);
            match (route, of_files) {
                (Some((_, route)), _) => route(host, call),
                (None, Some(kind)) => session_requests::take_file_request(host, kind, call),
                (None, None) => Ok(()),
            }
        }
    };
    if let Err(it) = refused {
        host.clients.refuse(&asker, it);
    }
}

fn take_notice(host: &mut AhpHost, from: u64, method: &str, params: Option<&RawValue>) {
    let is_known = host.clients.all.get(&from).is_some_and(|it| it.id.is_some());
    let Some(params) = params.map(RawValue::get) else { return };
    match method {
        "unsubscribe" => {
            if let Ok(ChannelParams { channel }) = serde_json::from_str(params) {
                introductions::unsubscribe(host, from, &channel);
            }
        }
        "dispatchAction" if is_known => {
            // One that cannot be read has no number to be rejected by.
            if let Ok(it) = serde_json::from_str::<DispatchActionParams>(params) {
                actions::take(host, from, it);
            }
        }
        // As the protocol says of what is not known.
        _ => (),
    }
}
