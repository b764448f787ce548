//! Network or secrets: a session's commands never get both without a question.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::nested_config;
use crate::base::{path::AbsPath, sandbox::Confinement};

const SHARED_NETWORK_NOTE: &str =
    "A command with network access still runs, so this one saw no secret files of the workspace.";

/// How many processes have the network or hosts of it, by their session's folder.
static ONLINE: Mutex<BTreeMap<AbsPath, usize>> = Mutex::new(BTreeMap::new());

/// A process that has the network, with all that it leaves behind, until this is dropped.
#[derive(Debug)]
pub(super) struct Online(AbsPath);

impl Online {
    pub fn of(it: &Confinement) -> Option<Self> {
        let is_online = it.network || !it.grant.reach.hosts.allowed.is_empty();
        (is_online && !it.grant.is_mcp_server).then(|| {
            *all().entry(it.own_folders.tmp.clone()).or_default() += 1;
            Self(it.own_folders.tmp.clone())
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

/// The same as it holds now: without secrets beside a command with the network, and without the network by mode
/// where not all secrets are known. Looks at the roots.
pub fn current_confinement(it: &Confinement) -> Confinement {
    let mut res = it.clone();
    let is_asked = it.grant.network || it.grant.is_mcp_server;
    if it.network && !is_asked {
        res.grant.isolation_reason = it.roots.iter().find_map(|root| nested_config::unscanned_note(root.as_path()));
        res.network = res.grant.isolation_reason.is_none();
    } else if !it.network && it.grant.isolation_reason.is_none() && all().contains_key(&it.own_folders.tmp) {
        let misses = it.roots.iter().any(|root| !nested_config::secrets(root.as_path()).is_empty());
        res.grant.isolation_reason = Some(if misses { SHARED_NETWORK_NOTE.to_owned() } else { String::new() });
    }
    res
}

#[cfg(test)]
mod tests {
    use super::{Online, current_confinement};
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, SandboxGrant},
    };

    #[test]
    fn beside_who_has_the_network_nobody_of_the_session_sees_secrets() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path()).unwrap();
        let mut it = Confinement::for_folder(&root);
        it.own_folders.tmp = root.join("tmp");
        let far = current_confinement(&Confinement { network: true, ..it.clone() });
        assert!(far.network && far.grant.isolation_reason.is_none() && !current_confinement(&it).hides_secrets());
        let (one, two) = (Online::of(&far), Online::of(&far));
        assert!(current_confinement(&it).grant.isolation_reason.is_some() && !current_confinement(&it).network);
        let mut other = it.clone();
        other.own_folders.tmp = root.join("other");
        assert!(!current_confinement(&other).hides_secrets(), "of another session");
        drop(one);
        assert!(current_confinement(&it).hides_secrets());
        drop(two);
        assert!(!current_confinement(&it).hides_secrets());
        let grant = SandboxGrant { is_mcp_server: true, ..SandboxGrant::default() };
        assert!(Online::of(&Confinement { grant, ..far }).is_none() && Online::of(&it).is_none());
    }
}
