//! Handlers of `providers/list`, `providers/set` and `providers/disable`: routing of the process, which is not saved.

use serde_json::{json, value::RawValue};

use crate::server::{
    handlers::auth_status,
    live::reconnect,
    reply::{Reply, reply_now},
    state::State,
};
use crate::{
    model::endpoint_checks::{check_url, is_header},
    session::place::load_ground,
    settings::{Provider, options::Options, provider_routing::ProviderRoute},
};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;
use castor_models::providers::ApiFamily;
use castor_wire::{
    acp::drafts::providers::{
        ListedProvider, ProviderApi, SetParams, list_response, read_disable, read_list, read_set,
    },
    jsonrpc::{error, open_requests::Ticket},
};

/// All but Gemini, whose endpoint `authenticate` sets.
pub fn list(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    read_list(params).map_err(|it| error::invalid_params(&it))?;
    let now = providers_of(&state.options, &state.env, state.tasks.store.home());
    let off = own_providers(state).into_iter().filter(|it| state.options.routing.is_off(&it.name));
    let off = off.map(|it| ListedProvider { name: it.name, current: None });
    let listed = |it: Provider| {
        let api = match it.dialect.family() {
            ApiFamily::Anthropic => ProviderApi::Anthropic,
            ApiFamily::OpenAi => ProviderApi::OpenAi,
        };
        ListedProvider { name: it.name, current: Some((api, it.base_url)) }
    };
    reply_now(&list_response(now.into_iter().map(listed).chain(off).collect()))
}

pub fn set(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let SetParams { provider, api, base_url, headers } = read_set(params).map_err(|it| error::invalid_params(&it))?;
    let known: Vec<String> = own_providers(state).into_iter().map(|it| it.name).collect();
    if !known.contains(&provider) {
        let why = format!("providerId: there is no provider {provider:?}; known are {}", known.join(", "));
        return Err(error::invalid_params(&why));
    }
    let base_url = check_url(&base_url).map_err(|it| error::invalid_params(&format!("baseUrl: {it}")))?;
    if let Some((name, _)) = headers.iter().find(|(name, value)| !is_header(name, value)) {
        return Err(error::invalid_params(&format!("headers: {name:?} or its value cannot be sent")));
    }
    let speaks = match api {
        ProviderApi::Anthropic => ApiFamily::Anthropic,
        ProviderApi::OpenAi => ApiFamily::OpenAi,
    };
    state.options.routing.set(provider, Some(ProviderRoute { speaks, base_url, headers }));
    apply(state)
}

/// One that is not there is off already.
pub fn disable(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let provider = read_disable(params).map_err(|it| error::invalid_params(&it))?;
    if own_providers(state).iter().any(|it| it.name == provider) {
        state.options.routing.set(provider, None);
    }
    apply(state)
}

/// Sessions that are open go on with it, too.
fn apply(state: &mut State) -> Reply {
    reconnect::reconnect_models(state);
    auth_status::tell_change(state);
    reply_now(&json!({}))
}

/// As the settings have them.
fn own_providers(state: &State) -> Vec<Provider> {
    let options = Options { routing: Default::default(), ..state.options.clone() };
    providers_of(&options, &state.env, state.tasks.store.home())
}

fn providers_of(options: &Options, env: &Env, home: &AbsPath) -> Vec<Provider> {
    let cwd = AbsPath::new("/").unwrap_or_else(|| home.clone());
    load_ground(options, env, &cwd).1.models.providers
}
