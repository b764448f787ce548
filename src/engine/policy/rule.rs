//! One policy rule: its tier, source, tools and argument matchers.

use regex::Regex;
use regex_syntax::hir::literal::{Extractor, Literal};
use serde_json::{Map, Value};

use super::{
    names::{belongs_to, current_name, is_same_short_name},
    query::Query,
};
use castor_base::{
    agent::INVOKE_AGENT,
    log::{Decision, GRANTS_FILE, Mode, PersistentGrant},
    patch::PATCH_TOOLS,
    path::AbsPath,
    sampling::SAMPLING,
    tool::ToolSpec,
};

/// The tier of a rule. A rule of a higher tier precedes every rule of a lower one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tier {
    Default = 1,
    Extension = 2,
    Workspace = 3,
    User = 4,
    Admin = 5,
}

/// The priority of a saved permission, in thousandths: above what users usually write, as Gemini CLI's.
const SAVED_GRANT_PRIORITY: u32 = Tier::User as u32 * 1000 + 950;

/// One rule of a policy file.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Exact names, `*`, or (never for allow) a name that ends with `*`.
    pub tools: Vec<String>,
    pub call_pattern: CallPattern,
    pub decision: Decision,
    pub tier: Tier,
    /// 0 to 999, within the tier.
    pub priority: u16,
    /// Empty: all.
    pub modes: Vec<Mode>,
    /// `Some(true)`: it holds only when the user can be asked; `Some(false)`: only when not.
    pub interactive: Option<bool>,
    pub matcher: ArgsMatcher,
    pub allows: AllowOptions,
    pub deny_message: Option<String>,
    pub source: RuleSource,
    pub examples: Examples,
}

/// The calls that a rule applies to, beside the tool's name. `None` matches all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallPattern {
    /// An MCP server, or `*` for any of them.
    pub server: Option<String>,
    pub subagent: Option<String>,
    /// Members that the tool's annotations must have.
    pub annotations: Map<String, Value>,
    /// The digest of what the tool must say of itself: an approval of one thing is none of what a server makes of it
    /// later.
    pub digest: Option<String>,
    /// The folder where it holds, and below. The reader of rules for a folder leaves the others out.
    pub folder: Option<AbsPath>,
}

/// Options of a rule that allows commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowOptions {
    /// Output may go to files.
    pub redirection: bool,
    /// Opaque lines that begin with what the rule names.
    pub opaque: bool,
}

/// The file and place of a rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RuleSource {
    /// For people: a file, or a setting.
    pub file: String,
    /// From 1; 0: there are no lines.
    pub line: usize,
}

impl std::fmt::Display for RuleSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => f.write_str(&self.file),
            line => write!(f, "{}:{line}", self.file),
        }
    }
}

/// Conditions on the arguments.
#[derive(Clone, Debug)]
pub enum ArgsMatcher {
    Any,
    /// Nothing: the rule says something that cannot be held.
    Never,
    /// Any tool but these, and no tool of an MCP server.
    NotTools(Vec<String>),
    /// A rule that restricts, but cannot be read, stands here: what the others would allow is asked about.
    Broken,
    /// A file of a plan.
    PlanFile,
    /// Over the arguments as JSON with sorted keys, each pair between NUL characters.
    Args(Regex),
    /// Leading words of a shell command.
    Prefixes(Vec<Vec<String>>),
    /// Beginning of a shell command.
    Command(StartPattern),
}

/// A pattern for the beginning of a text.
#[derive(Clone, Debug)]
pub struct StartPattern {
    regex: Regex,
    /// With what all that it matches begins, in lower case, if that can be told.
    pub first_words: Option<Vec<String>>,
}

impl StartPattern {
    pub fn new(pattern: &str) -> Option<Self> {
        let regex = Regex::new(&format!("^(?:{pattern})")).ok()?;
        let heads = Extractor::new().extract(&regex_syntax::parse(regex.as_str()).ok()?);
        let first_word = |it: &Literal| {
            let text = str::from_utf8(it.as_bytes()).ok()?;
            text.split_once(' ').map(|it| it.0.to_ascii_lowercase())
        };
        let first_words = heads.literals().and_then(|it| it.iter().map(first_word).collect());
        Some(Self { regex, first_words })
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    pub fn as_str(&self) -> &str {
        self.regex.as_str()
    }
}

/// Calls the rule matches and does not, such as `run_shell_command git status`; checked by tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examples {
    pub matches: Vec<String>,
    pub not_matches: Vec<String>,
}

/// A tool as it is asked for, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolIdentity<'a> {
    pub tool: &'a str,
    pub server: Option<&'a str>,
}

