//! Sockets without a token so far: how many there may be at a time, and the oldest of them makes room.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::sync::Notify;

/// Those that are open.
pub struct Strangers {
    all: VecDeque<Weak<Stranger>>,
    max: usize,
}

/// A socket that was accepted.
#[derive(Default)]
pub struct Stranger {
    is_known: AtomicBool,
    leave: Notify,
}

impl Strangers {
    pub fn new(max: usize) -> Self {
        Self { all: VecDeque::new(), max }
    }

    /// One more. A client says soon who it is: where there are too many, the one that said nothing for longest has to go.
    pub fn admit(&mut self) -> Arc<Stranger> {
        self.all.retain(|it| it.upgrade().is_some_and(|it| !it.is_known()));
        if self.all.len() >= self.max {
            self.make_room();
        }
        let res = Arc::<Stranger>::default();
        self.all.push_back(Arc::downgrade(&res));
        res
    }

    /// Tells whether the oldest one will be gone in a moment.
    pub fn make_room(&mut self) -> bool {
        let is_stranger = |it: &Weak<Stranger>| it.upgrade().filter(|it| !it.is_known());
        let oldest = std::iter::from_fn(|| self.all.pop_front()).find_map(|it| is_stranger(&it));
        oldest.inspect(|it| it.leave.notify_one()).is_some()
    }
}

impl Stranger {
    pub fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    /// It is no stranger any more.
    pub fn note_token(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Until it has to make room for another one.
    pub async fn must_leave(&self) {
        self.leave.notified().await;
        if self.is_known() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::Strangers;

    #[test]
    fn the_oldest_makes_room_and_those_with_a_token_stay() {
        let mut strangers = Strangers::new(2);
        let [first, second] = [(); 2].map(|()| strangers.admit());
        second.note_token();
        let third = strangers.admit();
        let leaves = [&first, &second, &third].map(|it| it.must_leave().now_or_never().is_some());
        assert_eq!(leaves, [false; 3]);
        let fourth = strangers.admit();
        let leaves = [&first, &second, &third, &fourth].map(|it| it.must_leave().now_or_never().is_some());
        assert_eq!(leaves, [true, false, false, false]);
        drop((third, fourth));
        strangers.admit();
        assert_eq!(strangers.all.len(), 1, "those that are gone count no more");
    }
}
