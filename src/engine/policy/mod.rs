//! Policy: may this tool call run? One pure function over rules, mode, grants, sandbox and the call's targets.
//!
//! The doc comment of [`decide`] is the law, in nine steps; `grep -rn "Step [1-9]" src/engine/policy` shows where each is held.
//! `command` has them for shell lines, `decide` for all other calls, `verdict` the last one for both.

mod checkers;
mod command;
mod danger;
mod decide;
mod error;
mod explain;
mod grants;
mod guards;
mod index;
mod keys;
mod load;
mod names;
mod parts;
mod patterns;
mod persistent;
mod plans;
mod prefixes;
mod query;
mod rule;
mod rules;
mod safe;
mod settings_rules;
pub mod shell;
mod shipped;
#[cfg(test)]
mod tests;
mod verdict;

pub use danger::rows as danger_rows;
pub use decide::{decide, decide_by_rules, next_checker};
pub use explain::{Explanation, PartVerdict, explain};
pub use grants::{
    grant_for_session, is_void, may_persist, network_for, permission_in_words, persistent_grant, persistent_in_words,
    sandbox_grant, sandbox_permission, secrets_for,
};
pub use guards::guard_of_target;
pub use load::misspelt_tools;
pub use names::current_name;
pub use query::{Annotations, CallOrigin, CheckerVerdict, Query, SandboxFacts, check_auto_available};
pub use rule::{Rule, Tier};
pub use rules::{CheckerRule, PolicyFile, RuleSet, unconditional_deny};
pub use safe::is_read_only_line;
pub use settings_rules::ToolLists;
pub use verdict::{Verdict, VerdictBasis, unasked_denial};
