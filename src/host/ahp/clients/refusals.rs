//! Refusals of clients' requests, with the codes of the protocol.

use ahp::ahp_types::{
    errors::{UnsupportedProtocolVersionErrorData, ahp_error_codes as codes, json_rpc_error_codes as rpc},
    version,
};
use jsonrpsee::types::ErrorObjectOwned;

use castor_wire::jsonrpc::message::RpcError;

/// Why a request is not done.
#[derive(Debug, PartialEq)]
pub struct ClientRefusal {
    code: i32,
    message: String,
    data: Option<UnsupportedProtocolVersionErrorData>,
}

/// The fate of a request: an answer comes, now or later; or the refusal.
pub type RequestOutcome = Result<(), ClientRefusal>;

impl ClientRefusal {
    pub fn new(code: i32, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    pub fn params(why: impl Into<String>) -> Self {
        Self::new(rpc::INVALID_PARAMS, why)
    }

    pub fn missing(name: &str) -> Self {
        Self::params(format!("{name} is missing"))
    }

    pub fn no_channel(uri: &str) -> Self {
        let uri = castor_base::text::head(uri, 200);
        Self::new(codes::SESSION_NOT_FOUND, format!("there is no channel {uri}; listSessions names the sessions"))
    }

    pub fn version() -> Self {
        let supported_versions = version::SUPPORTED_PROTOCOL_VERSIONS.iter().map(|it| (*it).to_owned()).collect();
        let message = "castor speaks none of these versions of AHP".to_owned();
        let data = Some(UnsupportedProtocolVersionErrorData { supported_versions });
        Self { code: codes::UNSUPPORTED_PROTOCOL_VERSION, message, data }
    }
}

/// The agent's own words.
impl From<RpcError> for ClientRefusal {
    fn from(it: RpcError) -> Self {
        let code = match it.kind() {
            Some("not_found") => codes::SESSION_NOT_FOUND,
            Some("params" | "untrusted") => rpc::INVALID_PARAMS,
            Some("busy") => codes::TURN_IN_PROGRESS,
            Some("locked") => codes::CONFLICT,
            _ => rpc::INTERNAL_ERROR,
        };
        Self::new(code, it.message)
    }
}

impl From<ClientRefusal> for ErrorObjectOwned {
    fn from(it: ClientRefusal) -> Self {
        Self::owned(it.code, it.message, it.data)
    }
}

/// The refusal of an action.
pub fn not_for_clients() -> String {
    "castor does not take this action from clients".to_owned()
}
