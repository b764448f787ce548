//! Steering in `castor run`: sends typed lines as `_session/steering` while the agent works.

use std::time::Duration;

use jsonrpsee::core::client::Error;
use serde_json::{Value, json};
use tokio::{task::JoinSet, time};

use crate::cli::terminal_text::clean_line;
use castor_models::acp_agent::connection::Peer;

/// Longest reason that is shown.
const MAX_WHY: usize = 300;
/// Longest line that is shown again.
const MAX_TYPED: usize = 10_000;
/// An agent that ends the turn and says nothing of these words is not waited for.
const GRACE: Duration = Duration::from_secs(1);

/// What became of words.
pub enum SteeringOutcome {
    Read,
    /// The agent takes them as its next prompt.
    NextPrompt,
    /// The turn was over.
    Late {
        typed: String,
        why: String,
    },
    Lost {
        typed: String,
        why: String,
    },
}

impl SteeringOutcome {
    pub fn in_words(&self) -> String {
        match self {
            Self::Read => "the agent has read it".to_owned(),
            Self::NextPrompt => "the agent takes it as its next prompt".to_owned(),
            Self::Late { typed, why } | Self::Lost { typed, why } => not_delivered(why, typed),
        }
    }
}

#[derive(Default)]
pub struct Steering {
    /// The agent says that it takes such words.
    pub is_possible: bool,
    /// What was sent, and the answer to it.
    open: JoinSet<(String, Result<Value, Error>)>,
}

impl Steering {
    pub fn send(&mut self, peer: &Peer, session: Option<&str>, text: &str) {
        // Words that come too late are the user's again: a turn that begins now would be waited for by nobody.
        let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": meta});
        let (text, answer) = (text.to_owned(), peer.request("_session/steering", params));
        self.open.spawn(async move { (text, answer.await) });
    }

    /// What became of the next ones; `None`: nothing is open.
    pub async fn next(&mut self) -> Option<SteeringOutcome> {
        let answer = self.open.join_next().await?;
        let lost = |why: String| SteeringOutcome::Lost { typed: String::new(), why };
        Some(answer.map_or_else(|it| lost(it.to_string()), |(text, it)| outcome(&it, text)))
    }

    /// The turn is over: what became of those that it left.
    pub async fn remaining_outcomes(&mut self) -> Vec<String> {
        let mut res = Vec::new();
        while let Ok(Some(it)) = time::timeout(GRACE, self.next()).await {
            res.push(it.in_words());
        }
        res
    }
}

fn outcome(answer: &Result<Value, Error>, typed: String) -> SteeringOutcome {
    let answer = match answer {
        Ok(it) => it,
        Err(it) => return SteeringOutcome::Lost { typed, why: it.to_string() },
    };
    let text = |key: &str| answer.get(key).and_then(Value::as_str);
    let why = text("message").or(text("outcome")).unwrap_or("no reason is given").to_owned();
    match text("outcome") {
        Some("injected") => SteeringOutcome::Read,
        Some("startedNewTurn") => SteeringOutcome::NextPrompt,
        Some("promptRequired") => SteeringOutcome::Late { typed, why },
        _ => SteeringOutcome::Lost { typed, why },
    }
}

/// The words are not lost: the command holds them.
fn not_delivered(why: &str, typed: &str) -> String {
    let why = clean_line(why, MAX_WHY);
    let typed = clean_line(typed, MAX_TYPED);
    // Words with a control sign in them cannot be quoted.
    let words = shlex::try_quote(&typed).unwrap_or_default();
    format!("the agent did not get what you typed: {why}. To ask it in this session: castor run -c {words}")
}
