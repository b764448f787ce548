//! Annotations of a session: clients make and change them, and the session's own state keeps them.

use super::{SessionDesk, TreeAction};
use crate::ahp::Next;
use castor_wire::acp::client::AgentRequest;

/// The key under which the session keeps them.
pub const STATE_KEY: &str = "ahp_annotations";

/// A client changes the annotations.
pub fn annotate(desk: &mut SessionDesk<'_>, from: u64, act: TreeAction) {
    let trees = &mut desk.hosted.trees;
    // What does not change anything is of no interest to others.
    let before = trees.annotations.clone();
    let is_change = trees.reduce(&act);
    let after = std::mem::replace(&mut trees.annotations, before);
    if !is_change {
        return desk.reject(from, act, "there is no such annotation");
    }
    let id = desk.hosted.id.as_str();
    desk.clients.ask(id, Next::apply(from, act), &AgentRequest::set_state(id, STATE_KEY, &after));
}
