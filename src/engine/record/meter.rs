//! The usage meter: what a turn and its session spent against their limits.

use castor_base::{
    limits::{LimitSpan, LimitUsage},
    model::Usage,
    money::Money,
};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct UsageMeter {
    before: LimitUsage,
    /// Since the last prompt.
    turn: LimitUsage,
    /// The same in the providers' words, all models together; `None`: none was asked.
    usage: Option<Usage>,
}

impl UsageMeter {
    pub fn begin_turn(&mut self) {
        self.before = self.before.plus(std::mem::take(&mut self.turn));
        self.usage = None;
    }

    pub fn count_request(&mut self) {
        self.turn.requests += 1;
    }

    pub fn add_usage(&mut self, usage: &Usage, cost: Option<Money>) {
        let tokens = usage.total.max(usage.input.saturating_add(usage.output));
        self.turn = self.turn.plus(LimitUsage { tokens, cost: cost.unwrap_or_default(), ..LimitUsage::default() });
        self.usage = Some(self.usage.map_or(*usage, |it| it.plus(usage)));
    }

    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    pub fn add_work(&mut self, ms: u64) {
        self.turn.ms = self.turn.ms.saturating_add(ms);
    }

    pub fn limit_usage(&self, span: LimitSpan) -> LimitUsage {
        match span {
            LimitSpan::Turn => self.turn,
            LimitSpan::Session => self.before.plus(self.turn),
        }
    }
}
