//! Questions of MCP servers that arose outside of a turn: they are asked at the beginning of the next one.

use std::sync::Arc;

use crate::turn::{
    flow::{Flow, Phase, Station},
    pseudo_call::{PseudoCall, PseudoCallKind},
    spec::TurnContext,
    state::TurnState,
};
use crate::{
    record::Step,
    scheduler::elicitation::{NOBODY, plain_name, reply, reply_to},
    step::{Input, QuestionTopic},
};
use castor_base::{
    elicitation::{ElicitationRequest, Reply},
    ids::ElicitationId,
    log::Answer,
    question::Form,
    text,
};

const QUESTION: PseudoCallKind = PseudoCallKind { name: "mcp_question", error: "not_answered" };
/// Longest title, in characters.
const TITLE: usize = 200;

/// The user has it before them.
#[derive(Debug)]
struct AskingForServer {
    id: ElicitationId,
    asked: PseudoCall,
    is_page: bool,
}

/// One after the other, as long as there are some.
pub(in crate::turn) fn ask_waiting(_: &mut TurnState, cx: &mut TurnContext<'_, '_>) -> Flow {
    let Some(waiting) = cx.scratch.preamble.take_question() else { return Flow::Next };
    if !cx.spec.toolbox.interactive {
        reply(cx.step, waiting.elicitation, Reply::Declined(Some(NOBODY.to_owned())));
        return Flow::Go(Station::Questions);
    }
    let says = |message: &str| format!("Server `{}` asks: {message}", plain_name(&waiting.server));
    let (id, is_page) = (waiting.elicitation, matches!(waiting.request, ElicitationRequest::Page { .. }));
    let asked = match waiting.request {
        ElicitationRequest::Form(form) => {
            let form = Form { message: says(&form.message), fields: form.fields };
            let title = text::first_line(&form.message, TITLE);
            QUESTION.ask_and_wait(cx.step, title, |call| QuestionTopic::Form { call: Some(call), form: Arc::new(form) })
        }
        ElicitationRequest::Page { message, url, .. } => {
            let message = says(&message);
            QUESTION.ask_and_wait(cx.step, text::first_line(&message, TITLE), |call| QuestionTopic::Link {
                call: Some(call),
                message,
                url,
                elicitation: id.to_string(),
            })
        }
    };
    Flow::wait(AskingForServer { id, asked, is_page })
}

impl Phase for AskingForServer {
    fn step(self: Box<Self>, _: &mut TurnState, cx: &mut TurnContext<'_, '_>, input: Input) -> Flow {
        match input {
            Input::Answered { question, answer } if self.asked.is_about(question) => {
                self.take_answer(cx.step, &answer);
                Flow::Go(Station::Questions)
            }
            Input::ElicitationWithdrawn { elicitation } if elicitation == self.id => {
                self.asked.withdraw(cx.step, "The server took it back.");
                Flow::Go(Station::Questions)
            }
            other => Flow::Unrelated(self, other),
        }
    }

    fn leave(&mut self, step: &mut Step<'_>) {
        self.asked.withdraw(step, "The turn ended before.");
        reply(step, self.id, Reply::Cancelled(Some("the user cancelled the turn".to_owned())));
    }
}

impl AskingForServer {
    /// What was answered is in no log: it is the server's.
    fn take_answer(&self, step: &mut Step<'_>, answer: &Answer) {
        self.asked.resume(step);
        let (said, why) = reply_to(answer, self.is_page);
        let (text, failed) = match (&said, why) {
            (Reply::Accepted(_), _) => ("Answered.".to_owned(), false),
            (_, Some(why)) => (format!("Not answered: {why}."), true),
            _ => ("Not answered.".to_owned(), true),
        };
        self.asked.end(step, &text, failed);
        reply(step, self.id, said);
    }
}
