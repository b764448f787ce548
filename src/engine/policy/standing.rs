//! What a standing yes, for this session or for ever, spares: the mode's question, and one that a rule of the user's own
//! or of the workspace's wants for just that. Never a no, nor what an administrator wants to be asked about.

use std::path::Path;

use super::{
    decide::Opinion,
    prefixes,
    rules::{Matcher, Rule, Spelt, Tier},
    shell::Command,
};
use crate::base::log::{Decision, LASTING_FILE};

/// Where a yes stands, in thousandths: above what users usually write, as Gemini CLI's.
const PLACE: u32 = Tier::User as u32 * 1000 + 950;

impl Rule {
    /// A yes for ever.
    pub(super) fn is_saved(&self) -> bool {
        self.decision == Decision::Allow && Path::new(&self.source.file).ends_with(LASTING_FILE)
    }

    /// Whether no yes but to the call itself counts where this rule asks.
    pub(super) fn stands_above(&self) -> bool {
        let written_above = self.effective() >= PLACE && !self.is_broken();
        self.tier == Tier::Admin || written_above || self.tier == Tier::Default && self.is_specific()
    }

    /// Whether it asks about all that a yes to `prefix` is for. A wider yes was one to something else.
    pub(super) fn asks_of(&self, prefix: &str) -> bool {
        let leads = |it: &Vec<String>| {
            let mut words = prefix.split(' ');
            it.iter().all(|it| words.next() == Some(it))
        };
        match &self.matcher {
            Matcher::Prefixes(list) => list.iter().any(leads),
            Matcher::Command(it) => it.is_match(prefix),
            _ => !self.is_specific(),
        }
    }

    /// Whether what a yes for ever says is under this rule, which asks: else it is for something else.
    fn asks_of_saved(&self, saved: &Self, spelt: &Spelt) -> bool {
        match &saved.matcher {
            Matcher::Prefixes(list) => {
                let hits = |it: &&Vec<String>| prefixes::is_led(spelt.command(), it.iter());
                list.iter().filter(hits).any(|it| self.asks_of(&it.join(" ")))
            }
            _ => !self.is_specific(),
        }
    }

    /// Whether a yes for ever gives way to it: to what people deny, and to a question that the yes was none to.
    pub(super) fn is_before(&self, saved: &Self, spelt: Option<&Spelt>) -> bool {
        match self.decision {
            _ if self.tier == Tier::Default => false,
            Decision::Deny => true,
            Decision::Ask => !spelt.map_or(!self.is_specific(), |it| self.asks_of_saved(saved, it)),
            Decision::Allow => false,
        }
    }
}

/// The question of a rule, and whether a yes for longer would spare the next one: then it may be given.
pub(super) fn asked(opinion: Opinion, rule: Option<&Rule>, command: &Command) -> Opinion {
    let asks = rule.filter(|it| opinion.decision == Decision::Ask && it.decision == Decision::Ask && it.is_specific());
    let is_for_it = |rule: &Rule| {
        let yes = prefixes::grantable(std::iter::once(command));
        yes.is_some_and(|it| it.iter().all(|it| rule.asks_of(it)))
    };
    Opinion { firm: opinion.firm || asks.is_some_and(|it| !is_for_it(it)), ..opinion }
}
