//! Prepared inside, triggered outside: repositories that a command leaves, and the user's own git beside and after it.
#![cfg(target_os = "linux")]

mod unfinished;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc::{RecvTimeoutError, channel},
    thread,
    time::Duration,
};

use serde_json::json;

use crate::{
    client::{Namespaces, Sandbox},
    confined::Bed,
    repositories::git,
};

/// What each preparation begins with. `evil` is what must not run outside: inside it can write nothing there.
const PRELUDE: &str = "set -e
repo() { mkdir -p $1; git init -q $1; echo x > $1/x; git -C $1 add x; git -C $1 -c user.name=a -c user.email=a@b commit -qm s; echo yy > $1/x; }
evil=\"touch $RAN; cat\"; mon=\"touch $RAN; false\"
";

/// A preparation: its name, its commands (one in each turn), and what git reads of it: the folder below the workspace.
/// `!` in front of a command: it is one in the background.
struct Preparation(&'static str, &'static [&'static str], &'static str);

const GITLINK: &str = "git -C d config core.fsmonitor \"$mon\"; git add d 2>&1";
const DEEP: &str = "d/1/2/3/4/5/6/7/8/9/a/b/c";

const PREPARATIONS: &[Preparation] = &[
    Preparation("fsmonitor", &["repo d; git -C d config core.fsmonitor \"$mon\""], "d"),
    Preparation("gitlink", &["repo d; git add d 2>&1; git -C d config core.fsmonitor \"$mon\""], "d"),
    Preparation("gitlink-two", &["repo d", GITLINK], "d"),
    Preparation(
        "clean",
        &["repo d; git -C d config filter.e.clean \"$evil\"; echo '* filter=e' > d/.git/info/attributes"],
        "d",
    ),
    Preparation(
        "process",
        &["repo d; git -C d config filter.e.process \"$mon\"; echo '* filter=e' > d/.gitattributes"],
        "d",
    ),
    Preparation(
        "hooks-path",
        &[
            "repo d; git -C d config core.hooksPath \"$PWD/d/h\"; mkdir d/h; printf \"#!/bin/sh\\n$evil\" > d/h/post-index-change; chmod +x d/h/*",
        ],
        "d",
    ),
    Preparation(
        "hook",
        &[
            "repo d; printf \"#!/bin/sh\\n$evil\" > d/.git/hooks/post-index-change; chmod +x d/.git/hooks/post-index-change",
        ],
        "d",
    ),
    Preparation(
        "include",
        &["repo d; git -C d config include.path ../more; printf \"[core]\\nfsmonitor = \\\"$mon\\\"\" > d/more"],
        "d",
    ),
    Preparation(
        "include-if",
        &[
            "repo d; git -C d config 'includeIf.gitdir:/.path' ../more; printf \"[core]\\nfsmonitor = \\\"$mon\\\"\" > d/more",
        ],
        "d",
    ),
    Preparation(
        "gitdir",
        &["repo d; mv d/.git d/store; echo 'gitdir: store' > d/.git; git -C d config core.fsmonitor \"$mon\""],
        "d",
    ),
    Preparation(
        "gitdir-hidden",
        &[
            "repo d; mkdir -p .git/lost; mv d/.git .git/lost/d; echo 'gitdir: ../.git/lost/d' > d/.git",
            "git --git-dir .git/lost/d config core.fsmonitor \"$mon\"",
        ],
        "d",
    ),
    Preparation(
        "bare",
        &[
            "repo d; mv d/.git/* d; rm -r d/.git; cd d; printf \"[core]\\nrepositoryformatversion=0\\nbare=false\\nworktree=$PWD\\nfsmonitor=\\\"$mon\\\"\" > config",
        ],
        "d",
    ),
    Preparation(
        "worktree-config",
        &["repo d; git -C d config extensions.worktreeConfig true; git -C d config --worktree core.fsmonitor \"$mon\""],
        "d",
    ),
    Preparation(
        "submodule",
        &[
            "repo d/m; repo d; mkdir d/.git/modules; mv d/m/.git d/.git/modules/m; echo 'gitdir: ../.git/modules/m' > d/m/.git; git -C d/m config core.fsmonitor \"$mon\"; git -C d add m 2>&1",
        ],
        "d/m",
    ),
    Preparation(
        "link",
        &[
            "repo s; mkdir d; git -C s config core.fsmonitor \"$mon\"; mv s/.git s/store; ln -s ../s/store d/.git; mv s/x d/x",
        ],
        "d",
    ),
    Preparation("external", &["repo d; git -C d config diff.external \"$evil\""], "d"),
    Preparation(
        "textconv",
        &["repo d; git -C d config diff.e.textconv \"$evil\"; echo '* diff=e' > d/.gitattributes"],
        "d",
    ),
    Preparation(
        "moved-config",
        &["repo d; cp d/.git/config d/c; git config -f d/c core.fsmonitor \"$mon\"; mv d/c d/.git/config"],
        "d",
    ),
    Preparation(
        "deep",
        &[
            "mkdir -p d/1/2/3/4/5/6/7/8/9/a/b; repo d/1/2/3/4/5/6/7/8/9/a/b/c; git -C d/1/2/3/4/5/6/7/8/9/a/b/c config core.fsmonitor \"$mon\"",
        ],
        DEEP,
    ),
    Preparation(
        "node-modules",
        &["repo node_modules/d; git -C node_modules/d config core.fsmonitor \"$mon\""],
        "node_modules/d",
    ),
    Preparation(
        "node-modules-two",
        &["repo node_modules/@s/d", "git -C node_modules/@s/d config core.fsmonitor \"$mon\""],
        "node_modules/@s/d",
    ),
    Preparation("dotted", &["repo .x/y/d", "git -C .x/y/d config core.fsmonitor \"$mon\""], ".x/y/d"),
    Preparation("vendor", &["repo vendor/d", "git -C vendor/d config core.fsmonitor \"$mon\""], "vendor/d"),
    Preparation("renamed", &["repo $TMPDIR/p; git -C $TMPDIR/p config core.fsmonitor \"$mon\"; mv $TMPDIR/p d"], "d"),
    Preparation(
        "renamed-two",
        &["repo $TMPDIR/p; git -C $TMPDIR/p config core.fsmonitor \"$mon\"", "mv $TMPDIR/p d"],
        "d",
    ),
    Preparation("later", &["!repo d; sleep 0.3; git -C d config core.fsmonitor \"$mon\"; sleep 0.5"], "d"),
    Preparation("stays", &["repo d; git -C d config core.fsmonitor \"$mon\"; sleep 0.6"], "d"),
    Preparation(
        "in-new-folder",
        &["sleep 0.2; mkdir -p d/e/f; repo d/e/f/g; git -C d/e/f/g config core.fsmonitor \"$mon\"; sleep 0.6"],
        "d/e/f/g",
    ),
    Preparation(
        "common-folder",
        &[
            "repo d; repo s; git -C s config core.fsmonitor \"$mon\"; mv s/.git s/store; echo ../../s/store > d/.git/commondir",
        ],
        "d",
    ),
    Preparation(
        "worktree",
        &["repo s; git -C s worktree add -q ../d; echo yy > d/x; git -C s config core.fsmonitor \"$mon\""],
        "d",
    ),
    Preparation(
        "one-line",
        &["repo d; printf \"[core] bare = false\\n[core] fsmonitor = \\\"$mon\\\"\" > d/.git/config"],
        "d",
    ),
];

/// These git obeys later, or when the user asks for more: they go aside all the same.
const ASIDE: &[Preparation] = &[
    Preparation("smudge", &["repo d; git -C d config filter.e.smudge \"$evil\""], "d"),
    Preparation("pager", &["repo d; git -C d config core.pager \"$evil\""], "d"),
    Preparation("ssh", &["repo d; git -C d config core.sshCommand \"$evil\""], "d"),
    Preparation("template", &["repo d; git -C d config init.templateDir \"$PWD\""], "d"),
    Preparation("address", &["repo d; git -C d remote add o 'ext::sh -c x'"], "d"),
    Preparation(
        "alternates",
        &["repo d; repo $TMPDIR/s; echo $TMPDIR/s/.git/objects > d/.git/objects/info/alternates"],
        "d",
    ),
];

/// What the user, an editor and a prompt run.
const TRIGGERS: &[&[&str]] = &[
    &["status"],
    &["status", "-z", "-uall"],
    &["status", "--porcelain=2", "--branch"],
    &["diff"],
    &["add", "-A", "--ignore-errors"],
    &["log", "-p", "-2"],
    &["worktree", "list"],
];

/// `locks`: an editor takes none at its looks, so that it is in nobody's way.
fn run_git(folder: &Path, args: &[&str], locks: &str) {
    let mut git = Command::new("git");
    git.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    _ = git.env("GIT_OPTIONAL_LOCKS", locks).output();
}

fn trigger(root: &Path, folder: &Path) {
    for it in [root, folder].into_iter().filter(|it| it.is_dir()) {
        TRIGGERS.iter().for_each(|args| run_git(it, args, "1"));
    }
}

fn script(name: &str, ran: &Path, line: &str) -> String {
    format!("RAN={}\n{PRELUDE}mkdir -p {name}.d; cd {name}.d\n{line}\n", ran.join(name).display())
}

/// A workspace in a repository, and a folder outside in which no command writes.
fn prepare(sandbox: &mut Sandbox, all: &[&Preparation]) -> PathBuf {
    let root = sandbox.workspace();
    let ran = root.parent().unwrap().join("ran");
    fs::remove_dir_all(root.join(".git")).unwrap();
    fs::create_dir_all(&ran).unwrap();
    for Preparation(name, lines, _) in all {
        for (idx, line) in lines.iter().enumerate() {
            sandbox.write(format!("ws/{name}-{idx}.sh"), &script(name, &ran, line.trim_start_matches('!')));
        }
    }
    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "one"]);
    ran
}

