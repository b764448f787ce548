//! Handlers of `authenticate` and `logout`.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::{json, value::RawValue};

use crate::{
    errors::auth_required,
    model::access::{self, AccessKind, CredentialOverride},
    server::{
        handlers::auth_status,
        live::reconnect,
        reply::{Reply, reply_now},
        state::State,
    },
    session::place::load_ground,
};
use castor_base::path::AbsPath;
use castor_hands::secrets::{Env, credentials};
use castor_wire::{
    acp::initialize::{self, LoginCommand},
    jsonrpc::{error, open_requests::Ticket},
};

/// Takes what the client brings, if sessions can begin with it; what is stored is read again, for a login in a terminal
/// may have come before.
pub fn authenticate(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let asked = initialize::read_authenticate(params).map_err(|it| error::invalid_params(&it))?;
    let method = match asked.method {
        initialize::GATEWAY => AccessKind::Gateway,
        initialize::VERTEX => AccessKind::Vertex,
        _ => AccessKind::ApiKey,
    };
    let given =
        state.models.credentials.merged_with(method, asked.meta.as_ref()).map_err(|it| error::invalid_params(&it))?;
    check_access(state, &given)?;
    state.models.credentials = given;
    reconnect::reconnect_models(state);
    auth_status::tell_change(state);
    reply_now(&json!({}))
}

/// Forgets every credential but the environment's, which is not ours to forget. Model calls that are under way end as
/// they would; the next one of a session that has no access any more fails with -32000.
pub fn logout(state: &mut State, _: Ticket, _: Option<&RawValue>) -> Reply {
    state.models.forget_credentials();
    let forgotten = credentials::forget(state.tasks.store.home());
    reconnect::reconnect_models(state);
    auth_status::tell_change(state);
    let failed = |it| format!("the stored key could not be removed: {it}");
    forgotten.map_err(|it| error::internal(&failed(it), "Remove it yourself, or try again."))?;
    reply_now(&json!({}))
}

/// What a client starts in a terminal has its own environment: it must find the same home.
pub fn login_command(env: &Env) -> LoginCommand {
    let command = std::env::current_exe().map_or("castor".to_owned(), |it| it.display().to_string());
    LoginCommand { command, home: env.get("CASTOR_HOME").map(str::to_owned) }
}

/// Whether sessions would begin with what the client brought.
///
/// # Errors
/// -32000 with what is missing.
fn check_access(state: &State, given: &CredentialOverride) -> Result<(), ErrorObjectOwned> {
    let cwd = AbsPath::new("/").unwrap_or_else(|| state.tasks.store.home().clone());
    let (ground, settings) = load_ground(&state.options, &state.env, &cwd);
    let wanted = given.method.unwrap_or(AccessKind::ApiKey);
    let access = access::model_access(&ground.env, &settings, given);
    let access = access.map_err(|it| auth_required(&it.to_string()))?;
    if access.kind == wanted || state.options.needs_no_access() { Ok(()) } else { Err(auth_required(wanted.missing())) }
}
