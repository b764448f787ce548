//! The messages of one connection on their way out: numbered from 1, kept until a client that lost its stream has them.

use std::collections::VecDeque;

use bytes::Bytes;

/// Bytes that a stream has been given and has not written yet.
const WINDOW: usize = 256 << 10;
/// Bytes that are kept of what was written and not heard yet: a stream that breaks may not have brought them.
const KEPT: usize = 2 << 20;
/// Bytes that wait, above which a stream that does not move is too slow and is closed.
const SLOW: usize = 4 << 20;
/// How long it may not move.
const STILL_MS: u64 = 2000;
/// Bytes that wait, above which the connection ends.
const FULL: usize = 16 << 20;

/// Messages are missing between what the client has and what is kept.
#[derive(Debug, PartialEq, Eq)]
pub struct LostMessages;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeliveryState {
    Fine,
    /// The stream does not keep up. The client can go on from where it is by another stream.
    Slow,
    /// Nothing more is kept.
    Full,
}

#[derive(Debug, Default)]
pub struct Delivery {
    /// The oldest that is kept first.
    kept: VecDeque<Bytes>,
    /// How many came before it.
    n_dropped: u64,
    /// How many of those that are kept were given to the stream.
    n_given: usize,
    /// Bytes that were given, and of these those that are not written.
    given: usize,
    unwritten: usize,
    /// Bytes that were not given.
    waiting: usize,
    /// When the stream began, or wrote something.
    moved_ms: u64,
}

impl Delivery {
    pub fn push(&mut self, message: Bytes) {
        self.waiting += message.len();
        self.kept.push_back(message);
    }

    /// The next message for a stream that has room for it, and its number.
    pub fn take_next(&mut self) -> Option<(u64, Bytes)> {
        if self.unwritten >= WINDOW {
            return None;
        }
        let message = self.kept.get(self.n_given)?.clone();
        self.n_given += 1;
        self.given += message.len();
        self.unwritten += message.len();
        self.waiting -= message.len();
        Some((self.n_dropped + self.n_given as u64, message))
    }

    /// The stream has written so many bytes more.
    pub fn mark_written(&mut self, n: usize, now_ms: u64) {
        self.moved_ms = now_ms;
        self.unwritten = self.unwritten.saturating_sub(n);
        while self.given - self.unwritten.min(self.given) > KEPT && self.n_given > 0 {
            self.drop_oldest();
        }
    }

    /// The client has all messages up to the one of this number.
    pub fn mark_heard(&mut self, number: u64) {
        while self.n_dropped < number && self.n_given > 0 {
            self.drop_oldest();
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
        }
    }

    fn drop_oldest(&mut self) {
        let Some(oldest) = self.kept.pop_front() else { return };
        self.n_dropped += 1;
        self.n_given -= 1;
        self.given -= oldest.len();
    }

    /// Another stream goes on behind the message `after`; without one, behind all that was given.
    ///
    /// # Errors
    /// When messages behind it are gone, or there is no such message.
    pub fn resume(&mut self, after: Option<u64>, now_ms: u64) -> Result<(), LostMessages> {
        self.moved_ms = now_ms;
        let given = self.n_dropped + self.n_given as u64;
        let after = after.unwrap_or(given);
        let have = after.checked_sub(self.n_dropped).filter(|_| after <= given).ok_or(LostMessages)?;
        let have = usize::try_from(have).map_err(|_| LostMessages)?;
        self.n_given = have;
        self.given = self.kept.iter().take(have).map(Bytes::len).sum();
        self.waiting = self.kept.iter().skip(have).map(Bytes::len).sum();
        self.unwritten = 0;
        Ok(())
    }

    pub fn state(&self, now_ms: u64) -> DeliveryState {
        match self.waiting {
            it if it > FULL => DeliveryState::Full,
            it if it > SLOW && now_ms.saturating_sub(self.moved_ms) >= STILL_MS => DeliveryState::Slow,
            _ => DeliveryState::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{Delivery, DeliveryState, FULL, KEPT, LostMessages, SLOW, STILL_MS, WINDOW};

    fn numbers(it: &mut Delivery) -> Vec<u64> {
        std::iter::from_fn(|| it.take_next()).map(|it| it.0).collect()
    }

    #[test]
    fn a_stream_that_breaks_goes_on_where_the_client_is() {
        let mut it = Delivery::default();
        (0..5).for_each(|n| it.push(Bytes::from(vec![n; 10])));
        assert_eq!(numbers(&mut it), [1, 2, 3, 4, 5]);
        it.mark_written(30, 0);
        it.push(Bytes::from_static(b"six"));
        // What the socket took may have been lost with it.
        it.resume(Some(2), 0).unwrap();
        assert_eq!(numbers(&mut it), [3, 4, 5, 6]);
        it.resume(None, 0).unwrap();
        assert_eq!(numbers(&mut it), [0; 0]);
        assert_eq!(it.resume(Some(7), 0), Err(LostMessages), "there is none of that number");
        it.resume(Some(0), 0).unwrap();
        assert_eq!(numbers(&mut it).len(), 6);
    }

    #[test]
    fn what_the_client_has_is_not_kept() {
        let mut it = Delivery::default();
        (0..5).for_each(|n| it.push(Bytes::from(vec![n; 10])));
        assert_eq!(numbers(&mut it).len(), 5);
        it.mark_written(50, 0);
        it.push(Bytes::from_static(b"six"));
        it.mark_heard(4);
        assert_eq!(it.resume(Some(3), 0), Err(LostMessages));
        it.resume(Some(4), 0).unwrap();
        assert_eq!(numbers(&mut it), [5, 6]);
        // Nobody has what was not sent.
        it.push(Bytes::from_static(b"seven"));
        it.mark_heard(99);
        assert_eq!((numbers(&mut it), it.kept.len()), (vec![7], 1));
    }

    #[test]
    fn only_so_much_is_kept_and_given() {
        let mut it = Delivery::default();
        let message = Bytes::from(vec![0; WINDOW / 2]);
        let n = KEPT / message.len() + 4;
        (0..n).for_each(|_| it.push(message.clone()));
        let mut n_seen = 0;
        while n_seen < n {
            let seen = numbers(&mut it).len();
            assert!((1..=2).contains(&seen), "a window holds two of them");
            n_seen += seen;
            it.mark_written(seen * message.len(), 0);
        }
        assert_eq!(it.resume(Some(1), 0), Err(LostMessages));
        it.resume(Some(n as u64 - 3), 0).unwrap();
        assert_eq!(it.take_next().unwrap().0, n as u64 - 2);
    }

    #[test]
    fn a_client_that_does_not_read_is_slow_and_then_gone() {
        let mut it = Delivery::default();
        let piece = Bytes::from(vec![0; 1 << 20]);
        let mut push = |n: usize| {
            (0..n).for_each(|_| it.push(piece.clone()));
            [it.state(STILL_MS - 1), it.state(STILL_MS)]
        };
        assert_eq!(push(SLOW >> 20), [DeliveryState::Fine; 2]);
        assert_eq!(push(1), [DeliveryState::Fine, DeliveryState::Slow]);
        assert_eq!(push(FULL >> 20), [DeliveryState::Full; 2]);
    }
}
