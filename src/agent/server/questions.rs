//! Questions to the user, in the form that the client can show, and the conversion of answers.

use std::sync::Arc;

use serde_json::{Map, Value, value::RawValue};

use crate::server::pending_requests::{ClientRequest, QuestionForm};
use castor_base::{
    ids::{CallId, SessionId},
    log::Answer,
    question::Form,
    shown_text::show_line,
    tool::{Display, FileDiff},
};
use castor_engine::{
    scheduler::diffs_text,
    step::{Confirmation, QuestionTopic, UserQuestion},
};
use castor_wire::{
    acp::{
        credentials::{self, CredentialQuestion},
        elicitation::{self, Scope},
        initialize::{AcpVersion, Client, LoginCommand},
        permission, permission_forms, v2,
    },
    jsonrpc::{message::RpcError, open_requests::OutgoingRequests, write},
};

/// A request to the client.
struct Projection {
    shape: QuestionForm,
    method: &'static str,
    params: Value,
}

/// The session that a question belongs to, and the sub-agent that asks it.
pub struct Asker<'a> {
    pub session: &'a SessionId,
    /// Of a sub-agent: its name.
    pub agent: Option<&'a str>,
    /// What stores a key in a terminal.
    pub login: &'a LoginCommand,
}

/// Names the sub-agent that asks in the question.
fn name_agent(params: &mut Value, agent: &str, in_words: bool) {
    for place in ["/toolCall/title", "/message"] {
        if let Some(Value::String(it)) = params.pointer_mut(place).filter(|_| in_words) {
            *it = format!("{}: {it}", show_line(agent));
        }
    }
    let empty = || Value::Object(Map::new());
    let meta = params.as_object_mut().map(|it| it.entry("_meta").or_insert_with(empty));
    let castor = meta.and_then(|it| Some(it.as_object_mut()?.entry("castor").or_insert_with(empty)));
    if let Some(castor) = castor.and_then(Value::as_object_mut) {
        castor.insert("agent".to_owned(), agent.into());
    }
}

/// Asks the client. Returns the answer in its place, if it has no way to show such a question.
pub fn ask(
    client: &Client,
    outgoing: &mut OutgoingRequests<ClientRequest>,
    asker: Asker<'_>,
    question: &UserQuestion,
    lines: &mut Vec<u8>,
) -> Option<Answer> {
    let shown_in = if client.features.subagents { asker.session.clone() } else { asker.session.root() };
    match project(client, (&shown_in, asker.login), &question.about) {
        Ok(it) => {
            let Projection { shape, method, mut params } = match in_version(it, client) {
                Ok(it) => it,
                Err(answer) => return Some(answer),
            };
            if let Some(agent) = asker.agent {
                name_agent(&mut params, agent, !client.features.subagents);
            }
            let asked = ClientRequest::Question { askers: vec![(asker.session.clone(), question.id)], shape };
            let id = outgoing.register(asked);
            _ = write::request(lines, id, method, &params);
            None
        }
        Err(answer) => Some(answer),
    }
}

/// A question that is put as options has words of its own in version 2.
///
/// # Errors
/// The answer, where nothing can be shown.
fn in_version(it: Projection, client: &Client) -> Result<Projection, Answer> {
    let is_done = matches!(it.shape, QuestionForm::Confirmation);
    if client.features.version == AcpVersion::V1 || it.method != PERMISSION || is_done {
        return Ok(it);
    }
    let params = v2::permission::question(it.params).and_then(|it| serde_json::to_value(it).ok());
    Ok(Projection { params: params.ok_or(Answer::Unable)?, ..it })
}

/// What the client's answer means.
pub fn read_answer(shape: &QuestionForm, outcome: Result<Box<RawValue>, RpcError>) -> Answer {
    match (outcome, shape) {
        (Err(_), _) => Answer::Unable,
        (Ok(it), QuestionForm::Confirmation) => permission::answer(&it),
        (Ok(it), QuestionForm::Form(form)) => elicitation::form_answer(form, &it),
        (Ok(it), QuestionForm::Options(form)) => elicitation::option_answer(form, &it),
        (Ok(it), QuestionForm::Choice(form)) => permission_forms::answer(form, &it),
        (Ok(it), QuestionForm::Page { .. }) => elicitation::link_answer(&it),
        (Ok(it), QuestionForm::Login { .. }) => credentials::login_answer(&it),
    }
}

