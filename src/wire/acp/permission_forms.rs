//! Permission options for questions about trust, fallback models and conflicts, for clients without forms.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Map, value::RawValue};

use crate::acp::{session::wire_id, update::tool_calls};
use castor_base::{
    checkpoint::ConflictChoice,
    fallback::Intent,
    ids::{CallId, SessionId},
    log::Answer,
    question::Form,
    shown_text::{show_line, show_text},
    text,
    tool::{Display, FileDiff},
    trust::TrustChoice,
};

/// Most characters of a title.
const TITLE: usize = 200;

/// `diffs`: what the question is about, beside its words.
pub fn request(session: &SessionId, call: &CallId, form: &Form, diffs: &[FileDiff]) -> RequestPermissionRequest {
    let choices = form.fields.iter().flat_map(|it| it.kind.options());
    let options =
        choices.filter_map(|it| Some(PermissionOption::new(it.value.clone(), show_line(&it.title), kind(&it.value)?)));
    let message = show_text(&form.message);
    let shown = Display::Diffs { files: diffs.to_vec() };
    let content = [tool_calls::text_content(&message)].into_iter().chain(tool_calls::display_content(&shown));
    let fields = ToolCallUpdateFields::new()
        .title(first_sentence(&message))
        .status(ToolCallStatus::Pending)
        .content(content.collect::<Vec<_>>());
    RequestPermissionRequest::new(
        wire_id(session),
        ToolCallUpdate::new(call.as_str().to_owned(), fields),
        options.collect(),
    )
}

/// What a client shows in one line.
fn first_sentence(message: &str) -> String {
    let line = text::first_line(message, TITLE);
    let end = ["? ", ". "].iter().filter_map(|it| line.find(it)).min();
    match end.and_then(|it| line.get(..=it)) {
        Some(sentence) => sentence.to_owned(),
        None => line.trim_end_matches(':').to_owned(),
    }
}

/// Who answers these questions by a rule of thumb must not get more than a careful user would.
fn kind(value: &str) -> Option<PermissionOptionKind> {
    let trust = TrustChoice::parse(value).map(|it| match it {
        TrustChoice::Folder | TrustChoice::FolderAuto | TrustChoice::Parent => PermissionOptionKind::AllowAlways,
        TrustChoice::NotNow => PermissionOptionKind::RejectOnce,
        TrustChoice::Never => PermissionOptionKind::RejectAlways,
    });
    let conflict = ConflictChoice::parse(value).map(|it| match it {
        ConflictChoice::Keep | ConflictChoice::ShowDiff => PermissionOptionKind::AllowOnce,
        // What somebody else did goes: never by a rule of thumb.
        ConflictChoice::Restore => PermissionOptionKind::AllowAlways,
        ConflictChoice::Stop => PermissionOptionKind::RejectOnce,
    });
    trust.or(conflict).or_else(|| {
        Intent::parse(value).map(|it| match it {
            Intent::RetryOnce | Intent::Wait => PermissionOptionKind::AllowOnce,
            Intent::RetryAlways => PermissionOptionKind::AllowAlways,
            Intent::RetryLater | Intent::Stop => PermissionOptionKind::RejectOnce,
        })
    })
}

/// What the chosen option means.
pub fn answer(form: &Form, result: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(result.get()) else { return Answer::Unable };
    let chosen = match response.outcome {
        RequestPermissionOutcome::Cancelled => return Answer::Cancelled,
        RequestPermissionOutcome::Selected(it) => it.option_id.0.to_string(),
        _ => return Answer::Unable,
    };
    let Some(field) = form.fields.first() else { return Answer::Unable };
    let content = Map::from_iter([(field.name.clone(), chosen.into())]);
    match form.check(&content) {
        Ok(content) => Answer::Accepted { content },
        Err(_) => Answer::Unable,
    }
}
