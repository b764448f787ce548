//! Denials that the user was asked about: in a session the same one comes up once, and again where a yes was given since.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use castor_base::{
    path::AbsPath,
    sandbox::{Denial, SandboxGrant},
};

/// How many of a session are remembered.
const MAX_DENIALS: usize = 200;

/// By the folder of the session's own files.
#[derive(Clone, Debug, Default)]
pub struct DenialHistory(Arc<Mutex<BTreeMap<AbsPath, Vec<Denial>>>>);

impl DenialHistory {
    /// A command runs with this: the user said yes to what it covers, and may be asked for it again.
    pub fn forget_granted(&self, session: &AbsPath, grant: &SandboxGrant) {
        if let Some(known) = self.all().get_mut(session) {
            known.retain(|it| grant.clone().union(&it.grant_once()) != *grant);
        }
    }

    /// Whether the user is to be asked. From now on they were.
    pub fn is_new(&self, session: &AbsPath, denial: &Denial) -> bool {
        let mut all = self.all();
        let known = all.entry(session.clone()).or_default();
        let is_new = !known.contains(denial);
        if is_new && known.len() < MAX_DENIALS {
            known.push(denial.clone());
        }
        is_new
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<AbsPath, Vec<Denial>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::DenialHistory;
    use castor_base::{
        path::AbsPath,
        sandbox::{Denial, SandboxGrant},
    };

    #[test]
    fn the_same_comes_up_once_unless_it_was_allowed_since() {
        let at = |it: &str| AbsPath::new(it).unwrap();
        let (it, one, two) = (DenialHistory::default(), at("/one"), at("/two"));
        let write = |folder: &str| Denial::Write { folder: at(folder) };
        assert!(it.is_new(&one, &write("/x")) && !it.is_new(&one, &write("/x")));
        assert!(it.is_new(&one, &write("/y")) && it.is_new(&one, &Denial::Network) && it.is_new(&two, &write("/x")));
        it.forget_granted(&one, &SandboxGrant { network: true, ..write("/x").grant_once() });
        assert!(it.is_new(&one, &write("/x")) && it.is_new(&one, &Denial::Network));
        assert!(!it.is_new(&one, &write("/y")) && !it.is_new(&two, &write("/x")));
    }
}
