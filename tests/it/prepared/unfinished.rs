//! Git's unfinished work that a command leaves: the user goes on with it, and nothing of the command's runs outside.
#![cfg(target_os = "linux")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    client::{Namespaces, Sandbox},
    confined::Bed,
};

/// A conflict on the branch `side`, in a repository or a linked worktree of it.
const SETUP: &str = "git init -q -b main; git config user.name a; git config user.email a@b; git commit -q --allow-empty -m empty
for i in 1 2 3 4 5 6 7 8 9; do echo $i; done >f; git add f; git commit -qm base; git checkout -qb side
sed -i 's/1/one/' f; git commit -qam s1; echo h >h; git add h; git commit -qm s2
sed -i 's/9/nine/' f; git commit -qam s3; git checkout -q main; sed -i 's/1/uno/' f; git commit -qam m1; git checkout -q side";

/// A program of that name is on the user's path: it could be `node_modules/.bin`.
const STRATEGY: &str = "#!/bin/sh\ntouch $RAN\nexec git merge-recursive \"$@\"\n";

/// What a command leaves, below which folder, and how the user goes on.
const LEFT: &[(&str, &str, &str)] = &[
    ("git rebase -x \"touch $RAN\" main", "", "rebase"),
    ("git rebase main; echo \"exec touch $RAN\" >>.git/rebase-merge/git-rebase-todo", "", "rebase"),
    ("git rebase main; sed -i \"1i x touch $RAN\" .git/rebase-merge/git-rebase-todo", "", "rebase"),
    ("git rebase main; echo evil >.git/rebase-merge/strategy", "", "rebase"),
    (
        "git checkout -q main; git cherry-pick side~2 side~1 side; printf '[options]\\n\\tstrategy = evil\\n' >.git/sequencer/opts",
        "",
        "cherry-pick",
    ),
    ("git checkout -q main; git worktree add -q wt side; cd wt; git rebase -x \"touch $RAN\" main", "wt", "rebase"),
    ("mkdir d; cd d; sh ../setup.sh; git rebase -x \"touch $RAN\" main", "d", "rebase"),
    ("git rebase -x \"touch $RAN\" main; mv .git/rebase-merge moved; ln -s ../moved .git/rebase-merge", "", "rebase"),
];

fn prepare(sandbox: &Sandbox) -> PathBuf {
    let root = sandbox.workspace();
    fs::remove_dir_all(root.join(".git")).unwrap();
    let bin = root.join("bin/git-merge-evil");
    sandbox.write("ws/bin/git-merge-evil", STRATEGY);
    Command::new("chmod").arg("+x").arg(bin).status().unwrap();
    sandbox.write("ws/setup.sh", SETUP);
    sh(&root, &root, "sh setup.sh");
    root
}

/// The user's shell: it says what ran by a file outside.
fn sh(root: &Path, folder: &Path, line: &str) {
    let path = format!("{}:{}", root.join("bin").display(), std::env::var("PATH").unwrap());
    let mut it = Command::new("sh");
    it.args(["-c", line]).current_dir(folder).env("PATH", path).env("RAN", ran(root)).env("GIT_EDITOR", "true");
    it.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
}

fn ran(root: &Path) -> PathBuf {
    root.parent().unwrap().join("ran")
}

/// The user resolves each conflict and goes on, to the end.
fn go_on(root: &Path, folder: &str, how: &str) {
    let folder = root.join(folder);
    for _ in 0..4 {
        sh(root, &folder, &format!("sed -i '/^[<=>]/d' f; git add f; git {how} --continue"));
    }
}

/// Without castor each of them runs something: else the test below would show nothing.
#[test]
fn git_starts_each_of_these_where_nobody_takes_it_out() {
    for (left, folder, how) in LEFT {
        let sandbox = Sandbox::new();
        sandbox.write("ws/.git/HEAD", "");
        let root = prepare(&sandbox);
        sh(&root, &root, left);
        _ = fs::remove_file(ran(&root));
        go_on(&root, folder, how);
        assert!(ran(&root).exists(), "{left} runs nothing");
    }
}

#[test]
fn nothing_that_a_command_left_in_unfinished_work_runs_when_the_user_goes_on() {
    for (left, folder, how) in LEFT {
        let mut top = PathBuf::new();
        let line = format!(
            "({}) >out.txt 2>&1; git -C ./{folder} status >status.txt 2>&1; true",
            left.replace("$RAN", "$PWD/../ran")
        );
        let mut bed = Bed::prepared(&[&line, "git status"], |it| top = prepare(it));
        if bed.sandbox.namespaces == Namespaces::Nobody {
            return;
        }
        let root = bed.path("").canonicalize().unwrap();
        let told = bed.run();
        let begun = fs::read_to_string(root.join("status.txt")).unwrap();
        assert!(begun.contains("You are currently"), "{left}: {begun}");
        assert!(told.contains("unfinished work"), "{left}: {told}");
        go_on(&root, folder, how);
        assert!(!ran(&root).exists(), "{left} ran: {told}");
        // But for a link, of which nobody knows what it leads to, the work itself comes to its end.
        let (state, log) = (root.join("state.txt"), root.join("log.txt"));
        sh(
            &root,
            &root.join(folder),
            &format!("git status >{}; git log --oneline >{}", state.display(), log.display()),
        );
        if !left.contains("ln -s") {
            let (state, log) = (fs::read_to_string(state).unwrap(), fs::read_to_string(log).unwrap());
            assert!(!state.contains("You are currently") && log.contains("s3"), "{left}: {state} {log}");
        }
    }
}

/// What the user left there is the user's.
#[test]
fn the_users_own_steps_stay() {
    let mut bed = Bed::prepared(&["echo a; git status"], |it| {
        let root = prepare(it);
        sh(&root, &root, "git rebase -x \"touch $RAN\" main");
    });
    let root = bed.path("").canonicalize().unwrap();
    let told = bed.run();
    assert!(!told.contains("unfinished work"), "{told}");
    go_on(&root, "", "rebase");
    assert!(ran(&root).exists(), "{told}");
}
