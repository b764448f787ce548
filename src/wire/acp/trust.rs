//! The question about a folder as options of session/request_permission, for clients without forms.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Map, value::RawValue};

use crate::{
    base::{
        ids::{CallId, SessionId},
        log::Answer,
        question::Form,
        trust::TrustChoice,
    },
    wire::acp::{session::wire_id, tool_calls},
};

pub fn request(session: &SessionId, call: &CallId, form: &Form) -> RequestPermissionRequest {
    let choices = form.fields.iter().flat_map(|it| it.kind.options());
    let options = choices.filter_map(|it| {
        let kind = match TrustChoice::parse(&it.value)? {
            TrustChoice::Folder | TrustChoice::Parent => PermissionOptionKind::AllowAlways,
            TrustChoice::NotNow => PermissionOptionKind::RejectOnce,
            TrustChoice::Never => PermissionOptionKind::RejectAlways,
        };
        Some(PermissionOption::new(it.value.clone(), it.title.clone(), kind))
    });
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Pending)
        .content(vec![tool_calls::text_content(&form.message)]);
    RequestPermissionRequest::new(
        wire_id(session),
        ToolCallUpdate::new(call.as_str().to_owned(), fields),
        options.collect(),
    )
}

/// What the chosen option means.
pub fn answer(form: &Form, result: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(result.get()) else { return Answer::Unable };
    let chosen = match response.outcome {
        RequestPermissionOutcome::Cancelled => return Answer::Cancelled,
        RequestPermissionOutcome::Selected(it) => it.option_id.0.to_string(),
        _ => return Answer::Unable,
    };
    let content = Map::from_iter([(TrustChoice::FIELD.to_owned(), chosen.into())]);
    match form.check(&content) {
        Ok(content) => Answer::Accepted { content },
        Err(_) => Answer::Unable,
    }
}
