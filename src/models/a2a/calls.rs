//! Calls of a remote agent's server over HTTP: one answer, or a stream of events.

use std::{sync::Arc, time::Duration};

use a2a::{SVC_PARAM_VERSION, SendMessageResponse, StreamResponse, Task, VERSION};
use reqwest::{Response, header};
use serde_json::Value;

use super::{
    access::{Access, RemoteCredentials},
    binding::{Binding, Interface, Refusal, RemoteCall},
    messages::Memory,
};
use crate::providers::error_body::wait_from_headers;
use castor_base::{
    model::{Failure, FailureKind},
    text,
};
use castor_hands::http::{self, Http, safe_host};
use castor_wire::sse::Decoder;

/// Larger answers are not read.
const MAX_BODY: usize = 16 << 20;
const MAX_ERROR_BODY: usize = 64 << 10;
/// A server that does not stream answers when its work is done.
const WORK_LIMIT: Duration = Duration::from_secs(30 * 60);

/// Speaks to one server.
pub struct Caller {
    access: Access,
    interface: Interface,
}

/// Events as they come.
pub struct Events {
    binding: Binding,
    body: Body,
}

enum Body {
    /// An answer in one piece, where a stream was asked for.
    Whole(Option<Value>),
    Stream {
        response: Box<Response>,
        decoder: Decoder,
    },
}

impl Caller {
    pub fn new(access: Access, interface: Interface) -> Self {
        Self { access, interface }
    }

    pub fn streams(&self) -> bool {
        self.interface.streams
    }

    pub fn tenant(&self) -> Option<&str> {
        self.interface.tenant.as_deref()
    }

    pub fn credentials(&self) -> Arc<RemoteCredentials> {
        self.access.credentials.clone()
    }

    /// The task needs something that the server itself asks for, and keeps.
    pub fn unauthorized(&self, why: &str) -> Failure {
        let mut res = self.access.refusal(why.to_owned(), &self.interface.url);
        if let Some(it) = &mut res.details.credential {
            it.is_outside = true;
        }
        res
    }

    /// Tells whether the task of a run before waits for a message.
    pub async fn is_waiting(&self, memory: &Memory) -> bool {
        let Some(id) = &memory.task else { return false };
        let task = self.get_task(id).await;
        task.is_ok_and(|it| matches!(it.status.state, a2a::TaskState::InputRequired | a2a::TaskState::AuthRequired))
    }

    /// # Errors
    /// As any call.
    pub async fn get_task(&self, id: &str) -> Result<Task, Failure> {
        let value = self.call(&RemoteCall::Get(id)).await?;
        self.decode(value)
    }

    /// # Errors
    /// As any call.
    pub async fn send(&self, call: &RemoteCall<'_>) -> Result<StreamResponse, Failure> {
        let value = self.call(call).await?;
        Ok(match self.decode(value)? {
            SendMessageResponse::Task(it) => StreamResponse::Task(it),
            SendMessageResponse::Message(it) => StreamResponse::Message(it),
        })
    }

    /// # Errors
    /// As any call.
    pub async fn call(&self, call: &RemoteCall<'_>) -> Result<Value, Failure> {
        let mut response = self.request(call).await?;
        let body = read_body(&self.access.http, &mut response, MAX_BODY).await?;
        self.interface.binding.read(&body).map_err(|it| self.refusal(it))
    }

