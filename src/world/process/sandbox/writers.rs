//! Confined processes that may write in roots, by root: while one lives, nothing that reaches the root starts outside.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use crate::base::{path::AbsPath, sandbox::Confinement};

static WRITERS: Mutex<BTreeMap<AbsPath, usize>> = Mutex::new(BTreeMap::new());

/// A process that may write in these folders, with all that it leaves behind, until this is dropped.
#[derive(Debug)]
pub(super) struct Writing(Vec<AbsPath>);

impl Writing {
    pub fn of(it: &Confinement) -> Self {
        // A server lives as long as its session: what it leaves is found when it is called.
        let may_write = !it.read_only && !it.grant.read_only && !it.grant.is_mcp_server;
        let folders: Vec<AbsPath> = it.writable_folders().filter(|_| may_write).cloned().collect();
        let mut all = all();
        folders.iter().for_each(|it| *all.entry(it.clone()).or_default() += 1);
        Self(folders)
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let mut all = all();
        for it in &self.0 {
            match all.get_mut(it) {
                Some(n) if *n > 1 => *n -= 1,
                _ => _ = all.remove(it),
            }
        }
    }
}

/// Whether any process of any session may write there now.
pub fn write_in(roots: &[AbsPath]) -> bool {
    all().keys().any(|it| roots.iter().any(|root| it.is_within(root) || root.is_within(it)))
}

fn all() -> MutexGuard<'static, BTreeMap<AbsPath, usize>> {
    WRITERS.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{Writing, write_in};
    use crate::base::{
        path::AbsPath,
        sandbox::{Confinement, SandboxGrant},
    };

    #[test]
    fn who_may_write_is_known_by_folder() {
        let at = |it: &str| AbsPath::new(it).unwrap();
        let it = Confinement::for_folder(&at("/no-such/writers/ws"));
        let looks = Confinement { grant: SandboxGrant { read_only: true, ..SandboxGrant::default() }, ..it.clone() };
        let (one, two, reader) = (Writing::of(&it), Writing::of(&it), Writing::of(&looks));
        let is_written = || write_in(&[at("/no-such/writers/ws")]);
        assert!(is_written() && write_in(&[at("/no-such/writers/ws/sub")]) && !write_in(&[at("/no-such/writers/o")]));
        drop(one);
        assert!(is_written());
        drop((two, reader));
        assert!(!is_written());
    }
}
