//! ACP `session/request_permission`: writes approval questions and reads the answers.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Value, value::RawValue};

use crate::acp::{
    meta::messages::{OwnQuestionMeta, QuestionMeta},
    question_answer::QuestionAnswerMeta,
    session::wire_id,
    update::tool_calls,
};
use castor_base::{
    event::Location,
    ids::{CallId, SessionId},
    log::Answer,
    shown_text::{hidden_note, show_line},
    text,
    tool::{Display, ToolKind},
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

/// The most of an argument's name, in bytes, and of arguments with hidden characters that a question names.
const MAX_NAME: usize = 100;
const MAX_NOTES: usize = 4;

pub fn request(asked: PermissionRequest<'_>) -> RequestPermissionRequest {
    let texts = hidden_notes(&asked).into_iter().chain(asked.reason.map(str::to_owned));
    let texts: Vec<Display> = texts.map(|text| Display::Text { text }).collect();
    let content: Vec<_> = texts.iter().chain(asked.display).flat_map(tool_calls::question_content).collect();
    // What the client does not see whole it cannot change.
    let is_editable = asked.is_editable && tool_calls::limit_raw(asked.args).is_some();
    let fields = ToolCallUpdateFields::new()
        .title(tool_calls::title(asked.kind, asked.title))
        .kind(tool_calls::kind(asked.kind))
        .status(ToolCallStatus::Pending)
        .content((!content.is_empty()).then_some(content))
        .locations(tool_calls::locations(asked.locations))
        .raw_input(tool_calls::limit_raw(asked.args));
    let option = |id: &'static str, name: &str, kind| PermissionOption::new(id, show_line(name), kind);
    let mut options = vec![option(ALLOW_ONCE, "Allow", PermissionOptionKind::AllowOnce)];
    options.extend(asked.always.map(|it| option(ALLOW_SESSION, it, PermissionOptionKind::AllowAlways)));
    options.extend(asked.lasting.map(|it| option(ALLOW_SAVE, it, PermissionOptionKind::AllowAlways)));
    let auto = option(
        ALLOW_AUTO,
        "Allow this, and work without questions here (mode auto)",
        PermissionOptionKind::AllowAlways,
    );
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

/// Which hidden characters the call has, before they are written out: all that the user says yes to counts. `None`: it
/// has none.
pub(super) fn hidden_notes(asked: &PermissionRequest<'_>) -> Option<String> {
    let mut notes: Vec<(String, String)> = Vec::new();
    let mut add = |what: String, text: &str| {
        if let Some(it) = hidden_note(&what, text).filter(|_| notes.iter().all(|(known, _)| *known != what)) {
            notes.push((what, it));
        }
    };
    for (name, value) in asked.args.as_object().into_iter().flatten() {
        let mut texts = name.clone();
        push_texts(value, &mut texts);
        let what = match name.as_str() {
            "command" => "This command".to_owned(),
            it if it.ends_with("path") => "This path".to_owned(),
            it => format!("The argument `{}`", show_line(text::head(it, MAX_NAME))),
        };
        add(what, &texts);
    }
    asked.locations.iter().for_each(|it| add("This path".to_owned(), &it.path.to_string()));
    if notes.is_empty() {
        return hidden_note("This call", asked.title);
    }
    let notes = notes.into_iter().map(|(_, it)| it).take(MAX_NOTES);
    Some(notes.collect::<Vec<_>>().join(" "))
}

/// All texts of a value, also the names of its members.
fn push_texts(value: &Value, texts: &mut String) {
    match value {
        Value::String(it) => texts.push_str(it),
        Value::Array(all) => all.iter().for_each(|it| push_texts(it, texts)),
        Value::Object(all) => all.iter().for_each(|(name, it)| {
            texts.push_str(name);
            push_texts(it, texts);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => (),
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
