//! URIs in a client's own style: some clients make those of sessions and chats of the agent's name.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::Value;

use super::channel::{Channel, base_of_chat, derive_chat, is_of_provider, provider_uri};

/// Members that hold the URI of a session or a chat.
const MEMBERS: &[&str] = &["channel", "resource", "defaultChat", "session", "chat"];
/// Below which clients of older versions have their chats.
const AUTHORITY: &str = "default";
/// Most URIs of a client that are remembered.
const MAX_WRITTEN: usize = 1000;

/// What a client was seen to write; by default the protocol's own URIs.
#[derive(Debug, Default)]
pub struct UriStyle {
    /// Sessions are `castor:/ID`.
    names_provider: bool,
    /// Chats have URIs made of their session's, below this authority.
    derives_chats: Option<String>,
    /// What it wrote stays so, whatever it writes of other channels.
    written: BTreeMap<Channel, String>,
}

impl UriStyle {
    /// Clients of protocol versions below 1.0 take a session's provider from the scheme of its URI.
    pub fn of_older() -> Self {
        Self { names_provider: true, derives_chats: Some(AUTHORITY.to_owned()), written: BTreeMap::new() }
    }

    pub fn note(&mut self, uri: &str) {
        let Some(channel) = Channel::read(uri) else { return };
        let Some(session) = channel.session().map(|it| Channel::Session(it.to_owned())) else { return };
        self.names_provider |= is_of_provider(uri);
        if let Some((authority, base)) = base_of_chat(uri) {
            self.derives_chats.get_or_insert_with(|| authority.to_owned());
            self.names_provider |= is_of_provider(&base);
            if !self.written.contains_key(&session) {
                self.remember(session, &base);
            }
        }
        self.remember(channel, uri);
    }

    fn remember(&mut self, channel: Channel, uri: &str) {
        if self.written.len() < MAX_WRITTEN || self.written.contains_key(&channel) {
            self.written.insert(channel, uri.to_owned());
        }
    }

    /// The message with URIs as this client writes them.
    pub fn apply(&self, message: &Bytes) -> Bytes {
        if !self.names_provider && self.derives_chats.is_none() {
            return message.clone();
        }
        let Ok(mut value) = serde_json::from_slice::<Value>(message) else { return message.clone() };
        self.rewrite(&mut value);
        serde_json::to_vec(&value).map_or_else(|_| message.clone(), Bytes::from)
    }

    fn rewrite(&self, value: &mut Value) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(|it| self.rewrite(it)),
            Value::Object(all) => {
                for (name, it) in all {
                    let uri = it.as_str().filter(|_| MEMBERS.contains(&name.as_str()));
                    let own = uri.and_then(Channel::read).map(|it| self.own_uri(&it));
                    match own {
                        Some(own) => *it = Value::String(own),
                        None => self.rewrite(it),
                    }
                }
            }
            _ => (),
        }
    }

    fn own_uri(&self, channel: &Channel) -> String {
        if let Some(it) = self.written.get(channel) {
            return it.clone();
        }
        match (channel, &self.derives_chats) {
            (Channel::Session(id) | Channel::Annotations(id), _) if self.names_provider => provider_uri(channel, id),
            (Channel::Chat(id), Some(authority)) => {
                derive_chat(authority, &self.own_uri(&Channel::Session(id.clone())))
            }
            _ => channel.uri(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::UriStyle;

    fn rewrite_uri(style: &UriStyle, uri: &str) -> String {
        let message = format!("{{\"channel\":\"{uri}\"}}");
        let written = style.apply(&Bytes::from(message));
        let written: serde_json::Value = serde_json::from_slice(&written).unwrap();
        written["channel"].as_str().unwrap().to_owned()
    }

    #[test]
    fn a_uri_is_shown_as_the_client_wrote_it() {
        // base64url of castor:/s and ahp-session:/s
        let (of_castor, of_ahp) = ("ahp-chat://default/Y2FzdG9yOi9z", "ahp-chat://x/YWhwLXNlc3Npb246L3M");
        let mut plain = UriStyle::default();
        plain.note("ahp-session:/s");
        assert_eq!(rewrite_uri(&plain, "ahp-session:/s"), "ahp-session:/s");
        // A chat that is made of the session's own URI says nothing of the provider.
        plain.note(of_ahp);
        assert_eq!(rewrite_uri(&plain, "ahp-session:/s"), "ahp-session:/s");
        assert_eq!(rewrite_uri(&plain, "ahp-chat:/s"), of_ahp);
        plain.note("castor:/t");
        assert_eq!(rewrite_uri(&plain, "ahp-session:/t"), "castor:/t");
        assert_eq!(rewrite_uri(&plain, "ahp-session:/s"), "ahp-session:/s");
        assert_eq!(rewrite_uri(&plain, "ahp-chat:/s"), of_ahp);
        let mut older = UriStyle::of_older();
        assert_eq!(rewrite_uri(&older, "ahp-session:/s"), "castor:/s");
        assert_eq!(rewrite_uri(&older, "ahp-session:/s/annotations"), "castor:/s/annotations");
        assert_eq!(rewrite_uri(&older, "ahp-chat:/s"), of_castor);
        assert_eq!(rewrite_uri(&older, "ahp-changeset:/s/session"), "ahp-changeset:/s/session");
        older.note("ahp-session:/s");
        assert_eq!(rewrite_uri(&older, "ahp-session:/s"), "ahp-session:/s");
        assert_eq!(rewrite_uri(&older, "ahp-session:/t"), "castor:/t");
        older.note("castor:/s");
        assert_eq!(rewrite_uri(&older, "ahp-chat:/s"), of_castor);
    }
}
