//! Plan mode: its one place to write, and why rules that do not speak of the mode do not open others.

use super::{
    Query,
    decide::Opinion,
    names::{Who, current_name},
    rules::{Examples, Matcher, Rule, Source, Tier},
};
use crate::base::{
    log::{Decision, Mode},
    tool::Access,
};

/// Above the mode's own no, below what people write.
const PRIORITY: u16 = 70;

/// Files of plans are written without a question.
pub(super) fn rule() -> Rule {
    Rule {
        tools: vec!["replace".to_owned(), "write_file".to_owned()],
        who: Who::default(),
        decision: Decision::Allow,
        tier: Tier::Default,
        priority: PRIORITY,
        modes: vec![Mode::Plan],
        interactive: None,
        matcher: Matcher::PlanFile,
        allow_redirection: false,
        deny_message: None,
        source: Source { file: "default/plan.toml".to_owned(), line: 0 },
        examples: Examples::default(),
    }
}

/// Whether all that the call touches are Markdown files in the folder of plans, where they really are.
pub(super) fn is_plan_file(query: &Query) -> bool {
    let paths = &query.targets.paths;
    let Some(plans) = query.plans.filter(|_| query.server.is_none() && !paths.is_empty()) else { return false };
    let is_markdown = |name: &str| name.rsplit_once('.').is_some_and(|(_, it)| it.eq_ignore_ascii_case("md"));
    paths.iter().all(|it| {
        let name = it.real.as_path().file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        it.access == Access::Write && it.real != *plans && it.real.is_within(plans) && is_markdown(&name)
    })
}

/// A rule of people's that does not name the mode was written for work, not for plans: the stricter one counts.
/// `shipped`: the first of castor's own that speaks of the same.
pub(super) fn held(query: &Query, opinion: Opinion, found: Option<&Rule>, shipped: Option<&Rule>) -> Opinion {
    let speaks_of_all = found.is_some_and(|it| it.tier > Tier::Default && it.modes.is_empty());
    match shipped.filter(|_| query.mode == Mode::Plan && speaks_of_all) {
        Some(it) if it.decision > opinion.decision => Opinion::of(it, query),
        _ => opinion,
    }
}

/// The same of a question: what looking would spare castor's own no is still asked about where people want that.
pub(super) fn asked(query: &Query, opinion: Opinion, found: Option<&Rule>) -> Opinion {
    let asks = found.filter(|it| it.tier > Tier::Default && it.decision == Decision::Ask);
    match asks.filter(|_| query.mode == Mode::Plan && opinion.decision == Decision::Allow) {
        // A yes would be heard in other modes only.
        Some(it) => Opinion { firm: true, ..Opinion::of(it, query) },
        None => opinion,
    }
}

impl Rule {
    pub(super) fn is_for_plans(&self) -> bool {
        matches!(self.matcher, Matcher::PlanFile)
    }

    /// For calls that are no shell command.
    pub(super) fn matches(&self, query: &Query) -> bool {
        match self.matcher {
            Matcher::PlanFile => self.tools.iter().any(|it| it == current_name(query.tool)) && is_plan_file(query),
            _ => self.matches_args(query.args),
        }
    }
}
