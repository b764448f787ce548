//! Timers of sessions.

use std::{cmp::Reverse, collections::BinaryHeap};

use castor_base::ids::{EffectId, SessionId};

/// What is due when. Stale timers are ignored by whom they wake.
#[derive(Default)]
pub struct Timers {
    heap: BinaryHeap<Reverse<(u64, SessionId, EffectId)>>,
}

impl Timers {
    pub fn add(&mut self, at_ms: u64, session: SessionId, effect: EffectId) {
        self.heap.push(Reverse((at_ms, session, effect)));
    }

    pub fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the next one is due, in Unix milliseconds.
    pub fn next_ms(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    pub fn pop_due(&mut self, now_ms: u64) -> Option<(SessionId, EffectId)> {
        self.next_ms().filter(|at| *at <= now_ms)?;
        self.heap.pop().map(|Reverse((_, session, effect))| (session, effect))
    }
}
