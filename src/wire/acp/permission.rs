//! ACP `session/request_permission`: writes approval questions and reads the answers.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Value, value::RawValue};

use crate::{
    base::{
        event::Location,
        ids::{CallId, SessionId},
        log::Answer,
        tool::{Display, ToolKind},
    },
    wire::acp::{
        meta::{OwnQuestionMeta, QuestionMeta},
        question_answer::QuestionAnswerMeta,
        session::wire_id,
        tool_calls,
    },
};

/// A call that the user is asked about.
#[derive(Clone, Copy, Debug)]
pub struct PermissionRequest<'a> {
    pub session: &'a SessionId,
    pub call: &'a CallId,
    pub title: &'a str,
    pub kind: ToolKind,
    pub args: &'a Value,
    pub locations: &'a [Location],
    pub display: Option<&'a Display>,
    /// Why it is asked.
    pub reason: Option<&'a str>,
    /// The words of the option that allows it for the session.
    pub always: Option<&'a str>,
    /// The words of the option that allows it for ever.
    pub lasting: Option<&'a str>,
    /// Whether the mode `auto` is an option.
    pub offers_auto: bool,
    /// Whether the client may send other arguments with its yes.
    pub is_editable: bool,
}

/// The narrow yes stands first: clients that approve by themselves take the first option.
const ALLOW_ONCE: &str = "allow_once";
const ALLOW_SESSION: &str = "allow_session";
const ALLOW_SAVE: &str = "allow_always_save";
const ALLOW_AUTO: &str = "allow_auto";
const REJECT: &str = "reject_once";

pub fn request(asked: PermissionRequest<'_>) -> RequestPermissionRequest {
    let reason = asked.reason.map(|it| Display::Text { text: it.to_owned() });
    let shown = reason.as_ref().into_iter().chain(asked.display);
    let content: Vec<_> = shown.flat_map(tool_calls::display_content).collect();
    // What the client does not see whole it cannot change.
    let is_editable = asked.is_editable && tool_calls::limit_raw(asked.args).is_some();
    let fields = ToolCallUpdateFields::new()
        .title(tool_calls::title(asked.kind, asked.title))
        .kind(tool_calls::kind(asked.kind))
        .status(ToolCallStatus::Pending)
        .content((!content.is_empty()).then_some(content))
        .locations(tool_calls::locations(asked.locations))
        .raw_input(tool_calls::limit_raw(asked.args));
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, name, kind);
    let mut options = vec![option(ALLOW_ONCE, "Allow", PermissionOptionKind::AllowOnce)];
    options.extend(asked.always.map(|it| option(ALLOW_SESSION, it, PermissionOptionKind::AllowAlways)));
    options.extend(asked.lasting.map(|it| option(ALLOW_SAVE, it, PermissionOptionKind::AllowAlways)));
    let auto =
        option(ALLOW_AUTO, "Allow this, and all that is confined (mode auto)", PermissionOptionKind::AllowAlways);
    options.extend(asked.offers_auto.then_some(auto));
    options.push(option(REJECT, "Reject", PermissionOptionKind::RejectOnce));
    let call = ToolCallUpdate::new(asked.call.as_str().to_owned(), fields);
    let request = RequestPermissionRequest::new(wire_id(asked.session), call, options);
    match is_editable {
        true => {
            let castor = OwnQuestionMeta { agent: None, auth_required: None, editable: Some(true) };
            request.meta(QuestionMeta { castor, terminal_auth: None }.into_map())
        }
        false => request,
    }
}

/// What the client's result means. Whatever is not an answer to the question means that it could not be asked.
pub fn answer(result: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(result.get()) else { return Answer::Unable };
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Answer::Cancelled,
        RequestPermissionOutcome::Selected(it) => match &*it.option_id.0 {
            ALLOW_ONCE => match QuestionAnswerMeta::read(response.meta) {
                Some(it) => it.input().map_or(Answer::AllowOnce, |args| Answer::AllowEdited { args }),
                None => Answer::Unable,
            },
            ALLOW_SESSION => Answer::AllowSession,
            ALLOW_SAVE => Answer::AllowAlways,
            ALLOW_AUTO => Answer::AllowAuto,
            REJECT => Answer::Reject,
            _ => Answer::Unable,
        },
        _ => Answer::Unable,
    }
}
