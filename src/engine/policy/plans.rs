//! Plan mode in policy: the one folder that may be written, and rules that do not name the mode.

use super::{
    query::Query,
    rule::{ArgsMatcher, Rule, RuleSource, Tier},
    verdict::PartialVerdict,
};
use castor_base::{
    log::{Decision, Mode},
    tool::PolicyClass,
};

/// Above the mode's own no, below what people write.
const PRIORITY: u16 = 70;

/// Files of plans are written without a question. It names a class of tools, as shipped files do.
pub fn plan_file_rule() -> Rule {
    let tools = vec![PolicyClass::Edit.as_str().to_owned()];
    let source = RuleSource { file: "default/plan.toml".to_owned(), line: 0 };
    let rule = Rule::new(tools, Decision::Allow, Tier::Default, PRIORITY, source);
    Rule { modes: vec![Mode::Plan], matcher: ArgsMatcher::PlanFile, ..rule }
}

/// A rule of people's that does not name the mode was written for work, not for plans: the stricter one counts.
/// `shipped`: the first of castor's own that speaks of the same.
pub fn restrict_in_plan(
    query: &Query,
    verdict: PartialVerdict,
    found: Option<&Rule>,
    shipped: Option<&Rule>,
) -> PartialVerdict {
    let speaks_of_all = found.is_some_and(|it| it.tier > Tier::Default && it.modes.is_empty());
    match shipped.filter(|_| query.mode == Mode::Plan && speaks_of_all) {
        Some(it) if it.decision > verdict.decision => PartialVerdict::of(it, query),
        _ => verdict,
    }
}
