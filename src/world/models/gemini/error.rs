//! What a server says when something went wrong: its own words, and how long it asks us to wait.

use serde_json::Value;

use crate::{
    base::model::{Failure, FailureKind},
    world::models::fault::{duration_ms, millis},
};

/// Errors come as JSON in a string in JSON; nobody has been seen to nest deeper.
const MAX_NESTING: usize = 10;
/// Added to the message of a spent daily quota, which only waiting for the next day helps.
const DAILY_QUOTA: &str = "You have exhausted your daily quota on this model.";

/// The failure for an answer with status `status` (100 to 599). `retry_after_ms` is what its headers say; the body
/// has precedence.
pub fn from_answer(status: u16, body: &str, retry_after_ms: Option<u64>) -> Failure {
    let told = told(body);
    let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason()).unwrap_or_default();
    let message = match told.message.is_empty() {
        true => format!("The model server answered HTTP {status} {reason}").trim_end().to_owned(),
        false => told.message,
    };
    let in_text = retry_in_text(&message);
    let kind = match status {
        401 | 403 => FailureKind::Auth,
        // A wrong key is a bad request here, not an unauthorized one.
        400 if told.bad_key => FailureKind::Auth,
        _ => FailureKind::Status,
    };
    let message = match told.daily {
        true => format!("{} {DAILY_QUOTA}", message.trim_end()),
        false => message,
    };
    Failure { kind, status: Some(status), message, retry_after_ms: told.retry_ms.or(retry_after_ms).or(in_text) }
}

/// The failure for an error object within a stream that began well.
pub fn from_stream(error: &str) -> Failure {
    let code = told(error).code.filter(|it| (400..600).contains(it));
    match code {
        Some(code) => from_answer(code, error, None),
        None => {
            let failure = from_answer(500, error, None);
            Failure { status: None, ..failure }
        }
    }
}

/// What could be learned from an error body.
#[derive(Debug, Default)]
struct Told {
    code: Option<u16>,
    message: String,
    retry_ms: Option<u64>,
    daily: bool,
    bad_key: bool,
}

fn told(body: &str) -> Told {
    let mut res = Told::default();
    let body = body.trim();
    if !dig_text(body, 0, &mut res) && !body.starts_with('<') {
        res.message = body.to_owned();
    }
    res
}

/// Looks for an error in JSON within `text`; `false` when there is none.
fn dig_text(text: &str, depth: usize, told: &mut Told) -> bool {
    if depth >= MAX_NESTING {
        return false;
    }
    let parsed = serde_json::from_str::<Value>(text).ok().or_else(|| {
        let inner = text.get(text.find('{')?..=text.rfind('}')?)?;
        serde_json::from_str(inner).ok()
    });
    parsed.is_some_and(|it| dig(&it, depth + 1, told))
}

fn dig(value: &Value, depth: usize, told: &mut Told) -> bool {
    if depth >= MAX_NESTING {
        return false;
    }
    match value {
        Value::Array(items) => items.first().is_some_and(|it| dig(it, depth + 1, told)),
        Value::String(text) => {
            let found = dig_text(text, depth, told);
            if !found {
                told.message = text.trim().to_owned();
            }
            found || !told.message.is_empty()
        }
        Value::Object(map) => {
            note_details(value, told);
            let inner = map.get("error").or_else(|| map.get("message"));
            inner.is_some_and(|it| dig(it, depth + 1, told))
        }
        _ => false,
    }
}

fn note_details(error: &Value, told: &mut Told) {
    if let Some(code) = error.get("code").and_then(Value::as_u64).and_then(|it| u16::try_from(it).ok()) {
        told.code = Some(code);
    }
    for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
        if let Some(delay) = detail.get("retryDelay") {
            told.retry_ms = delay_ms(delay).or(told.retry_ms);
        }
        told.bad_key |= detail.get("reason").and_then(Value::as_str) == Some("API_KEY_INVALID");
        told.daily |= violates_daily(detail);
    }
}

fn violates_daily(detail: &Value) -> bool {
    let violations = detail.get("violations").and_then(Value::as_array);
    violations.into_iter().flatten().any(|it| {
        let id = it.get("quotaId").and_then(Value::as_str).unwrap_or_default();
        id.contains("PerDay") || id.contains("Daily")
    })
}

