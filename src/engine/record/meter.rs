//! What a session used up of what may be limited, and the turn at hand of it.

use crate::base::{
    limits::{Span, Used},
    model::Usage,
    money::Money,
};

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Meter {
    before: Used,
    /// Since the last prompt.
    turn: Used,
    /// The same in the providers' words, all models together; `None`: none was asked.
    usage: Option<Usage>,
}

impl Meter {
    pub fn begin_turn(&mut self) {
        self.before = self.before.plus(std::mem::take(&mut self.turn));
        self.usage = None;
    }

    pub fn request(&mut self) {
        self.turn.requests += 1;
    }

    pub fn bill(&mut self, usage: &Usage, cost: Option<Money>) {
        let tokens = usage.total.max(usage.input.saturating_add(usage.output));
        self.turn = self.turn.plus(Used { tokens, cost: cost.unwrap_or_default(), ..Used::default() });
        self.usage = Some(self.usage.map_or(*usage, |it| it.plus(usage)));
    }

    pub fn usage(&self) -> Option<Usage> {
        self.usage
    }

    pub fn worked(&mut self, ms: u64) {
        self.turn.ms = self.turn.ms.saturating_add(ms);
    }

    pub fn used(&self, span: Span) -> Used {
        match span {
            Span::Turn => self.turn,
            Span::Session => self.before.plus(self.turn),
        }
    }
}
