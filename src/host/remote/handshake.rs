//! The keys of a WebSocket handshake (RFC 6455, section 4).

use base64::{Engine, prelude::BASE64_STANDARD};
use ring::{
    digest::{SHA1_FOR_LEGACY_USE_ONLY, digest},
    rand::{SecureRandom, SystemRandom},
};

const MAGIC: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A client's key; `None`: the system has no random bytes.
pub fn random_key() -> Option<String> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(BASE64_STANDARD.encode(bytes))
}

/// The server's answer to a key.
pub fn accept_key(key: &str) -> String {
    BASE64_STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{key}{MAGIC}").as_bytes()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_answer_is_that_of_the_standard() {
        assert_eq!(super::accept_key("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
