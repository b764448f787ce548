//! Connections of clients: their tokens, the messages that they still have to get, and the streams that bring these.

use std::collections::BTreeMap;

use bytes::Bytes;
use tokio::sync::{mpsc, oneshot};

use castor_host::{
    hub::{Delivery, DeliveryState, LostMessages},
    remote::{HttpRefusal, OutStream, PostAnswer, StreamKey},
};

/// Streams of one connection that bring nothing: some clients open one for each session.
const MAX_SIDE_STREAMS: usize = 64;
const REPLACED: &str = "another stream of this connection took over";
const TOO_SLOW: &str = "you do not keep up: connect again with Last-Event-ID";

/// Where the answer to initialize goes, where it came by POST.
pub type FirstAnswer = oneshot::Sender<Result<PostAnswer, HttpRefusal>>;

pub struct OpenConnection {
    /// As the client knows it.
    pub id: String,
    pub principal: String,
    /// The hash of its token.
    pub token: String,
    /// It speaks AHP, and ends with its stream.
    pub is_ahp: bool,
    pub received: u64,
    pub first_answer: Option<FirstAnswer>,
    delivery: Delivery,
    stream: Option<LiveStream>,
    /// They are open, and bring nothing.
    side: Vec<LiveStream>,
    /// Since when there is no stream.
    idle_since_ms: u64,
}

struct LiveStream {
    number: u64,
    messages: mpsc::UnboundedSender<(u64, Bytes)>,
    end: oneshot::Sender<&'static str>,
}

impl LiveStream {
    fn close(self, why: &'static str) {
        // One that is gone need not be told.
        _ = self.end.send(why);
    }
}

#[derive(Default)]
pub struct ConnectionTable {
    all: BTreeMap<u64, OpenConnection>,
    by_id: BTreeMap<String, u64>,
    n_opened: u64,
    n_streams: u64,
}

impl ConnectionTable {
    pub fn open(&mut self, (principal, token): (&str, &str), first_answer: Option<FirstAnswer>, now_ms: u64) -> u64 {
        self.n_opened += 1;
        let id = uuid::Uuid::now_v7().to_string();
        self.by_id.insert(id.clone(), self.n_opened);
        let connection = OpenConnection {
            id,
            principal: principal.to_owned(),
            token: token.to_owned(),
            is_ahp: false,
            received: 0,
            first_answer,
            delivery: Delivery::default(),
            stream: None,
            side: Vec::new(),
            idle_since_ms: now_ms,
        };
        self.all.insert(self.n_opened, connection);
        self.n_opened
    }

    pub fn len_of(&self, principal: &str) -> usize {
        self.all.values().filter(|it| it.principal == principal).count()
    }

