//! Failures of models, and credentials in the scripts of turns: `failed EFFECT STATUS [DELAY|long|outside]`,
//! `refused EFFECT TEXT` for a call whose server wants another one, `renewed EFFECT new|old`.

use super::tests::ran;
use crate::step::{Input, QuestionTopic};
use castor_base::{
    credential::{Credential, CredentialOwner, RenewalOrder},
    ids::EffectId,
    model::{Details, Failure, FailureKind},
    tool::{ToolError, ToolOutput},
};

pub(super) fn input(verb: &str, effect: EffectId, rest: &str) -> Input {
    match verb {
        "failed" => Input::Generated { effect, result: Err(failure(rest)) },
        "renewed" => Input::CredentialRenewed { effect, changed: rest == "new" },
        _ => {
            let credential = Some(Box::new(Credential::new(CredentialOwner::Server, "", None)));
            let output = ToolOutput::failed(ToolError::new("mcp_tool_error", rest));
            ran(effect, ToolOutput { credential, ..output }, None)
        }
    }
}

fn failure(text: &str) -> Failure {
    let (status, delay) = text.split_once(' ').unwrap_or((text, ""));
    let kind = match status {
        "401" => FailureKind::Auth,
        "stream" => FailureKind::Stream,
        _ => FailureKind::Status,
    };
    let (status, retry_after_ms) = (status.parse().ok(), delay.parse().ok());
    let message = if delay == "long" { "prompt is too long: 9000 tokens > 8000 maximum" } else { "said the server" };
    let credential = Credential::new(CredentialOwner::Model, "p", None);
    let credential = Credential { is_outside: delay == "outside", ..credential };
    let credential = Some(credential).filter(|_| kind == FailureKind::Auth);
    let details = Box::new(Details { credential, ..Details::default() });
    Failure { status, retry_after_ms, details, ..Failure::new(kind, message) }
}

pub(super) fn question_line(about: &QuestionTopic) -> String {
    let QuestionTopic::Credential { call, credential, message } = about else { return String::new() };
    format!("Ask for {} ({call}): {message}", credential.key())
}

pub(super) fn order_line(effect: EffectId, it: &RenewalOrder) -> String {
    format!("#{} Renew {} for {}, asked: {}", effect.0, it.credential.key(), it.asker, it.is_asked)
}
