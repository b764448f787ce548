//! Lines of the agent: updates and questions go to all that are attached, answers to the connection that asked.

use bytes::Bytes;
use serde_json::{Value, json, value::RawValue};

use super::{AgentState, Errand, ForwardedRequest, Hub, SharedQuestion, envelope, envelope::Address};
use castor_wire::{
    acp::own::{
        events::{EVENT, STREAM_STARTED},
        host_tools,
    },
    jsonrpc::{
        error,
        message::{self, Message, RequestId},
        write,
    },
};

/// Requests of the agent that any client may answer for the user. No client is asked for its files and terminals.
const QUESTIONS: &[&str] = &["session/request_permission", "elicitation/create"];

/// What the hub can show in the name of all its connections. Questions come as options and warnings as thoughts: there is
/// no client that cannot show those. Files and terminals are those of the agent's machine.
fn own_capabilities() -> Value {
    json!({ "_meta": { "castor": { "rewind": true, "stats": true, "streams": true, "hostTools": "declared",
        "editsCalls": true } } })
}

impl Hub {
    pub(super) fn take_line(&mut self, line: &Bytes) {
        match message::parse(line) {
            Ok(Message::Response { id, outcome }) => self.settle(&id, outcome),
            Ok(Message::Notification { method, params }) => self.spread(line, &method, params.as_deref()),
            Ok(Message::Request { id, method, params }) => self.ask_all(line, id, &method, params.as_deref()),
            // An agent that cannot be understood is not answered: it might answer that.
            Err(_) => (),
        }
    }

    pub(super) fn greet_agent(&mut self) {
        self.agent = AgentState::Starting(Vec::new());
        let request = ForwardedRequest { from: None, id: RequestId::Null, errand: Errand::Greet };
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": own_capabilities(),
            "clientInfo": { "name": "castor serve", "version": env!("CARGO_PKG_VERSION") },
        });
        self.ask_agent(request, "initialize", &params);
    }

    /// The answer to a connection's initialize: the agent's, with what the hub adds and cannot do.
    pub(super) fn introduce_agent(&mut self, to: u64, id: &RequestId) {
        let AgentState::Ready(agent) = &self.agent else { return };
        let mut answer = agent.clone();
        if let Some(it) = envelope::object_at(&mut answer, &["agentCapabilities", "mcpCapabilities"]) {
            it.remove("acp");
        }
        if let Some(it) = envelope::object_at(&mut answer, &["agentCapabilities", "_meta", "castor"]) {
            // They need a client of their own.
            ["hostTools", "supportedHookPoints", "policy"].iter().for_each(|name| _ = it.remove(*name));
            it.insert("attach".to_owned(), Value::Bool(true));
        }
        let by = json!(self.name_client(to));
        if let Some(it) = envelope::object_at(&mut answer, &["_meta", "castor"]) {
            it.insert("serve".to_owned(), by);
        }
        self.send_with(to, |out| write::result(out, id, &answer));
    }

    /// A notification of the agent goes to those that it is for.
    fn spread(&mut self, line: &Bytes, method: &str, params: Option<&RawValue>) {
        let address = Address::of(params);
        match (method, &address) {
            ("$/cancel_request", Address { request_id: Some(id), .. }) => self.withdraw(id, line),
            (EVENT | STREAM_STARTED, Address { request_id: Some(RequestId::Number(number)), .. }) => {
                self.tell_asker(*number, method, params);
            }
            (EVENT, Address { subscription_id: Some(id), .. }) => {
                let subscriber = self.subscriptions.get(&(address.session(), id.clone().into_owned())).copied();
                subscriber.into_iter().for_each(|it| self.send(it, line.clone()));
            }
            (_, Address { session_id: Some(id), .. }) => {
                let attached = self.sessions.get(id.as_ref()).map(|it| it.attached.clone()).unwrap_or_default();
                attached.into_iter().for_each(|it| self.send(it, line.clone()));
            }
            _ => {
                let all: Vec<u64> = self.connections.keys().copied().collect();
                all.into_iter().for_each(|it| self.send(it, line.clone()));
            }
        }
    }

    /// What is about a request goes to the connection that sent it, under its own id.
    fn tell_asker(&mut self, number: i64, method: &str, params: Option<&RawValue>) {
        let Some((_, request)) = self.requests.iter().find(|it| it.0 == number) else { return };
        let Some(from) = request.from else { return };
        let wants = method != STREAM_STARTED || self.connections.get(&from).is_some_and(|it| it.streams);
        let params = envelope::with_field(params, "requestId", &request.id);
        if wants {
            self.send_with(from, |out| _ = write::notification(out, method, &params));
        }
    }

    /// A question of the agent goes to all that are attached, and to those that attach before it is answered.
    fn ask_all(&mut self, line: &Bytes, id: RequestId, method: &str, params: Option<&RawValue>) {
        let session = Address::of(params).session();
        let Some(shared) = self.sessions.get(&session) else {
            return self.tell_agent(|out| write::error(out, &id, &error::method_not_found(method, 1)));
        };
        // A call of a tool is no question to the user: the host knows which of its clients has the tool.
        let is_call = method == host_tools::CALL;
        let is_host = |it: &u64| self.connections.get(it).is_some_and(|it| it.is_host);
        let asked: Vec<u64> = shared.attached.iter().copied().filter(|it| !is_call || is_host(it)).collect();
        if (is_call && asked.is_empty()) || !(is_call || QUESTIONS.contains(&method)) {
            return self.tell_agent(|out| write::error(out, &id, &error::method_not_found(method, 1)));
        }
        asked.iter().for_each(|it| self.send(*it, line.clone()));
        self.questions.insert(id, SharedQuestion { session, asked, message: line.clone(), is_call });
    }

    /// The agent does not wait for the answer any more.
    fn withdraw(&mut self, id: &RequestId, line: &Bytes) {
        let asked = self.questions.remove(id).map(|it| it.asked).unwrap_or_default();
        asked.into_iter().for_each(|it| self.send(it, line.clone()));
    }

    /// Whatever waits for it is answered; sessions are on the disk, and can be loaded again.
    pub(super) fn end_agent(&mut self, why: &str) {
        let fix = "Send it again: the agent is started anew. Load a session again that was open.";
        let error = error::internal(why, fix);
        if let AgentState::Starting(waiting) = std::mem::replace(&mut self.agent, AgentState::Absent) {
            waiting.into_iter().for_each(|(from, id)| self.refuse(from, &id, &error));
        }
        let open: Vec<_> = self.requests.drain().collect();
        for (_, request) in open {
            let Some(from) = request.from else { continue };
            self.refuse(from, &request.id, &error);
        }
        for (id, question) in std::mem::take(&mut self.questions) {
            let message = envelope::message(|out| {
                _ = write::notification(out, "$/cancel_request", &json!({ "requestId": id }));
            });
            question.asked.into_iter().for_each(|it| self.send(it, message.clone()));
        }
        for (_, mut session) in std::mem::take(&mut self.sessions) {
            session.take_waiting().into_iter().for_each(|it| self.refuse(it.from, &it.id, &error));
        }
        self.connections.values_mut().for_each(|it| it.n_open = 0);
        self.subscriptions.clear();
    }
}
