//! What a model is told of a tool that there is not.

use super::call::Toolbox;
use crate::{
    base::text,
    engine::step::{Server, Standing},
};

impl Toolbox {
    /// For a name that no tool has: says so, with the nearest names.
    pub fn unknown(&self, name: &str) -> String {
        if let Some(why) = self.servers.iter().find_map(|it| missing(it, name)) {
            return format!("Tool \"{}\" is not available: {why}.", text::head(name, 100));
        }
        let mut near: Vec<(f32, &str)> =
            self.tools.iter().map(|it| (similar::TextDiff::from_chars(name, &it.name).ratio(), &*it.name)).collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0));
        let near: Vec<String> = near.iter().take(3).map(|it| format!("\"{}\"", it.1)).collect();
        format!("Tool \"{}\" not found. Did you mean one of: {}?", text::head(name, 100), near.join(", "))
    }
}

/// Why the server that a tool's name speaks of does not offer it.
fn missing(server: &Server, tool: &str) -> Option<String> {
    let rest = tool.strip_prefix("mcp_")?.strip_prefix(&*server.name)?;
    let why = match &server.standing {
        _ if !rest.starts_with('_') => return None,
        Standing::Ready | Standing::Down(_) => return None,
        Standing::Starting { .. } => "is still starting".to_owned(),
        Standing::Lost(why) => format!("is gone: {why}"),
        Standing::Off(why) => format!("is off: {why}"),
        Standing::Untrusted => "is off: the folder is not trusted".to_owned(),
    };
    Some(format!("MCP server {:?} {why}", server.name))
}
