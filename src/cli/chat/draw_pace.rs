//! The pace of the chat's draws: at once for a key, sixty in a second for an answer, and a pause behind each new size.

use std::time::Duration;

/// Between two draws that no key asks for: at most sixty in a second.
const DRAW_PERIOD: Duration = Duration::from_millis(17);
/// Between two draws in which only time passed.
const SPIN_PERIOD: Duration = Duration::from_millis(100);
/// After a draw in a new size, where the next new size may be there before it is told.
const RESIZE_PERIOD: Duration = Duration::from_millis(300);

pub struct DrawPace {
    last_draw: Option<Duration>,
    /// The size at the last draw.
    size: (usize, usize),
    /// A key was pressed, or the size is another one: nothing holds the next draw.
    is_urgent: bool,
    /// Lines are left of the last draw.
    has_more: bool,
    /// Only keys and new sizes draw before that.
    held_until: Duration,
    tells_size_late: bool,
}

impl DrawPace {
    pub fn new(size: (usize, usize), tells_size_late: bool) -> Self {
        Self { last_draw: None, size, is_urgent: true, has_more: false, held_until: Duration::ZERO, tells_size_late }
    }

    pub fn set_urgent(&mut self) {
        self.is_urgent = true;
    }

    /// When the next draw is due; `None`: nothing changes by itself. `changes_from`: when time alone changes something.
    pub fn due(&self, is_stale: bool, changes_from: Option<Duration>) -> Option<Duration> {
        let after = |period| self.last_draw.map_or(Duration::ZERO, |it| it + period);
        let at = match is_stale {
            true if self.is_urgent => return Some(Duration::ZERO),
            true if self.has_more => Some(Duration::ZERO),
            true => Some(after(DRAW_PERIOD)),
            false => changes_from.map(|it| it.max(after(SPIN_PERIOD))),
        };
        at.map(|it| it.max(self.held_until))
    }

    /// `has_more`: not all lines were drawn.
    pub fn note_draw(&mut self, now: Duration, size: (usize, usize), has_more: bool) {
        // The rows of the live region cannot be counted in a window that is narrower than it says.
        if self.tells_size_late && size != self.size {
            self.held_until = now + RESIZE_PERIOD;
        }
        *self = Self { last_draw: Some(now), size, is_urgent: false, has_more, ..*self };
    }
}

#[cfg(test)]
mod tests {
    use super::DrawPace;
    use std::time::Duration;

    const fn ms(it: u64) -> Duration {
        Duration::from_millis(it)
    }

    #[test]
    fn keys_and_bursts_do_not_wait_and_time_does() {
        let mut pace = DrawPace::new((80, 24), true);
        assert_eq!(pace.due(true, None), Some(ms(0)));
        pace.note_draw(ms(5), (80, 24), false);
        assert_eq!(pace.due(true, None), Some(ms(22)));
        assert_eq!(pace.due(false, Some(ms(0))), Some(ms(105)));
        assert_eq!(pace.due(false, None), None);
        pace.set_urgent();
        assert_eq!(pace.due(true, None), Some(ms(0)));
        pace.note_draw(ms(6), (80, 24), true);
        assert_eq!(pace.due(true, None), Some(ms(0)));
    }

    #[test]
    fn after_a_new_size_only_a_key_or_the_next_size_draws() {
        let mut pace = DrawPace::new((80, 24), true);
        pace.note_draw(ms(10), (70, 24), false);
        assert_eq!(pace.due(true, None), Some(ms(310)));
        assert_eq!(pace.due(false, Some(ms(0))), Some(ms(310)));
        pace.set_urgent();
        assert_eq!(pace.due(true, None), Some(ms(0)));
        // A draw for a key, or for a size that was known before its signal, ends no wait.
        pace.note_draw(ms(20), (70, 24), true);
        assert_eq!(pace.due(true, None), Some(ms(310)));
        // A terminal that tells its size at once.
        let mut pace = DrawPace::new((80, 24), false);
        pace.note_draw(ms(10), (70, 24), false);
        assert_eq!(pace.due(true, None), Some(ms(27)));
    }
}
