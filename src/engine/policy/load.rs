//! Policy file loader: TOML to rules. A rule that cannot be applied exactly is left out, with a warning.

use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::Spanned;

use super::{
    keys,
    names::{current_name, nearest_name},
    patterns::{CommandSpelling, MatchCertainty},
    rule::{AllowOptions, ArgsMatcher, CallPattern, Examples, Rule, RuleSource, StartPattern, Tier, ToolIdentity},
    rules::{CheckerRule, PolicyFile},
    shell,
};
use crate::base::{
    check::{self, CheckerAction, CheckerContext},
    log::{Decision, Mode},
    path::AbsPath,
};

/// Longer patterns are not compiled.
const MAX_REGEX: usize = 2048;
const SHELL: &str = "run_shell_command";
/// How long a checker may take, unless it is written otherwise.
const TIMEOUT_MS: u64 = 5_000;
/// The longest wait for a checker.
const MAX_TIMEOUT_MS: u64 = 300_000;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    rule: Vec<Spanned<toml::Table>>,
    #[serde(default)]
    safety_checker: Vec<Spanned<toml::Table>>,
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
enum StringOrList {
    Allow,
    Deny,
    AskUser,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRule {
    tool_name: Option<OneOrMany>,
    decision: StringOrList,
    priority: u16,
    #[serde(default)]
    modes: Vec<String>,
    #[serde(flatten)]
    scope: RawScope,
    #[serde(default, alias = "allow_redirection")]
    allow_redirection: bool,
    #[serde(default)]
    opaque: bool,
    #[serde(alias = "deny_message")]
    deny_message: Option<String>,
    #[serde(default, rename = "match")]
    matches: Vec<String>,
    #[serde(default, rename = "not_match")]
    not_matches: Vec<String>,
}

/// Which calls a rule speaks of, beyond the tool's name.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawScope {
    mcp_name: Option<String>,
    subagent: Option<String>,
    #[serde(default)]
    tool_annotations: Map<String, Value>,
    tool_digest: Option<String>,
    folder: Option<String>,
    interactive: Option<bool>,
    args_pattern: Option<String>,
    command_prefix: Option<OneOrMany>,
    command_regex: Option<String>,
}

