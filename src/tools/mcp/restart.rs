//! Restarts of servers that are gone: each try waits longer; one that worked for a while has all tries again.

use std::time::Duration;

use tokio::time::Instant;

/// Before the first try; each further one waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that worked for so long has its tries back.
const STEADY: Duration = Duration::from_secs(60);

/// The tries of one server.
pub(super) struct Restarts {
    max: u32,
    n_tries: u32,
    /// Since when it works; `None`: it is gone.
    up_since: Option<Instant>,
}

/// The next try.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NextTry {
    pub(super) at: Instant,
    /// From 1.
    pub(super) number: u32,
}

impl Restarts {
    /// A server that works since `now`, and may be started again so many times in a row.
    pub(super) fn new(max: u32, now: Instant) -> Self {
        Self { max, n_tries: 0, up_since: Some(now) }
    }

    pub(super) fn came_up(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// It is gone, or could not be started. `None`: it is left alone.
    pub(super) fn next(&mut self, now: Instant) -> Option<NextTry> {
        if self.up_since.take().is_some_and(|it| now.duration_since(it) >= STEADY) {
            self.n_tries = 0;
        }
        if self.n_tries >= self.max {
            return None;
        }
        let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.n_tries)).min(LONGEST_PAUSE);
        self.n_tries += 1;
        Some(NextTry { at: now + pause, number: self.n_tries })
    }

    /// In words, for why it is gone for good.
    pub(super) fn tries_in_words(&self) -> String {
        match self.max {
            0 => "and `mcp.maxRestarts` is 0".to_owned(),
            1 => "and it was started again once".to_owned(),
            n => format!("and it was started again {n} times"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::Restarts;

    /// `up` seconds of work, then its end: the number of the next try and its pause in seconds.
    fn check(max: u32, lives: &[Option<u64>], expected: &[Option<(u32, u64)>]) {
        let mut now = Instant::now();
        let mut restarts = Restarts::new(max, now);
        let mut found = Vec::new();
        for (at, life) in lives.iter().enumerate() {
            if let Some(up) = life {
                if at > 0 {
                    restarts.came_up(now);
                }
                now += Duration::from_secs(*up);
            }
            let next = restarts.next(now);
            found.push(next.map(|it| (it.number, it.at.duration_since(now).as_secs())));
            now = next.map_or(now, |it| it.at);
        }
        assert_eq!(found, expected, "{max} {lives:?}");
    }

    #[test]
    fn pauses_double_up_to_a_minute_and_tries_have_an_end() {
        let failing = [Some(0), None, None, None, None, None, None, None, None];
        let pauses = [1, 2, 4, 8, 16, 32, 60, 60];
        let tries = pauses.iter().zip(1..).map(|(pause, number)| Some((number, *pause)));
        check(8, &failing, &tries.chain([None]).collect::<Vec<_>>());
        check(0, &[Some(500)], &[None]);
    }

    #[test]
    fn a_server_that_worked_for_a_while_has_its_tries_back() {
        check(2, &[Some(0), Some(59), Some(60), None], &[Some((1, 1)), Some((2, 2)), Some((1, 1)), Some((2, 2))]);
        check(2, &[Some(0), Some(59), Some(59)], &[Some((1, 1)), Some((2, 2)), None]);
    }
}
