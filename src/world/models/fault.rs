//! What servers of all providers say alike when something went wrong: how long to wait.

/// A `Retry-After` value in milliseconds: seconds, or an HTTP date seen from `now_unix_s`.
pub fn retry_after_ms(value: &str, now_unix_s: i64) -> Option<u64> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        return millis(seconds);
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp().as_second();
    u64::try_from(at.saturating_sub(now_unix_s).max(0)).ok()?.checked_mul(1000)
}

/// `34.07s` or `900ms`, and what is in between: `1m30s`, `6m0s`, `1h2m`.
pub fn duration_ms(text: &str) -> Option<u64> {
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
pub fn millis_text(text: &str) -> Option<u64> {
    millis(text.trim().parse::<f64>().ok()? / 1000.0)
}

/// Milliseconds, rounded up: a wait that is a little too short is refused again.
pub fn millis(seconds: f64) -> Option<u64> {
    (seconds.is_finite() && (0.0..1e9).contains(&seconds)).then(|| (seconds * 1000.0).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::{duration_ms, millis_text, retry_after_ms};

    #[test]
    fn retry_after() {
        assert_eq!(retry_after_ms(" 3 ", 0), Some(3_000));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_767), Some(10_000));
        assert_eq!(retry_after_ms("Sun, 06 Nov 1994 08:49:37 GMT", 784_111_800), Some(0));
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
