//! The server's side of a WebSocket: messages out as text frames, messages in, pings, and an end with a reason.

use std::{io, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt, stream::SplitSink, stream::SplitStream};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, interval, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message, Utf8Bytes,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

use super::{
    Arrival, ListenerQueues, MAX_MESSAGE, OutStream, StreamKey, StreamNews,
    unfinished::{CountedSocket, SocketBytes},
};

const PING: Duration = Duration::from_secs(20);
/// A client that has not said anything for so long, not even a pong, is gone.
const SILENCE: Duration = Duration::from_secs(70);
/// For the last word to one that may read it late, or never.
const FAREWELL: Duration = Duration::from_secs(10);
/// For what one that was refused is still sending.
const LINGER: Duration = Duration::from_secs(2);
/// Messages that are written at once.
const BATCH: usize = 64;
/// Bytes that were written before that is said: most messages are small, and nobody waits for the news of one.
const REPORTED: usize = 16 << 10;
/// Of each socket, for as long as it is open: there may be thousands, and most are silent.
const BUFFER: usize = 8 << 10;
const TOO_MUCH: &str = "too many large messages are on their way to this server: send yours again in a while";

type Socket = WebSocketStream<CountedSocket<TokioIo<Upgraded>>>;

/// The half that reads, and how much of a message it holds.
type Reader<'a> = (&'a mut SplitStream<Socket>, Arc<SocketBytes>);

/// What a frame may have: checked before its bytes are waited for.
pub fn limits() -> WebSocketConfig {
    let res = WebSocketConfig::default().max_message_size(Some(MAX_MESSAGE)).max_frame_size(Some(MAX_MESSAGE));
    res.read_buffer_size(BUFFER).write_buffer_size(BUFFER)
}

pub async fn serve(upgraded: OnUpgrade, stream: OutStream, queues: ListenerQueues, bytes: Arc<SocketBytes>) {
    let key = stream.key;
    let mut news = StreamNews::Broken(key);
    if let Ok(upgraded) = upgraded.await {
        let socket = CountedSocket::new(TokioIo::new(upgraded), bytes.clone());
        let socket = WebSocketStream::from_raw_socket(socket, Role::Server, Some(limits())).await;
        let (mut to, mut from) = socket.split();
        let (to_say, heard) = mpsc::channel(1);
        let OutStream { messages, end, .. } = stream;
        // Reading goes on while a write waits: else both sides could wait for each other.
        let note_written = |n| _ = queues.news.send(StreamNews::Written(key, n));
        let (has_left, is_refused) = tokio::select! {
            it = read((&mut from, bytes), (key, &queues), &to_say) => (it, false),
            it = write(&mut to, messages, (end, heard), note_written) => (false, it),
        };
        if has_left {
            news = StreamNews::Left(key);
        }
        if is_refused && let Ok(mut socket) = to.reunite(from) {
            // The system drops the last word of a socket that is closed with unread bytes.
            let mut unread = tokio::io::sink();
            _ = timeout(LINGER, tokio::io::copy(socket.get_mut().inner_mut(), &mut unread)).await;
        }
    }
    _ = queues.news.send(news);
}

/// Reads to the end. Whether the client said that it leaves.
async fn read(
    (from, bytes): Reader<'_>,
    (stream, queues): (StreamKey, &ListenerQueues),
    to_say: &mpsc::Sender<CloseFrame>,
) -> bool {
    loop {
        let Ok(next) = timeout(SILENCE, from.next()).await else { return false };
        let text = match next {
            Some(Ok(Message::Text(it))) => Bytes::from(it),
            Some(Ok(Message::Pong(payload))) => {
                bytes.end_control_frame(payload.len());
                if let Ok(number) = payload.as_ref().try_into().map(u64::from_be_bytes) {
                    _ = queues.news.send(StreamNews::Heard(stream, number));
                }
                continue;
            }
            Some(Ok(Message::Ping(payload))) => {
                bytes.end_control_frame(payload.len());
                continue;
            }
            Some(Ok(Message::Binary(_) | Message::Frame(_))) => {
                bytes.end_message();
                continue;
            }
            Some(Err(Error::Capacity(_))) => {
                return say_goodbye(to_say, CloseCode::Size, "a message has at most 32 MiB").await;
            }
            Some(Err(Error::Io(it))) if it.kind() == io::ErrorKind::QuotaExceeded => {
                return say_goodbye(to_say, CloseCode::Again, TOO_MUCH).await;
            }
            Some(Ok(Message::Close(Some(it)))) if it.code == CloseCode::Normal => return true,
            Some(Ok(Message::Close(_)) | Err(_)) | None => return false,
        };
        if queues.arrivals.send(Arrival::Message { stream, text }).await.is_err() {
            return false;
        }
        bytes.end_message();
    }
}

/// The other half says so, and ends.
async fn say_goodbye(to_say: &mpsc::Sender<CloseFrame>, code: CloseCode, why: &'static str) -> bool {
    _ = to_say.send(CloseFrame { code, reason: Utf8Bytes::from_static(why) }).await;
    std::future::pending().await
}

/// Why it is to end: as the loop says, and as the reader found.
type Endings = (oneshot::Receiver<&'static str>, mpsc::Receiver<CloseFrame>);

/// Tells whether the client was refused for what it sends.
async fn write(
    to: &mut SplitSink<Socket, Message>,
    mut messages: mpsc::UnboundedReceiver<(u64, Bytes)>,
    (mut end, mut heard): Endings,
    note_written: impl Fn(usize),
) -> bool {
    let mut pings = interval(PING);
    pings.reset_at(Instant::now() + PING);
    let (mut batch, mut last, mut n_written) = (Vec::new(), 0u64, 0);
    let (frame, is_refused) = loop {
        batch.clear();
        let writing = async {
            tokio::select! {
                n = messages.recv_many(&mut batch, BATCH) => if n == 0 { return Ok(None) },
                // The answer comes behind all that was written before: the client has that.
                _ = pings.tick() => {
                    to.send(Message::Ping(last.to_be_bytes().to_vec().into())).await?;
                    return Ok(Some(0));
                }
            }
            let n = batch.iter().map(|it| it.1.len()).sum();
            for (number, text) in batch.drain(..) {
                last = number;
                // It was JSON when it came.
                if let Ok(text) = Utf8Bytes::try_from(text) {
                    to.feed(Message::Text(text)).await?;
                }
            }
            to.flush().await?;
            Ok::<_, Error>(Some(n))
        };
        tokio::select! {
            biased;
            why = &mut end => {
                let reason = Utf8Bytes::from_static(why.unwrap_or("castor is shutting down"));
                break (CloseFrame { code: CloseCode::Again, reason }, false);
            }
            Some(frame) = heard.recv() => break (frame, true),
            written = writing => match written {
                Ok(Some(n)) => {
                    n_written += n;
                    if n_written >= REPORTED {
                        note_written(std::mem::take(&mut n_written));
                    }
                }
                Ok(None) | Err(_) => return false,
            },
        }
    };
    timeout(FAREWELL, to.send(Message::Close(Some(frame)))).await.is_ok() && is_refused
}
