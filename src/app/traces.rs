//! Spans of requests that belong to a trace of the client: entered while they are handled and by what they start.

use std::collections::BTreeMap;

use tracing::Span;

use crate::wire::{acp::trace::TraceContext, jsonrpc::queue::Ticket};

/// Only requests with a trace context are here, so the usual prompt costs one look at an empty map.
#[derive(Default)]
pub struct Traces(BTreeMap<Ticket, Span>);

impl Traces {
    pub fn begin(&mut self, ticket: Ticket, method: &str, trace: &TraceContext) -> Span {
        let span = tracing::info_span!(
            "request",
            method,
            traceparent = trace.traceparent,
            tracestate = trace.tracestate,
            baggage = trace.baggage
        );
        self.0.insert(ticket, span.clone());
        span
    }

    pub fn of(&self, ticket: Ticket) -> Option<Span> {
        self.0.get(&ticket).cloned()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether any open request has a trace.
    pub fn any(&self) -> bool {
        !self.0.is_empty()
    }

    /// The request was answered.
    pub fn end(&mut self, ticket: Ticket) {
        self.0.remove(&ticket);
    }
}
