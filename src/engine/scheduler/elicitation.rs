//! Elicitations of MCP servers during a call, or while they are asked for a prompt or a resource. The answer goes to the
//! server alone and is in no log.

use std::sync::Arc;

use crate::{
    record::Step,
    scheduler::{
        BatchStatus, Scheduler,
        call::CallState,
        toolbox::{CallContext, Toolbox},
    },
    step::{Effect, QuestionTopic, UserQuestion},
};
use castor_base::{
    elicitation::{ElicitationRequest, Reply},
    ids::{CallId, EffectId, ElicitationId, QuestionId},
    log::Answer,
    question::Form,
    text,
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
    /// The calls that it may be for: it ends with the last of them.
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

/// A server that is asked for a prompt or a resource.
#[derive(Debug)]
pub(super) struct RunningQuery {
    effect: EffectId,
    server: String,
}

/// Something that runs at a server, and may be what the server asks for.
#[derive(Debug)]
pub struct RunningWork {
    pub effect: EffectId,
    pub server: String,
    /// `None`: no call of the model's.
    call: Option<CallId>,
}

impl Scheduler {
    pub fn begin_query(&mut self, effect: EffectId, server: &str) {
        self.query = Some(RunningQuery { effect, server: server.to_owned() });
    }

    pub fn end_query(&mut self, step: &mut Step<'_>, effect: EffectId) {
        self.query.take_if(|it| it.effect == effect);
        self.end_elicitations_of(step, effect);
    }

    /// The calls of these that are running.
    pub fn running_work(&self, tools: &Toolbox, effects: &[EffectId]) -> Vec<RunningWork> {
        let calls = self.calls.iter().filter_map(|it| match it.state {
            CallState::Running { effect } => {
                let server = tools.server_of_call(&it.call).unwrap_or_default();
                Some(RunningWork { effect, server, call: Some(it.call.id.clone()) })
            }
            _ => None,
        });
        let query =
            self.query.iter().map(|it| RunningWork { effect: it.effect, server: it.server.clone(), call: None });
        calls.chain(query).filter(|it| effects.contains(&it.effect)).collect()
    }

    /// A server asks, for one of these.
    pub(super) fn on_elicitation(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        id: ElicitationId,
        calls: &[EffectId],
        wanted: ElicitationRequest,
    ) {
        let running = self.running_work(cx.tools, calls);
        let Some(first) = running.first() else { return cancel_elicitation(cx.step, id) };
        let says = |message: &str| format!("Server `{}` asks: {message}", plain_name(&first.server));
        // Where it may be for several, the client is told of none.
        let call = first.call.clone().filter(|_| running.len() == 1);
        let is_page = matches!(wanted, ElicitationRequest::Page { .. });
        let about = match wanted {
            ElicitationRequest::Form(form) => {
                QuestionTopic::Form { call, form: Arc::new(Form { message: says(&form.message), fields: form.fields }) }
            }
            ElicitationRequest::Page { message, url, .. } => {
                QuestionTopic::Link { call, message: says(&message), url, elicitation: id.to_string() }
            }
        };
        let calls: Vec<EffectId> = running.iter().map(|it| it.effect).collect();
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

    /// Notes why a server's question has no answer: the server may report that wrongly or not at all.
    fn note(&mut self, calls: &[EffectId], why: &str) {
        for it in &mut self.calls {
            if matches!(it.state, CallState::Running { effect } if calls.contains(&effect)) {
                it.note(format!("The server asked the user something and got no answer: {why}."));
            }
        }
    }
}

/// The server's reply to an answer, and the reason why it is none, where the user did not say so.
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

/// A server's name between backticks.
pub fn plain_name(server: &str) -> String {
    let plain: String = server.chars().filter(|it| *it != '`' && !text::is_deceptive(*it)).collect();
    text::first_line(&plain, 100)
}
