//! Safety checkers: who else is heard on a call, and what their word does. It makes a decision stricter, never milder.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::{
    Query, Verdict, command,
    decide::{Opinion, ruled, verdict},
    load,
    names::Who,
    rules::{Hit, Rule, Rules, Source, Spelt, Tier},
    shell::Script,
};
use crate::base::{
    check::{self, Does, Finding, Wants},
    log::Decision,
};

/// How long a checker may take, unless it is written otherwise.
const TIMEOUT_MS: u64 = 5_000;
/// Nobody waits longer for a verdict.
const MAX_TIMEOUT_MS: u64 = 300_000;

/// A checker, and which calls it is heard on.
#[derive(Clone, Debug)]
pub struct Checker {
    /// Its matchers; it decides nothing by itself.
    rule: Rule,
    pub what: Arc<check::Checker>,
    pub timeout_ms: u64,
}

/// What was heard from a checker, by its place in the rules, or why nothing was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    pub checker: usize,
    pub said: Result<Finding, String>,
}

/// The next checker that has to be heard before the call can be decided on. None where the call is denied anyway:
/// nobody need know of it then.
pub fn unheard<'a>(rules: &'a Rules, query: &Query) -> Option<(usize, &'a Checker)> {
    for (at, checker) in rules.checkers().iter().enumerate() {
        match word_of(query, at) {
            None if !checker.speaks_of(query) => (),
            None => return (ruled(rules, query).decision != Decision::Deny).then_some((at, checker)),
            Some(Ok(it)) if it.decision != Decision::Deny => (),
            // After a denial nobody else is asked; a failure is one.
            Some(_) => return None,
        }
    }
    None
}

fn word_of<'a>(query: &Query<'a>, at: usize) -> Option<&'a Result<Finding, String>> {
    query.heard.iter().find(|it| it.checker == at).map(|it| &it.said)
}

/// The rules' verdict after everybody was heard. Who was not, or said nothing that can be understood, denies.
pub(super) fn heard_out(rules: &Rules, query: &Query, ruled: Verdict) -> Verdict {
    let mut res = ruled;
    for (at, checker) in rules.checkers().iter().enumerate() {
        if res.decision == Decision::Deny {
            return res;
        }
        res = match word_of(query, at) {
            // Who was heard while another mode held counts all the same.
            None if !checker.speaks_of(query) => res,
            None => checker.fails("it was not asked"),
            Some(Err(why)) => checker.fails(why),
            Some(Ok(it)) if it.decision == Decision::Deny => checker.denies(&it.reason),
            Some(Ok(it)) if it.decision == Decision::Ask && res.reason.is_none() => {
                let Verdict { why, opens, gives, network, unconfined, .. } = res;
                Verdict { why, opens, gives, network, unconfined, ..checker.asks(query, &it.reason) }
            }
            Some(Ok(_)) => res,
        };
    }
    res
}

impl Checker {
    pub(super) fn speaks_of(&self, query: &Query) -> bool {
        if !self.rule.applies(query) {
            return false;
        }
        match command::command_of(query) {
            None => self.rule.matches_args(query.args),
            // What cannot be read may be meant.
            Some(Err(_)) => true,
            Some(Ok(_)) if !self.rule.is_specific() => true,
            Some(Ok(text)) => match Script::parse(text) {
                Err(_) => true,
                Ok(it) => {
                    let spelt = |it| Spelt::new(it, text, query.args);
                    it.commands.iter().any(|it| self.rule.matches_command(&spelt(it)) != Hit::No)
                }
            },
        }
    }

    /// For people: where it is written, and what it is.
    pub fn shown(&self) -> String {
        format!("{}: checker {}", self.rule.source, self.what.name)
    }

    /// For people: which tools it is heard on.
    pub fn tools(&self) -> String {
        self.rule.shown_tools(&self.rule.tools.join(", "))
    }

    pub(super) fn who(&self) -> &Who {
        &self.rule.who
    }

    pub fn effective(&self) -> u32 {
        self.rule.effective()
    }

    fn denies(&self, reason: &str) -> Verdict {
        let message = format!("The safety checker {} says: {reason}", self.what.name);
        Verdict::denied(format!("{} says: {reason}", self.shown()), message)
    }

    fn fails(&self, why: &str) -> Verdict {
        let message = format!("The safety checker {} gave no verdict: {why}", self.what.name);
        Verdict::denied(format!("{} gave no verdict: {why}", self.shown()), message)
    }

    /// A question of its own each time: no standing yes spares it.
    fn asks(&self, query: &Query, reason: &str) -> Verdict {
        let asked = verdict(query, Opinion::new(Decision::Ask, format!("{} says: {reason}", self.shown())), None);
        let reason = format!("The safety checker {} says: {reason}", self.what.name);
        Verdict { reason: Some(reason).filter(|_| asked.decision == Decision::Ask), ..asked }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
struct Raw {
    #[serde(rename = "type")]
    kind: Kind,
    name: String,
    #[serde(default)]
    args: Vec<String>,
    timeout: Option<u64>,
    required_context: Option<Vec<String>>,
    #[serde(default)]
    config: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    InProcess,
    External,
}

/// Reads one `[[safety_checker]]`.
pub(super) fn read(mut table: toml::Table, tier: Tier, place: &Source) -> Result<Checker, String> {
    let checker = table.remove("checker").ok_or("checker is missing")?;
    let raw: Raw = checker.try_into().map_err(|it: toml::de::Error| it.message().to_owned())?;
    // Its matchers are a rule's, read as generously as those of one that restricts.
    table.insert("decision".to_owned(), "ask_user".into());
    table.entry("priority").or_insert(toml::Value::Integer(0));
    let rule = load::rule(table, tier, place)?;
    let does = match raw.kind {
        Kind::InProcess if raw.name == "allowed-path" => Does::AllowedPath,
        Kind::InProcess => return Err(format!("castor has no checker {:?}", raw.name)),
        Kind::External if tier < Tier::Workspace => return Err("an extension may not name programs".to_owned()),
        Kind::External => external(&raw)?,
    };
    let timeout_ms = raw.timeout.unwrap_or(TIMEOUT_MS);
    if !(1..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
        return Err(format!("timeout must be 1 to {MAX_TIMEOUT_MS} milliseconds"));
    }
    let wants = |what: &str| raw.required_context.as_ref().is_none_or(|it| it.iter().any(|it| it == what));
    let wants = Wants { environment: wants("environment"), history: wants("history") };
    let what = Arc::new(check::Checker { name: raw.name, does, config: raw.config, wants });
    Ok(Checker { rule, what, timeout_ms })
}

/// A relative name would be looked up in the folder of the session: whoever writes there would be the checker.
fn external(raw: &Raw) -> Result<Does, String> {
    match raw.name.starts_with('/') || raw.name.starts_with("~/") {
        true => Ok(Does::External { program: raw.name.clone(), args: raw.args.clone() }),
        false => Err(format!("the program {:?} is neither absolute nor below ~/", raw.name)),
    }
}
