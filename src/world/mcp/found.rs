//! What the sandbox found under a server's process, kept until a result of the server can tell it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::base::terminal::{Findings, Later};

/// Of the process that runs now. Cheap to clone: all hold the same.
#[derive(Clone, Default)]
pub struct Found(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Of starts, not told yet.
    untold: Vec<String>,
    look: Option<Later>,
}

const WHO: &str = "the server";

impl Found {
    /// A process has started: what was found then, and how to look again.
    pub(super) fn started(&self, (first, look): (Findings, Later)) {
        self.with(|it| {
            it.untold.extend(first.in_words(WHO));
            it.look = Some(look);
        });
    }

    /// What was not told yet.
    pub(super) fn take(&self) -> Vec<String> {
        self.with(|it| {
            let now = it.look.as_mut().and_then(|look| look().in_words(WHO));
            std::mem::take(&mut it.untold).into_iter().chain(now).collect()
        })
    }

    fn with<T>(&self, then: impl FnOnce(&mut State) -> T) -> T {
        then(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::Found;
    use crate::base::{path::AbsPath, terminal::Findings};

    #[test]
    fn a_start_and_what_came_later_are_told_once_each() {
        let path = |it: &str| vec![AbsPath::new(it).unwrap()];
        let found = Found::default();
        assert!(found.take().is_empty());
        let mut restored = path("/w/.git/HEAD");
        let look = Box::new(move || Findings { restored: std::mem::take(&mut restored), ..Findings::default() });
        found.started((Findings { aside: path("/w/.bashrc"), ..Findings::default() }, look));
        let said = found.take();
        assert!(said.len() == 2 && said[0].contains("/w/.bashrc") && said[1].contains("/w/.git/HEAD"), "{said:?}");
        assert!(found.take().is_empty());
    }
}