    /// Those of others are as unknown as those that are not there.
    pub fn find(&self, id: &str, principal: &str) -> Option<u64> {
        let number = *self.by_id.get(id)?;
        self.all.get(&number).filter(|it| it.principal == principal).map(|_| number)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut OpenConnection> {
        self.all.get_mut(&number)
    }

    /// A stream for the messages behind `after`; one that was open ends.
    ///
    /// # Errors
    /// Some of these are gone.
    pub fn begin_stream(&mut self, number: u64, after: Option<u64>, now_ms: u64) -> Result<OutStream, LostMessages> {
        self.n_streams += 1;
        let connection = self.all.get_mut(&number).ok_or(LostMessages)?;
        connection.delivery.resume(after, now_ms)?;
        let (live, stream) = live_stream(number, self.n_streams, connection);
        if let Some(old) = connection.stream.replace(live) {
            old.close(REPLACED);
        }
        self.pump(number);
        Ok(stream)
    }

    /// A stream that brings nothing; `None`: there are too many.
    pub fn begin_side_stream(&mut self, number: u64) -> Option<OutStream> {
        self.n_streams += 1;
        let connection = self.all.get_mut(&number).filter(|it| it.side.len() < MAX_SIDE_STREAMS)?;
        let (live, stream) = live_stream(number, self.n_streams, connection);
        connection.side.push(live);
        Some(stream)
    }

    /// Tells whether it may stay: one that keeps nothing of what it should get is of no use.
    pub fn push(&mut self, number: u64, message: Bytes, now_ms: u64) -> bool {
        let Some(connection) = self.all.get_mut(&number) else { return true };
        if let Some(reply) = connection.first_answer.take() {
            let answer = PostAnswer::Initialized { connection: connection.id.clone(), body: message };
            return reply.send(Ok(answer)).is_ok();
        }
        connection.delivery.push(message);
        self.pump(number);
        self.check_speed(number, now_ms)
    }

    fn check_speed(&mut self, number: u64, now_ms: u64) -> bool {
        let Some(connection) = self.all.get_mut(&number) else { return true };
        match connection.delivery.state(now_ms) {
            DeliveryState::Fine => true,
            DeliveryState::Slow => {
                if let Some(it) = connection.stream.take() {
                    connection.idle_since_ms = now_ms;
                    it.close(TOO_SLOW);
                }
                true
            }
            DeliveryState::Full => false,
        }
    }

    /// The connection whose client hears by this stream.
    fn connection_of_stream(&mut self, key: StreamKey) -> Option<&mut OpenConnection> {
        let connection = self.all.get_mut(&key.connection);
        connection.filter(|it| it.stream.as_ref().is_some_and(|it| it.number == key.stream))
    }

    pub fn mark_written(&mut self, key: StreamKey, n: usize, now_ms: u64) {
        let Some(connection) = self.connection_of_stream(key) else { return };
        connection.delivery.mark_written(n, now_ms);
        self.pump(key.connection);
    }

    pub fn mark_heard(&mut self, key: StreamKey, number: u64) {
        if let Some(it) = self.connection_of_stream(key) {
            it.delivery.mark_heard(number);
        }
    }

    fn pump(&mut self, number: u64) {
        let Some(connection) = self.all.get_mut(&number) else { return };
        let Some(stream) = &connection.stream else { return };
        while let Some(message) = connection.delivery.take_next() {
            // One that broke says so, and what it was given is kept.
            _ = stream.messages.send(message);
        }
    }

    /// Tells whether it was the one by which the client hears.
    pub fn end_stream(&mut self, key: StreamKey, now_ms: u64) -> bool {
        let Some(connection) = self.all.get_mut(&key.connection) else { return false };
        connection.side.retain(|it| it.number != key.stream);
        let is_it = connection.stream.as_ref().is_some_and(|it| it.number == key.stream);
        if is_it {
            connection.stream = None;
            connection.idle_since_ms = now_ms;
        }
        is_it
    }

    /// Removes a connection; its streams end with the reason.
    pub fn close(&mut self, number: u64, why: &'static str) -> Option<OpenConnection> {
        let mut connection = self.all.remove(&number)?;
        self.by_id.remove(&connection.id);
        let streams = connection.stream.take().into_iter().chain(connection.side.drain(..));
        streams.for_each(|it| it.close(why));
        if let Some(reply) = connection.first_answer.take() {
            _ = reply.send(Err(HttpRefusal::retry(503, why, 5)));
        }
        Some(connection)
    }

    /// Those without a stream for so long.
    pub fn abandoned(&self, grace_ms: u64, now_ms: u64) -> Vec<u64> {
        let is_left = |it: &OpenConnection| {
            it.stream.is_none() && (it.is_ahp || now_ms.saturating_sub(it.idle_since_ms) >= grace_ms)
        };
        self.all.iter().filter(|it| is_left(it.1)).map(|it| *it.0).collect()
    }

    /// Those that do not keep up; the slow ones lose their stream. Those that are full are returned.
    pub fn full(&mut self, now_ms: u64) -> Vec<u64> {
        let all: Vec<u64> = self.all.keys().copied().collect();
        all.into_iter().filter(|it| !self.check_speed(*it, now_ms)).collect()
    }

    pub fn of_principal(&self, principal: &str) -> Vec<u64> {
        self.all.iter().filter(|it| it.1.principal == principal).map(|it| *it.0).collect()
    }

    pub fn with_tokens(&self, is_gone: impl Fn(&str) -> bool) -> Vec<u64> {
        self.all.iter().filter(|it| is_gone(&it.1.token)).map(|it| *it.0).collect()
    }

    /// As the client did something.
    pub fn touch(&mut self, number: u64, now_ms: u64) {
        if let Some(it) = self.all.get_mut(&number) {
            it.idle_since_ms = now_ms;
        }
    }
}

fn live_stream(connection: u64, stream: u64, of: &OpenConnection) -> (LiveStream, OutStream) {
    let (messages, queue) = mpsc::unbounded_channel();
    let (end, ended) = oneshot::channel();
    let key = StreamKey { connection, stream };
    let out = OutStream { key, connection: of.id.clone(), received: of.received, messages: queue, end: ended };
    (LiveStream { number: stream, messages, end }, out)
}
