//! Questions about refused credentials: a page to visit, or a command for a terminal. No answer has a secret in it.

use agent_client_protocol_schema::v1::{
    PermissionOption, PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, ToolCallStatus, ToolCallUpdate, ToolCallUpdateFields,
};
use serde_json::{Map, Value, value::RawValue};

use super::{
    elicitation::{self, Scope},
    initialize::{Client, LoginCommand, TERMINAL, legacy_login},
    meta::messages::{AuthRequiredMeta, OwnQuestionMeta, QuestionMeta},
    session::wire_id,
};
use crate::acp::update::tool_calls;
use castor_base::{
    credential::Credential,
    ids::{CallId, SessionId},
    log::Answer,
    shown_text::{show_line, show_text},
};

/// What is asked about.
#[derive(Clone, Copy)]
pub struct CredentialQuestion<'a> {
    pub session: &'a SessionId,
    pub call: &'a CallId,
    pub credential: &'a Credential,
    pub message: &'a str,
}

const DONE: &str = "done";
const STOP: &str = "stop";

/// Params of elicitation/create, for clients with `elicitation.url`. `None`: there is no address to send a user to.
pub fn page(asked: CredentialQuestion<'_>, client: &Client, login: &LoginCommand) -> Option<Value> {
    let CredentialQuestion { session, call, credential, message } = asked;
    let scope = Scope::Session { session, call: Some(call) };
    let mut params = elicitation::link(scope, message, credential.page.as_deref()?, call.as_str())?;
    params.as_object_mut()?.insert("_meta".to_owned(), meta(credential, client, login).into());
    Some(params)
}

/// Params of session/request_permission, for clients that start logins in terminals. `None`: this one does not.
pub fn login(asked: CredentialQuestion<'_>, client: &Client, login: &LoginCommand) -> Option<Value> {
    if !client.login.terminal && !client.login.old_terminal {
        return None;
    }
    let CredentialQuestion { session, call, credential, message } = asked;
    let fields = ToolCallUpdateFields::new()
        .title(show_line(&credential.title()).into_owned())
        .status(ToolCallStatus::Pending)
        .content(vec![tool_calls::text_content(&show_text(message))]);
    let option = |id: &str, name: &str, kind| PermissionOption::new(id.to_owned(), name, kind);
    let options = vec![
        option(DONE, "It is renewed: try again", PermissionOptionKind::AllowOnce),
        option(STOP, "End the turn", PermissionOptionKind::RejectOnce),
    ];
    let call = ToolCallUpdate::new(call.as_str().to_owned(), fields);
    let request = RequestPermissionRequest::new(wire_id(session), call, options);
    serde_json::to_value(request.meta(meta(credential, client, login))).ok()
}

/// What the chosen option means.
pub fn login_answer(result: &RawValue) -> Answer {
    let Ok(response) = serde_json::from_str::<RequestPermissionResponse>(result.get()) else { return Answer::Unable };
    match response.outcome {
        RequestPermissionOutcome::Cancelled => Answer::Cancelled,
        RequestPermissionOutcome::Selected(it) if &*it.option_id.0 == DONE => Answer::Accepted { content: Map::new() },
        RequestPermissionOutcome::Selected(it) if &*it.option_id.0 == STOP => Answer::Declined,
        _ => Answer::Unable,
    }
}

/// For programs: whose credential it is, and the login that stores another.
fn meta(credential: &Credential, client: &Client, login: &LoginCommand) -> Map<String, Value> {
    let can_log_in = credential.can_log_in;
    let method_id = Some(TERMINAL.into()).filter(|_| can_log_in && client.login.terminal);
    let auth_required = Some(AuthRequiredMeta { credential: credential.key(), method_id });
    let terminal_auth = (can_log_in && client.login.old_terminal).then(|| legacy_login(login));
    QuestionMeta { castor: OwnQuestionMeta { agent: None, auth_required, editable: None }, terminal_auth }.into_map()
}
