//! Secrets or the network, never both unasked: who of a session has the network, and who sees no secrets for that.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::below;
use crate::base::{path::AbsPath, sandbox::Confinement};

const BESIDE: &str = "A command with the network still runs, so this one saw no secret files of the workspace, and of the \
                      home folder only tools.";

/// How many processes have the network, by their session's folder.
static ONLINE: Mutex<BTreeMap<AbsPath, usize>> = Mutex::new(BTreeMap::new());

/// A process that has the network, with all that it leaves behind, until this is dropped.
#[derive(Debug)]
pub(super) struct Online(AbsPath);

impl Online {
    pub fn of(it: &Confinement) -> Option<Self> {
        (it.network && !it.leave.serves).then(|| {
            *all().entry(it.own.tmp.clone()).or_default() += 1;
            Self(it.own.tmp.clone())
        })
    }
}

impl Drop for Online {
    fn drop(&mut self) {
        let mut all = all();
        match all.get_mut(&self.0) {
            Some(n) if *n > 1 => *n -= 1,
            _ => _ = all.remove(&self.0),
        }
    }
}

fn all() -> std::sync::MutexGuard<'static, BTreeMap<AbsPath, usize>> {
    ONLINE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same as it holds now: without secrets beside who has the network, and without the network that nobody said yes to
/// where not all secrets are known. Looks at the roots.
pub fn settle(it: &Confinement) -> Confinement {
    let mut res = it.clone();
    let is_asked = it.leave.network || it.leave.serves;
    if it.network && !is_asked {
        res.leave.apart = it.roots.iter().find_map(|root| below::not_all_seen(root.as_path()));
        res.network = res.leave.apart.is_none();
    } else if !it.network && it.leave.apart.is_none() && all().contains_key(&it.own.tmp) {
        let misses = it.roots.iter().any(|root| !below::secrets(root.as_path()).is_empty());
        res.leave.apart = Some(if misses { BESIDE.to_owned() } else { String::new() });
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{Online, settle};
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, Leave},
    };

    #[test]
    fn beside_who_has_the_network_nobody_of_the_session_sees_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path()).unwrap();
        let mut it = Confinement::of(&root);
        it.own.tmp = root.join("tmp");
        let far = settle(&Confinement { network: true, ..it.clone() });
        assert!(far.network && far.leave.apart.is_none() && !settle(&it).is_apart());
        let (one, two) = (Online::of(&far), Online::of(&far));
        assert!(settle(&it).leave.apart.is_some() && !settle(&it).network);
        let mut other = it.clone();
        other.own.tmp = root.join("other");
        assert!(!settle(&other).is_apart(), "of another session");
        drop(one);
        assert!(settle(&it).is_apart());
        drop(two);
        assert!(!settle(&it).is_apart());
        let leave = Leave { serves: true, ..Leave::default() };
        assert!(Online::of(&Confinement { leave, ..far }).is_none() && Online::of(&it).is_none());
    }
}
