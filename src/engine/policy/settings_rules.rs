//! Policy rules from settings (allowed and excluded tools), at the priorities of Gemini CLI.

use super::{
    names::current_name,
    rule::{ArgsMatcher, CallPattern, Rule, RuleSource, Tier},
};
use castor_base::{
    log::{Decision, Mode},
    tool::RUN_SHELL_COMMAND as SHELL,
};

/// Lists of tools and MCP servers in settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolLists {
    pub exclude: Vec<String>,
    pub allowed: Vec<String>,
    /// The only built-in tools that the model may use.
    pub core: Option<Vec<String>>,
    /// The user, not only the workspace, gave `core`: a repository may take tools away, not allow them.
    pub core_allows: bool,
    pub confirm: Vec<String>,
    pub mcp_excluded: Vec<String>,
    /// By the user; what only the workspace lists is not in here.
    pub mcp_allowed: Vec<String>,
    pub mcp_trusted: Vec<String>,
}

/// Modes in which an allow of the settings counts: plan mode is for looking only.
const NOT_PLAN: &[Mode] = &[Mode::Default, Mode::AutoEdit, Mode::Auto, Mode::Yolo];

/// The rules, in the user's tier.
pub fn rules(lists: &ToolLists) -> Vec<Rule> {
    let mut res = Vec::new();
    for it in &lists.mcp_excluded {
        res.push(of_server(it, Decision::Deny, 900, "mcp.excluded"));
    }
    for it in &lists.exclude {
        res.push(tool_rule(it, Decision::Deny, 400, "tools.exclude"));
    }
    for it in &lists.confirm {
        res.push(tool_rule(it, Decision::Ask, 350, "tools.confirmationRequired"));
    }
    for it in &lists.allowed {
        res.push(tool_rule(it, Decision::Allow, 300, "tools.allowed"));
        // Who lists some commands of the shell does not want the others.
        if split(it).1.is_some() {
            res.push(tool_rule(SHELL, Decision::Deny, 290, "tools.allowed (only some commands)"));
        }
    }
    core(lists, &mut res);
    for it in &lists.mcp_trusted {
        res.push(of_server(it, Decision::Allow, 200, "mcpServers: trust"));
    }
    for it in &lists.mcp_allowed {
        res.push(of_server(it, Decision::Allow, 100, "mcp.allowed"));
    }
    // A narrowed and a plain entry of one tool: the plain one wins.
    let plain = lists.allowed.iter().any(|it| current_name(split(it).0) == SHELL && split(it).1.is_none());
    res.retain(|it| !(plain && it.priority == 290));
    res
}

fn core(lists: &ToolLists, res: &mut Vec<Rule>) {
    let Some(core) = &lists.core else { return };
    let source = "tools.core";
    if lists.core_allows {
        for it in core {
            res.push(Rule { modes: NOT_PLAN.to_vec(), ..tool_rule(it, Decision::Allow, 250, source) });
        }
        res.push(Rule { call_pattern: CallPattern::default(), ..tool_rule("*", Decision::Deny, 240, source) });
        return;
    }
    let names: Vec<String> = core.iter().map(|it| current_name(split(it).0).to_owned()).collect();
    res.push(Rule { matcher: ArgsMatcher::NotTools(names), ..tool_rule("*", Decision::Deny, 240, source) });
}

/// `shell(git status)` is the tool and a prefix.
fn split(entry: &str) -> (&str, Option<&str>) {
    match entry.trim().split_once('(') {
        Some((tool, rest)) => (tool.trim(), Some(rest.trim_end().trim_end_matches(')').trim())),
        None => (entry.trim(), None),
    }
}

fn tool_rule(entry: &str, decision: Decision, priority: u16, source: &str) -> Rule {
    let (tool, prefix) = split(entry);
    let tool = if tool == "shell" { SHELL } else { current_name(tool) };
    let prefix: Option<Vec<String>> = prefix.map(|it| it.split_whitespace().map(str::to_owned).collect());
    let matcher = match prefix.filter(|it| !it.is_empty()) {
        Some(words) if tool == SHELL => ArgsMatcher::Prefixes(vec![words]),
        // What is in the brackets cannot be held for other tools: the rule must not say more than was written.
        Some(_) if decision == Decision::Allow => ArgsMatcher::Never,
        _ => ArgsMatcher::Any,
    };
    rule(tool, decision, priority, matcher, source)
}

fn of_server(server: &str, decision: Decision, priority: u16, source: &str) -> Rule {
    let call_pattern = CallPattern { server: Some(server.to_owned()), ..CallPattern::default() };
    let all = Rule { call_pattern, ..rule("*", decision, priority, ArgsMatcher::Any, source) };
    match decision {
        Decision::Allow => Rule { modes: NOT_PLAN.to_vec(), ..all },
        _ => all,
    }
}

fn rule(tool: &str, decision: Decision, priority: u16, matcher: ArgsMatcher, source: &str) -> Rule {
    let file = RuleSource { file: format!("settings: {source}"), line: 0 };
    let deny_message = (decision == Decision::Deny).then(|| format!("The user's settings ({source}) exclude it."));
    Rule { matcher, deny_message, ..Rule::new(vec![tool.to_owned()], decision, Tier::User, priority, file) }
}
