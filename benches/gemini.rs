//! What an event of Gemini's stream costs: decoded alone, and over a loopback connection. Prints medians, asserts none.

mod timing;

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};

use castor_base::{
    content::Part,
    fs::BoxFuture,
    history::{Role, Turn, TurnPart},
    model::{Chunk, ModelParams, ModelRequest},
};
use castor_hands::http::Http;
use castor_models::providers::{
    Generator, Sink,
    gemini::{Gemini, GeminiDecoder},
    remote::{Decode, Endpoint, Remote, origin::EndpointOrigin},
};

const N_EVENTS: usize = 100_000;
const N_ROUNDS: usize = 11;
const EVENT: &str = r#"{"candidates":[{"content":{"parts":[{"text":"twenty bytes of text"}]}}]}"#;
const STOP: &str = r#"{"candidates":[{"finishReason":"STOP"}]}"#;
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let decoding = median_ns(|| _ = decode());
    println!("{decoding:>6} ns per event  decoded alone, {} bytes each", EVENT.len());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    for (name, answer) in [("plain", plain()), ("chunked", chunked())] {
        let base_url = serve(answer)?;
        let endpoint = Endpoint {
            base_url,
            key: "key".into(),
            headers: Vec::new(),
            tokens: None,
            origin: EndpointOrigin::default(),
        };
        let dialect = Gemini { api_version: "v1beta".to_owned(), bearer: false, vertex: None };
        let model = Arc::new(Remote::new(endpoint, dialect, Arc::new(Http::default())));
        let mut n_sends = 0;
        let streaming = median_ns(|| {
            // A task of the runtime, as in the program: the main thread is none of its workers.
            let model = model.clone();
            let asking = runtime.spawn(async move {
                let mut count = Count::default();
                model.generate(request(), &mut count).await.map(|()| count)
            });
            match runtime.block_on(asking) {
                Ok(Ok(Count { chunks, sends })) if chunks > N_EVENTS => n_sends = sends,
                other => panic!("the stream is broken: {:?}", other.map(|it| it.map(|it| it.chunks))),
            }
        });
        let ratio = streaming as f64 / decoding.max(1) as f64;
        println!("{streaming:>6} ns per event  streamed, {name}: {ratio:.1} times decoding, {n_sends} sends");
    }
    Ok(())
}

fn median_ns(run: impl FnMut()) -> usize {
    let all: Vec<Duration> = timing::times(N_ROUNDS, run);
    timing::percentile(&all, 50).as_nanos() as usize / N_EVENTS
}

fn decode() -> usize {
    let (mut decoder, mut out) = (GeminiDecoder::default(), Vec::with_capacity(N_EVENTS));
    for _ in 0..N_EVENTS {
        decoder.event(EVENT.as_bytes(), &mut out).unwrap_or_else(|it| panic!("{it:?}"));
    }
    out.len()
}

#[derive(Default)]
struct Count {
    chunks: usize,
    sends: usize,
}

impl Sink for Count {
    fn send(&mut self, chunks: Vec<Chunk>) -> BoxFuture<'_, ()> {
        self.chunks += chunks.len();
        self.sends += 1;
        Box::pin(async {})
    }
}

fn request() -> ModelRequest {
    let mut turn = Turn::new(Role::User);
    turn.parts_mut().push(TurnPart::Content(Part::text("hi")));
    ModelRequest {
        model: "gemini-2.5-pro".into(),
        system: "".into(),
        contents: vec![Arc::new(turn)],
        tools: [].into(),
        params: ModelParams::default(),
        traits: Default::default(),
    }
}

fn line(data: &str) -> String {
    format!("data: {data}\r\n\r\n")
}

fn plain() -> Vec<u8> {
    [HEAD, "connection: close\r\n\r\n", &line(EVENT).repeat(N_EVENTS), &line(STOP)].concat().into()
}

fn chunked() -> Vec<u8> {
    let piece = |it: &str| format!("{:x}\r\n{it}\r\n", it.len());
    let events = piece(&line(EVENT)).repeat(N_EVENTS);
    [HEAD, "connection: close\r\ntransfer-encoding: chunked\r\n\r\n", &events, &piece(&line(STOP)), &piece("")]
        .concat()
        .into()
}

/// Answers every request with `answer`, for as long as the program runs.
fn serve(answer: Vec<u8>) -> std::io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let base = format!("http://{}", listener.local_addr()?);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever asked hears of it: the answer breaks off.
            _ = reply(stream, &answer);
        }
    });
    Ok(base)
}

fn reply(stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    let mut reader = BufReader::new(&stream);
    let (mut length, mut line) = (0, String::new());
    while reader.read_line(&mut line)? > 2 {
        if let Some(it) = line.to_lowercase().strip_prefix("content-length:") {
            length = it.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    std::io::copy(&mut reader.take(length), &mut std::io::sink())?;
    (&stream).write_all(answer)
}
