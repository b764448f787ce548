//! Messages of connections: requests go to the agent under other numbers, and answers come back.

use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};

use super::{AgentState, Errand, ForwardedRequest, Hub, HubCall, HubClient, envelope, envelope::Address};
use castor_wire::{
    acp::own::attach::ActingClient,
    jsonrpc::{
        error,
        message::{self, InvalidMessage, Message, RequestId},
        write,
    },
};

type Route = fn(&mut Hub, HubCall<'_>);

/// Requests that the hub alone sends: a client could say by them that another one did something.
const OF_HUB: &[&str] = &["_castor/session/client_act", "_castor/session/sleep"];

/// Requests that change who sees what. Others are passed on.
const ROUTES: &[(&str, Route)] = &[
    ("initialize", Hub::initialize),
    ("session/new", Hub::open_session),
    ("session/fork", Hub::open_session),
    ("session/load", |hub, call| hub.load_session(call, true)),
    ("session/resume", |hub, call| hub.load_session(call, false)),
    ("session/close", Hub::close_session),
    ("session/delete", Hub::end_session),
    // The agent closes it first.
    ("session/archive", Hub::end_session),
    ("session/prompt", Hub::prompt),
    ("_castor/session/attach", Hub::attach_session),
    ("_castor/session/detach", Hub::detach_session),
    ("_castor/session/subscribe", |hub, call| {
        let errand = Errand::Subscribe(call.session.clone());
        hub.pass_on(call, errand);
    }),
    ("_castor/session/unsubscribe", |hub, call| {
        let id = Address::of(call.params).subscription_id.unwrap_or_default().into_owned();
        let errand = Errand::Unsubscribe(call.session.clone(), id);
        hub.pass_on(call, errand);
    }),
];

/// The requests that the hub looks at.
pub fn method_names() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().map(|it| it.0)
}

impl Hub {
    pub(super) fn take_message(&mut self, from: u64, text: &[u8]) {
        match message::parse(text) {
            Ok(Message::Request { id, method, params }) => {
                let params = params.as_deref();
                let session = Address::of(params).session();
                self.take_request(HubCall { from, id, method: &method, params, session });
            }
            Ok(Message::Notification { method, params }) => self.take_notice(from, &method, params.as_deref()),
            Ok(Message::Response { id, outcome }) => self.take_answer(from, id, outcome),
            Err(InvalidMessage::Answer { id, error }) => self.refuse(from, &id, &error),
            Err(InvalidMessage::Ignore(_)) => (),
        }
    }

    pub(super) fn take_request(&mut self, call: HubCall<'_>) {
        let Some(client) = self.connections.get(&call.from) else { return };
        if client.name.is_none() && call.method != "initialize" {
            let why = format!("{} came before initialize", call.method);
            return self.refuse(call.from, &call.id, &error::invalid_request(&why, "Call initialize first."));
        }
        if client.n_open >= self.limits.requests && !client.is_host {
            let why = format!("{} requests of this connection have no answer yet", client.n_open);
            return self.refuse(call.from, &call.id, &error::busy(&why, "Wait for some of them, then send it again."));
        }
        if OF_HUB.contains(&call.method) {
            return self.refuse(call.from, &call.id, &error::method_not_found(call.method, 1));
        }
        if !client.is_host && envelope::brings_tools(call.params) {
            let why = "_meta.castor: tools and hostToolExecution need an agent of your own";
            return self.refuse(call.from, &call.id, &error::invalid_params(why));
        }
        let Some(call) = self.wait_for_wake(call) else { return };
        match ROUTES.iter().find(|it| it.0 == call.method) {
            Some((_, route)) => route(self, call),
            None => self.pass_on(call, Errand::Nothing),
        }
    }

