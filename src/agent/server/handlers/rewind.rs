//! Handler of `_castor/session/rewind`: takes a session back to before a message, in files, conversation or both.

use std::collections::BTreeMap;

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::RawValue;

use crate::server::{
    flush, open_session,
    pending_requests::RequestOwner,
    reply::{Reply, reply_now},
    state::State,
    tasks::looks,
};
use crate::{errors::store_error, session::live_session::LiveSession};
use castor_base::{
    checkpoint::{Changes, FileChange, Rewinds},
    ids::{MessageId, PromptId, SessionId},
    rewind, text,
};
use castor_engine::step::{Input, RewindOrder, RewindTarget};
use castor_wire::{
    acp::{
        own::rewind::{
            Checkpoint, Checkpoints, ListedFile, Outcome, RewindParams, TargetParams, read_rewind, read_session,
        },
        session::iso_time,
    },
    jsonrpc::{error, open_requests::Ticket},
};

pub fn rewind(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let order = read_rewind(params).map_err(|it| error::invalid_params(&it))?;
    open_session::check_open(&state.sessions, &order.session)?;
    check_idle(state.sessions.get(&order.session))?;
    match (order.what, &order.target) {
        (Rewinds::Conversation, TargetParams::Message(to)) => {
            open_session::set_owner(&mut state.requests, ticket, RequestOwner::Setter(order.session.clone()));
            rewind_conversation(state, &order.session, to)?;
            reply_now(&Outcome::default())
        }
        _ => {
            // Answered with the prompts, should the session be made anew.
            open_session::set_owner(&mut state.requests, ticket, RequestOwner::Prompt(order.session.clone()));
            let RewindParams { session, target, what, on_conflict, paths } = order;
            let to = match target {
                TargetParams::Message(it) => RewindTarget::Message(it),
                TargetParams::Checkpoint(it) => RewindTarget::Checkpoint(it),
                TargetParams::Redo => RewindTarget::Redo,
            };
            let wanted = RewindOrder { prompt: PromptId(ticket.0), to, what, on_conflict, paths };
            state.step(&session, Input::ClientRewind(Box::new(wanted)));
            Ok(None)
        }
    }
}

/// `_castor/session/checkpoints`: what can be gone back to.
pub fn checkpoints(sessions: &BTreeMap<SessionId, LiveSession>, params: Option<&RawValue>) -> Reply {
    let id = read_session(params).map_err(|it| error::invalid_params(&it))?;
    let Some(live) = sessions.get(&id) else { return Err(error::session_not_found(id.as_str())) };
    let all = live.session.record().checkpoints();
    // What cannot be known counts as unseen.
    let unseen = live.resources.files.provenance.unseen().ok();
    let mark = |change: FileChange| {
        let unseen = unseen.as_ref().is_none_or(|it| looks::is_marked(it, &change.path));
        ListedFile { change, unseen }
    };
    let listed = all.all().iter().filter(|it| !it.is_undone).map(|it| {
        let Changes { files, not_kept, .. } = it.changes.clone().unwrap_or_default();
        let message_id = all.prompt_of(it).map(|it| it.message.clone());
        let files = files.into_iter().map(mark).collect();
        Checkpoint { id: it.id.clone(), message_id, time: iso_time(it.at_ms), files, not_kept }
    });
    reply_now(&Checkpoints { checkpoints: listed.collect() })
}

/// A turn that runs would go on with what is gone.
fn check_idle(live: Option<&LiveSession>) -> Result<(), ErrorObjectOwned> {
    match live.is_some_and(|it| it.session.is_busy()) {
        true => Err(error::busy("the session is busy with a prompt", "Cancel it first, or wait for its end.")),
        false => Ok(()),
    }
}

/// The session goes back to before a message of the user, which is logged before the request is answered.
///
/// # Errors
/// For the client: a message that is not there, a log that cannot be read.
pub fn rewind_conversation(state: &mut State, id: &SessionId, to: &MessageId) -> Result<(), ErrorObjectOwned> {
    // What it was told in the same breath belongs to it.
    flush::flush_early(state, id);
    let log = state.tasks.read_log(id).map_err(|it| store_error(id, &it))?;
    if rewind::find_message(&log, to).is_none() {
        let to = text::head(to.as_str(), 200);
        let why = format!("messageId: the user sent no message {to:?} in this session, or it is gone already");
        return Err(error::invalid_params(&format!("{why}; session/load shows those there are")));
    }
    state.step(id, Input::RewindConversation { to: to.clone(), log: log.into() });
    Ok(())
}
