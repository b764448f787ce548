//! Confined commands in roots whose repository lies elsewhere, and in writable folders that hold one another.
#![cfg(target_os = "linux")]

use std::{fs, path::Path, process::Command};

use serde_json::json;

use crate::confined::Bed;

const WORK: &str = "echo x > q && git add q && git commit -qm two && git branch two && git status --short && \
                    [ $(git log --format=%s | head -1) = two ] && echo '<<worked>>'";
/// What git obeys in the common folder of a repository and of its worktrees.
const OBEY: &str = "git=$(git rev-parse --path-format=absolute --git-common-dir)
    for it in hooks/pre-commit config config.worktree info/attributes modules/x/config commondir branches/x \\
        worktrees/tree/config.worktree worktrees/tree/commondir worktrees/tree/gitdir
    do mkdir -p $(dirname $git/$it); echo evil >> $git/$it && echo \"<<wrote $it>>\"; done 2>/dev/null
    mv $git/hooks $git/h 2>/dev/null && echo '<<moved>>'; [ -d $git ] && echo '<<looked>>'";
fn git(folder: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    assert!(git.output().unwrap().status.success(), "{args:?}");
}

/// A session in `root`, beside `repo`, a repository with a linked worktree `tree`; `writable` below the folder of both.
fn bed(root: &str, writable: &[&str], commands: &[&str]) -> Bed {
    let mut bed = Bed::new(true, commands);
    bed.sandbox.write("repo/sub/a", "");
    let top = bed.path("..").canonicalize().unwrap();
    let repo = top.join("repo");
    git(&repo, &["init", "-q", "-b", "main"]);
    git(&repo, &["config", "user.name", "a"]);
    git(&repo, &["config", "user.email", "a@b"]);
    git(&repo, &["add", "."]);
    git(&repo, &["commit", "-qm", "one"]);
    git(&repo, &["worktree", "add", "-q", "../tree"]);
    fs::write(top.join(root).join("work.sh"), WORK).unwrap();
    fs::write(top.join(root).join("obey.sh"), OBEY).unwrap();
    let writable: Vec<_> = writable.iter().map(|it| top.join(it)).collect();
    let settings = json!({"security": {"sandbox": {"writable": writable}}});
    bed.sandbox.write("home/.castor/settings.json", &settings.to_string());
    let new = json!({"cwd": top.join(root), "mcpServers": []});
    bed.session = bed.client.result("session/new", new).unwrap()["sessionId"].as_str().unwrap().to_owned();
    bed
}

#[test]
fn git_works_in_linked_worktrees_and_in_folders_of_a_repository() {
    for root in ["tree", "repo/sub"] {
        let mut bed = bed(root, &[], &["bash work.sh", "bash obey.sh"]);
        let told = bed.run();
        assert!(told.contains("<<worked>>"), "{root}: {told}");
        let told = bed.run();
        assert!(
            told.contains("<<looked>>") && !told.contains("<<wrote") && !told.contains("<<moved"),
            "{root}: {told}"
        );
        for it in ["hooks/evil", "commondir", "config.worktree"] {
            assert!(!bed.path("../repo/.git").join(it).exists(), "{it}");
        }
    }
}

#[test]
fn writable_folders_may_hold_roots_guards_and_one_another() {
    for writable in [&["repo"][..], &["repo/.git"], &["repo", "repo/.git", "repo/sub"], &["gone"], &["", "repo/.git"]] {
        let mut bed = bed("repo/sub", writable, &["bash work.sh", "bash obey.sh"]);
        let told = bed.run();
        assert!(told.contains("<<worked>>"), "{writable:?}: {told}");
        let told = bed.run();
        assert!(
            told.contains("<<looked>>") && !told.contains("<<wrote") && !told.contains("<<moved"),
            "{writable:?}: {told}"
        );
        assert!(fs::read_to_string(bed.path("../repo/.git/config")).unwrap().contains("a@b"));
    }
}
