//! Admission of what arrives: tokens, connections, and the shape of messages, each refusal with its reason.

use bytes::Bytes;
use secrecy::ExposeSecret;

use super::{connections::FirstAnswer, serve_loop::ServeLoop};
use castor_host::{
    ahp::AhpInput,
    hub::HubInput,
    remote::{Arrival, HttpRefusal, OutStream, PostAnswer, StreamKey, StreamWay, TokenBearer},
};
use castor_wire::jsonrpc::message::{self, InvalidMessage, Message};

const NO_TOKEN: &str = "send Authorization: Bearer TOKEN; `castor serve token add` makes one";
const UNKNOWN_TOKEN: &str = "castor knows no such token; `castor serve token add` makes one";
/// When to try again, in seconds.
const SOON: u32 = 5;

/// The principal of a caller; empty: the user.
struct Admission {
    principal: String,
    /// Its hash: another token may have had its name.
    token: String,
}

impl ServeLoop {
    pub(super) fn take_arrival(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Admit { caller, reply } => _ = reply.send(self.admit(&caller).map(|_| ())),
            Arrival::Post { caller, body, reply } => self.take_post(&caller, &body, reply),
            Arrival::Listen { caller, way, after, reply } => _ = reply.send(self.listen(&caller, way, after)),
            Arrival::Delete { caller, reply } => {
                let found = self.admit(&caller).and_then(|it| self.find_connection(&caller, &it));
                _ = reply.send(found.map(|it| self.disconnect(it, "the client ended the connection")));
            }
            Arrival::Message { stream, text } => self.take_message(stream, &text),
        }
    }

    fn admit(&mut self, caller: &TokenBearer) -> Result<Admission, HttpRefusal> {
        let token = caller.token.as_ref().map(ExposeSecret::expose_secret);
        let Some(token) = token else { return Err(HttpRefusal::new(401, NO_TOKEN)) };
        if self.tokens.find(token).is_none() {
            // It may have been made since.
            self.reload_tokens();
        }
        let entry = self.tokens.find(token).ok_or_else(|| HttpRefusal::new(401, UNKNOWN_TOKEN))?;
        Ok(Admission { principal: entry.principal.clone().unwrap_or_default(), token: entry.sha256.clone() })
    }

    fn find_connection(&self, caller: &TokenBearer, who: &Admission) -> Result<u64, HttpRefusal> {
        let id = caller.connection.as_deref().ok_or_else(|| HttpRefusal::new(400, "Acp-Connection-Id is missing"))?;
        let found = self.connections.find(id, &who.principal);
        found.ok_or_else(|| HttpRefusal::new(404, "there is no such connection; begin another one with initialize"))
    }

    fn open(&mut self, who: &Admission, first_answer: Option<FirstAnswer>) -> Result<u64, HttpRefusal> {
        let n = self.connections.len_of(&who.principal);
        if n >= self.limits.connections {
            let refusal = HttpRefusal::retry(503, format!("{n} connections are open, and no more may be"), SOON);
            if let Some(reply) = first_answer {
                _ = reply.send(Err(refusal.clone()));
            }
            return Err(refusal);
        }
        let now = self.now_ms;
        Ok(self.connections.open((&who.principal, &who.token), first_answer, now))
    }

    fn open_acp(&mut self, who: &Admission, first_answer: Option<FirstAnswer>) -> Result<u64, HttpRefusal> {
        let number = self.open(who, first_answer)?;
        self.step(&who.principal, HubInput::Connected(number));
        Ok(number)
    }

    fn open_ahp(&mut self, who: &Admission) -> Result<u64, HttpRefusal> {
        let number = self.open(who, None)?;
        if let Some(it) = self.connections.get_mut(number) {
            it.is_ahp = true;
        }
        self.step_ahp(&who.principal, AhpInput::Connected(number));
        Ok(number)
    }

    fn take_post(&mut self, caller: &TokenBearer, body: &Bytes, reply: FirstAnswer) {
        let checked = self.admit(caller).and_then(|who| Ok((who, check_body(caller, body)?)));
        let (who, is_initialize) = match checked {
            Ok(it) => it,
            Err(it) => {
                _ = reply.send(Err(it));
                return;
            }
        };
        if is_initialize {
            if let Ok(number) = self.open_acp(&who, Some(reply)) {
                self.take_text(number, &who.principal, body);
            }
            return;
        }
        match self.find_connection(caller, &who) {
            Err(it) => _ = reply.send(Err(it)),
            Ok(_) if !self.agent_keeps_up(&who.principal) => {
                _ = reply.send(Err(HttpRefusal::retry(503, "the agent does not keep up", SOON)));
            }
            Ok(number) => {
                _ = reply.send(Ok(PostAnswer::Accepted));
                self.take_text(number, &who.principal, body);
            }
        }
    }

    fn listen(&mut self, caller: &TokenBearer, way: StreamWay, after: Option<u64>) -> Result<OutStream, HttpRefusal> {
        let who = self.admit(caller)?;
        let number = match (&caller.connection, way) {
            (_, StreamWay::HostSocket) => self.open_ahp(&who)?,
            (None, StreamWay::WebSocket) => self.open_acp(&who, None)?,
            _ => self.find_connection(caller, &who)?,
        };
        if caller.session.is_some() && way == StreamWay::Events {
            let stream = self.connections.begin_side_stream(number);
            return stream.ok_or_else(|| HttpRefusal::retry(503, "too many streams of this connection are open", SOON));
        }
        let now = self.now_ms;
        let lost = "messages behind that Last-Event-ID are gone: begin another connection, and load the session";
        self.connections.begin_stream(number, after, now).map_err(|_| HttpRefusal::new(409, lost))
    }

    fn take_message(&mut self, stream: StreamKey, text: &Bytes) {
        let Some(connection) = self.connections.get_mut(stream.connection) else { return };
        let principal = connection.principal.clone();
        match self.agent_keeps_up(&principal) {
            true => self.take_text(stream.connection, &principal, text),
            false => self.disconnect(stream.connection, "the agent does not keep up; connect again in a while"),
        }
    }

    fn take_text(&mut self, number: u64, principal: &str, text: &[u8]) {
        let mut is_ahp = false;
        if let Some(it) = self.connections.get_mut(number) {
            it.received += 1;
            is_ahp = it.is_ahp;
        }
        let now = self.now_ms;
        self.connections.touch(number, now);
        match is_ahp {
            true => self.step_ahp(principal, AhpInput::Message { from: number, text }),
            false => self.step(principal, HubInput::Message { from: number, text }),
        }
    }
}

