//! Open requests of the client and to it: their owners, and the withdrawal of those that are no longer needed.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::oneshot;

use castor_base::{
    ids::{EffectId, QuestionId, SessionId},
    question::Form,
};
use castor_tools::mcp::RelayReply;
use castor_wire::{
    acp::updates,
    jsonrpc::{message::RpcError, open_requests::OutgoingRequests},
};

/// Whom an open request of the client is about.
#[derive(Clone)]
pub enum RequestOwner {
    /// The prompt with the ticket's number.
    Prompt(SessionId),
    /// Its answer says what the session's log must have first.
    Setter(SessionId),
    /// Its answer comes behind what the session said before.
    Reader(SessionId),
    /// Waits for the end of a stream of the session.
    Follower(SessionId),
    Other,
}

impl RequestOwner {
    pub fn session(&self) -> Option<&SessionId> {
        match self {
            Self::Prompt(it) | Self::Setter(it) | Self::Reader(it) | Self::Follower(it) => Some(it),
            Self::Other => None,
        }
    }
}

/// What an open request to the client is about.
pub enum ClientRequest {
    /// The engine waits for the user. One session asks, but for a credential that several wait for.
    Question { askers: Vec<(SessionId, QuestionId)>, shape: QuestionForm },
    /// A task waits, until its effect is over.
    EditorCall { session: SessionId, effect: EffectId, reply: oneshot::Sender<Result<Value, RpcError>> },
    /// terminal/create: also when nobody waits any more, the terminal has to be given back.
    Terminal { session: SessionId, effect: EffectId, reply: oneshot::Sender<Result<Value, RpcError>> },
    /// An MCP server that the client is: its task waits, and knows the request by that number.
    Relayed { server: u64, number: i64, reply: RelayReply },
    /// Whatever the answer says.
    IgnoredReply,
}

impl ClientRequest {
    /// Tells whether the task of this effect waits for the answer.
    pub fn is_call_of(&self, id: &SessionId, of: EffectId) -> bool {
        matches!(self, Self::EditorCall { session, effect, .. } if session == id && *effect == of)
    }

    /// The server in the client that it is for.
    pub fn server(&self) -> Option<u64> {
        if let Self::Relayed { server, .. } = self { Some(*server) } else { None }
    }

    /// Tells whether this session has the question before its user.
    pub fn is_question_of(&self, id: &SessionId) -> bool {
        matches!(self, Self::Question { askers, .. } if askers.iter().any(|it| it.0 == *id))
    }

    /// The session waits no more for its answer; whether nobody does.
    pub fn forget_session(&mut self, id: &SessionId) -> bool {
        match self {
            Self::Question { askers, .. } => forget_asker(askers, |it| it.0 == *id),
            Self::EditorCall { session, .. } => session == id,
            Self::Terminal { .. } | Self::Relayed { .. } | Self::IgnoredReply => false,
        }
    }

    /// The same for one question.
    pub fn forget_question(&mut self, id: &SessionId, question: QuestionId) -> bool {
        match self {
            Self::Question { askers, .. } => forget_asker(askers, |it| it.0 == *id && it.1 == question),
            Self::EditorCall { .. } | Self::Terminal { .. } | Self::Relayed { .. } | Self::IgnoredReply => false,
        }
    }
}

fn forget_asker(askers: &mut Vec<(SessionId, QuestionId)>, is_it: impl Fn(&(SessionId, QuestionId)) -> bool) -> bool {
    askers.retain(|it| !is_it(it));
    askers.is_empty()
}

/// Those who ask the user of this session's tree for the same credential already.
pub fn askers_for<'a>(
    open: &'a mut OutgoingRequests<ClientRequest>,
    id: &SessionId,
    credential: &str,
) -> Option<&'a mut Vec<(SessionId, QuestionId)>> {
    let mut all = open.iter_mut().filter_map(|(_, it)| match it {
        ClientRequest::Question { askers, shape } if shape.credential() == Some(credential) => Some(askers),
        _ => None,
    });
    all.find(|it| it.iter().any(|(of, _)| of.root() == id.root()))
}

/// Nobody waits for these any more: the client may take the question off the screen.
pub fn withdraw(
    open: &mut OutgoingRequests<ClientRequest>,
    mut is_over: impl FnMut(&mut ClientRequest) -> bool,
    out: &mut Vec<u8>,
) {
    let ids: Vec<i64> = open.iter_mut().filter_map(|(id, it)| is_over(it).then_some(id)).collect();
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
    /// A page to visit; the key of the credential that is renewed there.
    Page {
        credential: Option<String>,
    },
    /// A command for a terminal, which renews a credential.
    Login {
        credential: String,
    },
}

impl QuestionForm {
    /// The key of the credential that it is about.
    pub fn credential(&self) -> Option<&str> {
        match self {
            Self::Page { credential } => credential.as_deref(),
            Self::Login { credential } => Some(credential),
            Self::Confirmation | Self::Form(_) | Self::Options(_) | Self::Choice(_) => None,
        }
    }
}
