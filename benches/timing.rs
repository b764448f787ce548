//! How the measurements time what they run.

use std::time::{Duration, Instant};

/// The times of so many runs, shortest first.
pub fn times(n: usize, mut run: impl FnMut()) -> Vec<Duration> {
    let mut all: Vec<Duration> = (0..n)
        .map(|_| {
            let start = Instant::now();
            run();
            start.elapsed()
        })
        .collect();
    all.sort();
    all
}

/// That which so many percent of the times do not exceed; of none, zero.
pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default()
}
