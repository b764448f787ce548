//! Elicitations of MCP servers during a call. The answer goes to the server alone and is in no log.

use std::sync::Arc;

use crate::{
    base::{
        elicitation::{ElicitationRequest, Reply},
        ids::{EffectId, ElicitationId, QuestionId},
        log::Answer,
        question::Form,
        text,
        tool::ToolCall,
    },
    engine::{
        record::Step,
        scheduler::{BatchStatus, Scheduler, call::CallState, toolbox::CallContext},
        step::{Effect, QuestionTopic, UserQuestion},
    },
};

const OVER: &str = "the call that it was for is over";
pub const NOBODY: &str = "nobody is there to be asked";
const UNSHOWN: &str = "the user's client cannot show this question";
const UNABLE: &str = "the user's client could not ask";

/// A question of a server that the user has before them.
#[derive(Debug)]
pub(super) struct OpenElicitation {
    id: ElicitationId,
    question: QuestionId,
    /// The running calls that it may be for: it ends with the last of them.
    calls: Vec<EffectId>,
    is_page: bool,
}

impl OpenElicitation {
    fn withdraw(&self, step: &mut Step<'_>) {
        step.start_effect(Effect::WithdrawQuestion { question: self.question });
        reply(step, self.id, Reply::Cancelled(Some(OVER.to_owned())));
    }
}

/// No call that it could be for is running any more.
pub fn cancel_elicitation(step: &mut Step<'_>, id: ElicitationId) {
    reply(step, id, Reply::Cancelled(Some(OVER.to_owned())));
}

pub fn reply(step: &mut Step<'_>, elicitation: ElicitationId, reply: Reply) {
    step.start_effect(Effect::AnswerElicitation { elicitation, reply });
}

impl Scheduler {
    /// Those of these that are running.
    pub fn running_calls(&self, calls: &[EffectId]) -> Vec<(EffectId, &ToolCall)> {
        let running = self.calls.iter().filter_map(|it| match it.state {
            CallState::Running { effect } if calls.contains(&effect) => Some((effect, &it.call)),
            _ => None,
        });
        running.collect()
    }

    /// A server asks, for one of these calls.
    pub(super) fn on_elicitation(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        id: ElicitationId,
        calls: &[EffectId],
        wanted: ElicitationRequest,
    ) {
        let running = self.running_calls(calls);
        let Some((_, first)) = running.first() else { return cancel_elicitation(cx.step, id) };
        let server = cx.tools.server_of_call(first).unwrap_or_default();
        let says = |message: &str| format!("Server `{}` asks: {message}", plain_name(&server));
        // Where it may be for several, the client is told of none.
        let call = (running.len() == 1).then(|| first.id.clone());
        let is_page = matches!(wanted, ElicitationRequest::Page { .. });
        let about = match wanted {
            ElicitationRequest::Form(form) => {
                QuestionTopic::Form { call, form: Arc::new(Form { message: says(&form.message), fields: form.fields }) }
            }
            ElicitationRequest::Page { message, url, .. } => {
                QuestionTopic::Link { call, message: says(&message), url, elicitation: id.to_string() }
            }
        };
        let calls: Vec<EffectId> = running.iter().map(|(effect, _)| *effect).collect();
        if !cx.tools.interactive {
            self.note(&calls, NOBODY);
            return reply(cx.step, id, Reply::Declined(Some(NOBODY.to_owned())));
        }
        let question = cx.step.new_question_id();
        cx.step.start_effect(Effect::AskUser(Box::new(UserQuestion { id: question, about })));
        self.elicitations.push(OpenElicitation { id, question, calls, is_page });
    }

    /// The server no longer wants to know.
    pub(super) fn on_elicitation_withdrawn(&mut self, step: &mut Step<'_>, id: ElicitationId) {
        if let Some(at) = self.elicitations.iter().position(|it| it.id == id) {
            let question = self.elicitations.remove(at).question;
            step.start_effect(Effect::WithdrawQuestion { question });
        }
    }

    /// `None`: the question is not a server's.
    pub(super) fn on_elicitation_answer(
        &mut self,
        step: &mut Step<'_>,
        question: QuestionId,
        answer: &Answer,
    ) -> Option<BatchStatus> {
        let at = self.elicitations.iter().position(|it| it.question == question)?;
        let OpenElicitation { id, calls, is_page, .. } = self.elicitations.remove(at);
        let (said, why) = reply_to(answer, is_page);
        if let Some(why) = why {
            self.note(&calls, &why);
        }
        reply(step, id, said);
        Some(if *answer == Answer::Cancelled { BatchStatus::TurnCancelled } else { BatchStatus::Open })
    }

    /// Questions that were for this call, and for no other, go with it.
    pub(super) fn end_elicitations_of(&mut self, step: &mut Step<'_>, effect: EffectId) {
        self.elicitations.iter_mut().for_each(|it| it.calls.retain(|it| *it != effect));
        let (over, open) = std::mem::take(&mut self.elicitations).into_iter().partition(|it| it.calls.is_empty());
        self.elicitations = open;
        let over: Vec<OpenElicitation> = over;
        over.iter().for_each(|it| it.withdraw(step));
    }

    pub(super) fn withdraw_elicitations(&mut self, step: &mut Step<'_>) {
        std::mem::take(&mut self.elicitations).iter().for_each(|it| it.withdraw(step));
    }

    /// What the server says of it may be wrong or nothing: the model learns why it got no answer.
    fn note(&mut self, calls: &[EffectId], why: &str) {
        for it in &mut self.calls {
            if matches!(it.state, CallState::Running { effect } if calls.contains(&effect)) {
                it.note(format!("The server asked the user something and got no answer: {why}."));
            }
        }
    }
}

/// What an answer is for the server, and why it is none, where the user did not say so.
pub fn reply_to(answer: &Answer, is_page: bool) -> (Reply, Option<String>) {
    match answer {
        Answer::Accepted { content } => (Reply::Accepted((!is_page).then(|| content.clone())), None),
        Answer::Declined | Answer::Reject => (Reply::Declined(None), None),
        Answer::Dismissed => (Reply::Cancelled(None), None),
        Answer::Cancelled => (Reply::Cancelled(Some("the user cancelled the turn".to_owned())), None),
        Answer::Unfit { why } => {
            let why = format!("the client's answer does not fit the question: {why}");
            (Reply::Cancelled(Some(why.clone())), Some(why))
        }
        other => {
            let why = if *other == Answer::InText || is_page { UNSHOWN } else { UNABLE }.to_owned();
            let said = if is_page { Reply::Refused(why.clone()) } else { Reply::Cancelled(Some(why.clone())) };
            (said, Some(why))
        }
    }
}

/// As a name between backticks.
pub fn plain_name(server: &str) -> String {
    let plain: String = server.chars().filter(|it| *it != '`' && !text::is_deceptive(*it)).collect();
    text::first_line(&plain, 100)
}