    /// # Errors
    /// As any call, or an answer that is no stream.
    pub async fn open(&self, call: &RemoteCall<'_>) -> Result<Events, Failure> {
        let mut response = self.request(call).await?;
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let kind = kind.unwrap_or_default().to_ascii_lowercase();
        let body = if kind.starts_with("text/event-stream") {
            Body::Stream { response: Box::new(response), decoder: Decoder::default() }
        } else if kind.contains("json") {
            let body = read_body(&self.access.http, &mut response, MAX_BODY).await?;
            Body::Whole(Some(self.interface.binding.read(&body).map_err(|it| self.refusal(it))?))
        } else {
            let why = format!("{} answers with {:?}, not with events", self.host(), text::head(&kind, 100));
            return Err(Failure::new(FailureKind::Garbage, why));
        };
        Ok(Events { binding: self.interface.binding, body })
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// The stream breaks, or an event is none.
    pub async fn next(&self, events: &mut Events) -> Result<Option<StreamResponse>, Failure> {
        let (response, decoder) = match &mut events.body {
            Body::Whole(it) => return it.take().map(|it| self.decode(it)).transpose(),
            Body::Stream { response, decoder } => (response, decoder),
        };
        loop {
            let event = decoder.next().map_err(|it| Failure::new(FailureKind::Garbage, it.to_string()))?;
            if let Some(event) = event {
                let value = events.binding.read(&event.data).map_err(|it| self.refusal(it))?;
                return self.decode(value).map(Some);
            }
            match self.access.http.next_chunk(response).await? {
                Some(it) => decoder.push(it),
                None => return Ok(None),
            }
        }
    }

    async fn request(&self, call: &RemoteCall<'_>) -> Result<Response, Failure> {
        let Interface { url, binding, tenant, .. } = &self.interface;
        let client = self.access.client(url)?;
        let (request, url) = binding
            .request(client, url, tenant.as_deref(), call)
            .ok_or_else(|| Failure::new(FailureKind::Auth, "the card's address cannot be used"))?;
        let accept = if call.streams() { "text/event-stream, application/json" } else { "application/json" };
        let request = request.header(SVC_PARAM_VERSION, VERSION).header(header::ACCEPT, accept);
        // Compression would hold events back.
        let request = request.header(header::ACCEPT_ENCODING, "identity");
        let request = self.access.prove(request, &url).await?;
        let mut response = match call {
            RemoteCall::Send(_) => self.access.http.send_within(request, &url, WORK_LIMIT).await?,
            _ => self.access.http.send(request, &url).await?,
        };
        if response.status().is_success() {
            return Ok(response);
        }
        Err(self.failure(&mut response).await)
    }

    async fn failure(&self, response: &mut Response) -> Failure {
        let status = response.status();
        let (code, host) = (status.as_u16(), self.host());
        let headers = response.headers().clone();
        let body = http::read_head(response, MAX_ERROR_BODY).await;
        let said = match self.interface.binding.read(&body) {
            Err(Refusal::Error(it)) => format!(": {it}"),
            _ => String::new(),
        };
        let wait = || wait_from_headers(code, |name| headers.get(name)?.to_str().ok(), 0);
        match code {
            401 | 403 => {
                let hint = if self.access.credentials.is_some() { "check" } else { "set" };
                let why = format!("{host} refuses castor ({status}){said}; {hint} `auth` in the agent's file");
                self.access.refusal(why, &self.interface.url)
            }
            429 | 500.. => Failure {
                status: Some(code),
                retry_after_ms: wait(),
                ..Failure::new(FailureKind::Status, format!("{host} answers {status}{said}"))
            },
            300..=399 => {
                let why = format!("{host} redirects to another address; the card should name that one");
                Failure::new(FailureKind::Garbage, why)
            }
            _ => Failure::new(FailureKind::Garbage, format!("{host} answers {status}{said}")),
        }
    }

    fn decode<T: serde::de::DeserializeOwned>(&self, value: Value) -> Result<T, Failure> {
        serde_json::from_value(value).map_err(|it| {
            let why = format!("{} answers what is not A2A 1.0: {it}", self.host());
            Failure::new(FailureKind::Garbage, why)
        })
    }

    fn refusal(&self, it: Refusal) -> Failure {
        let why = match it {
            Refusal::Error(it) => format!("{} refuses the request: {it}", self.host()),
            Refusal::Garbage(it) => format!("{}: {it}", self.host()),
        };
        Failure::new(FailureKind::Garbage, why)
    }

    fn host(&self) -> String {
        safe_host(&self.interface.url)
    }
}

/// All of an answer's body.
///
/// # Errors
/// It breaks off, or is larger than `max`.
pub async fn read_body(http: &Http, response: &mut Response, max: usize) -> Result<Vec<u8>, Failure> {
    let mut res = Vec::new();
    while let Some(bytes) = http.next_chunk(response).await? {
        res.extend_from_slice(&bytes);
        if res.len() > max {
            let why = format!("the answer is larger than {} MiB", max >> 20);
            return Err(Failure::new(FailureKind::Garbage, why));
        }
    }
    Ok(res)
}
