//! Hosts that commands reach: names in their one form, grants of them, and what a command reached or was refused.

mod grant;
mod registries;

use std::{
    fmt,
    net::{IpAddr, Ipv6Addr},
};

use serde_json::{Value, json};

pub use grant::{HostGrant, HostPattern, HostRules, HostVerdict, PortGrant, Reach, add_new};

/// A name has no more bytes, a part of it no more than [`MAX_LABEL`].
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;
/// More hosts of one command are not named.
const MAX_RECORDED: usize = 100;
/// A question offers no more at once.
const MAX_WANTED: usize = 8;

/// A machine on the network, in the one form that is compared.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// In lower case and ASCII, without the dot at its end.
    Name(String),
    /// A version 4 address in a version 6 one is the former.
    Address(IpAddr),
}

impl Host {
    /// Reads a host as programs write it: addresses in each of their forms, names in any alphabet. `None`: it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let is_odd = |it: char| it.is_control() || it.is_whitespace() || "%@/\\?#<>|^\"`{}".contains(it);
        if text.contains(is_odd) {
            return None;
        }
        let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        if let Some(it) = bare.or_else(|| text.contains(':').then_some(text)) {
            return it.parse::<Ipv6Addr>().ok().map(|it| Self::Address(IpAddr::V6(it).to_canonical()));
        }
        match url::Host::parse(text.strip_suffix('.').unwrap_or(text)).ok()? {
            url::Host::Ipv4(it) => Some(Self::Address(it.into())),
            url::Host::Ipv6(it) => Some(Self::Address(IpAddr::V6(it).to_canonical())),
            url::Host::Domain(it) => is_name(&it).then_some(Self::Name(it)),
        }
    }

    /// Tells whether it is this machine by its name.
    pub fn is_localhost(&self) -> bool {
        matches!(self, Self::Name(it) if it == "localhost" || it.ends_with(".localhost"))
    }
}

fn is_name(text: &str) -> bool {
    let is_label = |it: &str| {
        (1..=MAX_LABEL).contains(&it.len())
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-' || it == b'_')
    };
    text.len() <= MAX_NAME && text.split('.').all(is_label)
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(it) => f.write_str(it),
            Self::Address(IpAddr::V4(it)) => it.fmt(f),
            Self::Address(IpAddr::V6(it)) => write!(f, "[{it}]"),
        }
    }
}

/// A host with the port of one of its services.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPort {
    pub host: Host,
    pub port: u16,
}

impl HostPort {
    /// Reads `host:port`; `None`: it is none, or names no port where there is no usual one.
    pub fn parse(text: &str, usual_port: Option<u16>) -> Option<Self> {
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !text.ends_with(']') => (host, Some(parse_port(port)?)),
            _ => (text, usual_port),
        };
        // Version 6 with a port stands in brackets: else nobody knows which the port is.
        let is_unclear = host.contains(':') && !host.starts_with('[');
        Host::parse(host).filter(|_| !is_unclear).zip(port).map(|(host, port)| Self { host, port })
    }
}

/// Digits only: `u16` would take a sign.
fn parse_port(text: &str) -> Option<u16> {
    let is_number = !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    text.parse().ok().filter(|it| is_number && *it != 0)
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Why the door did not let a connection through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostRefusal {
    /// No grant names the host: the user can be asked.
    NotGranted,
    /// The name led to an address of a private network, and the grant does not say so: the user can be asked.
    Private,
    /// The settings or the door itself never let anybody go there.
    Forbidden,
    /// The connection was for another host than the one that it named at first.
    OtherHost,
    /// What was said is no request that the door understands.
    Malformed,
    /// It was let through, and nothing answered.
    Unreachable,
}

/// A connection that the door refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedHost {
    pub target: HostPort,
    pub why: HostRefusal,
}

/// The hosts that a command reached and was refused, each once, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkRecord {
    pub reached: Vec<HostPort>,
    pub refused: Vec<RefusedHost>,
    /// Names that were looked up.
    pub names: Vec<String>,
    /// A refusal was an answer of the web, which many programs take for a success.
    pub is_answered: bool,
}

impl NetworkRecord {
    /// Where the data of a call has it.
    pub const KEY: &str = "network";
    pub const REACHED: &str = "reached";
    pub const REFUSED: &str = "refused";

    /// For the data of a call; `None`: there is nothing to say.
    pub fn to_value(&self) -> Option<Value> {
        let reached: Vec<String> = self.reached.iter().map(ToString::to_string).collect();
        let refused: Vec<String> = self.refused.iter().map(|it| it.target.to_string()).collect();
        let is_empty = reached.is_empty() && refused.is_empty() && self.names.is_empty();
        (!is_empty).then(|| json!({ Self::REACHED: reached, Self::REFUSED: refused, "names": self.names }))
    }

    pub fn note_refused(&mut self, target: &HostPort, why: HostRefusal) {
        note_once(&mut self.refused, RefusedHost { target: target.clone(), why });
    }

    /// The grants that a question can offer: of what no grant named, and of what is private.
    pub fn wanted(&self) -> Vec<HostGrant> {
        let grant = |it: &RefusedHost| match it.why {
            HostRefusal::NotGranted => Some(HostGrant::exact(&it.target, false)),
            HostRefusal::Private => Some(HostGrant::exact(&it.target, true)),
            _ => None,
        };
        self.refused.iter().filter_map(grant).take(MAX_WANTED).collect()
    }
}

/// Adds what is new, as long as there is room.
pub fn note_once<T: PartialEq>(all: &mut Vec<T>, it: T) {
    if all.len() < MAX_RECORDED && !all.contains(&it) {
        all.push(it);
    }
}

#[cfg(test)]
mod tests;
