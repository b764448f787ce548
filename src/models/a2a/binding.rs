//! The two bindings of A2A that castor speaks: JSON-RPC, and HTTP with JSON (REST).

use a2a::{
    CancelTaskRequest, GetTaskRequest, JsonRpcRequest, JsonRpcResponse, SendMessageRequest, SubscribeToTaskRequest,
    methods,
};
use reqwest::{Client, RequestBuilder, Url};
use serde::Serialize;
use serde_json::Value;

use castor_base::text;
use castor_wire::json_text;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    JsonRpc,
    Rest,
}

/// Where and how an agent is reached.
pub struct Interface {
    pub url: Url,
    pub binding: Binding,
    pub tenant: Option<String>,
    pub streams: bool,
}

/// What a server is asked for.
pub enum RemoteCall<'a> {
    Send(&'a SendMessageRequest),
    Stream(&'a SendMessageRequest),
    Get(&'a str),
    Cancel(&'a str),
    Subscribe(&'a str),
}

impl RemoteCall<'_> {
    pub fn streams(&self) -> bool {
        matches!(self, Self::Stream(_) | Self::Subscribe(_))
    }

    fn method(&self) -> &'static str {
        match self {
            Self::Send(_) => methods::SEND_MESSAGE,
            Self::Stream(_) => methods::SEND_STREAMING_MESSAGE,
            Self::Get(_) => methods::GET_TASK,
            Self::Cancel(_) => methods::CANCEL_TASK,
            Self::Subscribe(_) => methods::SUBSCRIBE_TO_TASK,
        }
    }

    fn params(&self, tenant: Option<&str>) -> Option<Value> {
        let tenant = tenant.map(str::to_owned);
        fn json(it: impl Serialize) -> Option<Value> {
            serde_json::to_value(it).ok()
        }
        match self {
            Self::Send(it) | Self::Stream(it) => json(it),
            Self::Get(id) => json(GetTaskRequest { id: (*id).to_owned(), history_length: None, tenant }),
            Self::Cancel(id) => json(CancelTaskRequest { id: (*id).to_owned(), metadata: None, tenant }),
            Self::Subscribe(id) => json(SubscribeToTaskRequest { id: (*id).to_owned(), tenant }),
        }
    }
}

impl Binding {
    /// The request, and its address. `None`: nothing can be appended to `base`.
    pub fn request(
        self,
        client: &Client,
        base: &Url,
        tenant: Option<&str>,
        call: &RemoteCall<'_>,
    ) -> Option<(RequestBuilder, Url)> {
        if self == Self::JsonRpc {
            let body = JsonRpcRequest::new(1.into(), call.method(), call.params(tenant));
            return Some((client.post(base.clone()).json(&body), base.clone()));
        }
        let mut url = base.clone();
        let (id, verb) = match call {
            RemoteCall::Send(_) => (None, "message:send"),
            RemoteCall::Stream(_) => (None, "message:stream"),
            RemoteCall::Get(id) => (Some(*id), ""),
            RemoteCall::Cancel(id) => (Some(*id), ":cancel"),
            RemoteCall::Subscribe(id) => (Some(*id), ":subscribe"),
        };
        let mut path = url.path_segments_mut().ok()?;
        path.pop_if_empty().extend(tenant);
        match id {
            Some(id) => path.push("tasks").push(&format!("{id}{verb}")),
            None => path.push(verb),
        };
        drop(path);
        let request = match call {
            RemoteCall::Get(_) | RemoteCall::Subscribe(_) => client.get(url.clone()),
            RemoteCall::Cancel(_) => client.post(url.clone()).body("{}").header("content-type", "application/json"),
            RemoteCall::Send(_) | RemoteCall::Stream(_) => client.post(url.clone()).json(&call.params(tenant)),
        };
        Some((request, url))
    }

    /// What an answer, or an event of a stream, holds.
    ///
    /// # Errors
    /// The server's own word on what went wrong, or what is wrong with the answer.
    pub fn read(self, data: &[u8]) -> Result<Value, Refusal> {
        let garbage = |it: serde_json::Error| Refusal::Garbage(format!("its answer cannot be read: {it}"));
        let value: Value = serde_json::from_str(&json_text::readable(data)).map_err(garbage)?;
        if let Some(error) = value.get("error").filter(|it| !it.is_null()) {
            return Err(Refusal::Error(error_in_words(error)));
        }
        match self {
            Self::Rest => Ok(value),
            Self::JsonRpc => {
                let response: JsonRpcResponse = serde_json::from_value(value).map_err(garbage)?;
                response.result.ok_or_else(|| Refusal::Garbage("its answer has no result".to_owned()))
            }
        }
    }
}

/// Why there is nothing to go on with.
#[derive(Debug, PartialEq)]
pub enum Refusal {
    /// The server says so.
    Error(String),
    Garbage(String),
}

/// Message and code, as JSON-RPC and Google's errors have them.
fn error_in_words(error: &Value) -> String {
    let message = error.get("message").and_then(Value::as_str).unwrap_or("an error without a message");
    let code = error.get("code").map(|it| format!(" ({it})")).unwrap_or_default();
    format!("{}{code}", text::head(message, 500))
}
