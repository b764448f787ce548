//! Sandbox findings about an MCP server's process, kept until one of its results can report them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use crate::{base::terminal::ObeyedFindings, world::process::server_process::LogTail};

/// Of the process that runs now. Cheap to clone: all hold the same.
#[derive(Clone, Default)]
pub struct PendingFindings(Arc<Shared>);

#[derive(Default)]
struct Shared {
    notes: Mutex<Vec<String>>,
    is_outside: AtomicBool,
    log: Mutex<LogTail>,
    /// The user was told what the server lacks: once is enough.
    has_told_lack: AtomicBool,
}

const WHO: &str = "the server";

impl PendingFindings {
    /// A process has started: what was found then.
    pub(super) fn add(&self, found: &ObeyedFindings) {
        self.with(|it| it.extend(found.in_words(WHO)));
    }

    pub(super) fn add_text(&self, text: Option<String>) {
        self.with(|it| it.extend(text));
    }

    /// It runs outside, or does not as its gate was closed: that is told once in a session and line.
    pub(super) fn note_start(&self, is_outside: bool, refusal: Option<String>) {
        self.0.is_outside.store(is_outside, Ordering::Relaxed);
        let said =
            refusal.map(|why| format!("The server runs in the sandbox, though its settings say outside: {why}."));
        self.with(|all| all.extend(said));
    }

    /// Whether the process that runs now is outside.
    pub(super) fn is_outside(&self) -> bool {
        self.0.is_outside.load(Ordering::Relaxed)
    }

    /// The process that runs outside is to end. Whether this is news.
    pub(super) fn note_end_outside(&self) -> bool {
        self.0.is_outside.swap(false, Ordering::Relaxed)
    }

    /// A process has started, with this log.
    pub(super) fn follow(&self, log: LogTail) {
        *self.0.log.lock().unwrap_or_else(PoisonError::into_inner) = log;
    }

    /// What it logged since this was asked last.
    pub(super) fn take_log(&self) -> String {
        self.0.log.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Whether nothing was told yet of what it lacks. It is now.
    pub(super) fn note_lack(&self) -> bool {
        !self.0.has_told_lack.swap(true, Ordering::Relaxed)
    }

    /// What was not told yet.
    pub(super) fn take(&self) -> Vec<String> {
        self.with(std::mem::take)
    }

    fn with<T>(&self, then: impl FnOnce(&mut Vec<String>) -> T) -> T {
        then(&mut self.0.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::PendingFindings;
    use crate::base::{path::AbsPath, terminal::ObeyedFindings};

    #[test]
    fn a_start_is_told_once() {
        let found = PendingFindings::default();
        assert!(found.take().is_empty());
        let aside = vec![AbsPath::new("/w/.bashrc").unwrap()];
        found.add(&ObeyedFindings { quarantined: aside, ..ObeyedFindings::default() });
        let said = found.take();
        assert!(said.len() == 1 && said[0].contains("/w/.bashrc"), "{said:?}");
        assert!(found.take().is_empty());
    }
}
