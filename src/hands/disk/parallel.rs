//! Parallel work over many files.

use std::{
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread::ScopedJoinHandle,
};

const MAX_THREADS: usize = 4;

/// What `act` makes of each, in any order, by as many threads as there are cores.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], act: impl Fn(&T) -> R + Sync) -> Vec<R> {
    fold_in_parallel(items, MAX_THREADS, |all: &mut Vec<R>, it| all.push(act(it))).into_iter().flatten().collect()
}

/// The same without a result for each: every thread folds what it looks at into a value of its own. At most `max` threads.
pub fn fold_in_parallel<T: Sync, A: Default + Send>(
    items: &[T],
    max: usize,
    act: impl Fn(&mut A, &T) + Sync,
) -> Vec<A> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Tests end a thread at one of its steps.
    let n = if cfg!(test) { 1 } else { cores.min(max).min(items.len()).max(1) };
    // Neighbours stay together: two threads in one folder wait for each other.
    let (next, size) = (AtomicUsize::new(0), (items.len() / (n * 8)).clamp(1, 64));
    let work = || {
        let mut res = A::default();
        let parts = std::iter::from_fn(|| items.chunks(size).nth(next.fetch_add(1, Relaxed)));
        parts.flatten().for_each(|it| act(&mut res, it));
        res
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (1..n).map(|_| scope.spawn(work)).collect();
        let mut res = vec![work()];
        let join = |it: ScopedJoinHandle<_>| it.join().unwrap_or_else(|it| std::panic::resume_unwind(it));
        res.extend(threads.into_iter().map(join));
        res
    })
}
