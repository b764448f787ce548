//! Folders for temporary files that all programs of a machine share: a session has one of its own in their place.

use std::path::Path;

use super::Confinement;
use crate::path::AbsPath;

/// What a session has its own folder in place of.
pub const SHARED_TMP: &[&str] = &["/tmp", "/var/tmp"];
/// As commands write it.
pub const TMP: &str = "/tmp";

impl Confinement {
    /// What of the shared folders is seen as it is, if it is there: what lies at the top of one and holds a root or the home
    /// folder, and what the user named or allowed.
    pub fn seen_of_shared(&self) -> impl Iterator<Item = AbsPath> {
        let tops = self.roots.iter().chain(&self.home).filter_map(top);
        let own = self.writable.iter().chain(&self.git_dirs);
        let grant = &self.grant;
        let more =
            own.chain(&grant.write).chain(&grant.seen).chain(&grant.reach.sockets).filter(|it| rest(it).is_some());
        tops.chain(more.cloned())
    }

    /// Tells whether a session's own folder stands in place of `/tmp`: it does not where that is what is worked in.
    pub fn has_own_tmp(&self) -> bool {
        !self.writable_folders().any(|it| Path::new(TMP).starts_with(it.as_path()))
    }

    /// Where a path of the shared folders is to this session's programs; `None`: where it is to all.
    pub fn own_tmp_path(&self, path: &AbsPath, is_there: impl Fn(&AbsPath) -> bool) -> Option<AbsPath> {
        let rest = rest(path)?;
        let is_castors = self.own_folders.records.parent().is_some_and(|it| path.is_within(&it));
        let is_seen = || self.seen_of_shared().any(|it| path.is_within(&it) && is_there(&it));
        (self.has_own_tmp() && !is_castors && !is_seen()).then(|| self.own_folders.tmp.join(rest))
    }
}

fn rest(path: &AbsPath) -> Option<&Path> {
    SHARED_TMP.iter().find_map(|it| path.as_path().strip_prefix(it).ok())
}

/// What lies at the top of a shared folder, and holds the path.
fn top(path: &AbsPath) -> Option<AbsPath> {
    let shared = SHARED_TMP.iter().find(|it| path.as_path().starts_with(it))?;
    let first = rest(path)?.iter().next().unwrap_or_default();
    AbsPath::new(Path::new(shared).join(first))
}

#[cfg(test)]
mod tests {
    use super::Confinement;
    use crate::{
        path::AbsPath,
        sandbox::{OwnFolders, SandboxGrant},
    };

    #[test]
    fn a_path_of_the_shared_folders_is_the_sessions_unless_the_user_works_there_or_named_it() {
        let path = |it: &str| AbsPath::new(it).unwrap();
        let seen = vec![path("/tmp/named.log"), path("/tmp/gone")];
        let it = Confinement {
            roots: vec![path("/tmp/a/ws"), path("/w")],
            grant: SandboxGrant { seen, ..SandboxGrant::default() },
            own_folders: OwnFolders { tmp: path("/c/tmp"), records: path("/c/records"), caches: None },
            ..Confinement::for_folder(&path("/w"))
        };
        let check = |it: &Confinement, at: &str, want: &str| {
            let found = it.own_tmp_path(&path(at), |it| !it.as_path().ends_with("gone"));
            assert_eq!(found.map_or("-".to_owned(), |it| it.to_string()), want, "{at}");
        };
        for (at, want) in [
            ("/tmp", "/c/tmp"),
            ("/tmp/x", "/c/tmp/x"),
            ("/tmp/x/../y", "/c/tmp/y"),
            ("/var/tmp/x/y", "/c/tmp/x/y"),
            ("/tmp/a/ws/src", "-"),
            ("/tmp/a/beside", "-"),
            ("/tmp/ab", "/c/tmp/ab"),
            ("/tmp/named.log", "-"),
            ("/tmp/named.log.1", "/c/tmp/named.log.1"),
            ("/tmp/gone", "/c/tmp/gone"),
            ("/tmpx", "-"),
            ("/var/x", "-"),
            ("/w/tmp/x", "-"),
        ] {
            check(&it, at, want);
        }
        for whole in ["/tmp", "/"] {
            check(&Confinement::for_folder(&path(whole)), "/tmp/x", "-");
        }
    }
}
