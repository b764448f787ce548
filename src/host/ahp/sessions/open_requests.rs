//! Requests of the agent that wait for clients of a session: questions to the user, and calls of clients' tools.

use std::collections::BTreeMap;

use castor_wire::jsonrpc::message::RequestId;

/// Requests of a session's agent that have no answer yet.
#[derive(Default)]
pub struct OpenRequests {
    pub questions: BTreeMap<RequestId, OpenQuestion>,
    /// The question that the agent withdrew last, as another client may have answered it.
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

/// A question that has no answer yet.
#[derive(Clone, Debug)]
pub struct OpenQuestion {
    pub turn: String,
    pub call: String,
    /// Whether the question is about running the call; else the call itself asks the user.
    pub is_approval: bool,
    /// Whether fields stand in place of options.
    pub is_form: bool,
    /// Whether a yes may change the input of the call.
    pub is_editable: bool,
    pub options: Vec<QuestionOption>,
}

#[derive(Clone, Debug)]
pub struct QuestionOption {
    pub id: String,
    pub name: String,
    pub kind: String,
}

impl QuestionOption {
    pub fn allows(&self) -> bool {
        self.kind.starts_with("allow")
    }
}

impl OpenRequests {
    /// A question that has no answer yet.
    ///
    /// # Errors
    /// There is none, in words.
    pub fn question(
        &self,
        is_it: impl Fn(&RequestId, &OpenQuestion) -> bool,
    ) -> Result<(RequestId, OpenQuestion), String> {
        let found = self.questions.iter().find(|(id, it)| is_it(id, it));
        let found = found.map(|(id, it)| (id.clone(), it.clone()));
        found.ok_or_else(|| "the question has an answer already, or was withdrawn".to_owned())
    }
}

impl OpenQuestion {
    /// The option of that name, or the least of its kind.
    pub fn option(&self, id: Option<&str>, allows: bool) -> Option<&QuestionOption> {
        let fitting = |it: &&QuestionOption| it.allows() == allows;
        match id {
            Some(id) => self.options.iter().filter(fitting).find(|it| it.id == id),
            None => {
                let once = self.options.iter().filter(fitting).find(|it| it.kind.ends_with("once"));
                once.or_else(|| self.options.iter().find(fitting))
            }
        }
    }

    pub fn input_id(&self, id: &RequestId) -> String {
        format!("{}-{}", self.call, key(id))
    }
}

/// A request's id as text, for ids of AHP.
pub fn key(id: &RequestId) -> String {
    match id {
        RequestId::Null => "null".to_owned(),
        RequestId::Number(it) => it.to_string(),
        RequestId::Text(it) => it.clone(),
    }
}
