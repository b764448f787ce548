//! AIR `sessionFailure`: failures of prompts and notices as records of the transcript.

use agent_client_protocol_schema::v1::{Meta, SessionInfoUpdate, SessionUpdate};
use serde_json::json;

use super::air_meta;
use crate::acp::updates::SessionView;
use castor_base::{event::Status, shown_text::show_text, text};

/// Longest title, in bytes; the whole text is in the details then.
const MAX_TITLE: usize = 240;

/// The record of a prompt that failed. `id`: unlike any other of the session.
pub fn failure_meta(id: &str, kind: &str, status: Option<Status>, text: &str) -> Meta {
    let (category, actions) = category(kind, status);
    record(&format!("{id}:error"), (category, "error"), text, actions)
}

impl SessionView {
    /// What went wrong in the prompt at hand, once.
    pub fn take_failure(&mut self) -> Option<Status> {
        self.failure.take()
    }

    /// A notice, for a client that has no other way to show it.
    pub(in crate::acp) fn failure_notice(&self, id: &str, text: &str, lines: &mut Vec<u8>) {
        let meta = record(&format!("{}:notice:{id}", self.session), ("unknown", "warning"), text, &[]);
        self.push_update(SessionUpdate::SessionInfoUpdate(SessionInfoUpdate::new().meta(meta)), lines);
    }
}

fn record(id: &str, (category, severity): (&str, &str), text: &str, actions: &[&str]) -> Meta {
    let text = &*show_text(text);
    let is_long = text.len() > MAX_TITLE || text.contains('\n');
    let title = if is_long { text::first_line(text, MAX_TITLE) } else { text.to_owned() };
    let mut res = json!({
        "id": id, "revision": 1, "category": category, "severity": severity, "title": title, "actions": actions,
    });
    if let Some(fields) = res.as_object_mut().filter(|_| is_long) {
        fields.insert("details".to_owned(), text.into());
    }
    air_meta("sessionFailure", res)
}

/// The visual group, and what helps.
fn category(kind: &str, status: Option<Status>) -> (&'static str, &'static [&'static str]) {
    match (kind, status) {
        ("model", Some(Status::ResourceExhausted)) => ("limit", &["retry"]),
        ("model", Some(Status::Unavailable | Status::DeadlineExceeded | Status::Aborted)) => {
            ("connection", &["retry", "new_session"])
        }
        ("model", Some(Status::InvalidArgument | Status::NotFound | Status::PermissionDenied)) => ("request", &[]),
        ("session" | "config", _) => ("request", &[]),
        _ => ("service", &["retry"]),
    }
}
