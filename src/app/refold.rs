//! A session as its log has it, after what went wrong with it: a panic, a log that could not be written.

use jsonrpsee::types::ErrorObjectOwned;

use crate::{
    app::{
        flush, sessions,
        state::{Said, State},
    },
    base::ids::SessionId,
    wire::jsonrpc::{queue::Ticket, write},
};

impl State {
    /// The session as its log has it. Whatever of it the client still waits for ends with the error.
    pub fn refold(&mut self, id: &SessionId, error: &ErrorObjectOwned) {
        self.world.abort_session(id, self.now.unix_ms);
        self.outbox.said.retain(|it| !matches!(it, Said::Acts(of, _) if of == id));
        self.end_shown(id, error.message());
        let requests = self.terminals.give_all_back(id);
        self.tell(requests);
        self.world.traces.forget_turn(id);
        let open: Vec<Ticket> = self.prompts_of(id);
        for ticket in open {
            self.world.traces.answered(ticket, Some(error.code()));
            if let Some((request, _)) = self.requests.complete(ticket) {
                self.say_lines(|lines| write::error(lines, &request, error));
            }
        }
        let Some(desk) = self.sessions.get(id).map(|it| it.desk.clone()) else { return };
        let record = sessions::record_again(self, &desk);
        let Some(live) = self.sessions.get_mut(id) else { return };
        match record {
            Some(record) => live.session.refold(record),
            None => {
                let live = self.sessions.remove(id);
                self.world.mcp.release(id);
                // A log that took nothing, not even that there is a session, is none.
                if live.is_some_and(|it| it.log.is_empty()) {
                    _ = self.world.store.delete(id);
                }
            }
        }
    }

    /// Calls and questions that the client knows of. The log has no end of them, and a load would show them as ended.
    fn end_shown(&mut self, id: &SessionId, why: &str) {
        let mut lines = Vec::new();
        flush::withdraw(self, |it| it.is_of(id), &mut lines);
        if let Some(live) = self.sessions.get_mut(id) {
            live.view.interrupt(why, &mut lines);
        }
        self.say_lines(|it| it.append(&mut lines));
    }
}
