//! The client's side of an ACP connection: jsonrpsee sends our requests; the agent's messages arrive as [`Incoming`], in
//! order.
//!
//! Traps: jsonrpsee's client ends for ever on a response whose id it does not know, on a string id for a number and
//! on error objects with more members than three, so only responses to pending requests reach it, rewritten. Its
//! default timeout is a minute, but a turn may take hours.

use std::{borrow::Cow, collections::HashSet, io, sync::Arc, time::Duration};

use jsonrpsee::core::{
    client::{Client, ClientBuilder, ClientT, Error, ReceivedMessage, TransportReceiverT, TransportSenderT},
    traits::ToRpcParams,
};
use serde::{Deserialize, Deserializer};
use serde_json::{
    Value, json,
    value::{RawValue, to_raw_value},
};
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader},
    sync::mpsc,
    task::JoinHandle,
};

use castor_base::text;
use castor_client::incoming::Incoming;
use castor_wire::json_text;

/// The longest line that is taken from an agent.
const MAX_LINE: u64 = 64 << 20;
/// Messages that may wait in each queue.
const QUEUE: usize = 64;
/// Requests of ours that may be open at once.
const MAX_OPEN: usize = 64;
/// In effect none: the user cancels.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);

/// Our side of a connection.
pub struct Peer {
    client: Arc<Client>,
    /// Whole lines to the agent.
    outbox: mpsc::Sender<Vec<u8>>,
    writer: JoinHandle<()>,
}

impl Peer {
    /// Starts to speak over a pair of streams; the receiver ends when the agent closed its side.
    pub fn connect<R, W>(reader: R, writer: W) -> (Self, mpsc::Receiver<Incoming>)
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let (outbox, lines) = mpsc::channel(QUEUE);
        let (to_client, responses) = mpsc::channel(QUEUE);
        let (asked, open) = mpsc::channel(MAX_OPEN);
        let (incoming, receiver) = mpsc::channel(QUEUE);
        let writer = tokio::spawn(write_lines(writer, lines));
        tokio::spawn(Demux { open, pending: HashSet::new(), to_client, incoming }.run(reader));
        let client = ClientBuilder::new()
            .request_timeout(REQUEST_TIMEOUT)
            .max_concurrent_requests(MAX_OPEN)
            .build_with_tokio(AgentSender { outbox: outbox.clone(), asked }, AgentReceiver(responses));
        (Self { client: Arc::new(client), outbox, writer }, receiver)
    }

    /// Asks the agent. The future borrows nothing, so that the caller can go on listening meanwhile.
    ///
    /// # Errors
    /// The agent's own, and that it is gone.
    pub fn request(&self, method: &'static str, params: Value) -> impl Future<Output = Result<Value, Error>> + use<> {
        let client = self.client.clone();
        async move { client.request::<Value, _>(method, Params(params)).await }
    }

    pub async fn notify(&self, method: &'static str, params: Value) {
        if let Err(error) = self.client.notification(method, Params(params)).await {
            tracing::debug!(method, %error, "notification was not sent");
        }
    }

    /// Where answers to the agent's requests go.
    pub fn outbox(&self) -> mpsc::Sender<Vec<u8>> {
        self.outbox.clone()
    }

    /// Closes the agent's stdin, whatever still waits: every request is answered or given up by now.
    pub fn close(self) {
        self.close_input();
    }

    /// The same while its answers are still read.
    pub fn close_input(&self) {
        self.writer.abort();
    }
}

struct Params(Value);

impl ToRpcParams for Params {
    fn to_rpc_params(self) -> Result<Option<Box<RawValue>>, serde_json::Error> {
        to_raw_value(&self.0).map(Some)
    }
}

async fn write_lines<W: AsyncWrite + Unpin>(mut writer: W, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        let written = async {
            writer.write_all(&line).await?;
            writer.flush().await
        };
        if let Err(error) = written.await {
            // That the agent is gone is told by the end of its stdout.
            tracing::debug!(%error, "the agent does not read any more");
            return;
        }
    }
}

/// jsonrpsee's way to the agent.
struct AgentSender {
    outbox: mpsc::Sender<Vec<u8>>,
    asked: mpsc::Sender<u64>,
}

impl TransportSenderT for AgentSender {
    type Error = io::Error;

