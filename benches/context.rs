//! What a very long session costs: ten thousand prompts, each with a result of a tool of up to 1 MiB. Prints time, memory
//! and sizes; stops where a request is larger than its window, or where the log would make another session.

#![allow(clippy::disallowed_methods)]

mod life;
mod timing;

use std::{fs, time::Duration};

use life::Life;

const N_TURNS: usize = 10_000;
const N_STEPS: usize = 10;

fn main() {
    // The window of today's models, and one so small that it is compressed again and again.
    for (window, bad) in [(1_048_576, 0), (64_000, 0), (64_000, 30)] {
        let mut life = Life::new(window, bad);
        println!("window {window}, {bad} % of the snapshots fail");
        let mut sum = Duration::ZERO;
        for step in 1..=N_STEPS {
            let before = life.tally;
            let times = timing::times(N_TURNS / N_STEPS, || life.turn());
            let tally = life.tally;
            sum += times.iter().sum::<Duration>();
            assert!(life.is_replayed(), "the log makes another session");
            println!(
                "  turn {:>5}: p50 {:>9.3?}, p95 {:>9.3?} a turn; {:>7} bytes a request; {:>6.1} MiB at most",
                step * N_TURNS / N_STEPS,
                timing::percentile(&times, 50),
                timing::percentile(&times, 95),
                (tally.sent - before.sent) / (tally.requests - before.requests).max(1),
                peak_kib() as f64 / 1024.0,
            );
        }
        println!("  {:.1?} in all: {:?}", sum, life.tally);
    }
}

/// The most memory that this process ever had; 0: the system does not say.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    line.and_then(|it| it.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or_default()
}
