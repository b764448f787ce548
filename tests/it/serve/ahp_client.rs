//! A client of the Agent Host Protocol, by the protocol's own crate: its connection, and what it knows of each channel.

use std::{collections::BTreeMap, future::Future};

use ahp::{
    Client, ClientConfig, ClientEvent, SubscriptionEvent, Transport, TransportError, TransportMessage,
    ahp_types::{
        actions::{ActionEnvelope, StateAction},
        commands::{ReconnectResult, SubscribeResult},
        state::{ChatState, Snapshot, SnapshotState},
    },
    client::ClientEventStream,
    reducers,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::Runtime,
    sync::mpsc,
    time::timeout,
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use super::Server;
use crate::client::WATCHDOG;

pub const ROOT: &str = "ahp-root://";

/// The crate's interface over a socket that is open.
struct SocketTransport {
    socket: WebSocketStream<TcpStream>,
    /// Telemetry, of which the crate's client makes no events.
    telemetry: mpsc::UnboundedSender<Value>,
}

impl Transport for SocketTransport {
    fn send(&mut self, message: TransportMessage) -> impl Future<Output = Result<(), TransportError>> + Send {
        let text = message.into_parsed().map(|it| serde_json::to_string(&it).unwrap());
        async move { self.socket.send(Message::text(text?)).await.map_err(|_| TransportError::Closed) }
    }

    async fn recv(&mut self) -> Result<Option<TransportMessage>, TransportError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(it))) if it.contains("\"otlp/export") => {
                    // The test may be over.
                    _ = self.telemetry.send(serde_json::from_str(&it).unwrap());
                }
                Some(Ok(Message::Text(it))) => return Ok(Some(TransportMessage::Text(it.to_string()))),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => (),
                _ => return Ok(None),
            }
        }
    }
}

pub struct AhpSocket {
    runtime: Runtime,
    client: Client,
    exported: mpsc::UnboundedReceiver<Value>,
    events: ClientEventStream,
    known: BTreeMap<String, SnapshotState>,
    /// The number of the last action.
    pub last: i64,
    /// Why actions of this client were not accepted.
    pub rejections: Vec<String>,
    /// Other notifications.
    pub told: Vec<ClientEvent>,
}

impl AhpSocket {
    /// The status that refuses it, where there is no token in the headers.
    pub fn open(server: &Server, query: &str, bearer: Option<&str>) -> Result<Self, u16> {
        Self::open_at(server, &format!("/ahp{query}"), bearer)
    }

