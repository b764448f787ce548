//! ACP `elicitation/create`: forms and links, or permission options for clients without forms.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Map, Value, json, value::RawValue};

use crate::{
    acp::{session::wire_id, update::tool_calls},
    jsonrpc::message::RequestId,
};
use castor_base::{
    elicitation::check_page_url,
    ids::{CallId, SessionId},
    log::Answer,
    question::{Choice, Field, FieldKind, Form, TextFormat},
    shown_text::{show_line, show_text},
    text,
};

pub const CREATE: &str = "elicitation/create";
pub const COMPLETE: &str = "elicitation/complete";

/// More options than this are no row of buttons: the question goes into a message.
const MAX_OPTIONS: usize = 8;
const DECLINE: &str = "decline";
/// The value of a choice that is a no of its own.
const REJECT: &str = "reject";
/// Longest title, in characters.
const TITLE: usize = 2_000;

/// The session or request that a question belongs to.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    Session {
        session: &'a SessionId,
        call: Option<&'a CallId>,
    },
    /// A request of the client that is still open, such as authenticate.
    Request(&'a RequestId),
}

/// Params of a question with fields, for clients with `elicitation.form`.
pub fn form(scope: Scope<'_>, form: &Form) -> Value {
    let properties: Map<String, Value> = form.fields.iter().map(|it| (it.name.clone(), property(it))).collect();
    let required: Vec<&str> = form.fields.iter().filter(|it| it.required).map(|it| it.name.as_str()).collect();
    let mut schema =
        Map::from_iter([("type".to_owned(), json!("object")), ("properties".to_owned(), properties.into())]);
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    with_scope(scope, json!({ "mode": "form", "message": show_text(&form.message), "requestedSchema": schema }))
}

/// Params of a page to visit, for clients with `elicitation.url`. `None`: the address is no place to send a user to.
pub fn link(scope: Scope<'_>, message: &str, url: &str, elicitation: &str) -> Option<Value> {
    let url = check_page_url(url).ok()?;
    let params = json!({ "mode": "url", "message": show_text(message), "url": url, "elicitationId": elicitation });
    Some(with_scope(scope, params))
}

/// Params of elicitation/complete: what the page was for is done.
pub fn complete(elicitation: &str) -> Value {
    json!({ "elicitationId": elicitation })
}

/// What the client's result means for a form.
pub fn form_answer(form: &Form, result: &RawValue) -> Answer {
    match action(result) {
        Action::Accept(content) => match form.check(&content) {
            Ok(content) => Answer::Accepted { content },
            Err(why) => Answer::Unfit { why },
        },
        Action::Other(answer) => answer,
    }
}

/// What the client's result means for a page: accepted means that the user went there, not that it is done.
pub fn link_answer(result: &RawValue) -> Answer {
    match action(result) {
        Action::Accept(_) => Answer::Accepted { content: Map::new() },
        Action::Other(answer) => answer,
    }
}

enum Action {
    Accept(Map<String, Value>),
    Other(Answer),
}

fn action(result: &RawValue) -> Action {
    let mut result: Value = serde_json::from_str(result.get()).unwrap_or_default();
    let content = result.get_mut("content").map(Value::take).unwrap_or_default();
    match (result.get("action").and_then(Value::as_str), content) {
        (Some("accept"), Value::Object(content)) => Action::Accept(content),
        (Some("accept"), Value::Null) => Action::Accept(Map::new()),
        (Some("accept"), _) => Action::Other(Answer::Unfit { why: "the content is not an object".to_owned() }),
        (Some("decline"), _) => Action::Other(Answer::Declined),
        (Some("cancel"), _) => Action::Other(Answer::Dismissed),
        _ => Action::Other(Answer::Unable),
    }
}

/// The question as options of session/request_permission: one choice, few options, and a call to show it with.
pub fn options(session: &SessionId, call: Option<&CallId>, form: &Form) -> Option<RequestPermissionRequest> {
    let (call, field) = (call?, the_choice(form)?);
    let mut options = match &field.kind {
        FieldKind::Bool => {
            vec![
                option("0", "Yes", PermissionOptionKind::AllowOnce),
                option("1", "No", PermissionOptionKind::RejectOnce),
            ]
        }
        FieldKind::Choice { options } if options.len() <= MAX_OPTIONS => {
            let name = |it: &Choice| match &it.description {
                Some(more) => format!("{}: {more}", it.title),
                None => it.title.clone(),
            };
            let kind = |it: &Choice| match it.value == REJECT {
                true => PermissionOptionKind::RejectOnce,
                false => PermissionOptionKind::AllowOnce,
            };
            let option = |(at, it): (usize, &Choice)| option(&at.to_string(), &name(it), kind(it));
            options.iter().enumerate().map(option).collect()
        }
        _ => return None,
    };
    let has_no = matches!(field.kind, FieldKind::Bool) || field.kind.options().iter().any(|it| it.value == REJECT);
    if !has_no {
        options.push(option(DECLINE, "Do not answer", PermissionOptionKind::RejectOnce));
    }
    let fields = ToolCallUpdateFields::new()
        .title(text::first_line(&show_text(&form.message), TITLE))
        .status(ToolCallStatus::InProgress)
        .content(vec![tool_calls::text_content(&show_text(&form.in_words()))]);
    Some(RequestPermissionRequest::new(
        wire_id(session),
        ToolCallUpdate::new(call.as_str().to_owned(), fields),
        options,
    ))
}

