//! The client's terminals that run commands of ours. The loop owns them, so that each is released whatever happens.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    app::state::{Asked, State},
    base::ids::{EffectId, SessionId},
    wire::{
        acp::terminals::{self, KILL, RELEASE},
        jsonrpc::write,
    },
};

/// Which terminals are open for which running call.
#[derive(Debug, Default)]
pub struct Terminals {
    open: BTreeMap<(SessionId, EffectId), Vec<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The command ended, or is lost.
    Release,
    /// The command is no longer wanted.
    Kill,
}

/// The client created a terminal. The call that wanted it may be over by now: then nobody else would release it.
pub fn created(state: &mut State, session: &SessionId, effect: EffectId, result: &Value) {
    let Some(terminal) = terminals::read_created(result) else { return };
    let open = state.terminals.open.entry((session.clone(), effect)).or_default();
    open.push(terminal);
    if !state.world.is_running(session, effect) {
        give_back(state, session, effect, How::Kill);
    }
}

/// A call is over, and so are its terminals. What the call said at its end leaves before this.
pub fn give_back(state: &mut State, session: &SessionId, effect: EffectId, how: How) {
    for terminal in state.terminals.open.remove(&(session.clone(), effect)).unwrap_or_default() {
        if how == How::Kill {
            tell(state, KILL, session, &terminal);
        }
        tell(state, RELEASE, session, &terminal);
    }
}

/// All calls of a session are over.
pub fn give_all_back(state: &mut State, session: &SessionId) {
    let effects: Vec<EffectId> =
        state.terminals.open.keys().filter(|(it, _)| it == session).map(|(_, effect)| *effect).collect();
    for effect in effects {
        give_back(state, session, effect, How::Kill);
    }
}

/// A request whose answer changes nothing.
fn tell(state: &mut State, method: &str, session: &SessionId, terminal: &str) {
    let id = state.asked.open(Asked::Nothing);
    let params = terminals::about(session, terminal);
    state.say_lines(|lines| _ = write::request(lines, id, method, &params));
}
