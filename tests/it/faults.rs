//! A service that fails in every way, in each dialect, from the editor's side: each prompt ends once, well or with a clear
//! error, and the next one works.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    thread,
};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, WATCHDOG};

/// What the service does with one request.
enum Say {
    /// Says this and closes.
    Bytes(Vec<u8>),
    /// The same, a byte at a time.
    Drip(Vec<u8>),
    /// The same, and resets the connection instead of closing it.
    Reset(Vec<u8>),
    /// Says this and nothing more, until the other side goes.
    Hang(Vec<u8>),
}

/// How a prompt ends.
#[derive(Clone, Copy)]
enum Want {
    Text,
    /// Code, and a part of the message.
    Error(i64, &'static str),
    Cancelled,
    /// Whatever it is, it is one of the above.
    Any,
}

struct Dialect {
    name: &'static str,
    /// The stream of an answer that is `añ`.
    answer: &'static str,
    /// The error body for a status, the provider's word and a message.
    error: fn(u16, &str, &str) -> Value,
    /// Status, word and message of a quota that is used up.
    spent: (u16, &'static str, &'static str),
}

const GEMINI: Dialect = Dialect {
    name: "gemini",
    answer: "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"añ\"}]}}]}\n\n\
             data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
    error: |status, word, message| json!({"error": {"code": status, "message": message, "status": word}}),
    spent: (429, "RESOURCE_EXHAUSTED", "Quota exceeded, limit: 0"),
};

const DIALECTS: &[Dialect] = &[
    GEMINI,
    // The same with another address, key and form of contents.
    Dialect { name: "vertex", ..GEMINI },
    Dialect {
        name: "chat",
        answer: "data: {\"choices\":[{\"delta\":{\"content\":\"añ\"}}]}\n\n\
                 data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        error: |_, word, message| json!({"error": {"message": message, "type": word, "code": word}}),
        spent: (429, "insufficient_quota", "No money left"),
    },
    Dialect {
        name: "responses",
        answer: "data: {\"type\":\"response.output_text.delta\",\"delta\":\"añ\"}\n\n\
                 data: {\"type\":\"response.completed\",\"response\":{}}\n\n",
        error: |_, word, message| json!({"error": {"message": message, "type": word, "code": word}}),
        spent: (429, "insufficient_quota", "No money left"),
    },
    Dialect {
        name: "anthropic",
        answer: "data: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":\"añ\"}}\n\n\
                 data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n\
                 data: {\"type\":\"message_stop\"}\n\n",
        error: |_, word, message| json!({"type": "error", "error": {"type": word, "message": message}}),
        spent: (400, "invalid_request_error", "Your credit balance is too low"),
    },
];

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// More is announced than comes: the end is no end.
const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: 99999\r\n\r\n";

/// castor with one session, and the service that it asks.
struct Agent {
    dialect: &'static Dialect,
    client: Client,
    /// Its settings are read again and again.
    _sandbox: Sandbox,
    session: String,
    says: Sender<Say>,
    /// The service has a request, and will not answer it.
    hangs: Receiver<()>,
    /// Requests that nothing was prepared for.
    unexpected: Arc<AtomicUsize>,
    n_prompts: u64,
}

impl Agent {
    fn start(dialect: &'static Dialect, general: &Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (says, to_say) = mpsc::channel();
        let unexpected = Arc::new(AtomicUsize::new(0));
        let count = unexpected.clone();
        let (hang, hangs) = mpsc::channel();
        thread::spawn(move || serve(&listener, &to_say, &hang, &count));
        let mut sandbox = Sandbox::new();
        let kind = if dialect.name == "chat" { "openai" } else { dialect.name };
        let provider = json!({"type": kind, "baseUrl": url});
        let is_gemini = ["gemini", "vertex"].contains(&dialect.name);
        let settings = match is_gemini {
            true => json!({"general": general}),
            false => json!({"general": general, "providers": {"local": provider}}),
        };
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        match dialect.name {
            "vertex" => sandbox.env.extend([
                ("GOOGLE_GENAI_USE_VERTEXAI".into(), "true".into()),
                ("GOOGLE_API_KEY".into(), "CANARY-key".into()),
                ("GOOGLE_VERTEX_BASE_URL".into(), url),
            ]),
            _ => sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), url)),
        }
        // The last one of its chain: nobody takes over.
        let model = if is_gemini { "gemini-3.5-flash-lite" } else { "local/m" };
        sandbox.args.extend(["--model", model].map(Into::into));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { dialect, client, _sandbox: sandbox, session, says, hangs, unexpected, n_prompts: 0 }
    }

    /// A prompt, while the service says these. What was shown, and the answer.
    fn prompt(&mut self, name: &str, says: Vec<Say>) -> (String, Value) {
        let hangs = says.iter().any(|it| matches!(it, Say::Hang(_)));
        says.into_iter().for_each(|it| self.says.send(it).unwrap());
        self.n_prompts += 1;
        let id = json!(format!("p{}", self.n_prompts));
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": "go"}]});
        self.client.request_as(id.clone(), "session/prompt", params);
        if hangs {
            self.hangs.recv_timeout(WATCHDOG).unwrap();
            self.client.notify("session/cancel", json!({"sessionId": self.session}));
        }
        let mut shown = String::new();
        loop {
            let message = self.client.next().unwrap_or_else(|it| panic!("{}, {name}: {it}", self.dialect.name));
            let message = message.expect("the agent ended");
            if message["id"] == id {
                assert_eq!(
                    self.unexpected.load(Ordering::Relaxed),
                    0,
                    "{}, {name}: asked too often",
                    self.dialect.name
                );
                return (shown, message);
            }
            if message["method"] == "session/request_permission" {
                self.client.send(&json!({"jsonrpc": "2.0", "id": message["id"],
                    "result": {"outcome": {"outcome": "selected", "optionId": "stop"}}}));
            }
            if message["params"]["update"]["sessionUpdate"] == "agent_message_chunk" {
                shown += message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
            }
        }
    }

    fn ends(&mut self, name: &str, says: Vec<Say>, want: Want) {
        let (shown, answer) = self.prompt(name, says);
        let at = format!("{}, {name}: {shown:?} {answer}", self.dialect.name);
        let (stop, error) = (answer["result"]["stopReason"].as_str(), &answer["error"]);
        let message = error["message"].as_str().unwrap_or_default();
        match want {
            Want::Text => assert!(stop == Some("end_turn") && shown.ends_with("añ"), "{at}"),
            Want::Cancelled => assert_eq!(stop, Some("cancelled"), "{at}"),
            Want::Error(code, part) => assert!(error["code"] == code && message.contains(part), "{at}"),
            Want::Any => assert!(stop.is_some() || message.len() > 20, "{at}"),
        }
        // Whatever it was: the error is for people, and the session lives.
        assert!(!message.contains('\n'), "{at}");
    }

    fn works(&mut self, name: &str) {
        let answer = stream(self.dialect.answer);
        self.ends(&format!("the prompt after {name}"), vec![answer], Want::Text);
    }
}

