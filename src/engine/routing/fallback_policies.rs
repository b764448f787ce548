//! Fallback policies: the action for each class of model failure, from settings or by default.

use std::collections::BTreeMap;

use super::failure_class::PolicyKind;

/// The question, or none, before another model takes over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FallbackAction {
    Ask,
    /// They are told.
    Silent,
}

/// The model's state after the failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutageTransition {
    /// It is out, for as long as its failure says.
    Terminal,
    /// It gets one attempt in each later turn.
    StickyRetry,
}

/// For one model. What is `None` is as for all models, or as castor sees it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FallbackPolicy {
    /// Actions by kind, in the order of [`PolicyKind::ALL`].
    pub actions: [Option<FallbackAction>; 4],
    pub transitions: [Option<OutageTransition>; 4],
    /// The most attempts before another model takes over.
    pub max_attempts: Option<u32>,
    /// A last resort: it is asked even if it is known to be out, when no other model is left.
    pub last_resort: bool,
}

impl FallbackPolicy {
    /// For all that another model could do better.
    pub const fn always(action: FallbackAction) -> Self {
        let it = Some(action);
        // In the order of the kinds; of what is unknown nobody can say whether another model helps.
        Self { actions: [it, it, it, None], transitions: [None; 4], max_attempts: None, last_resort: false }
    }

    /// `None`: no other model takes over.
    pub fn action(&self, kind: PolicyKind) -> Option<FallbackAction> {
        self.actions.get(kind as usize).copied().flatten()
    }

    pub fn transition(&self, kind: PolicyKind) -> Option<OutageTransition> {
        self.transitions.get(kind as usize).copied().flatten()
    }

    /// With `weaker` in the gaps.
    pub fn or(self, weaker: Self) -> Self {
        let [a, b] = [self.actions, weaker.actions];
        let [c, d] = [self.transitions, weaker.transitions];
        Self {
            actions: std::array::from_fn(|it| a.get(it).copied().flatten().or(b.get(it).copied().flatten())),
            transitions: std::array::from_fn(|it| c.get(it).copied().flatten().or(d.get(it).copied().flatten())),
            max_attempts: self.max_attempts.or(weaker.max_attempts),
            last_resort: self.last_resort || weaker.last_resort,
        }
    }
}

/// Policies by model, and for all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FallbackPolicies {
    pub by_model: BTreeMap<String, FallbackPolicy>,
    pub otherwise: FallbackPolicy,
}

impl Default for FallbackPolicies {
    fn default() -> Self {
        Self { by_model: BTreeMap::new(), otherwise: FallbackPolicy::always(FallbackAction::Ask) }
    }
}

impl FallbackPolicies {
    /// The policies of an auto model, with which the user leaves the choice to castor: a busy model is left without a
    /// word for a smaller one, which is asked in the end whatever its state. The user's own settings go first.
    pub fn for_auto(said: Self, models: &[String]) -> Self {
        let mut res = said;
        for (at, model) in models.iter().enumerate() {
            let mut usual = FallbackPolicy { last_resort: at + 1 == models.len(), ..FallbackPolicy::default() };
            // In the order of the kinds.
            usual.actions = [None, Some(FallbackAction::Silent), None, None];
            usual.transitions = [None, Some(OutageTransition::StickyRetry), None, None];
            let it = res.by_model.entry(model.trim_start_matches("models/").to_owned()).or_default();
            *it = it.or(usual);
        }
        res
    }

    pub fn of(&self, model: &str) -> FallbackPolicy {
        let own = self.by_model.get(model.trim_start_matches("models/")).copied().unwrap_or_default();
        own.or(self.otherwise)
    }
}

#[cfg(test)]
mod tests {
    use super::{FallbackAction, FallbackPolicies, FallbackPolicy, OutageTransition};
    use crate::routing::failure_class::PolicyKind;

    #[test]
    fn what_a_model_does_not_say_holds_for_all() {
        let mut own = FallbackPolicy { max_attempts: Some(2), last_resort: true, ..FallbackPolicy::default() };
        own.actions[PolicyKind::Transient as usize] = Some(FallbackAction::Silent);
        own.actions[PolicyKind::Unknown as usize] = Some(FallbackAction::Ask);
        own.transitions[PolicyKind::Terminal as usize] = Some(OutageTransition::StickyRetry);
        let policies = FallbackPolicies { by_model: [("m".to_owned(), own)].into(), ..FallbackPolicies::default() };
        let ask = Some(FallbackAction::Ask);
        let actions = |model: &str| PolicyKind::ALL.map(|it| policies.of(model).action(it));
        assert_eq!(actions("models/m"), [ask, Some(FallbackAction::Silent), ask, ask]);
        assert_eq!(actions("n"), [ask, ask, ask, None]);
        let (m, n) = (policies.of("m"), policies.of("n"));
        assert_eq!(m.transition(PolicyKind::Terminal), Some(OutageTransition::StickyRetry));
        assert_eq!([m.last_resort, n.last_resort], [true, false]);
        let auto = FallbackPolicies::for_auto(policies.clone(), &["n".to_owned(), "m".to_owned()]);
        assert_eq!(PolicyKind::ALL.map(|it| auto.of("n").action(it)), [ask, Some(FallbackAction::Silent), ask, None]);
        assert_eq!([auto.of("n").last_resort, auto.of("m").last_resort], [false, true]);
        assert_eq!([m.max_attempts, n.max_attempts], [Some(2), None]);
    }
}
