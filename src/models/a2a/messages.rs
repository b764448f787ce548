//! Messages to a remote agent, from the history of its session; and what its runs leave to each other.

use std::sync::Arc;

use a2a::{Message, Part, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use castor_base::{
    content::joined_text,
    history::{NOTICE, Role as TurnRole, Turn, TurnPart},
    model::Chunk,
    peer_agent::CardSource,
    text,
    tool::ASK_USER,
};
use castor_hands::disk;

/// The longest question, in bytes: all of it is among the agent's thoughts.
const MAX_QUESTION: usize = 1_900;

/// What the next run in the same session begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Memory {
    /// Whose they are: ids mean nothing to another server.
    card: String,
    #[serde(rename = "contextId", skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// A task that waits for the next message.
    #[serde(rename = "taskId", skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
}

impl Memory {
    pub fn read(text: Option<&str>, card: &CardSource) -> Self {
        let (CardSource::Url(source) | CardSource::Json(source)) = card;
        let card = disk::hash(source.as_bytes());
        let known = text.and_then(|it| serde_json::from_str::<Self>(it).ok()).filter(|it| it.card == card);
        known.unwrap_or_else(|| Self { card, ..Self::default() })
    }

    pub fn write(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The next message. `again`: the id of an attempt at the same one.
    pub fn message(&self, text: String, again: Option<String>) -> Message {
        let fresh = Message::new(Role::User, vec![Part::text(text)]);
        let message_id = again.filter(|it| !it.is_empty()).unwrap_or_else(|| fresh.message_id.clone());
        Message { message_id, context_id: self.context.clone(), task_id: self.task.clone(), ..fresh }
    }
}

/// What a request has for the agent.
#[derive(Debug, PartialEq)]
pub enum Inbox {
    Text(String),
    /// The user was to answer the agent, and did not.
    NoAnswer,
}

/// What came since the agent spoke last. `asked`: it waits for the user's answer.
pub fn read_inbox(contents: &[Arc<Turn>], asked: bool) -> Inbox {
    let last = contents.iter().rposition(|it| it.role() == TurnRole::Model);
    let fresh = contents.iter().skip(last.map_or(0, |it| it + 1));
    let (mut texts, mut has_answer) = (Vec::new(), false);
    for turn in fresh {
        for part in turn.parts() {
            match part {
                TurnPart::Result(it) if it.name == ASK_USER => {
                    let answer = answer(&joined_text(&it.content));
                    has_answer |= answer.is_some();
                    texts.extend(answer);
                }
                // What castor itself says there is not for others.
                TurnPart::Content(it) if turn.role() == TurnRole::User => {
                    texts.extend(it.as_text().filter(|it| !it.starts_with(NOTICE)).map(str::to_owned));
                }
                _ => (),
            }
        }
    }
    match asked && !has_answer && texts.is_empty() {
        true => Inbox::NoAnswer,
        false => Inbox::Text(texts.join("\n\n")),
    }
}

/// Of a result of [`ASK_USER`].
fn answer(result: &str) -> Option<String> {
    let result: Value = serde_json::from_str(result).ok()?;
    result.get("answers")?.get("0")?.as_str().map(str::to_owned)
}

/// The call that puts the agent's question to the user.
pub fn question(agent: &str, question: &str) -> Chunk {
    let question = format!("{}: {}", agent, text::head(question.trim(), MAX_QUESTION));
    let args = json!({ "questions": [{ "question": question, "header": agent, "type": "text" }] });
    Chunk::Call { id: None, name: ASK_USER.to_owned(), args, signature: None }
}