impl Rule {
    /// For all calls of these tools.
    pub fn new(tools: Vec<String>, decision: Decision, tier: Tier, priority: u16, source: RuleSource) -> Self {
        Self {
            tools,
            call_pattern: CallPattern::default(),
            decision,
            tier,
            priority,
            modes: Vec::new(),
            interactive: None,
            matcher: ArgsMatcher::Any,
            allows: AllowOptions::default(),
            deny_message: None,
            source,
            examples: Examples::default(),
        }
    }

    /// A rule in place of one that cannot be read.
    pub fn broken(tools: Vec<String>, tier: Tier, priority: u16, source: RuleSource) -> Self {
        Self { matcher: ArgsMatcher::Broken, ..Self::new(tools, Decision::Ask, tier, priority, source) }
    }

    /// A rule in place of a file that cannot be read: castor asks about everything.
    pub fn broken_file(tier: Tier, file: &str) -> Self {
        Self::broken(vec!["*".to_owned()], tier, 999, RuleSource { file: file.to_owned(), line: 0 })
    }

    /// Its place in the order: tier + priority / 1000, in thousandths.
    pub fn effective_priority(&self) -> u32 {
        self.tier as u32 * 1000 + u32::from(self.priority)
    }

    /// For people, when it spoke of `tool`: `default/write.toml: run_shell_command`.
    pub fn name(&self, tool: &str) -> String {
        // It stands for a whole file.
        if self.is_broken() && self.source.line == 0 {
            return format!("{} cannot be read; castor asks about everything that it may deny", self.source);
        }
        format!("{}: {}", self.source, self.in_words(tool))
    }

    pub fn in_words(&self, tool: &str) -> String {
        let tools = self.describe_tools(tool);
        let what = match &self.matcher {
            ArgsMatcher::Any | ArgsMatcher::Never | ArgsMatcher::NotTools(_) | ArgsMatcher::PlanFile => String::new(),
            ArgsMatcher::Broken => " (a rule that cannot be read)".to_owned(),
            ArgsMatcher::Args(it) => PersistentGrant::pattern_in_words(it.as_str()),
            ArgsMatcher::Command(it) => format!(" {}", it.as_str()),
            ArgsMatcher::Prefixes(it) => {
                format!(" {}", it.iter().map(|it| it.join(" ")).collect::<Vec<_>>().join(", "))
            }
        };
        format!("{tools}{what}")
    }

    /// For people: the tools that it names.
    pub fn describe_tools(&self, tool: &str) -> String {
        let all = self.tools.iter().any(|it| it == "*");
        let tools = if all { "*" } else { tool };
        match &self.call_pattern.server {
            Some(server) => format!("{server}/{tools}"),
            None => tools.to_owned(),
        }
    }

    /// Tells whether it says something of the arguments.
    pub fn is_specific(&self) -> bool {
        matches!(self.matcher, ArgsMatcher::Args(_) | ArgsMatcher::Prefixes(_) | ArgsMatcher::Command(_))
    }

    pub fn is_broken(&self) -> bool {
        matches!(self.matcher, ArgsMatcher::Broken)
    }

    pub fn is_for_plans(&self) -> bool {
        matches!(self.matcher, ArgsMatcher::PlanFile)
    }

    /// Tells whether it is a saved permission.
    pub fn is_saved(&self) -> bool {
        self.decision == Decision::Allow && std::path::Path::new(&self.source.file).ends_with(GRANTS_FILE)
    }

    /// Tells whether only an approval of the call itself counts where this rule asks.
    pub fn asks_every_time(&self) -> bool {
        let written_above = self.effective_priority() >= SAVED_GRANT_PRIORITY && !self.is_broken();
        self.tier == Tier::Admin || written_above || self.tier == Tier::Default && self.is_specific()
    }
}

impl Rule {
    /// Tells whether it speaks of this tool at all, here and now.
    pub fn applies(&self, query: &Query) -> bool {
        let said = |key: &str| query.origin.annotations.and_then(|it| it.members.get(key));
        (self.modes.is_empty() || self.modes.contains(&query.mode))
            && self.interactive.is_none_or(|it| it == query.interactive)
            && self.call_pattern.subagent.as_deref().is_none_or(|it| query.origin.subagent == Some(it))
            && self.call_pattern.digest.as_deref().is_none_or(|it| query.origin.digest == Some(it))
            && self.call_pattern.annotations.iter().all(|(key, want)| said(key) == Some(want))
            && (self.names_call(query) || self.names_agent(query))
    }

    /// What a patch does to a file has the names of the tools that do the same. Where it restricts, a rule that names
    /// any of these speaks of it.
    fn names_call(&self, query: &Query) -> bool {
        let names = |tool| self.names_tool(ToolIdentity { tool, server: query.origin.server });
        match (query.origin.called, &self.matcher, self.decision) {
            (None, ..) => names(query.tool),
            (Some(called), ArgsMatcher::NotTools(_), _) => names(query.tool) && names(called),
            (Some(called), _, Decision::Allow) => names(query.tool) || names(called),
            (Some(_), ..) => PATCH_TOOLS.iter().any(|it| names(it)),
        }
    }

