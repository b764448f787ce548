//! ACP over the network: the listener for WebSocket and streamable HTTP, and the client that dials it.

pub mod client;
mod handshake;
mod http;
pub mod listener;
mod request_checks;
mod sse;
mod strangers;
mod tls;
mod unfinished;
mod websocket;

use bytes::Bytes;
use secrecy::SecretString;
use tokio::sync::{mpsc, oneshot};

/// The header that names a connection.
pub const CONNECTION_ID: &str = "acp-connection-id";
/// The header that names a session.
pub const SESSION_ID: &str = "acp-session-id";
/// The header with how many messages of a client arrived, in the answer to one that comes back.
pub const RECEIVED: &str = "castor-received";
/// The number of the last message that a client has.
pub const LAST_EVENT_ID: &str = "last-event-id";
/// The WebSocket subprotocol of ACP.
const PROTOCOL: &str = "acp";
/// How a subprotocol begins that is a token: a page cannot send another header with a WebSocket. It is never selected, so
/// that no answer has it.
const TOKEN_PROTOCOL: &str = "bearer.";
/// Where the Agent Host Protocol is spoken.
pub const AHP_PATH: &str = "/ahp";
/// The longest message, in bytes.
pub const MAX_MESSAGE: usize = 32 << 20;

/// Who asks, and for which connection.
#[derive(Clone, Debug, Default)]
pub struct TokenBearer {
    /// The bearer token, as it was sent.
    pub token: Option<SecretString>,
    pub connection: Option<String>,
    pub session: Option<String>,
}

/// Something that came over the network. Those that have a reply wait for it.
pub enum Arrival {
    /// May this one send a message? Asked before its body is read.
    Admit { caller: TokenBearer, reply: oneshot::Sender<Result<(), HttpRefusal>> },
    /// A message by POST.
    Post { caller: TokenBearer, body: Bytes, reply: oneshot::Sender<Result<PostAnswer, HttpRefusal>> },
    /// A client wants to hear: by a WebSocket, which also speaks, or by server-sent events.
    Listen {
        caller: TokenBearer,
        way: StreamWay,
        after: Option<u64>,
        reply: oneshot::Sender<Result<OutStream, HttpRefusal>>,
    },
    /// The connection is to end.
    Delete { caller: TokenBearer, reply: oneshot::Sender<Result<(), HttpRefusal>> },
    /// A message by a WebSocket.
    Message { stream: StreamKey, text: Bytes },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamWay {
    WebSocket,
    Events,
    /// A WebSocket for the Agent Host Protocol: a connection of its own, which ends with it.
    HostSocket,
}

/// What became of a stream. These are never waited with.
#[derive(Debug)]
pub enum StreamNews {
    /// So many bytes of messages were written.
    Written(StreamKey, usize),
    /// The client has all messages up to that number.
    Heard(StreamKey, u64),
    /// It broke: the client may come back.
    Broken(StreamKey),
    /// The client said goodbye.
    Left(StreamKey),
}

/// Whom the listener tells of what comes.
#[derive(Clone)]
pub struct ListenerQueues {
    pub arrivals: mpsc::Sender<Arrival>,
    pub news: mpsc::UnboundedSender<StreamNews>,
}

/// A stream of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey {
    pub connection: u64,
    pub stream: u64,
}

#[derive(Debug)]
pub enum PostAnswer {
    Accepted,
    /// The answer to initialize.
    Initialized {
        connection: String,
        body: Bytes,
    },
}

/// Messages on their way to a client.
pub struct OutStream {
    pub key: StreamKey,
    /// As the client knows the connection.
    pub connection: String,
    /// How many messages of the client arrived so far.
    pub received: u64,
    pub messages: mpsc::UnboundedReceiver<(u64, Bytes)>,
    /// Why it is to end; also when the sender is gone.
    pub end: oneshot::Receiver<&'static str>,
}

/// An answer that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRefusal {
    pub status: u16,
    pub why: String,
    /// In seconds.
    pub retry_after: Option<u32>,
}

impl HttpRefusal {
    pub fn new(status: u16, why: impl Into<String>) -> Self {
        Self { status, why: why.into(), retry_after: None }
    }

    pub fn retry(status: u16, why: impl Into<String>, seconds: u32) -> Self {
        Self { retry_after: Some(seconds), ..Self::new(status, why) }
    }
}
