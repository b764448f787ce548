//! Records of telemetry in Gemini CLI's names: an event, its counts and its measures.

use serde_json::{Value as Json, json};

use super::{
    otlp,
    spans::{EndedSpan, SpanValue},
};

pub type Attributes = Vec<(&'static str, SpanValue)>;

/// What one span says: an event, or measures alone.
pub struct Record<'a> {
    pub span: &'a EndedSpan,
    /// Empty: it is no event.
    pub event: &'static str,
    pub at_ns: u128,
    pub attributes: Attributes,
    pub counts: Vec<MetricCount>,
    /// Measured in milliseconds, in turns or in tokens.
    pub measures: Vec<(&'static str, Attributes, i64)>,
}

/// So many of a thing.
pub type MetricCount = (&'static str, Attributes, i64);

impl Record<'_> {
    pub fn log(&self) -> Option<Json> {
        if self.event.is_empty() {
            return None;
        }
        let own = [("event.name", SpanValue::Text(self.event.to_owned()))];
        let session = self.span.session.iter().map(|it| ("session.id", SpanValue::Text(it.to_string())));
        let all: Attributes = own.into_iter().chain(session).chain(self.attributes.iter().cloned()).collect();
        Some(json!({
            "timeUnixNano": self.at_ns.to_string(),
            "observedTimeUnixNano": self.span.end_ns.to_string(),
            "severityNumber": 9,
            "severityText": "INFO",
            "body": { "stringValue": self.event },
            "attributes": otlp::attributes(&all),
            "traceId": format!("{:032x}", self.span.place.trace),
            "spanId": format!("{:016x}", self.span.place.span),
        }))
    }
}
