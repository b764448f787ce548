//! Sleep of idle sessions: the agent lets go of those that were not used for long, and opens one again when it is called.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json, value::RawValue};

use super::{AgentAnswer, Errand, ForwardedRequest, Hub, HubCall, envelope};
use castor_wire::jsonrpc::{
    error,
    message::{RequestId, RpcError},
    write,
};

/// One that was just used stays awake for a moment, however many there are.
const SETTLE_MS: u64 = 1000;
/// How long one is left alone that the agent did not let go.
const STAY_MS: u64 = 60_000;
/// Requests for which a session may stay asleep.
const LEAVE_ASLEEP: &[&str] =
    &["session/close", "session/delete", "session/fork", "_castor/session/detach", "_castor/session/events"];

/// Whether the agent has a session in its memory.
#[derive(Default)]
pub enum Wakefulness {
    #[default]
    Awake,
    /// The agent was asked to let it go. What was asked of it since waits.
    FallingAsleep(Vec<WaitingCall>),
    Asleep,
    /// It is being opened again.
    Waking(Vec<WaitingCall>),
}

impl Wakefulness {
    /// Takes what waits and is of this kind.
    fn remove_waiting(&mut self, is_it: impl Fn(&WaitingCall) -> bool) -> Vec<WaitingCall> {
        match self {
            Self::FallingAsleep(all) | Self::Waking(all) => all.extract_if(.., |it| is_it(it)).collect(),
            Self::Awake | Self::Asleep => Vec::new(),
        }
    }
}

/// A request of a connection that waits until its session is awake.
pub struct WaitingCall {
    pub from: u64,
    pub id: RequestId,
    method: String,
    params: Option<Box<RawValue>>,
}

