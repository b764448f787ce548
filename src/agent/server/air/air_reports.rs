//! AIR's reports: of files and failures at the end of a prompt, of commands in the background, and of listed sessions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::server::{outbox::Outbox, pending_requests::ClientRequest};
use crate::session::live_session::LiveSession;
use castor_base::{
    event::{PromptOutcome, StopKind},
    ids::{PromptId, SessionId},
};
use castor_store::sessions::SessionSummary;
use castor_wire::{
    acp::{
        air::{AirFeatures, failures::failure_meta, file_report::FileReport, session_index::IndexRow},
        initialize::Client,
    },
    jsonrpc::open_requests::OutgoingRequests,
};

/// What the client asked for; before initialize nothing.
pub fn features(client: Option<&Client>) -> AirFeatures {
    client.map(|it| it.features.air).unwrap_or_default()
}

/// Appends the report that a prompt is to end with. `asked_model`: whether it came to a model.
pub fn report_files(
    live: &mut LiveSession,
    (prompt, outcome, asked_model): (PromptId, &PromptOutcome, bool),
    lines: &mut Vec<u8>,
) {
    let Some(request) = live.extras.file_reports.remove(&prompt) else { return };
    let report = match outcome {
        PromptOutcome::Stop(StopKind::Cancelled) => FileReport::Unavailable("cancelled"),
        PromptOutcome::Failed { .. } | PromptOutcome::AuthRequired(_) => FileReport::Unavailable("providerError"),
        _ if !asked_model => FileReport::Unavailable("notReported"),
        _ => FileReport::Reported(live.session.record().checkpoints().paths_of_last_prompt()),
    };
    live.view.report_files(&request, report, lines);
}

/// `_meta` of the answer to a prompt that failed, for a client that takes the failure as a record.
pub fn failure_record(live: &mut LiveSession, outcome: &PromptOutcome, now_ms: u64) -> Option<Map<String, Value>> {
    let status = live.view.take_failure();
    match outcome {
        PromptOutcome::Failed { kind, why } if live.profile.features.air.session_failure => {
            Some(failure_meta(&format!("{}:{now_ms}", live.resources.session), kind, status, why))
        }
        _ => None,
    }
}

/// All processes of a command in the background are gone.
pub fn end_task(live: &mut LiveSession, outbox: &mut Outbox, pid: u32) {
    let mut lines = Vec::new();
    live.view.end_task(pid, &mut lines);
    if !lines.is_empty() {
        outbox.queue_lines(Some(&live.resources.session), |it| it.append(&mut lines));
    }
}

/// What AIR's index says of a session.
pub fn index_row(
    sessions: &BTreeMap<SessionId, LiveSession>,
    asked: &OutgoingRequests<ClientRequest>,
    it: &SessionSummary,
) -> IndexRow {
    let is_its = |request: &ClientRequest| matches!(request, ClientRequest::Question { askers, .. } if askers.iter().any(|(of, _)| of.root() == it.id));
    let activity = sessions.get(&it.id).map(|live| match live.session.is_busy() {
        _ if asked.iter().any(|(_, request)| is_its(request)) => "requires_action",
        true => "running",
        false => "idle",
    });
    let (model, forked_from) = (it.model.clone(), it.parent.clone());
    IndexRow { archived: it.archived, model, forked_from, state: activity }
}
