//! Tests of plainness: settings, parts, files that lead elsewhere, and each moment of git's own work.

use std::{fs, os::unix::fs::symlink, path::Path};

use super::{Plainness, is_plain, obeyed_hash};

const CLONE: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[remote \"origin\"]\n\turl = https://h/x\n\
    \tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";

#[test]
fn settings_that_git_itself_leaves_are_plain_and_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let git = dir.path().canonicalize().unwrap().join(".git");
    fs::create_dir(&git).unwrap();
    let check = |config: &str, want: bool| {
        fs::write(git.join("config"), config).unwrap();
        assert_eq!(is_plain(&git), want, "{config}");
    };
    check(CLONE, true);
    check(&CLONE.replace('\n', "\r\n"), true);
    check("", true);
    check("# x\n[user]\n\tname = A B\n\temail = a@b ; c\n[commit]\n\tgpgsign = false\n", true);
    check("[submodule]\n\tactive = .\n[submodule \"a/b\"]\n\turl = ../b\n\tactive = true\n", true);
    for url in ["git@h:x/y.git", "/a/b", "../b", "ssh://git@h/x", "[::1]:x", "file:///a"] {
        check(&format!("[remote \"o\"]\n\turl = {url}\n"), true);
    }
    for url in ["ext::sh -c x", "ext://x", "a+b.c::x", "--upload-pack=x", "ssh://-oProxyCommand=x/y", "x://y"] {
        check(&format!("[remote \"o\"]\n\turl = {url}\n"), false);
        check(&format!("[submodule \"o\"]\n\turl = {url}\n"), false);
    }
    let promised = "[extensions]\n\tpartialClone = origin\n";
    check(&format!("{CLONE}{promised}"), true);
    check(&format!("{}{promised}", CLONE.replace("https:", "ssh:")), false);
    for it in [
        "core]\n\tfsmonitor = x",
        "core]\n\tfsmonitor = true",
        "core]\n\thooksPath = x",
        "core] bare = false",
        "core]\n\tpager = x",
        "core]\n\tsshCommand = x",
        "core]\n\tattributesFile = x",
        "core]\n\tbare = false \\\n",
        "core]\n\teditor = x",
        "core]\n\tgitProxy = x",
        "core]\n\taskPass = x",
        "core]\n\talternateRefsCommand = x",
        "include]\n\tpath = x",
        "includeIf \"gitdir:/\"]\n\tpath = x",
        "filter \"e\"]\n\tclean = x",
        "diff]\n\texternal = x",
        "diff \"e\"]\n\ttextconv = x",
        "alias]\n\tst = !x",
        "credential]\n\thelper = !x",
        "url \"ext::\"]\n\tinsteadOf = a",
        "protocol \"ext\"]\n\tallow = always",
        "remote \"o\"]\n\tuploadpack = x",
        "remote \"o\"]\n\tvcs = ext",
        "branch \"m\"]\n\tremote = ext::sh -c x",
        "submodule \"s\"]\n\tupdate = !x",
        "init]\n\ttemplateDir = x",
        "gpg]\n\tprogram = x",
        "commit]\n\tgpgsign = true",
        "core]\n\tbare = \u{1}",
        "core]\rbare = false",
        "remote \"a\\\"]\nx\"]\n\turl = x",
        "pager]\n\tlog = x",
        "merge \"x\"]\n\tdriver = x",
        "core]\n\tworktree = ..\u{7}",
    ] {
        check(&format!("[{it}"), false);
    }
    fs::remove_file(git.join("config")).unwrap();
    symlink("../x", git.join("config")).unwrap();
    assert!(!is_plain(&git), "a link");
}

#[test]
fn parts_that_git_obeys_are_not_plain_and_what_is_half_made_is() {
    let dir = tempfile::tempdir().unwrap();
    let git = dir.path().canonicalize().unwrap().join(".git");
    let check = |file: &str, text: &str, want: bool| {
        _ = fs::remove_dir_all(&git);
        fs::create_dir_all(git.join(file).parent().unwrap()).unwrap();
        fs::write(git.join(file), text).unwrap();
        assert_eq!(is_plain(&git), want, "{file} {text}");
    };
    for it in ["hooks/pre-commit.sample", "info/exclude", "HEAD", "objects/info/packs", "config.lock", "index"] {
        check(it, "x", true);
    }
    for it in [
        "hooks/pre-commit",
        "info/attributes",
        "objects/info/alternates",
        "objects/info/http-alternates",
        "commondir",
        "branches/x",
        "remotes/x",
        "worktrees/x/gitdir",
        "modules/m/hooks/post-checkout",
    ] {
        check(it, "x", false);
    }
    check("config.worktree", "[core]\n\tsparseCheckout = true\n", true);
    check("config.worktree", "[core]\n\tfsmonitor = x\n", false);
    check("modules/a/b/config", "[core]\n\tbare = false\n", true);
    check("modules/a/b/config", "[core]\n\tfsmonitor = x\n", false);
    check("commondir", "././.\n", true);
    assert!(!is_plain(&git.join("commondir")) && !is_plain(&git.join("none")));
}

/// Objects come from a repository that is judged by itself, or from nowhere else.
#[test]
fn alternates_lead_to_repositories_that_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
    for it in ["own", "new", "root/s"] {
        fs::create_dir_all(at(it).join(".git/refs")).unwrap();
        fs::create_dir_all(at(it).join(".git/objects/info")).unwrap();
        fs::write(at(it).join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    }
    let known = at("own/.git");
    let is_seen = |it: &Path| it.starts_with(at("root"));
    let check = |lines: &str, want: bool| {
        fs::write(at("new/.git/objects/info/alternates"), lines).unwrap();
        let judge = Plainness { is_known: &|it| it == known, is_seen: &is_seen, running: false };
        assert_eq!(judge.judge(&at("new/.git")), want, "{lines}");
    };
    let objects = |it: &str| at(it).join(".git/objects").display().to_string();
    check(&objects("own"), true);
    check("../../../own/.git/objects\n", true);
    check(&format!("{}\n{}\n", objects("own"), objects("root/s")), true);
    // Itself, what is nowhere, what is no repository, and what lies in quotes.
    check(&objects("new"), false);
    check("../../../none/.git/objects", false);
    check(&at("root/s").display().to_string(), false);
    check(&format!("{}\n/tmp\n", objects("own")), false);
    check(&format!("\"{}\"", objects("own")), false);
}

