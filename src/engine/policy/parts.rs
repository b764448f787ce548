//! The verdict on a call of several parts, such as a patch of several files: the strictest one counts for all.

use super::{
    query::Query,
    verdict::{Verdict, VerdictBasis},
};
use castor_base::log::Decision;

/// Most parts whose reasons a question shows.
const MAX_REASONS: usize = 5;

/// `judge` decides about one part.
pub fn decide(query: &Query, judge: impl Fn(&Query) -> Verdict) -> Verdict {
    let titles = query.targets.parts.iter().map(|it| it.targets.title.as_str());
    let all: Vec<(&str, Verdict)> = titles.zip(query.subjects().map(|it| judge(&it))).collect();
    let of = |decision: Decision| all.iter().filter(move |it| it.1.decision == decision);
    if let Some((title, it)) = of(Decision::Deny).next() {
        let message = it.deny_message.as_deref().unwrap_or("It may not be changed.");
        let deny_message = format!("{title}: {message} Nothing of the patch was done.");
        return Verdict { rule: format!("{title}: {}", it.rule), deny_message: Some(deny_message), ..it.clone() };
    }
    let is_any = |basis: VerdictBasis| all.iter().any(|it| it.1.basis == basis);
    let Some((_, first)) = of(Decision::Ask).next() else {
        let basis = if is_any(VerdictBasis::Mode) { VerdictBasis::Mode } else { VerdictBasis::Rules };
        return all.into_iter().next().map(|it| Verdict { basis, ..it.1 }).unwrap_or_default();
    };
    let reasons = of(Decision::Ask).filter_map(|(title, it)| Some(format!("{title}: {}", it.why.as_deref()?)));
    let reasons: Vec<String> = reasons.take(MAX_REASONS).collect();
    // A yes for longer has to spare all questions.
    let grant = first.grant.clone().filter(|grant| of(Decision::Ask).all(|it| it.1.grant.as_ref() == Some(grant)));
    Verdict {
        why: (!reasons.is_empty()).then(|| reasons.join("; ")),
        basis: if is_any(VerdictBasis::Guard) { VerdictBasis::Guard } else { first.basis },
        grant,
        ..first.clone()
    }
}
