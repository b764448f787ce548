//! The transport of an MCP server that the client itself is: each request travels as one of the client's protocol.

use std::convert::Infallible;

use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use crate::mcp::{EventSink, ServerEvent, incoming::read_value};

/// Requests that wait for their answer, and messages that nobody has taken yet. Further requests wait for a place.
const QUEUE: usize = 64;
/// Notifications of a subscription name its request by this.
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";

/// A request to a server that the client is.
pub struct RelayedRequest {
    /// Of this server's.
    pub number: i64,
    pub method: String,
    pub params: Option<Map<String, Value>>,
    pub reply: RelayReply,
}

/// Takes what the client says of one request. Dropped: nothing is said of it any more.
pub struct RelayReply {
    number: i64,
    /// Kept free from the beginning: an answer always finds a place.
    answer: mpsc::OwnedPermit<Value>,
    notices: mpsc::Sender<Value>,
}

/// An error in place of a result.
#[derive(Debug, PartialEq)]
pub struct RelayError {
    pub code: i32,
    pub message: String,
    pub data: Option<Value>,
}

impl RelayReply {
    pub fn answer(self, outcome: Result<Value, RelayError>) {
        let mut message = json!({ "jsonrpc": "2.0", "id": self.number });
        let (name, value) = match outcome {
            Ok(mut result) => {
                name_subscription(&mut result, self.number);
                ("result", result)
            }
            Err(RelayError { code, message, data: None }) => ("error", json!({ "code": code, "message": message })),
            Err(RelayError { code, message, data }) => {
                ("error", json!({ "code": code, "message": message, "data": data }))
            }
        };
        if let Some(it) = message.as_object_mut() {
            it.insert(name.to_owned(), value);
        }
        self.answer.send(message);
    }

    /// A notification about the request. One that finds no place is lost, as progress may be.
    pub fn notify(&self, method: &str, params: Option<Map<String, Value>>) {
        let mut params = params.map(Value::Object).unwrap_or_else(|| json!({}));
        name_subscription(&mut params, self.number);
        let notice = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        if self.notices.try_send(notice).is_err() {
            tracing::debug!("dropped a notification of an MCP server: {method}");
        }
    }
}

/// The client knows the request by another id than rmcp.
fn name_subscription(value: &mut Value, number: i64) {
    if let Some(it) = value.get_mut("_meta").and_then(|it| it.get_mut(SUBSCRIPTION_ID)) {
        *it = number.into();
    }
}

pub(in crate::mcp) struct ClientTransport {
    tell: EventSink,
    sender: mpsc::Sender<Value>,
    messages: mpsc::Receiver<Value>,
}

impl ClientTransport {
    pub(in crate::mcp) fn new(tell: EventSink) -> Self {
        let (sender, messages) = mpsc::channel(QUEUE);
        Self { tell, sender, messages }
    }
}

impl Transport<RoleClient> for ClientTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let (tell, sender) = (self.tell.clone(), self.sender.clone());
        async move {
            send(&tell, sender, serde_json::to_value(item).unwrap_or_default()).await;
            Ok(())
        }
    }

    /// Never `None`: the connection lasts as long as the client's.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let message = self.messages.recv().await?;
            let id = message.get("id").cloned();
            match (read_value(message), id) {
                (Ok(it), _) => return Some(it),
                (Err(why), None) => tracing::debug!("ignored an MCP message: {why}"),
                (Err(why), Some(id)) => {
                    let error = json!({ "code": -32603, "message": format!("its answer is no MCP message: {why}") });
                    return serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "error": error })).ok();
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

/// The client's protocol has a place for requests alone, and its own way to withdraw one. Nothing else is sent.
async fn send(tell: &EventSink, sender: mpsc::Sender<Value>, mut message: Value) {
    let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
    let number = message.get("id").and_then(Value::as_i64);
    if let Some(number) = number {
        let notices = sender.clone();
        // The transport is gone: so is whoever waits for the answer.
        let Ok(answer) = sender.reserve_owned().await else { return };
        let params = match message.get_mut("params").map(Value::take) {
            Some(Value::Object(it)) => Some(it),
            _ => None,
        };
        let reply = RelayReply { number, answer, notices };
        return tell(ServerEvent::Relay(Box::new(RelayedRequest { number, method, params, reply }))).await;
    }
    let withdrawn = message.pointer("/params/requestId").and_then(Value::as_i64);
    if let Some(number) = withdrawn.filter(|_| method == "notifications/cancelled") {
        tell(ServerEvent::RelayWithdrawn(number)).await;
    }
}
