//! `castor serve` through its sockets: who is let in, what several clients see of one session, and what a broken
//! connection brings when it comes back.

mod ahp_client;
mod ahp_host;
mod ahp_input;
mod ahp_machine;
mod ahp_older_clients;
mod ahp_sessions;
mod attacks;
mod bridge;
mod idle;
mod principals;
mod refusals;
mod sharing;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    os::fd::AsRawFd,
    process::{Child, Stdio},
    thread,
    time::Instant,
};

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::{Error, Message, WebSocket, protocol::Role};

use crate::{
    client::{Sandbox, WATCHDOG},
    schema,
};

/// A server, with a token that is the user's.
pub struct Server {
    pub sandbox: Sandbox,
    child: Child,
    pub port: u16,
    pub token: String,
}

/// What the model says: one list for each request.
pub fn script(answers: &[Vec<Value>]) -> String {
    let line = |parts: &Vec<Value>| {
        let chunk = |part: &Value| json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]});
        let mut chunks: Vec<Value> = parts.iter().map(chunk).collect();
        chunks.push(json!({"candidates": [{"content": {"role": "model", "parts": []}, "finishReason": "STOP"}]}));
        json!({"method": "generateContentStream", "response": chunks}).to_string() + "\n"
    };
    answers.iter().map(line).collect()
}

pub fn say(text: &str) -> Value {
    json!({"text": text})
}

pub fn call(name: &str, args: Value) -> Value {
    json!({"functionCall": {"name": name, "args": args}})
}

impl Server {
    pub fn start(script: &str, flags: &[&str]) -> Self {
        let sandbox = Sandbox::new();
        let file = sandbox.write("script", script);
        let flag = format!("--fake-responses={}", file.display());
        Self::start_in(sandbox, &[&[flag.as_str()], flags].concat())
    }

    pub fn start_in(mut sandbox: Sandbox, flags: &[&str]) -> Self {
        let token = verb(&mut sandbox, &["serve", "token", "add", "mine"]);
        Self::run(sandbox, token, flags)
    }

    /// The same again, in the same home.
    pub fn restart(mut self) -> Self {
        self.stop();
        let sandbox = std::mem::replace(&mut self.sandbox, Sandbox::new());
        let flags: Vec<String> = sandbox.args.iter().skip(2).map(|it| it.to_string_lossy().into_owned()).collect();
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        Self::run(sandbox, std::mem::take(&mut self.token), &flags)
    }

    fn run(mut sandbox: Sandbox, token: String, flags: &[&str]) -> Self {
        let (child, port) = launch(&mut sandbox, flags);
        Self { sandbox, child, port, token }
    }

    pub fn connect(&self) -> TcpStream {
        connect(self.port).unwrap()
    }

    /// Sends a request; returns status, headers in small letters, and body.
    pub fn http(&self, head: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
        let mut stream = self.connect();
        let host = if headers.iter().any(|it| it.0 == "Host") { "" } else { "Host: localhost\r\n" };
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        write!(stream, "{head} HTTP/1.1\r\n{host}{headers}{length}Connection: close\r\n\r\n{body}").unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or_default();
        (status, head.to_lowercase(), body.to_owned())
    }

