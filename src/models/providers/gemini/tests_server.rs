//! Gemini over a loopback connection: statuses, breaks at every byte, silence, garbage, cancelling.

use std::{sync::Arc, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};

use super::{Gemini, tests::request};
use crate::providers::{
    Generator, Sink,
    remote::{Endpoint, Remote, origin::EndpointOrigin, web_page::WEB_PAGE},
};
use castor_base::{
    fs::BoxFuture,
    model::{Chunk, Failure, FailureKind, Finish},
};
use castor_hands::http::{Http, HttpLink};

const KEY: &str = "AIzaCANARYcanary0123456789";
/// Only a guard: a test that gets here has failed.
const GUARD: Duration = Duration::from_secs(20);
const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

#[derive(Default)]
struct Got {
    sends: Vec<Vec<Chunk>>,
    first: Option<tokio::sync::oneshot::Sender<()>>,
}

impl Sink for Got {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        self.sends.push(chunks);
        if let Some(it) = self.first.take() {
            it.send(()).unwrap();
        }
        Box::pin(async {})
    }
}

impl Got {
    fn text(&self) -> String {
        let texts = self.sends.iter().flatten().filter_map(|it| match it {
            Chunk::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    fn finished(&self) -> bool {
        self.sends.iter().flatten().any(|it| matches!(it, Chunk::Finish(_)))
    }
}

struct Server(TcpListener);

impl Server {
    async fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn base(&self) -> String {
        format!("http://{}", self.0.local_addr().unwrap())
    }

    fn model(&self) -> Remote {
        model(&self.base(), HttpLink::IDLE_TIMEOUT)
    }

    /// A connection whose request was read, and the request.
    async fn accept(&self) -> (TcpStream, String) {
        let (mut it, _) = self.0.accept().await.unwrap();
        let request = read_request(&mut it).await;
        (it, request)
    }
}

async fn read_request(from: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        assert_ne!(from.read_buf(&mut bytes).await.unwrap(), 0, "half a request");
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|it| it.strip_prefix("content-length: ")).unwrap();
        if body.len() >= length.parse().unwrap() {
            return text.into_owned();
        }
    }
}

fn gemini() -> Gemini {
    Gemini { api_version: "v1beta".to_owned(), bearer: false, vertex: None }
}

fn origin() -> EndpointOrigin {
    EndpointOrigin {
        api: "the Gemini API".to_owned(),
        address: Some("GOOGLE_GEMINI_BASE_URL".to_owned()),
        key: Some("the key in GEMINI_API_KEY".to_owned()),
        change: "Set another.".to_owned(),
        credential: None,
    }
}

fn model(base: &str, idle: Duration) -> Remote {
    let endpoint =
        Endpoint { base_url: base.to_owned(), key: KEY.into(), headers: vec![], tokens: None, origin: origin() };
    Remote::new(endpoint, gemini(), Arc::new(Http::new(HttpLink { idle, ..HttpLink::default() })))
}

async fn ask(model: &Remote, got: &mut Got) -> Result<(), Failure> {
    let res = timeout(GUARD, model.generate(request("gemini-2.5-pro", "user text hi"), got)).await.expect("it hangs");
    if let Err(failure) = &res {
        assert!(!failure.message.contains(KEY), "{failure:?}");
        assert!(!failure.message.contains('\n'), "{failure:?}");
        assert!(!failure.message.is_empty());
    }
    res
}

/// Asks a server that sends `pieces`, each once the one before is on its way, and closes.
async fn answer_in(model: &Remote, server: &Server, pieces: &[&[u8]]) -> (Result<(), Failure>, Got) {
    let mut got = Got::default();
    let serve = async {
        let (mut it, _) = server.accept().await;
        it.set_nodelay(true).unwrap();
        for piece in pieces {
            if it.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let (res, ()) = tokio::join!(ask(model, &mut got), serve);
    (res, got)
}

async fn answer(bytes: impl AsRef<[u8]>) -> (Result<(), Failure>, Got) {
    let server = Server::new().await;
    answer_in(&server.model(), &server, &[bytes.as_ref()]).await
}

fn event(text: &str) -> String {
    format!("data: {{\"candidates\":[{{\"content\":{{\"parts\":[{{\"text\":\"{text}\"}}]}}}}]}}\r\n\r\n")
}

const STOP: &str = "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n";

#[tokio::test]
async fn the_request_and_the_answer() {
    let server = Server::new().await;
    let model = model(&format!("{}/sub/", server.base()), HttpLink::IDLE_TIMEOUT);
    let mut got = Got::default();
    let serve = async {
        let (mut it, request) = server.accept().await;
        it.write_all(format!("{STREAM}: hello\n\n{}data:\n\n{STOP}", event("hi")).as_bytes()).await.unwrap();
        request
    };
    let (res, request) = tokio::join!(ask(&model, &mut got), serve);
    res.unwrap();
    let line = "POST /sub/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse HTTP/1.1\r\n";
    assert!(request.starts_with(line), "{request}");
    for header in [&format!("x-goog-api-key: {KEY}"), "content-type: application/json", "user-agent: castor/"] {
        assert!(request.contains(header), "{request}");
    }
    assert!(request.ends_with(r#"{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}"#), "{request}");
    assert_eq!(got.text(), "hi");
    assert_eq!(got.sends.last().unwrap().last(), Some(&Chunk::Finish(Finish::Stop)));
}

#[tokio::test]
async fn bearer_and_headers() {
    let server = Server::new().await;
    let mut model = server.model();
    model.dialect = Box::new(Gemini { bearer: true, ..gemini() });
    model.endpoint.headers = vec![("X-Team".to_owned(), "ducks".into()), ("user-agent".to_owned(), "duck/1".into())];
    let mut got = Got::default();
    let serve = async {
        let (mut it, request) = server.accept().await;
        it.write_all(format!("{STREAM}{STOP}").as_bytes()).await.unwrap();
        request
    };
    let (res, request) = tokio::join!(ask(&model, &mut got), serve);
    res.unwrap();
    for header in [&format!("authorization: Bearer {KEY}"), "x-team: ducks", "user-agent: duck/1"] {
        assert!(request.contains(header), "{request}");
    }
    assert!(!request.contains("x-goog-api-key"), "{request}");
}

#[tokio::test]
async fn statuses() {
    let echo = format!(r#"{{"error":{{"message":"bad key {KEY} in\n line"}}}}"#);
    let limit =
        r#"{"error":{"code":429,"message":"Slow down. Please retry in 9s.","details":[{"retryDelay":"1.5s"}]}}"#;
    let table = [
        (400, "", r#"{"error":{"message":"no such field"}}"#, FailureKind::Status, "no such field", None),
        (
            401,
            "",
            echo.as_str(),
            FailureKind::Auth,
            "bad key [hidden] in line. castor sent the key in GEMINI_API_KEY, which ends in …6789. Set another.",
            None,
        ),
        (404, "", "[{\"error\":{\"message\":\"no model\"}}]", FailureKind::Status, "no model", None),
        (429, "retry-after: 7\r\n", limit, FailureKind::Status, "Slow down. Please retry in 9s.", Some(1_500)),
        (429, "retry-after: 7\r\n", "{}", FailureKind::Status, "{}", Some(7_000)),
        (503, "", "", FailureKind::Status, "The model server answered HTTP 503 Service Unavailable", None),
    ];
    for (status, headers, body, kind, message, retry_after_ms) in table {
        let (res, got) = answer(format!("HTTP/1.1 {status} X\r\n{headers}connection: close\r\n\r\n{body}")).await;
        let expected = Failure { status: Some(status), retry_after_ms, ..Failure::new(kind, message) };
        assert_eq!((res, got.sends.len()), (Err(expected), 0));
    }
    let (res, _) = answer(format!("HTTP/1.1 500 X\r\nconnection: close\r\n\r\n{}", "x".repeat(200_000))).await;
    assert_eq!(res.unwrap_err().message.len(), 2_000);
}

#[tokio::test]
async fn garbage() {
    let typed =
        |kind: &str, body: &str| format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\n\r\n{body}");
    let other = r#"{"object":"list"}"#;
    for (answered, kind, shown) in [
        (typed("application/json", other), FailureKind::Garbage, other),
        (typed("application/json", "[{\"candidates\":[{"), FailureKind::Stream, "in the middle of the answer"),
        (typed("text/html", "<html>"), FailureKind::Garbage, "answered with a web page. Check GOOGLE_GEMINI_BASE_URL."),
        (typed("text/html", ""), FailureKind::Stream, "without an answer"),
        (typed("text/event-stream", other), FailureKind::Garbage, other),
        (typed("text/plain", "no JSON {"), FailureKind::Garbage, "no JSON {"),
        (typed("text/event-stream", "data: nonsense\n\n"), FailureKind::Garbage, "nonsense"),
        (typed("text/event-stream", "data: [1]\n\n"), FailureKind::Garbage, "begins with: 1"),
        (typed("text/event-stream", ""), FailureKind::Stream, "without an answer"),
        ("not http at all\r\n\r\n".to_owned(), FailureKind::Connect, "broke before an answer could be read"),
        (String::new(), FailureKind::Connect, "broke before an answer could be read"),
    ] {
        let failure = answer(&answered).await.0.unwrap_err();
        assert_eq!(failure.kind, kind, "{answered}: {failure:?}");
        assert!(failure.message.contains(shown), "{answered}: {failure:?}");
    }
    let (res, got) =
        answer(format!("{STREAM}{}data: {{\"error\":{{\"code\":503,\"message\":\"busy\"}}}}\n\n", event("a"))).await;
    assert_eq!((res.unwrap_err().status, got.text().as_str()), (Some(503), "a"));
    // Behind the events, written plainly, with and without a good end of the connection.
    let plain = "{\n  \"error\": {\"code\": 503,\n \"message\": \"busy\"}}";
    for length in ["connection: close", "content-length: 9999"] {
        let (res, got) = answer(format!("{}{}{plain}", STREAM.replace("connection: close", length), event("a"))).await;
        assert_eq!((res.unwrap_err().status, got.text().as_str()), (Some(503), "a"), "{length}");
    }
}

/// A login page, a wrong path, a proxy that sends elsewhere: each looks like an error of the prompt otherwise.
#[tokio::test]
async fn web_pages_are_no_answers_of_the_api() {
    let page = "<!doctype html><title>Sign in to WiFi</title>";
    for (answered, shown) in [
        (format!("200 OK\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n{page}"), "(title: Sign in to WiFi)"),
        (format!("404 X\r\ncontent-type: text/html\r\nconnection: close\r\n\r\n{page}"), ", HTTP 404."),
        ("302 X\r\nlocation: http://127.0.0.1:1/\r\nconnection: close\r\n\r\n".to_owned(), "redirects to 127.0.0.1:1"),
    ] {
        let failure = answer(format!("HTTP/1.1 {answered}")).await.0.unwrap_err();
        assert_eq!((failure.kind, &failure.details.words[..]), (FailureKind::Garbage, &[WEB_PAGE.to_owned()][..]));
        assert!(failure.message.starts_with("This is not the Gemini API: http://127.0.0.1:"), "{failure:?}");
        assert!(failure.message.contains(shown), "{failure:?}");
        assert!(failure.message.ends_with(" Check GOOGLE_GEMINI_BASE_URL."), "{failure:?}");
    }
}

#[tokio::test]
async fn too_large_an_event() {
    let server = Server::new().await;
    let big = vec![b'x'; 17 << 20];
    let (res, got) =
        answer_in(&server.model(), &server, &[STREAM.as_bytes(), event("a").as_bytes(), b"data: ", &big]).await;
    let failure = res.unwrap_err();
    assert_eq!(failure.kind, FailureKind::Garbage, "{failure:?}");
    assert_eq!(got.text(), "a");
}

#[tokio::test]
async fn split_at_every_byte() {
    let server = Server::new().await;
    let model = server.model();
    let whole = format!("{}{}{STOP}", event("añ😀"), event("b"));
    for at in 0..=whole.len() {
        let (first, second) = whole.as_bytes().split_at(at);
        let (res, got) = answer_in(&model, &server, &[STREAM.as_bytes(), first, second]).await;
        res.unwrap();
        assert_eq!((got.text().as_str(), got.finished()), ("añ😀b", true), "at {at}");
    }
}

#[tokio::test]
async fn reset_at_every_byte() {
    let server = Server::new().await;
    let model = server.model();
    let whole =
        format!("{}{}{}{STOP}", STREAM.replace("connection: close", "content-length: 9999"), event("añ"), event("b"));
    for at in 0..=whole.len() {
        let mut got = Got::default();
        let serve = async {
            let (mut it, _) = server.accept().await;
            it.write_all(&whole.as_bytes()[..at]).await.unwrap();
            it.set_zero_linger().unwrap();
        };
        let (res, ()) = tokio::join!(ask(&model, &mut got), serve);
        assert!("añb".starts_with(&got.text()), "at {at}: {:?}", got.sends);
        match res {
            Ok(()) => assert!(got.finished(), "at {at}"),
            Err(it) => assert!(matches!(it.kind, FailureKind::Connect | FailureKind::Stream), "at {at}: {it:?}"),
        }
    }
}

#[tokio::test]
async fn cut_off_without_a_finish() {
    let half = event("b");
    let (res, got) = answer(format!("{STREAM}{}{}", event("a"), &half[..half.len() / 2])).await;
    assert_eq!((res, got.text().as_str(), got.finished()), (Ok(()), "a", false));
    let (res, got) = answer(format!("{STREAM}{}{}", event("a"), STOP.trim_end())).await;
    assert_eq!((res, got.text().as_str(), got.finished()), (Ok(()), "a", true));
}

#[tokio::test]
async fn silence() {
    let server = Server::new().await;
    for (sent, kind) in [
        ("", FailureKind::Connect),
        (STREAM, FailureKind::Stream),
        (&(STREAM.to_owned() + &event("a")), FailureKind::Stream),
    ] {
        let model = model(&server.base(), Duration::from_millis(400));
        let mut got = Got::default();
        let serve = async {
            let (mut it, _) = server.accept().await;
            it.write_all(sent.as_bytes()).await.unwrap();
            it
        };
        let (res, _open) = tokio::join!(ask(&model, &mut got), serve);
        let failure = res.unwrap_err();
        assert_eq!(failure.kind, kind, "{failure:?}");
        assert!(failure.message.contains("nothing") && failure.message.contains("400 ms"), "{failure:?}");
    }
}

/// A loop that takes nothing for longer than a server may be silent.
struct Slow(Got, Duration);

impl Sink for Slow {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        self.0.sends.push(chunks);
        Box::pin(tokio::time::sleep(self.1))
    }
}

#[tokio::test]
async fn our_own_slowness_is_no_silence() {
    let server = Server::new().await;
    let idle = Duration::from_millis(100);
    let model = model(&server.base(), idle);
    let mut slow = Slow(Got::default(), 2 * idle);
    let serve = async {
        let (mut it, _) = server.accept().await;
        let many = event("a").repeat(2_000);
        it.write_all(format!("{STREAM}{many}{STOP}").as_bytes()).await.unwrap();
    };
    let asking = model.generate(request("m", "user text hi"), &mut slow);
    let (res, ()) = timeout(GUARD, async { tokio::join!(asking, serve) }).await.expect("it hangs");
    assert_eq!(res, Ok(()));
    assert_eq!((slow.0.text().len(), slow.0.finished()), (2_000, true));
}

#[tokio::test]
async fn a_finished_answer_does_not_wait_for_the_end() {
    let server = Server::new().await;
    let mut got = Got::default();
    let model = server.model();
    let serve = async {
        let (mut it, _) = server.accept().await;
        it.write_all(format!("{STREAM}{}{STOP}", event("a")).as_bytes()).await.unwrap();
        it
    };
    let start = Instant::now();
    let (res, _open) = tokio::join!(ask(&model, &mut got), serve);
    assert_eq!((res, got.text().as_str()), (Ok(()), "a"));
    assert!(start.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let server = Server::new().await;
    let model = server.model();
    let body = format!("{}{STOP}", event("a"));
    let answered =
        format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let serve = async {
        let (mut it, _) = server.accept().await;
        it.write_all(answered.as_bytes()).await.unwrap();
        read_request(&mut it).await;
        it.write_all(answered.as_bytes()).await.unwrap();
    };
    let twice = async {
        for _ in 0..2 {
            ask(&model, &mut Got::default()).await.unwrap();
        }
    };
    timeout(GUARD, async { tokio::join!(serve, twice) }).await.expect("a second connection was opened");
}

/// An abort closes the connection at any time.
#[tokio::test]
async fn dropping_closes_the_connection() {
    let server = Server::new().await;
    for sent in ["", STREAM, &(STREAM.to_owned() + &event("a"))] {
        let model = server.model();
        let (first, seen) = tokio::sync::oneshot::channel();
        let mut got = Got { first: Some(first), ..Got::default() };
        let asking = tokio::spawn(async move { ask(&model, &mut got).await });
        let (mut it, _) = server.accept().await;
        it.write_all(sent.as_bytes()).await.unwrap();
        if sent.contains("data") {
            timeout(GUARD, seen).await.unwrap().unwrap();
        }
        asking.abort();
        let start = Instant::now();
        let end = timeout(GUARD, it.read_u8()).await.expect("the connection stays open");
        assert!(end.is_err());
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
    }
}

#[tokio::test]
async fn unreachable_server_and_bad_settings_fail_cleanly() {
    let server = Server::new().await;
    let base = server.base();
    drop(server);
    let secret = base.replace("http://", &format!("http://user:{KEY}@"));
    let failure = ask(&model(&format!("{secret}/{KEY}?key={KEY}"), HttpLink::IDLE_TIMEOUT), &mut Got::default())
        .await
        .unwrap_err();
    assert_eq!(failure.kind, FailureKind::Connect);
    let host = base.trim_start_matches("http://");
    assert!(failure.message.starts_with(&format!("Could not connect to {host}: Connection refused")), "{failure:?}");
    for base in ["", "localhost:80", "ftp://x", "mailto:x"] {
        let failure = ask(&model(base, HttpLink::IDLE_TIMEOUT), &mut Got::default()).await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Auth, "{base}: {failure:?}");
    }
    let mut broken = model(&base, HttpLink::IDLE_TIMEOUT);
    broken.endpoint.key = format!("{KEY}\n").into();
    assert_eq!(ask(&broken, &mut Got::default()).await.unwrap_err().kind, FailureKind::Auth);
    let mut broken = model(&base, HttpLink::IDLE_TIMEOUT);
    broken.endpoint.headers = vec![("a b".to_owned(), KEY.into())];
    assert_eq!(ask(&broken, &mut Got::default()).await.unwrap_err().kind, FailureKind::Auth);
}
