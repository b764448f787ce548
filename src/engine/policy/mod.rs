//! May this call run? One pure function over rules, call, mode, what holds the call, and the facts about its targets.

mod checkers;
mod command;
mod danger;
mod decide;
mod derived;
mod explain;
mod grants;
mod guards;
mod index;
mod keys;
mod load;
mod names;
mod patterns;
mod persistent;
mod plans;
mod prefixes;
mod query;
mod rule;
mod rules;
mod safe;
pub mod shell;
mod shipped;
#[cfg(test)]
mod tests;
mod verdict;

pub use danger::rows as danger_rows;
pub use decide::{decide, next_checker};
pub use derived::Lists;
pub use explain::{Explanation, PartVerdict, explain};
pub use grants::{
    is_void, leave, may_persist, network_for, permission, permission_in_words, persistent, persistent_here,
    persistent_in_words,
};
pub use names::current_name;
pub use query::{Annotations, CheckerVerdict, Origin, Query, Sandbox, auto_on_offer};
pub use rule::{Rule, Tier};
pub use rules::{Checker, Rules, Written, hidden};
pub use safe::is_look;
pub use verdict::Verdict;
