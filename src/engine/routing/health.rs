//! Model health: which models are available now, as a state machine over their failures.

use std::collections::BTreeMap;

use castor_base::fallback::{Outage, OutageCause};

/// A model without capacity is looked at again after this.
pub const CAPACITY_MS: u64 = 30_000;

/// The health of models. A model that is not in it is available.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Health {
    /// Outages of the process: other sessions found them out, too.
    outages: BTreeMap<String, Outage>,
    /// Models of this session with one attempt in each turn, and whether this turn's is used up.
    sticky: BTreeMap<String, bool>,
}

/// The answer for one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    Available,
    /// It failed in an earlier turn: one attempt, then another model.
    OneAttempt,
    /// Its attempt of this turn is used up.
    AttemptUsed,
    Unavailable(OutageCause),
}

impl Availability {
    pub fn can_be_asked(self) -> bool {
        matches!(self, Self::Available | Self::OneAttempt)
    }
}

/// The API takes both spellings.
fn key(model: &str) -> &str {
    model.trim_start_matches("models/")
}

impl Health {
    pub fn availability(&self, model: &str, now_ms: u64) -> Availability {
        match (self.outages.get(key(model)).filter(|it| !it.is_over(now_ms)), self.sticky.get(key(model))) {
            (Some(it), _) => Availability::Unavailable(it.cause),
            (None, Some(true)) => Availability::AttemptUsed,
            (None, Some(false)) => Availability::OneAttempt,
            (None, None) => Availability::Available,
        }
    }

    /// Takes all outages that the process knows by now.
    pub fn set_outages(&mut self, outages: BTreeMap<String, Outage>) {
        self.outages = outages.into_iter().map(|(model, it)| (key(&model).to_owned(), it)).collect();
    }

    pub fn mark_out(&mut self, model: &str, outage: Outage) {
        self.outages.insert(key(model).to_owned(), outage);
    }

    /// It failed for now; from the next turn on it gets one attempt.
    pub fn mark_sticky(&mut self, model: &str) {
        if !self.outages.contains_key(key(model)) {
            self.sticky.insert(key(model).to_owned(), true);
        }
    }

    /// It answered, or the user chose it. Whether anything was known against it.
    pub fn mark_available(&mut self, model: &str) -> bool {
        self.sticky.remove(key(model));
        self.outages.remove(key(model)).is_some()
    }

    /// A prompt of the user begins; what a model is asked within its turn does not.
    pub fn begin_turn(&mut self) {
        self.sticky.values_mut().for_each(|it| *it = false);
    }

    /// The first that can be asked.
    pub fn first_available<'m>(&self, mut models: impl Iterator<Item = &'m str>, now_ms: u64) -> Option<&'m str> {
        models.find(|it| self.availability(it, now_ms).can_be_asked())
    }
}

#[cfg(test)]
mod tests {
    use super::{Availability, CAPACITY_MS, Health};
    use castor_base::fallback::{Outage, OutageCause};

    #[test]
    fn an_outage_ends_at_its_time_or_never() {
        let mut health = Health::default();
        health.mark_out("models/a", Outage { cause: OutageCause::Capacity, until_ms: Some(CAPACITY_MS) });
        health.mark_out("b", Outage { cause: OutageCause::Quota, until_ms: None });
        let of = |health: &Health, model, now| health.availability(model, now);
        assert_eq!(of(&health, "a", CAPACITY_MS - 1), Availability::Unavailable(OutageCause::Capacity));
        assert_eq!(of(&health, "models/a", CAPACITY_MS), Availability::Available);
        assert_eq!(of(&health, "b", u64::MAX), Availability::Unavailable(OutageCause::Quota));
        health.begin_turn();
        assert_eq!(of(&health, "b", u64::MAX), Availability::Unavailable(OutageCause::Quota));
        assert!(health.mark_available("b") && !health.mark_available("b"));
        assert_eq!(of(&health, "b", 0), Availability::Available);
    }

    #[test]
    fn one_attempt_in_each_turn() {
        let mut health = Health::default();
        health.mark_sticky("a");
        assert_eq!(health.availability("a", 0), Availability::AttemptUsed);
        assert_eq!(health.first_available(["a", "b"].into_iter(), 0), Some("b"));
        health.begin_turn();
        assert_eq!(health.availability("a", 0), Availability::OneAttempt);
        assert_eq!(health.first_available(["a", "b"].into_iter(), 0), Some("a"));
        health.mark_sticky("a");
        assert_eq!(health.availability("a", 0), Availability::AttemptUsed);
        health.mark_out("a", Outage { cause: OutageCause::Quota, until_ms: Some(9) });
        health.begin_turn();
        // What is out for good is not made better by a lesser mark.
        health.mark_sticky("a");
        assert_eq!(health.availability("a", 8), Availability::Unavailable(OutageCause::Quota));
        assert_eq!(health.availability("a", 9), Availability::OneAttempt);
        assert_eq!(health.first_available(["a"].into_iter(), 8), None);
    }
}
