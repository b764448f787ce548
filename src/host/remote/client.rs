//! The client's side of a WebSocket: dials a `castor serve`, and goes on with a connection that broke.

use std::{net::IpAddr, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream::SplitSink, stream::SplitStream};
use reqwest::{StatusCode, Upgraded, Url};
use tokio::time::timeout;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Message, Utf8Bytes,
        protocol::{CloseFrame, Role, frame::coding::CloseCode},
    },
};

use super::{CONNECTION_ID, LAST_EVENT_ID, RECEIVED, handshake, websocket};
use castor_hands::http::{self, HttpLink};

/// How long a server may take to answer.
const ANSWER: Duration = Duration::from_secs(20);
const FAREWELL: Duration = Duration::from_secs(2);
const MAX_WHY: usize = 400;

/// Where the server is, and what opens it.
#[derive(Clone)]
pub struct ServerAddress {
    url: Url,
    token: String,
}

/// A connection that was open before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EarlierConnection {
    pub id: String,
    /// The number of the last message that came.
    pub after: u64,
}

/// An open WebSocket.
pub struct DialedSocket {
    pub id: String,
    /// How many of our messages the server has.
    pub received: u64,
    pub sender: SocketSender,
    pub receiver: SocketReceiver,
}

pub struct SocketSender(SplitSink<WebSocketStream<Upgraded>, Message>);

pub struct SocketReceiver(SplitStream<WebSocketStream<Upgraded>>);

#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// To try again does not help.
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Unreachable(String),
}

/// What came.
#[derive(Debug, PartialEq, Eq)]
pub enum SocketMessage {
    Text(Bytes),
    /// The connection is gone, with the server's reason if it gave one.
    Gone(Option<String>),
}

impl ServerAddress {
    /// `ws`, `wss`, `http` and `https` mean the same server. A token is not sent in the clear but to this machine.
    ///
    /// # Errors
    /// In words.
    pub fn new(text: &str, token: &str) -> Result<Self, String> {
        let plain = [("wss://", "https://"), ("ws://", "http://")];
        let web = plain.iter().find_map(|(from, to)| Some(format!("{to}{}", text.strip_prefix(from)?)));
        Self::of_url(web.as_deref().unwrap_or(text), token)
    }

    fn of_url(text: &str, token: &str) -> Result<Self, String> {
        let mut url = Url::parse(text).map_err(|_| "write the server as https://HOST:PORT".to_owned())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err("write the server as https://HOST:PORT, or as http:// where it is on this machine".to_owned());
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|it| it.is_loopback());
        if url.scheme() == "http" && !is_here {
            return Err(format!("{host} is another machine, and http would send the token in the clear: use https"));
        }
        if url.path() == "/" {
            url.set_path("/acp");
        }
        Ok(Self { url, token: token.to_owned() })
    }

    /// Opens a connection, or goes on with an earlier one.
    ///
    /// # Errors
    /// With the server's own words, if it had some.
    pub async fn dial(&self, link: &HttpLink, earlier: Option<&EarlierConnection>) -> Result<DialedSocket, DialError> {
        let unreachable = |it: String| DialError::Unreachable(format!("{}: {it}", http::safe_host(&self.url)));
        let client = link.socket_client().map_err(|it| DialError::Refused(it.to_string()))?;
        let key = handshake::random_key().ok_or_else(|| unreachable("there are no random bytes".to_owned()))?;
        let mut request = client.get(self.url.clone()).bearer_auth(&self.token);
        for (name, value) in [
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", &key),
        ] {
            request = request.header(name, value);
        }
        if let Some(it) = earlier {
            request = request.header(CONNECTION_ID, &it.id).header(LAST_EVENT_ID, it.after);
        }
        let answer = timeout(ANSWER, request.send()).await;
        let answer = answer.map_err(|_| unreachable("it does not answer".to_owned()))?;
        let mut answer = answer.map_err(|it| unreachable(http::stream_failure(&it).message))?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let why = String::from_utf8_lossy(&http::read_head(&mut answer, MAX_WHY).await).trim().to_owned();
            let why = format!("{} answered {}: {why}", http::safe_host(&self.url), answer.status().as_u16());
            let is_for_now = matches!(answer.status().as_u16(), 429 | 500..);
            return Err(if is_for_now { DialError::Unreachable(why) } else { DialError::Refused(why) });
        }
        let header = |name: &str| answer.headers().get(name).and_then(|it| it.to_str().ok()).map(str::to_owned);
        if header("sec-websocket-accept").as_deref() != Some(&handshake::accept_key(&key)) {
            return Err(DialError::Refused(format!("{} speaks no WebSocket", http::safe_host(&self.url))));
        }
        let id = header(CONNECTION_ID).unwrap_or_default();
        let received = header(RECEIVED).and_then(|it| it.parse().ok()).unwrap_or_default();
        let upgraded = answer.upgrade().await.map_err(|it| unreachable(http::stream_failure(&it).message))?;
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(websocket::limits())).await;
        let (sender, receiver) = socket.split();
        Ok(DialedSocket { id, received, sender: SocketSender(sender), receiver: SocketReceiver(receiver) })
    }
}

impl SocketSender {
    /// Tells whether it was written.
    pub async fn send(&mut self, text: Bytes) -> bool {
        match Utf8Bytes::try_from(text) {
            Ok(it) => self.0.send(Message::Text(it)).await.is_ok(),
            // No message: the server would say so of any other text, too.
            Err(_) => true,
        }
    }

    /// Says that the client does not come back.
    pub async fn leave(&mut self) {
        let frame = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::from_static("") };
        _ = timeout(FAREWELL, self.0.send(Message::Close(Some(frame)))).await;
    }
}

impl SocketReceiver {
    /// The next message. Dropping the future loses nothing.
    pub async fn next(&mut self) -> SocketMessage {
        loop {
            match self.0.next().await {
                Some(Ok(Message::Text(it))) => return SocketMessage::Text(it.into()),
                Some(Ok(Message::Close(frame))) => {
                    let why = frame.map(|it| it.reason.to_string()).filter(|it| !it.is_empty());
                    return SocketMessage::Gone(why);
                }
                Some(Ok(_)) => (),
                Some(Err(_)) | None => return SocketMessage::Gone(None),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ServerAddress;

    #[test]
    fn a_token_goes_to_other_machines_by_tls_only() {
        for (text, expected) in [
            ("http://localhost:1", Some("http://localhost:1/acp")),
            ("ws://127.0.0.1:1/acp", Some("http://127.0.0.1:1/acp")),
            ("ws://[::1]:1", Some("http://[::1]:1/acp")),
            ("wss://box.example", Some("https://box.example/acp")),
            ("https://box.example/x/acp", Some("https://box.example/x/acp")),
            ("http://box.example", None),
            ("ws://localhost.box.example", None),
            ("box.example:1", None),
            ("file:///x", None),
        ] {
            let read = ServerAddress::new(text, "t").ok().map(|it| it.url.to_string());
            assert_eq!(read.as_deref(), expected, "{text}");
        }
    }
}
