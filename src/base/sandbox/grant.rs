//! Sandbox grants: the extra rights that the user's yes gives a command.

use crate::{
    network::{HostGrant, Reach, add_new},
    path::AbsPath,
};

/// A secret that a command sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenSecret {
    pub path: AbsPath,
    /// `Some`: only a command that reaches none but these hosts sees it.
    pub beside: Option<Vec<HostGrant>>,
}

impl OpenSecret {
    pub fn once(path: AbsPath) -> Self {
        Self { path, beside: None }
    }

    /// Whether a command sees it that has these ways out. `is_online`: it has the network, or another one beside it has.
    pub(super) fn holds_beside(&self, is_online: bool, reach: &Reach) -> bool {
        let has_no_more = |hosts: &Vec<_>| {
            !is_online && reach.sockets.is_empty() && reach.hosts.allowed.iter().all(|it| hosts.contains(it))
        };
        self.beside.as_ref().is_none_or(has_no_more)
    }
}

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
    pub credentials: Vec<OpenSecret>,
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
        add_new(&mut self.write, &more.write);
        add_new(&mut self.config, &more.config);
        add_new(&mut self.named_config, &more.named_config);
        add_new(&mut self.credentials, &more.credentials);
        add_new(&mut self.seen, &more.seen);
        self.reach.extend(&more.reach);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::OpenSecret;
    use crate::{
        network::{HostGrant, HostRules, Reach},
        path::AbsPath,
    };

    #[test]
    fn a_secret_that_is_open_with_hosts_is_not_open_with_others() {
        let hosts = |all: &[&str]| all.iter().map(|it| HostGrant::parse(it, Some(443)).unwrap()).collect();
        let path = AbsPath::new("/w/.env").unwrap();
        let secret = OpenSecret { path: path.clone(), beside: Some(hosts(&["a.test", "b.test:22"])) };
        let reach =
            |all: &[&str]| Reach { hosts: HostRules { allowed: hosts(all), denied: vec![] }, ..Reach::default() };
        for (allowed, want) in [
            (&["a.test"][..], true),
            (&["b.test:22", "a.test"], true),
            (&[], true),
            (&["a.test", "c.test"], false),
            (&["a.test:80"], false),
            (&["*.test"], false),
            (&["a.test:*"], false),
            (&["a.test:443 private"], false),
            (&["registries"], false),
        ] {
            assert_eq!(secret.holds_beside(false, &reach(allowed)), want, "{allowed:?}");
            assert!(!secret.holds_beside(true, &reach(allowed)), "{allowed:?}");
            assert!(OpenSecret::once(path.clone()).holds_beside(true, &reach(allowed)), "{allowed:?}");
        }
        let with_socket = Reach { sockets: vec![path], ..reach(&["a.test"]) };
        assert!(!secret.holds_beside(false, &with_socket));
    }
}
