//! Times in exports, in UTC, for people and for programs.

pub fn iso(ms: u64) -> String {
    stamp(ms).map(|it| it.to_string()).unwrap_or_default()
}

/// `2026-01-31 12:00:00 UTC`
pub fn plain(ms: u64) -> String {
    stamp(ms).map(|it| it.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()).unwrap_or_default()
}

fn stamp(ms: u64) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_millisecond(i64::try_from(ms).ok()?).ok()
}