fn commands(all: &[&Preparation]) -> Vec<String> {
    let of = |Preparation(name, lines, _): &&Preparation| {
        let line = |(idx, it): (usize, &&str)| {
            let background = if it.starts_with('!') { "& " } else { "" };
            format!("{background}sh {name}-{idx}.sh; touch out/{name}-{idx}")
        };
        lines.iter().enumerate().map(line).collect::<Vec<_>>()
    };
    all.iter().flat_map(of).collect()
}

fn has_aside(folder: &Path) -> bool {
    let mut entries = fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    entries.any(|it| {
        let is_folder = it.file_type().unwrap().is_dir();
        it.file_name().to_string_lossy().contains(".castor-aside") || is_folder && has_aside(&it.path())
    })
}

/// The user's editor looks every 20 ms at the workspace and at the repository in it, until `end`; how often something ran.
fn look_beside<T>(root: &Path, folder: &Path, ran: &Path, end: impl FnOnce() -> T) -> (T, usize) {
    let (over, waits) = channel::<()>();
    thread::scope(|scope| {
        let looks = scope.spawn(move || {
            let mut hits = 0;
            while waits.recv_timeout(Duration::from_millis(20)) == Err(RecvTimeoutError::Timeout) {
                for it in [root, folder].into_iter().filter(|it| it.is_dir()) {
                    run_git(it, &["status", "-uall"], "0");
                }
                hits += usize::from(fs::remove_file(ran).is_ok());
            }
            hits
        });
        let res = end();
        drop(over);
        (res, looks.join().unwrap())
    })
}

