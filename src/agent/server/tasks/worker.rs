//! A worker thread for tasks.

use std::{future::Future, sync::OnceLock};

use tokio::runtime::{Builder, Runtime};

/// One thread: a second one would be woken with each task that the first gets, find nothing to do and sleep again. It
/// stays for as long as castor does: a process dies with the thread that started it. So nothing may take a task off it,
/// as `block_in_place` would.
pub struct Worker {
    name: &'static str,
    runtime: OnceLock<Runtime>,
}

impl Worker {
    pub fn new(name: &'static str) -> Self {
        Self { name, runtime: OnceLock::new() }
    }

    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime().spawn(task);
    }

    fn runtime(&self) -> &Runtime {
        // Built with the first job: initialize does not wait for threads.
        self.runtime.get_or_init(|| {
            let built = Builder::new_multi_thread().worker_threads(1).thread_name(self.name).enable_all().build();
            built.unwrap_or_else(|it| {
                // Without threads nothing can be done at all, and there is nobody to tell but stderr.
                tracing::error!("cannot start worker threads: {it}");
                std::process::exit(1)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::mpsc::channel,
        thread::{self, ThreadId},
        time::Duration,
    };

    use super::Worker;

    /// What is not told by then never will be.
    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn all_tasks_are_on_one_thread() {
        let (worker, (tell, told)) = (Worker::new("w"), channel::<ThreadId>());
        let here = |tell: &std::sync::mpsc::Sender<ThreadId>| _ = tell.send(thread::current().id());
        let mut seen = Vec::new();
        for _ in 0..3 {
            let task = tell.clone();
            worker.spawn(async move { here(&task) });
            seen.push(told.recv_timeout(LIMIT).unwrap());
        }
        assert!(seen.iter().all(|it| *it == seen[0]), "a process would die with its thread");
    }

    #[test]
    fn one_that_is_held_up_holds_up_no_other() {
        let (held, free) = (Worker::new("held"), Worker::new("free"));
        let ((go, wait), (tell, told)) = (channel(), channel());
        held.spawn(async move { _ = tell.send(wait.recv_timeout(LIMIT)) });
        free.spawn(async move { _ = go.send(()) });
        assert_eq!(told.recv_timeout(LIMIT).unwrap(), Ok(()));
    }
}
