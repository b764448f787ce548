//! Which tools a rule speaks of: names, MCP servers by their identity, annotations, sub-agents.

use serde_json::{Map, Value};

use super::{
    Query,
    rules::{Matcher, Rule, Rules},
};
use crate::base::{log::Decision, path::AbsPath, tool::ToolSpec};

/// Whose call it is, beside the tool's name. What is `None` holds for all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Who {
    /// An MCP server, or `*` for any of them.
    pub server: Option<String>,
    pub subagent: Option<String>,
    /// Members that the tool's annotations must have.
    pub annotations: Map<String, Value>,
    /// What the tool must say of itself, as a digest: a yes to one thing is none to what a server makes of it later.
    pub digest: Option<String>,
    /// Where it holds: in this folder and below. Whoever reads the rules for a folder leaves the others out.
    pub folder: Option<AbsPath>,
}

/// Old names of tools that rules and models still use.
const RENAMED: &[(&str, &str)] =
    &[("ShellTool", "run_shell_command"), ("edit", "replace"), ("search_file_content", "grep_search")];

/// What rules may name beside the servers' tools, with what Gemini CLI has and castor does not: its policies are read
/// here, too.
const KNOWN: &[&str] = &[
    "activate_skill",
    "ask_user",
    "complete_task",
    "enter_plan_mode",
    "exit_plan_mode",
    "glob",
    "google_web_search",
    "grep_search",
    "invoke_agent",
    "list_directory",
    "read_file",
    "read_many_files",
    "replace",
    "run_shell_command",
    "save_memory",
    "update_topic",
    "web_fetch",
    "write_file",
    "write_todos",
];

/// The tool that somebody meant who wrote this name, if it is none's.
pub(super) fn nearest_name(name: &str) -> Option<&'static str> {
    let is_pattern = name.ends_with('*') || name.starts_with("mcp_");
    if is_pattern || KNOWN.contains(&current_name(name)) {
        return None;
    }
    let ratio = |it: &str| similar::TextDiff::from_chars(name, it).ratio();
    let near = KNOWN.iter().map(|it| (ratio(it), *it)).max_by(|a, b| a.0.total_cmp(&b.0));
    near.filter(|it| it.0 >= 0.8).map(|it| it.1)
}

/// What the tool is called today.
pub fn current_name(tool: &str) -> &str {
    RENAMED.iter().find(|it| it.0 == tool).map_or(tool, |it| it.1)
}

fn said<'a>(query: &Query<'a>, key: &str) -> Option<&'a Value> {
    query.annotations.and_then(|it| it.said.get(key))
}

/// A tool as it is asked for, and whose it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Named<'a> {
    pub tool: &'a str,
    pub server: Option<&'a str>,
}

impl Rule {
    /// Whether it speaks of this tool at all, here and now.
    pub(super) fn applies(&self, query: &Query) -> bool {
        (self.modes.is_empty() || self.modes.contains(&query.mode))
            && self.interactive.is_none_or(|it| it == query.interactive)
            && self.who.subagent.as_deref().is_none_or(|it| query.subagent == Some(it))
            && self.who.digest.as_deref().is_none_or(|it| query.digest == Some(it))
            && self.who.annotations.iter().all(|(key, want)| said(query, key) == Some(want))
            && (self.names_tool(Named { tool: query.tool, server: query.server }) || self.names_agent(query))
    }

    /// A rule that restricts also goes by the name of the sub-agent that is called; one that allows does not: an
    /// agent may be called like a tool.
    fn names_agent(&self, query: &Query) -> bool {
        let agent = query.args.get("agent_name").and_then(Value::as_str);
        query.tool == "invoke_agent"
            && self.decision != Decision::Allow
            && agent.is_some_and(|agent| self.tools.iter().any(|it| it == agent))
    }

    pub(super) fn names_tool(&self, named: Named) -> bool {
        match (&self.who.server, named.server) {
            (Some(_), None) => return false,
            // Lists of servers do not tell case; a rule that allows does.
            (Some(want), Some(server)) if want == "*" || want == server => (),
            (Some(want), Some(server)) if self.decision != Decision::Allow && want.eq_ignore_ascii_case(server) => (),
            (Some(_), Some(_)) => return false,
            _ => (),
        }
        if let Matcher::NotTools(list) = &self.matcher {
            return named.server.is_none() && !list.iter().any(|it| it == current_name(named.tool));
        }
        self.tools.iter().any(|it| self.names(it, named))
    }

    /// Names of MCP tools are what a server likes them to be: a rule that allows goes by the server's identity, never
    /// by the beginning of a name. One that restricts takes both.
    fn names(&self, pattern: &str, named: Named) -> bool {
        let tool = current_name(named.tool);
        let generous = self.decision != Decision::Allow;
        if pattern == "*" {
            return true;
        }
        if let Some(prefix) = pattern.strip_suffix('*') {
            let server = prefix.strip_prefix("mcp_").map(|it| it.strip_suffix('_').unwrap_or(it));
            let identified = match (server, named.server) {
                (Some(""), Some(_)) => true,
                (Some(want), Some(server)) => want == server,
                _ => false,
            };
            return identified || generous && tool.starts_with(prefix);
        }
        match (&self.who.server, named.server) {
            (Some(_), Some(server)) => tool == pattern || same_short_name(pattern, tool, server),
            // A built-in tool, or a name that no server may take over.
            (None, None) => current_name(pattern) == tool,
            (None, Some(server)) => tool == pattern && (generous || belongs(pattern, server)),
            (Some(_), None) => false,
        }
    }

    /// For people: the tools that it names.
    pub(super) fn shown_tools(&self, tool: &str) -> String {
        let all = self.tools.iter().any(|it| it == "*");
        let tools = if all { "*" } else { tool };
        match &self.who.server {
            Some(server) => format!("{server}/{tools}"),
            None => tools.to_owned(),
        }
    }
}

/// `search` is `mcp_web_search` of the server `web`, in either direction.
fn same_short_name(pattern: &str, tool: &str, server: &str) -> bool {
    let full = format!("mcp_{server}_");
    tool.strip_prefix(&full) == Some(pattern) || pattern.strip_prefix(&full) == Some(tool)
}

/// `mcp_a_b_c` may be of the server `a` or of `a_b`: only a name without `_` is told.
fn belongs(full: &str, server: &str) -> bool {
    let said = full.strip_prefix("mcp_").and_then(|it| it.split_once('_')).map(|it| it.0);
    said == Some(server)
}

/// The rule by which the tool is denied in every mode, whatever its arguments: the model need not know of it.
pub fn hidden<'r>(rules: &'r Rules, tool: &ToolSpec, server: Option<&str>, interactive: bool) -> Option<&'r Rule> {
    let named = Named { tool: &tool.name, server };
    let mut speaking =
        rules.iter().filter(|it| it.names_tool(named) && it.interactive.is_none_or(|it| it == interactive));
    let first = speaking.find(|it| it.decision != Decision::Deny || unconditional(it));
    first.filter(|it| it.decision == Decision::Deny)
}

fn unconditional(rule: &Rule) -> bool {
    matches!(rule.matcher, Matcher::Any | Matcher::NotTools(_))
        && rule.modes.is_empty()
        && rule.who.subagent.is_none()
        && rule.who.annotations.is_empty()
        && rule.who.digest.is_none()
}
