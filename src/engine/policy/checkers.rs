//! Verdicts of safety checkers: which checkers a call needs, and how they make a decision stricter.

use super::{
    query::{CheckerVerdict, Query},
    rules::{CheckerRule, RuleSet},
    verdict::{PartialVerdict, Verdict},
};
use castor_base::check::{CheckFinding, Denier};
use castor_base::log::Decision;

/// A checker that has to be heard: its place in the rules, and on which subject of the decision.
pub struct DueChecker<'a> {
    pub checker: usize,
    pub subject: usize,
    pub rule: &'a CheckerRule,
}

/// The next checker that has to be heard before a call can be decided on that `ruled` says is `decision`. None where it is
/// denied anyway: nobody need know of it then.
pub fn next<'a>(rules: &'a RuleSet, query: &Query, ruled: impl FnOnce() -> Decision) -> Option<DueChecker<'a>> {
    for (checker, rule) in rules.checkers().iter().enumerate() {
        for (subject, part) in query.subjects().enumerate() {
            match word_of(query, (checker, subject)) {
                None if !rule.applies_to(&part) => (),
                None => return (ruled() != Decision::Deny).then_some(DueChecker { checker, subject, rule }),
                Some(Ok(it)) if it.decision != Decision::Deny => (),
                // After a denial nobody else is asked; a failure is one.
                Some(_) => return None,
            }
        }
    }
    None
}

fn word_of<'a>(query: &Query<'a>, (checker, subject): (usize, usize)) -> Option<&'a Result<CheckFinding, String>> {
    let is_it = |it: &&CheckerVerdict| it.checker == checker && it.subject == subject;
    query.checker_verdicts.iter().find(is_it).map(|it| &it.result)
}

/// The rules' verdict after all checkers. One that did not answer, or not clearly, denies.
pub fn apply_verdicts(rules: &RuleSet, query: &Query, ruled: Verdict) -> Verdict {
    let mut res = ruled;
    let subjects = || query.subjects().enumerate();
    let all = rules.checkers().iter().enumerate().flat_map(|it| subjects().map(move |subject| (it, subject)));
    for ((at, checker), (nth, subject)) in all {
        if res.decision == Decision::Deny {
            return res;
        }
        res = match word_of(query, (at, nth)) {
            // Who was heard while another mode held counts all the same.
            None if !checker.applies_to(&subject) => res,
            None => fails(checker, "it was not asked"),
            Some(Err(why)) => fails(checker, why),
            Some(Ok(it)) if it.decision == Decision::Deny => denies(checker, &it.reason),
            Some(Ok(it)) if it.decision == Decision::Ask && res.reason.is_none() => {
                let Verdict { why, read_only: looks, network, .. } = res;
                Verdict { why, read_only: looks, network, ..asks(checker, query, &it.reason) }
            }
            Some(Ok(_)) => res,
        };
    }
    res
}

fn denies(checker: &CheckerRule, reason: &str) -> Verdict {
    let message = format!("The safety checker {} says: {reason}", checker.checker.name);
    Verdict::denied(Denier::Checker, format!("{} says: {reason}", checker.describe()), message)
}

fn fails(checker: &CheckerRule, why: &str) -> Verdict {
    let message = format!("The safety checker {} gave no verdict: {why}", checker.checker.name);
    Verdict::denied(Denier::Checker, format!("{} gave no verdict: {why}", checker.describe()), message)
}

/// A question of its own each time: no yes for longer spares it.
fn asks(checker: &CheckerRule, query: &Query, reason: &str) -> Verdict {
    let asked = Verdict::of(query, PartialVerdict::ask(format!("{} says: {reason}", checker.describe())), None);
    let reason = format!("The safety checker {} says: {reason}", checker.checker.name);
    Verdict { reason: Some(reason).filter(|_| asked.decision == Decision::Ask), ..asked }
}
