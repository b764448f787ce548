//! Error bodies of model servers: their message and the wait that they ask for. `engine::routing` classifies them.

use std::fmt::Display;

use serde::Deserialize;
use serde_json::{Value, value::RawValue};

use castor_base::{
    model::{Details, Failure, FailureKind},
    text,
};

/// Errors come as JSON in a string in JSON; nobody has been seen to nest deeper.
const MAX_NESTING: usize = 10;
/// Words and limits of one error, at most each, and bytes of each of them.
const MAX_WORDS: usize = 16;
const MAX_WORD: usize = 200;

/// The failure for an answer with status `status` (100 to 599). `retry_after_ms` is what its headers say; the body
/// has precedence.
pub fn from_answer(status: u16, body: &str, retry_after_ms: Option<u64>) -> Failure {
    failure(status, parse_error_body(body), retry_after_ms)
}

/// The failure for an error object within a stream that began well.
pub fn from_stream(error: &str) -> Failure {
    let told = parse_error_body(error);
    let code = told.code.filter(|it| (400..600).contains(it)).or_else(|| told.details.words.iter().find_map(status_of));
    match code {
        Some(code) => failure(code, told, None),
        None => Failure { status: None, ..failure(500, told, None) },
    }
}

/// Fails where an event says what went wrong.
pub fn check(error: Option<&RawValue>) -> Result<(), Failure> {
    // Some servers say with each event that nothing went wrong.
    let is_said = |it: &&RawValue| !matches!(it.get(), "\"\"" | "false" | "{}" | "[]" | "0");
    error.filter(is_said).map_or(Ok(()), |it| Err(from_stream(it.get())))
}

fn failure(status: u16, told: ErrorDetails, retry_after_ms: Option<u64>) -> Failure {
    let reason = reqwest::StatusCode::from_u16(status).ok().and_then(|it| it.canonical_reason()).unwrap_or_default();
    let message = match told.message.is_empty() {
        true => format!("The model server answered HTTP {status} {reason}").trim_end().to_owned(),
        false => told.message,
    };
    let in_text = retry_in_text(&message);
    let says = |word: &str| told.details.words.iter().any(|it| it == word);
    let kind = match status {
        // The account or the model is the trouble, not the key.
        401 | 403 if says("VALIDATION_REQUIRED") || says("model_not_found") => FailureKind::Status,
        401 | 403 => FailureKind::Auth,
        // A wrong key is a bad request here, not an unauthorized one.
        400 if WRONG_KEYS.iter().any(|it| says(it)) || speaks_of_key(&message) => FailureKind::Auth,
        _ => FailureKind::Status,
    };
    let retry_after_ms = told.retry_ms.or(retry_after_ms).or(in_text);
    Failure { kind, status: Some(status), message, retry_after_ms, details: Box::new(told.details) }
}

/// What services call a key that they refuse, where their status says only that the request is bad. LiteLLM's proxy
/// looks for keys that it does not know in a database.
const WRONG_KEYS: &[&str] = &["API_KEY_INVALID", "invalid_api_key", "no_db_connection", "authentication_error"];

fn speaks_of_key(message: &str) -> bool {
    let message = message.to_lowercase();
    ["incorrect api key", "invalid api key", "api key not valid", "no connected db"]
        .iter()
        .any(|it| message.contains(it))
}

/// What could be learned from an error body.
#[derive(Debug, Default)]
struct ErrorDetails {
    code: Option<u16>,
    message: String,
    retry_ms: Option<u64>,
    details: Details,
}

/// The HTTP status that a provider's word stands for, where an error in a stream has no number.
fn status_of(word: &String) -> Option<u16> {
    const STATUS_WORDS: &[(&str, u16)] = &[
        ("invalid_request_error", 400),
        ("context_length_exceeded", 400),
        ("authentication_error", 401),
        ("billing_error", 402),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("model_not_found", 404),
        ("request_too_large", 413),
        ("rate_limit_error", 429),
        ("rate_limit_exceeded", 429),
        ("insufficient_quota", 429),
        ("RESOURCE_EXHAUSTED", 429),
        ("api_error", 500),
        ("server_error", 500),
        ("UNAVAILABLE", 503),
        ("timeout_error", 504),
        ("overloaded_error", 529),
    ];
    STATUS_WORDS.iter().find(|(it, _)| it == word).map(|(_, status)| *status)
}