/// Whether it is initialize.
fn check_body(caller: &TokenBearer, body: &[u8]) -> Result<bool, HttpRefusal> {
    if body.trim_ascii_start().starts_with(b"[") {
        return Err(HttpRefusal::new(501, "send one message a request: batches are not supported"));
    }
    let (method, params) = match message::parse(body) {
        Ok(Message::Request { method, params, .. } | Message::Notification { method, params }) => (method, params),
        Ok(Message::Response { .. }) => return Ok(false),
        Err(InvalidMessage::Answer { error, .. }) => return Err(HttpRefusal::new(400, error.message())),
        Err(InvalidMessage::Ignore(why)) => return Err(HttpRefusal::new(400, why)),
    };
    match (method.as_str(), &caller.connection) {
        ("initialize", None) => return Ok(true),
        ("initialize", Some(_)) => {
            return Err(HttpRefusal::new(400, "this connection was initialized; begin another one"));
        }
        (_, None) => return Err(HttpRefusal::new(400, "Acp-Connection-Id is missing; begin with initialize")),
        _ => (),
    }
    let named = params.as_ref().and_then(|it| serde_json::from_str::<SessionName>(it.get()).ok()?.session_id);
    match (named, &caller.session) {
        (Some(named), Some(header)) if named != *header => {
            Err(HttpRefusal::new(400, "Acp-Session-Id names another session than the message"))
        }
        (Some(_), None) if method.starts_with("session/") => Err(HttpRefusal::new(400, "Acp-Session-Id is missing")),
        _ => Ok(false),
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionName {
    session_id: Option<String>,
}