    /// Tells whether it speaks of an available tool.
    pub fn names_offer(&self, tool: &ToolSpec, server: Option<&str>) -> bool {
        let names = |tool| self.names_tool(ToolIdentity { tool, server });
        match (&self.matcher, tool.traits.is_patch) {
            (_, false) => names(&tool.name),
            (ArgsMatcher::NotTools(_), true) => PATCH_TOOLS.iter().all(|it| names(it)),
            (_, true) => PATCH_TOOLS.iter().any(|it| names(it)),
        }
    }

    /// A rule that restricts also goes by the name of the sub-agent that is called; one that allows does not: an
    /// agent may be called like a tool.
    fn names_agent(&self, query: &Query) -> bool {
        let agent = || query.args.get("agent_name").and_then(Value::as_str);
        query.tool == INVOKE_AGENT
            && self.decision != Decision::Allow
            && agent().is_some_and(|agent| self.tools.iter().any(|it| it == agent))
    }

    pub fn names_tool(&self, named: ToolIdentity) -> bool {
        match (&self.call_pattern.server, named.server) {
            (Some(_), None) => return false,
            // Lists of servers do not tell case; a rule that allows does.
            (Some(want), Some(server)) if want == "*" || want == server => (),
            (Some(want), Some(server)) if self.decision != Decision::Allow && want.eq_ignore_ascii_case(server) => (),
            (Some(_), Some(_)) => return false,
            _ => (),
        }
        if let ArgsMatcher::NotTools(list) = &self.matcher {
            return named.server.is_none() && !list.iter().any(|it| it == current_name(named.tool));
        }
        self.tools.iter().any(|it| self.names(it, named))
    }

    /// Names of MCP tools are what a server likes them to be: a rule that allows goes by the server's identity, never
    /// by the beginning of a name. One that restricts takes both.
    fn names(&self, pattern: &str, named: ToolIdentity) -> bool {
        let tool = current_name(named.tool);
        let generous = self.decision != Decision::Allow;
        // Who allows all tools of a server does not say what it may ask of a model.
        let is_request = named.tool == SAMPLING && !generous;
        if pattern == "*" {
            return !is_request || self.call_pattern.server.is_none();
        }
        if let Some(prefix) = pattern.strip_suffix("*") {
            let server = prefix.strip_prefix("mcp_").map(|it| it.strip_suffix('_').unwrap_or(it));
            let identified =
                matches!((server, named.server), (Some(want), Some(server)) if want.is_empty() || want == server);
            return !is_request && (identified || generous && tool.starts_with(prefix));
        }
        match (&self.call_pattern.server, named.server) {
            (Some(_), Some(server)) => tool == pattern || is_same_short_name(pattern, tool, server),
            // A built-in tool, or a name that no server may take over.
            (None, None) => current_name(pattern) == tool,
            (None, Some(server)) => tool == pattern && (generous || belongs_to(pattern, server)),
            (Some(_), None) => false,
        }
    }

    /// For calls that are no shell command.
    pub fn matches(&self, query: &Query) -> bool {
        match &self.matcher {
            ArgsMatcher::PlanFile => self.tools.iter().any(|it| it == current_name(query.tool)) && query.is_plan_file(),
            _ => self.matches_args(query.args),
        }
    }

    /// The same by the arguments alone.
    pub fn matches_args(&self, args: &Value) -> bool {
        match &self.matcher {
            ArgsMatcher::Any | ArgsMatcher::Broken | ArgsMatcher::NotTools(_) => true,
            ArgsMatcher::Args(it) => it.is_match(&stable_text(args, None)),
            ArgsMatcher::Prefixes(_) | ArgsMatcher::Command(_) | ArgsMatcher::PlanFile | ArgsMatcher::Never => false,
        }
    }
}

/// The arguments with sorted keys; patterns can hold on to the NUL characters around each pair, which no JSON text
/// has in it. `command` takes the place of the argument of that name.
pub fn stable_text(args: &Value, command: Option<&str>) -> String {
    let Value::Object(map) = args else { return args.to_string() };
    let mut pairs: Vec<(&String, String)> = map
        .iter()
        .map(|(key, value)| match command {
            Some(command) if key == "command" => (key, Value::from(command).to_string()),
            _ => (key, sorted(value).to_string()),
        })
        .collect();
    pairs.sort();
    let pairs: Vec<String> =
        pairs.iter().map(|(key, value)| format!("\0{}:{value}\0", Value::from(key.as_str()))).collect();
    format!("{{{}}}", pairs.join(","))
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(sorted).collect(),
        Value::Object(map) => {
            let mut pairs: Vec<(&String, &Value)> = map.iter().collect();
            pairs.sort_by_key(|it| it.0);
            Value::Object(pairs.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect())
        }
        other => other.clone(),
    }
}
