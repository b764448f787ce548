//! A long session in small: hundreds of prompts with results of up to 1 MiB in a window that is full again and again.

#[path = "../../benches/life.rs"]
mod life;

use life::Life;

#[test]
fn a_long_session_stays_within_its_window_and_its_log_makes_the_same() {
    for bad in [0, 50] {
        let mut life = Life::new(64_000, bad);
        for n in 0..150 {
            life.turn();
            assert!(n % 10 > 0 || life.is_replayed(), "turn {n}: the log makes another session");
        }
        assert!(life.is_replayed());
        let it = life.tally;
        assert!(it.compressed > 3 && it.masked > 20 && it.output > 5_000_000, "{it:?}");
        assert!(it.largest > 32_000 && (it.failed > 0) == (bad > 0), "{it:?}");
    }
}