fn parse_error_body(body: &str) -> ErrorDetails {
    let mut res = ErrorDetails::default();
    let body = body.trim();
    if !find_error_in_text(body, 0, &mut res) && !body.starts_with('<') {
        res.message = body.to_owned();
    }
    res
}

/// Looks for an error in JSON within `text`; `false` when there is none.
fn find_error_in_text(text: &str, depth: usize, told: &mut ErrorDetails) -> bool {
    if depth >= MAX_NESTING {
        return false;
    }
    let within = || text.get(text.find('{')?..=text.rfind('}')?);
    let parsed = read(text).or_else(|| read(within()?)).or_else(|| read(&repair_json(within()?)));
    parsed.is_some_and(|it| find_error(&it, depth + 1, told))
}

fn read(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// Some gateways print errors by hand: hard spaces, line ends within texts, commas too many.
fn repair_json(text: &str) -> String {
    let mut res = String::with_capacity(text.len());
    let mut after_comma = false;
    for it in text.chars().map(|it| if matches!(it, '\u{a0}' | '\n' | '\r') { ' ' } else { it }) {
        if it == ',' && after_comma {
            continue;
        }
        after_comma = it == ',' || (after_comma && it == ' ');
        res.push(it);
    }
    res
}

fn find_error(value: &Value, depth: usize, told: &mut ErrorDetails) -> bool {
    if depth >= MAX_NESTING {
        return false;
    }
    match value {
        Value::Array(items) => items.first().is_some_and(|it| find_error(it, depth + 1, told)),
        Value::String(text) => {
            let found = find_error_in_text(text, depth, told);
            if !found {
                told.message = text.trim().to_owned();
            }
            found || !told.message.is_empty()
        }
        Value::Object(map) => {
            note_error(value, told);
            // A gateway's own words say less than those of the provider behind it.
            let own = map.get("message").and_then(Value::as_str).filter(|it| *it != "Provider returned error");
            let own = own.map(text::end_sentence).unwrap_or_default();
            if let Some(raw) = value.pointer("/metadata/raw")
                && find_error(raw, depth + 1, told)
            {
                told.message = format!("{own} {}", told.message).trim().to_owned();
                return true;
            }
            let inner = map.get("error").filter(|it| !it.is_null()).or_else(|| map.get("message"));
            inner.is_some_and(|it| find_error(it, depth + 1, told))
        }
        _ => false,
    }
}

fn note_error(error: &Value, told: &mut ErrorDetails) {
    for key in ["code", "type", "status"] {
        push_name(&mut told.details.words, error.get(key).filter(|it| *it != "error"));
    }
    if let Some(code) = error.get("code").and_then(Value::as_u64).and_then(|it| u16::try_from(it).ok()) {
        told.code = Some(code);
    }
    let param = error.get("param").and_then(Value::as_str).map(str::trim);
    let is_param = |it: &&str| !it.is_empty() && it.len() <= MAX_WORD && it.chars().all(|it| it.is_ascii_graphic());
    told.details.param = told.details.param.take().or(param.filter(is_param).map(str::to_owned));
    // llama.cpp has them beside its message.
    let number = |name| error.get(name).and_then(Value::as_u64);
    let details = &mut told.details;
    details.window = details.window.or_else(|| number("n_ctx"));
    details.size = details.size.or_else(|| number("n_prompt_tokens"));
    for detail in error.get("details").and_then(Value::as_array).into_iter().flatten() {
        note_detail(detail, told);
    }
}

fn note_detail(detail: &Value, told: &mut ErrorDetails) {
    if let Some(delay) = detail.get("retryDelay") {
        told.retry_ms = delay_ms(delay).or(told.retry_ms);
    }
    let (details, metadata) = (&mut told.details, detail.get("metadata"));
    push_name(&mut details.words, detail.get("reason"));
    for it in detail.get("violations").and_then(Value::as_array).into_iter().flatten() {
        push_name(&mut details.limits, it.get("quotaId"));
    }
    push_name(&mut details.limits, metadata.and_then(|it| it.get("quota_limit")));
    let domain = detail.get("domain").and_then(Value::as_str).map(|it| it.replace(|it: char| !is_word_char(it), ""));
    details.domain = details.domain.take().or(domain.filter(|it| !it.is_empty() && it.len() <= MAX_WORD));
    let links = detail.get("links").and_then(Value::as_array).into_iter().flatten().filter_map(|it| it.get("url"));
    let mut links = links.chain(metadata.and_then(|it| it.get("validation_link"))).filter_map(Value::as_str);
    let link = links.find(|it| it.starts_with("https://") && it.len() <= MAX_WORD && !it.contains(char::is_whitespace));
    details.link = details.link.take().or(link.map(str::to_owned));
}

/// Only what looks like a name: words decide, and are logged.
fn push_name(names: &mut Vec<String>, name: Option<&Value>) {
    let Some(name) = name.and_then(Value::as_str).map(str::trim) else { return };
    let is_name = !name.is_empty() && name.len() <= MAX_WORD && name.chars().all(is_word_char);
    if is_name && names.len() < MAX_WORDS && !names.iter().any(|it| it == name) {
        names.push(name.to_owned());
    }
}

fn is_word_char(it: char) -> bool {
    it.is_ascii_alphanumeric() || "_-./".contains(it)
}

/// How long the headers of an error answer ask to wait, in milliseconds; the most exact one counts.
pub fn wait_from_headers<'a>(status: u16, header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    // What is left of a limit, and when it is whole again.
    const RESET_HEADERS: &[(&str, &str)] = &[
        ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
        ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
        ("x-ratelimit-remaining", "x-ratelimit-reset"),
        ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
        ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
        ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
        ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ];
    let named = header("retry-after-ms").and_then(millis_text);
    let named = named.or_else(|| retry_after_ms(header("retry-after")?, now_ms));
    if named.is_some() || status != 429 {
        return named;
    }
    // A limit that has something left is not the one that was hit.
    let is_hit = |left: &str| header(left).is_none_or(|it| it.trim().parse::<f64>().is_ok_and(|it| it <= 0.0));
    RESET_HEADERS
        .iter()
        .filter(|(left, _)| is_hit(left))
        .filter_map(|(_, reset)| reset_ms(header(reset)?, now_ms))
        .max()
}

