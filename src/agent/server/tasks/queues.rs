//! Work that is done one piece after the other: saves into the user's own files, and first looks at roots.

use std::{
    sync::{OnceLock, mpsc},
    thread,
};

use tokio::sync::mpsc::{Sender, UnboundedSender, unbounded_channel};

use super::{
    checkpoint_tasks,
    effect_task::EffectTask,
    pending_chores::{self, FileWrite},
    worker::Worker,
};
use crate::server::event::Event;

#[derive(Default)]
pub struct Queues {
    saves: OnceLock<UnboundedSender<FileWrite>>,
    /// Thousands of sessions may begin at once: a thread for each would stop everything.
    looks: OnceLock<mpsc::Sender<EffectTask>>,
}

impl Queues {
    pub fn save(&self, write: FileWrite, leaves: &Worker, events: &Sender<Event>) {
        let saves = self.saves.get_or_init(|| {
            let (sender, writes) = unbounded_channel();
            leaves.spawn(pending_chores::run_saves(writes, events.clone()));
            sender
        });
        // The task is gone only at exit.
        _ = saves.send(write);
    }

    /// A call that comes before its session's look does not wait for it: it looks itself.
    pub fn look(&self, task: EffectTask) {
        let looks = self.looks.get_or_init(|| {
            let (sender, tasks) = mpsc::channel::<EffectTask>();
            let work = move || {
                // On a thread that yields to all others. One that cannot yield looks all the same.
                _ = rustix::process::setpriority_process(None, 10);
                tasks
                    .iter()
                    .filter(|it| !it.cancel.is_cancelled())
                    .for_each(|it| checkpoint_tasks::open_checkpoints(&it));
            };
            if let Err(it) = thread::Builder::new().name("castor-checkpoints".to_owned()).spawn(work) {
                tracing::warn!("the roots are looked at with the first call: {it}");
            }
            sender
        });
        // Without the thread there is no look.
        _ = looks.send(task);
    }
}