/// Without castor each of them runs something: else the test below would show nothing.
#[test]
fn git_outside_obeys_each_of_these_where_nobody_puts_it_aside() {
    let all: Vec<&Preparation> = PREPARATIONS.iter().collect();
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/.git/HEAD", "");
    let ran = prepare(&mut sandbox, &all);
    let root = sandbox.workspace();
    let tmp = root.parent().unwrap().join("tmp");
    for Preparation(name, lines, folder) in all {
        fs::create_dir_all(&tmp).unwrap();
        for idx in 0..lines.len() {
            let mut sh = Command::new("sh");
            sh.arg(format!("{name}-{idx}.sh")).current_dir(&root).env("TMPDIR", &tmp);
            let out = sh.env("GIT_CONFIG_GLOBAL", "/dev/null").output().unwrap();
            assert!(out.status.success(), "{name}: {}", String::from_utf8_lossy(&out.stderr));
        }
        _ = fs::remove_file(ran.join(name));
        trigger(&root, &root.join(format!("{name}.d")).join(folder));
        assert!(ran.join(name).exists(), "{name} runs nothing");
        fs::remove_dir_all(root.join(format!("{name}.d"))).unwrap();
    }
}

#[test]
fn nothing_that_a_command_prepared_runs_when_the_user_calls_git() {
    let all: Vec<&Preparation> = PREPARATIONS.iter().chain(ASIDE).collect();
    let lines = commands(&all);
    let mut ran = PathBuf::new();
    let mut bed = Bed::prepared(&lines.iter().map(String::as_str).collect::<Vec<_>>(), |it| ran = prepare(it, &all));
    if bed.sandbox.namespaces == Namespaces::Nobody {
        return;
    }
    let root = bed.path("").canonicalize().unwrap();
    let (mut wrong, mut windows) = (Vec::new(), Vec::new());
    for Preparation(name, lines, folder) in all {
        let folder = root.join(format!("{name}.d")).join(folder);
        let (told, hits) = look_beside(&root, &folder, &ran.join(name), || {
            let told: String = (0..lines.len()).map(|_| bed.run()).collect();
            (0..lines.len()).for_each(|idx| bed.until(&format!("out/{name}-{idx}")));
            told
        });
        let is_aside = || has_aside(&root.join(format!("{name}.d")));
        if lines.iter().any(|it| it.starts_with('!')) {
            bed.wait_for(name, is_aside);
        }
        trigger(&root, &folder);
        if ran.join(name).exists() {
            wrong.push(format!("{name} ran"));
        }
        let is_told = told.contains("put aside") || lines.iter().any(|it| it.starts_with('!'));
        // What was there before the command may be read-only to it.
        let is_held = lines.len() > 1 && told.contains("could not write config file");
        if !(is_held || is_told && is_aside()) {
            wrong.push(format!("{name} is not put aside: {told}"));
        }
        if name.starts_with("gitlink") && !is_held && !told.contains("`.gitmodules` does not name") {
            wrong.push(format!("{name} is staged, and nobody says so: {told}"));
        }
        // What ran beside it did so in the window between the last write and the rename.
        windows.push(hits);
        if hits > MAX_WINDOW {
            wrong.push(format!("{name} ran {hits} times beside the command"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    println!("looks that came in between: {windows:?}");
}

/// Neither does what was put aside come back.
#[test]
fn undo_and_redo_bring_no_repository_back_that_was_put_aside() {
    let all = [&PREPARATIONS[0]];
    let mut bed = Bed::prepared(&["sh fsmonitor-0.sh"], |it| _ = prepare(it, &all));
    bed.run();
    let git = bed.path("fsmonitor.d/d/.git");
    let aside = git.with_file_name(".git.castor-aside");
    assert!(!git.exists() && aside.exists());
    for (order, is_there) in [("/undo", false), ("/redo", true)] {
        let prompt = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": order}]});
        let (_, told) = bed.client.call("session/prompt", prompt).unwrap();
        assert_eq!((git.exists(), aside.exists()), (false, is_there), "{order}: {told:?}");
    }
}

/// Checkpoints keep git's objects beside the repository: whoever writes one there changes nothing of that.
#[test]
fn command_cannot_change_objects_that_checkpoints_keep() {
    let line = "o=$(find .git/objects -path '*/??/*' -type f | sort | head -1); chmod +w $o; echo evil > $o; cat $o; rm $o; \
                p=.git/objects/pack/pack-*.pack; chmod +w $p; echo evil > $p; rm -f $p; echo two > two; echo '<<tried>>'";
    let mut bed = Bed::prepared(&["echo one > one", line], |it| {
        prepare(it, &[]);
        let pack = it.write(format!("ws/.git/objects/pack/pack-{}.pack", "a".repeat(40)), "");
        fs::File::options().write(true).open(pack).unwrap().set_len(LARGE).unwrap();
    });
    if bed.sandbox.namespaces == Namespaces::Nobody {
        return;
    }
    let root = bed.path("");
    let objects = || -> Vec<(PathBuf, Vec<u8>)> {
        let folders = fs::read_dir(root.join(".git/objects")).unwrap().map(|it| it.unwrap().path());
        let folders = folders.filter(|it| it.file_name().unwrap().len() == 2);
        let mut files: Vec<_> = folders.flat_map(|it| fs::read_dir(it).unwrap().map(|it| it.unwrap().path())).collect();
        files.sort();
        files.into_iter().map(|it| (it.clone(), fs::read(it).unwrap())).collect()
    };
    let before = objects();
    bed.run();
    let told = bed.run();
    assert!(told.contains("evil\\n") && told.contains("<<tried>>") && before != objects(), "{told}");
    let pack = root.join(format!(".git/objects/pack/pack-{}.pack", "a".repeat(40)));
    assert_eq!(pack.metadata().unwrap().len(), LARGE, "{told}");
    let prompt = json!({"sessionId": bed.session, "prompt": [{"type": "text", "text": "/undo"}]});
    let (_, told) = bed.client.call("session/prompt", prompt).unwrap();
    assert_eq!(before, objects(), "{told:?}");
}

/// Checkpoints share what is larger than 100 MiB.
const LARGE: u64 = 101 << 20;

/// 200 ms are ten looks; where nobody watches, there are as many as until the command's end.
const MAX_WINDOW: usize = 10;
