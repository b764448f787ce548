//! git that changes files of a work tree which the sandbox holds: asked about before, done once, and never half.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    confined::Bed,
    incidents::prompt,
    repositories::{add_submodule, commit, git},
};

const TOLD: &str = "what the sandbox keeps: ";

/// A session in a repository with guarded files in it, beside a branch `other` in which they are not the same, and
/// `plain`, in which only `a` is not.
fn bed(commands: &[&str]) -> (Bed, PathBuf) {
    filled(Bed::new(commands))
}

fn filled(bed: Bed) -> (Bed, PathBuf) {
    let root = bed.path("").canonicalize().unwrap();
    bed.sandbox.write("home/.gitconfig", "[user]\n\tname = a\n\temail = a@b\n[alias]\n\tsw = switch\n\tlg = log\n");
    git(&root, &["init", "-q", "-b", "main"]);
    let write = |path: &str, text: &str| _ = bed.sandbox.write(format!("ws/{path}"), text);
    write(".vscode/settings.json", "{}");
    write(".npmrc", "a=1");
    write(".github/workflows/ci.yml", "on: push");
    write("a", "1");
    save(&root);
    git(&root, &["checkout", "-q", "-b", "plain"]);
    write("a", "2");
    save(&root);
    git(&root, &["checkout", "-q", "-b", "other", "main"]);
    write(".npmrc", "a=2");
    write(".zed/settings.json", "{}");
    write(".gitlab-ci.yml", "a:");
    fs::remove_file(root.join(".github/workflows/ci.yml")).unwrap();
    write("b", "new");
    save(&root);
    git(&root, &["checkout", "-q", "main"]);
    (bed, root)
}

fn save(root: &Path) {
    git(root, &["add", "-A"]);
    commit(root);
}

fn said(root: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(args).current_dir(root).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    String::from_utf8(git.output().unwrap().stdout).unwrap().trim().to_owned()
}

/// How many questions there were, and what was told.
fn run(bed: &mut Bed, answer: &str) -> (usize, String) {
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", answer);
    assert!(!told.contains("kept this command"), "{told}");
    (asked.len(), told)
}

#[test]
fn work_is_stashed_as_a_whole_or_not_at_all() {
    let (mut bed, root) = bed(&["git stash -u", "git stash -u", "git stash pop", "git stash"]);
    let change = |name: &str| fs::write(root.join(name), "changed").unwrap();
    [".vscode/settings.json", "a", ".envrc"].into_iter().for_each(change);
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains(&format!("{TOLD}.envrc, .vscode")), "{told}");
    assert_eq!((said(&root, &["stash", "list"]).as_str(), said(&root, &["status", "-s"]).lines().count()), ("", 3));
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root, &["stash", "list"]).lines().count()), (1, 1), "{told}");
    assert_eq!((said(&root, &["status", "-s"]).as_str(), root.join(".envrc").exists()), ("", false), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root, &["stash", "list"]).as_str()), (1, ""), "{told}");
    for it in [".vscode/settings.json", "a", ".envrc"] {
        assert_eq!(fs::read_to_string(root.join(it)).unwrap(), "changed", "{told}");
    }
    // What nobody obeys is nobody's question.
    git(&root, &["checkout", ".vscode"]);
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root, &["stash", "list"]).lines().count()), (0, 1), "{told}");
}

#[test]
fn a_path_that_is_checked_out_is_asked_about_and_a_branch_is_not() {
    let (mut bed, root) =
        bed(&["git checkout a", "git checkout plain", "d=a; git checkout $d", "git checkout -B main"]);
    fs::write(root.join("a"), "changed").unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert_eq!((n, fs::read_to_string(root.join("a")).unwrap().as_str()), (1, "changed"), "{told}");
    git(&root, &["stash", "-q"]);
    fs::create_dir(root.join("plain")).unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert_eq!((n, said(&root, &["branch", "--show-current"]).as_str()), (0, "plain"), "{told}");
    fs::write(root.join("a"), "changed").unwrap();
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, fs::read_to_string(root.join("a")).unwrap().as_str()), (1, "2"), "{told}");
    let (n, told) = run(&mut bed, "reject_once");
    assert_eq!((n, said(&root, &["branch", "--show-current"]).as_str()), (1, "plain"), "{told}");
}