/// # Errors
/// The answer, where nothing can be shown.
fn project(
    client: &Client,
    (session, login): (&SessionId, &LoginCommand),
    about: &QuestionTopic,
) -> Result<Projection, Answer> {
    match about {
        QuestionTopic::Confirmation(asked) => confirmation(session, asked, client),
        QuestionTopic::Trust { call, form, diffs } => choice(client, (session, call), form, diffs),
        QuestionTopic::Fallback { call, form } => choice(client, (session, call), form, &[]),
        QuestionTopic::Form { call, form } if client.shows_forms => {
            let params = elicitation::form(Scope::Session { session, call: call.as_ref() }, form);
            Ok(Projection { shape: QuestionForm::Form(form.clone()), method: elicitation::CREATE, params })
        }
        QuestionTopic::Form { call, form } => {
            let params = elicitation::options(session, call.as_ref(), form).ok_or(Answer::InText)?;
            let params = serde_json::to_value(params).map_err(|_| Answer::Unable)?;
            Ok(Projection { shape: QuestionForm::Options(form.clone()), method: PERMISSION, params })
        }
        QuestionTopic::Link { call, message, url, elicitation } if client.opens_links => {
            let scope = Scope::Session { session, call: call.as_ref() };
            let params = elicitation::link(scope, message, url, elicitation).ok_or(Answer::Unable)?;
            Ok(Projection { shape: QuestionForm::Page { credential: None }, method: elicitation::CREATE, params })
        }
        QuestionTopic::Credential { call, credential, message } => {
            let asked = CredentialQuestion { session, call, credential, message };
            ask_for_credential(client, asked, login)
        }
        // What needs a page must not be asked for in any other way.
        QuestionTopic::Link { .. } => Err(Answer::Unable),
    }
}

/// A form of one choice, in words and with diffs: in the message of a form, or as content beside options.
fn choice(
    client: &Client,
    (session, call): (&SessionId, &CallId),
    form: &Arc<Form>,
    diffs: &[FileDiff],
) -> Result<Projection, Answer> {
    if client.shows_forms {
        let shown = if diffs.is_empty() { form.clone() } else { Arc::new(with_diffs(form, diffs)) };
        let params = elicitation::form(Scope::Session { session, call: Some(call) }, &shown);
        return Ok(Projection { shape: QuestionForm::Form(form.clone()), method: elicitation::CREATE, params });
    }
    let params = permission_forms::request(session, call, form, diffs);
    let params = serde_json::to_value(params).map_err(|_| Answer::Unable)?;
    Ok(Projection { shape: QuestionForm::Choice(form.clone()), method: PERMISSION, params })
}

fn with_diffs(form: &Form, diffs: &[FileDiff]) -> Form {
    let text = diffs_text(&Display::Diffs { files: diffs.to_vec() });
    Form { message: format!("{}\n{text}", form.message), fields: form.fields.clone() }
}

/// A page where there is an address and the client opens it; else the command, where the client starts those.
fn ask_for_credential(
    client: &Client,
    asked: CredentialQuestion<'_>,
    login: &LoginCommand,
) -> Result<Projection, Answer> {
    let credential = asked.credential.key();
    let page = if client.opens_links { credentials::page(asked, client, login) } else { None };
    if let Some(params) = page {
        let shape = QuestionForm::Page { credential: Some(credential) };
        return Ok(Projection { shape, method: elicitation::CREATE, params });
    }
    let params = credentials::login(asked, client, login).ok_or(Answer::Unable)?;
    Ok(Projection { shape: QuestionForm::Login { credential }, method: PERMISSION, params })
}

const PERMISSION: &str = "session/request_permission";

fn confirmation(session: &SessionId, it: &Confirmation, client: &Client) -> Result<Projection, Answer> {
    let asked = permission::PermissionRequest {
        session,
        call: &it.call,
        title: &it.title,
        kind: it.kind,
        args: &it.args,
        locations: &it.locations,
        display: it.display.as_ref(),
        reason: it.reason.as_deref(),
        always: it.session_grant.as_deref(),
        lasting: it.persistent_grant.as_deref(),
        offers_auto: it.offers_auto,
        is_editable: it.is_editable && client.host.edits_calls,
    };
    let params = match client.features.version {
        AcpVersion::V1 => serde_json::to_value(permission::request(asked)),
        AcpVersion::V2 => serde_json::to_value(v2::permission::confirmation(asked)),
    };
    let params = params.map_err(|_| Answer::Unable)?;
    Ok(Projection { shape: QuestionForm::Confirmation, method: PERMISSION, params })
}
