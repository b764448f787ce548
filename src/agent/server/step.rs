//! One step of a session, and its recovery from the log after a panic or a failed write.

use std::panic::{AssertUnwindSafe, catch_unwind};

use jsonrpsee::types::ErrorObjectOwned;

use super::{event_feed, flush, pending_requests, state::State};
use crate::server::live::{children, foreground, reconnect};
use crate::{panics, session::place};
use castor_base::{ids::SessionId, log::Fact};
use castor_engine::step::{Input, StepOutput};
use castor_wire::jsonrpc::{error, open_requests::Ticket, write};

impl State {
    /// One step of one session. A panic costs that session what was under way, and nobody else anything.
    pub fn step(&mut self, id: &SessionId, input: Input) {
        let now = self.now();
        let Some(live) = self.sessions.get_mut(id) else { return };
        let mut out = StepOutput::default();
        let (session, breaks) = (&mut live.session, live.resources.fault.is_in_input(&input));
        let step = || {
            session.step(input, now, &mut out);
            panics::panic_if(breaks);
        };
        match catch_unwind(AssertUnwindSafe(step)) {
            Ok(()) => {
                let tools = &live.session.spec().toolbox;
                self.outbox.queue_step(id, out, |call| tools.traits(&call.name).class);
            }
            Err(panic) => {
                let panic = panics::panic_message(&*panic);
                let error = error::bug(&format!("an internal error ended this turn ({panic}); the session continues"));
                self.refold(id, &error);
            }
        }
    }

    /// The session as its log has it. Whatever of it the client still waits for ends with the error.
    pub fn refold(&mut self, id: &SessionId, error: &ErrorObjectOwned) {
        flush::settle(self, id);
        if id.is_child() {
            return children::fail(self, id, error.message());
        }
        children::cancel_all(self, id);
        self.tasks.abort_session(id, self.now.unix_ms);
        self.outbox.drop_acts(id);
        self.interrupt_view(id, error.message());
        self.end_open(id);
        if let Some(live) = self.sessions.get_mut(id) {
            foreground::fail(live, error, &mut self.outbox);
        }
        let requests = self.terminals.release_all(id);
        self.queue_requests(id, requests);
        self.tasks.traces.forget_turn(id);
        let open: Vec<Ticket> = self.prompts_of(id);
        for ticket in open {
            self.tasks.traces.end_request(ticket, Some(error.code()));
            if let Some((request, _)) = self.requests.complete(ticket) {
                self.outbox.queue_lines(Some(id), |lines| write::error(lines, &request, error));
            }
        }
        let Some(resources) = self.sessions.get(id).map(|it| it.resources.clone()) else { return };
        // A store that lost it is not asked: it may not answer for long.
        let is_lost = self.sessions.get(id).is_some_and(|it| it.log.is_lost());
        let entries = if is_lost { Vec::new() } else { self.tasks.store.read(id).unwrap_or_default() };
        let record = place::reload_record(&entries, &self.options, &self.env, &resources).filter(|_| !is_lost);
        let Some(live) = self.sessions.get_mut(id) else { return };
        live.followers.end_all_prompts();
        match record {
            Some(record) => {
                live.session.replace_record(record);
                reconnect::end_prompt_model(self, id);
            }
            None => {
                event_feed::close(self, id);
                let live = self.sessions.remove(id);
                self.tasks.mcp.release(id);
                // A log that took nothing, not even that there is a session, is none.
                if live.is_some_and(|it| it.log.is_empty()) {
                    _ = self.tasks.store.delete(id);
                }
            }
        }
    }

    /// Streams and calls that the log has no end of have one from now on.
    pub fn end_open(&mut self, id: &SessionId) {
        let Some(live) = self.sessions.get_mut(id) else { return };
        // A log that cannot be read is gone.
        let endings = self.tasks.store.end_open(id, &mut live.log).unwrap_or_default();
        let mut lines = Vec::new();
        for entry in endings {
            if let Fact::Event { event } = &entry.fact {
                event_feed::tell_event(self, id, event, &mut lines);
            }
        }
        self.outbox.queue_lines(Some(id), |it| it.append(&mut lines));
    }

    /// Calls and questions that the client knows of. The log has no end of them, and a load would show them as ended.
    fn interrupt_view(&mut self, id: &SessionId, why: &str) {
        let mut lines = Vec::new();
        pending_requests::withdraw(&mut self.outgoing, |it| it.forget_session(id), &mut lines);
        if let Some(live) = self.sessions.get_mut(id) {
            live.view.interrupt(why, &mut lines);
        }
        self.outbox.queue_lines(Some(id), |it| it.append(&mut lines));
    }
}
