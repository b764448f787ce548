//! Questions of an agent to the user: approvals, forms and pages, as its requests ask them, and what answers them.

use std::time::Duration;

use serde_json::{Map, Value, json, value::RawValue};

use super::{Conversation, call::Call, peer::Refusal};
use castor_base::{elicitation::ElicitationRequest, question::Form};
use castor_wire::{
    acp::client::{FormQuestion, PermissionQuestion, read_text, read_value},
    elicitation::parse,
};

const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const REQUEST_CANCELLED: i64 = -32800;
/// Never advertised; agents that ask all the same learn what to do instead.
const NOT_OFFERED: [&str; 2] = ["fs/read_text_file", "fs/write_text_file"];

/// A request of the agent to the user.
#[derive(Debug)]
pub struct Question {
    /// The answer goes to this one.
    pub number: u64,
    pub session: Option<String>,
    /// The sub-agent that asks.
    pub agent: Option<String>,
    /// The tool call that it belongs to.
    pub call: Option<String>,
    pub about: QuestionSubject,
}

#[derive(Debug)]
pub enum QuestionSubject {
    /// A call that waits for an approval.
    Permission(Box<PermissionQuestion>),
    /// Fields to fill in; the message as it came.
    Form { message: String, form: Form },
    /// A page to visit. `renews`: a refused credential is to be renewed before the answer.
    Page { message: String, url: String, renews: bool },
}

#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Selected(String),
    /// The fields of a form with their values; nothing of a page.
    Filled(Option<Map<String, Value>>),
    Declined,
    Cancelled,
    /// The agent took the question back.
    Withdrawn,
}

impl Question {
    /// Reads a request of the agent.
    ///
    /// # Errors
    /// The answer to one that is no question, or that nobody may be asked.
    pub fn read(number: u64, method: &str, params: &RawValue) -> Result<Self, Refusal> {
        match method {
            "session/request_permission" => Ok(Self::permission(number, params)),
            "elicitation/create" => Self::elicitation(number, params),
            _ if NOT_OFFERED.contains(&method) => {
                Err(Refusal::new(METHOD_NOT_FOUND, "this client offers no file access: use the disk"))
            }
            _ => Err(Refusal::new(METHOD_NOT_FOUND, format!("this client has no {method}"))),
        }
    }

    fn permission(number: u64, params: &RawValue) -> Self {
        let asked: PermissionQuestion = read_text(params.get()).unwrap_or_default();
        Self {
            number,
            session: asked.session_id.clone(),
            agent: asked.meta.castor.agent.clone(),
            call: asked.tool_call.as_ref().map(|it| it.id.clone()).filter(|it| !it.is_empty()),
            about: QuestionSubject::Permission(Box::new(asked)),
        }
    }

    fn elicitation(number: u64, params: &RawValue) -> Result<Self, Refusal> {
        let params: Value = read_text(params.get()).unwrap_or_default();
        // Agents ask as MCP servers do, and what those must not ask for is no more theirs.
        let wanted = parse(&params).map_err(|why| Refusal::new(INVALID_PARAMS, why.to_string()))?;
        let FormQuestion { session_id, tool_call_id, message, meta } = read_value(params).unwrap_or_default();
        let about = match wanted {
            ElicitationRequest::Form(form) => QuestionSubject::Form { message, form },
            ElicitationRequest::Page { url, .. } => {
                QuestionSubject::Page { message, url, renews: meta.castor.auth_required.is_some() }
            }
        };
        Ok(Self { number, session: session_id, agent: meta.castor.agent, call: tool_call_id, about })
    }

    /// Tells the conversation of it. Gives what is known of its call, with what it says itself.
    pub fn note_in(&self, talk: &mut Conversation, now: Duration) -> Call {
        let session = self.session.as_deref().unwrap_or_default();
        let is_main = !talk.agents.is_child(session);
        let call = match &self.about {
            QuestionSubject::Permission(it) => {
                let told = it.tool_call.clone().unwrap_or_default();
                if is_main {
                    talk.note_shown(&told.id);
                }
                talk.asked_call(session, &told)
            }
            QuestionSubject::Form { .. } | QuestionSubject::Page { .. } => Call::default(),
        };
        if let Some(id) = self.call.as_ref().filter(|_| is_main) {
            talk.note_question(id, now);
        }
        call
    }

    /// The sub-agent that asks, behind the names of those above it.
    pub fn asker(&self, talk: &Conversation) -> Option<String> {
        let path = self.session.as_deref().and_then(|it| talk.agents.path(it));
        path.or_else(|| self.agent.clone())
    }
}

/// The form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    Permission,
    Elicitation,
}

impl QuestionKind {
    pub fn of(about: &QuestionSubject) -> Self {
        match about {
            QuestionSubject::Permission(_) => Self::Permission,
            QuestionSubject::Form { .. } | QuestionSubject::Page { .. } => Self::Elicitation,
        }
    }

    /// The result of the agent's request.
    ///
    /// # Errors
    /// The agent took the request back.
    pub fn result(self, answer: Answer) -> Result<Value, Refusal> {
        let cancelled = || Ok(json!({"outcome": {"outcome": "cancelled"}}));
        match (self, answer) {
            (_, Answer::Withdrawn) => Err(Refusal::new(REQUEST_CANCELLED, "withdrawn")),
            (Self::Permission, Answer::Selected(option)) => {
                Ok(json!({"outcome": {"outcome": "selected", "optionId": option}}))
            }
            (Self::Permission, Answer::Filled(_) | Answer::Declined | Answer::Cancelled) => cancelled(),
            (Self::Elicitation, Answer::Filled(Some(content))) => Ok(json!({"action": "accept", "content": content})),
            (Self::Elicitation, Answer::Filled(None)) => Ok(json!({"action": "accept"})),
            (Self::Elicitation, Answer::Declined) => Ok(json!({"action": "decline"})),
            (Self::Elicitation, Answer::Cancelled | Answer::Selected(_)) => Ok(json!({"action": "cancel"})),
        }
    }
}
