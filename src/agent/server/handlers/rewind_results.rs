//! Results of a rewind: the log for the session, the answer to the request, and the notice for the client.

use crate::{
    server::{reply, state::State},
    session::live_session::LiveSession,
};
use castor_base::{
    checkpoint::RestoreResult,
    ids::{MessageId, SessionId},
};
use castor_engine::step::{self, Input, RewindRefusal};
use castor_wire::{
    acp::{
        initialize::Client,
        own::rewind::{Outcome, REWOUND, RewoundNotice},
        updates::notification,
    },
    jsonrpc::{error, open_requests::Ticket},
};

/// The log, for the session that goes back. All that it was told is written by now.
pub fn replay_log(state: &mut State, id: &SessionId, to: MessageId) {
    let log = state.tasks.store.read(id).unwrap_or_default();
    state.step(id, Input::RewindConversation { to, log: log.into() });
}

/// What it came to.
pub fn answer_rewind(state: &mut State, ticket: Ticket, result: Result<step::RewindResult, RewindRefusal>) {
    let outcome = match result {
        Ok(step::RewindResult { files, checkpoint }) => {
            let RestoreResult { restored, removed, conflicts, not_kept } = files;
            Ok(Outcome { restored, removed, conflicts, not_kept, checkpoint_id: checkpoint })
        }
        Err(RewindRefusal::Busy(why)) => Err(error::busy(&why, "Cancel it first, or wait for its end.")),
        Err(RewindRefusal::Unknown(why)) => {
            Err(error::invalid_params(&format!("{why}; _castor/session/checkpoints lists what there is")))
        }
        Err(RewindRefusal::Failed(why)) => Err(error::failed("restore", &why)),
    };
    reply::answer(state, ticket, outcome.as_ref().map_err(Clone::clone));
}

/// Appends what the client is told of it: what is gone, and how full the context is now.
pub fn append_notice(client: Option<&Client>, live: &mut LiveSession, to: &MessageId, lines: &mut Vec<u8>) {
    if client.is_some_and(|it| it.features.rewinds) {
        let session_id = live.resources.session.clone();
        notification(REWOUND, &RewoundNotice { session_id, message_id: to.clone() }, lines);
    }
    live.view.push_title(live.session.record().title.as_deref(), lines);
    let (last, cost) = live.context_usage();
    live.view.show_context_usage(last, cost, lines);
}
