//! Known keys of policy files. An unknown key is an error, because its author may have meant a limit.

use toml::de::{DeTable, DeValue};

use super::error::RuleError;

/// Of a rule, and of a safety checker beside its `checker`.
#[rustfmt::skip]
const RULE: &[&str] = &[
    "allowRedirection", "allow_redirection", "argsPattern", "commandPrefix", "commandRegex", "decision", "denyMessage",
    "deny_message", "folder", "interactive", "match", "mcpName", "modes", "not_match", "opaque", "priority",
    "safety_checker", "subagent", "toolAnnotations", "toolDigest", "toolName",
];
/// What people write for themselves.
const NOTES: &[&str] = &["comment", "description", "name", "note", "notes", "reason"];
/// Of a file.
const FILE: &[&str] = &["rule", "safety_checker"];

/// What is wrong with a rule's keys.
///
/// # Errors
/// The first that is not known: without it the rule would say more than its author did.
pub fn check_rule(table: &toml::Table) -> Result<(), RuleError> {
    let odd = table.keys().find(|it| !RULE.contains(&it.as_str()) && !NOTES.contains(&it.as_str()));
    odd.map_or(Ok(()), |it| Err(strange(it, RULE)))
}

/// What is wrong with a file's: a list of tables under another name may be of rules.
///
/// # Errors
/// The first such list.
pub fn check_file(table: &DeTable<'_>) -> Result<(), RuleError> {
    let is_list = |it: &DeValue<'_>| it.as_array().is_some_and(|it| it.iter().any(|it| it.get_ref().is_table()));
    let odd = table.iter().find(|(key, value)| !FILE.contains(&&**key.get_ref()) && is_list(value.get_ref()));
    odd.map_or(Ok(()), |(key, _)| Err(strange(key.get_ref(), FILE)))
}

fn strange(key: &str, known: &[&'static str]) -> RuleError {
    let ratio =
        |it: &str| similar::TextDiff::from_chars(key.to_lowercase().as_str(), it.to_lowercase().as_str()).ratio();
    let near = known.iter().map(|it| (ratio(it), *it)).max_by(|a, b| a.0.total_cmp(&b.0)).filter(|it| it.0 >= 0.6);
    match near {
        Some((_, near)) => RuleError::MisspeltKey(key.to_owned(), near),
        None => RuleError::UnknownKey(key.to_owned()),
    }
}