    /// Asks for a WebSocket. Returns status, head of the answer in small letters, and what follows it.
    pub fn handshake(&self, headers: &str) -> (u16, String, TcpStream) {
        handshake(self.port, headers).unwrap()
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    pub fn post(&self, connection: Option<&str>, session: Option<&str>, message: &Value) -> (u16, String, String) {
        let bearer = self.bearer();
        let mut headers = vec![("Authorization", bearer.as_str()), ("Content-Type", "application/json")];
        headers.extend(connection.map(|it| ("Acp-Connection-Id", it)));
        headers.extend(session.map(|it| ("Acp-Session-Id", it)));
        self.http("POST /acp", &headers, &message.to_string())
    }

    /// Files that the server has open, and its agent, which there is one of.
    #[cfg(target_os = "linux")]
    pub fn open_files(&self) -> [Vec<String>; 2] {
        let pid = self.child.id();
        let agent = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        // Any of its threads may have started it.
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        let of_threads = threads.filter_map(|it| std::fs::read_to_string(it.path().join("children")).ok());
        let agent = of_threads.fold(agent, |all, it| all + &it);
        let agent = agent.split_whitespace().next().unwrap_or("0").to_owned();
        [pid.to_string(), agent].map(|it| {
            let files = std::fs::read_dir(format!("/proc/{it}/fd")).into_iter().flatten().flatten();
            let links = files.filter_map(|it| std::fs::read_link(it.path()).ok());
            links.map(|it| it.display().to_string()).collect()
        })
    }

    /// A second time it has stopped already.
    fn stop(&mut self) {
        let pid = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        if self.child.try_wait().is_ok_and(|it| it.is_none()) {
            let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        }
        let status = self.child.wait();
        if !thread::panicking() {
            assert!(status.is_ok_and(|it| it.success()), "it ends well on a signal");
        }
    }

    pub fn client(&self) -> Socket {
        let mut res = Socket::open(self, &self.token, None).unwrap();
        res.call("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "it", "version": "1"}}));
        res
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Starts a server; its port, once it listens.
pub fn launch(sandbox: &mut Sandbox, flags: &[&str]) -> (Child, u16) {
    sandbox.args = ["serve", "--listen=127.0.0.1:0"].iter().chain(flags).map(Into::into).collect();
    let errors = std::fs::File::options().create(true).append(true).open(sandbox.stderr()).unwrap();
    let mut child = sandbox.command().stdout(Stdio::piped()).stderr(errors).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port = line.trim().rsplit_once(':').and_then(|it| it.1.split('/').next()?.parse().ok());
    let port = port.unwrap_or_else(|| panic!("{line}{}", std::fs::read_to_string(sandbox.stderr()).unwrap()));
    (child, port)
}

fn handshake(port: u16, headers: &str) -> std::io::Result<(u16, String, TcpStream)> {
    let mut stream = connect(port)?;
    write!(
        stream,
        "GET /acp HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{headers}\r\n"
    )?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    Ok((head.split(' ').nth(1).unwrap().parse().unwrap(), head, stream))
}

fn connect(port: u16) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(WATCHDOG))?;
    Ok(stream)
}

/// Runs a command of castor; its output.
pub fn verb(sandbox: &mut Sandbox, args: &[&str]) -> String {
    sandbox.args = args.iter().map(Into::into).collect();
    let output = sandbox.command().output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A client on a WebSocket.
pub struct Socket {
    socket: WebSocket<TcpStream>,
    pub connection: String,
    pub n_received: u64,
    n_asked: u64,
    /// Methods of its requests, by id.
    asked: BTreeMap<String, String>,
    /// What came while something else was waited for.
    pub before: Vec<Value>,
}

impl Socket {
    /// `after`: a connection that was open, and the number of the last message that came.
    pub fn open(server: &Server, token: &str, after: Option<(&str, u64)>) -> Result<Self, u16> {
        Self::open_at(server.port, token, after).unwrap()
    }

    /// The same where the server may be gone.
    pub fn open_at(port: u16, token: &str, after: Option<(&str, u64)>) -> std::io::Result<Result<Self, u16>> {
        let more = after.map(|(id, n)| format!("Acp-Connection-Id: {id}\r\nLast-Event-ID: {n}\r\n"));
        let headers = format!("Authorization: Bearer {token}\r\n{}", more.unwrap_or_default());
        let (status, head, stream) = handshake(port, &headers)?;
        if status != 101 {
            return Ok(Err(status));
        }
        assert!(head.contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="), "{head}");
        let connection = head.split("acp-connection-id: ").nth(1).unwrap().split("\r\n").next().unwrap().to_owned();
        let socket = WebSocket::from_raw_socket(stream, Role::Client, None);
        let n_received = after.map_or(0, |it| it.1);
        Ok(Ok(Self { socket, connection, n_received, n_asked: 0, asked: BTreeMap::new(), before: Vec::new() }))
    }

    pub fn send(&mut self, message: &Value) {
        self.try_send(message).unwrap();
    }

    pub fn try_send(&mut self, message: &Value) -> Result<(), String> {
        if let Some(method) = message["method"].as_str() {
            self.asked.insert(message["id"].to_string(), method.to_owned());
        }
        self.socket.send(Message::text(message.to_string())).map_err(|it| it.to_string())
    }

    /// Says that it does not come back.
    #[cfg(feature = "postgres")]
    pub fn leave(mut self) {
        _ = self.socket.close(None);
        _ = self.socket.flush();
    }

    pub fn request(&mut self, id: &str, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    /// The next message, or why there is none.
    pub fn try_next(&mut self) -> Result<Value, String> {
        let begun = Instant::now();
        loop {
            match self.socket.read() {
                Ok(Message::Text(it)) => {
                    self.n_received += 1;
                    let message: Value = serde_json::from_str(&it).unwrap();
                    let asked = self.asked.get(&message["id"].to_string()).map(String::as_str);
                    schema::check_message(1, &message, asked).unwrap_or_else(|why| panic!("{why} in {message}"));
                    return Ok(message);
                }
                Ok(Message::Close(Some(it))) => return Err(format!("{} {}", u16::from(it.code), it.reason)),
                Ok(Message::Ping(_) | Message::Pong(_)) if begun.elapsed() < WATCHDOG => (),
                Ok(other) => return Err(format!("{other:?}")),
                Err(Error::Io(it)) => return Err(it.to_string()),
                Err(it) => return Err(it.to_string()),
            }
        }
    }

    /// Reads up to a message that fits.
    pub fn until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let it = self.try_next().unwrap();
            if fits(&it) {
                return it;
            }
            self.before.push(it);
        }
    }

    pub fn answer_to(&mut self, id: &str) -> Value {
        self.until(|it| it["id"] == id && it.get("method").is_none())
    }

    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.n_asked += 1;
        let id = format!("call-{}", self.n_asked);
        self.request(&id, method, params);
        self.answer_to(&id)
    }

    pub fn new_session(&mut self, server: &Server) -> String {
        let answer = self.call("session/new", json!({"cwd": server.sandbox.workspace(), "mcpServers": []}));
        answer["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub fn load(&mut self, server: &Server, session: &str) -> Value {
        let cwd = server.sandbox.workspace();
        self.call("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}))
    }

    /// The agent's words among what came.
    pub fn said(&self) -> String {
        let is_answer = |it: &&Value| it["params"]["update"]["sessionUpdate"] == "agent_message_chunk";
        let texts = self.before.iter().filter(is_answer);
        texts.filter_map(|it| it["params"]["update"]["content"]["text"].as_str()).collect()
    }

    pub fn stream(&self) -> &TcpStream {
        self.socket.get_ref()
    }

    /// The system takes little for it that it does not read.
    pub fn take_little(&self) {
        let (fd, size) = (self.stream().as_raw_fd(), 64 << 10);
        let value = std::ptr::from_ref::<libc::c_int>(&size).cast();
        // SAFETY: the descriptor is open, and the value is one number.
        let set = unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, value, 4) };
        assert_eq!(set, 0);
    }
}

pub fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

pub fn is_question(it: &Value) -> bool {
    it["method"] == "session/request_permission"
}

pub fn answer(question: &Value, option: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": question["id"], "result": {"outcome": {"outcome": "selected", "optionId": option}}})
}
