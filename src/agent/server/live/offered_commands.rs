//! Available slash commands: tells the client about them after a session starts, and when they change.

use crate::server::outbox::Outbox;
use crate::session::live_session::LiveSession;
use castor_engine::commands::file_commands::OfferedCommand;
use castor_wire::acp::offered_commands;

/// Goes out after the response at hand: clients drop updates of sessions that they do not know yet.
pub fn offer(live: &mut LiveSession, outbox: &mut Outbox) {
    let mut lines = Vec::new();
    tell(live, &mut lines);
    outbox.after_answer.extend(lines);
}

/// Tells the client if it knows another list.
pub fn update(live: &mut LiveSession, outbox: &mut Outbox) {
    let id = live.resources.session.clone();
    outbox.queue_lines(Some(&id), |lines| append_update(live, lines));
}

/// The same, among these lines.
pub fn append_update(live: &mut LiveSession, lines: &mut Vec<u8>) {
    if live.commands.as_ref().is_some_and(|told| *told != live.session.commands()) {
        tell(live, lines);
    }
}

fn tell(live: &mut LiveSession, lines: &mut Vec<u8>) {
    let now = live.session.commands();
    let all = now.iter().map(OfferedCommand::words);
    offered_commands::commands(&live.resources.session, live.profile.features.version, all, lines);
    live.commands = Some(now);
}