/// What the chosen option means.
pub fn option_answer(form: &Form, result: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(result.get()) else { return Answer::Unable };
    let chosen = match response.outcome {
        RequestPermissionOutcome::Cancelled => return Answer::Cancelled,
        RequestPermissionOutcome::Selected(it) if &*it.option_id.0 == DECLINE => return Answer::Declined,
        RequestPermissionOutcome::Selected(it) => it.option_id.0.parse::<usize>().ok(),
        _ => None,
    };
    let (Some(chosen), Some(field)) = (chosen, the_choice(form)) else { return Answer::Unable };
    let value = match &field.kind {
        FieldKind::Bool if chosen < 2 => Some(Value::from(chosen == 0)),
        FieldKind::Choice { options } => options.get(chosen).map(|it| Value::from(it.value.as_str())),
        _ => None,
    };
    let answer = |it| Answer::Accepted { content: Map::from_iter([(field.name.clone(), it)]) };
    value.map_or(Answer::Unable, answer)
}

/// The one field that has to be filled in, if what stands beside it are texts that may be left out.
fn the_choice(form: &Form) -> Option<&Field> {
    let (first, rest) = form.fields.split_first()?;
    let optional = |it: &Field| !it.required && matches!(it.kind, FieldKind::Text { .. });
    rest.iter().all(optional).then_some(first)
}

fn option(id: &str, name: &str, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption::new(id.to_owned(), show_line(name), kind)
}

fn with_scope(scope: Scope<'_>, params: Value) -> Value {
    let mut res = match scope {
        Scope::Session { session, call: Some(call) } => json!({ "sessionId": session, "toolCallId": call }),
        Scope::Session { session, call: None } => json!({ "sessionId": session }),
        Scope::Request(id) => json!({ "requestId": id }),
    };
    if let (Some(res), Value::Object(params)) = (res.as_object_mut(), params) {
        res.extend(params);
    }
    res
}

fn property(field: &Field) -> Value {
    let mut res = Map::new();
    let mut set = |name: &str, value: Option<Value>| _ = value.map(|it| res.insert(name.to_owned(), it));
    let kind = match &field.kind {
        FieldKind::Text { .. } | FieldKind::Choice { .. } => "string",
        FieldKind::Choices { .. } => "array",
        FieldKind::Number { .. } => "number",
        FieldKind::Integer { .. } => "integer",
        FieldKind::Bool => "boolean",
    };
    set("type", Some(kind.into()));
    set("title", field.title.as_deref().map(|it| show_line(it).into()));
    set("description", field.description.as_deref().map(|it| show_text(it).into()));
    match &field.kind {
        FieldKind::Text { min, max, format } => {
            set("minLength", min.map(Value::from));
            set("maxLength", max.map(Value::from));
            set("format", format.map(|it| format_name(it).into()));
        }
        FieldKind::Choice { options } => set("oneOf", Some(titled(options))),
        FieldKind::Choices { options, min, max } => {
            set("items", Some(json!({ "anyOf": titled(options) })));
            set("minItems", min.map(Value::from));
            set("maxItems", max.map(Value::from));
        }
        FieldKind::Number { min, max } => {
            set("minimum", min.map(Value::from));
            set("maximum", max.map(Value::from));
        }
        FieldKind::Integer { min, max } => {
            set("minimum", min.map(Value::from));
            set("maximum", max.map(Value::from));
        }
        FieldKind::Bool => (),
    }
    set("default", field.default.clone());
    res.into()
}

fn titled(options: &[Choice]) -> Value {
    let option = |it: &Choice| match &it.description {
        Some(more) => json!({ "const": it.value, "title": show_line(&it.title), "description": show_text(more) }),
        None => json!({ "const": it.value, "title": show_line(&it.title) }),
    };
    options.iter().map(option).collect()
}

fn format_name(format: TextFormat) -> &'static str {
    match format {
        TextFormat::Email => "email",
        TextFormat::Uri => "uri",
        TextFormat::Date => "date",
        TextFormat::DateTime => "date-time",
    }
}

#[cfg(test)]
mod tests;
