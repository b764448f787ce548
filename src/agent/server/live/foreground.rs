//! Foreground work of sessions for clients of version 2: they learn of prompts and turns by updates, not by answers.

use jsonrpsee::types::ErrorObjectOwned;

use crate::server::{live::reconnect, outbox::Outbox, state::State};
use crate::session::live_session::{ForegroundTurn, LiveSession};
use castor_base::{
    event::{EventKind, PromptOutcome, Speaker, StopKind},
    ids::{MessageId, PromptId, SessionId},
    log::Fact,
    model::Usage,
};
use castor_wire::{
    acp::{
        initialize::{AcpVersion, Client},
        meta::PromptAnswerMeta,
        session::steering_response,
        v2::{errors, session::prompt_response, states},
    },
    jsonrpc::{error, message::RequestId, open_requests::Ticket, write},
};

/// The version that the client speaks; the first before it says so.
pub fn version(client: Option<&Client>) -> AcpVersion {
    client.map(|it| it.features.version).unwrap_or_default()
}

/// A prompt begins a turn. Another agent may go on with it, in the same turn.
pub fn begin(live: &mut LiveSession, prompt: PromptId, lines: &mut Vec<u8>) {
    let id = &live.resources.session;
    let is_known = live.extras.turn.as_ref().is_some_and(|it| it.prompt == prompt);
    if live.profile.features.version == AcpVersion::V2 && !id.is_child() && !is_known {
        live.extras.turn = Some(ForegroundTurn { prompt, is_inserted: false, waits: false });
        states::push(id, states::running(), lines);
    }
}

/// The first message of the user in a turn is its prompt: the request is answered with its id.
pub fn note_message(state: &mut State, id: &SessionId, fact: &Fact, lines: &mut Vec<u8>) {
    let Some(message) = user_message(fact) else { return };
    let turn = state.sessions.get_mut(id).and_then(|it| it.extras.turn.as_mut());
    let Some(turn) = turn.filter(|it| !it.is_inserted) else { return };
    turn.is_inserted = true;
    let ticket = Ticket(turn.prompt.0);
    state.tasks.traces.end_request(ticket, None);
    // Words for a turn that was not there have their answer already.
    if let Some((request, _)) = state.requests.complete(ticket) {
        write::result(lines, &request, &prompt_response(message));
    }
}

fn user_message(fact: &Fact) -> Option<&MessageId> {
    let Fact::Event { event } = fact else { return None };
    match &event.kind {
        EventKind::Message { role: Speaker::User, message_id, .. } => Some(message_id),
        _ => None,
    }
}

/// The user has a question of the session or of one below it, or has none any more.
pub fn note_waiting(live: &mut LiveSession, waits: bool, lines: &mut Vec<u8>) {
    // What is over, and whose end is still to be said, does not go back to work.
    let is_over = !waits && !live.session.is_busy();
    let Some(turn) = live.extras.turn.as_mut().filter(|_| !is_over) else { return };
    if std::mem::replace(&mut turn.waits, waits) != waits {
        let state = if waits { states::requires_action() } else { states::running() };
        states::push(&live.resources.session, state, lines);
    }
}

/// How a prompt ended.
pub struct PromptEnd<'a> {
    pub outcome: PromptOutcome,
    pub usage: Option<Usage>,
    pub meta: Option<&'a PromptAnswerMeta>,
    pub error: Option<ErrorObjectOwned>,
}

/// The session is idle, if the turn was this prompt's. A prompt that never was part of the conversation is refused.
pub fn end(state: &mut State, id: &SessionId, ticket: Ticket, end: PromptEnd<'_>, lines: &mut Vec<u8>) {
    let PromptEnd { outcome, usage, meta, error } = end;
    let error = error.map(errors::error);
    if let Some((request, _)) = state.requests.complete(ticket) {
        answer(&request, &outcome, error.as_ref(), lines);
    }
    let reason = match (&outcome, &error) {
        (PromptOutcome::Steered(_), _) => return,
        (_, Some(error)) => errors::failure(error),
        (PromptOutcome::Stop(stop), None) => states::stop_reason(*stop),
        (_, None) => states::stop_reason(StopKind::EndTurn),
    };
    let live = state.sessions.get_mut(id);
    let turn = live.and_then(|it| it.extras.turn.take_if(|it| it.prompt == PromptId(ticket.0)));
    if turn.is_some() {
        states::push(id, states::ended(reason, usage, meta), lines);
    }
    // The user may log in elsewhere before the next prompt.
    if matches!(outcome, PromptOutcome::AuthRequired(_)) {
        reconnect::reconnect_model(state, id);
    }
}

/// Whoever still waits for the answer to a prompt learns that it is no message of the conversation.
fn answer(request: &RequestId, outcome: &PromptOutcome, error: Option<&ErrorObjectOwned>, lines: &mut Vec<u8>) {
    match (outcome, error) {
        (PromptOutcome::Steered(steered), _) => write::result(lines, request, &steering_response(steered)),
        (_, Some(error)) => write::error(lines, request, error),
        (PromptOutcome::Stop(StopKind::Cancelled), None) => write::error(lines, request, &error::cancelled()),
        (_, None) => {
            let why =
                error::invalid_request("the prompt was not taken", "Read what castor says of it, and send another.");
            write::error(lines, request, &why);
        }
    }
}

/// The turn broke off in a way that the engine says nothing of.
pub fn fail(live: &mut LiveSession, error: &ErrorObjectOwned, outbox: &mut Outbox) {
    if live.extras.turn.take().is_some() {
        let ended = states::ended(errors::failure(error), None, None);
        outbox.queue_lines(Some(&live.resources.session), |lines| states::push(&live.resources.session, ended, lines));
    }
}
