//! URIs in a client's own style: some clients make those of sessions and chats of the agent's name.

use bytes::Bytes;
use serde_json::Value;

use super::channel::{Channel, PROVIDER, derive_chat, derived_chat, provider_session};

/// Members that hold the URI of a session or a chat.
const MEMBERS: &[&str] = &["channel", "resource", "defaultChat", "session", "chat"];

/// What a client was seen to write; by default the protocol's own URIs.
#[derive(Debug, Default)]
pub struct UriStyle {
    /// Sessions are `castor:/ID`.
    names_provider: bool,
    /// Chats have URIs made of their session's, below this authority.
    derives_chats: Option<String>,
}

impl UriStyle {
    pub fn note(&mut self, uri: &str) {
        self.names_provider |= provider_session(uri).is_some();
        if let Some((authority, _)) = derived_chat(uri) {
            self.names_provider = true;
            self.derives_chats.get_or_insert_with(|| authority.to_owned());
        }
    }

    /// The message with URIs as this client writes them.
    pub fn apply(&self, message: &Bytes) -> Bytes {
        if !self.names_provider {
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
                    let own = it.as_str().filter(|_| MEMBERS.contains(&name.as_str())).and_then(|it| self.own_uri(it));
                    match own {
                        Some(own) => *it = Value::String(own),
                        None => self.rewrite(it),
                    }
                }
            }
            _ => (),
        }
    }

    fn own_uri(&self, uri: &str) -> Option<String> {
        match (Channel::read(uri)?, &self.derives_chats) {
            (Channel::Session(id), _) => Some(format!("{PROVIDER}:/{id}")),
            (Channel::Chat(id), Some(authority)) => Some(derive_chat(authority, &id)),
            _ => None,
        }
    }
}