#[test]
fn a_file_leads_to_what_is_plain_and_seen_and_a_worktree_to_both_of_its_ends() {
    let dir = tempfile::tempdir().unwrap();
    let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
    let write = |path: &str, text: &str| {
        fs::create_dir_all(at(path).parent().unwrap()).unwrap();
        fs::write(at(path), text).unwrap();
    };
    let judge = |place: &str, seen: bool, running: bool| {
        let (known, is_seen) = (at(".git"), |_: &_| seen);
        Plainness { is_known: &|it| it == known, is_seen: &is_seen, running }.judge(&at(place))
    };
    write("store/HEAD", "ref: refs/heads/main\n");
    write("own/.git", "gitdir: ../store\n");
    assert!(judge("own/.git", true, false) && !judge("own/.git", false, false));
    write("store/config", "[core]\nfsmonitor = x\n");
    assert!(!judge("own/.git", true, false));
    write("own/.git", "gitdir: ../none\n");
    assert!(!judge("own/.git", true, true));
    let entry = ".git/worktrees/tree";
    write("tree/.git", &format!("gitdir: {}\n", at(entry).display()));
    write(&format!("{entry}/gitdir"), &format!("{}\n", at("tree/.git").display()));
    // Its other end comes later.
    assert!(judge(entry, true, true) && !judge(entry, true, false) && judge("tree/.git", true, true));
    write(&format!("{entry}/HEAD"), "ref: refs/heads/main\n");
    write(&format!("{entry}/commondir"), "../..\n");
    assert!(judge(entry, true, false) && judge("tree/.git", true, false));
    // What the repository's own settings name is there as at home, or not at all.
    write(".git/config", "[core]\n\thooksPath = .hooks\n\tfsmonitor = ./mon\n");
    assert!(judge("tree/.git", true, false));
    for (file, text, want) in [("tree/.hooks/a", "x", false), (".hooks/a", "x", true), ("tree/mon", "x", false)] {
        write(file, text);
        assert_eq!(judge("tree/.git", true, false), want, "{file}");
    }
    fs::remove_file(at("tree/mon")).unwrap();
    write("forged/.git", &format!("gitdir: {}\n", at(entry).display()));
    assert!(!judge("forged/.git", true, false));
    write(&format!("{entry}/commondir"), "../../../store\n");
    assert!(!judge(entry, true, true) && !judge("tree/.git", true, true));
}

/// Each file is there for a moment before its text is.
#[test]
fn every_moment_of_git_init_and_worktree_add_is_plain_while_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let at = |it: &str| dir.path().canonicalize().unwrap().join(it);
    let known = at(".git");
    let judge = |place: &str, running: bool| {
        Plainness { is_known: &|it| it == known, is_seen: &|_| true, running }.judge(&at(place))
    };
    let entry = ".git/worktrees/tree";
    fs::create_dir_all(at(entry)).unwrap();
    fs::create_dir(at("tree")).unwrap();
    let (to_entry, to_tree) = (format!("gitdir: {}\n", at(entry).display()), at("tree/.git").display().to_string());
    for (file, text) in [
        (".git/worktrees/tree/locked", "initializing"),
        (".git/worktrees/tree/gitdir", &to_tree),
        ("tree/.git", &to_entry),
        (".git/worktrees/tree/HEAD", "ref: refs/heads/x\n"),
        (".git/worktrees/tree/commondir", "../..\n"),
    ] {
        for text in ["", text] {
            fs::write(at(file), text).unwrap();
            assert!(judge(entry, true) && judge("tree/.git", true), "{file} {text:?}");
        }
    }
    fs::write(at(entry).join("commondir"), "").unwrap();
    assert!(!judge(entry, false), "nobody makes it any more");
    fs::write(at(entry).join("config"), "[core]\n\tfsmonitor = x\n").unwrap();
    assert!(!judge(entry, true), "without the word it is its own repository");
    fs::create_dir_all(at("new/.git")).unwrap();
    symlink("testing", at("new/.git/tAbC123")).unwrap();
    assert!(judge("new/.git", true));
    symlink("testing", at("new/.git/hooks")).unwrap();
    assert!(!judge("new/.git", true));
}

#[test]
fn what_git_obeys_has_another_hash_when_it_changes_and_placeholders_change_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let git = dir.path().join(".git");
    fs::create_dir_all(git.join("hooks")).unwrap();
    let before = obeyed_hash(&git);
    for (name, text) in [("config.worktree", ""), ("commondir", "././.\n"), ("HEAD", "x"), ("hooks/a.sample", "x")] {
        fs::write(git.join(name), text).unwrap();
    }
    fs::create_dir(git.join("info")).unwrap();
    assert_eq!(obeyed_hash(&git), before);
    let mut all = vec![before];
    for (name, text) in
        [("config", "././.\n"), ("hooks/a", "x"), ("hooks/a", "y"), ("info/attributes", "x"), ("commondir", "x")]
    {
        fs::write(git.join(name), text).unwrap();
        assert!(!all.contains(&obeyed_hash(&git)), "{name}");
        all.push(obeyed_hash(&git));
    }
}
