//! Server-sent events of a connection: each message is an event with its number as the id.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame};
use tokio::sync::mpsc;

use super::{OutStream, StreamNews};

/// A comment after such a silence keeps what lies between from closing the stream.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Events that wait for the socket.
const QUEUE: usize = 16;

/// The body of the answer.
pub struct EventBody(mpsc::Receiver<Bytes>);

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|it| it.map(|it| Ok(Frame::data(it))))
    }
}

/// Streams until the client is gone or the stream is to end.
pub fn stream_events(stream: OutStream, news: mpsc::UnboundedSender<StreamNews>) -> EventBody {
    let (to, body) = mpsc::channel(QUEUE);
    tokio::spawn(async move {
        let key = stream.key;
        pump(stream, &to, &news).await;
        // Nobody hears it who is gone, too.
        _ = news.send(StreamNews::Broken(key));
    });
    EventBody(body)
}

async fn pump(mut stream: OutStream, to: &mpsc::Sender<Bytes>, news: &mpsc::UnboundedSender<StreamNews>) {
    loop {
        let piece = tokio::select! {
            biased;
            why = &mut stream.end => {
                let why = why.unwrap_or("castor is shutting down");
                _ = to.try_send(Bytes::from(format!(": {why}\n\n")));
                return;
            }
            () = to.closed() => return,
            message = stream.messages.recv() => match message {
                Some((number, text)) => Some((event(number, &text), text.len())),
                None => return,
            },
            () = tokio::time::sleep(KEEPALIVE) => None,
        };
        let (bytes, n) = piece.unwrap_or((Bytes::from_static(b": still here\n\n"), 0));
        let sent = tokio::select! {
            biased;
            _ = &mut stream.end => return,
            sent = to.send(bytes) => sent,
        };
        if sent.is_err() {
            return;
        }
        _ = news.send(StreamNews::Written(stream.key, n));
    }
}

/// A message is one line.
fn event(number: u64, text: &Bytes) -> Bytes {
    let head = format!("id: {number}\nevent: message\ndata: ");
    let mut res = BytesMut::with_capacity(head.len() + text.len() + 2);
    res.extend_from_slice(head.as_bytes());
    res.extend_from_slice(text);
    res.extend_from_slice(b"\n\n");
    res.freeze()
}