    fn take_notice(&mut self, from: u64, method: &str, params: Option<&RawValue>) {
        match method {
            "session/cancel" => {
                let session = Address::of(params).session();
                if self.sessions.get(&session).is_some_and(|it| !it.is_awake()) {
                    return self.cancel_waiting_prompts(&session);
                }
                let by = self.name_client(from);
                self.note_act(&session, json!({ "kind": "cancel", "by": by }));
                self.tell_agent(|out| _ = write::notification(out, method, &params));
            }
            "$/cancel_request" => {
                let Some(wanted) = Address::of(params).request_id else { return };
                if self.cancel_waiting(from, &wanted) {
                    return;
                }
                let is_it = |it: &ForwardedRequest| it.from == Some(from) && it.id == wanted;
                let numbers: Vec<i64> = self.requests.iter().filter(|it| is_it(it.1)).map(|it| it.0).collect();
                for number in numbers {
                    self.tell_agent(|out| _ = write::notification(out, method, &json!({ "requestId": number })));
                }
            }
            // As the protocol says of what is not known.
            _ => (),
        }
    }

    fn pass_on(&mut self, call: HubCall<'_>, errand: Errand) {
        let HubCall { from, id, method, params, session } = call;
        self.touch(&session);
        self.ask_agent(ForwardedRequest { from: Some(from), id, errand }, method, &params);
    }

    fn initialize(&mut self, call: HubCall<'_>) {
        let mut client = HubClient::read(call.params);
        if let Some(it) = self.connections.get(&call.from) {
            (client.n_open, client.is_host) = (it.n_open, it.is_host);
        }
        self.connections.insert(call.from, client);
        match &mut self.agent {
            AgentState::Absent => {
                self.greet_agent();
                if let AgentState::Starting(waiting) = &mut self.agent {
                    waiting.push((call.from, call.id));
                }
            }
            AgentState::Starting(waiting) if waiting.iter().any(|it| it.0 == call.from) => {
                let why = error::invalid_request("initialize came twice", "Wait for the answer to the first one.");
                self.refuse(call.from, &call.id, &why);
            }
            AgentState::Starting(waiting) => waiting.push((call.from, call.id)),
            AgentState::Ready(_) => self.introduce_agent(call.from, &call.id),
        }
    }

    fn open_session(&mut self, call: HubCall<'_>) {
        if self.check_opening(&call) {
            let place = envelope::place_of(call.params);
            self.pass_on(call, Errand::Open(place));
        }
    }

    /// A session that is open already is joined: its log, and what runs in it, stay as they are.
    fn load_session(&mut self, call: HubCall<'_>, with_history: bool) {
        if self.sessions.contains_key(&call.session) {
            return self.join_session(call, with_history);
        }
        if !self.check_opening(&call) {
            return;
        }
        // Its history is told before the answer.
        let (session, from) = (call.session.clone(), call.from);
        self.attach(&session, from);
        if let Some(it) = self.sessions.get_mut(&session) {
            it.place = envelope::place_of(call.params);
        }
        self.pass_on(call, Errand::Load(session));
    }

    fn attach_session(&mut self, call: HubCall<'_>) {
        let with_history =
            envelope::read::<Map<String, Value>>(call.params).get("history") != Some(&Value::Bool(false));
        self.join_session(call, with_history);
    }

    fn join_session(&mut self, call: HubCall<'_>, with_history: bool) {
        let params = json!({ "sessionId": call.session, "history": with_history });
        let errand = Errand::Attach(call.session);
        let request = ForwardedRequest { from: Some(call.from), id: call.id, errand };
        self.ask_agent(request, "_castor/session/attach", &params);
    }

    fn detach_session(&mut self, call: HubCall<'_>) {
        match self.detach(&call.session, call.from) {
            true => self.send_with(call.from, |out| write::result(out, &call.id, &json!({}))),
            false => self.refuse(call.from, &call.id, &error::session_not_found(&call.session)),
        }
    }