    pub fn open_at(server: &Server, target: &str, bearer: Option<&str>) -> Result<Self, u16> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let opened = runtime.block_on(async {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).await.unwrap();
            let bearer = bearer.map(|it| format!("Authorization: Bearer {it}\r\n")).unwrap_or_default();
            let head = format!(
                "GET {target} HTTP/1.1\r\nHost: localhost\r\n{bearer}Connection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                head.push(stream.read_u8().await.unwrap());
            }
            let status: u16 = String::from_utf8(head).unwrap().split(' ').nth(1).unwrap().parse().unwrap();
            if status != 101 {
                return Err(status);
            }
            let socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
            let config = ClientConfig { subscription_buffer: 4096, ..ClientConfig::default() };
            let (telemetry, exported) = mpsc::unbounded_channel();
            Ok((Client::connect(SocketTransport { socket, telemetry }, config).await.unwrap(), exported))
        });
        let (client, exported) = opened?;
        let events = client.events();
        let (known, rejections, told) = (BTreeMap::new(), Vec::new(), Vec::new());
        Ok(Self { runtime, client, exported, events, known, last: 0, rejections, told })
    }

    /// Introduced, and subscribed to the root.
    pub fn begin(server: &Server, id: &str) -> Self {
        let res = Self::open(server, &format!("?tkn={}", server.token), None).unwrap();
        res.introduced(id, "1.0.0")
    }

    /// As a client of an older version, which knows no path.
    pub fn begin_older(server: &Server, id: &str) -> Self {
        let res = Self::open_at(server, &format!("/?tkn={}", server.token), None).unwrap();
        res.introduced(id, "0.9.0")
    }

    fn introduced(self, id: &str, version: &str) -> Self {
        let mut res = self;
        let hello = res.client.initialize(id.to_owned(), vec![version.to_owned()], vec![ROOT.to_owned()]);
        let hello = res.runtime.block_on(hello).unwrap();
        assert_eq!(hello.protocol_version, version);
        res.last = hello.server_seq;
        hello.snapshots.into_iter().for_each(|it| res.learn(it));
        res
    }

    /// Comes back after another connection.
    pub fn come_back(server: &Server, id: &str, after: &Self) -> (Self, ReconnectResult) {
        let mut res = Self::open(server, "", Some(&server.token)).unwrap();
        let channels: Vec<String> = after.known.keys().cloned().collect();
        let answer = res.client.reconnect(id.to_owned(), after.last, channels);
        let answer = res.runtime.block_on(answer).unwrap();
        (res.known, res.last) = (after.known.clone(), after.last);
        match &answer {
            ReconnectResult::Replay(it) => it.actions.iter().for_each(|it| res.reduce(it)),
            ReconnectResult::Snapshot(it) => it.snapshots.iter().for_each(|it| res.learn(it.clone())),
        }
        (res, answer)
    }

    fn learn(&mut self, it: Snapshot) {
        self.last = self.last.max(it.from_seq);
        self.known.insert(it.resource, it.state);
    }

    fn reduce(&mut self, it: &ActionEnvelope) {
        self.last = self.last.max(i64::try_from(it.server_seq).unwrap());
        if let Some(why) = &it.rejection_reason {
            return self.rejections.push(why.clone());
        }
        let _ = match self.known.get_mut(&it.channel) {
            Some(SnapshotState::Root(state)) => reducers::apply_action_to_root(state, &it.action),
            Some(SnapshotState::Session(state)) => reducers::apply_action_to_session(state, &it.action),
            Some(SnapshotState::Chat(state)) => reducers::apply_action_to_chat(state, &it.action),
            Some(SnapshotState::Changeset(state)) => reducers::apply_action_to_changeset(state, &it.action),
            Some(SnapshotState::Annotations(state)) => reducers::apply_action_to_annotations(state, &it.action),
            Some(SnapshotState::Terminal(state)) => reducers::apply_action_to_terminal(state, &it.action),
            _ => return,
        };
    }

    pub fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        self.runtime.block_on(self.client.request(method, params)).map_err(|it| it.to_string())
    }

    pub fn create(&mut self, server: &Server, id: &str, config: Value) {
        let folder = format!("file://{}", server.sandbox.workspace().display());
        let params = json!({ "channel": session(id), "workingDirectories": [folder], "config": config });
        self.call("createSession", params).unwrap();
        self.subscribe(&session(id));
        self.subscribe(&chat(id));
    }

    pub fn subscribe(&mut self, channel: &str) {
        let answer = self.call("subscribe", json!({ "channel": channel })).unwrap();
        let answer: SubscribeResult = serde_json::from_value(answer).unwrap();
        self.learn(answer.snapshot.unwrap());
    }

    pub fn dispatch(&self, channel: &str, action: Value) {
        let action: StateAction = serde_json::from_value(action).unwrap();
        assert!(!matches!(action, StateAction::Unknown(_)), "{action:?}");
        self.runtime.block_on(self.client.dispatch(channel.to_owned(), action)).unwrap();
    }

    pub fn prompt(&self, id: &str, turn: &str, text: &str) {
        self.dispatch(&chat(id), turn_started(turn, json!({ "text": text, "origin": { "kind": "user" } })));
    }

    /// Takes actions until it is so.
    pub fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let event = self.next_event().unwrap_or_else(|| panic!("the connection ended"));
            match event.event {
                SubscriptionEvent::Action(ref it) => self.reduce(it),
                _ => self.told.push(event),
            }
        }
    }

    /// Changes that a watch tells are in `told`: they leave no state behind.
    pub fn follow_watch(&mut self, channel: &str, is_so: impl Fn(&Self) -> bool) {
        while !is_so(self) {
            let event = self.next_event().unwrap_or_else(|| panic!("the connection ended"));
            match event.event {
                SubscriptionEvent::Action(ref it) if it.channel != channel => self.reduce(it),
                _ => self.told.push(event),
            }
        }
    }

    /// The next telemetry for which it is so.
    pub fn telemetry(&mut self, is_so: impl Fn(&Value) -> bool) -> Value {
        loop {
            let exported = &mut self.exported;
            let next = self.runtime.block_on(async { timeout(WATCHDOG, exported.recv()).await });
            let next = next.expect("telemetry comes in time").expect("the connection lasts");
            if is_so(&next["params"]) {
                return next["params"].clone();
            }
        }
    }

    pub fn until_gone(&mut self) {
        while self.next_event().is_some() {}
    }

    fn next_event(&mut self) -> Option<ClientEvent> {
        let events = &mut self.events;
        let next = self.runtime.block_on(async { timeout(WATCHDOG, events.recv()).await });
        next.unwrap_or_else(|_| {
            panic!("nothing comes in time; rejected: {:?}; known: {:#?}", self.rejections, self.known)
        })
    }

    /// Until no turn runs, and there are so many.
    pub fn until_turns(&mut self, id: &str, n: usize) {
        self.until(|it| it.chat(id).active_turn.is_none() && it.chat(id).turns.len() >= n);
    }

    pub fn chat(&self, id: &str) -> &ChatState {
        match &self.known[&chat(id)] {
            SnapshotState::Chat(it) => it,
            other => panic!("{other:?}"),
        }
    }

    /// The state of a channel, as JSON.
    pub fn state(&self, channel: &str) -> Value {
        serde_json::to_value(&self.known[channel]).unwrap()
    }

    /// What is as a snapshot has it now.
    pub fn check_chat(&self, id: &str) {
        let answer = self.call("subscribe", json!({ "channel": chat(id) })).unwrap();
        let mut known = self.state(&chat(id));
        // The session tells its title.
        known["title"] = answer["snapshot"]["state"]["title"].clone();
        assert_eq!(known, answer["snapshot"]["state"]);
    }

    /// All text of one turn's answer.
    pub fn said(&self, id: &str, turn: usize) -> String {
        let parts = serde_json::to_value(&self.chat(id).turns[turn].response_parts).unwrap();
        let texts = parts.as_array().unwrap().iter().filter(|it| it["kind"] == "markdown");
        texts.filter_map(|it| it["content"].as_str()).collect()
    }

    /// Without a goodbye.
    pub fn cut(self) -> Self {
        self.runtime.block_on(async {
            self.client.shutdown().await;
            tokio::task::yield_now().await;
        });
        self
    }
}

pub fn session(id: &str) -> String {
    format!("ahp-session:/{id}")
}

pub fn chat(id: &str) -> String {
    format!("ahp-chat:/{id}")
}

pub fn turn_started(turn: &str, message: Value) -> Value {
    json!({ "type": "chat/turnStarted", "turnId": turn, "startedAt": "2026-01-01T00:00:00Z", "message": message })
}