fn serve(listener: &TcpListener, to_say: &Receiver<Say>, hang: &Sender<()>, unexpected: &AtomicUsize) {
    for connection in listener.incoming() {
        let mut connection = connection.unwrap();
        connection.set_nodelay(true).unwrap();
        // Who has gone needs no answer: errors of writing are the other side's choice.
        match to_say.try_recv() {
            Err(_) => {
                unexpected.fetch_add(1, Ordering::Relaxed);
                _ = connection.write_all(b"HTTP/1.1 400 X\r\nconnection: close\r\n\r\n");
            }
            Ok(Say::Bytes(bytes)) => {
                read(&mut connection);
                _ = connection.write_all(&bytes);
            }
            Ok(Say::Drip(bytes)) => {
                read(&mut connection);
                bytes.chunks(1).for_each(|it| _ = connection.write_all(it));
            }
            Ok(Say::Reset(bytes)) => {
                // What was not read makes a reset of the close.
                _ = connection.peek(&mut [0; 16]);
                _ = connection.write_all(&bytes);
            }
            Ok(Say::Hang(bytes)) => {
                read(&mut connection);
                _ = connection.write_all(&bytes);
                _ = hang.send(());
                while connection.read(&mut [0; 64]).is_ok_and(|it| it > 0) {}
            }
        }
    }
}

