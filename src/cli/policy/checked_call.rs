//! Arguments of `castor policy check`: a shell command, or a tool call with its arguments.

use serde_json::{Value, json};

use castor_agent::session::policies::own_tools;
use castor_base::tool::{RUN_SHELL_COMMAND as SHELL, ToolKind};
use castor_engine::{
    policy::{RuleSet, current_name},
    scheduler::Toolbox,
};
use castor_tools::mcp::ToolNames;

/// A call.
#[derive(Debug, PartialEq)]
pub struct CheckedCall {
    pub tool: String,
    pub kind: ToolKind,
    pub args: Value,
    /// Of an MCP server.
    pub server: Option<String>,
}

impl CheckedCall {
    pub fn command(text: &str) -> Self {
        let args = json!({ "command": text });
        Self { tool: SHELL.to_owned(), kind: ToolKind::Execute, args, server: None }
    }
}

/// With arguments or a server it is a tool; a tool's name alone might mean either, and is refused; the rest is a
/// command. `servers` are those of the settings.
///
/// # Errors
/// In words: what cannot be meant, or only guessed.
pub fn read(what: &str, args: Option<&str>, server: Option<&str>, servers: &[String]) -> Result<CheckedCall, String> {
    let known = Toolbox::new(
        own_tools().to_vec(),
        // None is hidden: what is denied is asked about too.
        RuleSet::default(),
        true,
    );
    let own = known.find(current_name(what));
    if args.is_none() && server.is_none() {
        return match own.is_some() || what.starts_with("mcp_") && !what.contains(char::is_whitespace) {
            true => Err(format!(
                "{what} is a tool: add its arguments as JSON (castor policy check {what} '{{…}}'), or --command if a \
                 shell command of that name is meant"
            )),
            false => Ok(CheckedCall::command(what)),
        };
    }
    // `castor policy check rm x`
    let is_tool = own.is_some() || server.is_some() || what.starts_with("mcp_");
    if let Some(more) = args.filter(|it| !is_tool && !it.trim_start().starts_with(['{', '['])) {
        return Err(format!("a command is one word here: quote it (castor policy check '{what} {more}')"));
    }
    let args: Value = match serde_json::from_str(args.unwrap_or("{}")) {
        Ok(it @ Value::Object(_)) => it,
        _ => return Err(format!("the arguments of {what} are not a JSON object")),
    };
    if let (None, Some(own)) = (server, own) {
        return Ok(CheckedCall { tool: own.name.to_string(), kind: own.kind, args, server: None });
    }
    let server = match (server, what.starts_with("mcp_")) {
        (Some(it), _) => it,
        (None, true) => server_of(what, servers)?,
        (None, false) => {
            let why = known.unknown_tool_output(what).error.map(|it| it.message).unwrap_or_default();
            return Err(format!("{why} For a tool of an MCP server add --server NAME."));
        }
    };
    let tool = if what.starts_with("mcp_") { what.to_owned() } else { ToolNames::default().name(server, what) };
    Ok(CheckedCall { tool, kind: ToolKind::Other, args, server: Some(server.to_owned()) })
}

/// Whose tool it is: names do not tell where a server's ends.
fn server_of<'a>(tool: &str, servers: &'a [String]) -> Result<&'a str, String> {
    let its = |it: &&String| tool.starts_with(&ToolNames::default().name(it, ""));
    let mut found = servers.iter().filter(its);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (Some(one), Some(other)) => {
            Err(format!("{tool} may be a tool of {one} or of {other}; say whose with --server NAME"))
        }
        (None, _) => {
            let known = if servers.is_empty() { "none".to_owned() } else { servers.join(", ") };
            Err(format!("{tool} is no tool of a server of the settings (there: {known}); say whose with --server NAME"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn tools_and_commands() {
        let servers = ["web", "web_b", "odd name"].map(str::to_owned);
        let said = |what: &str, args: Option<&str>, server: Option<&str>| match read(what, args, server, &servers) {
            Ok(it) => format!("{} {} {}", it.tool, it.args, it.server.unwrap_or_default()),
            Err(why) => why.split(['(', ';', ':']).next().unwrap_or_default().trim().to_owned(),
        };
        let all = Some("{}");
        for (what, args, server, want) in [
            ("make", None, None, r#"run_shell_command {"command":"make"} "#),
            ("mcp_web_get it", None, None, r#"run_shell_command {"command":"mcp_web_get it"} "#),
            ("read_file", None, None, "read_file is a tool"),
            ("edit", None, None, "edit is a tool"),
            ("ask_user", None, None, "ask_user is a tool"),
            ("mcp_web_get", None, None, "mcp_web_get is a tool"),
            ("read_file", all, None, "read_file {} "),
            ("edit", all, None, "replace {} "),
            ("read_file", all, Some("web"), "mcp_web_read_file {} web"),
            ("mcp_web_get", all, None, "mcp_web_get {} web"),
            ("mcp_web_b_get", all, None, "mcp_web_b_get may be a tool of web or of web_b"),
            ("mcp_web_b_get", None, Some("web_b"), "mcp_web_b_get {} web_b"),
            ("mcp_odd_name_get", all, None, "mcp_odd_name_get {} odd name"),
            ("get", all, Some("new"), "mcp_new_get {} new"),
            ("mcp_other_get", all, None, "mcp_other_get is no tool of a server of the settings"),
            ("get", Some("[1]"), Some("web"), "the arguments of get are not a JSON object"),
            ("rm", Some("x"), None, "a command is one word here"),
            ("get", Some("{"), None, "the arguments of get are not a JSON object"),
            ("red_file", all, None, "Tool \"red_file\" not found. Did you mean one of"),
        ] {
            assert_eq!(said(what, args, server), want, "{what} {args:?} {server:?}");
        }
    }
}
