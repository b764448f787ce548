//! What is renamed, what stays, and when it is told.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::PathBuf,
};

use super::Quarantine;
use crate::process::sandbox::snapshot_config;
use castor_base::{path::AbsPath, sandbox::Confinement};

fn put_aside(before: &Quarantine) -> Vec<PathBuf> {
    before.put_aside().quarantined.into_iter().map(|it| it.as_path().to_owned()).collect()
}

/// Else all that appears there would count as old.
#[test]
fn folder_that_leads_elsewhere_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap().join("w");
    fs::create_dir(root.as_path()).unwrap();
    let confined = Confinement::for_folder(&root);
    assert!(snapshot_config(&confined).is_ok());
    fs::remove_dir(root.as_path()).unwrap();
    symlink(dir.path(), root.as_path()).unwrap();
    let why = snapshot_config(&confined).map(drop).unwrap_err().to_string();
    assert!(why.contains("is not the folder that it was"), "{why}");
}

#[test]
fn what_is_new_gets_another_name() {
    let dir = tempfile::tempdir().unwrap();
    let (root, out) = (dir.path().join("w"), dir.path().join("out"));
    for it in [root.join(".github"), out.join("workflows"), root.join("src")] {
        fs::create_dir_all(it).unwrap();
    }
    fs::write(root.join(".npmrc"), "mine").unwrap();
    fs::write(root.join(".bashrc.castor-aside"), "earlier").unwrap();
    let before = Quarantine::take_snapshot(std::slice::from_ref(&root));
    for it in [".bashrc", ".npmrc", "src/a", "x.code-workspace", ".github/CODEOWNERS"] {
        fs::write(root.join(it), "new").unwrap();
    }
    fs::create_dir(root.join(".github/workflows")).unwrap();
    fs::create_dir(root.join(".cargo")).unwrap();
    symlink("/nowhere", root.join(".cargo/config")).unwrap();
    let mut names: Vec<_> = put_aside(&before);
    names.sort();
    assert_eq!(names, [".bashrc", ".cargo/config", ".github/workflows", "x.code-workspace"].map(|it| root.join(it)));
    for it in [".bashrc.castor-aside-1", ".github/workflows.castor-aside", "src/a", ".npmrc", ".github/CODEOWNERS"] {
        assert!(root.join(it).exists(), "{it}");
    }
    assert_eq!(fs::read_to_string(root.join(".bashrc.castor-aside")).unwrap(), "earlier");
    assert!(put_aside(&before).is_empty());
    for it in ["objects", "refs"] {
        fs::create_dir(root.join(it)).unwrap();
    }
    fs::write(root.join("HEAD"), "ref: refs/heads/m").unwrap();
    assert_eq!(put_aside(&before), [root.join("HEAD")]);
    // A link in the way is not followed: it goes itself.
    fs::rename(root.join(".github"), root.join("moved")).unwrap();
    symlink(&out, root.join(".github")).unwrap();
    assert_eq!(put_aside(&before), [root.join(".github")]);
    assert!(out.join("workflows").exists() && root.join(".github.castor-aside").is_symlink());
}

/// A folder only where that is all there is in it, under no other name.
#[test]
fn what_the_user_named_stays() {
    let dir = tempfile::tempdir().unwrap();
    let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
    let named = [".npmrc", ".vscode/deep/a", ".zed/a", ".idea/a", ".helix/a", ".github/workflows/a"].map(at);
    let before = Quarantine::take_snapshot(&[at("")]).with(Vec::new(), Vec::new(), Vec::new(), &named);
    for it in named.iter().chain(&[at(".zed/b"), at("src/a")]) {
        fs::create_dir_all(it.parent().unwrap()).unwrap();
        fs::write(it, "x").unwrap();
    }
    fs::hard_link(at(".idea/a"), at("src/other")).unwrap();
    symlink("../src", at(".helix/b")).unwrap();
    fs::create_dir(at(".castor")).unwrap();
    let mut aside = put_aside(&before);
    aside.sort();
    assert_eq!(aside, [".castor", ".helix", ".idea", ".zed"].map(at));
}

/// Another castor made its own where ours was, and did not lock it yet.
#[test]
fn another_placeholder_is_not_put_aside_and_what_was_absent_is() {
    let dir = tempfile::tempdir().unwrap();
    let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
    for (name, mode) in [("info", 0o1755), ("hooks", 0o755), ("modules", 0o1755)] {
        fs::create_dir(at(name)).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::write(at("modules/x"), "{}").unwrap();
    let standing = ["hooks", "info", "modules"].map(|it| (at(it), (0, 0))).to_vec();
    let absent = ["made", "opened", "never"].map(at).to_vec();
    fs::create_dir_all(at("opened")).unwrap();
    fs::write(at("made"), "x").unwrap();
    let before = Quarantine::take_snapshot(&[]).with(standing, absent, Vec::new(), &[at("opened")]);
    assert_eq!(put_aside(&before), ["made", "hooks", "modules"].map(at));
    assert!(at("info").exists());
}

#[test]
fn what_is_told_once_is_not_told_again_and_who_settled_keeps_what_comes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let before = Quarantine::take_snapshot(std::slice::from_ref(&root));
    fs::create_dir(root.join(".vscode")).unwrap();
    assert_eq!((before.findings().quarantined.len(), before.settle().quarantined.len()), (1, 0));
    fs::create_dir(root.join(".vscode")).unwrap();
    before.finish();
    assert!(before.findings().quarantined.is_empty() && root.join(".vscode").exists());
}

#[test]
fn through_the_users_own_link_goes_what_is_new_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let (root, out) = (dir.path().canonicalize().unwrap().join("w"), dir.path().join("out"));
    for it in [root.join("cfg"), root.join("github"), out.join("workflows")] {
        fs::create_dir_all(it).unwrap();
    }
    symlink("cfg", root.join(".cargo")).unwrap();
    symlink(&out, root.join(".gitea")).unwrap();
    fs::remove_dir(out.join("workflows")).unwrap();
    let before = Quarantine::take_snapshot(std::slice::from_ref(&root));
    fs::write(root.join("cfg/config.toml"), "evil").unwrap();
    // Nobody who is confined writes there.
    fs::create_dir(out.join("workflows")).unwrap();
    assert_eq!(put_aside(&before), [root.join(".cargo/config.toml")]);
    assert!(root.join(".cargo").is_symlink() && root.join("cfg/config.toml.castor-aside").exists());
    assert!(out.join("workflows").exists());
}
