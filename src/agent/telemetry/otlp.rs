//! Spans as OTLP JSON, for collectors over HTTP.

use serde_json::{Value as Json, json};

use super::spans::{EndedSpan, MOMENT, SpanValue};

/// The body of one export.
pub fn body(resource: &[(String, String)], spans: &[EndedSpan]) -> Json {
    // They are events, and no work that took time.
    let spans: Vec<Json> = spans.iter().filter(|it| it.name != MOMENT).map(span).collect();
    let scope = json!([{ "scope": scope(), "spans": spans }]);
    json!({ "resourceSpans": [{ "resource": self::resource(resource), "scopeSpans": scope }] })
}

/// What the message is about.
pub fn resource(attributes: &[(String, String)]) -> Json {
    let pair = |(key, it): &(String, String)| json!({ "key": key, "value": { "stringValue": it } });
    json!({ "attributes": attributes.iter().map(pair).collect::<Vec<_>>() })
}

/// Who measures.
pub fn scope() -> Json {
    json!({ "name": "castor", "version": env!("CARGO_PKG_VERSION") })
}

pub fn attributes(all: &[(&'static str, SpanValue)]) -> Json {
    all.iter().map(|(key, it)| json!({ "key": key, "value": value(it) })).collect()
}

/// Requests are served, model calls are asked of others, the rest is our own.
const KINDS: &[(&str, u8)] = &[("request", 2), ("model", 3)];
const KIND_INTERNAL: u8 = 1;
const STATUS_ERROR: u8 = 2;

fn span(it: &EndedSpan) -> Json {
    let failed = it.attributes.iter().any(|(key, _)| *key == "error.type");
    json!({
        "traceId": format!("{:032x}", it.place.trace),
        "spanId": format!("{:016x}", it.place.span),
        "parentSpanId": it.parent.map(|it| format!("{it:016x}")).unwrap_or_default(),
        "traceState": it.tracestate.as_deref().unwrap_or_default(),
        "name": it.name,
        "kind": KINDS.iter().find(|(name, _)| *name == it.name).map_or(KIND_INTERNAL, |(_, kind)| *kind),
        "startTimeUnixNano": it.start_ns.to_string(),
        "endTimeUnixNano": it.end_ns.to_string(),
        "attributes": attributes(&it.attributes),
        "status": if failed { json!({ "code": STATUS_ERROR }) } else { json!({}) },
    })
}

/// Whole numbers of 64 bits are text in protobuf's JSON.
fn value(it: &SpanValue) -> Json {
    match it {
        SpanValue::Text(it) => json!({ "stringValue": it }),
        SpanValue::Int(it) => json!({ "intValue": it.to_string() }),
        SpanValue::Bool(it) => json!({ "boolValue": it }),
    }
}
