//! The time that sums are made of: days, and how long ago something was.

use std::ops::Range;

use jiff::{Timestamp, civil::Date, tz::TimeZone};

use castor_base::clock::Now;

const HOUR: u64 = 60 * 60 * 1_000;
const WORDS: &str = "write a day (2026-01-31), or how long ago: 12h, 7d, 4w";

/// Unix times in milliseconds, from `since` to `until`; a day as an end counts whole.
///
/// # Errors
/// What cannot be understood, in one line.
pub fn period(since: Option<&str>, until: Option<&str>, now: Now, zone: &TimeZone) -> Result<Range<u64>, String> {
    let since = since.map(|it| bounds("--since", it, now, zone)).transpose()?;
    let until = until.map(|it| bounds("--until", it, now, zone)).transpose()?;
    let (start, end) = (since.map_or(0, |it| it.start), until.map_or(u64::MAX, |it| it.end));
    match start < end {
        true => Ok(start..end),
        false => Err("--until is before --since; swap them".to_owned()),
    }
}

/// Where what the words say begins and ends.
fn bounds(flag: &str, text: &str, now: Now, zone: &TimeZone) -> Result<Range<u64>, String> {
    let ago = text.char_indices().next_back().and_then(|(at, unit)| {
        let hours = match unit {
            'h' => 1,
            'd' => 24,
            'w' => 7 * 24,
            _ => return None,
        };
        let n: u64 = text.get(..at)?.parse().ok()?;
        Some(now.unix_ms.saturating_sub(n.checked_mul(hours * HOUR)?))
    });
    if let Some(at) = ago {
        return Ok(at..at);
    }
    if let Ok(it) = text.parse::<Timestamp>() {
        let at = u64::try_from(it.as_millisecond()).unwrap_or_default();
        return Ok(at..at);
    }
    let day = text.len() == "2026-01-31".len();
    let day: Date = text.parse().ok().filter(|_| day).ok_or_else(|| format!("{flag} {text} is no time: {WORDS}"))?;
    let start = |it: Date| Some(it.to_zoned(zone.clone()).ok()?.timestamp().as_millisecond());
    let next = day.tomorrow().ok().and_then(start);
    let ms = |it: Option<i64>| it.map(|it| u64::try_from(it).unwrap_or_default());
    let far = || format!("{flag} {text} is too far away: {WORDS}");
    Ok(ms(start(day)).ok_or_else(far)?..ms(next).ok_or_else(far)?)
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, offset};

    use super::period;
    use castor_base::clock::Now;

    #[test]
    fn days_are_local_and_ends_count() {
        let now = Now { unix_ms: 1_700_000_000_000, seed: 0 };
        let zone = TimeZone::fixed(offset(2));
        let of = |since, until| period(since, until, now, &zone);
        let day = 86_400_000;
        assert_eq!(of(None, None), Ok(0..u64::MAX));
        assert_eq!(of(Some("2023-11-14"), Some("2023-11-14")), Ok(1_699_912_800_000..1_699_999_200_000));
        assert_eq!(of(Some("7d"), Some("12h")), Ok(now.unix_ms - 7 * day..now.unix_ms - day / 2));
        assert_eq!(of(Some("1w"), None), Ok(now.unix_ms - 7 * day..u64::MAX));
        assert_eq!(of(Some("2023-11-14T00:00:00Z"), None), Ok(1_699_920_000_000..u64::MAX));
        for bad in
            ["", "d", "-1d", "7", "7y", "soon", "2023-13-01", "2023-11-14 x", "999999999999999999d", "9999-12-31"]
        {
            let why = of(Some(bad), None).unwrap_err();
            assert!(why.contains("12h, 7d, 4w"), "{bad}: {why}");
        }
        assert_eq!(of(Some("1d"), Some("2d")).unwrap_err(), "--until is before --since; swap them");
    }
}
