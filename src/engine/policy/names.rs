//! Tool names: current, former and nearly right.

use castor_base::tool::ToolSpec;

/// Old names of tools that rules and models still use.
const RENAMED: &[(&str, &str)] =
    &[("ShellTool", "run_shell_command"), ("edit", "replace"), ("search_file_content", "grep_search")];

/// The tool whose name a misspelt one resembles.
pub fn nearest_name<'t>(name: &str, own: &'t [ToolSpec]) -> Option<&'t str> {
    let known = own.iter().map(|it| &*it.name);
    let is_pattern = name.ends_with('*') || name.starts_with("mcp_");
    if is_pattern || known.clone().any(|it| it == current_name(name)) {
        return None;
    }
    let ratio = |it: &str| similar::TextDiff::from_chars(name, it).ratio();
    let near = known.map(|it| (ratio(it), it)).max_by(|a, b| a.0.total_cmp(&b.0));
    near.filter(|it| it.0 >= 0.8).map(|it| it.1)
}

/// What the tool is called today.
pub fn current_name(tool: &str) -> &str {
    RENAMED.iter().find(|it| it.0 == tool).map_or(tool, |it| it.1)
}

/// `search` is `mcp_web_search` of the server `web`, in either direction.
pub fn is_same_short_name(pattern: &str, tool: &str, server: &str) -> bool {
    let full = format!("mcp_{server}_");
    tool.strip_prefix(&full) == Some(pattern) || pattern.strip_prefix(&full) == Some(tool)
}

/// `mcp_a_b_c` may be of the server `a` or of `a_b`: only a name without `_` is told.
pub fn belongs_to(full: &str, server: &str) -> bool {
    let said = full.strip_prefix("mcp_").and_then(|it| it.split_once('_')).map(|it| it.0);
    said == Some(server)
}
