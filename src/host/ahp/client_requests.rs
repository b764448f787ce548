//! Requests of clients of the AHP host: the table of them, in which order they may come, and refusals.

use ahp::ahp_types::{
    commands::DispatchActionParams,
    errors::{UnsupportedProtocolVersionErrorData, ahp_error_codes as codes, json_rpc_error_codes as rpc},
    version,
};
use jsonrpsee::types::ErrorObjectOwned;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};

use super::{AhpHost, hub_requests::WaitingClient, read_params};
use castor_wire::jsonrpc::{
    message::{self, InvalidMessage, Message, RequestId, RpcError},
    write,
};

/// One request of a client.
pub struct HostCall<'a> {
    pub from: u64,
    pub id: RequestId,
    pub params: &'a Value,
}

impl HostCall<'_> {
    pub fn asker(&self) -> WaitingClient {
        WaitingClient { from: self.from, id: self.id.clone() }
    }

    /// All params, in the protocol's own type.
    ///
    /// # Errors
    /// They have another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, ClientRefusal> {
        T::deserialize(self.params).map_err(|it| ClientRefusal::params(&it.to_string()))
    }

    /// A member that has to be there.
    ///
    /// # Errors
    /// It is not, or is no text.
    pub fn text(&self, name: &str) -> Result<String, ClientRefusal> {
        let text = self.params.get(name).and_then(Value::as_str).filter(|it| !it.is_empty());
        text.map(str::to_owned).ok_or_else(|| ClientRefusal::params(&format!("{name} is missing")))
    }
}

/// Why a request is not done.
#[derive(Debug, PartialEq)]
pub struct ClientRefusal {
    code: i32,
    message: String,
    data: Option<Value>,
}

impl ClientRefusal {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn params(why: &str) -> Self {
        Self::new(rpc::INVALID_PARAMS, why)
    }

    pub fn no_channel(uri: &str) -> Self {
        let uri = castor_base::text::head(uri, 200);
        Self::new(codes::SESSION_NOT_FOUND, format!("there is no channel {uri}; listSessions names the sessions"))
    }

    pub fn version() -> Self {
        let supported_versions = version::SUPPORTED_PROTOCOL_VERSIONS.iter().map(|it| (*it).to_owned()).collect();
        let data = json!(UnsupportedProtocolVersionErrorData { supported_versions });
        let message = "castor speaks none of these versions of AHP".to_owned();
        Self { code: codes::UNSUPPORTED_PROTOCOL_VERSION, message, data: Some(data) }
    }

    /// The agent's own words.
    pub fn of_agent(it: &RpcError) -> Self {
        let kind = it.data.as_ref().and_then(|it| it.get("kind")).and_then(Value::as_str);
        let code = match kind {
            Some("not_found") => codes::SESSION_NOT_FOUND,
            Some("params" | "untrusted") => rpc::INVALID_PARAMS,
            Some("busy") => codes::TURN_IN_PROGRESS,
            Some("locked") => codes::CONFLICT,
            _ => rpc::INTERNAL_ERROR,
        };
        Self::new(code, it.message.clone())
    }
}

/// It is answered, now or later; or why it is refused.
pub type RequestOutcome = Result<(), ClientRefusal>;

