//! Contents of a session that its trees only name, as files before and after an edit: clients read them by URI.

use std::collections::BTreeMap;

use ahp::ahp_types::{commands::ResourceReadResult, state::ContentRef};

const SCHEME: &str = "castor-content:/";
/// Bytes of one session; the oldest are dropped.
const MAX_BYTES: usize = 64 << 20;

/// Texts by their numbers.
#[derive(Default)]
pub struct SessionContents {
    all: BTreeMap<u64, String>,
    n_made: u64,
    bytes: usize,
}

impl SessionContents {
    /// The URI ends with the file's path: clients take its name and its language from there.
    pub fn keep(&mut self, session: &str, file: &str, text: &str) -> ContentRef {
        self.n_made += 1;
        self.bytes += text.len();
        self.all.insert(self.n_made, text.to_owned());
        while self.bytes > MAX_BYTES && self.all.len() > 1 {
            self.bytes -= self.all.pop_first().map_or(0, |it| it.1.len());
        }
        ContentRef {
            uri: format!("{SCHEME}{session}/{}{}", self.n_made, path_in(file)),
            size_hint: i64::try_from(text.len()).ok(),
            content_type: Some("text/plain".to_owned()),
            nonce: None,
        }
    }

    pub fn read(&self, number: u64) -> Option<ResourceReadResult> {
        let data = self.all.get(&number)?.clone();
        let encoding = ahp::ahp_types::commands::ContentEncoding::Utf8;
        Some(ResourceReadResult { data, encoding, content_type: Some("text/plain".to_owned()) })
    }
}

/// The session and the number that a URI names.
pub fn place_of(uri: &str) -> Option<(&str, u64)> {
    let (session, rest) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let number = rest.split_once('/').map_or(rest, |it| it.0);
    Some((session, number.parse().ok()?))
}

/// With its `/`, as URIs write it.
fn path_in(file: &str) -> &str {
    file.strip_prefix("file://").unwrap_or_default()
}
