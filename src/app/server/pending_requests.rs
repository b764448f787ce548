//! Open requests of the client and to it: their owners, and the withdrawal of those that are no longer needed.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::{
    base::{
        ids::{EffectId, QuestionId, SessionId},
        question::Form,
    },
    wire::{
        acp::updates,
        jsonrpc::{message::RpcError, open_requests::OutgoingRequests},
    },
};

/// Whom an open request of the client is about.
#[derive(Clone)]
pub enum RequestOwner {
    /// The prompt with the ticket's number.
    Prompt(SessionId),
    /// Its answer says what the session's log must have first.
    Setter(SessionId),
    /// Waits for the end of a stream of the session.
    Follower(SessionId),
    Other,
}

/// What an open request to the client is about.
pub enum ClientRequest {
    /// The engine waits for the user.
    Question { session: SessionId, question: QuestionId, shape: QuestionForm },
    /// A task waits, until its effect is over.
    EditorCall { session: SessionId, effect: EffectId, reply: oneshot::Sender<Result<Value, RpcError>> },
    /// terminal/create: also when nobody waits any more, the terminal has to be given back.
    Terminal { session: SessionId, effect: EffectId, reply: oneshot::Sender<Result<Value, RpcError>> },
    /// Whatever the answer says.
    IgnoredReply,
}

impl ClientRequest {
    /// Whether the task of this effect waits for the answer.
    pub fn is_call_of(&self, id: &SessionId, of: EffectId) -> bool {
        matches!(self, Self::EditorCall { session, effect, .. } if session == id && *effect == of)
    }

    /// Whether somebody in that session waits for the answer.
    pub fn is_of_session(&self, id: &SessionId) -> bool {
        match self {
            Self::Question { session, .. } | Self::EditorCall { session, .. } => session == id,
            Self::Terminal { .. } | Self::IgnoredReply => false,
        }
    }
}

/// Nobody waits for these any more: the client may take the question off the screen.
pub fn withdraw(open: &mut OutgoingRequests<ClientRequest>, is_it: impl Fn(&ClientRequest) -> bool, out: &mut Vec<u8>) {
    let ids: Vec<i64> = open.iter().filter(|(_, it)| is_it(it)).map(|(id, _)| id).collect();
    for id in ids {
        open.cancel(id);
        updates::notification("$/cancel_request", &json!({ "requestId": id }), out);
    }
}

/// How a question was put: its answer is read the same way.
#[derive(Clone, Debug)]
pub enum QuestionForm {
    Confirmation,
    Form(Arc<Form>),
    /// A form, shown as options.
    Options(Arc<Form>),
    /// One choice of castor's own question, shown as options.
    Choice(Arc<Form>),
    Link,
}
