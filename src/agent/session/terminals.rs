//! Terminals of the client that run castor's commands. The loop owns them, so that each is released.

use std::collections::BTreeMap;

use serde_json::Value;

use castor_base::ids::{EffectId, SessionId};
use castor_wire::acp::terminals::{self, KILL, RELEASE};

/// Open terminals by running call.
#[derive(Debug, Default)]
pub struct Terminals {
    open: BTreeMap<(SessionId, EffectId), Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalEnd {
    /// The command ended, or is lost.
    Release,
    /// The command is no longer wanted.
    Kill,
}

/// Method and params of a request to the client.
pub type Request = (&'static str, Value);

impl Terminals {
    pub fn count(&self) -> usize {
        self.open.len()
    }

    /// The client created a terminal. It is released here if the call that wanted it is over.
    pub fn register(&mut self, session: &SessionId, effect: EffectId, is_wanted: bool, result: &Value) -> Vec<Request> {
        let Some(terminal) = terminals::read_created(result) else { return Vec::new() };
        self.open.entry((session.clone(), effect)).or_default().push(terminal);
        if is_wanted { Vec::new() } else { self.release(session, effect, TerminalEnd::Kill) }
    }

    /// A call is over, and so are its terminals. What the call said at its end leaves before these requests.
    pub fn release(&mut self, session: &SessionId, effect: EffectId, how: TerminalEnd) -> Vec<Request> {
        let methods: &[&'static str] = match how {
            TerminalEnd::Release => &[RELEASE],
            TerminalEnd::Kill => &[KILL, RELEASE],
        };
        let given = self.open.remove(&(session.clone(), effect)).unwrap_or_default();
        let requests = |terminal: String| {
            let params = terminals::terminal_params(&session.root(), &terminal);
            methods.iter().map(move |method| (*method, params.clone()))
        };
        given.into_iter().flat_map(requests).collect()
    }

    /// All calls of a session are over.
    pub fn release_all(&mut self, session: &SessionId) -> Vec<Request> {
        let ids: Vec<EffectId> = self.open.keys().filter(|(it, _)| it == session).map(|(_, effect)| *effect).collect();
        ids.into_iter().flat_map(|it| self.release(session, it, TerminalEnd::Kill)).collect()
    }
}
