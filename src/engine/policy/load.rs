//! Reads policy files. A rule that cannot be held to what it says is left out, with a warning.

use regex::Regex;
use serde::Deserialize;

use super::rules::{Examples, Matcher, Rule, Tier, current_name};
use crate::base::log::{Decision, Mode};

/// Longer patterns are not compiled.
const MAX_REGEX: usize = 2048;
const SHELL: &str = "run_shell_command";

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    rule: Vec<toml::Table>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn into_vec(self) -> Vec<String> {
        match self {
            Self::One(it) => vec![it],
            Self::Many(it) => it,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Allow,
    Deny,
    AskUser,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRule {
    tool_name: OneOrMany,
    decision: Word,
    priority: u16,
    #[serde(default)]
    modes: Vec<String>,
    interactive: Option<bool>,
    args_pattern: Option<String>,
    command_prefix: Option<OneOrMany>,
    command_regex: Option<String>,
    #[serde(default, alias = "allow_redirection")]
    allow_redirection: bool,
    #[serde(alias = "deny_message")]
    deny_message: Option<String>,
    #[serde(default, rename = "match")]
    matches: Vec<String>,
    #[serde(default, rename = "not_match")]
    not_matches: Vec<String>,
}

pub(super) fn parse(text: &str, tier: Tier, source: &str) -> Result<(Vec<Rule>, Vec<String>), String> {
    let file: File = toml::from_str(text).map_err(|it| format!("{source}: {}", it.message()))?;
    let (mut rules, mut warnings) = (Vec::new(), Vec::new());
    for (at, table) in file.rule.into_iter().enumerate() {
        match rule(table, tier, source) {
            Ok(it) => rules.push(it),
            Err(why) => warnings.push(format!("{source}: rule {} is left out: {why}", at + 1)),
        }
    }
    Ok((rules, warnings))
}

fn rule(table: toml::Table, tier: Tier, source: &str) -> Result<Rule, String> {
    // Without these conditions the rule would say more than its author wrote.
    for key in ["mcpName", "subagent", "toolAnnotations"] {
        if table.contains_key(key) {
            return Err(format!("{key} is not supported yet"));
        }
    }
    let mut raw: RawRule = table.try_into().map_err(|it: toml::de::Error| it.message().to_owned())?;
    if raw.priority > 999 {
        return Err("priority must be 0 to 999".to_owned());
    }
    let modes: Option<Vec<Mode>> = raw.modes.iter().map(|it| Mode::parse(it)).collect();
    let modes = modes.ok_or("it names an unknown mode")?;
    let matcher = matcher(&mut raw)?;
    let tools = raw.tool_name.into_vec();
    if tools.is_empty() || tools.iter().any(|it| it.is_empty()) {
        return Err("toolName is empty".to_owned());
    }
    let decision = match raw.decision {
        Word::Allow => Decision::Allow,
        Word::Deny => Decision::Deny,
        Word::AskUser => Decision::Ask,
    };
    if decision == Decision::Allow && tools.iter().any(|it| it != "*" && it.ends_with('*')) {
        return Err("only rules that deny or ask may name tools by a pattern".to_owned());
    }
    if matches!(matcher, Matcher::Prefixes(_) | Matcher::Command(_))
        && !tools.iter().all(|it| current_name(it) == SHELL)
    {
        return Err(format!("commandPrefix and commandRegex are for {SHELL} only"));
    }
    Ok(Rule {
        tools,
        decision,
        tier,
        priority: raw.priority,
        modes,
        interactive: raw.interactive,
        matcher,
        allow_redirection: raw.allow_redirection,
        deny_message: raw.deny_message,
        source: source.to_owned(),
        examples: Examples { matches: raw.matches, not_matches: raw.not_matches },
    })
}

fn matcher(raw: &mut RawRule) -> Result<Matcher, String> {
    match (raw.args_pattern.take(), raw.command_prefix.take(), raw.command_regex.take()) {
        (None, None, None) => Ok(Matcher::Any),
        (Some(it), None, None) => regex(&it, &it).map(Matcher::Args),
        (None, None, Some(it)) => regex(&it, &format!("^(?:{it})")).map(Matcher::Command),
        (None, Some(it), None) => {
            let prefixes: Vec<Vec<String>> =
                it.into_vec().iter().map(|it| it.split_whitespace().map(str::to_owned).collect()).collect();
            match prefixes.is_empty() || prefixes.iter().any(Vec::is_empty) {
                true => Err("commandPrefix is empty".to_owned()),
                false => Ok(Matcher::Prefixes(prefixes)),
            }
        }
        _ => Err("argsPattern, commandPrefix and commandRegex exclude each other".to_owned()),
    }
}

fn regex(written: &str, pattern: &str) -> Result<Regex, String> {
    if written.len() > MAX_REGEX {
        return Err(format!("its pattern is longer than {MAX_REGEX}"));
    }
    Regex::new(pattern).map_err(|_| format!("its pattern {written:?} is not a regular expression"))
}
