//! The sessions that an agent lists, page by page.

use serde_json::{Value, json};

use castor_wire::acp::client::{AgentSession, SessionPage};

/// Pages of `session/list` under way.
#[derive(Debug)]
pub struct SessionListing {
    /// Only sessions of this folder are wanted.
    cwd: Option<String>,
    /// Pages that may still be asked for.
    n_left: usize,
    cursor: Option<String>,
    pub found: Vec<AgentSession>,
}

impl SessionListing {
    pub fn new(cwd: Option<&str>, n_pages: usize) -> Self {
        Self { cwd: cwd.map(str::to_owned), n_left: n_pages, cursor: None, found: Vec::new() }
    }

    /// The params for the next page.
    pub fn params(&self) -> Value {
        let members = [("cwd", &self.cwd), ("cursor", &self.cursor)];
        let given = members.into_iter().filter_map(|(key, value)| Some((key.to_owned(), json!(value.as_ref()?))));
        Value::Object(given.collect())
    }

    /// Takes a page. Whether another one is to be asked for.
    pub fn take(&mut self, page: SessionPage) -> bool {
        self.found.extend(page.sessions);
        self.cursor = page.next_cursor;
        self.n_left = self.n_left.saturating_sub(1);
        self.cursor.is_some() && self.n_left > 0
    }
}
