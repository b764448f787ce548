//! The older HTTP transport of MCP: an endless event stream, and a POST for each message.

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, Response, Url, header::HeaderMap};
use rmcp::{
    RoleClient,
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};

use crate::mcp::{
    error::{SseError, StartError},
    incoming::IncomingReader,
    transport::line_limit::LineOverflow,
};
use castor_wire::sse::{Decoder, Event};

/// For the place to post to, and for each POST.
const PATIENCE: Duration = Duration::from_secs(30);
const NO_ENDPOINT: StartError = StartError::Broken("it did not say where to post to");
/// Messages that nobody has taken yet: beyond that the answer is not read on.
const QUEUE: usize = 16;

pub(in crate::mcp) struct Sse {
    client: Client,
    endpoint: Url,
    headers: HeaderMap,
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    incoming: IncomingReader,
    reader: JoinHandle<()>,
}

impl Sse {
    pub(in crate::mcp) async fn connect(
        client: Client,
        url: Url,
        headers: HeaderMap,
        overflow: LineOverflow,
    ) -> Result<Self, StartError> {
        let get = client.get(url.clone()).headers(headers.clone()).header("Accept", "text/event-stream");
        let opening = async {
            let response = get.send().await.map_err(|it| StartError::Gone(it.without_url().to_string()))?;
            if !response.status().is_success() {
                return Err(StartError::Status(response.status().as_u16()));
            }
            let mut events = Events { response, decoder: Decoder::default(), overflow };
            let ended = StartError::Broken("it ended the connection before it said where to post to");
            let first = events.next().await.ok_or(ended)?;
            let endpoint = endpoint(&url, &first)?;
            Ok((events, endpoint))
        };
        let opened = timeout(PATIENCE, opening).await;
        let (events, endpoint) = opened.map_err(|_| NO_ENDPOINT)??;
        let (sender, messages) = mpsc::channel(QUEUE);
        let incoming = IncomingReader::default();
        let reader = tokio::spawn(read(events, incoming.clone(), sender));
        Ok(Self { client, endpoint, headers, messages, incoming, reader })
    }
}

/// Where messages go. Another host than the one the user named would get the user's headers.
fn endpoint(url: &Url, event: &Event) -> Result<Url, StartError> {
    let named = std::str::from_utf8(&event.data).ok().filter(|_| &*event.name == b"endpoint");
    let joined = named.and_then(|it| url.join(it.trim()).ok()).ok_or(NO_ENDPOINT)?;
    match joined.origin() == url.origin() {
        true => Ok(joined),
        false => Err(StartError::Broken("it wants messages to be sent to another host")),
    }
}

struct Events {
    response: Response,
    decoder: Decoder,
    overflow: LineOverflow,
}

impl Events {
    /// `None` at the end, whatever brought it about.
    async fn next(&mut self) -> Option<Event> {
        loop {
            match self.decoder.next() {
                Ok(Some(event)) => return Some(event),
                Ok(None) => (),
                Err(_) => {
                    self.overflow.note();
                    return None;
                }
            }
            let piece: Bytes = self.response.chunk().await.ok()??;
            self.decoder.push(piece);
        }
    }
}

async fn read(mut events: Events, incoming: IncomingReader, sender: mpsc::Sender<RxJsonRpcMessage<RoleClient>>) {
    while let Some(event) = events.next().await {
        if !event.name.is_empty() && &*event.name != b"message" {
            continue;
        }
        for message in incoming.read(&event.data) {
            if sender.send(message).await.is_err() {
                return;
            }
        }
    }
}

impl Transport<RoleClient> for Sse {
    type Error = SseError;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), SseError>> + Send + 'static {
        self.incoming.note_sent(&item);
        let post = self.client.post(self.endpoint.clone()).headers(self.headers.clone()).json(&item);
        async move {
            let sent = timeout(PATIENCE, post.send())
                .await
                .map_err(|_| SseError::Unsent("no answer to a message".to_owned()))?;
            let response = sent.map_err(|it| SseError::Unsent(it.without_url().to_string()))?;
            match response.status() {
                it if it.is_success() => Ok(()),
                it => Err(SseError::Status(it.as_u16())),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), SseError> {
        self.reader.abort();
        Ok(())
    }
}

impl Drop for Sse {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use reqwest::Url;

    use super::{Event, endpoint};

    #[test]
    fn messages_go_to_the_host_that_the_user_named() {
        let url = Url::parse("https://a.example/sse").unwrap();
        let check = |name: &str, data: &str, expected: Option<&str>| {
            let event =
                Event { name: Bytes::copy_from_slice(name.as_bytes()), data: Bytes::copy_from_slice(data.as_bytes()) };
            let found = endpoint(&url, &event).ok().map(String::from);
            assert_eq!(found.as_deref(), expected, "{name} {data}");
        };
        check("endpoint", "/post?id=1", Some("https://a.example/post?id=1"));
        check("endpoint", "https://a.example/post", Some("https://a.example/post"));
        for other in [
            "http://169.254.169.254/latest",
            "https://[::1]/post",
            "//b.example/post",
            "http://a.example/post",
            "https://a.example:8443/post",
            "file:///etc/passwd",
        ] {
            check("endpoint", other, None);
        }
        check("message", "/post", None);
    }
}