type Route = fn(&mut AhpHost, HostCall<'_>) -> RequestOutcome;

/// Each answers by itself, or returns why it does not.
const ROUTES: &[(&str, Route)] = &[
    ("initialize", AhpHost::initialize),
    ("reconnect", AhpHost::reconnect),
    ("ping", |host, call| {
        host.answer(&call.asker(), &Value::Null);
        Ok(())
    }),
    ("subscribe", AhpHost::subscribe),
    ("listSessions", AhpHost::list_sessions),
    ("createSession", AhpHost::create_session),
    ("disposeSession", AhpHost::dispose_session),
    ("resolveSessionConfig", AhpHost::resolve_config),
    ("sessionConfigCompletions", AhpHost::complete_config),
    ("completions", AhpHost::complete_message),
    ("fetchTurns", AhpHost::fetch_turns),
    ("resourceRead", AhpHost::read_resource),
    ("resourceList", AhpHost::list_resource),
    ("resourceResolve", AhpHost::resolve_resource),
    ("resourceWrite", AhpHost::write_resource),
    ("resourceMkdir", AhpHost::make_resource_folder),
    ("resourceDelete", AhpHost::delete_resource),
    ("resourceMove", AhpHost::move_resource),
    ("resourceCopy", AhpHost::copy_resource),
    ("resourceRequest", AhpHost::request_resource),
    ("createResourceWatch", AhpHost::create_watch),
    ("createTerminal", AhpHost::create_terminal),
    ("disposeTerminal", AhpHost::dispose_terminal),
    ("invokeChangesetOperation", AhpHost::invoke_operation),
];

/// What a client may send before it has introduced itself.
const FIRST: &[&str] = &["initialize", "reconnect", "ping"];

impl AhpHost {
    pub(super) fn take_message(&mut self, from: u64, text: &[u8]) {
        match message::parse(text) {
            Ok(Message::Request { id, method, params }) => {
                let params = read_params(params.as_deref());
                self.take_request(&method, HostCall { from, id, params: &params });
            }
            Ok(Message::Notification { method, params }) => self.take_client_notice(from, &method, params.as_deref()),
            // The host asks its clients nothing.
            Ok(Message::Response { .. }) | Err(InvalidMessage::Ignore(_)) => (),
            Err(InvalidMessage::Answer { id, error }) => self.send_with(from, |out| write::error(out, &id, &error)),
        }
    }

    fn take_request(&mut self, method: &str, call: HostCall<'_>) {
        let Some(client) = self.clients.get_mut(&call.from) else { return };
        let is_known = client.id.is_some();
        client.n_open += 1;
        let n_open = client.n_open;
        let asker = call.asker();
        let refused = match ROUTES.iter().find(|it| it.0 == method) {
            None => Err(ClientRefusal::new(rpc::METHOD_NOT_FOUND, format!("castor has no {method}"))),
            Some(_) if !is_known && !FIRST.contains(&method) => {
                Err(ClientRefusal::new(rpc::INVALID_REQUEST, "initialize or reconnect comes first"))
            }
            Some(_) if is_known && ["initialize", "reconnect"].contains(&method) => {
                Err(ClientRefusal::new(rpc::INVALID_REQUEST, "this connection was initialized"))
            }
            Some(_) if n_open > self.settings.max_requests => {
                let why =
                    format!("{} requests of this connection have no answer yet; wait for some of them", n_open - 1);
                Err(ClientRefusal::new(rpc::INVALID_REQUEST, why))
            }
            Some((_, route)) => {
                if let (Some(uri), Some(client)) = (call.params["channel"].as_str(), self.clients.get_mut(&call.from)) {
                    client.uri_style.note(uri);
                }
                route(self, call)
            }
        };
        if let Err(it) = refused {
            self.refuse(&asker, &it);
        }
    }

    fn take_client_notice(&mut self, from: u64, method: &str, params: Option<&RawValue>) {
        let is_known = self.clients.get(&from).is_some_and(|it| it.id.is_some());
        match (method, params) {
            ("unsubscribe", _) => {
                let params = read_params(params);
                self.unsubscribe(from, params.get("channel").and_then(Value::as_str).unwrap_or_default());
            }
            ("dispatchAction", Some(params)) if is_known => {
                // One that cannot be read has no number to be rejected by.
                if let Ok(it) = serde_json::from_str::<DispatchActionParams>(params.get()) {
                    self.take_action(from, it);
                }
            }
            // As the protocol says of what is not known.
            _ => (),
        }
    }

    pub(super) fn answer(&mut self, asker: &WaitingClient, result: &impl Serialize) {
        if let Some(it) = self.clients.get_mut(&asker.from) {
            it.n_open = it.n_open.saturating_sub(1);
        }
        self.send_with(asker.from, |out| write::result(out, &asker.id, result));
    }

    pub(super) fn refuse(&mut self, asker: &WaitingClient, why: &ClientRefusal) {
        if let Some(it) = self.clients.get_mut(&asker.from) {
            it.n_open = it.n_open.saturating_sub(1);
        }
        let error = ErrorObjectOwned::owned(why.code, why.message.clone(), why.data.clone());
        self.send_with(asker.from, |out| write::error(out, &asker.id, &error));
    }
}
