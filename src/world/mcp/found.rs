//! What the sandbox found under a server's process, kept until a result of the server can tell it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::base::terminal::Findings;

/// Of the process that runs now. Cheap to clone: all hold the same.
#[derive(Clone, Default)]
pub struct Found(Arc<Mutex<Vec<String>>>);

const WHO: &str = "the server";

impl Found {
    /// A process has started: what was found then.
    pub(super) fn started(&self, found: &Findings) {
        self.with(|it| it.extend(found.in_words(WHO)));
    }

    /// What was not told yet.
    pub(super) fn take(&self) -> Vec<String> {
        self.with(std::mem::take)
    }

    fn with<T>(&self, then: impl FnOnce(&mut Vec<String>) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::Found;
    use crate::base::{path::AbsPath, terminal::Findings};

    #[test]
    fn a_start_is_told_once() {
        let found = Found::default();
        assert!(found.take().is_empty());
        let aside = vec![AbsPath::new("/w/.bashrc").unwrap()];
        found.started(&Findings { aside, ..Findings::default() });
        let said = found.take();
        assert!(said.len() == 1 && said[0].contains("/w/.bashrc"), "{said:?}");
        assert!(found.take().is_empty());
    }
}
