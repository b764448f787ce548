//! What a very long session costs: ten thousand prompts, each with a result of a tool of up to 1 MiB. Prints the CPU time
//! of a turn by the session's age, sizes and memory; stops where a request is larger than its window, where the log would
//! make another session, or where memory is more than it may be. `CASTOR_BENCH_TURNS=n`: fewer prompts.

#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::indexing_slicing, clippy::unwrap_used)]

mod life;

use std::{env, fs, time::Instant};

use life::{Life, Tally};

const N_TURNS: usize = 10_000;
/// Turns at the beginning, in the middle and at the end that are looked at by themselves.
const N_SLICE: usize = 100;
/// Of the whole process, with two sessions in it: the one that lives, and the one that its log makes.
const MOST_MIB: f64 = 64.0;

fn main() {
    let said = env::var("CASTOR_BENCH_TURNS").ok().and_then(|it| it.parse().ok());
    let n_turns = said.unwrap_or(N_TURNS).max(4 * N_SLICE);
    // The window of today's models, and one so small that it is compressed again and again.
    for (window, bad) in [(1_048_576, 0), (64_000, 0), (64_000, 30)] {
        let mut life = Life::new(window, bad);
        println!("window {window}, {bad} % of the snapshots fail, {n_turns} turns");
        let start = Instant::now();
        let slices = [("first", N_SLICE), ("", n_turns / 2 - N_SLICE), ("middle", N_SLICE)];
        let last = [("", n_turns - n_turns / 2 - 2 * N_SLICE), ("last", N_SLICE)];
        for (name, n) in slices.into_iter().chain(last) {
            let (before, cpu) = (life.tally, cpu_ms());
            (0..n).for_each(|_| life.turn());
            let ms = (cpu_ms() - cpu) / n as f64;
            assert!(life.is_replayed(), "the log makes another session");
            println!("  {name:>6} {n:>5}: {}", line(life.tally, before, n, ms));
        }
        let mib = peak_kib() as f64 / 1024.0;
        println!("  {:.1?} in all, {mib:.1} MiB at most: {:?}", start.elapsed(), life.tally);
        assert!(mib <= MOST_MIB, "{mib:.1} MiB are more than {MOST_MIB}");
    }
}

fn line(now: Tally, before: Tally, n: usize, ms: f64) -> String {
    let sent = (now.sent - before.sent) / n as u64;
    let output = (now.output - before.output) / n as u64;
    format!("{ms:>7.3} ms of CPU a turn, with {sent:>9} bytes of requests and {output:>7} of results")
}

/// CPU time of this process so far: others that run do not count.
fn cpu_ms() -> f64 {
    let stat = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns: u64 = stat.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or_default();
    ns as f64 / 1e6
}

/// The most memory that this process ever had; 0: the system does not say.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"));
    line.and_then(|it| it.trim().trim_end_matches("kB").trim().parse().ok()).unwrap_or_default()
}
