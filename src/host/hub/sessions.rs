//! Sessions of a hub: which connections are attached to which, and how long one stays open without any.

use serde_json::json;

use super::{
    Errand, ForwardedRequest, Hub,
    sleep::{WaitingCall, Wakefulness},
};
use castor_wire::{
    acp::own::attach::ClientsNotice,
    jsonrpc::{error, message::RequestId, write},
};

/// A session that is open in the agent.
#[derive(Default)]
pub struct SharedSession {
    /// Connections that see what happens in it, in the order in which they came.
    pub attached: Vec<u64>,
    /// Prompts without an answer.
    pub n_prompts: usize,
    pub last_used_ms: u64,
    /// By what it is opened again.
    pub place: Box<str>,
    pub wakefulness: Wakefulness,
    /// Until then it is not put to sleep.
    pub stay_until_ms: u64,
}

impl SharedSession {
    pub fn is_awake(&self) -> bool {
        matches!(self.wakefulness, Wakefulness::Awake)
    }

    pub fn is_idle_awake(&self) -> bool {
        self.is_awake() && self.n_prompts == 0
    }

    /// What waits for it, which is nobody's from now on.
    pub fn take_waiting(&mut self) -> Vec<WaitingCall> {
        match std::mem::take(&mut self.wakefulness) {
            Wakefulness::FallingAsleep(all) | Wakefulness::Waking(all) => all,
            Wakefulness::Awake | Wakefulness::Asleep => Vec::new(),
        }
    }
}

impl Hub {
    pub(super) fn touch(&mut self, session: &str) {
        if let Some(it) = self.sessions.get_mut(session) {
            it.last_used_ms = self.now_ms;
        }
    }

    /// A new session. Where the connection that asked for it is gone, it is open all the same.
    pub(super) fn open(&mut self, session: &str, place: Box<str>, from: Option<u64>) {
        let it = self.sessions.entry(session.to_owned()).or_default();
        (it.last_used_ms, it.place) = (self.now_ms, place);
        if let Some(from) = from {
            self.attach(session, from);
        }
    }

    /// From now on the connection sees what happens in the session.
    pub(super) fn attach(&mut self, session: &str, number: u64) {
        if !self.connections.contains_key(&number) {
            return;
        }
        let now_ms = self.now_ms;
        let it = self.sessions.entry(session.to_owned()).or_default();
        it.last_used_ms = now_ms;
        if !it.attached.contains(&number) {
            it.attached.push(number);
            self.tell_who_is_there(session, Some(number));
        }
    }

    /// Questions without an answer are put to one that came later.
    pub(super) fn ask_again(&mut self, session: &str, number: u64) {
        let mut messages = Vec::new();
        for it in self.questions.values_mut().filter(|it| it.is_open_to(session, number)) {
            it.asked.push(number);
            messages.push(it.message.clone());
        }
        messages.into_iter().for_each(|it| self.send(number, it));
    }

    /// Tells whether it was attached. The session goes on.
    pub(super) fn detach(&mut self, session: &str, number: u64) -> bool {
        let now_ms = self.now_ms;
        let Some(it) = self.sessions.get_mut(session).filter(|it| it.attached.contains(&number)) else { return false };
        it.attached.retain(|it| *it != number);
        it.last_used_ms = now_ms;
        self.questions.values_mut().filter(|it| it.session == session).for_each(|it| {
            it.asked.retain(|it| *it != number);
        });
        self.tell_who_is_there(session, None);
        true
    }

    fn tell_who_is_there(&mut self, session: &str, but: Option<u64>) {
        let attached = self.sessions.get(session).map(|it| it.attached.clone()).unwrap_or_default();
        if attached.iter().all(|it| Some(*it) == but) {
            return;
        }
        let clients = attached.iter().map(|it| self.name_client(*it)).collect();
        self.tell_others(session, but, "_castor/session/clients", &ClientsNotice { session_id: session, clients });
    }

    pub(super) fn disconnect(&mut self, number: u64) {
        self.connections.remove(&number);
        let its = self.sessions.iter().filter(|it| it.1.attached.contains(&number));
        let ids: Vec<String> = its.map(|it| it.0.clone()).collect();
        ids.iter().for_each(|it| _ = self.detach(it, number));
        let its = self.subscriptions.iter().filter(|it| *it.1 == number).map(|it| it.0.clone());
        for (session, id) in its.collect::<Vec<_>>() {
            self.unsubscribe(&session, &id);
        }
        // Prompts go on; what only it would hear does not.
        let is_its = |it: &ForwardedRequest| it.from == Some(number) && matches!(it.errand, Errand::Nothing);
        let open: Vec<i64> = self.requests.iter().filter(|it| is_its(it.1)).map(|it| it.0).collect();
        for request in open {
            self.tell_agent(|out| _ = write::notification(out, "$/cancel_request", &json!({ "requestId": request })));
        }
    }

    pub(super) fn unsubscribe(&mut self, session: &str, id: &str) {
        self.subscriptions.remove(&(session.to_owned(), id.to_owned()));
        let request = ForwardedRequest { from: None, id: RequestId::Null, errand: Errand::Nothing };
        let params = json!({ "sessionId": session, "subscriptionId": id });
        self.ask_agent(request, "_castor/session/unsubscribe", &params);
    }

    /// The session is no longer open.
    pub(super) fn forget(&mut self, session: &str) {
        if let Some(mut it) = self.sessions.remove(session) {
            for WaitingCall { from, id, .. } in it.take_waiting() {
                self.end_waiting(from);
                self.refuse(from, &id, &error::session_not_found(session));
            }
        }
        self.subscriptions.retain(|it, _| it.0 != session);
        self.questions.retain(|_, it| it.session != session);
    }

    pub(super) fn forget_if_unused(&mut self, session: &str) {
        if self.sessions.get(session).is_some_and(|it| it.attached.is_empty() && it.n_prompts == 0) {
            self.forget(session);
        }
    }

    /// Sessions that nobody looks at and in which nothing happens are closed; their logs stay.
    pub(super) fn close_idle_sessions(&mut self) {
        let limit = self.limits.idle_ms;
        let is_idle = |it: &SharedSession| {
            it.attached.is_empty() && it.n_prompts == 0 && self.now_ms.saturating_sub(it.last_used_ms) >= limit
        };
        let asks = |id: &String| self.questions.values().any(|it| it.session == *id);
        let idle: Vec<String> =
            self.sessions.iter().filter(|(id, it)| is_idle(it) && !asks(id)).map(|(id, _)| id.clone()).collect();
        for session in idle {
            let is_asleep = self.sessions.get(&session).is_some_and(|it| matches!(it.wakefulness, Wakefulness::Asleep));
            self.forget(&session);
            if is_asleep {
                continue;
            }
            let request = ForwardedRequest { from: None, id: RequestId::Null, errand: Errand::Nothing };
            self.ask_agent(request, "session/close", &json!({ "sessionId": session }));
        }
    }
}
