//! How long the session works: time in which the user is waited for does not count. A limit of time ends a turn here.

use std::collections::BTreeSet;

use super::Session;
use crate::{
    base::{
        ids::{EffectId, QuestionId},
        limits::{Span, Used},
        log::Fact,
        now::Now,
    },
    engine::{
        record::Step,
        step::{Act, Effect, Input, Out},
        turn::{self, Turn, endings::Cause},
    },
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
    open: BTreeSet<QuestionId>,
    timer: Option<(EffectId, u64)>,
}

impl Clock {
    /// Before anything is done about an input: time went by until it came.
    pub fn hear(&mut self, input: &Input, now: Now) {
        if let Some(since) = &mut self.since {
            let passed = now.unix_ms.saturating_sub(std::mem::replace(since, now.unix_ms));
            self.ms += if self.open.is_empty() { passed } else { 0 };
        }
        match input {
            Input::Answered { question, .. } => _ = self.open.remove(question),
            Input::Woke { effect } => _ = self.timer.take_if(|(timer, _)| timer == effect),
            _ => (),
        }
    }

    /// What the user is asked, and no longer asked.
    fn note(&mut self, acts: &[Act]) {
        for act in acts {
            match act {
                Act::Do(_, Effect::Ask(question)) => _ = self.open.insert(question.id),
                Act::Do(_, Effect::Withdraw { question }) => _ = self.open.remove(question),
                _ => (),
            }
        }
    }
}

impl Session {
    /// The work of a turn that is over belongs to it, and not to the next one.
    pub(super) fn close_books(&mut self, now: Now, out: &mut Out) {
        let is_over = self.turn.as_ref().is_none_or(Turn::is_finished);
        if self.clock.ms > if is_over { 0 } else { STRIDE } {
            let ms = std::mem::take(&mut self.clock.ms);
            Step::new(&mut self.record, &mut self.serial, now, out).log(Fact::Worked { ms });
        }
        if is_over {
            (self.clock.since, self.clock.open) = Default::default();
        }
    }

    /// After all that was done about an input, from `start` on: does the turn have time left?
    pub(super) fn keep_time(&mut self, now: Now, out: &mut Out, start: usize) {
        self.clock.note(out.acts.get(start..).unwrap_or_default());
        let Some(turn) = &mut self.turn else { return };
        self.clock.since = Some(now.unix_ms);
        let limits = turn::limits(&self.record, &self.spec);
        let more = Used { ms: self.clock.ms, ..Used::default() };
        let used = [Span::Turn, Span::Session].map(|it| self.record.used(it).plus(more));
        let [of_turn, of_session] = &used;
        let Some(left) = limits.time_left(of_turn, of_session) else { return };
        let mut step = Step::new(&mut self.record, &mut self.serial, now, out);
        if left > 0 {
            let at_ms = now.unix_ms.saturating_add(left);
            let is_armed = self.clock.timer.is_some_and(|(_, at)| at <= at_ms);
            if !is_armed && self.clock.open.is_empty() {
                self.clock.timer = Some((step.effect(Effect::Wake { at_ms }), at_ms));
            }
            return;
        }
        // Other limits may be reached by now, too.
        let mut caps = limits;
        for it in [&mut caps.turn, &mut caps.session] {
            (it.requests, it.tokens, it.cost) = (None, None, None);
        }
        if let Some(it) = caps.reached(of_turn, of_session) {
            turn.end(&mut step, Cause::Limit(it));
            let start = out.acts.len();
            self.close_books(now, out);
            self.go_on(now, out, start);
            self.keep_time(now, out, start);
        }
    }
}
