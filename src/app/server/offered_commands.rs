//! Available slash commands: tells the client about them after a session starts, and when they change.

use super::outbox::Outbox;
use crate::{app::session::live_session::LiveSession, wire::acp::offered_commands};

/// Goes out after the response at hand: clients drop updates of sessions that they do not know yet.
pub fn offer(live: &mut LiveSession, outbox: &mut Outbox) {
    let mut lines = Vec::new();
    tell(live, &mut lines);
    outbox.after_answer.extend(lines);
}

/// Tells the client if it knows another list.
pub fn update(live: &mut LiveSession, outbox: &mut Outbox) {
    let now = live.session.commands().map(|it| it.name);
    if live.commands.as_ref().is_some_and(|told| !now.eq(told.iter().copied())) {
        outbox.queue_lines(|lines| tell(live, lines));
    }
}

fn tell(live: &mut LiveSession, lines: &mut Vec<u8>) {
    let all = live.session.commands();
    let all = all.map(|it| (it.name, it.description, it.hint));
    offered_commands::commands(&live.resources.session, live.profile.features.version, all, lines);
    live.commands = Some(live.session.commands().map(|it| it.name).collect());
}
