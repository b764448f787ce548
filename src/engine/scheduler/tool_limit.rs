//! The most tools that a provider takes: beyond it those of the servers leave that the session used least.

use crate::step::ForeignTool;
use castor_base::tool_offer::ToolOffer;

/// The tools of a request that its provider takes.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedTools {
    /// What they were chosen from, and the most of them.
    pub from: ToolOffer,
    pub max: usize,
    pub tools: ToolOffer,
    /// Servers with the number of their tools that left.
    pub left: Vec<(String, usize)>,
}

impl FittedTools {
    /// `n_calls`: how often a tool was called. Tools of castor and of the host stay.
    pub fn new(from: &ToolOffer, foreign: &[ForeignTool], max: usize, n_calls: impl Fn(&str) -> usize) -> Self {
        let position = |server: &str| foreign.iter().position(|it| it.server == server);
        let of_server = |server: &str| -> usize {
            foreign.iter().filter(|it| it.server == server).map(|it| n_calls(&it.spec.name)).sum()
        };
        let offered = foreign.iter().enumerate().filter(|(_, it)| from.iter().any(|tool| tool.name == it.spec.name));
        let mut order: Vec<_> = offered
            .map(|(at, it)| {
                let server = (of_server(&it.server), std::cmp::Reverse(position(&it.server)));
                ((server, n_calls(&it.spec.name), std::cmp::Reverse(at)), it)
            })
            .collect();
        order.sort_by_key(|it| it.0);
        let leaving: Vec<&ForeignTool> =
            order.into_iter().map(|it| it.1).take(from.len().saturating_sub(max)).collect();
        let mut left: Vec<(String, usize)> = Vec::new();
        for it in &leaving {
            match left.iter_mut().find(|(server, _)| *server == it.server) {
                Some((_, n)) => *n += 1,
                None => left.push((it.server.clone(), 1)),
            }
        }
        let stays = |name: &str| !leaving.iter().any(|it| it.spec.name == *name);
        let tools = from.iter().filter(|it| stays(&it.name)).cloned().collect();
        Self { from: from.clone(), max, tools, left }
    }

    /// For the user: what left, and how to choose.
    pub fn notice(&self, model: &str) -> String {
        let n_left: usize = self.left.iter().map(|it| it.1).sum();
        let servers: Vec<String> = self.left.iter().map(|(server, n)| format!("{server:?} ({n})")).collect();
        format!(
            "The provider of {model} takes {} tools at most, so castor leaves out {n_left} of the MCP servers that this \
             session used least: {}. `includeTools` of a server in your settings says which of its tools castor takes.",
            self.max,
            servers.join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::FittedTools;
    use crate::step::ForeignTool;
    use castor_base::{
        tool::{ToolKind, ToolSpec},
        tool_offer::ToolOffer,
    };

    fn spec(name: &str) -> ToolSpec {
        ToolSpec {
            name: name.to_owned().into(),
            title: "".into(),
            description: "".into(),
            kind: ToolKind::Other,
            traits: Default::default(),
            parameters: json!({}).into(),
        }
    }

    /// `foreign`: in the order of the lists, `server:tool`. Gives the names that stay, and the servers whose tools left.
    fn check(own: &[&str], foreign: &[&str], max: usize, called: &[&str], expected: (&str, &str)) {
        let foreign: Vec<ForeignTool> = foreign
            .iter()
            .map(|it| ForeignTool {
                spec: spec(it),
                server: it.split_once(':').unwrap().0.to_owned(),
                annotations: json!({}),
                trusted: false,
                agent: None,
            })
            .collect();
        let all: ToolOffer = own.iter().map(|it| spec(it)).chain(foreign.iter().map(|it| it.spec.clone())).collect();
        let got = FittedTools::new(&all, &foreign, max, |name| called.iter().filter(|it| **it == name).count());
        let names: Vec<&str> = got.tools.iter().map(|it| &*it.name).collect();
        let left: Vec<String> = got.left.iter().map(|(server, n)| format!("{server} {n}")).collect();
        assert_eq!((names.join(" "), left.join(" ")), (expected.0.to_owned(), expected.1.to_owned()));
    }

    #[test]
    fn the_least_used_servers_tools_leave() {
        let foreign = ["a:1", "a:2", "b:1", "b:2"];
        check(&["x", "y"], &foreign, 6, &[], ("x y a:1 a:2 b:1 b:2", ""));
        check(&["x", "y"], &foreign, 5, &[], ("x y a:1 a:2 b:1", "b 1"));
        check(&["x", "y"], &foreign, 3, &[], ("x y a:1", "b 2 a 1"));
        check(&["x", "y"], &foreign, 3, &["b:2"], ("x y b:2", "a 2 b 1"));
        check(&["x", "y"], &foreign, 4, &["b:2", "a:1", "b:1"], ("x y b:1 b:2", "a 2"));
        check(&["x", "y"], &foreign, 1, &[], ("x y", "b 2 a 2"));
    }

    #[test]
    fn the_user_reads_which() {
        let fitted =
            FittedTools { from: [].into(), max: 128, tools: [].into(), left: vec![("s".into(), 80), ("t".into(), 9)] };
        assert!(
            fitted
                .notice("m")
                .contains("leaves out 89 of the MCP servers that this session used least: \"s\" (80), \"t\" (9).")
        );
    }
}