impl Hub {
    /// The call, if its session can take it now.
    pub(super) fn wait_for_wake<'a>(&mut self, call: HubCall<'a>) -> Option<HubCall<'a>> {
        let Some(session) = self.sessions.get_mut(&call.session) else { return Some(call) };
        let may_sleep_on = LEAVE_ASLEEP.contains(&call.method);
        match &mut session.wakefulness {
            Wakefulness::Awake => return Some(call),
            Wakefulness::Asleep if may_sleep_on => return Some(call),
            _ => (),
        }
        let HubCall { from, id, method, params, session: name } = call;
        let waiting = WaitingCall { from, id, method: method.to_owned(), params: params.map(RawValue::to_owned) };
        session.last_used_ms = self.now_ms;
        match &mut session.wakefulness {
            Wakefulness::FallingAsleep(all) | Wakefulness::Waking(all) => all.push(waiting),
            _ => self.wake(&name, vec![waiting]),
        }
        self.connections.entry(from).and_modify(|it| it.n_open += 1);
        None
    }

    fn wake(&mut self, name: &str, waiting: Vec<WaitingCall>) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        let mut params: Map<String, Value> = serde_json::from_str(&session.place).unwrap_or_default();
        params.insert("sessionId".to_owned(), name.into());
        session.wakefulness = Wakefulness::Waking(waiting);
        let request = ForwardedRequest { from: None, id: RequestId::Null, errand: Errand::Wake(name.to_owned()) };
        self.ask_agent(request, "session/resume", &params);
    }

    /// The agent answers whether it has let a session go.
    pub(super) fn settle_sleep(&mut self, name: &str, answer: &AgentAnswer) {
        let stay_until_ms = self.now_ms + STAY_MS;
        let Some(session) = self.sessions.get_mut(name) else { return };
        let Wakefulness::FallingAsleep(waiting) = std::mem::take(&mut session.wakefulness) else { return };
        let said: Map<String, Value> = envelope::read(answer.as_deref().ok());
        let is_asleep = said.get("asleep") == Some(&Value::Bool(true));
        match (is_asleep, waiting.is_empty()) {
            (true, true) => session.wakefulness = Wakefulness::Asleep,
            (true, false) => self.wake(name, waiting),
            (false, _) => {
                session.stay_until_ms = stay_until_ms;
                self.take_up(waiting);
            }
        }
    }

    /// The agent has opened a session again, or says why it cannot.
    pub(super) fn settle_wake(&mut self, name: &str, answer: AgentAnswer) {
        let Some(session) = self.sessions.get_mut(name) else { return };
        let Wakefulness::Waking(waiting) = std::mem::take(&mut session.wakefulness) else { return };
        match answer {
            Ok(_) => self.take_up(waiting),
            // The next one that calls it tries again: another castor may have had it for a while.
            Err(why) => {
                session.wakefulness = Wakefulness::Asleep;
                self.refuse_waiting(waiting, &why);
            }
        }
    }

    /// One of a connection's requests waits no more.
    pub(super) fn end_waiting(&mut self, from: u64) {
        self.connections.entry(from).and_modify(|it| it.n_open = it.n_open.saturating_sub(1));
    }

    fn take_up(&mut self, waiting: Vec<WaitingCall>) {
        for WaitingCall { from, id, method, params } in waiting {
            self.end_waiting(from);
            let params = params.as_deref();
            let session = envelope::Address::of(params).session();
            self.take_request(HubCall { from, id, method: &method, params, session });
        }
    }

    fn refuse_waiting(&mut self, waiting: Vec<WaitingCall>, why: &RpcError) {
        for WaitingCall { from, id, .. } in waiting {
            self.end_waiting(from);
            self.answer(from, &id, &Err(why.clone()));
        }
    }

    /// A request that waits is not wanted any more. Whether it was there.
    pub(super) fn cancel_waiting(&mut self, from: u64, id: &RequestId) -> bool {
        let is_it = |it: &WaitingCall| it.from == from && it.id == *id;
        let cancelled =
            self.sessions.values_mut().map(|it| it.wakefulness.remove_waiting(is_it)).find(|it| !it.is_empty());
        let Some(cancelled) = cancelled else { return false };
        for WaitingCall { from, id, .. } in cancelled {
            self.end_waiting(from);
            self.refuse(from, &id, &error::cancelled());
        }
        true
    }

    /// Nothing runs in a session that is not awake, but prompts may wait for it.
    pub(super) fn cancel_waiting_prompts(&mut self, session: &str) {
        let Some(it) = self.sessions.get_mut(session) else { return };
        for WaitingCall { from, id, .. } in it.wakefulness.remove_waiting(|it| it.method == "session/prompt") {
            self.end_waiting(from);
            self.send_with(from, |out| write::result(out, &id, &json!({ "stopReason": "cancelled" })));
        }
    }

    /// Idle sessions beyond the number that stays awake go to sleep, those first that were not used for longest. So do
    /// all that were not used for very long.
    pub(super) fn put_to_sleep(&mut self) {
        let (now, limits) = (self.now_ms, self.limits);
        let watched: BTreeSet<&str> = self.subscriptions.keys().map(|it| it.0.as_str()).collect();
        let asked: BTreeSet<&str> = self.questions.values().map(|it| it.session.as_str()).collect();
        let is_idle = |name: &str| !watched.contains(name) && !asked.contains(name);
        let awake = self.sessions.iter().filter(|(name, it)| it.is_idle_awake() && is_idle(name));
        let mut awake: Vec<_> = awake.map(|(name, it)| (it.last_used_ms, it.stay_until_ms, name)).collect();
        awake.sort_unstable();
        let n_beyond = awake.len().saturating_sub(limits.awake);
        let is_due = |at: usize, used_ms: u64| {
            let idle_ms = now.saturating_sub(used_ms);
            idle_ms >= limits.sleep_ms || at < n_beyond && idle_ms >= SETTLE_MS
        };
        let due = awake.iter().enumerate().filter(|(at, (used, stay, _))| is_due(*at, *used) && *stay <= now);
        let due: Vec<String> = due.map(|(_, (.., name))| (*name).clone()).collect();
        for name in due {
            if let Some(it) = self.sessions.get_mut(&name) {
                it.wakefulness = Wakefulness::FallingAsleep(Vec::new());
            }
            let params = json!({ "sessionId": name });
            let request = ForwardedRequest { from: None, id: RequestId::Null, errand: Errand::Sleep(name) };
            self.ask_agent(request, "_castor/session/sleep", &params);
        }
    }
}
