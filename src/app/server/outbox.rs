//! The outbox: lines, effects of sessions and requests that leave at the end of the loop turn.

use crate::{
    app::server::event::EditorRequest,
    base::ids::SessionId,
    engine::step::{Act, StepOutput},
    wire::{acp::auth_status::AuthStatus, jsonrpc::message::RequestId},
};

/// In order.
#[derive(Default)]
pub struct Outbox {
    pub items: Vec<OutboxItem>,
    /// What follows the answer to the request at hand.
    pub after_answer: Vec<u8>,
    /// As the client was told last; `None`: it never asked.
    pub told_auth_status: Option<AuthStatus>,
}

impl Outbox {
    pub fn queue_acts(&mut self, id: &SessionId, out: StepOutput) {
        match self.items.last_mut() {
            Some(OutboxItem::Acts(last, acts)) if last == id => acts.extend(out.acts),
            _ if out.acts.is_empty() => (),
            _ => self.items.push(OutboxItem::Acts(id.clone(), out.acts)),
        }
    }

    pub fn queue_lines(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        match self.items.last_mut() {
            Some(OutboxItem::Lines(lines)) => write(lines),
            _ => {
                let mut lines = Vec::new();
                write(&mut lines);
                self.items.push(OutboxItem::Lines(lines));
            }
        }
    }
}

/// Something to say: ready lines, acts of a session that are logged first, or a request.
pub enum OutboxItem {
    /// Ready lines.
    Lines(Vec<u8>),
    /// Lines that begin a sub-agent: they go before all that it says.
    Announcement(SessionId, Vec<u8>),
    /// A question of that session was answered. Only a sub-agent that is still there goes back to work.
    QuestionAnswered(SessionId),
    /// Acts of a session; facts are logged first.
    Acts(SessionId, Vec<Act>),
    /// The answer to a setter, in ready lines; an error, if the log did not take what was set.
    Answer { session: SessionId, request: RequestId, lines: Vec<u8> },
    /// A task's request to the editor, if the task is still wanted by then.
    Editor(EditorRequest),
}

impl OutboxItem {
    pub fn has_facts(&self) -> bool {
        matches!(self, Self::Acts(_, acts) if acts.iter().any(|it| matches!(it, Act::Log(_))))
    }
}
