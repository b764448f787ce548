//! Axes of plots: a round end of a scale, and times with the idle ones cut short.

/// Room that an idle time has at most, as a part of all times together that are not.
const MAX_IDLE: f64 = 0.02;

/// The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below the number.
pub fn round_end(most: f64) -> f64 {
    if !most.is_finite() || most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let ends = [1.0, 2.0, 2.5, 5.0, 10.0].map(|it| it * power);
    ends.into_iter().find(|it| *it >= most * (1.0 - 1e-9)).unwrap_or(most)
}

/// Where times stand on an axis from 0 to 1. What happens in the longest idle time takes little room.
#[derive(Clone, Debug, Default)]
pub struct TimeAxis {
    /// Times with their places, in order.
    knots: Vec<(u64, f64)>,
}

impl TimeAxis {
    /// Of times in which something happened, from and to.
    pub fn new(mut busy: Vec<(u64, u64)>) -> Self {
        busy.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (from, to) in busy {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to.max(from))),
            }
        }
        let total: u64 = merged.iter().map(|(from, to)| to - from).sum();
        let idle = (total as f64 * MAX_IDLE).max(1.0);
        let (mut knots, mut at): (Vec<(u64, f64)>, f64) = (Vec::new(), 0.0);
        for (from, to) in merged {
            if let Some((last, _)) = knots.last() {
                at += ((from - last) as f64).min(idle);
            }
            knots.push((from, at));
            at += (to - from) as f64;
            knots.push((to, at));
        }
        let end = if at > 0.0 { at } else { 1.0 };
        knots.iter_mut().for_each(|it| it.1 /= end);
        Self { knots }
    }

    /// The place of a time; those before the first and behind the last stand at the ends.
    pub fn place_of(&self, at: u64) -> f64 {
        let next = self.knots.partition_point(|it| it.0 < at);
        match (next.checked_sub(1).and_then(|it| self.knots.get(it)), self.knots.get(next)) {
            (Some(before), Some(after)) => {
                let part = (at - before.0) as f64 / (after.0 - before.0).max(1) as f64;
                before.1 + (after.1 - before.1) * part
            }
            (None, Some(after)) => after.1,
            (Some(before), None) => before.1,
            (None, None) => 0.0,
        }
    }
}
