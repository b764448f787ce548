//! Steering: words of the user's for a turn that is under way, and what became of them.

use serde_json::{Value, json};

use super::failure::RequestFailure;
use castor_base::shown_text::clean_line;
use castor_wire::acp::client::{SteeringAnswer, read_value};

/// Longest reason that is shown.
const MAX_WHY: usize = 300;
/// Longest line that is shown again.
const MAX_TYPED: usize = 10_000;

/// The params of `_session/steering`.
pub fn params(session: Option<&str>, text: &str) -> Value {
    // Words that come too late are the user's again: a turn that begins now would be waited for by nobody.
    let meta = json!({"steering": {"idleBehavior": "promptRequired"}});
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}], "_meta": meta})
}

/// What became of words.
#[derive(Debug, PartialEq)]
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
    pub fn of(answer: Result<Value, RequestFailure>, typed: String) -> Self {
        let answer: SteeringAnswer = match answer {
            Ok(answer) => read_value(answer).unwrap_or_default(),
            Err(failure) => return Self::Lost { typed, why: failure.in_words() },
        };
        let why = || answer.message.clone().or(answer.outcome.clone()).unwrap_or("no reason is given".to_owned());
        match answer.outcome.as_deref() {
            Some("injected") => Self::Read,
            Some("startedNewTurn") => Self::NextPrompt,
            Some("promptRequired") => Self::Late { typed, why: why() },
            _ => Self::Lost { typed, why: why() },
        }
    }

    pub fn in_words(&self) -> String {
        match self {
            Self::Read => "the agent has read it".to_owned(),
            Self::NextPrompt => "the agent takes it as its next prompt".to_owned(),
            Self::Late { typed, why } | Self::Lost { typed, why } => not_delivered(why, typed),
        }
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
