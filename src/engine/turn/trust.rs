//! The question about the folder: put before anything else of the turn, as a call that only the user sees.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::{
    base::{
        content::Part,
        event::{EventKind, ToolDisplay},
        ids::{CallId, EffectId, QuestionId},
        log::{Answer, Fact},
        question::Form,
        text,
        tool::{ToolError, ToolKind},
        trust::TrustChoice,
    },
    engine::{
        record::{COMMAND, Step},
        step::{About, Effect, Question},
    },
};

const NAME: &str = "trust_folder";
/// Longest title, in characters.
const TITLE: usize = 500;

/// The user has it before them.
#[derive(Debug)]
pub(super) struct Asked {
    pub question: QuestionId,
    call: CallId,
}

/// A decision that is being written down.
#[derive(Debug)]
pub(super) struct Joining {
    call: CallId,
    choice: TrustChoice,
}

pub(super) fn ask(step: &mut Step<'_>, form: Arc<Form>) -> Asked {
    let call = CallId::from(step.fresh("q"));
    let title = text::first_line(form.message.split_inclusive('?').next().unwrap_or_default(), TITLE);
    let display = ToolDisplay { title, kind: ToolKind::Other, locations: Vec::new() };
    let (request_id, name) = (call.clone(), NAME.to_owned());
    step.event_with(EventKind::ToolRequest { request_id, name, args: json!({}), display, signature: None }, ours());
    let question = step.question();
    let about = About::Trust { call: call.clone(), form };
    step.effect(Effect::Ask(Box::new(Question { id: question, about })));
    Asked { question, call }
}

impl Asked {
    pub fn withdraw(&self, step: &mut Step<'_>) {
        step.effect(Effect::Withdraw { question: self.question });
        end(step, &self.call, "The question was withdrawn; the next prompt asks again.", true);
    }

    /// `None`: nothing changes.
    pub fn answered(self, step: &mut Step<'_>, answer: Answer) -> Option<(EffectId, Joining)> {
        let chosen = match &answer {
            Answer::Accepted { content } => content.get(TrustChoice::FIELD).and_then(Value::as_str),
            _ => None,
        };
        let choice = chosen.and_then(TrustChoice::parse).unwrap_or(TrustChoice::NotNow);
        step.log(Fact::Trust { choice, answer });
        if choice == TrustChoice::NotNow {
            end(step, &self.call, "Not now: what was asked about is not used in this session.", true);
            return None;
        }
        Some((step.effect(Effect::Trust(choice)), Joining { call: self.call, choice }))
    }
}

impl Joining {
    /// The turn is over before anybody knows: what was said is carried out all the same.
    pub fn leave(&self, step: &mut Step<'_>) {
        end(step, &self.call, "The turn was cancelled; `castor trust why` tells what holds.", true);
    }

    pub fn end(&self, step: &mut Step<'_>, result: Result<(), String>) {
        match (result, self.choice) {
            (Err(why), _) => {
                end(step, &self.call, &format!("Not trusted: the decision could not be written down: {why}"), true);
            }
            (Ok(()), TrustChoice::Never) => {
                end(step, &self.call, "Never trusted; `castor trust` takes that back.", true);
            }
            (Ok(()), _) => end(step, &self.call, "Trusted; `castor trust --revoke` takes that back.", false),
        }
    }
}

fn end(step: &mut Step<'_>, call: &CallId, text: &str, failed: bool) {
    let error = failed.then(|| ToolError::new("not_trusted", text));
    let response = EventKind::ToolResponse {
        request_id: call.clone(),
        name: NAME.to_owned(),
        content: vec![Part::text(text)],
        display: None,
        summary: None,
        error,
        data: Value::Null,
    };
    step.event_with(response, ours());
}

fn ours() -> Map<String, Value> {
    Map::from_iter([(COMMAND.to_owned(), true.into())])
}
