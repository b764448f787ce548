//! Times as people read them: how long ago, in the local time zone, and how long something took.

use jiff::{Timestamp, Zoned, tz::TimeZone};

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
/// Beyond so many days a date says more than a number of days.
const MAX_DAYS: u64 = 30;

/// `3 min ago`, and the date of what is long past. Milliseconds since the Unix epoch.
pub fn ago(then_ms: u64, now_ms: u64, zone: &TimeZone) -> String {
    match now_ms.saturating_sub(then_ms) / 1_000 {
        it if it < MINUTE => "just now".to_owned(),
        it if it < HOUR => format!("{} min ago", it / MINUTE),
        it if it < DAY => format!("{} h ago", it / HOUR),
        it if it < 2 * DAY => "1 day ago".to_owned(),
        it if it <= MAX_DAYS * DAY => format!("{} days ago", it / DAY),
        _ => day(then_ms, zone),
    }
}

/// `2026-01-31`
pub fn day(ms: u64, zone: &TimeZone) -> String {
    format_time(ms, zone, "%Y-%m-%d")
}

/// `Saturday, 31 January 2026`
pub fn long_day(ms: u64, zone: &TimeZone) -> String {
    format_time(ms, zone, "%A, %-d %B %Y")
}

/// `14:05`
pub fn clock(ms: u64, zone: &TimeZone) -> String {
    format_time(ms, zone, "%H:%M")
}

/// `2026-01-31 14:05`
pub fn minute(ms: u64, zone: &TimeZone) -> String {
    format_time(ms, zone, "%Y-%m-%d %H:%M")
}

/// `2026-01-31T14:05:00Z`, for programs.
pub fn iso(ms: u64) -> String {
    stamp(ms).map(|it| it.to_string()).unwrap_or_default()
}

/// `4.2 s`, `3 min 20 s`, `2 h 5 min`
pub fn duration(ms: u64) -> String {
    match ms / 1_000 {
        0..10 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        it if it < MINUTE => format!("{it} s"),
        it if it < HOUR => format!("{} min {} s", it / MINUTE, it % MINUTE),
        it => format!("{} h {} min", it / HOUR, it % HOUR / MINUTE),
    }
}

fn format_time(ms: u64, zone: &TimeZone, format: &str) -> String {
    stamp(ms).map(|it| Zoned::new(it, zone.clone()).strftime(format).to_string()).unwrap_or_default()
}

fn stamp(ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, offset};

    use super::{ago, clock, duration, long_day, minute};

    #[test]
    fn times_in_words() {
        let (now, zone) = (1_700_000_000_000, TimeZone::UTC);
        let words = [0, 59, 60, 3_599, 7_200, 90_000, 180_000, 30 * 86_400, 31 * 86_400];
        let words = words.map(|seconds| ago(now - seconds * 1_000, now, &zone));
        let expected =
            "just now, just now, 1 min ago, 59 min ago, 2 h ago, 1 day ago, 2 days ago, 30 days ago, 2023-10-14";
        assert_eq!(words.join(", "), expected);
        assert_eq!(ago(now + 5_000, now, &zone), "just now", "clocks differ");
        let durations = [0, 1_250, 12_000, 200_000, 7_500_000].map(duration);
        assert_eq!(durations, ["0.0 s", "1.2 s", "12 s", "3 min 20 s", "2 h 5 min"]);
    }

    #[test]
    fn times_are_local() {
        let (at, zone) = (1_700_000_000_000, TimeZone::fixed(offset(2)));
        assert_eq!([minute(at, &zone), clock(at, &zone)], ["2023-11-15 00:13", "00:13"]);
        assert_eq!(long_day(at, &zone), "Wednesday, 15 November 2023");
        assert_eq!(ago(u64::MAX, 0, &zone), "just now");
    }
}
