//! Grants of hosts and ports: what they name, in the words of settings, and whether a connection is theirs.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Host, HostPort, registries};
use crate::path::AbsPath;

/// The port where a grant names none: that of TLS.
const USUAL_PORT: u16 = 443;
/// Behind a host: its address may be one of a private network.
const PRIVATE: &str = " private";
const ANY_PORT: &str = "*";

/// The hosts that a grant names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    Exact(Host),
    /// All names that end with a dot and this one, and not this one itself.
    Below(String),
    /// What package managers read from.
    Registries,
}

/// Hosts that commands may reach, or never may.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct HostGrant {
    pub pattern: HostPattern,
    /// `None`: any.
    pub port: Option<u16>,
    /// The name may lead to an address of a private network, such as a company's.
    pub is_private: bool,
}

impl HostGrant {
    pub const REGISTRIES: Self =
        Self { pattern: HostPattern::Registries, port: Some(registries::PORT), is_private: false };

    pub fn exact(target: &HostPort, is_private: bool) -> Self {
        Self { pattern: HostPattern::Exact(target.host.clone()), port: Some(target.port), is_private }
    }

    /// Reads `host`, `*.host`, each with `:port` or `:*`, and perhaps ` private` behind it; or the name of a group.
    ///
    /// # Errors
    /// In words for the user.
    pub fn parse(text: &str, usual_port: Option<u16>) -> Result<Self, String> {
        let no = || format!("{text:?} is no host: write example.com, *.example.com, example.com:8443 or registries");
        let rest = text.trim();
        if rest.eq_ignore_ascii_case(registries::NAME) {
            return Ok(Self::REGISTRIES);
        }
        let (rest, is_private) = rest.strip_suffix(PRIVATE).map_or((rest, false), |it| (it.trim_end(), true));
        let (rest, is_any) = rest.strip_suffix(":*").map_or((rest, false), |it| (it, true));
        let (host, is_below) = rest.strip_prefix("*.").map_or((rest, false), |it| (it, true));
        let (host, port) = match HostPort::parse(host, None) {
            Some(it) if !is_any => (it.host, Some(it.port)),
            _ => (Host::parse(host).ok_or_else(no)?, usual_port.filter(|_| !is_any)),
        };
        let pattern = match host {
            Host::Name(it) if is_below => HostPattern::Below(it),
            Host::Address(_) if is_below => return Err(no()),
            it => HostPattern::Exact(it),
        };
        Ok(Self { pattern, port, is_private })
    }

    pub fn matches(&self, target: &HostPort) -> bool {
        let is_host = match (&self.pattern, &target.host) {
            (HostPattern::Exact(it), host) => it == host,
            (HostPattern::Below(it), Host::Name(name)) => {
                name.strip_suffix(it.as_str()).is_some_and(|it| it.ends_with('.') && it.len() > 1)
            }
            (HostPattern::Registries, Host::Name(name)) => registries::HOSTS.contains(&name.as_str()),
            (_, Host::Address(_)) => false,
        };
        is_host && self.port.is_none_or(|it| it == target.port)
    }

    /// Tells whether it is one host of the group of registries.
    pub fn is_of_registries(&self) -> bool {
        match (&self.pattern, self.port) {
            (HostPattern::Exact(host), Some(port)) => Self::REGISTRIES.matches(&HostPort { host: host.clone(), port }),
            (pattern, _) => *pattern == HostPattern::Registries,
        }
    }

    /// For the user.
    pub fn in_words(&self) -> String {
        let text = self.to_string();
        match &self.pattern {
            HostPattern::Registries => format!("package registries ({})", registries::NAMED),
            _ if self.is_private => text.replace(PRIVATE, " (on a private network)"),
            _ => text,
        }
    }
}

impl fmt::Display for HostGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            HostPattern::Registries => return f.write_str(registries::NAME),
            HostPattern::Exact(it) => it.fmt(f)?,
            HostPattern::Below(it) => write!(f, "*.{it}")?,
        }
        match self.port {
            Some(it) => write!(f, ":{it}")?,
            None => write!(f, ":{ANY_PORT}")?,
        }
        if self.is_private { f.write_str(PRIVATE) } else { Ok(()) }
    }
}

impl From<HostGrant> for String {
    fn from(it: HostGrant) -> Self {
        it.to_string()
    }
}

impl TryFrom<String> for HostGrant {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        Self::parse(&text, Some(USUAL_PORT))
    }
}

/// A port of this machine, for the program that listens there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PortGrant {
    pub port: u16,
    /// Its name; empty: it is another user's, and nobody knows.
    pub program: String,
    /// Its process; 0: as above.
    pub pid: u32,
}

impl PortGrant {
    pub fn in_words(&self) -> String {
        match self.program.as_str() {
            "" => format!("port {} of this machine", self.port),
            it => format!("port {} of this machine ({it}, process {})", self.port, self.pid),
        }
    }
}

/// What the door decides about a host, before any lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostVerdict {
    Open { is_private: bool },
    NotGranted,
    Forbidden,
}

/// Hosts that are open, and hosts that stay closed whatever is open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    pub allowed: Vec<HostGrant>,
    pub denied: Vec<HostGrant>,
}

impl HostRules {
    pub fn decide(&self, target: &HostPort) -> HostVerdict {
        if target.host.is_localhost() || self.denied.iter().any(|it| it.matches(target)) {
            return HostVerdict::Forbidden;
        }
        let private = self.allowed.iter().filter(|it| it.matches(target)).map(|it| it.is_private);
        private
            .reduce(|one, other| one || other)
            .map_or(HostVerdict::NotGranted, |is_private| HostVerdict::Open { is_private })
    }
}

/// What a confined process reaches beyond itself, where it has not the whole network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// Sockets of other programs: all others are hidden then.
    pub sockets: Vec<AbsPath>,
    pub hosts: HostRules,
    pub ports: Vec<PortGrant>,
}

impl Reach {
    /// What both allow, and what neither does.
    pub(crate) fn extend(&mut self, more: &Self) {
        add_new(&mut self.sockets, &more.sockets);
        add_new(&mut self.hosts.allowed, &more.hosts.allowed);
        add_new(&mut self.hosts.denied, &more.hosts.denied);
        add_new(&mut self.ports, &more.ports);
    }

    /// Tells whether data can leave the machine by it. A port of this machine is a program that the user named.
    pub fn leads_out(&self) -> bool {
        !self.sockets.is_empty() || !self.hosts.allowed.is_empty()
    }
}

pub fn add_new<T: Clone + PartialEq>(own: &mut Vec<T>, more: &[T]) {
    let new: Vec<T> = more.iter().filter(|it| !own.contains(it)).cloned().collect();
    own.extend(new);
}
