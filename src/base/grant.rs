//! Grants: rights that the user allowed for a session or for ever.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    network::{HostGrant, PortGrant},
    path::AbsPath,
    text::path_in_words,
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
    /// Sandboxed commands that reach none but these hosts see these secret files of the workspace, and reach the hosts.
    Secrets {
        files: Vec<AbsPath>,
        hosts: Vec<HostGrant>,
        /// Of these exact words; `None`: all commands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        line: Option<String>,
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

    /// Which secrets it lets which commands see with which hosts, in words; `None`: it is no such grant.
    pub fn secrets_in_words(&self) -> Option<String> {
        let Self::Secrets { files, hosts, line } = self else { return None };
        let whose = line.as_ref().map_or_else(|| "commands".to_owned(), |it| format!("`{it}`"));
        let files: Vec<String> = files.iter().map(|it| path_in_words(&it.to_string())).collect();
        let hosts: Vec<String> = hosts.iter().map(HostGrant::in_words).collect();
        Some(format!("{whose} to read {} with network access to {}", files.join(", "), hosts.join(", ")))
    }

    /// Whether file tools may read this.
    pub fn opens(&self, path: &AbsPath) -> bool {
        matches!(self, Self::Read { folder } if path.is_within(folder))
    }
}
