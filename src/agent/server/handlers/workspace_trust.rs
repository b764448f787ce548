//! Handler of the draft method `trust/apply`, and the trust state in answers that open a session.

use jsonrpsee::types::ErrorObjectOwned;
use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use crate::server::{
    open_session::check_open,
    reply::{Reply, reply_now},
    state::State,
    trust::{self, TrustExtent},
};
use crate::session::place::load_ground;
use castor_base::{ids::SessionId, path::AbsPath, trust::TrustChoice};
use castor_hands::disk;
use castor_tools::workspace::folder_config::{self, FolderConfig};
use castor_wire::{
    acp::drafts::workspace_trust::{Applied, ApplyParams, TrustDecision, TrustState, TrustStatus, read_apply},
    jsonrpc::{error, open_requests::Ticket},
};

/// The answer that opens a session; with the trust in its folder, if the client shows that by itself.
pub fn reply_opened<T: Serialize>(state: &State, id: &SessionId, response: &T) -> Reply {
    let shows = state.client.as_ref().is_some_and(|it| it.features.drafts.workspace_trust);
    let Some(live) = state.sessions.get(id).filter(|_| shows) else { return reply_now(response) };
    let found = match &live.pending_trust {
        Some(it) => trust_state(&it.ground, true),
        None => trust_state(&load_ground(&state.options, &state.env, &live.resources.cwd).0, true),
    };
    let mut response = json!(response);
    if let Value::Object(fields) = &mut response {
        fields.insert("workspaceTrust".to_owned(), json!(found));
    }
    reply_now(&response)
}

fn trust_state(ground: &FolderConfig, has_session: bool) -> TrustState {
    let status = if ground.trust.is_trusted() { TrustStatus::Trusted } else { TrustStatus::Untrusted };
    let res = TrustState::new(status);
    match ground.doubt {
        None => res,
        Some(_) => {
            let ignored = ground.project.file_states().filter(|(_, counts)| !counts);
            let ignored = ignored.map(|(name, _)| ground.folder.join(name)).collect();
            res.with_details(ground.folder.clone(), ignored, has_session)
        }
    }
}

/// `trust/apply`: the user's word, which the client took. It is checked against what is open to decide.
pub fn apply(state: &mut State, _: Ticket, params: Option<&RawValue>) -> Reply {
    let (ApplyParams { decision, session_id, .. }, cwd) =
        read_apply(params).map_err(|it| error::invalid_params(&it))?;
    let (choice, extent, status) = match decision {
        TrustDecision::TrustCwd => (TrustChoice::Folder, TrustExtent::Saved, TrustStatus::Trusted),
        TrustDecision::TrustSession => (TrustChoice::Folder, TrustExtent::Session, TrustStatus::Session),
        TrustDecision::Decline => (TrustChoice::Never, TrustExtent::Saved, TrustStatus::Untrusted),
        TrustDecision::TrustRepo => return Err(unavailable("castor offers no trust in a whole repository")),
    };
    match session_id {
        Some(id) => apply_to_session(state, &id, &cwd, (choice, extent))?,
        None if extent == TrustExtent::Session => return Err(unavailable("trust_session needs a sessionId")),
        None => save(state, &cwd, choice)?,
    }
    reply_now(&Applied { workspace_trust: TrustState::new(status) })
}

fn apply_to_session(
    state: &mut State,
    id: &SessionId,
    cwd: &AbsPath,
    (choice, extent): (TrustChoice, TrustExtent),
) -> Result<(), ErrorObjectOwned> {
    check_open(&state.sessions, id)?;
    let real = disk::real_path(cwd).ok();
    let pending = state.sessions.get_mut(id).map(|it| &mut it.pending_trust);
    let pending = pending.and_then(|it| it.take_if(|it| real.as_ref() == Some(&it.ground.folder)));
    let Some(pending) = pending else { return Err(nothing_open(cwd)) };
    trust::apply_choice(state, id, *pending, (choice, extent)).map_err(|it| error::failed("config", &it))
}

/// Without a session: for those that begin later.
fn save(state: &State, cwd: &AbsPath, choice: TrustChoice) -> Result<(), ErrorObjectOwned> {
    let (ground, _) = load_ground(&state.options, &state.env, cwd);
    if ground.doubt.is_none() {
        return Err(nothing_open(cwd));
    }
    let saved = folder_config::save_decision(state.tasks.store.home(), &ground, choice);
    let warnings = saved.map_err(|it| error::failed("config", &it.to_string()))?;
    warnings.iter().for_each(|it| tracing::warn!("{it}"));
    Ok(())
}

fn nothing_open(cwd: &AbsPath) -> ErrorObjectOwned {
    unavailable(&format!("nothing is to be decided about {cwd}"))
}

fn unavailable(why: &str) -> ErrorObjectOwned {
    error::invalid_params(&format!("{why}; send one of the availableDecisions of a session's workspaceTrust"))
}
