//! Moments of a session in Gemini CLI's names: a switch of the mode, a retry, a command. Each is a span of no length.

use super::{
    records::{Attributes, Record},
    spans::{EndedSpan, MOMENT, SpanValue},
};

/// What a moment is told as.
struct MomentKind {
    name: &'static str,
    event: &'static str,
    /// Gemini CLI's name of an attribute, and the field that has it.
    attributes: &'static [(&'static str, &'static str)],
    count: Option<MomentCount>,
}

/// A metric that counts them, by some of their fields.
struct MomentCount {
    metric: &'static str,
    by: &'static [(&'static str, &'static str)],
}

const fn kind(
    name: &'static str,
    event: &'static str,
    attributes: &'static [(&'static str, &'static str)],
) -> MomentKind {
    MomentKind { name, event, attributes, count: None }
}

impl MomentKind {
    const fn counted(self, metric: &'static str, by: &'static [(&'static str, &'static str)]) -> Self {
        Self { count: Some(MomentCount { metric, by }), ..self }
    }
}

const KINDS: &[MomentKind] = &[
    kind("session", "gemini_cli.config", &[("model", "model"), ("approval_mode", "to")]),
    kind("mode", "gemini_cli.plan.approval_mode_switch", &[("from_mode", "from"), ("to_mode", "to")]),
    kind("mode_end", "gemini_cli.plan.approval_mode_duration", &[("mode", "from"), ("duration_ms", "ms")]),
    kind("plan", "gemini_cli.plan.execution", &[("approval_mode", "to")])
        .counted("gemini_cli.plan.execution.count", &[("approval_mode", "to")]),
    kind("command", "gemini_cli.slash_command", &[("command", "kind")]),
    kind("model", "gemini_cli.slash_command.model", &[("model_name", "model")])
        .counted("gemini_cli.slash_command.model.call_count", &[("slash_command.model.model_name", "model")]),
    kind("rewind", "gemini_cli.rewind", &[("outcome", "kind")]),
    kind("compression", "gemini_cli.chat_compression", &[("tokens_before", "before"), ("tokens_after", "after")])
        .counted("gemini_cli.chat_compression", &[("tokens_before", "before"), ("tokens_after", "after")]),
    kind("masking", "gemini_cli.tool_output_masking", &[("masked_count", "n")]),
    kind(
        "network_retry",
        "gemini_cli.network_retry_attempt",
        &[("attempt", "n"), ("error_type", "kind"), ("model", "model")],
    )
    .counted("gemini_cli.network_retry.count", &[("model", "model"), ("attempt", "n")]),
    kind(
        "content_retry",
        "gemini_cli.chat.content_retry",
        &[("attempt_number", "n"), ("error_type", "kind"), ("model", "model")],
    )
    .counted("gemini_cli.chat.content_retry.count", &[]),
    kind(
        "content_failure",
        "gemini_cli.chat.content_retry_failure",
        &[("total_attempts", "n"), ("final_error_type", "kind"), ("model", "model")],
    )
    .counted("gemini_cli.chat.content_retry_failure.count", &[]),
    kind("invalid_chunk", "gemini_cli.chat.invalid_chunk", &[("model", "model")])
        .counted("gemini_cli.chat.invalid_chunk.count", &[]),
    kind("fallback", "gemini_cli.flash_fallback", &[("from_model", "from"), ("to_model", "to")]),
    kind("routing", "gemini_cli.model_routing", &[("decision_model", "model")]),
    kind("loop", "loop_detected", &[]),
    kind("finished", "gemini_cli.conversation_finished", &[("approvalMode", "to"), ("turnCount", "n")]),
];

/// `None`: it is no moment that Gemini CLI tells of.
pub fn record(span: &EndedSpan) -> Option<Record<'_>> {
    let field = |name: &str| span.attributes.iter().find(|it| it.0 == name).map(|it| it.1.clone());
    let Some(SpanValue::Text(name)) = field(MOMENT) else { return None };
    let kind = KINDS.iter().find(|it| it.name == name)?;
    let named = |all: &[(&'static str, &'static str)]| -> Attributes {
        all.iter().filter_map(|(theirs, ours)| Some((*theirs, field(ours)?))).collect()
    };
    let counts = kind.count.iter().map(|it| (it.metric, named(it.by), 1)).collect();
    let (event, attributes) = (kind.event, named(kind.attributes));
    Some(Record { span, event, at_ns: span.end_ns, attributes, counts, measures: Vec::new() })
}
