//! `_castor/session/rewind`: a session goes back to before a message, its files, its conversation or both.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::RawValue;

use crate::{
    app::{
        errors::store_error,
        flush,
        reply::{Reply, done},
        requests,
        state::{Asker, State},
    },
    base::{
        ids::{MessageId, SessionId},
        rewind, text,
    },
    engine::step::Input,
    wire::{
        acp::{
            rewind::{Order, Outcome, REWOUND, Rewound, Target, What, read},
            updates::notification,
        },
        jsonrpc::{error, queue::Ticket},
    },
};

pub fn rewind(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let order = read(params).map_err(|it| error::invalid_params(&it))?;
    requests::known(state, &order.session)?;
    check_idle(state, &order.session)?;
    match (order.what, &order.target) {
        (What::Conversation, Target::Message(to)) => {
            requests::asks(state, ticket, Asker::Setter(order.session.clone()));
            conversation(state, &order.session, to)?;
            done(&Outcome::default())
        }
        _ => files(&order),
    }
}

/// A turn that runs would go on with what is gone.
fn check_idle(state: &State, id: &SessionId) -> Result<(), ErrorObjectOwned> {
    match state.sessions.get(id).is_some_and(|it| it.session.is_busy()) {
        true => Err(error::busy("the session is busy with a prompt", "Cancel it first, or wait for its end.")),
        false => Ok(()),
    }
}

/// Whatever restores files.
fn files(order: &Order) -> Reply {
    let what = if order.what == What::Conversation { "checkpointId" } else { "what" };
    Err(error::invalid_params(&format!(
        "{what}: checkpoints are not there yet; send messageId and what \"conversation\""
    )))
}

/// The session goes back to before a message of the user, which is logged before the request is answered.
///
/// # Errors
/// For the client: a message that is not there, a log that cannot be read.
pub fn conversation(state: &mut State, id: &SessionId, to: &MessageId) -> Result<(), ErrorObjectOwned> {
    // What it was told in the same breath belongs to it.
    let lines = flush::flush(state);
    state.say_lines(|it| it.extend_from_slice(&lines));
    let log = state.world.store.read(id).map_err(|it| store_error(id, &it))?;
    if rewind::find(&log, to).is_none() {
        let to = text::head(to.as_str(), 200);
        let why = format!("messageId: the user sent no message {to:?} in this session, or it is gone already");
        return Err(error::invalid_params(&format!("{why}; session/load shows those there are")));
    }
    state.step(id, Input::Rewind { to: to.clone(), log: log.into() });
    Ok(())
}

/// Appends what the client is told of it: what is gone, and how full the context is now.
pub fn tell(state: &mut State, id: &SessionId, to: &MessageId, lines: &mut Vec<u8>) {
    if state.client.as_ref().is_some_and(|it| it.sees.rewinds) {
        notification(REWOUND, &Rewound { session_id: id.clone(), message_id: to.clone() }, lines);
    }
    let Some(live) = state.sessions.get_mut(id) else { return };
    live.view.title(live.session.record().title.as_deref(), lines);
    let (last, cost) = live.filled();
    live.view.filled_as(last, cost, lines);
}
