//! All policy rules of a session in one order: the first match wins.

use std::sync::Arc;

use super::{
    index::RuleIndex,
    patterns::{CommandSpelling, MatchCertainty},
    query::Query,
    rule::{ArgsMatcher, CallPattern, Rule, ToolIdentity},
    shell::parse,
};
use castor_base::{
    check,
    log::Decision,
    path::AbsPath,
    tool::{RUN_SHELL_COMMAND, ToolSpec},
};

const SHELL: ToolIdentity = ToolIdentity { tool: RUN_SHELL_COMMAND, server: None };

/// All rules of a session, in the order they are asked.
#[derive(Clone, Debug, Default)]
pub struct RuleSet {
    rules: Vec<Rule>,
    /// Of those that name the tool for commands.
    commands: RuleIndex,
    checkers: Vec<CheckerRule>,
}

/// The contents of a policy file.
#[derive(Clone, Debug, Default)]
pub struct PolicyFile {
    pub rules: Vec<Rule>,
    pub checkers: Vec<CheckerRule>,
}

impl PolicyFile {
    /// What holds in a folder, which is named as it really is.
    #[must_use]
    pub fn for_folder(mut self, folder: &AbsPath) -> Self {
        let holds = |who: &CallPattern| who.folder.as_ref().is_none_or(|it| folder.is_within(it));
        self.rules.retain(|it| holds(&it.call_pattern));
        self.checkers.retain(|it| holds(&it.rule.call_pattern));
        self
    }
}

impl From<Vec<Rule>> for PolicyFile {
    fn from(rules: Vec<Rule>) -> Self {
        Self { rules, checkers: Vec::new() }
    }
}

impl RuleSet {
    /// These rules and `more`, sorted; of equals the earlier comes first, but one that denies before all others.
    #[must_use]
    pub fn with(mut self, more: impl Into<PolicyFile>) -> Self {
        let PolicyFile { rules, checkers } = more.into();
        self.rules.extend(rules);
        self.checkers.extend(checkers);
        self.checkers.sort_by_key(|it| std::cmp::Reverse(it.effective_priority()));
        self.rules.sort_by_key(|it| (std::cmp::Reverse(it.effective_priority()), it.decision != Decision::Deny));
        self.commands = self.rules.iter().enumerate().filter(|it| it.1.names_tool(SHELL)).collect();
        self
    }

    /// In order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> + Clone {
        self.rules.iter()
    }

    /// Those that may speak of a command of a call, in order.
    pub fn for_command(&self, query: &Query, spelling: &CommandSpelling) -> Vec<&Rule> {
        let rules: Vec<&Rule> = match (ToolIdentity { tool: query.tool, server: query.origin.server }) {
            SHELL => self.commands.candidates(spelling).into_iter().filter_map(|at| self.rules.get(at)).collect(),
            _ => self.rules.iter().collect(),
        };
        rules.into_iter().filter(|it| it.applies(query)).collect()
    }

    /// What was allowed for ever, in words.
    pub fn describe_saved(&self) -> impl Iterator<Item = String> {
        self.rules.iter().filter(|it| it.is_saved()).map(|it| it.in_words(&it.tools.join(", ")))
    }

    /// Safety checkers, in order.
    pub fn checkers(&self) -> &[CheckerRule] {
        &self.checkers
    }
}

/// A safety checker, and which calls it is heard on.
#[derive(Clone, Debug)]
pub struct CheckerRule {
    /// Its matchers; it decides nothing by itself.
    pub rule: Rule,
    pub checker: Arc<check::Checker>,
    pub timeout_ms: u64,
}

impl CheckerRule {
    /// Tells whether it is to be heard on this call. What cannot be read may be meant.
    pub fn applies_to(&self, query: &Query) -> bool {
        if !self.rule.applies(query) {
            return false;
        }
        let text = match query.command() {
            None => return self.rule.matches_args(query.args),
            Some(Ok(it)) if self.rule.is_specific() => it,
            Some(_) => return true,
        };
        let line = parse(text);
        let hit =
            |it| self.rule.matches_command(&CommandSpelling::new(it, Some(text), query.args)) != MatchCertainty::No;
        line.why_opaque().is_some() || line.script().commands.iter().any(hit)
    }

    /// For people: where it is written, and what it is.
    pub fn describe(&self) -> String {
        format!("{}: checker {}", self.rule.source, self.checker.name)
    }

    /// For people: which tools it is heard on.
    pub fn describe_tools(&self) -> String {
        self.rule.describe_tools(&self.rule.tools.join(", "))
    }

    pub fn effective_priority(&self) -> u32 {
        self.rule.effective_priority()
    }
}

/// The rule by which the tool is denied in every mode, whatever its arguments: the model need not know of it.
pub fn unconditional_deny<'r>(
    rules: &'r RuleSet,
    tool: &ToolSpec,
    server: Option<&str>,
    interactive: bool,
) -> Option<&'r Rule> {
    let holds = |it: &&Rule| it.names_offer(tool, server) && it.interactive.is_none_or(|it| it == interactive);
    let mut speaking = rules.iter().filter(holds);
    let first = speaking.find(|it| it.decision != Decision::Deny || is_unconditional(it));
    first.filter(|it| it.decision == Decision::Deny)
}

fn is_unconditional(rule: &Rule) -> bool {
    matches!(rule.matcher, ArgsMatcher::Any | ArgsMatcher::NotTools(_))
        && rule.modes.is_empty()
        && rule.call_pattern.subagent.is_none()
        && rule.call_pattern.annotations.is_empty()
        && rule.call_pattern.digest.is_none()
}
