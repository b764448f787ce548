//! HTTP at `/acp`: POST for messages, GET for streams and WebSockets, DELETE for the end, each refusal with its reason.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode, Uri,
    body::Incoming,
    header::{self, HeaderName, HeaderValue},
};
use secrecy::SecretString;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, oneshot},
    time::timeout,
};

use super::{
    Arrival, CONNECTION_ID, HttpRefusal, LAST_EVENT_ID, ListenerQueues, MAX_MESSAGE, OutStream, PROTOCOL, PostAnswer,
    RECEIVED, SESSION_ID, StreamWay, TOKEN_PROTOCOL, TokenBearer, handshake,
    request_checks::{AllowedNames, check_place, check_post, has_word, is_ahp, text, too_large, words},
    sse::{self, EventBody},
    strangers::Stranger,
    unfinished::{SocketBytes, UnfinishedBytes},
    websocket,
};

const ALLOWED_HEADERS: &str = "authorization, content-type, acp-connection-id, acp-session-id, last-event-id";
const EXPOSED_HEADERS: &str = "acp-connection-id, castor-received, retry-after";

const PROTOCOLS: &str = "sec-websocket-protocol";

/// A body of more bytes is a large one.
const SMALL_BODY: usize = 64 << 10;
/// Large bodies that are read at the same time.
const LARGE_BODIES: usize = 16;
const BODY_TIMEOUT: Duration = Duration::from_secs(60);

/// What a socket has of those that may be open at once, until the last that holds it is gone.
pub type SocketPlace = Arc<OwnedSemaphorePermit>;
/// Of the query, as clients of AHP name it: the first is VS Code's.
const TOKEN_PARAMS: &[&str] = &["tkn", "token"];

type Body = Either<Full<Bytes>, EventBody>;

/// What answers the requests of all sockets.
pub struct HttpDoor {
    names: AllowedNames,
    queues: ListenerQueues,
    large_bodies: Semaphore,
    unfinished: Arc<UnfinishedBytes>,
}

impl HttpDoor {
    pub fn new(names: AllowedNames, queues: ListenerQueues) -> Self {
        Self { names, queues, large_bodies: Semaphore::new(LARGE_BODIES), unfinished: Arc::default() }
    }

