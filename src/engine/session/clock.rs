//! Working time of a session, without the time spent waiting for the user. The time limit ends a turn here.

use std::collections::BTreeSet;

use super::Session;
use crate::{
    record::Step,
    step::{Act, Effect, Input, StepOutput},
    turn::{Turn, TurnContext, endings::Cause},
};
use castor_base::{
    clock::Now,
    ids::{EffectId, QuestionId},
    limits::{LimitSpan, LimitUsage},
    log::Fact,
};

/// A log has no more than one entry for each such span of work, in milliseconds.
const STRIDE: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Clock {
    /// Until when time was counted; `None`: nothing runs.
    since: Option<u64>,
    /// Worked, and not in the log yet.
    ms: u64,
    /// Questions that the user has before them.
    open_questions: BTreeSet<QuestionId>,
    /// Calls whose sub-agents wait for the user.
    waiting_children: BTreeSet<EffectId>,
    timer: Option<(EffectId, u64)>,
}

impl Clock {
    /// Before anything is done about an input: time went by until it came.
    pub fn count_time(&mut self, input: &Input, now: Now) {
        if let Some(since) = &mut self.since {
            let passed = now.unix_ms.saturating_sub(std::mem::replace(since, now.unix_ms));
            self.ms += if self.is_waiting() { 0 } else { passed };
        }
        match input {
            Input::ChildWaits { effect, waits: true } => _ = self.waiting_children.insert(*effect),
            Input::ChildWaits { effect, waits: false } | Input::RunEnded { effect, .. } => {
                self.waiting_children.remove(effect);
            }
            Input::Answered { question, .. } => _ = self.open_questions.remove(question),
            Input::TimerFired { effect } => _ = self.timer.take_if(|(timer, _)| timer == effect),
            _ => (),
        }
    }

    /// Tells whether the user has a question to answer, of this session or of a sub-agent.
    fn is_waiting(&self) -> bool {
        !self.open_questions.is_empty() || !self.waiting_children.is_empty()
    }

    /// What the user is asked, and no longer asked.
    fn track_questions(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Do(_, Effect::AskUser(question)) => _ = self.open_questions.insert(question.id),
                Act::Do(_, Effect::Abort { effect }) => _ = self.waiting_children.remove(effect),
                Act::Do(_, Effect::WithdrawQuestion { question }) => _ = self.open_questions.remove(question),
                _ => (),
            }
        }
    }
}

impl Session {
    /// The work of a turn that is over belongs to it, and not to the next one.
    pub(super) fn log_work(&mut self, now: Now, out: &mut StepOutput) {
        let is_over = self.turn.as_ref().is_none_or(Turn::is_finished);
        if self.clock.ms > if is_over { 0 } else { STRIDE } {
            let ms = std::mem::take(&mut self.clock.ms);
            Step::new(&mut self.record, &mut self.serial, now, out).log(Fact::Worked { ms });
        }
        if is_over {
            (self.clock.since, self.clock.open_questions, self.clock.waiting_children) = Default::default();
        }
    }

    /// After all that was done about an input, from `start` on: does the turn have time left?
    pub(super) fn check_time_limit(&mut self, now: Now, out: &mut StepOutput, start: usize) {
        self.clock.track_questions(out.acts.get(start..).unwrap_or_default());
        let Some(turn) = &mut self.turn else { return };
        self.clock.since = Some(now.unix_ms);
        let limits = turn.limits(&self.record, &self.spec);
        let more = LimitUsage { ms: self.clock.ms, ..LimitUsage::default() };
        let used = [LimitSpan::Turn, LimitSpan::Session].map(|it| self.record.limit_usage(it).plus(more));
        let [of_turn, of_session] = &used;
        let Some(left) = limits.time_left(of_turn, of_session) else { return };
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        if left > 0 {
            let at_ms = now.unix_ms.saturating_add(left);
            let is_armed = self.clock.timer.is_some_and(|(_, at)| at <= at_ms);
            if !is_armed && !self.clock.is_waiting() {
                self.clock.timer = Some((step.start_effect(Effect::SetTimer { at_ms }), at_ms));
            }
            return;
        }
        // Other limits may be reached by now, too.
        let mut caps = limits;
        for it in [&mut caps.turn, &mut caps.session] {
            (it.requests, it.tokens, it.cost) = (None, None, None);
        }
        if let Some(it) = caps.first_reached(of_turn, of_session) {
            let cx = &mut TurnContext { step: &mut step, spec: &self.spec, scratch: &mut self.scratch };
            turn.run_out(cx, Cause::Limit(it));
            let start = out.acts.len();
            self.log_work(now, out);
            self.begin_next_prompt(now, out, start);
            self.check_time_limit(now, out, start);
        }
    }
}