#[test]
fn what_changes_guarded_files_is_asked_about_once_and_done() {
    for (command, places) in [
        ("git merge -q other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("git switch other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("git checkout -q -b new other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("cd out; git sw other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("(cd out || exit 1; git merge -q other)", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("cd out && git rebase -q other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("git cherry-pick other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("git reset -q --keep other", ".github/workflows, .gitlab-ci.yml, .npmrc, .zed"),
        ("git checkout other -- .npmrc b && git commit -qm x", ".npmrc"),
    ] {
        let (mut bed, root) = bed(&[command, command]);
        let before = said(&root, &["rev-parse", "HEAD"]);
        let (n, told) = run(&mut bed, "reject_once");
        assert!(n == 1 && told.contains(&format!("{TOLD}{places}")), "{command}: {told}");
        assert_eq!((said(&root, &["rev-parse", "HEAD"]), said(&root, &["status", "-s"])), (before, String::new()));
        let (n, told) = run(&mut bed, "allow_once");
        assert_eq!((n, said(&root, &["status", "-s"]).as_str()), (1, ""), "{command}: {told}");
        assert_eq!(fs::read_to_string(root.join(".npmrc")).unwrap(), "a=2", "{command}: {told}");
        assert!(root.join("b").exists() && !told.contains("put aside"), "{command}: {told}");
    }
}

/// Who stashes first has half of it away.
#[test]
fn what_settings_have_git_stash_before_is_asked_about() {
    let commands =
        ["git merge -q -m x plain", "git -c rebase.autoStash=true rebase -q plain", "git checkout -qm other"];
    let (mut bed, root) = bed(&commands);
    git(&root, &["config", "merge.autoStash", "true"]);
    for it in ["a", ".npmrc"] {
        fs::write(root.join(it), "mine").unwrap();
    }
    let before = said(&root, &["rev-parse", "HEAD"]);
    for _ in commands {
        let (n, told) = run(&mut bed, "reject_once");
        assert!(n == 1 && told.contains(TOLD) && told.contains(".npmrc"), "{told}");
        assert_eq!(
            (said(&root, &["rev-parse", "HEAD"]), said(&root, &["stash", "list"])),
            (before.clone(), String::new())
        );
    }
}

#[test]
fn what_touches_none_of_them_is_not_asked_about() {
    let commands = [
        "git switch plain && git switch -q main",
        "git merge -q plain",
        "git switch -q -c fresh",
        "cd out; git lg; git commit -qam x",
    ];
    let (mut bed, root) = bed(&commands);
    for _ in commands {
        fs::write(root.join(".npmrc"), "mine").unwrap();
        let (n, told) = run(&mut bed, "reject_once");
        assert!(n == 0 && told.contains("\"exitCode\":0"), "{told}");
    }
}

#[test]
fn a_work_tree_beside_the_workspace_is_made_with_one_yes() {
    let command = "git worktree add -q -b new ../trees/one";
    let (mut bed, root) = bed(&[command, command]);
    let tree = root.parent().unwrap().join("trees/one");
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains("outside of the workspace, below") && told.contains("/trees"), "{told}");
    assert_eq!((said(&root, &["branch", "--list", "new"]).as_str(), tree.exists()), ("", false));
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&tree, &["status", "-s"]).as_str()), (1, ""), "{told}");
    assert!(tree.join(".vscode/settings.json").exists() && tree.join(".git").is_file(), "{told}");
}

#[test]
fn submodules_are_moved_and_their_settings_written_with_one_yes() {
    let (mut bed, root) = bed(&["git mv lib moved", "git -C moved branch -m main trunk"]);
    let lib = root.parent().unwrap().join("lib");
    bed.sandbox.write("lib/a", "x");
    git(&lib, &["init", "-q", "-b", "main"]);
    save(&lib);
    add_submodule(&root, "../lib", "lib");
    let (n, told) = run(&mut bed, "allow_once");
    let changed = said(&root, &["status", "-s", "--ignore-submodules=none"]);
    assert_eq!((n, changed.as_str()), (1, "M  .gitmodules\nR  lib -> moved"), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root.join("moved"), &["branch", "--show-current"]).as_str()), (1, "trunk"), "{told}");
    let config = fs::read_to_string(root.join(".git/modules/lib/config")).unwrap();
    assert!(config.contains("[branch \"trunk\"]") && config.contains("moved"), "{config}");
}

/// Nobody could know before.
#[test]
fn what_a_script_had_git_begin_is_told_and_not_run_again() {
    let (mut bed, root) = bed(&["bash release.sh"]);
    fs::write(root.join("release.sh"), "git merge -q other").unwrap();
    save(&root);
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", "allow_once");
    assert!(asked.is_empty() && told.contains("kept this command from writing"), "{told}");
    assert!(told.contains("not offered to run it again") && told.contains("git merge --abort"), "{told}");
}

