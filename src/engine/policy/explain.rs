//! Explanation of a policy decision with its parts, for `castor policy check`.

use super::{
    command,
    decide::decide_by_rules,
    query::Query,
    rules::{CheckerRule, RuleSet},
    verdict::{PartialVerdict, Verdict},
};
use castor_base::log::Decision;

/// The rules' verdict, with the verdict on each part of a shell command and the checkers to ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    pub verdict: Verdict,
    pub parts: Vec<PartVerdict>,
    /// Safety checkers, as people see them.
    pub checkers: Vec<String>,
}

/// One command of many.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartVerdict {
    pub text: String,
    pub decision: Decision,
    pub rule: String,
    /// As in [`Verdict::why`].
    pub why: Option<String>,
}

/// The rules' decision with its parts. No checker is asked.
pub fn explain(rules: &RuleSet, query: &Query) -> Explanation {
    let verdict = decide_by_rules(rules, query);
    let parts = match query.command() {
        Some(Ok(text)) => command::parts(rules, query, text),
        _ => Vec::new(),
    };
    let part =
        |(text, it): (String, PartialVerdict)| PartVerdict { text, decision: it.decision, rule: it.rule, why: it.why };
    let files = query.targets.parts.iter().zip(query.subjects()).map(|(file, subject)| {
        let Verdict { decision, rule, why, .. } = decide_by_rules(rules, &subject);
        PartVerdict { text: file.targets.title.clone(), decision, rule, why }
    });
    let parts = parts.into_iter().map(part).chain(files);
    let checkers = match verdict.decision {
        Decision::Deny => Vec::new(),
        _ => rules
            .checkers()
            .iter()
            .filter(|it| query.subjects().any(|part| it.applies_to(&part)))
            .map(CheckerRule::describe)
            .collect(),
    };
    Explanation { verdict, parts: parts.collect(), checkers }
}