    /// The last one that is attached closes it; others leave it open for the rest. A host opens it again otherwise, and
    /// must not believe that it is closed.
    fn close_session(&mut self, call: HubCall<'_>) {
        let others = self.sessions.get(&call.session).is_some_and(|it| it.attached.iter().any(|it| *it != call.from));
        match others {
            true if self.connections.get(&call.from).is_some_and(|it| it.is_host) => {
                let why = error::busy("other programs have the session open", "Close it there first.");
                self.refuse(call.from, &call.id, &why);
            }
            true => self.detach_session(call),
            false if self.sessions.get(&call.session).is_some_and(|it| !it.is_awake()) => {
                self.forget(&call.session);
                self.send_with(call.from, |out| write::result(out, &call.id, &json!({})));
            }
            false => {
                let errand = Errand::End(call.session.clone());
                self.pass_on(call, errand);
            }
        }
    }

    fn end_session(&mut self, call: HubCall<'_>) {
        let errand = Errand::End(call.session.clone());
        self.pass_on(call, errand);
    }

    /// Others see what was asked, and by whom.
    fn prompt(&mut self, call: HubCall<'_>) {
        if self.sessions.contains_key(&call.session) {
            self.attach(&call.session, call.from);
        }
        let by = self.name_client(call.from);
        let blocks = envelope::read::<PromptWords>(call.params).prompt;
        let n = blocks.len();
        for content in blocks {
            let update = json!({ "sessionUpdate": "user_message_chunk", "content": content });
            let meta = json!({ "castor": { "by": by, "blocks": n } });
            let params = json!({ "sessionId": call.session, "update": update, "_meta": meta });
            self.tell_others(&call.session, Some(call.from), "session/update", &params);
        }
        if let Some(it) = self.sessions.get_mut(&call.session) {
            it.n_prompts += 1;
        }
        self.note_act(&call.session, json!({ "kind": "prompt", "by": by }));
        let errand = Errand::Prompt(call.session.clone());
        self.pass_on(call, errand);
    }

    /// The agent writes down who did it.
    pub(super) fn note_act(&mut self, session: &str, act: Value) {
        let request = ForwardedRequest { from: None, id: RequestId::Null, errand: Errand::Nothing };
        self.ask_agent(request, "_castor/session/client_act", &json!({ "sessionId": session, "act": act }));
    }

    fn check_opening(&mut self, call: &HubCall<'_>) -> bool {
        let n = self.sessions.len();
        if n >= self.limits.sessions {
            let why = format!("{n} sessions are open, and no more may be");
            self.refuse(call.from, &call.id, &error::busy(&why, "Close one of them first."));
            return false;
        }
        let servers = envelope::read::<WantedServers>(call.params).mcp_servers;
        if servers.iter().any(|it| it.kind.as_deref() == Some("acp")) {
            let why = "mcpServers: a server of type acp needs a client of its own; send one of type http or stdio";
            self.refuse(call.from, &call.id, &error::invalid_params(why));
            return false;
        }
        true
    }

    /// Who it is, for others and for the log.
    pub(super) fn name_client(&self, number: u64) -> ActingClient {
        let name = self.connections.get(&number).and_then(|it| it.name.clone());
        ActingClient { principal: self.principal.clone(), connection: number, client: name.unwrap_or_default() }
    }
}

#[derive(Default, Deserialize)]
struct PromptWords {
    #[serde(default)]
    prompt: Vec<Value>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WantedServers {
    #[serde(default)]
    mcp_servers: Vec<WantedServer>,
}

#[derive(Deserialize)]
struct WantedServer {
    #[serde(rename = "type", default)]
    kind: Option<String>,
}

impl HubClient {
    fn read(params: Option<&RawValue>) -> Self {
        let params: Value = envelope::read(params);
        let name = params.pointer("/clientInfo/name").and_then(Value::as_str).unwrap_or_default();
        let streams = params.pointer("/clientCapabilities/_meta/castor/streams") == Some(&Value::Bool(true));
        Self { name: Some(name.to_owned()), streams, is_host: false, n_open: 0 }
    }
}