/// What is tracked may change, as nobody looks; and what cleans files would leave a trace.
#[test]
fn what_a_repository_names_is_not_run_before_the_yes() {
    let (mut bed, root) = bed(&["git stash", "ls $TMPDIR; true", "git stash; ls $TMPDIR"]);
    git(&root, &["config", "filter.x.clean", "touch $TMPDIR/filtered; cat"]);
    bed.sandbox.write("ws/.gitattributes", "* filter=x");
    fs::write(root.join("a"), "changed").unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert!(
        n == 1 && told.contains("git may change what the sandbox keeps: .github/workflows, .npmrc, .vscode"),
        "{told}"
    );
    assert!(!run(&mut bed, "reject_once").1.contains("filtered"));
    let (_, told) = run(&mut bed, "allow_once");
    assert!(told.contains("filtered"), "the filter is none to this git: {told}");
}

/// A folder of the workspace is on the user's path, as `direnv` and the like put it there.
#[test]
fn a_git_of_the_repository_is_not_asked() {
    let path = std::env::var("PATH").unwrap();
    let bed = Bed::prepared(&["git stash", "ls $TMPDIR; true", "git stash; ls $TMPDIR"], |it| {
        let own = "#!/bin/sh\ntouch $TMPDIR/own\nPATH=${PATH#*:} exec git \"$@\"\n";
        let file = it.write("ws/bin/git", own);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
        it.env.push(("PATH".into(), format!("{}:{path}", it.workspace().join("bin").display())));
    });
    let (mut bed, root) = filled(bed);
    fs::write(root.join(".npmrc"), "changed").unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains("git would change what the sandbox keeps: .npmrc"), "{told}");
    assert!(!run(&mut bed, "reject_once").1.contains("own\\n"));
    let (_, told) = run(&mut bed, "allow_once");
    assert!(told.contains("own\\n"), "it is no git to commands: {told}");
}

#[test]
fn what_is_pulled_may_be_any_of_them_and_a_patch_says_which() {
    let (mut bed, root) = bed(&["git pull -q", "git pull -q", "git am -q ../out/0001-one.patch"]);
    let up = root.parent().unwrap().join("up");
    git(&root, &["clone", "-q", ".", "../up"]);
    git(&root, &["remote", "add", "origin", "../up"]);
    git(&root, &["fetch", "-q"]);
    git(&root, &["branch", "-q", "-u", "origin/main"]);
    git(&root, &["format-patch", "-q", "-1", "-o", "../out", "other"]);
    bed.sandbox.write("up/.github/workflows/ci.yml", "on: pull");
    bed.sandbox.write("up/c", "new");
    save(&up);
    let before = said(&root, &["rev-parse", "HEAD"]);
    let (n, told) = run(&mut bed, "reject_once");
    assert!(
        n == 1 && told.contains("git may change what the sandbox keeps: .github/workflows, .npmrc, .vscode"),
        "{told}"
    );
    assert_eq!((said(&root, &["rev-parse", "HEAD"]), said(&root, &["status", "-s"])), (before, String::new()));
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root, &["status", "-s"]).as_str(), root.join("c").exists()), (1, "", true), "{told}");
    git(&root, &["reset", "-q", "--hard", "HEAD~1"]);
    let (n, told) = run(&mut bed, "allow_once");
    assert!(n == 1 && told.contains(&format!("{TOLD}.github/workflows, .gitlab-ci.yml, .npmrc, .zed")), "{told}");
    assert_eq!((said(&root, &["status", "-s"]).as_str(), root.join("b").exists()), ("", true), "{told}");
}

/// Only `out` and the repository are written.
#[test]
fn what_lies_above_the_session_is_changed_with_one_yes() {
    let commands = ["git checkout -q same", "git checkout -q main", "git stash", "git stash", "git switch -q other"];
    let (mut bed, root) = bed(&commands);
    git(&root, &["branch", "old"]);
    fs::write(root.join("out/there"), "1").unwrap();
    save(&root);
    git(&root, &["checkout", "-q", "-b", "same"]);
    fs::write(root.join("out/there"), "2").unwrap();
    save(&root);
    git(&root, &["checkout", "-q", "main"]);
    bed.session = bed.client.new_session(&root.join("out")).unwrap();
    for _ in 0..2 {
        let (n, told) = run(&mut bed, "reject_once");
        assert!(n == 0 && told.contains("\"exitCode\":0"), "{told}");
    }
    fs::write(root.join("a"), "mine").unwrap();
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && told.contains("git would change files outside of the workspace, in "), "{told}");
    assert_eq!((said(&root, &["stash", "list"]).as_str(), said(&root, &["status", "-s"]).as_str()), ("", "M a"));
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root, &["status", "-s"]).as_str()), (1, ""), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&root, &["status", "-s"]).as_str(), root.join("b").exists()), (1, "", true), "{told}");
    assert_eq!(fs::read_to_string(root.join(".npmrc")).unwrap(), "a=2", "{told}");
}