    async fn send(&mut self, message: String) -> io::Result<()> {
        #[derive(Deserialize)]
        struct MessageId {
            id: Option<u64>,
        }
        if let Ok(MessageId { id: Some(id) }) = serde_json::from_str(&message) {
            // Before the line itself: when the answer comes, the id is known to be pending.
            self.asked.send(id).await.map_err(|_| io::ErrorKind::BrokenPipe)?;
        }
        let mut line = message.into_bytes();
        line.push(b'\n');
        self.outbox.send(line).await.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}

/// What the demultiplexer leaves to jsonrpsee.
struct AgentReceiver(mpsc::Receiver<Vec<u8>>);

impl TransportReceiverT for AgentReceiver {
    type Error = io::Error;

    async fn receive(&mut self) -> io::Result<ReceivedMessage> {
        self.0.recv().await.map(ReceivedMessage::Bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// A message of any kind. What is not needed to tell the kinds apart stays raw.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    error: Option<&'a RawValue>,
}

/// Tells `"id":null` from no id.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

/// The receiver is gone.
struct ListenerGone;

struct Demux {
    open: mpsc::Receiver<u64>,
    pending: HashSet<u64>,
    to_client: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Sender<Incoming>,
}

impl Demux {
    async fn run<R: AsyncRead + Unpin>(mut self, reader: R) {
        let mut reader = BufReader::with_capacity(64 << 10, reader);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut reader).take(MAX_LINE).read_until(b'\n', &mut line).await {
                Ok(0) => return,
                Ok(_) => (),
                Err(error) => return tracing::debug!(%error, "reading from the agent failed"),
            }
            if line.len() as u64 == MAX_LINE && line.last() != Some(&b'\n') {
                let note = format!("a line of more than {MAX_LINE} bytes; gave up");
                _ = self.incoming.send(Incoming::Noise(note)).await;
                return;
            }
            let Ok(()) = self.line(line.trim_ascii()).await else { return };
        }
    }

    async fn line(&mut self, line: &[u8]) -> Result<(), ListenerGone> {
        if line.is_empty() {
            return Ok(());
        }
        let line = json_text::readable(line);
        // serde reads structs from arrays, too: only objects are messages here.
        let envelope = match line.starts_with('{') {
            true => serde_json::from_str::<Envelope<'_>>(&line).ok(),
            false => None,
        };
        let params = |it: Option<&RawValue>| it.map_or_else(|| RawValue::NULL.to_owned(), ToOwned::to_owned);
        let message = match envelope {
            Some(Envelope { method: None, id: Some(id), result, error, .. }) if result.is_some() || error.is_some() => {
                return self.response(id, result, error).await;
            }
            Some(Envelope { method: Some(method), id: Some(id), params: it, .. }) => {
                Incoming::Request { id: id.to_owned(), method: method.into_owned(), params: params(it) }
            }
            Some(Envelope { method: Some(method), params: it, .. }) => {
                Incoming::Notification { method: method.into_owned(), params: params(it) }
            }
            _ => Incoming::Noise(text::head(&line, 200).to_owned()),
        };
        self.incoming.send(message).await.map_err(|_| ListenerGone)
    }

    async fn response(
        &mut self,
        id: &RawValue,
        result: Option<&RawValue>,
        error: Option<&RawValue>,
    ) -> Result<(), ListenerGone> {
        while let Ok(id) = self.open.try_recv() {
            self.pending.insert(id);
        }
        let Some(id) = self.pending_id(id.get()) else {
            tracing::warn!(id = id.get(), "the agent answered a request that is not open");
            return Ok(());
        };
        let body = match (result, error) {
            (_, Some(error)) => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{}}}"#, plain_error(error)),
            (Some(result), None) => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{}}}"#, result.get()),
            (None, None) => return Ok(()),
        };
        self.to_client.send(body.into_bytes()).await.map_err(|_| ListenerGone)
    }

    /// The pending request that a response's id means. Some agents turn numbers into strings. `null` is what an agent
    /// writes that could not read our message: with one open request, that is the one.
    fn pending_id(&mut self, id: &str) -> Option<u64> {
        let id = match id {
            "null" if self.pending.len() == 1 => *self.pending.iter().next()?,
            _ => id.trim_matches('"').parse().ok()?,
        };
        self.pending.remove(&id).then_some(id)
    }
}

/// An error object with the three members that jsonrpsee takes, and a code that fits it.
fn plain_error(error: &RawValue) -> Value {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    let code = error.get("code").and_then(Value::as_i64).and_then(|it| i32::try_from(it).ok()).unwrap_or(-32603);
    let message = error.get("message").and_then(Value::as_str).map_or_else(|| error.to_string(), str::to_owned);
    match error.get("data") {
        Some(data) => json!({"code": code, "message": message, "data": data}),
        None => json!({"code": code, "message": message}),
    }
}
