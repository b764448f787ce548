//! The answer to a prompt: its outcome, what it took, and what belongs to it for some clients.

use jsonrpsee::types::ErrorObjectOwned;

use super::state::State;
use crate::errors::auth_required;
use crate::server::{
    air::air_reports,
    handlers::quota,
    live::{
        foreground::{self, PromptEnd},
        reconnect,
    },
};
use castor_base::{
    event::{PromptOutcome, StopKind},
    ids::{PromptId, SessionId},
    model::Usage,
    prompt_stats::PromptStats,
};
use castor_wire::{
    acp::{initialize::AcpVersion, meta::PromptAnswerMeta, session},
    jsonrpc::{error, open_requests::Ticket, write},
};

/// What a prompt is answered with.
pub struct PromptAnswer {
    pub outcome: PromptOutcome,
    pub usage: Option<Usage>,
    pub stats: Option<Box<PromptStats>>,
}

/// The one answer to a prompt. Its log becomes durable soon after, without being waited for.
pub fn answer_prompt(state: &mut State, id: &SessionId, ticket: Ticket, answer: PromptAnswer, lines: &mut Vec<u8>) {
    let PromptAnswer { outcome, usage, stats } = answer;
    let wants_stats = state.client.as_ref().is_some_and(|it| it.features.stats);
    let detail = if let PromptOutcome::Stop(stop) = &outcome { session::stop_detail(*stop) } else { None };
    let stream = state.sessions.get_mut(id).and_then(|it| it.followers.end_prompt(PromptId(ticket.0)));
    let has_stream = stream.is_some();
    let is_returned = matches!(outcome, PromptOutcome::Stop(StopKind::CallsReturned));
    let live = state.sessions.get(id).filter(|_| is_returned);
    let pending = live.map(|it| it.session.record().pending_calls()).unwrap_or_default();
    let meta = PromptAnswerMeta::new(stats, wants_stats, detail, stream, pending);
    if let Some(log) = state.sessions.get(id).and_then(|it| it.log.sync_handle().ok()) {
        state.tasks.queue_sync(log);
    }
    quota::tell_change(state, id, lines);
    let now_ms = state.now.unix_ms;
    let failure = state.sessions.get_mut(id).and_then(|live| {
        air_reports::report_files(live, (PromptId(ticket.0), &outcome, usage.is_some()), lines);
        air_reports::failure_record(live, &outcome, now_ms)
    });
    let error = match &outcome {
        PromptOutcome::Stop(_) | PromptOutcome::Steered(_) | PromptOutcome::Agent(_) => None,
        PromptOutcome::Failed { kind, why } => Some(error::failed(kind, why)),
        PromptOutcome::AuthRequired(why) => Some(auth_required(why)),
    };
    state.tasks.traces.end_request(ticket, error.as_ref().map(ErrorObjectOwned::code));
    if foreground::version(state.client.as_ref()) == AcpVersion::V2 {
        let end = PromptEnd { outcome, usage, meta: meta.as_ref(), error };
        return foreground::end(state, id, ticket, end, lines);
    }
    let Some((request, _)) = state.requests.complete(ticket) else {
        // Steering began the turn: nobody is answered with its failure.
        if let (Some(error), Some(live)) = (&error, state.sessions.get(id)) {
            live.view.notice(&format!("prompt-{}", ticket.0), error.message(), None, lines);
        }
        return;
    };
    if let Some(failure) = failure {
        let mut response = session::prompt_response(StopKind::EndTurn, usage, meta.as_ref());
        response.meta.get_or_insert_default().extend(failure);
        return write::result(lines, &request, &response);
    }
    if let Some(error) = &error {
        // Others read nothing of castor's there.
        let meta = meta.as_ref().filter(|_| wants_stats || has_stream);
        write::error(lines, &request, &meta.map_or_else(|| error.clone(), |it| error::with_meta(error, it)));
    }
    match outcome {
        PromptOutcome::Stop(stop) => {
            write::result(lines, &request, &session::prompt_response(stop, usage, meta.as_ref()))
        }
        PromptOutcome::Steered(steered) => write::result(lines, &request, &session::steering_response(&steered)),
        // The user may log in elsewhere before the next prompt.
        PromptOutcome::AuthRequired(_) => reconnect::reconnect_model(state, id),
        PromptOutcome::Failed { .. } | PromptOutcome::Agent(_) => (),
    }
}