#[test]
fn a_linked_work_tree_beside_is_changed_moved_and_removed_with_a_yes_each() {
    let commands = [
        "git -C ../trees/linked checkout -q -b new other",
        "git worktree move ../trees/linked ../trees/there",
        "git worktree remove ../trees/there",
        "git worktree add -q in plain",
        "git worktree remove in",
        "git worktree prune",
        "git worktree prune",
    ];
    let (mut bed, root) = bed(&commands);
    let beside = |it: &str| root.parent().unwrap().join(it);
    git(&root, &["worktree", "add", "-q", "--detach", "../trees/linked", "main"]);
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&beside("trees/linked"), &["status", "-s"]).as_str()), (1, ""), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!(
        (n, said(&beside("trees/there"), &["status", "-s"]).as_str(), beside("trees/linked").exists()),
        (1, "", false),
        "{told}"
    );
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!(
        (n, beside("trees/there").exists(), root.join(".git/worktrees/linked").exists()),
        (1, false, false),
        "{told}"
    );
    assert_eq!(run(&mut bed, "reject_once").0, 0);
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, root.join("in").exists(), root.join(".git/worktrees/in").exists()), (1, false, false), "{told}");
    assert_eq!(run(&mut bed, "reject_once").0, 0);
    git(&root, &["worktree", "add", "-q", "gone", "plain"]);
    fs::remove_dir_all(root.join("gone")).unwrap();
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, root.join(".git/worktrees/gone").exists()), (1, false), "{told}");
}

/// What is beside the session's folder lies in one that holds it.
#[test]
fn a_linked_work_tree_beside_the_session_goes_as_a_whole() {
    let commands = ["git worktree add -q ../beside plain && cd ../beside && ls", "git worktree remove ../beside"];
    let (mut bed, root) = bed(&commands);
    let inner = root.join("deep/inner");
    git(&root, &["clone", "-q", ".", "deep/inner"]);
    git(&inner, &["branch", "plain", "origin/plain"]);
    bed.session = bed.client.new_session(&inner).unwrap();
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, root.join("deep/beside/.vscode").exists()), (1, true), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!(
        (n, root.join("deep/beside").exists(), inner.join(".git/worktrees/beside").exists()),
        (1, false, false),
        "{told}"
    );
    assert!(inner.join(".vscode/settings.json").exists(), "{told}");
}

#[test]
fn what_is_cleaned_is_asked_about_once() {
    let (mut bed, root) =
        bed(&["git clean -fdq", "git clean -fdxq", "git sparse-checkout set out", "git push -q ../bare HEAD:x"]);
    for it in [".zed", ".cursor"] {
        fs::create_dir(root.join(it)).unwrap();
        fs::write(root.join(it).join("new"), "").unwrap();
    }
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, root.join(".zed/new").exists(), root.join(".cursor/new").exists()), (1, false, false), "{told}");
    assert_eq!(run(&mut bed, "allow_once").0, 1);
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, root.join(".vscode").exists(), root.join(".github").exists()), (1, false, false), "{told}");
    git(&root, &["init", "-q", "--bare", "../bare"]);
    let (asked, told) = prompt(&mut bed.client, &bed.session, "go", "allow_once");
    assert_eq!((asked.len(), said(&root.parent().unwrap().join("bare"), &["branch"]).as_str()), (1, "x"), "{told}");
}

#[test]
fn a_repository_is_cloned_beside_the_workspace_with_one_yes() {
    let command = "git clone -q . ../other && cd ../other && git status -s";
    let (mut bed, root) = bed(&[command, command]);
    let other = root.parent().unwrap().join("other");
    let (n, told) = run(&mut bed, "reject_once");
    assert!(n == 1 && !other.exists() && told.contains("outside of the workspace, below"), "{told}");
    let (n, told) = run(&mut bed, "allow_once");
    assert_eq!((n, said(&other, &["status", "-s"]).as_str()), (1, ""), "{told}");
    assert!(other.join(".vscode/settings.json").exists(), "{told}");
}
