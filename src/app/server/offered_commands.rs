//! Available slash commands: tells the client about them after a session starts, and when they change.

use crate::{
    app::{server::state::State, session::live_session::LiveSession},
    base::ids::SessionId,
    wire::acp::updates,
};

/// Goes out after the response at hand: clients drop updates of sessions that they do not know yet.
pub fn offer(state: &mut State, id: &SessionId) {
    let Some(live) = state.sessions.get_mut(id) else { return };
    let mut lines = Vec::new();
    tell(live, id, &mut lines);
    state.outbox.after_answer.extend(lines);
}

/// Tells the client if it knows another list.
pub fn update(state: &mut State, id: &SessionId) {
    let Some(live) = state.sessions.get_mut(id) else { return };
    let now = live.session.commands().map(|it| it.name);
    if live.commands.as_ref().is_none_or(|told| now.eq(told.iter().copied())) {
        return;
    }
    let mut lines = Vec::new();
    tell(live, id, &mut lines);
    state.queue_lines(|it| it.extend(lines));
}

fn tell(live: &mut LiveSession, id: &SessionId, lines: &mut Vec<u8>) {
    let all = live.session.commands();
    updates::commands(id, all.map(|it| (it.name, it.description, it.hint)), lines);
    live.commands = Some(live.session.commands().map(|it| it.name).collect());
}