    pub async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let origin = request.headers().get(header::ORIGIN).cloned();
        let mut response = match self.try_answer(request).await {
            Ok(it) => it,
            Err(refusal) => refused(&refusal),
        };
        // One that is not allowed was refused, and its page need not read why.
        if let Some(origin) = origin.filter(|_| response.status() != StatusCode::FORBIDDEN) {
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED_HEADERS));
            headers.insert(header::VARY, HeaderValue::from_static("origin"));
        }
        response
    }

    async fn try_answer(&self, request: Request<Incoming>) -> Result<Response<Body>, HttpRefusal> {
        self.names.check(request.uri(), request.headers())?;
        check_place(request.method(), request.uri())?;
        match *request.method() {
            Method::OPTIONS => Ok(preflight()),
            Method::POST => self.post(request).await,
            Method::DELETE => self.delete(request.headers()).await,
            _ if has_word(request.headers(), "upgrade", "websocket") => self.upgrade(request).await,
            _ if is_ahp(request.uri()) => Err(HttpRefusal::new(426, "open a WebSocket")),
            _ => self.events(request.headers()).await,
        }
    }

    async fn post(&self, request: Request<Incoming>) -> Result<Response<Body>, HttpRefusal> {
        check_post(request.headers())?;
        let caller = caller(request.headers());
        // Whoever has no token that counts sends nothing more.
        let known = caller.clone();
        self.ask(|reply| Arrival::Admit { caller: known, reply }).await?;
        // Its body may take longer than a stranger has.
        if let Some(it) = request.extensions().get::<Arc<Stranger>>() {
            it.note_token();
        }
        let body = self.read_body(request).await?;
        match self.ask(|reply| Arrival::Post { caller, body, reply }).await? {
            PostAnswer::Accepted => Ok(empty(StatusCode::ACCEPTED)),
            PostAnswer::Initialized { connection, body } => {
                let mut res = Response::new(Either::Left(Full::new(body)));
                set(&mut res, "content-type", "application/json");
                set(&mut res, CONNECTION_ID, &connection);
                Ok(res)
            }
        }
    }

    /// Large ones are read a few at a time: they lie in memory.
    async fn read_body(&self, request: Request<Incoming>) -> Result<Bytes, HttpRefusal> {
        let length = text(request.headers(), "content-length").and_then(|it| it.parse::<usize>().ok());
        let is_small = length.is_some_and(|it| it <= SMALL_BODY);
        let late = || HttpRefusal::new(408, "the message did not come in time");
        let read = async {
            let _place = if is_small { None } else { self.large_bodies.acquire().await.ok() };
            Limited::new(request.into_body(), MAX_MESSAGE).collect().await
        };
        let body = timeout(BODY_TIMEOUT, read).await.map_err(|_| late())?;
        Ok(body.map_err(|_| too_large())?.to_bytes())
    }

    async fn delete(&self, headers: &HeaderMap) -> Result<Response<Body>, HttpRefusal> {
        let caller = caller(headers);
        self.ask(|reply| Arrival::Delete { caller, reply }).await?;
        Ok(empty(StatusCode::ACCEPTED))
    }

    async fn events(&self, headers: &HeaderMap) -> Result<Response<Body>, HttpRefusal> {
        let accept = text(headers, "accept").unwrap_or_default().to_ascii_lowercase();
        if !accept.contains("text/event-stream") {
            return Err(HttpRefusal::new(406, "a GET is answered by text/event-stream, or upgrades to a WebSocket"));
        }
        let stream = self.listen(headers, StreamWay::Events).await?;
        let (connection, received) = (stream.connection.clone(), stream.received);
        let body = sse::stream_events(stream, self.queues.news.clone());
        let mut res = Response::new(Either::Right(body));
        set(&mut res, "content-type", "text/event-stream");
        set(&mut res, "cache-control", "no-cache");
        set(&mut res, CONNECTION_ID, &connection);
        set(&mut res, RECEIVED, &received.to_string());
        Ok(res)
    }

    async fn upgrade(&self, mut request: Request<Incoming>) -> Result<Response<Body>, HttpRefusal> {
        let headers = request.headers();
        let key = text(headers, "sec-websocket-key").map(str::to_owned);
        let Some(key) = key.filter(|_| text(headers, "sec-websocket-version") == Some("13")) else {
            return Err(HttpRefusal::new(400, "a WebSocket begins with Sec-WebSocket-Key, and is of version 13"));
        };
        let speaks_acp = has_word(headers, PROTOCOLS, PROTOCOL);
        if !speaks_acp && protocol_token(headers).is_some() {
            return Err(HttpRefusal::new(400, "a token as a subprotocol comes beside another one: offer acp first"));
        }
        let stream = match is_ahp(request.uri()) {
            true => self.listen_as_host(request.uri(), headers).await?,
            false => self.listen(headers, StreamWay::WebSocket).await?,
        };
        let mut res = empty(StatusCode::SWITCHING_PROTOCOLS);
        if speaks_acp {
            set(&mut res, PROTOCOLS, PROTOCOL);
        }
        set(&mut res, "connection", "upgrade");
        set(&mut res, "upgrade", "websocket");
        set(&mut res, "sec-websocket-accept", &handshake::accept_key(&key));
        set(&mut res, CONNECTION_ID, &stream.connection);
        set(&mut res, RECEIVED, &stream.received.to_string());
        // HTTP is over with this answer, and the socket is not.
        let place = request.extensions_mut().remove::<SocketPlace>();
        let bytes = SocketBytes::new(self.unfinished.clone());
        let socket = websocket::serve(hyper::upgrade::on(&mut request), stream, self.queues.clone(), bytes);
        tokio::spawn(async move {
            socket.await;
            drop(place);
        });
        Ok(res)
    }

    async fn listen(&self, headers: &HeaderMap, way: StreamWay) -> Result<OutStream, HttpRefusal> {
        let after = text(headers, LAST_EVENT_ID).map(|it| {
            it.parse()
                .map_err(|_| HttpRefusal::new(400, "Last-Event-ID is the number of the last message that you have"))
        });
        let (mut caller, after) = (caller(headers), after.transpose()?);
        if way == StreamWay::WebSocket {
            caller.token = caller.token.or_else(|| protocol_token(headers));
        }
        self.ask(|reply| Arrival::Listen { caller, way, after, reply }).await
    }

    /// Clients of AHP cannot send headers, as they are pages too: their token may be in the query.
    async fn listen_as_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<OutStream, HttpRefusal> {
        let token = caller(headers).token.or_else(|| query_token(uri));
        let caller = TokenBearer { token, ..TokenBearer::default() };
        let way = StreamWay::HostSocket;
        self.ask(|reply| Arrival::Listen { caller, way, after: None, reply }).await
    }

    async fn ask<T>(
        &self,
        arrival: impl FnOnce(oneshot::Sender<Result<T, HttpRefusal>>) -> Arrival,
    ) -> Result<T, HttpRefusal> {
        let (reply, answer) = oneshot::channel();
        let ending = || HttpRefusal::retry(503, "castor is shutting down", 5);
        self.queues.arrivals.send(arrival(reply)).await.map_err(|_| ending())?;
        answer.await.unwrap_or_else(|_| Err(ending()))
    }
}

fn query_token(uri: &Uri) -> Option<SecretString> {
    let pairs = uri.query()?.split('&').filter_map(|it| it.split_once('='));
    pairs.into_iter().find(|it| TOKEN_PARAMS.contains(&it.0)).map(|it| it.1.into())
}

fn caller(headers: &HeaderMap) -> TokenBearer {
    let token = text(headers, "authorization").and_then(|it| it.split_once(' '));
    let token = token.filter(|it| it.0.eq_ignore_ascii_case("bearer")).map(|it| it.1.trim().into());
    let named = |name: &str| text(headers, name).map(str::to_owned);
    TokenBearer { token, connection: named(CONNECTION_ID), session: named(SESSION_ID) }
}

/// The token of a page, among the subprotocols that it offers.
fn protocol_token(headers: &HeaderMap) -> Option<SecretString> {
    words(headers, PROTOCOLS).find_map(|it| it.strip_prefix(TOKEN_PROTOCOL)).map(SecretString::from)
}

fn refused(it: &HttpRefusal) -> Response<Body> {
    let mut res = Response::new(Either::Left(Full::new(Bytes::from(format!("{}\n", it.why)))));
    *res.status_mut() = StatusCode::from_u16(it.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    set(&mut res, "content-type", "text/plain; charset=utf-8");
    if let Some(seconds) = it.retry_after {
        set(&mut res, "retry-after", &seconds.to_string());
    }
    if it.status == 401 {
        set(&mut res, "www-authenticate", "Bearer");
    }
    res
}

/// For pages of an origin that is allowed.
fn preflight() -> Response<Body> {
    let mut res = empty(StatusCode::NO_CONTENT);
    set(&mut res, "access-control-allow-methods", "GET, POST, DELETE");
    set(&mut res, "access-control-allow-headers", ALLOWED_HEADERS);
    res
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut res = Response::new(Either::Left(Full::default()));
    *res.status_mut() = status;
    res
}

fn set(response: &mut Response<Body>, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        response.headers_mut().insert(name, value);
    }
}
