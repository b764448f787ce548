//! Handler of `auth/status`, and the notice of a change for clients that asked once.

use serde_json::value::RawValue;

use crate::server::{
    reply::{Reply, reply_now},
    state::State,
};
use crate::{
    model::{
        access::{self, AccessKind},
        chosen_model::model_of,
        providers,
    },
    session::place::load_ground,
};
use castor_base::path::AbsPath;
use castor_wire::{
    acp::drafts::auth_status::{self, Account, AuthStatus, SignIn},
    jsonrpc::{error, open_requests::Ticket},
};

/// Changes nothing, and reaches nothing outside of this machine.
pub fn status(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    auth_status::read_status(params).map_err(|it| error::invalid_params(&it))?;
    let found = find_status(state);
    let response = auth_status::response(&found);
    state.outbox.told_auth_status = Some(found);
    reply_now(&response)
}

/// Credentials changed, perhaps: a client that asked for the status once is told behind the answer.
pub fn tell_change(state: &mut State) {
    if state.outbox.told_auth_status.is_none() {
        return;
    }
    let found = find_status(state);
    if state.outbox.told_auth_status.as_ref() != Some(&found) {
        auth_status::push_update(&found, &mut state.outbox.after_answer);
        state.outbox.told_auth_status = Some(found);
    }
}

/// As for a session that would begin in a folder without settings of its own.
fn find_status(state: &State) -> AuthStatus {
    let none = |state| AuthStatus { state, accounts: Vec::new() };
    if state.options.needs_no_access() {
        return none(SignIn::NotRequired);
    }
    let cwd = AbsPath::new("/").unwrap_or_else(|| state.tasks.store.home().clone());
    let (ground, settings) = load_ground(&state.options, &state.env, &cwd);
    let model = model_of(&state.options, &settings);
    let provider = providers::provider_of(&settings, &model);
    let own = access::model_access(&ground.env, &settings, &state.models.credentials);
    let own = own.map_or(AccessKind::None, |it| it.kind);
    let label = match own {
        AccessKind::None => None,
        AccessKind::ApiKey => Some("Gemini API key"),
        AccessKind::Gateway => Some("AI API gateway"),
        AccessKind::Vertex => Some("Vertex AI"),
    };
    let mut accounts: Vec<Account> =
        label.map(|it| Account { label: it.to_owned(), is_active: provider.is_none() }).into_iter().collect();
    let is_chosen = |name: &str| provider.is_some_and(|it| it.name == name);
    let others = providers::keys(&ground.env, &settings).into_iter();
    accounts.extend(others.map(|(_, name)| Account { is_active: is_chosen(&name), label: name }));
    let state = match provider {
        Some(it) if it.key_env.is_none() => SignIn::NotRequired,
        _ if accounts.iter().any(|it| it.is_active) => SignIn::Done,
        _ => SignIn::Missing,
    };
    AuthStatus { state, accounts }
}
