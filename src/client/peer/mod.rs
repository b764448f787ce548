//! The client's side of ACP, as values: what castor says to another agent, and what that answers.

mod peer_call;
mod permission;
mod requests;
mod terminal_line;
mod updates;

pub use peer_call::{PeerCall, Refusal};
pub use requests::{AnswerForm, PeerRequest, Terminals, last_results};
pub use updates::PeerUpdates;

use serde_json::{Value, json};

use castor_base::{path::AbsPath, text};
use castor_wire::acp::client::{Greeting, OpenedAnswer, SessionOption, read_value};

/// The version of ACP that castor speaks.
const VERSION: u64 = 1;
/// The code of an agent's error that wants the user to sign in.
pub const AUTH_REQUIRED: i64 = -32000;

/// What castor offers to another agent: files and terminals, under castor's policy.
pub fn initialize() -> Value {
    json!({
        "protocolVersion": VERSION,
        "clientInfo": { "name": "castor", "title": "castor", "version": env!("CARGO_PKG_VERSION") },
        "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": true }, "terminal": true },
    })
}

pub fn new_session(cwd: &AbsPath) -> Value {
    json!({ "cwd": cwd, "mcpServers": [] })
}

pub fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

pub fn cancel(session: &str) -> Value {
    json!({ "sessionId": session })
}

/// Another agent, as its answer to `initialize` says.
#[derive(Debug, Default, PartialEq)]
pub struct PeerFacts {
    /// `name version`; empty where it says neither.
    pub name: String,
    /// The ways to sign in.
    pub sign_in: Vec<String>,
}

impl PeerFacts {
    /// # Errors
    /// It speaks another version.
    pub fn read(answer: &Value) -> Result<Self, String> {
        let greeting: Greeting = read_value(answer.clone()).unwrap_or_default();
        match greeting.protocol_version {
            Some(VERSION) => (),
            Some(other) => return Err(format!("it speaks version {other} of ACP, and castor speaks {VERSION}")),
            None => return Err("it did not say which version of ACP it speaks".to_owned()),
        }
        let info = &greeting.agent_info;
        let name = info.title.as_ref().or(info.name.as_ref()).into_iter().chain(&info.version);
        let name = name.map(String::as_str).collect::<Vec<_>>().join(" ");
        let sign_in = greeting.sign_in_names().take(5).map(|it| text::first_line(it, 100)).collect();
        Ok(Self { name: text::first_line(&name, 100), sign_in })
    }
}

/// A new session's id.
///
/// # Errors
/// There is none.
pub fn session_id(answer: &Value) -> Result<String, String> {
    let opened: OpenedAnswer = read_value(answer.clone()).unwrap_or_default();
    let id = opened.session_id.filter(|it| !it.is_empty());
    id.ok_or_else(|| "its answer to session/new has no sessionId".to_owned())
}

/// What is chosen in a new session, for people: mode and model.
pub fn choices(answer: &Value) -> Vec<String> {
    let opened: OpenedAnswer = read_value(answer.clone()).unwrap_or_default();
    let option = |category: &str| {
        let its = |it: &&SessionOption| it.category.as_deref() == Some(category);
        opened.config_options.iter().flatten().find(its)?.chosen()
    };
    let model = opened.models.as_ref().and_then(|it| it.current_model_id.as_deref());
    let mode = opened.modes.as_ref().and_then(|it| it.current_mode_id.as_deref());
    let model = model.or_else(|| option("model")).map(|it| format!("model {it}"));
    let mode = mode.or_else(|| option("mode")).map(|it| format!("mode {it}"));
    model.into_iter().chain(mode).map(|it| text::first_line(&it, 100)).collect()
}

#[cfg(test)]
mod tests;
