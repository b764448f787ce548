//! Requests of the agent to `castor run`, as one jsonrpsee module. Its handlers post questions; the loop answers them.

use std::time::Duration;

use jsonrpsee::{
    ConnectionId, Extensions, MethodCallback, MethodResponse, RpcModule,
    core::RegisterMethodError,
    types::{ErrorObject, ErrorObjectOwned, Id},
};
use serde_json::{Map, Value, json, value::RawValue};
use tokio::sync::{mpsc, oneshot};

use castor_base::{elicitation::ElicitationRequest, question::Form};
use castor_client::{Conversation, call::Call};
use castor_tools::mcp::elicitation::parse;
use castor_wire::acp::client::{FormQuestion, PermissionQuestion, read_value};

/// jsonrpsee replaces longer answers with an error; ours are a line.
const MAX_RESPONSE: usize = 1 << 20;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;
const INTERNAL: i32 = -32603;
const REQUEST_CANCELLED: i32 = -32800;
/// Never advertised; agents that ask all the same learn what to do instead.
const NOT_OFFERED: [&str; 2] = ["fs/read_text_file", "fs/write_text_file"];

/// A request of the agent to the user.
#[derive(Debug)]
pub struct Question {
    /// The request's id as it was written: `$/cancel_request` names it.
    pub request: String,
    pub session: Option<String>,
    /// The sub-agent that asks.
    pub agent: Option<String>,
    /// The tool call that it belongs to.
    pub call: Option<String>,
    pub about: QuestionSubject,
    pub answer: oneshot::Sender<Answer>,
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

#[derive(Debug, PartialEq)]
pub enum Answer {
    Selected(String),
    /// What was filled in; nothing of a page.
    Filled(Option<Map<String, Value>>),
    Declined,
    Cancelled,
    /// The agent took the question back.
    Withdrawn,
}

impl Question {
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

/// Travels to the handler beside the params.
#[derive(Clone)]
struct RequestId(String);

pub struct RequestHandlers {
    module: RpcModule<mpsc::Sender<Question>>,
}

impl RequestHandlers {
    pub fn new(questions: mpsc::Sender<Question>) -> Result<Self, RegisterMethodError> {
        let mut module = RpcModule::new(questions);
        module.register_async_method("session/request_permission", |params, questions, extensions| async move {
            let request = extensions.get::<RequestId>().map(|it| it.0.clone()).unwrap_or_default();
            permission(request, params.parse()?, &questions).await
        })?;
        module.register_async_method("elicitation/create", |params, questions, extensions| async move {
            let request = extensions.get::<RequestId>().map(|it| it.0.clone()).unwrap_or_default();
            elicitation(request, &params.parse()?, &questions).await
        })?;
        for method in NOT_OFFERED {
            module.register_method(method, |_, _, _| {
                Err::<(), _>(error(METHOD_NOT_FOUND, "this client offers no file access: use the disk"))
            })?;
        }
        Ok(Self { module })
    }

