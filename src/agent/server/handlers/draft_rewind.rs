//! Handlers of the draft methods `session/rewind` and `session/edit_prompt`: of the conversation alone, files stay.

use jsonrpsee::types::ErrorObjectOwned;
use serde_json::value::RawValue;

use crate::errors::store_error;
use crate::server::{
    flush,
    handlers::rewind::rewind_conversation,
    live::{children, session_state},
    open_session::{check_message, check_open, set_owner},
    pending_requests::RequestOwner,
    reply::{Reply, reply_now},
    state::State,
};
use castor_base::{
    event::{EventKind, Speaker},
    ids::{MessageId, PromptId, SessionId},
    log::{Entry, Fact},
    rewind::{remaining_entries, user_message},
    text,
};
use castor_engine::step::Input;
use castor_wire::{
    acp::drafts::draft_rewind::{EditedPrompt, Rewound, read_edit, read_rewind},
    jsonrpc::{error, open_requests::Ticket},
};

/// The message stays, all after it is gone. A turn that runs is cancelled.
pub fn rewind(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let order = read_rewind(params).map_err(|it| error::invalid_params(&it))?;
    let id = order.session_id;
    check_open(&state.sessions, &id)?;
    end_turn(state, &id)?;
    let log = state.tasks.store.read(&id).map_err(|it| store_error(&id, &it))?;
    let point = find_point(&log, &order.to_message_id).map_err(|it| error::invalid_params(&it))?;
    if let Some(next) = point.next_prompt {
        set_owner(&mut state.requests, ticket, RequestOwner::Setter(id.clone()));
        rewind_conversation(state, &id, &next)?;
    }
    reply_now(&Rewound { remaining_message_count: point.n_remaining, last_message_id: order.to_message_id })
}

/// Another prompt in the place of an earlier one: the rewind, then a turn.
pub fn edit_prompt(state: &mut State, ticket: Ticket, params: Option<&RawValue>) -> Reply {
    let EditedPrompt { session: id, message, content } = read_edit(params).map_err(|it| error::invalid_params(&it))?;
    check_message(&state.sessions, &id, &content)?;
    end_turn(state, &id)?;
    rewind_conversation(state, &id, &message)?;
    set_owner(&mut state.requests, ticket, RequestOwner::Prompt(id.clone()));
    session_state::refresh(state, &id);
    state.step(&id, Input::Prompt { prompt: PromptId(ticket.0), content });
    Ok(None)
}

/// As the draft has it: what runs is cancelled first.
fn end_turn(state: &mut State, id: &SessionId) -> Result<(), ErrorObjectOwned> {
    // What it was told in the same breath belongs to it.
    flush::flush_early(state, id);
    let is_busy = |state: &State| state.sessions.get(id).is_some_and(|it| it.session.is_busy());
    if is_busy(state) {
        state.step(id, Input::Cancel);
        flush::flush_early(state, id);
        children::cancel_all(state, id);
        flush::flush_early(state, id);
    }
    match is_busy(state) {
        true => Err(error::busy("the session's turn has not ended yet", "Send it again when it is answered.")),
        false => Ok(()),
    }
}

/// What a rewind to a message leaves.
struct RewindPoint {
    n_remaining: usize,
    /// The prompt after it; `None`: the message is the last.
    next_prompt: Option<MessageId>,
}

/// # Errors
/// The message is not there, or its turn goes on after it.
fn find_point(log: &[Entry], to: &MessageId) -> Result<RewindPoint, String> {
    let mut n_remaining = 0;
    // The message, and then the last of its turn.
    let mut last: Option<&MessageId> = None;
    for entry in remaining_entries(log) {
        let Some(id) = message(entry) else { continue };
        if last.is_some() && user_message(entry).is_some() && !is_steering(entry) {
            return finish(n_remaining, last, to, Some(id));
        }
        n_remaining += 1;
        if last.is_some() || id == to {
            last = Some(id);
        }
    }
    finish(n_remaining, last, to, None)
}

fn finish(
    n_remaining: usize,
    last: Option<&MessageId>,
    to: &MessageId,
    next: Option<&MessageId>,
) -> Result<RewindPoint, String> {
    match last {
        Some(it) if it == to => Ok(RewindPoint { n_remaining, next_prompt: next.cloned() }),
        Some(it) => Err(format!(
            "toMessageId: the turn continues after this message; send {it:?}, which is the last of it",
            it = it.as_str()
        )),
        None => {
            let to = text::head(to.as_str(), 200);
            Err(format!("toMessageId: the session has no message {to:?}; session/load shows those there are"))
        }
    }
}

/// A message that clients are shown.
fn message(entry: &Entry) -> Option<&MessageId> {
    let Fact::Event { event } = &entry.fact else { return None };
    match &event.kind {
        EventKind::Message { role: Speaker::User | Speaker::Agent, message_id, .. } => Some(message_id),
        _ => None,
    }
}

/// Words for a turn that ran.
fn is_steering(entry: &Entry) -> bool {
    matches!(&entry.fact, Fact::Event { event } if event.meta.contains_key(castor_engine::record::STEERING_META))
}
