//! The one internal question, as this client can show it; and what its answer means.

use serde_json::{Value, value::RawValue};

use crate::{
    app::state::{Asked, Shape, State},
    base::{
        ids::{QuestionId, SessionId},
        log::Answer,
    },
    engine::step::{About, Confirmation, Input, Question},
    wire::{
        acp::{
            choices,
            elicitation::{self, Scope},
            initialize::Client,
            permission,
        },
        jsonrpc::{message::RpcError, write},
    },
};

/// A request to the client.
struct Projection {
    shape: Shape,
    method: &'static str,
    params: Value,
}

/// Asks the client; or answers in its place, if it has no way to show such a question.
pub fn ask(state: &mut State, session: &SessionId, question: &Question, lines: &mut Vec<u8>) {
    let client = state.client.clone().unwrap_or_default();
    match project(&client, session, &question.about) {
        Ok(Projection { shape, method, params }) => {
            let asked = Asked::Question { session: session.clone(), question: question.id, shape };
            let id = state.asked.open(asked);
            _ = write::request(lines, id, method, &params);
        }
        Err(answer) => settle(state, session, question.id, answer),
    }
}

/// The client's answer came.
pub fn answered(
    state: &mut State,
    session: &SessionId,
    question: QuestionId,
    shape: &Shape,
    outcome: Result<Box<RawValue>, RpcError>,
) {
    let answer = match (outcome, shape) {
        (Err(_), _) => Answer::Unable,
        (Ok(it), Shape::Confirmation) => permission::answer(&it),
        (Ok(it), Shape::Form(form)) => elicitation::form_answer(form, &it),
        (Ok(it), Shape::Options(form)) => elicitation::option_answer(form, &it),
        (Ok(it), Shape::Choice(form)) => choices::answer(form, &it),
        (Ok(it), Shape::Link) => elicitation::link_answer(&it),
    };
    settle(state, session, question, answer);
}

fn settle(state: &mut State, session: &SessionId, question: QuestionId, answer: Answer) {
    state.step(session, Input::Answered { question, answer });
}

/// # Errors
/// The answer, where nothing can be shown.
fn project(client: &Client, session: &SessionId, about: &About) -> Result<Projection, Answer> {
    match about {
        About::Confirmation(asked) => confirmation(session, asked),
        About::Trust { call, form } | About::Fallback { call, form } if client.shows_forms => {
            let params = elicitation::form(Scope::Session { session, call: Some(call) }, form);
            Ok(Projection { shape: Shape::Form(form.clone()), method: elicitation::CREATE, params })
        }
        About::Trust { call, form } | About::Fallback { call, form } => {
            let params = serde_json::to_value(choices::request(session, call, form)).map_err(|_| Answer::Unable)?;
            Ok(Projection { shape: Shape::Choice(form.clone()), method: PERMISSION, params })
        }
        About::Form { call, form } if client.shows_forms => {
            let params = elicitation::form(Scope::Session { session, call: call.as_ref() }, form);
            Ok(Projection { shape: Shape::Form(form.clone()), method: elicitation::CREATE, params })
        }
        About::Form { call, form } => {
            let params = elicitation::options(session, call.as_ref(), form).ok_or(Answer::InText)?;
            let params = serde_json::to_value(params).map_err(|_| Answer::Unable)?;
            Ok(Projection { shape: Shape::Options(form.clone()), method: PERMISSION, params })
        }
        About::Link { call, message, url, elicitation } if client.opens_links => {
            let scope = Scope::Session { session, call: call.as_ref() };
            let params = elicitation::link(scope, message, url, elicitation).ok_or(Answer::Unable)?;
            Ok(Projection { shape: Shape::Link, method: elicitation::CREATE, params })
        }
        // What needs a page must not be asked for in any other way.
        About::Link { .. } => Err(Answer::Unable),
    }
}

const PERMISSION: &str = "session/request_permission";

fn confirmation(session: &SessionId, it: &Confirmation) -> Result<Projection, Answer> {
    let params = permission::request(permission::Asked {
        session,
        call: &it.call,
        title: &it.title,
        kind: it.kind,
        args: &it.args,
        locations: &it.locations,
        display: it.display.as_ref(),
        reason: it.reason.as_deref(),
        always: it.always.as_deref(),
        lasting: it.lasting.as_deref(),
        offers_auto: it.offers_auto,
    });
    let params = serde_json::to_value(params).map_err(|_| Answer::Unable)?;
    Ok(Projection { shape: Shape::Confirmation, method: PERMISSION, params })
}
