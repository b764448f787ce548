//! Prompts before they begin, and those that never do: what holds for the next one, words without a turn, cancels.

use super::{MAX_WAITING, OrderedModel, Session, WaitingPrompts, options::begin_prompt_options, settle_prompt};
use crate::{
    commands::{file_commands, is_own_command},
    policy,
    record::Step,
    step::StepOutput,
    turn::{
        SessionScratch, Turn,
        agents::session_agent::{find_session_agent, switched_prompts},
        endings::Cause,
        model::windows,
        steering,
    },
};
use castor_base::{
    clock::Now,
    content::{Part, PromptContent},
    event::{PromptOutcome, SteerOutcome, StopKind},
    file_prompt::Expansion,
    ids::PromptId,
    log::{Fact, Grant},
};

impl Session {
    /// The session goes on as castor's own where its agent is not there any more.
    pub(super) fn leave_lost_agent(&mut self, now: Now, out: &mut StepOutput) {
        let Some(agent) = self.record.chosen_agent() else { return };
        if find_session_agent(&self.agents(), agent).is_some() {
            return;
        }
        let why = "it is not there, or it is off; `/agents` lists those there are";
        let text = format!("This session continues without its agent {agent}: {why}.");
        self.scratch.preamble.notice(text);
        Step::new(&mut self.record, &mut self.serial, now, out).log(Fact::Agent { agent: None, definition: None });
    }

    /// What the prompt stands for, where it calls a command or a skill of files. Behind results words are words.
    pub(super) fn begin_expansion(&self, content: &mut PromptContent) -> Option<Expansion> {
        let typed = if content.results.is_empty() { &content.parts[..] } else { &[] };
        let prompts = switched_prompts(&self.folder.choices.prompts, &self.record);
        let res = file_commands::find_expansion(typed, &prompts, is_own_command)?;
        file_commands::choose_model(content, &res, &self.folder);
        Some(res)
    }

    /// What a prompt goes by from its beginning. Whether it may begin.
    pub(super) fn prepare_prompt(
        &mut self,
        prompt: PromptId,
        content: &PromptContent,
        now: Now,
        out: &mut StepOutput,
    ) -> bool {
        self.leave_lost_agent(now, out);
        self.renew_spec(now);
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        if let Some(OrderedModel { own, model }) = self.ordered_model.take() {
            step.log(windows::model_fact(&self.spec, &model));
            let why = "as castor was started with it";
            let text = format!("This session resumes with the model {model}, {why}; before, it was {own}.");
            self.scratch.preamble.notice(text);
        }
        revoke_void_grants(&mut step, &mut self.scratch);
        if let Err(why) = step.record.check_results(&content.results) {
            settle_prompt(&mut step, prompt, PromptOutcome::Failed { kind: "pending_calls", why });
            return false;
        }
        begin_prompt_options(&mut step, &self.spec, &content.options);
        if !content.options.host.is_empty() {
            self.renew_spec(now);
        }
        true
    }
}

const VOID_GRANT_NOTICE: &str = "This session once allowed the network to all commands. castor ignores that: an approval of the network now covers one command.";

/// What was allowed under an earlier version and means nothing any more. As with a model that was ordered: not before a
/// prompt, and said once.
fn revoke_void_grants(step: &mut Step<'_>, kept: &mut SessionScratch) {
    let void: Vec<Grant> = step.record.grants.iter().filter(|it| policy::is_void(it)).cloned().collect();
    if !void.is_empty() {
        void.into_iter().for_each(|grant| step.log(Fact::Revoked { grant }));
        kept.preamble.notice(VOID_GRANT_NOTICE.to_owned());
    }
}

/// Words for a turn that is not there: they begin one, or come back.
pub(super) fn steer_idle(
    step: &mut Step<'_>,
    waiting: &mut WaitingPrompts,
    (prompt, content): (PromptId, Vec<Part>),
    starts_turn: bool,
) {
    let outcome = match starts_turn && waiting.len() < MAX_WAITING {
        true => SteerOutcome::StartedNewTurn,
        false => SteerOutcome::PromptRequired(steering::NO_TURN.to_owned()),
    };
    if outcome == SteerOutcome::StartedNewTurn {
        waiting.push_back((prompt, content.into()));
    }
    steering::answer(step, prompt, outcome);
}

/// One prompt ends, running or waiting, or words for the turn.
pub(super) fn cancel_prompt(
    step: &mut Step<'_>,
    turn: Option<&mut Turn>,
    waiting: &mut WaitingPrompts,
    prompt: PromptId,
) {
    if let Some(turn) = turn {
        if turn.prompt() == prompt {
            return turn.end(step, Cause::Cancelled);
        }
        if turn.cancel_steering(step, prompt) {
            return;
        }
    }
    if let Some(at) = waiting.iter().position(|(it, _)| *it == prompt) {
        waiting.remove(at);
        settle_prompt(step, prompt, PromptOutcome::Stop(StopKind::Cancelled));
    }
}
