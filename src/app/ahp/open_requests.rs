//! Requests of the agent that wait for clients of a session: questions to the user, and calls of clients' tools.

use std::collections::BTreeMap;

use super::open_question::OpenQuestion;
use crate::wire::jsonrpc::message::RequestId;

#[derive(Default)]
pub struct OpenRequests {
    pub questions: BTreeMap<RequestId, OpenQuestion>,
    /// The question that the agent withdrew last: another client may have answered it.
    pub withdrawn: Option<(RequestId, OpenQuestion)>,
    pub tool_calls: BTreeMap<RequestId, ClientToolCall>,
}

/// A call that a client runs.
#[derive(Clone, Debug)]
pub struct ClientToolCall {
    pub turn: String,
    pub call: String,
    pub client: String,
}