pub fn parse(text: &str, tier: Tier, source: &str) -> Result<(PolicyFile, Vec<String>), String> {
    let line_of = |at: usize| text.get(..at).map_or(0, |it| it.matches('\n').count() + 1);
    let file: File = toml::from_str(text).map_err(|it| {
        let line = it.span().map_or(0, |it| line_of(it.start));
        format!("{}: {}", RuleSource { file: source.to_owned(), line }, it.message())
    })?;
    let table: toml::Table = toml::from_str(text).map_err(|it| it.message().to_owned())?;
    keys::check_file(&table).map_err(|it| format!("{source}: {it}"))?;
    let place = |it: &Spanned<toml::Table>| RuleSource { file: source.to_owned(), line: line_of(it.span().start) };
    let (mut rules, mut checkers, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for table in file.rule {
        let (place, table) = (place(&table), table.into_inner());
        match read_rule(table.clone(), tier, &place) {
            Ok(it) => {
                warnings.extend(strange_names(&it));
                rules.push(it);
            }
            Err(why) => {
                let stand_in = broken_rule(&table, tier, &place);
                let then = if stand_in.is_some() { "; what it may have denied is asked about" } else { "" };
                warnings.push(format!("{place}: the rule is left out: {why}{then}"));
                rules.extend(stand_in);
            }
        }
    }
    for table in file.safety_checker {
        let (place, table) = (place(&table), table.into_inner());
        match checker(table.clone(), tier, &place) {
            Ok(it) => checkers.push(it),
            Err(why) => {
                warnings
                    .push(format!("{place}: the checker is left out: {why}; what it may have denied is asked about"));
                rules.extend(broken_rule(&table, tier, &place));
            }
        }
    }
    Ok((PolicyFile { rules, checkers }, warnings))
}

/// Names that are nearly a tool's. The rule holds as it is written: the tool may be one of a server's, or to come. Castor's own
/// rules are looked at by a test, not at each start.
fn strange_names(rule: &Rule) -> Vec<String> {
    let odd = |name: &String| {
        let near = nearest_name(name)?;
        Some(format!("{}: castor has no tool {name}; did you mean {near}?", rule.source))
    };
    match rule.call_pattern.server {
        // A server calls its tools what it likes.
        Some(_) => Vec::new(),
        None if rule.tier == Tier::Default => Vec::new(),
        None => rule.tools.iter().filter_map(odd).collect(),
    }
}

/// In place of a rule that would have restricted something; of one that allows nothing needs to be left.
fn broken_rule(table: &toml::Table, tier: Tier, place: &RuleSource) -> Option<Rule> {
    if table.get("decision").and_then(toml::Value::as_str) == Some("allow") {
        return None;
    }
    let mut tools = match table.get("toolName") {
        Some(toml::Value::String(it)) if !it.is_empty() => vec![it.clone()],
        Some(toml::Value::Array(list)) => {
            let names: Option<Vec<String>> = list.iter().map(|it| it.as_str().map(str::to_owned)).collect();
            names.filter(|it| !it.is_empty()).unwrap_or_else(|| vec!["*".to_owned()])
        }
        _ => vec!["*".to_owned()],
    };
    // Whatever it calls the shell, that is what it is about.
    let for_commands = ["commandPrefix", "commandRegex"].iter().any(|it| table.contains_key(*it));
    if for_commands && !tools.iter().any(|it| it == "*" || current_name(it) == SHELL) {
        tools.push(SHELL.to_owned());
    }
    let priority = table.get("priority").and_then(toml::Value::as_integer);
    let priority = priority.and_then(|it| u16::try_from(it).ok()).unwrap_or(999).min(999);
    Some(Rule::broken(tools, tier, priority, place.clone()))
}

pub fn read_rule(table: toml::Table, tier: Tier, place: &RuleSource) -> Result<Rule, String> {
    // Gemini CLI drops it without a word. A rule that says more than it could be held to must not allow.
    if table.contains_key("safety_checker") && table.get("decision").and_then(toml::Value::as_str) != Some("deny") {
        return Err("its safety_checker counts only as a [[safety_checker]] beside the rules".to_owned());
    }
    keys::check_rule(&table)?;
    let mut raw: RawRule = table.try_into().map_err(|it: toml::de::Error| it.message().to_owned())?;
    if raw.priority > 999 {
        return Err("priority must be 0 to 999".to_owned());
    }
    let modes: Option<Vec<Mode>> = raw.modes.iter().map(|it| Mode::parse(it)).collect();
    let modes = modes.ok_or("it names an unknown mode")?;
    // Who installs an extension wants its tools, not its opinion on what needs no question.
    if tier == Tier::Extension && (matches!(raw.decision, StringOrList::Allow) || modes.contains(&Mode::Yolo)) {
        return Err("an extension may not allow anything, nor say anything of the mode yolo".to_owned());
    }
    let matcher = matcher(&mut raw)?;
    let tools = match (raw.tool_name, &raw.scope.mcp_name) {
        (Some(it), _) => it.into_vec(),
        (None, Some(_)) => vec!["*".to_owned()],
        (None, None) => return Err("toolName is missing".to_owned()),
    };
    if [&raw.scope.mcp_name, &raw.scope.subagent].into_iter().any(|it| it.as_deref() == Some("")) {
        return Err("mcpName and subagent must not be empty".to_owned());
    }
    let decision = match raw.decision {
        StringOrList::Allow => Decision::Allow,
        StringOrList::Deny => Decision::Deny,
        StringOrList::AskUser => Decision::Ask,
    };
    check_tools(&tools, decision, &matcher)?;
    let RawScope {
        mcp_name: server,
        subagent,
        tool_annotations: annotations,
        tool_digest: digest,
        interactive,
        folder,
        ..
    } = raw.scope;
    let folder = folder.map(|it| AbsPath::new(it).ok_or("folder must be an absolute path")).transpose()?;
    let res = Rule {
        call_pattern: CallPattern { server, subagent, annotations, digest, folder },
        modes,
        interactive,
        matcher,
        allows: AllowOptions { redirection: raw.allow_redirection, opaque: raw.opaque },
        deny_message: raw.deny_message,
        examples: Examples { matches: raw.matches, not_matches: raw.not_matches },
        ..Rule::new(tools, decision, tier, raw.priority, place.clone())
    };
    // Castor's own examples are looked at by tests, not at each start.
    if tier > Tier::Default {
        check_examples(&res)?;
    }
    Ok(res)
}

/// Whether a rule of this kind may name these tools.
fn check_tools(tools: &[String], decision: Decision, matcher: &ArgsMatcher) -> Result<(), String> {
    if tools.is_empty() || tools.iter().any(String::is_empty) {
        return Err("toolName is empty".to_owned());
    }
    let pattern = |it: &String| it != "*" && it.ends_with('*') && !(it.starts_with("mcp_") && it.ends_with("_*"));
    if decision == Decision::Allow && tools.iter().any(pattern) {
        return Err(
            "only rules that deny or ask may name tools by a pattern other than mcp_* and mcp_SERVER_*".to_owned()
        );
    }
    let for_commands = matches!(matcher, ArgsMatcher::Prefixes(_) | ArgsMatcher::Command(_));
    match for_commands && !tools.iter().all(|it| current_name(it) == SHELL) {
        true => Err(format!("commandPrefix and commandRegex are for {SHELL} only")),
        false => Ok(()),
    }
}

/// A rule is held to what its author said of it.
///
/// # Errors
/// The first example that is not as it says.
pub fn check_examples(rule: &Rule) -> Result<(), String> {
    if let Some(it) = rule.examples.matches.iter().find(|it| !fits(rule, it)) {
        return Err(format!("it does not match its example `{it}`"));
    }
    match rule.examples.not_matches.iter().find(|it| fits(rule, it)) {
        Some(it) => Err(format!("it matches `{it}`, which it should not")),
        None => Ok(()),
    }
}

/// An example is `TOOL`, `TOOL COMMAND` or `TOOL {…}`; of a rule for the shell alone also just the command.
fn fits(rule: &Rule, example: &str) -> bool {
    let (first, rest) = example.split_once(' ').unwrap_or((example, ""));
    let server = rule.call_pattern.server.as_deref().map(|it| if it == "*" { "any" } else { it });
    let server = server.or_else(|| first.strip_prefix("mcp_").and_then(|it| it.split_once('_')).map(|it| it.0));
    let names = |tool: &str| rule.names_tool(ToolIdentity { tool, server });
    let for_shell = rule.tools.iter().all(|it| current_name(it) == SHELL);
    let (tool, rest) = if for_shell && !names(first) { (SHELL, example) } else { (first, rest) };
    if !names(tool) {
        return false;
    }
    if current_name(tool) != SHELL {
        return rule.matches_args(&serde_json::from_str(rest).unwrap_or_else(|_| json!({})));
    }
    let args = json!({ "command": rest });
    let hit = |it| rule.matches_command(&CommandSpelling::new(it, Some(rest), &args)) == MatchCertainty::Yes;
    match shell::parse(rest).script().commands.as_slice() {
        [] => rule.matches_args(&args),
        commands => commands.iter().any(hit),
    }
}

fn matcher(raw: &mut RawRule) -> Result<ArgsMatcher, String> {
    match (raw.scope.args_pattern.take(), raw.scope.command_prefix.take(), raw.scope.command_regex.take()) {
        (None, None, None) => Ok(ArgsMatcher::Any),
        (Some(it), None, None) => pattern(&it, |it| Regex::new(it).ok()).map(ArgsMatcher::Args),
        (None, None, Some(it)) => pattern(&it, StartPattern::new).map(ArgsMatcher::Command),
        (None, Some(it), None) => {
            let prefixes: Vec<Vec<String>> =
                it.into_vec().iter().map(|it| it.split_whitespace().map(str::to_owned).collect()).collect();
            match prefixes.is_empty() || prefixes.iter().any(Vec::is_empty) {
                true => Err("commandPrefix is empty".to_owned()),
                false => Ok(ArgsMatcher::Prefixes(prefixes)),
            }
        }
        _ => Err("argsPattern, commandPrefix and commandRegex exclude each other".to_owned()),
    }
}

fn pattern<T>(written: &str, compile: impl Fn(&str) -> Option<T>) -> Result<T, String> {
    if written.len() > MAX_REGEX {
        return Err(format!("its pattern is longer than {MAX_REGEX}"));
    }
    compile(written).ok_or_else(|| format!("its pattern {written:?} is not a regular expression"))
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
struct RawChecker {
    #[serde(rename = "type")]
    kind: CheckerKind,
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
enum CheckerKind {
    InProcess,
    External,
}

/// Reads one `[[safety_checker]]`.
fn checker(mut table: toml::Table, tier: Tier, place: &RuleSource) -> Result<CheckerRule, String> {
    let what = table.remove("checker").ok_or("checker is missing")?;
    let raw: RawChecker = what.try_into().map_err(|it: toml::de::Error| it.message().to_owned())?;
    // Its matchers are a rule's, read as generously as those of one that restricts.
    table.insert("decision".to_owned(), "ask_user".into());
    table.entry("priority").or_insert(toml::Value::Integer(0));
    let rule = read_rule(table, tier, place)?;
    let does = match raw.kind {
        CheckerKind::InProcess if raw.name == "allowed-path" => CheckerAction::AllowedPath,
        CheckerKind::InProcess => return Err(format!("castor has no checker {:?}", raw.name)),
        CheckerKind::External if tier < Tier::Workspace => return Err("an extension may not name programs".to_owned()),
        CheckerKind::External => external(&raw)?,
    };
    let timeout_ms = raw.timeout.unwrap_or(TIMEOUT_MS);
    if !(1..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
        return Err(format!("timeout must be 1 to {MAX_TIMEOUT_MS} milliseconds"));
    }
    let wants = |what: &str| raw.required_context.as_ref().is_none_or(|it| it.iter().any(|it| it == what));
    let wants = CheckerContext { environment: wants("environment"), history: wants("history") };
    let what = Arc::new(check::Checker { name: raw.name, action: does, config: raw.config, context: wants });
    Ok(CheckerRule { rule, checker: what, timeout_ms })
}

/// A relative name would be looked up in the folder of the session: whoever writes there would be the checker.
fn external(raw: &RawChecker) -> Result<CheckerAction, String> {
    match raw.name.starts_with('/') || raw.name.starts_with("~/") {
        true => Ok(CheckerAction::External { program: raw.name.clone(), args: raw.args.clone() }),
        false => Err(format!("the program {:?} is neither absolute nor below ~/", raw.name)),
    }
}
