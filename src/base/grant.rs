//! Grants: rights that the user allowed for a session or for ever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::{
    network::{HostGrant, PortGrant},
    path::AbsPath,
};

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
    /// Sandboxed commands reach these hosts, and these ports of this machine.
    Reach {
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        hosts: Vec<HostGrant>,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ports: Vec<PortGrant>,
    },
    /// Sandboxed commands write below this folder.
    Write { folder: AbsPath },
    /// Sessions in this folder begin in the mode `auto`.
    Auto,
    /// File tools read this, and what is below; commands see it.
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

    /// What it lets sandboxed commands reach, in words; `None`: it is no such grant.
    pub fn reach_in_words(&self) -> Option<String> {
        let Self::Reach { hosts, ports } = self else { return None };
        let all = hosts.iter().map(HostGrant::in_words).chain(ports.iter().map(PortGrant::in_words));
        Some(all.collect::<Vec<_>>().join(", "))
    }

    /// Whether file tools may read this.
    pub fn opens(&self, path: &AbsPath) -> bool {
        matches!(self, Self::Read { folder } if path.is_within(folder))
    }
}
