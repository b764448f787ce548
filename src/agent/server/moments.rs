//! Moments of sessions for telemetry, from the facts of their logs. No text of a prompt, an answer or a failure is in one.

use std::collections::BTreeMap;

use tracing::{Span, field::Empty};

use castor_base::{
    event::{AgentEvent, EventKind, Speaker},
    ids::SessionId,
    log::{Entry, Fact, Mode},
    model::{Failure, FailureKind},
    tool::EXIT_PLAN_MODE,
};
use castor_engine::{commands::find_command, record::COMMAND_META, turn::LOOP_DETECTED};

/// What is known of the sessions that something was told of.
#[derive(Default)]
pub struct Moments {
    sessions: BTreeMap<SessionId, SessionMoments>,
}

#[derive(Default)]
struct SessionMoments {
    /// Since when, in milliseconds.
    mode: Option<(Mode, u64)>,
    last: LastAttempt,
    n_turns: u64,
}

/// The last request to a model.
#[derive(Default)]
struct LastAttempt {
    model: String,
    number: u32,
    tokens: u64,
}

/// One that is about to be told: fields that stay empty are left out.
struct Moment<'a> {
    session: &'a SessionId,
    turn: Option<&'a Span>,
    name: &'static str,
}

impl Moment<'_> {
    fn span(&self) -> Span {
        let id = self.turn.and_then(Span::id);
        tracing::info_span!(
            parent: id,
            "moment",
            moment = self.name,
            session.id = self.session.as_str(),
            model = Empty,
            from = Empty,
            to = Empty,
            kind = Empty,
            n = Empty,
            ms = Empty,
            before = Empty,
            after = Empty,
        )
    }
}

impl Moments {
    /// Takes what a session's log got; its turn, where one runs.
    pub fn tell(&mut self, session: &SessionId, entry: &Entry, turn: Option<&Span>) {
        let moment = |name: &'static str| Moment { session, turn, name }.span();
        let known = self.sessions.entry(session.clone()).or_default();
        match &entry.fact {
            Fact::Created { mode, model, .. } if !session.is_child() => {
                known.mode = Some((*mode, entry.at));
                moment("session").record("model", model.as_str()).record("to", mode.as_str());
            }
            Fact::Mode { mode } => {
                let span = moment("mode");
                if let Some((from, at)) = known.mode.replace((*mode, entry.at)).filter(|it| it.0 != *mode) {
                    span.record("from", from.as_str());
                    let ms = entry.at.saturating_sub(at);
                    moment("mode_end").record("from", from.as_str()).record("ms", ms);
                }
                span.record("to", mode.as_str());
            }
            Fact::Model { model, .. } => _ = moment("model").record("model", model.as_str()),
            Fact::Rewound { .. } => _ = moment("rewind").record("kind", "rewind_only"),
            Fact::Restored { .. } => _ = moment("rewind").record("kind", "revert_only"),
            Fact::Compressed { tokens, .. } => {
                moment("compression").record("before", known.last.tokens).record("after", *tokens);
            }
            Fact::Masked { masks } => _ = moment("masking").record("n", masks.len()),
            Fact::Attempt { model, attempt, tokens, .. } => {
                if *attempt == 1 {
                    moment("routing").record("model", model.as_str());
                }
                known.last = LastAttempt { model: model.clone(), number: *attempt, tokens: *tokens };
            }
            Fact::AttemptFailed { failure, decision, .. } => tell_failure(&known.last, (failure, decision), moment),
            Fact::Fallback { from, to: Some(to), .. } => {
                moment("fallback").record("from", from.as_str()).record("to", to.as_str());
            }
            Fact::Event { event } => known.tell_event((session, event), moment),
            _ => (),
        }
    }

    pub fn forget(&mut self, session: &SessionId) {
        self.sessions.remove(session);
    }
}

impl SessionMoments {
    fn tell_event(&mut self, (session, event): (&SessionId, &AgentEvent), moment: impl Fn(&'static str) -> Span) {
        let mode = self.mode.map(|it| it.0.as_str());
        match &event.kind {
            EventKind::Message { role: Speaker::User, content, .. } if event.meta.contains_key(COMMAND_META) => {
                // What a file brings may go by any name: only castor's own are told.
                if let Some((command, _)) = find_command(content) {
                    moment("command").record("kind", command.name);
                }
            }
            EventKind::ToolRequest { name, .. } if name == LOOP_DETECTED => _ = moment("loop"),
            EventKind::ToolResponse { name, error: None, .. } if name == EXIT_PLAN_MODE => {
                if let Some(mode) = mode.filter(|it| *it != Mode::Plan.as_str()) {
                    moment("plan").record("to", mode);
                }
            }
            EventKind::AgentEnd { .. } if !session.is_child() => {
                self.n_turns += 1;
                let span = moment("finished");
                if let Some(mode) = mode {
                    span.record("to", mode);
                }
                span.record("n", self.n_turns);
            }
            _ => (),
        }
    }
}

fn tell_failure(last: &LastAttempt, (failure, decision): (&Failure, &str), moment: impl Fn(&'static str) -> Span) {
    let is_content = matches!(failure.kind, FailureKind::Invalid | FailureKind::Garbage | FailureKind::Stream);
    if failure.kind == FailureKind::Garbage {
        moment("invalid_chunk").record("model", last.model.as_str());
    }
    let name = match (is_content, decision) {
        (true, "retry") => "content_retry",
        (false, "retry") => "network_retry",
        (true, _) if last.number > 1 => "content_failure",
        _ => return,
    };
    let span = moment(name);
    span.record("n", last.number).record("kind", failure.kind.as_str()).record("model", last.model.as_str());
}
