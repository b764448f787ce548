//! Session recovery from its log, after a panic or a failed write.

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        server::{
            flush,
            state::{OutboxItem, State},
        },
        session::sessions,
    },
    base::ids::SessionId,
    wire::jsonrpc::{open_requests::Ticket, write},
};

impl State {
    /// The session as its log has it. Whatever of it the client still waits for ends with the error.
    pub fn refold(&mut self, id: &SessionId, error: &ErrorObjectOwned) {
        self.tasks.abort_session(id, self.now.unix_ms);
        self.outbox.items.retain(|it| !matches!(it, OutboxItem::Acts(of, _) if of == id));
        self.interrupt_view(id, error.message());
        let requests = self.terminals.release_all(id);
        self.queue_requests(requests);
        self.tasks.traces.forget_turn(id);
        let open: Vec<Ticket> = self.prompts_of(id);
        for ticket in open {
            self.tasks.traces.end_request(ticket, Some(error.code()));
            if let Some((request, _)) = self.requests.complete(ticket) {
                self.queue_lines(|lines| write::error(lines, &request, error));
            }
        }
        let Some(desk) = self.sessions.get(id).map(|it| it.resources.clone()) else { return };
        let record = sessions::reload_record(self, &desk);
        let Some(live) = self.sessions.get_mut(id) else { return };
        match record {
            Some(record) => live.session.replace_record(record),
            None => {
                let live = self.sessions.remove(id);
                self.tasks.mcp.release(id);
                // A log that took nothing, not even that there is a session, is none.
                if live.is_some_and(|it| it.log.is_empty()) {
                    _ = self.tasks.store.delete(id);
                }
            }
        }
    }

    /// Calls and questions that the client knows of. The log has no end of them, and a load would show them as ended.
    fn interrupt_view(&mut self, id: &SessionId, why: &str) {
        let mut lines = Vec::new();
        flush::withdraw_requests(self, |it| it.is_of_session(id), &mut lines);
        if let Some(live) = self.sessions.get_mut(id) {
            live.view.interrupt(why, &mut lines);
        }
        self.queue_lines(|it| it.append(&mut lines));
    }
}
