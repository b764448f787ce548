//! A call whose server refuses its credential: the question about another one, and the second run with it.

use crate::{
    record::Step,
    scheduler::{
        BatchStatus, Scheduler,
        call::{Call, CallState, RefusedCall, RenewalStage},
        server_login::{LoginNews, ServerLogin},
        toolbox::CallContext,
    },
    step::{Effect, Input, QuestionTopic, UserQuestion},
};
use castor_base::{
    credential::{Credential, RenewalOrder},
    event::ToolProgress,
    ids::EffectId,
    log::Answer,
    text,
    tool::ToolOutput,
};

impl RefusedCall {
    /// Nobody waits for the answer any more.
    pub(super) fn withdraw(&self, step: &mut Step<'_>) {
        match &self.stage {
            RenewalStage::Asking(question) => {
                step.start_effect(Effect::WithdrawQuestion { question: *question });
            }
            RenewalStage::LoggingIn(login) => login.clone().abort(step),
            RenewalStage::Reading(_) => (),
        }
    }
}

impl Call {
    /// Asks for another credential, and keeps the output. Gives it back where nothing is asked.
    pub fn ask_renewal(&mut self, cx: &mut CallContext<'_, '_>, mut output: ToolOutput) -> Option<ToolOutput> {
        let credential = output.credential.take().filter(|_| cx.tools.renews_credentials && !self.is_renewed);
        let Some(mut credential) = credential else { return Some(output) };
        let server = cx.tools.foreign_tool(&self.call.name).map(|it| it.server.clone());
        if let Some(it) = &server {
            credential.name = text::first_line(it, 100);
        }
        if credential.can_log_in {
            let Some(server) = server.filter(|_| cx.tools.opens_pages()) else { return Some(output) };
            self.is_renewed = true;
            self.send_progress(cx.step, ToolProgress::Waiting);
            let stage = RenewalStage::LoggingIn(ServerLogin::begin(cx.step, &server));
            let output = Box::new(output);
            self.state =
                CallState::Unauthorized(Box::new(RefusedCall { credential, output, is_repeated: false, stage }));
            return None;
        }
        self.is_renewed = true;
        self.put_question(cx, credential, Box::new(output), false);
        None
    }

    fn put_question(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        credential: Box<Credential>,
        output: Box<ToolOutput>,
        is_repeated: bool,
    ) {
        let name = &credential.name;
        let why =
            format!("MCP server {name:?} answers 401: it wants another token. Its `headers` in the settings have it.");
        let message = credential.question(&why, is_repeated);
        let id = cx.step.new_question_id();
        let about = QuestionTopic::Credential { call: self.call.id.clone(), credential: credential.clone(), message };
        self.send_progress(cx.step, ToolProgress::Waiting);
        cx.step.start_effect(Effect::AskUser(Box::new(UserQuestion { id, about })));
        let stage = RenewalStage::Asking(id);
        self.state = CallState::Unauthorized(Box::new(RefusedCall { credential, output, is_repeated, stage }));
    }

    /// The user's word on the credential.
    pub(super) fn on_renewal_answer(&mut self, cx: &mut CallContext<'_, '_>, answer: &Answer) -> BatchStatus {
        let CallState::Unauthorized(mut refused) = std::mem::replace(&mut self.state, CallState::Done) else {
            return BatchStatus::Open;
        };
        match answer {
            Answer::Accepted { .. } => {
                self.send_progress(cx.step, ToolProgress::Resumed);
                let (credential, asker) = ((*refused.credential).clone(), self.call.name.clone());
                let order = RenewalOrder { credential, asker, is_asked: true };
                let effect = cx.step.start_effect(Effect::RenewCredential(Box::new(order)));
                refused.stage = RenewalStage::Reading(effect);
                self.state = CallState::Unauthorized(refused);
                BatchStatus::Open
            }
            Answer::Cancelled => {
                self.end(cx.step, *refused.output);
                BatchStatus::TurnCancelled
            }
            _ => {
                self.end(cx.step, *refused.output);
                BatchStatus::Open
            }
        }
    }

    /// Something that may be about the login that it waits for.
    fn on_login(&mut self, cx: &mut CallContext<'_, '_>, input: Input) -> LoginStep {
        let CallState::Unauthorized(refused) = &mut self.state else { return LoginStep::Unrelated(input) };
        let RenewalStage::LoggingIn(login) = &mut refused.stage else { return LoginStep::Unrelated(input) };
        match login.take(cx.step, input) {
            LoginNews::Unrelated(other) => LoginStep::Unrelated(other),
            LoginNews::Open => LoginStep::Taken(BatchStatus::Open),
            LoginNews::Ended(Ok(_)) => {
                self.send_progress(cx.step, ToolProgress::Resumed);
                self.checkpoint_then_run(cx, None);
                LoginStep::Taken(BatchStatus::Open)
            }
            news => {
                let is_cancelled = matches!(news, LoginNews::Cancelled);
                if let LoginNews::Unshown(_) = news {
                    login.abort(cx.step);
                }
                let output = std::mem::take(&mut *refused.output);
                self.end(cx.step, output);
                LoginStep::Taken(if is_cancelled { BatchStatus::TurnCancelled } else { BatchStatus::Open })
            }
        }
    }

    /// It was read again. A client may accept as soon as the page is open: where nothing is new, the user is asked once
    /// more; after that the call is made all the same.
    fn on_renewed(&mut self, cx: &mut CallContext<'_, '_>, changed: bool) {
        let CallState::Unauthorized(refused) = std::mem::replace(&mut self.state, CallState::Done) else { return };
        let RefusedCall { credential, output, is_repeated, .. } = *refused;
        match changed || is_repeated {
            true => self.checkpoint_then_run(cx, None),
            false => self.put_question(cx, credential, output, true),
        }
    }
}

/// What came of an input that may be about a login.
pub(super) enum LoginStep {
    Unrelated(Input),
    Taken(BatchStatus),
}

impl Scheduler {
    /// Gives back what is about no login of a call.
    pub(super) fn on_login(&mut self, cx: &mut CallContext<'_, '_>, mut input: Input) -> LoginStep {
        let waits = |it: &&mut Call| matches!(&it.state, CallState::Unauthorized(it) if matches!(it.stage, RenewalStage::LoggingIn(_)));
        for call in self.calls.iter_mut().filter(waits) {
            match call.on_login(cx, input) {
                LoginStep::Unrelated(it) => input = it,
                LoginStep::Taken(BatchStatus::Open) => return LoginStep::Taken(self.advance(cx)),
                taken => return taken,
            }
        }
        LoginStep::Unrelated(input)
    }

    pub(super) fn on_credential_renewed(
        &mut self,
        cx: &mut CallContext<'_, '_>,
        effect: EffectId,
        changed: bool,
    ) -> BatchStatus {
        let is_it =
            |it: &CallState| matches!(it, CallState::Unauthorized(it) if it.stage == RenewalStage::Reading(effect));
        match self.find(is_it) {
            Some((_, call)) => call.on_renewed(cx, changed),
            None => return BatchStatus::Open,
        }
        self.advance(cx)
    }
}