/// A span, an instant, or a number of seconds, which is an instant where it is too large for a span.
pub(super) fn reset_ms(text: &str, now_ms: u64) -> Option<u64> {
    let text = text.trim();
    if let Some(it) = duration_ms(text) {
        return Some(it);
    }
    if let Ok(it) = text.parse::<jiff::Timestamp>() {
        return Some(u64::try_from(it.as_millisecond()).unwrap_or_default().saturating_sub(now_ms));
    }
    match text.parse::<f64>().ok()? {
        it if it >= 1e11 => Some((it as u64).saturating_sub(now_ms)),
        it if it >= 1e9 => Some(((it * 1000.0) as u64).saturating_sub(now_ms)),
        it => millis(it),
    }
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

/// `Please retry in 34.07s` or `Please try again in 6m0s` in running text.
fn retry_in_text(message: &str) -> Option<u64> {
    let (_, rest) = message.split_once("retry in ").or_else(|| message.split_once("try again in "))?;
    let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && it != '.').unwrap_or(rest.len());
    duration_ms(rest.get(..end)?.trim_end_matches('.'))
}

/// A `Retry-After` value in milliseconds: seconds, or an HTTP date seen from `now_ms`.
fn retry_after_ms(value: &str, now_ms: u64) -> Option<u64> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return millis(seconds);
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_millisecond();
    Some(u64::try_from(at).unwrap_or_default().saturating_sub(now_ms))
}

