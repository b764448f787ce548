//! What the user may do by himself: what he may not do without the sandbox either, it keeps no command from.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use nix::{
    errno::Errno,
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, faccessat, getegid, geteuid},
};

/// How a program called what it could not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The disk is read-only: it meant to write.
    ReadOnly,
    /// No permission. Who only reads is told the same.
    NoAccess,
    /// The same of who removes or renames, which is a matter of the folder.
    NotRemoved,
}

/// Whether a folder can be looked into, as castor must, to hold what is in it. What is no folder need not be.
pub fn opens(path: &Path) -> bool {
    let looks = || may(path, AccessFlags::R_OK | AccessFlags::X_OK) == Ok(()) && is_entered(path);
    reaches(path) && (!path.is_dir() || looks())
}

/// Whether a command, and who mounts for it, can come to what castor sees there.
pub(super) fn reaches(path: &Path) -> bool {
    path.ancestors().skip(1).all(is_entered)
}

/// Root's right to all that is others' ends with the sandbox, and in its namespaces: what counts there are the modes.
fn is_entered(folder: &Path) -> bool {
    let (uid, gid) = (geteuid(), getegid().as_raw());
    if !uid.is_root() {
        return true;
    }
    fs::metadata(folder).is_ok_and(|it| match (it.uid() == uid.as_raw(), it.gid() == gid) {
        (true, true) => true,
        (true, false) => it.mode() & 0o100 != 0,
        (false, true) => it.mode() & 0o010 != 0,
        (false, false) => it.mode() & 0o001 != 0,
    })
}

/// Whether the user could do what was refused. `is_free`: nothing of his is there, at most a stand-in.
pub(super) fn could(path: &Path, refusal: Refusal, is_free: impl Fn(&Path) -> bool) -> bool {
    let changes = |folder: &Path| may(folder, AccessFlags::W_OK | AccessFlags::X_OK) == Ok(());
    match path.ancestors().find(|it| !is_free(it)) {
        Some(there) if there == path => (),
        // Somebody would make it.
        Some(there) => return changes(there),
        None => return false,
    }
    let lies_in_own = || path.parent().is_some_and(changes);
    match refusal {
        // The owner may change the mode of what he may not write.
        Refusal::ReadOnly => match may(path, AccessFlags::W_OK) {
            Err(Errno::EACCES) => is_owner(path) || lies_in_own(),
            done => done == Ok(()) || lies_in_own(),
        },
        Refusal::NotRemoved => lies_in_own(),
        // Whether it was to be read or written is not said: where he may not do one of them, it may have been that.
        Refusal::NoAccess if path.is_dir() => may(path, AccessFlags::all()) == Ok(()),
        Refusal::NoAccess => may(path, AccessFlags::R_OK | AccessFlags::W_OK) == Ok(()),
    }
}

fn is_owner(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|it| it.uid() == geteuid().as_raw())
}

fn may(path: &Path, what: AccessFlags) -> nix::Result<()> {
    faccessat(AT_FDCWD, path, what, AtFlags::AT_EACCESS)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::{Refusal, could, opens};

    #[test]
    fn what_the_user_could_do_is_asked_of_the_system() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().join(it);
        fs::write(at("file"), "").unwrap();
        let is_free = |it: &Path| !it.exists();
        for it in [Refusal::ReadOnly, Refusal::NoAccess, Refusal::NotRemoved] {
            assert!(could(&at("file"), it, is_free) && could(&at("a/b"), it, is_free), "{it:?}");
            assert!(could(&at("file"), it, |it| it.ends_with("file") || is_free(it)), "a stand-in: {it:?}");
        }
        assert!(opens(dir.path()) && opens(&at("file")) && opens(&at("none")));
        // In a sandbox root has nobody else's rights.
        if nix::unistd::geteuid().is_root() {
            fs::create_dir_all(at("others/in")).unwrap();
            let gives = |mode| fs::set_permissions(at("others"), fs::Permissions::from_mode(mode)).unwrap();
            std::os::unix::fs::chown(at("others"), Some(23456), Some(23456)).unwrap();
            for (mode, want) in [(0o700, false), (0o701, true)] {
                gives(mode);
                assert_eq!((opens(&at("others")), opens(&at("others/in"))), (want, want), "{mode:o}");
            }
        }
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o500)).unwrap();
        // Root may all the same.
        let is_root = nix::unistd::geteuid().is_root();
        let can = |refusal| could(&at("file"), refusal, is_free);
        assert!(can(Refusal::ReadOnly) && can(Refusal::NoAccess));
        assert_eq!((can(Refusal::NotRemoved), could(&at("a"), Refusal::ReadOnly, is_free)), (is_root, is_root));
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o300)).unwrap();
        assert_eq!(opens(dir.path()), is_root);
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }
}
