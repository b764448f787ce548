//! Confined processes that live, with what they leave behind: which sessions have the network, and where is written.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use castor_base::{path::AbsPath, sandbox::Confinement};

static RUNNING: Mutex<Vec<Weak<RunningProcess>>> = Mutex::new(Vec::new());

/// A confined process. It counts until the last holder of this is gone.
#[derive(Debug)]
pub(super) struct RunningProcess {
    /// The session's folder for temporary files, where it has the network or hosts of it.
    online: Option<AbsPath>,
    /// Folders that it may write in.
    writes: Vec<AbsPath>,
}

impl RunningProcess {
    pub fn of(it: &Confinement) -> Arc<Self> {
        // A server lives as long as its session: other commands still see secrets, and what it leaves is found when it is called.
        let is_server = it.grant.is_mcp_server;
        let is_online = !is_server && (it.network || !it.grant.reach.hosts.allowed.is_empty());
        let may_write = !is_server && !it.read_only && !it.grant.read_only;
        let writes = it.writable_folders().filter(|_| may_write).cloned().collect();
        let res = Arc::new(Self { online: is_online.then(|| it.own_folders.tmp.clone()), writes });
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&res));
        res
    }
}

/// Whether any process of any session may write there now.
pub fn write_in(roots: &[AbsPath]) -> bool {
    is_any(|it| it.writes.iter().any(|it| roots.iter().any(|root| it.is_within(root) || root.is_within(it))))
}

/// Whether a process of the session has the network now.
pub(super) fn is_online(it: &Confinement) -> bool {
    is_any(|running| running.online.as_ref() == Some(&it.own_folders.tmp))
}

fn is_any(wants: impl Fn(&RunningProcess) -> bool) -> bool {
    let mut all = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|it| it.strong_count() > 0);
    all.iter().filter_map(Weak::upgrade).any(|it| wants(&it))
}

#[cfg(test)]
mod tests {
    use super::{RunningProcess, write_in};
    use castor_base::{
        path::AbsPath,
        sandbox::{Confinement, SandboxGrant},
    };

    #[test]
    fn who_may_write_is_known_by_folder() {
        let at = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement::for_folder(&at("/no-such/writers/ws"));
        let looks = Confinement { grant: SandboxGrant { read_only: true, ..SandboxGrant::default() }, ..it.clone() };
        let (one, two, reader) = (RunningProcess::of(&it), RunningProcess::of(&it), RunningProcess::of(&looks));
        let is_written = || write_in(&[at("/no-such/writers/ws")]);
        assert!(is_written() && write_in(&[at("/no-such/writers/ws/sub")]) && !write_in(&[at("/no-such/writers/o")]));
        drop(one);
        assert!(is_written());
        drop((two, reader));
        assert!(!is_written());
    }
}
