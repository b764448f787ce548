//! Trace spans of requests, turns, model calls and tool calls. Without a subscriber they cost nothing.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use tracing::{Span, field::Empty};

use super::moments::Moments;
use castor_base::{
    agent::{RECOVERY_TURN, TerminateMode},
    content::Part,
    event::{AgentEvent, EventKind, NOTICE},
    hook::{Hook, HookEnd, HookReport},
    ids::SessionId,
    log::Entry,
    model::{Chunk, ModelRequest, Purpose},
    tool::{Display, READ_FILE, ToolCall, ToolOutput},
};
use castor_wire::{acp::trace, jsonrpc::open_requests::Ticket};

/// The spans that are open, beside those of tasks, which hold their own.
#[derive(Default)]
pub struct Traces {
    requests: BTreeMap<Ticket, Span>,
    turns: BTreeMap<SessionId, Span>,
    /// Calls that sub-agents carry out, by the sub-agent's session.
    agents: BTreeMap<SessionId, Span>,
    moments: Moments,
    /// Somebody takes spans. tracing's own macros cannot be asked: with filters for single layers the next span is lost.
    is_traced: bool,
}

impl Traces {
    /// A request came. It belongs to the client's own trace where that says so.
    pub fn trace_request(&mut self, ticket: Ticket, method: &str, params: Option<&RawValue>) -> Span {
        let span = tracing::info_span!(
            "request",
            rpc.system = "jsonrpc",
            rpc.method = method,
            rpc.jsonrpc.error_code = Empty,
            error.type = Empty,
            traceparent = Empty,
            tracestate = Empty,
            baggage = Empty,
        );
        self.is_traced = !span.is_disabled();
        if span.is_disabled() {
            return span;
        }
        if let Some(it) = trace::read(params) {
            span.record("traceparent", it.traceparent).record("tracestate", it.tracestate);
            span.record("baggage", it.baggage);
        }
        self.requests.insert(ticket, span.clone());
        span
    }

    /// The request was answered, with an error of that code or without.
    pub fn end_request(&mut self, ticket: Ticket, error: Option<i32>) {
        let Some(span) = self.requests.remove(&ticket) else { return };
        if let Some(code) = error {
            span.record("rpc.jsonrpc.error_code", code).record("error.type", "jsonrpc");
        }
    }

    /// Requests, turns and runs of sub-agents that are traced.
    pub fn len(&self) -> usize {
        self.requests.len() + self.turns.len() + self.agents.len()
    }

    /// Tells whether any request is traced.
    pub fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// A call starts a sub-agent: the turns of that session are a part of the call.
    pub fn begin_agent(&mut self, above: &SessionId, session: &SessionId, (agent, call): (&str, &ToolCall)) {
        let Some(turn) = self.turns.get(above) else { return };
        let span = tracing::info_span!(
            parent: turn.id(),
            "tool",
            gen_ai.operation.name = "execute_tool",
            gen_ai.agent.name = agent,
            gen_ai.tool.name = &*call.name,
            gen_ai.tool.call.id = call.id.as_str(),
            castor.agent.turns = Empty,
            castor.agent.recovery = Empty,
            castor.agent.end = Empty,
            error.type = Empty,
        );
        self.agents.insert(session.clone(), span);
    }

    /// The run is over: why, and after how many requests to its model.
    pub fn end_agent(&mut self, session: &SessionId, reason: TerminateMode, n_turns: u64) {
        let Some(span) = self.agents.remove(session) else { return };
        span.record("castor.agent.turns", n_turns).record("castor.agent.end", reason.as_str());
        if reason == TerminateMode::Error {
            note_error(&span, "agent");
        }
    }

    /// A turn begins or ends with its events. `prompt`: the request that it answers.
    pub fn trace_event(&mut self, session: &SessionId, event: &AgentEvent, prompt: impl FnOnce() -> Option<Ticket>) {
        match &event.kind {
            EventKind::AgentStart {} if self.has_requests() || self.agents.contains_key(session) => {
                let request = || prompt().and_then(|it| self.requests.get(&it));
                let above = self.agents.get(session).or_else(request);
                let turn = tracing::info_span!(
                    parent: above.and_then(Span::id),
                    "turn",
                    session.id = session.as_str(),
                    castor.stream.id = event.stream_id.as_str(),
                    castor.turn.end = Empty,
                );
                self.turns.insert(session.clone(), turn);
            }
            EventKind::AgentEnd { reason, .. } => {
                if let Some(turn) = self.turns.remove(session) {
                    turn.record("castor.turn.end", tracing::field::debug(reason));
                }
            }
            EventKind::Error { .. } => self.note_recovery(session, event, "failed"),
            EventKind::Custom { kind, .. } if kind == NOTICE => self.note_recovery(session, event, "succeeded"),
            _ => (),
        }
    }

    /// A session's log got something. Before its event is traced: that may end the turn.
    pub fn trace_entry(&mut self, session: &SessionId, entry: &Entry) {
        if self.is_traced {
            self.moments.tell(session, entry, self.turns.get(session));
        }
    }

    /// The one recovery turn of a sub-agent is over.
    fn note_recovery(&self, session: &SessionId, event: &AgentEvent, outcome: &str) {
        if event.meta.get("code").is_some_and(|it| it == RECOVERY_TURN)
            && let Some(span) = self.agents.get(session)
        {
            span.record("castor.agent.recovery", outcome);
        }
    }

