//! Clock and random numbers as one value that callers pass in: pure rooms never ask the machine.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

/// The instant of a step, with the seed from which its ids and jitter derive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the Unix epoch.
    pub unix_ms: u64,
    /// Different for every step; the same seed gives the same ids.
    pub seed: u64,
}

impl Now {
    /// The `n`-th random number of this step.
    pub fn random(&self, n: u64) -> u64 {
        // splitmix64: passes the usual tests, needs no state.
        let mut z = self.seed.wrapping_add(n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The day in UTC.
    pub fn day(&self) -> Date {
        day(self.unix_ms)
    }

    /// The same, as in `2026-01-31`.
    pub fn date(&self) -> String {
        self.day().to_string()
    }

    /// Dice for another step. Not the old seed and a constant: `dice` adds one too, and numbers would come again.
    pub fn reseed(self) -> Self {
        Self { seed: self.random(0), ..self }
    }

    /// A short id, random enough to be unique within a session.
    pub fn id(&self, prefix: &str, n: u64) -> String {
        format!("{prefix}{:012x}", self.random(n) & 0xffff_ffff_ffff)
    }
}

/// The day in UTC.
pub fn day(unix_ms: u64) -> Date {
    let stamp = Timestamp::from_millisecond(unix_ms.cast_signed()).unwrap_or_default();
    stamp.to_zoned(TimeZone::UTC).date()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Now;

    #[test]
    fn no_number_comes_again_in_a_later_step() {
        let mut now = Now { unix_ms: 0, seed: 0 };
        let mut seen = BTreeSet::new();
        for _ in 0..300 {
            now = now.reseed();
            (1..300).for_each(|n| assert!(seen.insert(now.random(n))));
        }
    }
}
