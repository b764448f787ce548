//! Grants: rights that the user allowed for a session or for ever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::path::AbsPath;

/// A standing yes, as narrow as the question was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "grant", rename_all = "snake_case")]
pub enum Grant {
    /// Any call of this tool.
    Tool { tool: String },
    /// Any call of this tool of a server, while it says of itself what it said when the user allowed it.
    Foreign { tool: String, digest: String },
    /// Commands that consist only of these programs (with their sub-command where they have one), such as `git status`.
    Commands { prefixes: Vec<String> },
    /// Edits of files below the roots.
    Edits,
    /// This tool's edits of this one file.
    File { tool: String, path: AbsPath },
    /// This tool's requests to these hosts.
    Hosts { tool: String, hosts: Vec<String> },
    /// Sandboxed commands reach the network.
    Network,
    /// Commands that consist only of these programs reach the network out of the sandbox.
    NetworkFor { prefixes: Vec<String> },
    /// Sandboxed commands write below this folder.
    Write { folder: AbsPath },
    /// File tools read below this folder.
    Read { folder: AbsPath },
}

impl Grant {
    /// Of a tool that changes no files, for a call that asks these hosts, or none.
    pub fn for_tool(tool: &str, hosts: &[String]) -> Self {
        match hosts.is_empty() {
            true => Self::Tool { tool: tool.to_owned() },
            false => Self::Hosts { tool: tool.to_owned(), hosts: hosts.to_vec() },
        }
    }

    /// Whether file tools may read this.
    pub fn opens(&self, path: &AbsPath) -> bool {
        matches!(self, Self::Read { folder } if path.is_within(folder))
    }
}
