//! Figures as people read them: durations, token counts, numbers of things.

use std::time::Duration;

/// Such as `3 s` or `2 min 5 s`; `None` below one second.
pub fn duration(it: Duration) -> Option<String> {
    let seconds = it.as_secs();
    match seconds {
        0 => None,
        1..60 => Some(format!("{seconds} s")),
        60..3_600 => Some(format!("{} min {} s", seconds / 60, seconds % 60)),
        _ => Some(format!("{} h {} min", seconds / 3_600, seconds / 60 % 60)),
    }
}

/// Such as `980`, `3.1 k`, `42 k` or `1.2 M`.
pub fn tokens(n: u64) -> String {
    let scaled = |unit: u64, sign: &str| match n / unit {
        0..10 => format!("{}.{} {sign}", n / unit, n % unit * 10 / unit),
        it => format!("{it} {sign}"),
    };
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => scaled(1_000, "k"),
        _ => scaled(1_000_000, "M"),
    }
}

/// Such as `42 k tokens in (81 % cached), 3.1 k out`; `None`: there were none.
pub fn spent_tokens(input: u64, cached: u64, output: u64) -> Option<String> {
    if input + output == 0 {
        return None;
    }
    let share = (cached * 100).checked_div(input).filter(|it| *it > 0);
    let share = share.map(|it| format!(" ({it} % cached)")).unwrap_or_default();
    Some(format!("{} tokens in{share}, {} out", tokens(input), tokens(output)))
}

/// Such as `$0.021`.
pub fn dollars(amount: f64) -> String {
    format!("${}", money(amount))
}

/// Two digits that count, and at least cents.
pub fn money(amount: f64) -> String {
    match amount {
        it if it >= 0.095 => format!("{it:.2}"),
        it if it >= 0.0095 => format!("{it:.3}"),
        it if it > 0.0 => format!("{it:.4}"),
        _ => "0".to_owned(),
    }
}

/// Such as `1 file` or `3 files`.
pub fn count(n: u64, one: &str, more: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { more })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{count, duration, spent_tokens, tokens};

    #[test]
    fn figures_are_short() {
        let seconds = |n| duration(Duration::from_secs(n));
        assert_eq!(duration(Duration::from_millis(999)), None);
        assert_eq!(seconds(59).as_deref(), Some("59 s"));
        assert_eq!(seconds(125).as_deref(), Some("2 min 5 s"));
        assert_eq!(seconds(7_322).as_deref(), Some("2 h 2 min"));
        let all = [0, 999, 1_000, 3_199, 42_900, 999_999, 1_250_000].map(tokens);
        assert_eq!(all, ["0", "999", "1.0 k", "3.1 k", "42 k", "999 k", "1.2 M"]);
        assert_eq!(spent_tokens(0, 0, 0), None);
        assert_eq!(spent_tokens(1_500, 0, 25).as_deref(), Some("1.5 k tokens in, 25 out"));
        assert_eq!(spent_tokens(42_100, 34_200, 3_100).as_deref(), Some("42 k tokens in (81 % cached), 3.1 k out"));
        assert_eq!([count(1, "line", "lines"), count(0, "line", "lines")], ["1 line", "0 lines"]);
    }
}
