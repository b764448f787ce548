//! Policy file loader: TOML to rules. A rule that cannot be applied exactly is left out, with a warning.

use std::sync::Arc;

use regex::Regex;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use toml::{Spanned, de::DeTable};

use super::{
    error::{FileError, RuleError},
    keys,
    names::{current_name, nearest_name},
    patterns::{CommandSpelling, MatchCertainty},
    rule::{AllowOptions, ArgsMatcher, CallPattern, Examples, Rule, RuleSource, StartPattern, Tier, ToolIdentity},
    rules::{CheckerRule, PolicyFile},
    shell,
};
use castor_base::{
    check::{self, CheckerAction, CheckerContext},
    log::{Decision, Mode},
    path::AbsPath,
    sandbox::ProgramSandbox,
    tool::{RUN_SHELL_COMMAND as SHELL, ToolSpec},
};

/// Longer patterns are not compiled.
const MAX_REGEX: usize = 2048;
/// The time that a checker may take, unless it is written otherwise.
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
#[serde(remote = "Decision", rename_all = "snake_case")]
enum RawDecision {
    Allow,
    Deny,
    #[serde(rename = "ask_user")]
    Ask,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawRule {
    tool_name: Option<OneOrMany>,
    #[serde(with = "RawDecision")]
    decision: Decision,
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

/// The calls that a rule speaks of, beyond the tool's name.
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

pub fn parse(text: &str, tier: Tier, source: &str) -> Result<(PolicyFile, Vec<String>), FileError> {
    let line_of = |at: usize| text.get(..at).map_or(0, |it| it.matches('\n').count() + 1);
    let place_in = |line: usize| RuleSource { file: source.to_owned(), line };
    let line_of_error = |it: &toml::de::Error| it.span().map_or(0, |it| line_of(it.start));
    let broken = |it: toml::de::Error| FileError(place_in(line_of_error(&it)), it.into());
    let whole = DeTable::parse(text).map_err(broken)?;
    keys::check_file(whole.get_ref()).map_err(|why| FileError(place_in(0), why))?;
    let file = File::deserialize(toml::Deserializer::from(whole)).map_err(broken)?;
    let place = |it: &Spanned<toml::Table>| place_in(line_of(it.span().start));
    let (mut rules, mut checkers, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    let mut leave_out = |what: &str, table: &toml::Table, place: &RuleSource, why: RuleError| {
        let stand_in = broken_rule(table, tier, place);
        let then = if stand_in.is_some() { "; castor asks about everything that it may deny" } else { "" };
        warnings.push(format!("{place}: the {what} is left out: {why}{then}"));
        stand_in
    };
    for table in file.rule {
        let (place, table) = (place(&table), table.into_inner());
        match read_rule(table.clone(), tier, &place) {
            Ok(it) => rules.push(it),
            Err(why) => rules.extend(leave_out("rule", &table, &place, why)),
        }
    }
    for table in file.safety_checker {
        let (place, mut table) = (place(&table), table.into_inner());
        // Whatever stands there: its matchers are a rule's, read as generously as those of one that restricts.
        table.insert("decision".to_owned(), "ask_user".into());
        match checker(table.clone(), tier, &place) {
            Ok(it) => checkers.push(it),
            Err(why) => rules.extend(leave_out("checker", &table, &place, why)),
        }
    }
    Ok((PolicyFile { rules, checkers }, warnings))
}

/// Names that are nearly a tool's. A rule holds as it is written: the tool may be one of a server's, or to come.
pub fn misspelt_tools(rules: &[Rule], own: &[ToolSpec]) -> Vec<String> {
    // A server calls its tools what it likes.
    let rules = rules.iter().filter(|it| it.call_pattern.server.is_none() && !it.is_broken());
    let named = rules.flat_map(|rule| rule.tools.iter().map(move |it| (&rule.source, it)));
    let odd = named.filter_map(|(source, name)| Some((source, name, nearest_name(name, own)?)));
    odd.map(|(source, name, near)| format!("{source}: castor has no tool {name}; did you mean {near}?")).collect()
}

/// A rule in place of a broken one that would have restricted something. A broken rule that allows is dropped.
fn broken_rule(table: &toml::Table, tier: Tier, place: &RuleSource) -> Option<Rule> {
    if table.get("decision").and_then(toml::Value::as_str) == Some("allow") {
        return None;
    }
    let named = table.get("toolName").and_then(|it| it.clone().try_into().ok()).map(OneOrMany::into_vec);
    let is_whole = |it: &Vec<String>| !it.is_empty() && !it.iter().any(String::is_empty);
    let mut tools = named.filter(is_whole).unwrap_or_else(|| vec!["*".to_owned()]);
    // Whatever it calls the shell, that is what it is about.
    let for_commands = ["commandPrefix", "commandRegex"].iter().any(|it| table.contains_key(*it));
    if for_commands && !tools.iter().any(|it| it == "*" || current_name(it) == SHELL) {
        tools.push(SHELL.to_owned());
    }
    let priority = table.get("priority").and_then(toml::Value::as_integer);
    let priority = priority.and_then(|it| u16::try_from(it).ok()).unwrap_or(999).min(999);
    Some(Rule::broken(tools, tier, priority, place.clone()))
}

pub fn read_rule(table: toml::Table, tier: Tier, place: &RuleSource) -> Result<Rule, RuleError> {
    // Gemini CLI drops it without a word. A rule that says more than it could be held to must not allow.
    if table.contains_key("safety_checker") && table.get("decision").and_then(toml::Value::as_str) != Some("deny") {
        return Err(RuleError::Refused("its safety_checker counts only as a [[safety_checker]] beside the rules"));
    }
    keys::check_rule(&table)?;
    let mut raw: RawRule = table.try_into()?;
    if raw.priority > 999 {
        return Err(RuleError::Invalid("priority must be 0 to 999"));
    }
    let modes: Option<Vec<Mode>> = raw.modes.iter().map(|it| Mode::parse(it)).collect();
    let modes = modes.ok_or(RuleError::Invalid("it names an unknown mode"))?;
    // Who installs an extension wants its tools, not its opinion on what needs no question.
    if tier == Tier::Extension && (raw.decision == Decision::Allow || modes.contains(&Mode::Yolo)) {
        return Err(RuleError::Refused("an extension may not allow anything, nor say anything of the mode yolo"));
    }
    let matcher = matcher(&mut raw)?;
    let tools = match (raw.tool_name, &raw.scope.mcp_name) {
        (Some(it), _) => it.into_vec(),
        (None, Some(_)) => vec!["*".to_owned()],
        (None, None) => return Err(RuleError::Missing("toolName")),
    };
    if [&raw.scope.mcp_name, &raw.scope.subagent].into_iter().any(|it| it.as_deref() == Some("")) {
        return Err(RuleError::Invalid("mcpName and subagent must not be empty"));
    }
    check_tools(&tools, raw.decision, &matcher)?;
    let scope = raw.scope;
    let relative = RuleError::Invalid("folder must be an absolute path");
    let call_pattern = CallPattern {
        server: scope.mcp_name,
        subagent: scope.subagent,
        annotations: scope.tool_annotations,
        digest: scope.tool_digest,
        folder: scope.folder.map(|it| AbsPath::new(it).ok_or(relative)).transpose()?,
    };
    let res = Rule {
        call_pattern,
        modes,
        interactive: scope.interactive,
        matcher,
        allows: AllowOptions { redirection: raw.allow_redirection, opaque: raw.opaque },
        deny_message: raw.deny_message,
        examples: Examples { matches: raw.matches, not_matches: raw.not_matches },
        ..Rule::new(tools, raw.decision, tier, raw.priority, place.clone())
    };
    // Castor's own examples are looked at by tests, not at each start.
    if tier > Tier::Default {
        check_examples(&res)?;
    }
    Ok(res)
}

/// Checks that a rule of this kind may name these tools.
fn check_tools(tools: &[String], decision: Decision, matcher: &ArgsMatcher) -> Result<(), RuleError> {
    if tools.is_empty() || tools.iter().any(String::is_empty) {
        return Err(RuleError::Invalid("toolName is empty"));
    }
    let pattern = |it: &String| it != "*" && it.ends_with('*') && !(it.starts_with("mcp_") && it.ends_with("_*"));
    if decision == Decision::Allow && tools.iter().any(pattern) {
        let why = "only rules that deny or ask may name tools by a pattern other than mcp_* and mcp_SERVER_*";
        return Err(RuleError::Refused(why));
    }
    let for_commands = matches!(matcher, ArgsMatcher::Prefixes(_) | ArgsMatcher::Command(_));
    match for_commands && !tools.iter().all(|it| current_name(it) == SHELL) {
        true => Err(RuleError::Invalid("commandPrefix and commandRegex are for run_shell_command only")),
        false => Ok(()),
    }
}

/// A rule is held to what its author said of it.
///
/// # Errors
/// The first example that is not as it says.
pub fn check_examples(rule: &Rule) -> Result<(), RuleError> {
    let Examples { matches, not_matches } = &rule.examples;
    let missed = matches.iter().find(|it| !fits(rule, it)).cloned().map(RuleError::Example);
    let hit = || not_matches.iter().find(|it| fits(rule, it)).cloned().map(RuleError::CounterExample);
    missed.or_else(hit).map_or(Ok(()), Err)
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

fn matcher(raw: &mut RawRule) -> Result<ArgsMatcher, RuleError> {
    match (raw.scope.args_pattern.take(), raw.scope.command_prefix.take(), raw.scope.command_regex.take()) {
        (None, None, None) => Ok(ArgsMatcher::Any),
        (Some(it), None, None) => pattern(&it, |it| Regex::new(it).ok()).map(ArgsMatcher::Args),
        (None, None, Some(it)) => pattern(&it, StartPattern::new).map(ArgsMatcher::Command),
        (None, Some(it), None) => {
            let prefixes: Vec<Vec<String>> =
                it.into_vec().iter().map(|it| it.split_whitespace().map(str::to_owned).collect()).collect();
            match prefixes.is_empty() || prefixes.iter().any(Vec::is_empty) {
                true => Err(RuleError::Invalid("commandPrefix is empty")),
                false => Ok(ArgsMatcher::Prefixes(prefixes)),
            }
        }
        _ => Err(RuleError::Invalid("argsPattern, commandPrefix and commandRegex exclude each other")),
    }
}

fn pattern<T>(written: &str, compile: impl Fn(&str) -> Option<T>) -> Result<T, RuleError> {
    if written.len() > MAX_REGEX {
        return Err(RuleError::LongPattern(MAX_REGEX));
    }
    compile(written).ok_or_else(|| RuleError::Pattern(written.to_owned()))
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
    sandbox: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CheckerKind {
    InProcess,
    External,
}

/// Reads one `[[safety_checker]]`.
fn checker(mut table: toml::Table, tier: Tier, place: &RuleSource) -> Result<CheckerRule, RuleError> {
    let what = table.remove("checker").ok_or(RuleError::Missing("checker"))?;
    let raw: RawChecker = what.try_into()?;
    table.entry("priority").or_insert(toml::Value::Integer(0));
    let rule = read_rule(table, tier, place)?;
    let does = match raw.kind {
        CheckerKind::InProcess if raw.name == "allowed-path" => CheckerAction::AllowedPath,
        CheckerKind::InProcess => return Err(RuleError::UnknownChecker(raw.name)),
        CheckerKind::External if tier < Tier::Workspace => {
            return Err(RuleError::Refused("an extension may not name programs"));
        }
        // A relative name would be looked up in the folder of the session: whoever writes there would be the checker.
        CheckerKind::External if !raw.name.starts_with('/') && !raw.name.starts_with("~/") => {
            return Err(RuleError::RelativeProgram(raw.name));
        }
        CheckerKind::External if tier == Tier::Workspace && raw.sandbox.is_some() => {
            return Err(RuleError::Refused("a workspace may not change the sandbox of a program"));
        }
        CheckerKind::External => {
            let sandbox = ProgramSandbox::read(raw.sandbox.as_ref());
            let sandbox = sandbox.map_err(|_| RuleError::Invalid("its sandbox has an unknown key or value"))?;
            CheckerAction::External { program: raw.name.clone(), args: raw.args, sandbox }
        }
    };
    let timeout_ms = raw.timeout.unwrap_or(TIMEOUT_MS);
    if !(1..=MAX_TIMEOUT_MS).contains(&timeout_ms) {
        return Err(RuleError::Timeout(MAX_TIMEOUT_MS));
    }
    let wants = |what: &str| raw.required_context.as_ref().is_none_or(|it| it.iter().any(|it| it == what));
    let wants = CheckerContext { environment: wants("environment"), history: wants("history") };
    let what = Arc::new(check::Checker { name: raw.name, action: does, config: raw.config, context: wants });
    Ok(CheckerRule { rule, checker: what, timeout_ms })
}