/// `34.07s` or `900ms`, and what is in between: `1m30s`, `6m0s`, `1h2m`.
fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim();
    let mut seconds = 0.0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|it: char| !it.is_ascii_digit() && it != '.')?;
        let number: f64 = rest.get(..end)?.parse().ok()?;
        let unit = rest.get(end..)?;
        let (scale, len) = match unit {
            it if it.starts_with("ms") => (0.001, 2),
            it if it.starts_with('s') => (1.0, 1),
            it if it.starts_with('m') => (60.0, 1),
            it if it.starts_with('h') => (3_600.0, 1),
            _ => return None,
        };
        seconds += number * scale;
        rest = unit.get(len..)?;
    }
    millis(seconds)
}

/// A number of milliseconds.
fn millis_text(text: &str) -> Option<u64> {
    millis(text.trim().parse::<f64>().ok()? / 1000.0)
}

/// Milliseconds, rounded up: a wait that is a little too short is refused again.
fn millis(seconds: f64) -> Option<u64> {
    (seconds.is_finite() && (0.0..1e9).contains(&seconds)).then(|| (seconds * 1000.0).ceil() as u64)
}

/// An event of a stream, which is a JSON object.
///
/// # Errors
/// `Garbage`, with how the event begins.
pub fn parse<'a, T: Deserialize<'a>>(data: &'a str) -> Result<T, Failure> {
    let beginning = || text::head(data, 200);
    // Derived structs also read JSON arrays, field by field.
    if !data.starts_with('{') {
        let message = format!("The model's answer has an unexpected form; it begins with: {}", beginning());
        return Err(Failure::new(FailureKind::Garbage, message));
    }
    let unreadable = |why: &dyn Display| {
        let message = format!("The model's answer could not be read ({why}); it begins with: {}", beginning());
        Failure::new(FailureKind::Garbage, message)
    };
    serde_json::from_str(data).map_err(|it| unreadable(&it))
}

#[cfg(test)]
mod tests {
    use super::{duration_ms, from_answer, from_stream, millis_text, retry_after_ms};
    use castor_base::model::FailureKind;

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
            ("{\"error\":{\u{a0}\"message\":\"by\nhand\",,\"x\":1}}", "by hand"),
            (r#"{"error":{"message":"half"#, r#"{"error":{"message":"half"#),
            ("<html><body>Bad Gateway</body></html>", "The model server answered HTTP 400 Bad Request"),
            ("", "The model server answered HTTP 400 Bad Request"),
            (
                r#"{"error":{"message":"Provider failed","metadata":{"raw":"slow down","x":1}}}"#,
                "Provider failed. slow down",
            ),
            (
                r#"{"error":{"message":"Provider failed","metadata":{"raw":"{\"error\":{\"message\":\"why\"}}"}}}"#,
                "Provider failed. why",
            ),
            (r#"{"error":{"message":"own words","metadata":{"raw":""}}}"#, "own words"),
            (r#"{"error":{"message":"own words","metadata":{"raw":null}}}"#, "own words"),
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
            ("Limit 3 / min. Please try again in 6m0s. Visit …".to_owned(), None, Some(360_000)),
            (info(r#""-3s""#), None, None),
        ] {
            assert_eq!(from_answer(429, &body, header).retry_after_ms, ms, "{body}");
        }
    }

    #[test]
    fn retry_after() {
        assert_eq!(retry_after_ms(" 3 ", 0), Some(3_000));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_767_400), Some(9_600));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_800_000), Some(0));
        assert_eq!(retry_after_ms("tomorrow", 0), None);
    }

    #[test]
    fn durations() {
        for (text, ms) in [
            ("34.07s", Some(34_070)),
            ("900ms", Some(900)),
            ("1m30s", Some(90_000)),
            ("6m0s", Some(360_000)),
            ("1h2m", Some(3_720_000)),
            ("20ms ", Some(20)),
            ("", None),
            ("5", None),
            ("s", None),
            ("5d", None),
            ("-3s", None),
            ("1.2.3s", None),
        ] {
            assert_eq!(duration_ms(text), ms, "{text:?}");
        }
        assert_eq!(millis_text(" 1500 "), Some(1_500));
        assert_eq!(millis_text("soon"), None);
    }
}
