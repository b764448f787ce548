//! Sandbox findings about an MCP server's process, kept until one of its results can report them.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, Ordering},
};

use castor_base::terminal::ObeyedFindings;
use castor_hands::process::server_process::ProcessTrace;

/// Of the process that runs now. Cheap to clone: all hold the same.
#[derive(Clone, Default)]
pub struct PendingFindings(Arc<Shared>);

#[derive(Default)]
struct Shared {
    notes: Mutex<Vec<String>>,
    is_outside: AtomicBool,
    trace: Mutex<ProcessTrace>,
}

const WHO: &str = "the server";

impl PendingFindings {
    /// A process has started: what was found then.
    pub(super) fn add(&self, found: &ObeyedFindings) {
        self.with(|it| it.extend(found.in_words(WHO)));
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

    /// A process has started, which tells this of itself.
    pub(super) fn follow(&self, trace: ProcessTrace) {
        *self.0.trace.lock().unwrap_or_else(PoisonError::into_inner) = trace;
    }

    /// What the process that runs now tells of itself.
    pub(super) fn trace(&self) -> ProcessTrace {
        self.0.trace.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    use castor_base::{path::AbsPath, terminal::ObeyedFindings};

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