    /// What a session's turn starts now is a part of this.
    pub fn turn(&self, session: &SessionId) -> Option<&Span> {
        self.turns.get(session)
    }

    /// The session was closed.
    pub fn forget_session(&mut self, session: &SessionId) {
        self.forget_turn(session);
        self.moments.forget(session);
    }

    /// Its turn is over, with all its calls.
    pub fn forget_turn(&mut self, session: &SessionId) {
        self.turns.remove(session);
        self.agents.remove(session);
    }
}

/// One call of a model, in words of OpenTelemetry's conventions for them. No prompt, no answer.
pub fn model_span(purpose: Purpose, request: &ModelRequest) -> Span {
    tracing::info_span!(
        "model",
        gen_ai.operation.name = "chat",
        gen_ai.request.model = &*request.model,
        castor.model.purpose = purpose.as_str(),
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        castor.usage.cached_tokens = Empty,
        castor.usage.thought_tokens = Empty,
        error.type = Empty,
    )
}

/// One run of a tool, of a server's where it is one. Its arguments may hold anything and are left out.
pub fn tool_span(call: &ToolCall, server: Option<&str>) -> Span {
    tracing::info_span!(
        "tool",
        gen_ai.operation.name = "execute_tool",
        gen_ai.tool.name = &*call.name,
        gen_ai.tool.call.id = call.id.as_str(),
        castor.mcp.server = server,
        castor.output.size = Empty,
        castor.output.whole = Empty,
        castor.file.operation = Empty,
        castor.file.extension = Empty,
        castor.lines.added = Empty,
        castor.lines.removed = Empty,
        castor.edit.strategy = Empty,
        error.type = Empty,
    )
}

/// What came of a run, in numbers. `whole`: what its output was before it was cut.
pub fn note_output(span: &Span, call: &ToolCall, output: &ToolOutput, whole: usize) {
    if let Some(it) = &output.error {
        note_error(span, &it.kind);
    }
    if span.is_disabled() {
        return;
    }
    let size = output_size(output);
    span.record("castor.output.size", size);
    if size < whole {
        span.record("castor.output.whole", whole);
    }
    match &output.display {
        Some(it @ (Display::Diff { .. } | Display::Diffs { .. })) if output.error.is_none() => note_diffs(span, it),
        _ if output.error.is_none() && call.name == READ_FILE => {
            span.record("castor.file.operation", "read");
        }
        _ => (),
    }
}

/// What kind of change is that of the first file; lines are those of all.
fn note_diffs(span: &Span, display: &Display) {
    let diffs = display.diffs();
    if let Some((path, before, _)) = diffs.first() {
        span.record("castor.file.operation", if before.is_some() { "update" } else { "create" });
        if let Some(it) = path.as_path().extension() {
            span.record("castor.file.extension", format!(".{}", it.to_string_lossy()));
        }
    }
    let lines = diffs.iter().map(|(_, before, after)| changed_lines(before.unwrap_or_default(), after));
    let (added, removed) = lines.fold((0, 0), |all, it| (all.0 + it.0, all.1 + it.1));
    span.record("castor.lines.added", added).record("castor.lines.removed", removed);
}

/// The texts of it, in bytes.
pub fn output_size(output: &ToolOutput) -> usize {
    output.content.iter().filter_map(Part::as_text).map(str::len).sum()
}

fn changed_lines(before: &str, after: &str) -> (usize, usize) {
    let diff = similar::TextDiff::from_lines(before, after);
    let count = |tag: similar::ChangeTag| diff.iter_all_changes().filter(|it| it.tag() == tag).count();
    (count(similar::ChangeTag::Insert), count(similar::ChangeTag::Delete))
}

/// One run of a hook. Its command may hold anything: only a name that somebody gave it is told.
pub fn hook_span(hook: &Hook) -> Span {
    tracing::info_span!(
        "hook",
        castor.hook.event = hook.event.as_str(),
        castor.hook.name = hook.name.as_deref().unwrap_or_default(),
        process.exit.code = Empty,
        error.type = Empty,
    )
}

/// How it ended. A no is no error.
pub fn note_hook(span: &Span, report: &HookReport) {
    match &report.end {
        HookEnd::Exit(code) => _ = span.record("process.exit.code", code),
        HookEnd::Signal(_) => note_error(span, "signal"),
        HookEnd::TimedOut => note_error(span, "timeout"),
        HookEnd::TooMuchOutput => note_error(span, "too_much"),
        HookEnd::NotStarted(_) => note_error(span, "not_started"),
    }
}

/// Tokens that the model told of, for the span that the task runs in.
pub fn note_usage(chunks: &[Chunk]) {
    for it in chunks {
        if let Chunk::Usage(usage) = it {
            let span = Span::current();
            span.record("gen_ai.usage.input_tokens", usage.input).record("gen_ai.usage.output_tokens", usage.output);
            span.record("castor.usage.cached_tokens", usage.cached);
            span.record("castor.usage.thought_tokens", usage.thought);
        }
    }
}

/// What the span is of ended badly.
pub fn note_error(span: &Span, kind: &str) {
    span.record("error.type", kind);
}

#[cfg(test)]
mod tests {
    use super::Traces;
    use castor_wire::jsonrpc::open_requests::Ticket;

    /// Without a subscriber no span is kept.
    #[test]
    fn nothing_is_kept_for_nobody() {
        let mut traces = Traces::default();
        assert!(traces.trace_request(Ticket(1), "session/prompt", None).is_disabled() && !traces.has_requests());
    }
}