/// `"34.07s"`, `"900ms"` or `{"seconds": 34, "nanos": 70000000}`.
fn delay_ms(delay: &Value) -> Option<u64> {
    if let Some(text) = delay.as_str() {
        return duration_ms(text.trim());
    }
    let seconds = delay.get("seconds").map_or(Some(0.0), |it| it.as_f64().or_else(|| it.as_str()?.parse().ok()))?;
    let nanos = delay.get("nanos").and_then(Value::as_f64).unwrap_or_default();
    millis(seconds + nanos / 1e9)
}

/// `Please retry in 34.07s` in running text.
fn retry_in_text(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("retry in ")?;
    let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '.').unwrap_or(rest.len());
    duration_ms(rest.get(..end)?.trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::{from_answer, from_stream};
    use crate::base::model::FailureKind;

    #[test]
    fn the_providers_own_words() {
        let inner = r#"{"error":{"code":400,"message":"inner words"}}"#;
        let nested = serde_json::json!({ "error": { "code": 400, "message": inner } }).to_string();
        let twice = serde_json::json!({ "error": { "message": nested } }).to_string();
        let table = [
            ("plain words\n", "plain words"),
            (inner, "inner words"),
            (&nested, "inner words"),
            (&twice, "inner words"),
            (r#"[{"error":{"message":"first of a list"}}]"#, "first of a list"),
            (r#"{"message":"top level"}"#, "top level"),
            (r#"{"error":"a string"}"#, "a string"),
            (r#"got status: 400 . {"error":{"message":"within text"}}"#, "within text"),
            (r#"{"error":{"message":"half"#, r#"{"error":{"message":"half"#),
            ("<html><body>Bad Gateway</body></html>", "The model server answered HTTP 400 Bad Request"),
            ("", "The model server answered HTTP 400 Bad Request"),
            (r#"{"other":1}"#, r#"{"other":1}"#),
        ];
        for (body, message) in table {
            assert_eq!(from_answer(400, body, None).message, message, "{body}");
        }
    }

    #[test]
    fn kinds() {
        let bad_key =
            r#"{"error":{"code":400,"message":"API key not valid.","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        for (status, body, kind) in [
            (401, "", FailureKind::Auth),
            (403, "", FailureKind::Auth),
            (400, bad_key, FailureKind::Auth),
            (400, "", FailureKind::Status),
            (429, "", FailureKind::Status),
            (599, "", FailureKind::Status),
        ] {
            let failure = from_answer(status, body, None);
            assert_eq!((failure.kind, failure.status), (kind, Some(status)), "{status} {body}");
        }
        let failure = from_stream(r#"{"code":503,"message":"overloaded","status":"UNAVAILABLE"}"#);
        assert_eq!((failure.status, failure.message.as_str()), (Some(503), "overloaded"));
        let failure = from_stream(r#"{"message":"odd"}"#);
        assert_eq!((failure.status, failure.message.as_str()), (None, "odd"));
    }

    #[test]
    fn delays() {
        let info = |it: &str| format!(r#"{{"error":{{"message":"m","details":[{{"retryDelay":{it}}}]}}}}"#);
        for (body, header, ms) in [
            (info(r#""34.07s""#), None, Some(34_070)),
            (info(r#""900ms""#), Some(5), Some(900)),
            (info(r#"{"seconds":"2","nanos":500000000}"#), None, Some(2_500)),
            (info(r#""soon""#), Some(5_000), Some(5_000)),
            ("Please retry in 1s.".to_owned(), None, Some(1_000)),
            ("Please retry in 2.5s. Or later".to_owned(), None, Some(2_500)),
            ("Please retry in 250ms".to_owned(), Some(7), Some(7)),
            ("Please retry in a while".to_owned(), None, None),
            (info(r#""-3s""#), None, None),
        ] {
            assert_eq!(from_answer(429, &body, header).retry_after_ms, ms, "{body}");
        }
    }

    #[test]
    fn a_daily_quota_is_named() {
        let body = r#"{"error":{"message":"Quota exceeded.","details":[
            {"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}]}}"#;
        let message = from_answer(429, body, None).message;
        assert_eq!(message, "Quota exceeded. You have exhausted your daily quota on this model.");
    }
}
