//! Rate limits in the headers of an answer.

use super::error_body::reset_ms;
use castor_base::quota::RateLimit;

/// What is limited, with the headers of its limit, of what is left and of the reset. Those of OpenAI's API are the ones
/// of most others, too.
const HEADERS: &[(&str, [&str; 3])] = &[
    ("requests", ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"]),
    ("tokens", ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"]),
    (
        "requests",
        [
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
        ],
    ),
    (
        "tokens",
        [
            "anthropic-ratelimit-tokens-limit",
            "anthropic-ratelimit-tokens-remaining",
            "anthropic-ratelimit-tokens-reset",
        ],
    ),
    (
        "input-tokens",
        [
            "anthropic-ratelimit-input-tokens-limit",
            "anthropic-ratelimit-input-tokens-remaining",
            "anthropic-ratelimit-input-tokens-reset",
        ],
    ),
    (
        "output-tokens",
        [
            "anthropic-ratelimit-output-tokens-limit",
            "anthropic-ratelimit-output-tokens-remaining",
            "anthropic-ratelimit-output-tokens-reset",
        ],
    ),
];

/// Those that say what is left.
pub(super) fn read_rate_limits<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Vec<RateLimit> {
    let number = |name: &str| header(name)?.trim().parse().ok();
    let read = |(what, [limit, remaining, reset]): &(&'static str, [&str; 3])| {
        let resets_ms = header(reset).and_then(|it| reset_ms(it, now_ms)).map(|it| now_ms.saturating_add(it));
        Some(RateLimit { what, limit: number(limit), remaining: number(remaining)?, resets_ms })
    };
    HEADERS.iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::read_rate_limits;

    fn check(headers: &[(&str, &str)], expected: &str) {
        let found = read_rate_limits(|name| headers.iter().find(|it| it.0 == name).map(|it| it.1), 1_000);
        let found = found.iter().map(|it| format!("{} {:?}/{:?} {:?}", it.what, it.remaining, it.limit, it.resets_ms));
        assert_eq!(found.collect::<Vec<_>>().join("; "), expected);
    }

    #[test]
    fn limits_are_read_as_providers_write_them() {
        check(
            &[
                ("x-ratelimit-limit-requests", "500"),
                ("x-ratelimit-remaining-requests", "499"),
                ("x-ratelimit-reset-requests", "6m0s"),
                ("x-ratelimit-remaining-tokens", "7"),
            ],
            "requests 499/Some(500) Some(361000); tokens 7/None None",
        );
        check(
            &[
                ("anthropic-ratelimit-input-tokens-limit", "40"),
                ("anthropic-ratelimit-input-tokens-remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "1970-01-01T00:01:00Z"),
                ("anthropic-ratelimit-tokens-limit", "40"),
            ],
            "input-tokens 0/Some(40) Some(60000)",
        );
        check(&[("x-ratelimit-remaining-requests", "many")], "");
    }
}
