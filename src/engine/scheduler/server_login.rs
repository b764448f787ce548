//! A login at an MCP server that is under way: the page before the user, and how it ends.

use crate::{
    record::Step,
    step::{Effect, Input, QuestionTopic, UserQuestion},
};
use castor_base::{
    ids::{EffectId, QuestionId},
    log::Answer,
    server_order::{ServerOrder, ServerVerb},
    text,
};

#[derive(Clone, Debug, PartialEq)]
pub struct ServerLogin {
    effect: EffectId,
    server: String,
    /// The page that the user has before them.
    page: Option<(QuestionId, String)>,
}

/// News for a login.
#[derive(Debug)]
pub enum LoginNews {
    /// Nothing.
    Unrelated(Input),
    /// It goes on.
    Open,
    /// The client cannot show the page of this address. It goes on.
    Unshown(String),
    /// It is over: what came of it, in words.
    Ended(Result<String, String>),
    /// The user wants the turn to end.
    Cancelled,
}

const DECLINED: &str = "you declined the login";

impl ServerLogin {
    pub fn begin(step: &mut Step<'_>, server: &str) -> Self {
        let order = ServerOrder { verb: ServerVerb::Login, server: server.to_owned() };
        let effect = step.start_effect(Effect::ManageServer(Box::new(order)));
        Self { effect, server: server.to_owned(), page: None }
    }

    pub fn take(&mut self, step: &mut Step<'_>, input: Input) -> LoginNews {
        match input {
            Input::ServerPage { effect, url, page } if effect == self.effect => {
                self.show(step, url, page);
                LoginNews::Open
            }
            Input::ServerManaged { effect, result, .. } if effect == self.effect => {
                self.withdraw_page(step);
                LoginNews::Ended(result)
            }
            Input::Answered { question, ref answer } => match self.page.take_if(|it| it.0 == question) {
                Some((_, url)) => self.take_answer(step, answer, url),
                None => LoginNews::Unrelated(input),
            },
            other => LoginNews::Unrelated(other),
        }
    }

    /// Nobody waits for it any more.
    pub fn abort(&mut self, step: &mut Step<'_>) {
        self.withdraw_page(step);
        step.start_effect(Effect::Abort { effect: self.effect });
    }

    fn show(&mut self, step: &mut Step<'_>, url: String, elicitation: String) {
        let id = step.new_question_id();
        let server = text::first_line(&self.server, 100);
        let message =
            format!("MCP server `{server}` needs a login. This page lets castor in; it comes back by itself.");
        let about = QuestionTopic::Link { call: None, message, url: url.clone(), elicitation };
        self.page = Some((id, url));
        step.start_effect(Effect::AskUser(Box::new(UserQuestion { id, about })));
    }

    fn withdraw_page(&mut self, step: &mut Step<'_>) {
        if let Some((question, _)) = self.page.take() {
            step.start_effect(Effect::WithdrawQuestion { question });
        }
    }

    fn take_answer(&mut self, step: &mut Step<'_>, answer: &Answer, url: String) -> LoginNews {
        match answer {
            // The page is open; the login is done when it comes back.
            Answer::Accepted { .. } => LoginNews::Open,
            Answer::Cancelled => {
                self.abort(step);
                LoginNews::Cancelled
            }
            Answer::Declined | Answer::Reject | Answer::Dismissed => {
                self.abort(step);
                LoginNews::Ended(Err(DECLINED.to_owned()))
            }
            _ => LoginNews::Unshown(url),
        }
    }
}
