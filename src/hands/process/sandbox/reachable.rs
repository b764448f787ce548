//! File access by the user's own rights: a folder that cannot be searched cannot be mounted.

use std::{fs, os::unix::fs::MetadataExt, path::Path};

use nix::{
    fcntl::{AT_FDCWD, AtFlags},
    unistd::{AccessFlags, faccessat, getegid, geteuid},
};

/// Whether a folder can be looked into, as castor must, to protect what is in it. What is no folder need not be.
pub fn opens(path: &Path) -> bool {
    let looks = || {
        let listed = faccessat(AT_FDCWD, path, AccessFlags::R_OK | AccessFlags::X_OK, AtFlags::AT_EACCESS);
        listed == Ok(()) && is_entered(path)
    };
    reaches(path) && (!path.is_dir() || looks())
}

/// Whether a command, and the helper that mounts for it, can reach what castor sees there.
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

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::opens;

    #[test]
    fn what_nobody_can_look_into_is_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |it: &str| dir.path().join(it);
        fs::write(at("file"), "").unwrap();
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
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o300)).unwrap();
        assert_eq!(opens(dir.path()), nix::unistd::geteuid().is_root());
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }
}
