//! Channels of the host: their URIs, and the session that each belongs to.

use ahp::ahp_types::ROOT_RESOURCE_URI;
use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};

/// The agent's name, which some clients use as the scheme of session URIs.
pub const PROVIDER: &str = "castor";
const SESSION: &str = "ahp-session:/";
const CHAT: &str = "ahp-chat:/";
const DERIVED_CHAT: &str = "ahp-chat://";
const CHANGES: &str = "ahp-changeset:/";
const CHANGES_OF: &str = "/session";
const LOGS: &str = "ahp-otlp:/logs/";
const METRICS: &str = "ahp-otlp:/metrics";
/// Schemes of terminals, which clients make: `ahp-terminal`, or with a name of their own before it.
const TERMINAL: &str = "terminal:/";
const WATCH: &str = "ahp-resource-watch:/";
const ANNOTATIONS_OF: &str = "/annotations";
const MAX_ID: usize = 128;

/// What a client can be subscribed to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Channel {
    Root,
    Session(String),
    /// Each session has one chat, with its id.
    Chat(String),
    /// What the session changed in files.
    Changes(String),
    Annotations(String),
    /// By its URI, as the client wrote it that made the terminal.
    Terminal(String),
    Watch(String),
    /// The agent's log, from a severity on.
    Logs(String),
    Metrics,
}

impl Channel {
    pub fn read(uri: &str) -> Option<Self> {
        match uri {
            ROOT_RESOURCE_URI => return Some(Self::Root),
            METRICS => return Some(Self::Metrics),
            _ => (),
        }
        if let Some(level) = uri.strip_prefix(LOGS) {
            return Some(Self::Logs(id(level)?.to_lowercase()));
        }
        if let Some(rest) = uri.strip_prefix(SESSION).or_else(|| provider_path(uri)) {
            return Some(match rest.strip_suffix(ANNOTATIONS_OF) {
                Some(rest) => Self::Annotations(id(rest)?),
                None => Self::Session(id(rest)?),
            });
        }
        if let Some((_, session)) = base_of_chat(uri) {
            // Each text is shorter than the one around it: this ends.
            return match Self::read(&session)? {
                Self::Session(it) => Some(Self::Chat(it)),
                _ => None,
            };
        }
        if let Some(rest) = uri.strip_prefix(CHAT) {
            return Some(Self::Chat(id(rest)?));
        }
        if is_terminal(uri) {
            return Some(Self::Terminal(uri.to_owned()));
        }
        if let Some(rest) = uri.strip_prefix(WATCH) {
            return Some(Self::Watch(id(rest)?));
        }
        let rest = uri.strip_prefix(CHANGES)?.strip_suffix(CHANGES_OF)?;
        Some(Self::Changes(id(rest)?))
    }

    pub fn uri(&self) -> String {
        match self {
            Self::Root => ROOT_RESOURCE_URI.to_owned(),
            Self::Session(it) => format!("{SESSION}{it}"),
            Self::Chat(it) => format!("{CHAT}{it}"),
            Self::Changes(it) => format!("{CHANGES}{it}{CHANGES_OF}"),
            Self::Annotations(it) => format!("{SESSION}{it}{ANNOTATIONS_OF}"),
            Self::Terminal(it) => it.clone(),
            Self::Watch(it) => format!("{WATCH}{it}"),
            Self::Logs(level) => format!("{LOGS}{level}"),
            Self::Metrics => METRICS.to_owned(),
        }
    }

    pub fn session(&self) -> Option<&str> {
        match self {
            Self::Root | Self::Terminal(_) | Self::Watch(_) | Self::Logs(_) | Self::Metrics => None,
            Self::Session(it) | Self::Chat(it) | Self::Changes(it) | Self::Annotations(it) => Some(it),
        }
    }
}

/// `castor:/ID`, as clients write it that make session URIs of the agent's name.
pub fn is_of_provider(uri: &str) -> bool {
    provider_path(uri).is_some()
}

pub fn provider_uri(channel: &Channel, session: &str) -> String {
    let rest = if matches!(channel, Channel::Annotations(_)) { ANNOTATIONS_OF } else { "" };
    format!("{PROVIDER}:/{session}{rest}")
}

fn provider_path(uri: &str) -> Option<&str> {
    uri.strip_prefix(PROVIDER)?.strip_prefix(":/")
}

/// `ahp-chat://AUTHORITY/BASE64URL`, where the last is the session's URI: authority and that URI.
pub fn base_of_chat(uri: &str) -> Option<(&str, String)> {
    let (authority, encoded) = uri.strip_prefix(DERIVED_CHAT)?.split_once('/')?;
    let session = BASE64_URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('=')).ok()?;
    Some((authority, String::from_utf8(session).ok()?))
}

pub fn derive_chat(authority: &str, session: &str) -> String {
    format!("{DERIVED_CHAT}{authority}/{}", BASE64_URL_SAFE_NO_PAD.encode(session))
}

fn is_terminal(uri: &str) -> bool {
    uri.split_once(TERMINAL).is_some_and(|(name, rest)| {
        (name.is_empty() || name.strip_suffix('-').is_some_and(|it| id(it).is_some())) && id(rest).is_some()
    })
}

/// As castor's own ids may be.
fn id(text: &str) -> Option<String> {
    let is_fine = |it: u8| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_');
    (!text.is_empty() && text.len() <= MAX_ID && text.bytes().all(is_fine)).then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Channel, derive_chat};

    #[test]
    fn uris_are_read_as_they_are_written() {
        let id = || "0197-ab_c".to_owned();
        for it in [
            Channel::Root,
            Channel::Session(id()),
            Channel::Chat(id()),
            Channel::Changes(id()),
            Channel::Annotations(id()),
            Channel::Terminal("ahp-terminal:/0197-ab_c".to_owned()),
            Channel::Terminal("agenthost-terminal:/0197-ab_c".to_owned()),
            Channel::Watch(id()),
            Channel::Logs("warn".to_owned()),
            Channel::Metrics,
        ] {
            assert_eq!(Channel::read(&it.uri()), Some(it));
        }
        assert_eq!(Channel::read("castor:/0197-ab_c"), Some(Channel::Session(id())));
        assert_eq!(Channel::read("castor:/0197-ab_c/annotations"), Some(Channel::Annotations(id())));
        assert_eq!(Channel::read(&derive_chat("default", "castor:/0197-ab_c")), Some(Channel::Chat(id())));
        for it in [
            "",
            "ahp-root:/",
            "ahp-session:/",
            "ahp-session:/../x",
            "ahp-chat:/a/b",
            "ahp-chat://x/!",
            "file:///x",
            "pi:/x",
            "terminal:/",
            "my terminal:/x",
            "ahp-terminal:/../x",
        ] {
            assert_eq!(Channel::read(it), None, "{it}");
        }
    }
}
