//! `session/request_permission` of version 2: the question has words of its own, and the call stays as it is shown.

use agent_client_protocol_schema::{
    v1,
    v2::{
        PermissionOption, RequestPermissionRequest, RequestPermissionSubject, ToolCallPermissionSubject, ToolCallUpdate,
    },
};
use serde_json::Value;

use super::{same_json, tool_calls};
use crate::acp::permission::{self, PermissionRequest};
use castor_base::{shown_text::show_text, tool::ToolKind};

/// The question about a call. Its reason is the question's, all else the call's.
pub fn confirmation(asked: PermissionRequest<'_>) -> RequestPermissionRequest {
    let note = permission::hidden_notes(&asked);
    let texts = note.as_deref().into_iter().chain([asked.title]).chain(asked.reason);
    let description = texts.map(show_text).collect::<Vec<_>>().join("\n\n");
    let request = permission::request(PermissionRequest { reason: None, ..asked });
    let call = tool_calls::tool_call(request.tool_call);
    with_subject((&request.session_id, words(asked.kind).to_owned(), description), call, &request.options)
        .meta(request.meta)
}

/// castor's other questions, whose words version 1 has in the call.
pub fn question(params: Value) -> Option<RequestPermissionRequest> {
    let v1::RequestPermissionRequest { session_id, tool_call, options, meta, .. } =
        serde_json::from_value(params).ok()?;
    let mut fields = tool_call.fields;
    let title = fields.title.take()?;
    let texts = fields.content.take().into_iter().flatten().filter_map(|it| match it {
        v1::ToolCallContent::Content(v1::Content { content: v1::ContentBlock::Text(it), .. }) => Some(it.text),
        _ => None,
    });
    let description = texts.collect::<Vec<_>>().join("\n\n");
    let call = tool_calls::tool_call(v1::ToolCallUpdate::new(tool_call.tool_call_id, fields));
    Some(with_subject((&session_id, title, description), call, &options).meta(meta))
}

fn with_subject(
    (session, title, description): (&v1::SessionId, String, String),
    call: ToolCallUpdate,
    options: &[v1::PermissionOption],
) -> RequestPermissionRequest {
    let options: Vec<PermissionOption> = options.iter().filter_map(same_json).collect();
    let subject = RequestPermissionSubject::ToolCall(Box::new(ToolCallPermissionSubject::new(call)));
    RequestPermissionRequest::new(session.to_string(), title, options).description(description).subject(subject)
}

fn words(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Execute => "Run this command?",
        ToolKind::Edit => "Make this change?",
        ToolKind::Delete => "Delete this?",
        ToolKind::Move => "Move this?",
        ToolKind::Read | ToolKind::Search => "Read this?",
        ToolKind::Fetch => "Fetch this?",
        ToolKind::Think | ToolKind::SwitchMode | ToolKind::Other => "Allow this call?",
    }
}
