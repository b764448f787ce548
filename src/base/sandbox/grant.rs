//! Sandbox grants: the extra rights that the user's yes gives a command.

use crate::base::{network::Reach, path::AbsPath};

/// Rights that the user allows beyond the confinement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxGrant {
    /// Run with everything read-only, and no network: this and `isolation_reason` allow less.
    pub read_only: bool,
    /// Why secrets are hidden although the command has no network: text for the user, empty if nothing is hidden.
    pub isolation_reason: Option<String>,
    pub network: bool,
    /// The network as well, given by the mode without a question.
    pub network_by_mode: bool,
    /// It is an MCP server: it keeps the network for the whole session, and other commands still see secrets.
    pub is_mcp_server: bool,
    /// Folders, with all that is below.
    pub write: Vec<AbsPath>,
    /// Configuration in the session's roots, and what no checkpoint can give back.
    pub config: Vec<AbsPath>,
    /// Files of configuration that the user was asked about by name: what of them is new stays.
    pub named_config: Vec<AbsPath>,
    /// What is masked otherwise.
    pub credentials: Vec<AbsPath>,
    /// Hosts, ports of this machine and sockets of other programs.
    pub reach: Reach,
    /// What is seen of the home folder, of castor's own and of the shared ones for temporary files, beside what all see: what
    /// the user named or allowed, scripts of the user's, the session's log for a hook.
    pub seen: Vec<AbsPath>,
    pub unconfined: bool,
}

impl SandboxGrant {
    /// What both allow. Read-only in one of them is read-only.
    #[must_use]
    pub fn union(mut self, more: &Self) -> Self {
        self.read_only |= more.read_only;
        self.network |= more.network;
        self.network_by_mode |= more.network_by_mode;
        self.is_mcp_server |= more.is_mcp_server;
        self.isolation_reason = self.isolation_reason.or_else(|| more.isolation_reason.clone());
        self.unconfined |= more.unconfined;
        for (own, more) in [
            (&mut self.write, &more.write),
            (&mut self.config, &more.config),
            (&mut self.named_config, &more.named_config),
            (&mut self.credentials, &more.credentials),
            (&mut self.seen, &more.seen),
        ] {
            let new: Vec<AbsPath> = more.iter().filter(|it| !own.contains(it)).cloned().collect();
            own.extend(new);
        }
        self.reach.extend(&more.reach);
        self
    }
}