/// The whole request.
fn read(connection: &mut TcpStream) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    loop {
        let Ok(n @ 1..) = connection.read(&mut buffer) else { return };
        bytes.extend_from_slice(&buffer[..n]);
        let Some(head) = bytes.windows(4).position(|it| it == b"\r\n\r\n") else { continue };
        let text = String::from_utf8_lossy(&bytes[..head]).to_lowercase();
        let length = text.lines().find_map(|it| it.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
        if bytes.len() >= head + 4 + length.unwrap_or_default() {
            return;
        }
    }
}

fn stream(events: &str) -> Say {
    Say::Bytes(format!("{STREAM}{events}").into_bytes())
}

fn status(status: u16, headers: &str, body: &str) -> Say {
    let length = body.len();
    let head = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n");
    Say::Bytes(format!("{head}{body}").into_bytes())
}

/// One attempt each: nothing is waited for.
fn one_attempt(dialect: &'static Dialect) {
    let mut agent = Agent::start(dialect, &json!({"maxAttempts": 1, "retryFetchErrors": false}));
    let error_of = dialect.error;
    let error = |code, word, message| error_of(code, word, message).to_string();
    let nested = json!({"error": {"message": error(429, "x", "Deep down")}});
    let (spent, word, message) = dialect.spent;
    let (first, rest) = dialect.answer.split_at(dialect.answer.find("\n\n").unwrap() + 2);
    let in_half = dialect.answer.find('ñ').unwrap() + 1;
    let half = dialect.answer.as_bytes()[..in_half].to_vec();
    let with = |head: &str, more: &[u8]| [head.as_bytes(), more].concat();
    let big = [STREAM.as_bytes(), b"data: ", &vec![b'x'; 64 << 20]].concat();
    let in_stream = match dialect.name {
        "responses" => r#"{"type":"error","code":"server_error","message":"Oops"}"#.to_owned(),
        _ => error(500, "server_error", "Oops"),
    };
    use Want::{Any, Cancelled, Error, Text};
    let table: Vec<(&str, Say, Want)> = vec![
        ("429", status(429, "", &error(429, "rate_limit_error", "Slow down")), Error(-32603, "Slow down")),
        ("429 without a body", status(429, "", ""), Error(-32603, "429")),
        ("429 with a page", status(429, "", "<html>no</html>"), Error(-32603, "429")),
        ("429 with half a body", status(429, "", "{\"error\":{\"mess"), Error(-32603, "mess")),
        (
            "429 as a list",
            status(429, "", &json!([error_of(429, "x", "In a list")]).to_string()),
            Error(-32603, "In a list"),
        ),
        ("429 as text", status(429, "content-type: text/plain\r\n", "Too many, it says"), Error(-32603, "Too many")),
        ("429 in a text", status(429, "", &nested.to_string()), Error(-32603, "Deep down")),
        ("a used up quota", status(spent, "", &error(spent, word, message)), Error(-32603, message)),
        ("429 for an hour", status(429, "retry-after: 3600\r\n", &error(429, "x", "Later")), Error(-32603, "60 min")),
        ("500", status(500, "", &error(500, "server_error", "Oops")), Error(-32603, "Oops")),
        ("502", status(502, "", "<html>Bad Gateway</html>"), Error(-32603, "502")),
        ("503", status(503, "", &error(503, "UNAVAILABLE", "Busy")), Error(-32603, "Busy")),
        ("529", status(529, "", &error(529, "overloaded_error", "Overloaded")), Error(-32603, "Overloaded")),
        ("401", status(401, "", &error(401, "authentication_error", "No key")), Error(-32000, "No key")),
        ("403", status(403, "", &error(403, "permission_error", "Not you")), Error(-32000, "Not you")),
        ("404", status(404, "", &error(404, "not_found_error", "Gone")), Error(-32603, "model")),
        ("400", status(400, "", &error(400, "invalid_request_error", "Odd")), Error(-32603, "Odd")),
        ("413", status(413, "", &error(413, "request_too_large", "Large")), Error(-32603, "Large")),
        ("302", status(302, "location: http://127.0.0.1:1/\r\n", ""), Error(-32603, "302")),
        ("a page", status(200, "content-type: text/html\r\n", "<html>"), Error(-32603, "answered with a web page")),
        ("a list", status(200, "content-type: application/json\r\n", "[{}]"), Error(-32603, "a stream of events")),
        ("garbage", stream("data: nonsense\n\n"), Error(-32603, "nonsense")),
        ("garbage after a chunk", stream(&format!("{first}data: nonsense\n\n")), Error(-32603, "nonsense")),
        ("no stream", stream("\0\u{1}\u{2} what"), Error(-32603, "what")),
        ("no HTTP", Say::Bytes(b"\xff\xfe nothing\r\n\r\n".to_vec()), Error(-32603, "broke")),
        ("nothing", Say::Bytes(Vec::new()), Error(-32603, "broke")),
        ("an empty stream", stream(""), Error(-32603, "without an answer")),
        ("an end before the end", stream(first), Any),
        ("half a character", Say::Bytes(with(STREAM, &half)), Any),
        ("half a character, cut", Say::Bytes(with(CUT, &half)), Any),
        ("an error in the stream", stream(&format!("{first}data: {in_stream}\n\n{rest}")), Error(-32603, "Oops")),
        ("a reset", Say::Reset(Vec::new()), Error(-32603, "")),
        ("an event of 64 MiB", Say::Bytes(big), Error(-32603, "too large")),
        ("silence", Say::Hang(Vec::new()), Cancelled),
        ("silence after the head", Say::Hang(STREAM.into()), Cancelled),
        ("silence after a chunk", Say::Hang(with(STREAM, first.as_bytes())), Cancelled),
        ("a drip", Say::Drip(with(STREAM, dialect.answer.as_bytes())), Text),
    ];
    for (name, say, want) in table {
        agent.ends(name, vec![say], want);
        agent.works(name);
    }
    for at in 0..dialect.answer.len() {
        let begun = with(CUT, &dialect.answer.as_bytes()[..at]);
        let say = if at % 2 == 0 { Say::Bytes(begun) } else { Say::Reset(begun) };
        agent.ends(&format!("broken at {at}"), vec![say], Any);
    }
    agent.works("all of them");
}