    /// Starts to answer a request; the future gives the line to send.
    pub fn call(&self, id: &RawValue, method: &str, params: &RawValue) -> impl Future<Output = Vec<u8>> + Send + use<> {
        let callback = self.module.method(method).cloned();
        let (id, method, params) = (id.get().to_owned(), method.to_owned(), params.get().to_owned());
        async move {
            let mut extensions = Extensions::new();
            extensions.insert(RequestId(id.clone()));
            let params = jsonrpsee::types::Params::new(Some(&params));
            let response = match callback {
                Some(MethodCallback::Async(run)) => {
                    run(Id::Null, params.into_owned(), ConnectionId(0), MAX_RESPONSE, extensions).await
                }
                Some(MethodCallback::Sync(run)) => run(Id::Null, params, MAX_RESPONSE, extensions),
                _ => MethodResponse::error(Id::Null, error(METHOD_NOT_FOUND, &format!("this client has no {method}"))),
            };
            line(&id, &response)
        }
    }
}

async fn permission(request: String, params: Value, to: &mpsc::Sender<Question>) -> Result<Value, ErrorObjectOwned> {
    let asked: PermissionQuestion = read_value(params).unwrap_or_default();
    let call = asked.tool_call.as_ref().map(|it| it.id.clone()).filter(|it| !it.is_empty());
    let (session, agent) = (asked.session_id.clone(), asked.meta.castor.agent.clone());
    let origin = QuestionOrigin { request, session, agent, call };
    match ask(origin, QuestionSubject::Permission(Box::new(asked)), to).await? {
        Answer::Selected(option) => Ok(json!({"outcome": {"outcome": "selected", "optionId": option}})),
        Answer::Cancelled | Answer::Declined | Answer::Filled(_) => Ok(json!({"outcome": {"outcome": "cancelled"}})),
        Answer::Withdrawn => Err(error(REQUEST_CANCELLED, "withdrawn")),
    }
}

async fn elicitation(request: String, params: &Value, to: &mpsc::Sender<Question>) -> Result<Value, ErrorObjectOwned> {
    let FormQuestion { session_id: session, tool_call_id: call, message, meta } =
        read_value(params.clone()).unwrap_or_default();
    // Agents ask as MCP servers do, and what those must not ask for is no more theirs.
    let about = match parse(params).map_err(|why| error(INVALID_PARAMS, &why.to_string()))? {
        ElicitationRequest::Form(form) => QuestionSubject::Form { message, form },
        ElicitationRequest::Page { url, .. } => {
            let renews = meta.castor.auth_required.is_some();
            QuestionSubject::Page { message, url, renews }
        }
    };
    let origin = QuestionOrigin { request, session, agent: meta.castor.agent, call };
    match ask(origin, about, to).await? {
        Answer::Filled(Some(content)) => Ok(json!({"action": "accept", "content": content})),
        Answer::Filled(None) => Ok(json!({"action": "accept"})),
        Answer::Declined => Ok(json!({"action": "decline"})),
        Answer::Cancelled | Answer::Selected(_) => Ok(json!({"action": "cancel"})),
        Answer::Withdrawn => Err(error(REQUEST_CANCELLED, "withdrawn")),
    }
}

/// Where a question comes from.
struct QuestionOrigin {
    request: String,
    session: Option<String>,
    agent: Option<String>,
    call: Option<String>,
}

async fn ask(
    origin: QuestionOrigin,
    about: QuestionSubject,
    to: &mpsc::Sender<Question>,
) -> Result<Answer, ErrorObjectOwned> {
    let QuestionOrigin { request, session, agent, call } = origin;
    let (answer, settled) = oneshot::channel();
    let ended = || error(INTERNAL, "this client is about to leave");
    to.send(Question { request, session, agent, call, about, answer }).await.map_err(|_| ended())?;
    settled.await.map_err(|_| ended())
}

fn error(code: i32, message: &str) -> ErrorObjectOwned {
    ErrorObject::owned(code, message, None::<()>)
}

/// jsonrpsee knows only ids that are u64 or strings: it answers `null`, and the id is put back exactly as it came.
fn line(id: &str, response: &MethodResponse) -> Vec<u8> {
    const NULL_HEAD: &str = r#"{"jsonrpc":"2.0","id":null"#;
    let rest = response.as_json().get().strip_prefix(NULL_HEAD);
    let rest = rest.unwrap_or(r#","error":{"code":-32603,"message":"no answer"}}"#);
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}{rest}\n").into_bytes()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json, value::RawValue};
    use tokio::sync::mpsc;

    use super::{Answer, RequestHandlers};

    fn raw(it: &str) -> Box<RawValue> {
        RawValue::from_string(it.to_owned()).unwrap()
    }

    #[tokio::test(flavor = "current_thread")]
    async fn answers_carry_the_id_as_it_came() {
        let (to, mut questions) = mpsc::channel(1);
        let host = RequestHandlers::new(to).unwrap();
        let asked = tokio::spawn(host.call(&raw("-1.50"), "session/request_permission", &raw(r#"{"options":[]}"#)));
        let question = questions.recv().await.unwrap();
        assert_eq!(question.request, "-1.50");
        question.answer.send(Answer::Selected("a".into())).unwrap();
        let line = String::from_utf8(asked.await.unwrap()).unwrap();
        assert!(line.starts_with(r#"{"jsonrpc":"2.0","id":-1.50,"result""#), "{line}");
        assert!(line.ends_with("}\n"), "{line}");
    }

    #[tokio::test(flavor = "current_thread")]
    async fn refuses_what_it_does_not_offer() {
        let host = RequestHandlers::new(mpsc::channel(1).0).unwrap();
        for method in ["fs/read_text_file", "terminal/create"] {
            let line = host.call(&raw("\"x\""), method, &raw("{}")).await;
            let answer: Value = serde_json::from_slice(&line).unwrap();
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("x"), &json!(-32601)), "{method}");
        }
    }
}
