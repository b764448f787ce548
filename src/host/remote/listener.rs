//! The listener of `castor serve`: sockets, TLS, and how many of them there may be at once.
#![allow(clippy::disallowed_methods)]

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    ListenerQueues,
    http::{HttpDoor, SocketPlace},
    strangers::{Stranger, Strangers},
    tls,
};
use castor_base::path::AbsPath;

pub use super::request_checks::AllowedNames;

/// For the handshake, and for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// A socket by which nobody with a token has asked anything is closed after that.
const STRANGER: Duration = Duration::from_secs(5);
/// Of all sockets, one in so many may be such a one.
const STRANGERS_AMONG: usize = 2;
/// For one that has to make room.
const ROOM_TIMEOUT: Duration = Duration::from_millis(100);
/// Sockets beyond the limit that are told so at the same time; others are closed.
const REFUSED_AT_ONCE: usize = 32;
const REFUSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes of a refused request that are read.
const MAX_UNREAD: u64 = 64 << 10;
/// Of one socket by HTTP/2.
const MAX_STREAMS: u32 = 128;
const MAX_HEADERS: u32 = 16 << 10;
/// After an error of the system, as of too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 44\r\n\r\ntoo many sockets are open; try it again soon";

/// Where and how it listens.
pub struct ListenerSettings {
    pub address: SocketAddr,
    /// Files of certificate and key.
    pub tls: Option<(AbsPath, AbsPath)>,
    pub names: AllowedNames,
    pub max_sockets: usize,
}

/// A bound socket that does not accept yet.
pub struct HttpListener {
    socket: TcpListener,
    tls: Option<TlsAcceptor>,
    names: AllowedNames,
    max_sockets: usize,
}

impl HttpListener {
    /// # Errors
    /// An address that is taken, or files that hold no certificate.
    pub async fn bind(settings: ListenerSettings) -> io::Result<Self> {
        let ListenerSettings { address, tls, names, max_sockets } = settings;
        let tls = tls.map(|(certificate, key)| tls::acceptor(&certificate, &key)).transpose()?;
        let socket = TcpListener::bind(address).await;
        let socket = socket.map_err(|it| io::Error::new(it.kind(), format!("{address}: {it}")))?;
        Ok(Self { socket, tls, names, max_sockets })
    }

    /// # Errors
    /// Of the system.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts for ever.
    pub async fn run(self, queues: ListenerQueues) {
        let Self { socket, tls, names, max_sockets } = self;
        let open = Arc::new(Semaphore::new(max_sockets));
        let mut strangers = Strangers::new(max_sockets.div_ceil(STRANGERS_AMONG));
        let refused = Arc::new(Semaphore::new(REFUSED_AT_ONCE));
        let door = Arc::new(HttpDoor::new(names, queues));
        loop {
            let Ok((stream, _)) = socket.accept().await else {
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            };
            _ = stream.set_nodelay(true);
            let tls = tls.clone();
            let place = match open.clone().try_acquire_owned() {
                Err(_) if strangers.make_room() => {
                    let freed = timeout(ROOM_TIMEOUT, open.clone().acquire_owned()).await;
                    freed.ok().and_then(Result::ok)
                }
                it => it.ok(),
            };
            match place {
                Some(place) => {
                    let (door, stranger) = (door.clone(), strangers.admit());
                    tokio::spawn(async move {
                        tokio::select! {
                            () = serve_socket(stream, tls, door, (Arc::new(place), stranger.clone())) => (),
                            () = stranger.must_leave() => (),
                        }
                    });
                }
                None => {
                    if let Ok(place) = refused.clone().try_acquire_owned() {
                        tokio::spawn(async move {
                            _ = timeout(REFUSE_TIMEOUT, refuse_socket(stream, tls)).await;
                            drop(place);
                        });
                    }
                }
            }
        }
    }
}

/// Among all sockets, and among strangers.
type Places = (SocketPlace, Arc<Stranger>);

async fn serve_socket(stream: TcpStream, tls: Option<TlsAcceptor>, door: Arc<HttpDoor>, places: Places) {
    match tls {
        None => serve_http(stream, door, places).await,
        Some(it) => {
            if let Ok(Ok(stream)) = timeout(HEAD_TIMEOUT, it.accept(stream)).await {
                serve_http(stream, door, places).await;
            }
        }
    }
}

async fn serve_http(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    door: Arc<HttpDoor>,
    (place, stranger): Places,
) {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADERS)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(30));
    let asker = stranger.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (door, stranger) = (door.clone(), asker.clone());
        request.extensions_mut().insert(place.clone());
        request.extensions_mut().insert(stranger.clone());
        async move {
            let answer = door.answer(request).await;
            if matches!(answer.status().as_u16(), 101 | 200 | 202) {
                stranger.note_token();
            }
            Ok::<_, std::convert::Infallible>(answer)
        }
    });
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(serving);
    // An error is the client's, which is gone.
    let is_over = timeout(STRANGER, &mut serving).await.is_ok();
    if !is_over && stranger.is_known() {
        _ = serving.await;
    }
}

async fn refuse_socket(stream: TcpStream, tls: Option<TlsAcceptor>) -> io::Result<()> {
    match tls {
        None => say_full(stream).await,
        Some(it) => say_full(it.accept(stream).await?).await,
    }
}

/// What the client says is read, too: the system drops the answer of a socket that is closed with unread bytes.
async fn say_full(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> io::Result<()> {
    stream.write_all(FULL).await?;
    stream.shutdown().await?;
    tokio::io::copy(&mut stream.take(MAX_UNREAD), &mut tokio::io::sink()).await.map(|_| ())
}
