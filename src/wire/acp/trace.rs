//! W3C trace context in the `_meta` of requests: `traceparent`, `tracestate`, `baggage`.

use memchr::memmem;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};

/// Longest tracestate and baggage that are carried, in bytes; the standard asks for 512 of the former.
const MAX: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// Version 00: `00-<trace>-<parent>-<flags>`.
    pub traceparent: String,
    pub tracestate: Option<String>,
    pub baggage: Option<String>,
}

/// What a request says of its trace. Without a valid `traceparent` nothing counts, as the standard says.
pub fn read(params: Option<&RawValue>) -> Option<TraceContext> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta")]
        meta: Meta,
    }
    #[derive(Deserialize)]
    struct Meta {
        traceparent: String,
        #[serde(default)]
        tracestate: Value,
        #[serde(default)]
        baggage: Value,
    }
    let text = params?.get();
    // Nearly no request has one: those are not parsed another time.
    memmem::find(text.as_bytes(), b"\"traceparent\"")?;
    let Params { meta } = serde_json::from_str(text).ok()?;
    let carried = |it: &Value| it.as_str().filter(|it| is_loggable(it)).map(str::to_owned);
    is_traceparent(&meta.traceparent).then(|| TraceContext {
        tracestate: carried(&meta.tracestate),
        baggage: carried(&meta.baggage),
        traceparent: meta.traceparent,
    })
}

fn is_traceparent(text: &str) -> bool {
    let is_hex = |it: &str, len: usize| {
        it.len() == len && it.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
    };
    // All zeros stand for "none".
    let is_id = |it: &str, len: usize| is_hex(it, len) && it.bytes().any(|it| it != b'0');
    match text.split('-').collect::<Vec<_>>()[..] {
        [version, trace, parent, flags] => version == "00" && is_id(trace, 32) && is_id(parent, 16) && is_hex(flags, 2),
        _ => false,
    }
}

/// It ends up in logs: short, and one line.
fn is_loggable(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX && text.bytes().all(|it| it == b' ' || it.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;

    use super::read;

    #[test]
    fn only_valid_contexts_count() {
        let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
        let good = format!("00-{trace}-{parent}-01");
        let check = |meta: &str, want: Option<(Option<&str>, Option<&str>)>| {
            let params = RawValue::from_string(format!(r#"{{"sessionId":"s","_meta":{meta}}}"#)).unwrap();
            let got = read(Some(&params));
            assert_eq!(got.as_ref().map(|it| (it.tracestate.as_deref(), it.baggage.as_deref())), want, "{meta}");
            assert!(got.is_none_or(|it| it.traceparent == good));
        };
        check(&format!(r#"{{"traceparent":"{good}"}}"#), Some((None, None)));
        check(
            &format!(r#"{{"traceparent":"{good}","tracestate":"a=b","baggage":"u=1,v=2"}}"#),
            Some((Some("a=b"), Some("u=1,v=2"))),
        );
        check(&format!(r#"{{"traceparent":"{good}","tracestate":1,"baggage":"a\nb"}}"#), Some((None, None)));
        let long = "x".repeat(513);
        check(&format!(r#"{{"traceparent":"{good}","baggage":"{long}"}}"#), Some((None, None)));
        for bad in [
            "{}".to_owned(),
            "[]".to_owned(),
            r#"{"tracestate":"a=b"}"#.to_owned(),
            r#"{"traceparent":7}"#.to_owned(),
            format!(r#"{{"traceparent":"01-{trace}-{parent}-01"}}"#),
            format!(r#"{{"traceparent":"00-{}-{parent}-01"}}"#, trace.to_uppercase()),
            format!(r#"{{"traceparent":"00-{}-{parent}-01"}}"#, "0".repeat(32)),
            format!(r#"{{"traceparent":"00-{trace}-{}-01"}}"#, "0".repeat(16)),
            format!(r#"{{"traceparent":"00-{trace}-{parent}-1"}}"#),
            format!(r#"{{"traceparent":"00-{trace}-{parent}-01-x"}}"#),
            format!(r#"{{"traceparent":"00-{trace}-{parent}-01 "}}"#),
        ] {
            check(&bad, None);
        }
        assert_eq!(read(None), None);
    }
}
