//! Tool names of MCP servers, as the model knows them.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

/// What all providers take.
const MAX: usize = 63;
/// What is kept of each end of a longer name.
const ENDS: usize = 30;
const PREFIX: &str = "mcp_";

/// The names of one session: `mcp_<server>_<tool>`. Of equal names the first one stays, the others end in a hash of
/// server and tool. A name is never given to another tool, also when its own is gone: the user's yes goes by names.
#[derive(Debug, Default)]
pub struct ToolNames {
    /// By server and tool.
    given: BTreeMap<(String, String), String>,
    taken: BTreeSet<String>,
}

impl ToolNames {
    pub fn name(&mut self, server: &str, tool: &str) -> String {
        let key = (server.to_owned(), tool.to_owned());
        if let Some(known) = self.given.get(&key) {
            return known.clone();
        }
        let plain = plain_name(server, tool);
        let (mut free, mut round) = (plain.clone(), 0);
        while !self.taken.insert(free.clone()) {
            free = marked(&plain, server, tool, round);
            round += 1;
        }
        self.given.insert(key, free.clone());
        free
    }
}

fn plain_name(server: &str, tool: &str) -> String {
    let prefix = if server.starts_with(PREFIX) { "" } else { PREFIX };
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let whole = format!("{prefix}{server}_{tool}");
    let name: String = whole.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    match name.len() > MAX {
        // All characters are ASCII now.
        true => {
            format!("{}...{}", name.get(..ENDS).unwrap_or_default(), name.get(name.len() - ENDS..).unwrap_or_default())
        }
        false => name,
    }
}

fn marked(plain: &str, server: &str, tool: &str, round: u32) -> String {
    let hash = Sha256::digest(format!("{server}\0{tool}\0{round}"));
    let mark: String = hash.iter().take(4).map(|it| format!("{it:02x}")).collect();
    format!("{}_{mark}", plain.get(..MAX - 1 - mark.len()).unwrap_or(plain))
}

#[cfg(test)]
mod tests {
    use super::ToolNames;

    fn check(tools: &[(&str, &str)], expected: &[&str]) {
        let mut names = ToolNames::default();
        let actual: Vec<String> = tools.iter().map(|(server, tool)| names.name(server, tool)).collect();
        assert_eq!(actual, expected);
        assert!(actual.iter().all(|it| it.len() <= 63), "{actual:?}");
    }

    #[test]
    fn names_are_made_of_server_and_tool() {
        check(&[("probe", "echo")], &["mcp_probe_echo"]);
        check(&[("probe", "probe_echo")], &["mcp_probe_probe_echo"]);
        check(&[("mcp_probe", "echo")], &["mcp_probe_echo"]);
        check(&[("a b", "c/d.e:f-g"), ("ü", "→")], &["mcp_a_b_c_d.e:f-g", "mcp____"]);
        check(&[("", "")], &["mcp__"]);
    }

    #[test]
    fn long_names_keep_both_ends() {
        check(&[("s", &"x".repeat(57))], &[&format!("mcp_s_{}", "x".repeat(57))]);
        let tool = format!("{}{}", "a".repeat(40), "b".repeat(40));
        check(&[("s", &tool)], &[&format!("mcp_s_{}...{}", "a".repeat(24), "b".repeat(30))]);
    }

    #[test]
    fn equal_names_are_told_apart() {
        check(&[("a", "b_c"), ("a_b", "c"), ("a b", "c")], &["mcp_a_b_c", "mcp_a_b_c_baef76bb", "mcp_a_b_c_eebe26b5"]);
        // The mark does not depend on who else is there.
        check(&[("x", "b_c"), ("a", "b_c"), ("a_b", "c")], &["mcp_x_b_c", "mcp_a_b_c", "mcp_a_b_c_baef76bb"]);
        let (one, two) = ("x".repeat(80), format!("{}y{}", "x".repeat(40), "x".repeat(39)));
        let mut names = ToolNames::default();
        let (one, two, again) = (names.name("s", &one), names.name("s", &two), names.name("s", &one));
        assert!(one == again && one != two && two.len() <= 63, "{one} {two}");
    }
}