/// Delays of nothing: failures that end well.
fn more_attempts(dialect: &'static Dialect) {
    let mut agent = Agent::start(dialect, &json!({"maxAttempts": 4}));
    let answer = || stream(dialect.answer);
    let error = |code, word, message| (dialect.error)(code, word, message).to_string();
    let info = r#"{"error":{"code":429,"message":"Slow","details":[{"@type":"x","retryDelay":"0s"}]}}"#;
    let now = "retry-after: 0\r\n";
    agent.ends("429", vec![status(429, now, ""), status(429, "retry-after-ms: 1\r\n", ""), answer()], Want::Text);
    agent.ends("RetryInfo", vec![status(429, "retry-after: 77\r\n", info), answer()], Want::Text);
    agent.ends("in words", vec![status(429, "", &error(429, "x", "Try again in 3ms.")), answer()], Want::Text);
    agent.ends("5xx", vec![status(500, now, ""), status(503, now, ""), status(529, now, ""), answer()], Want::Text);
    let busy = || status(503, now, &error(503, "x", "Busy"));
    let busy = vec![busy(), busy(), busy(), busy()];
    agent.ends("all attempts", busy, Want::Error(-32603, "Gave up after 4 attempts"));
    agent.works("all attempts");
}

#[test]
fn every_fault_in_every_dialect() {
    thread::scope(|scope| {
        for dialect in DIALECTS {
            scope.spawn(|| one_attempt(dialect));
            scope.spawn(|| more_attempts(dialect));
        }
    });
}
