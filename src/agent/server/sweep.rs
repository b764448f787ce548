//! The sweep of old sessions: once per process, after the first session was answered, on its own thread.

use crate::{
    server::tasks::checkpoint_tasks,
    settings::{Sources, session_retention},
};
use castor_base::path::AbsPath;
use castor_hands::secrets::Env;
use castor_store::sessions::SessionStore;
use castor_tools::workspace::{Reader, settings as files};

/// Starts the sweep. Called after what a loop turn had to say has left: nobody waits for it.
pub fn start(store: SessionStore, env: Env, now_ms: u64) {
    // It may be ended with the process at any moment: the log of a session goes first, a later sweep finds the rest.
    let thread = std::thread::Builder::new().name("castor-sweep".to_owned()).spawn(move || sweep(&store, &env, now_ms));
    if let Err(it) = thread {
        tracing::warn!("old sessions stay: {it}");
    }
}

fn sweep(store: &SessionStore, env: &Env, now_ms: u64) {
    // No workspace: its settings have no say in this.
    let Some(root) = AbsPath::new("/") else { return };
    let layers = files::read(env, &root, false, Reader::disk());
    if let Some(keep) = session_retention(Sources { layers: &layers, env, flags: &[] }) {
        let swept = store.sweep(&keep, now_ms);
        tracing::debug!("{} old sessions and {} leftovers were removed", swept.sessions.len(), swept.n_leftovers);
    }
    tracing::debug!("temporary files of {} sessions were removed", store.sweep_temporary(now_ms));
    // After the sessions: what was held for them goes with them.
    if let Err(it) = checkpoint_tasks::sweep(store, now_ms) {
        tracing::warn!("old checkpoints stay: {it}");
    }
}
