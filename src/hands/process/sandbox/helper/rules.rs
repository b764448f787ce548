//! Landlock rules: writable paths and reachable signals, with or without mounts.

use std::{
    fs,
    io::{self, IsTerminal},
    os::fd::AsFd,
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use nix::libc;

use super::{SetupError, broken, failed, mounts};
use crate::process::sandbox::{SHARED_MEMORY, SandboxPlan};

/// Devices without a state that others see.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx"];
/// With mounts they are private ones.
const TERMINALS: &str = "/dev/pts";

/// The version of Landlock; 0: none.
pub(super) fn abi() -> i64 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: asks for a number; no memory is passed.
    let res = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0_usize, VERSION) };
    res.max(0)
}

pub(super) fn restrict(plan: &SandboxPlan) -> Result<(), SetupError> {
    let all = AccessFs::from_write(ABI::V3);
    let mut writable = vec![plan.tmp.clone()];
    match plan.namespaces && plan.links.is_empty() {
        true => writable.extend(plan.writable.iter().cloned()),
        false => {
            let protected = [&*plan.protected, &*plan.links].concat();
            plan.writable.iter().for_each(|it| grants(it, &protected, &mut writable));
        }
    }
    writable.extend(plan.views.iter().filter(|it| it.written).map(|it| it.place.clone()));
    if plan.has_own_memory() {
        writable.push(SHARED_MEMORY.into());
    }
    let mut devices: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    if plan.namespaces {
        devices.push(TERMINALS.into());
    }
    let own = io::stdout();
    // Its own terminal, which programs open again by `/dev/stderr`: it has no name here.
    let own = own.is_terminal().then(|| PathBeneath::new(own.as_fd(), AccessFs::WriteFile));
    let restricted = Ruleset::default()
        .handle_access(all)
        .and_then(|it| it.scope(Scope::from_all(ABI::V6)))
        .and_then(Ruleset::create)
        .and_then(|it| it.add_rules(writable.iter().filter_map(|it| beneath(it, all)).map(Ok::<_, RulesetError>)))
        .and_then(|it| it.add_rules(path_beneath_rules(&devices, AccessFs::WriteFile | AccessFs::Truncate)))
        .and_then(|it| it.add_rules(own.into_iter().map(Ok::<_, RulesetError>)))
        .and_then(landlock::RulesetCreated::restrict_self);
    match restricted.map_err(failed("Landlock"))?.ruleset {
        RulesetStatus::NotEnforced => Err(broken("Landlock is not there")),
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

/// Everything below a path. A symlink on the way there opens nothing.
fn beneath(path: &Path, access: BitFlags<AccessFs>) -> Option<PathBeneath<fs::File>> {
    let there = fs::File::from(mounts::open(path).ok()?);
    let is_folder = there.metadata().is_ok_and(|it| it.is_dir());
    Some(PathBeneath::new(there, if is_folder { access } else { access & AccessFs::from_file(ABI::V3) }))
}

/// Landlock cannot take back what it gave to a folder above: each entry gets its own rule, but for what is protected
/// and the folders on the way there. Nothing can be made in those.
fn grants(path: &Path, protected: &[PathBuf], res: &mut Vec<PathBuf>) {
    if protected.iter().any(|it| path.starts_with(it)) {
        return;
    }
    if !protected.iter().any(|it| it.starts_with(path)) {
        // A symlink would give away what it leads to.
        if !path.is_symlink() {
            res.push(path.to_owned());
        }
        return;
    }
    for entry in fs::read_dir(path).into_iter().flatten().filter_map(Result::ok) {
        grants(&entry.path(), protected, res);
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::grants;

    #[test]
    fn what_is_protected_gets_no_rule_and_neither_does_what_holds_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for it in ["src/a", ".git/hooks", ".git/objects", ".vscode"] {
            std::fs::create_dir_all(root.join(it)).unwrap();
        }
        std::fs::write(root.join("f"), "").unwrap();
        std::os::unix::fs::symlink("/etc", root.join("out")).unwrap();
        let (mut res, protected) = (Vec::new(), [root.join(".git/hooks"), root.join(".vscode"), root.join(".zed")]);
        grants(&root, &protected, &mut res);
        res.sort();
        let want: Vec<PathBuf> = [".git/objects", "f", "src"].iter().map(|it| root.join(it)).collect();
        assert_eq!(res, want);
    }
}
