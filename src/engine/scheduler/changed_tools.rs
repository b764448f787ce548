//! Grants of server tools that changed: they end, and the user reads that.

use super::toolbox::Toolbox;
use crate::step::ForeignTool;
use castor_base::log::Grant;

impl Toolbox {
    /// The grants of the session for tools as they were, and a notice for each, also of saved permissions. The rule
    /// stays: it holds again where the tool is as it was.
    pub fn outdated_grants(&self, session: &[Grant]) -> (Vec<Grant>, Vec<String>) {
        let (mut grants, mut notices) = (Vec::new(), Vec::new());
        for tool in self.foreign_tools.iter() {
            let digest = tool.digest();
            let is_old = |name: &str, of: &str| *name == tool.spec.name && *of != digest;
            let ended =
                session.iter().filter(|it| matches!(it, Grant::Foreign { tool, digest } if is_old(tool, digest)));
            let n_known = grants.len();
            grants.extend(ended.cloned());
            if grants.len() > n_known {
                notices.push(notice(tool, "what you allowed of it ends"));
            }
            let saved = |it: &&crate::policy::Rule| {
                it.is_saved() && it.tools.first().is_some_and(|name| *name == tool.spec.name)
            };
            let mut digests =
                self.rules.iter().filter(saved).filter_map(|it| it.call_pattern.digest.as_deref()).peekable();
            if digests.peek().is_some() && !digests.any(|it| it == digest) {
                notices.push(notice(tool, "your permanent permission is for what it was, and castor asks again"));
            }
        }
        (grants, notices)
    }
}

fn notice(tool: &ForeignTool, what: &str) -> String {
    format!("MCP server {:?} says something else of its tool `{}` now: {what}.", tool.server, tool.spec.name)
}
