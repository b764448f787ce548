//! ACP `providers/list`, `providers/set` and `providers/disable`, which are unstable.

use agent_client_protocol_schema::v1::{
    DisableProviderRequest, ListProvidersRequest, ListProvidersResponse, LlmProtocol, ProviderCurrentConfig,
    ProviderInfo, SetProviderRequest,
};
use serde_json::value::RawValue;

/// The APIs that a client may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderApi {
    Anthropic,
    OpenAi,
}

/// A provider, without its secrets.
pub struct ListedProvider {
    pub name: String,
    /// Where its requests go; `None`: it is off.
    pub current: Option<(ProviderApi, String)>,
}

/// Where requests of a provider are to go.
pub struct SetParams {
    pub provider: String,
    pub api: ProviderApi,
    pub base_url: String,
    /// Values may be secrets.
    pub headers: Vec<(String, String)>,
}

impl ProviderApi {
    fn wire(self) -> LlmProtocol {
        match self {
            Self::Anthropic => LlmProtocol::Anthropic,
            Self::OpenAi => LlmProtocol::OpenAi,
        }
    }
}

/// Reads providers/list.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_list(params: Option<&RawValue>) -> Result<(), String> {
    params.map_or(Ok(()), |it| crate::acp::params::<ListProvidersRequest>(Some(it)).map(|_| ()))
}

pub fn list_response(providers: Vec<ListedProvider>) -> ListProvidersResponse {
    let info = |it: ListedProvider| {
        let supported = vec![LlmProtocol::Anthropic, LlmProtocol::OpenAi];
        let current = it.current.map(|(api, url)| ProviderCurrentConfig::new(api.wire(), url));
        ProviderInfo::new(it.name, supported, false, current)
    };
    ListProvidersResponse::new(providers.into_iter().map(info).collect())
}

/// Reads providers/set.
///
/// # Errors
/// See [`crate::acp::params`]; also for an API that castor does not speak.
pub fn read_set(params: Option<&RawValue>) -> Result<SetParams, String> {
    let it: SetProviderRequest = crate::acp::params(params)?;
    let api = match it.api_type {
        LlmProtocol::Anthropic => ProviderApi::Anthropic,
        LlmProtocol::OpenAi => ProviderApi::OpenAi,
        _ => return Err("apiType: send \"anthropic\" or \"openai\"".to_owned()),
    };
    let headers = it.headers.into_iter().collect();
    Ok(SetParams { provider: it.provider_id.to_string(), api, base_url: it.base_url, headers })
}

/// Reads providers/disable.
///
/// # Errors
/// See [`crate::acp::params`].
pub fn read_disable(params: Option<&RawValue>) -> Result<String, String> {
    let it: DisableProviderRequest = crate::acp::params(params)?;
    Ok(it.provider_id.to_string())
}
