//! Restores case by case: conflicts, two sessions, clients with buffers, branches.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    sync::Mutex,
};

use super::{Bed, Checkpoints, as_somebody, bed, call, conflicts, has_git, id, never, order, set_mode, tree, undo};
use crate::checkpoints::{Buffers, Failure};
use castor_base::checkpoint::{ChangeKind, OnConflict, RestoreOrder, Scope};

#[test]
fn call_is_listed_undone_and_redone() {
    let bed = bed();
    bed.write("a", "one\nsame\n");
    bed.write("d/b", "two\n");
    let checkpoints = bed.opened("s");
    let changes = call(&checkpoints, "c1", || {
        bed.write("a", "ONE\nsame\nmore\n");
        bed.write("new/c", "three\n");
        fs::remove_dir_all(bed.path("d")).unwrap();
    });
    let short = |it: &std::path::Path| it.strip_prefix(bed.root.as_path()).unwrap().display().to_string();
    let told: Vec<_> = changes.files.iter().map(|it| (short(&it.path), it.change, it.added, it.removed)).collect();
    let (added, changed, removed) = (ChangeKind::Added, ChangeKind::Changed, ChangeKind::Removed);
    let expected = [
        ("a", changed, 2, 1),
        ("d", removed, 0, 0),
        ("d/b", removed, 0, 1),
        ("new", added, 0, 0),
        ("new/c", added, 1, 0),
    ];
    assert_eq!(told, expected.map(|it| (it.0.to_owned(), it.1, it.2, it.3)));
    assert_eq!((changes.n_files, changes.added, changes.removed), (5, 3, 2));
    let diff = checkpoints.diff(&[id("c1")]).unwrap();
    let (before, after) = (diff[0].before.as_deref(), diff[0].after.as_deref());
    assert_eq!((before, after), (Some(b"one\nsame\n".as_slice()), Some(b"ONE\nsame\nmore\n".as_slice())));

    let done = undo(&checkpoints, "r1", &["c1"]);
    assert_eq!(done.restored.restored, ["a", "d", "d/b", "new", "new/c"].map(|it| bed.path(it)));
    let back = checkpoints.diff(&[id("r1")]).unwrap();
    let kinds: Vec<_> = back.iter().map(|it| (short(&it.path), it.change)).collect();
    let expected = [("a", changed), ("d", added), ("d/b", added), ("new", removed), ("new/c", removed)];
    assert_eq!(kinds, expected.map(|it| (it.0.to_owned(), it.1)));
    assert_eq!((bed.read("a"), bed.read("d/b")), ("one\nsame\n".into(), "two\n".into()));
    assert!(!bed.path("new").exists());
    undo(&checkpoints, "r2", &["r1"]);
    assert_eq!((bed.read("a"), bed.read("new/c")), ("ONE\nsame\nmore\n".into(), "three\n".into()));
    assert!(!bed.path("d").exists());
}

#[test]
fn mode_only_call_is_listed_and_undone() {
    for path in ["d", "d/e", "d/a", ""] {
        let bed = bed();
        bed.write("d/a", "1\n");
        fs::create_dir(bed.path("d/e")).unwrap();
        let (checkpoints, before) = (bed.opened("s"), tree(bed.root.as_path()));
        let mode = || bed.path(path).metadata().unwrap().permissions().mode() & 0o777;
        let old = mode();
        let changes = call(&checkpoints, "c", || set_mode(&bed.path(path), 0o711));
        let told: Vec<_> = changes.files.iter().map(|it| (it.path.clone(), it.change)).collect();
        assert_eq!(told, [(bed.root.as_path().join(path).components().collect(), ChangeKind::Changed)]);
        assert_eq!(undo(&checkpoints, "r", &["c"]).restored.restored.len(), 1, "{path}");
        assert_eq!((tree(bed.root.as_path()), mode()), (before, old), "{path}");
    }
}

/// After two calls on `a`, and what somebody does in between and after: the conflicts of undoing both.
fn check_conflict(between: impl FnOnce(&Bed), after: impl FnOnce(&Bed), expected: &[&str], left: Option<&str>) {
    let bed = bed();
    bed.write("a", "0\n");
    bed.write("d/x", "x\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c1", || bed.write("a", "1\n"));
    between(&bed);
    call(&checkpoints, "c2", || {
        bed.write("a", "2\n");
        fs::remove_dir_all(bed.path("d")).unwrap();
    });
    after(&bed);
    let now = bed.read("a");
    let plan = checkpoints.plan(&order("r", &["c1", "c2"], OnConflict::Fail), &Buffers::default()).unwrap();
    let done = undo(&checkpoints, "r", &["c1", "c2"]);
    assert_eq!(conflicts(&done, &bed.root), expected);
    assert_eq!(plan.paths.iter().filter(|it| it.conflict.is_some()).count(), expected.len());
    assert_eq!(bed.path("d/x").exists(), expected.is_empty(), "all or nothing");
    if let Some(left) = left {
        assert_eq!(bed.read("a"), left);
        return;
    }
    assert_eq!(bed.read("a"), now);
    checkpoints.restore(&order("k", &["c1", "c2"], OnConflict::Keep), &Buffers::default()).unwrap();
    // What is no conflict is restored.
    let kept = expected.iter().any(|it| it.starts_with("a:"));
    assert_eq!(bed.read("a"), if kept { now } else { "0\n".to_owned() });
}

#[test]
fn user_change_is_a_conflict() {
    let nothing = |_: &Bed| ();
    check_conflict(nothing, nothing, &[], Some("0\n"));
    check_conflict(nothing, |bed| bed.write("a", "mine\n"), &["a: it was changed since"], None);
    check_conflict(|bed| bed.write("a", "mine\n"), nothing, &["a: you changed it between two calls"], None);
    check_conflict(|bed| bed.write("a", "0\n"), nothing, &[], Some("0\n"));
    check_conflict(nothing, |bed| fs::remove_file(bed.path("a")).unwrap(), &["a: it was changed since"], None);
    check_conflict(
        nothing,
        |bed| symlink("x", bed.path("d")).unwrap(),
        &["d: it was changed since", "d/x: another entry is where its folder was"],
        None,
    );
    check_conflict(nothing, |bed| bed.write("d/mine", "x"), &[], Some("0\n"));
}

#[test]
fn forced_restore_overwrites_and_checkpoints_the_conflict() {
    let bed = bed();
    bed.write("a", "0\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.write("a", "1\n"));
    bed.write("a", "mine\n");
    let forced = checkpoints.restore(&order("r", &["c"], OnConflict::Restore), &Buffers::default()).unwrap();
    assert_eq!((forced.restored.conflicts.len(), bed.read("a")), (0, "0\n".into()));
    undo(&checkpoints, "q", &["r"]);
    assert_eq!(bed.read("a"), "mine\n");
}

#[test]
fn a_folder_with_files_of_the_user_is_not_replaced() {
    let bed = bed();
    bed.write("a", "a file\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || {
        fs::remove_file(bed.path("a")).unwrap();
        bed.write("a/x", "x\n");
    });
    bed.write("a/mine", "mine\n");
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!(conflicts(&done, &bed.root), ["a: a folder stands there now, with files that the calls did not make"]);
    checkpoints.restore(&order("q", &["c"], OnConflict::Restore), &Buffers::default()).unwrap();
    assert_eq!(bed.read("a"), "a file\n");
    undo(&checkpoints, "p", &["q"]);
    assert_eq!((bed.read("a/mine"), bed.read("a/x")), ("mine\n".into(), "x\n".into()));
}

#[test]
fn a_closed_folder_is_opened_for_what_comes_back_and_closed_again() {
    for mode in [0o500, 0o000] {
        let bed = bed();
        bed.write("d/e/a", "0\n");
        // Inwards to open, outwards to close.
        let set = |dirs: [&str; 2], mode| dirs.map(|it| set_mode(&bed.path(it), mode));
        let (open, close) = (|| set(["d", "d/e"], 0o700), || set(["d/e", "d"], mode));
        as_somebody(&bed, || {
            close();
            let checkpoints = bed.opened("s");
            call(&checkpoints, "c", || {
                open();
                fs::remove_file(bed.path("d/e/a")).unwrap();
                close();
            });
            for own in ["r", "q"] {
                let undone = if own == "r" { "c" } else { "r" };
                assert_eq!(undo(&checkpoints, own, &[undone]).restored.restored, [bed.path("d/e/a")]);
                let found = ["d", "d/e"].map(|it| {
                    let found = bed.path(it).metadata().unwrap().permissions().mode() & 0o777;
                    set_mode(&bed.path(it), 0o700);
                    found
                });
                assert_eq!((found, bed.path("d/e/a").exists()), ([mode; 2], own == "r"));
                close();
            }
            open();
        });
    }
}

#[test]
fn only_the_paths_that_are_named_are_restored() {
    let bed = bed();
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || {
        bed.write("a", "1\n");
        bed.write("d/b", "1\n");
    });
    let order = RestoreOrder { paths: Some(vec![bed.path("d")]), ..order("r", &["c"], OnConflict::Fail) };
    let done = checkpoints.restore(&order, &Buffers::default()).unwrap();
    assert_eq!(done.restored.restored, [bed.path("d"), bed.path("d/b")]);
    assert!(bed.path("a").exists() && !bed.path("d").exists());
}

#[test]
fn a_file_tool_holds_its_file_alone() {
    let bed = bed();
    bed.write("a", "0\n");
    let checkpoints = bed.opened("s");
    let scope = Scope::Files(vec![bed.root.join("a"), bed.root.join("new/deep/b"), bed.root.join("../outside")]);
    let held = checkpoints.before(&id("c"), &scope, &never).unwrap();
    assert_eq!(held.not_kept, [bed.root.join("../outside").as_path()]);
    bed.write("a", "1\n");
    bed.write("new/deep/b", "1\n");
    bed.write("other", "the user's\n");
    let changes = checkpoints.after(&id("c")).unwrap();
    assert_eq!(changes.files.iter().filter(|it| it.path == bed.path("other")).count(), 0);
    undo(&checkpoints, "r", &["c"]);
    assert_eq!((bed.read("a"), bed.read("other")), ("0\n".into(), "the user's\n".into()));
    assert!(!bed.path("new").exists());
    assert!(matches!(checkpoints.after(&id("c")), Err(Failure::Unknown { .. })));
}

fn two() -> (Bed, Checkpoints, Checkpoints) {
    let bed = bed();
    bed.write("a", "0\n");
    bed.write("b", "0\n");
    let (one, other) = (bed.opened("s"), bed.opened("t"));
    (bed, one, other)
}

#[test]
fn two_sessions_on_a_root() {
    // One after the other.
    let (bed, one, other) = two();
    call(&one, "c", || bed.write("a", "1\n"));
    call(&other, "c", || bed.write("b", "1\n"));
    assert_eq!(conflicts(&undo(&one, "r", &["c"]), &bed.root), Vec::<String>::new());
    assert_eq!((bed.read("a"), bed.read("b")), ("0\n".into(), "1\n".into()));

    // On one file.
    let (bed, one, other) = two();
    call(&one, "c", || bed.write("a", "1\n"));
    call(&other, "c", || bed.write("a", "2\n"));
    assert_eq!(conflicts(&undo(&one, "r", &["c"]), &bed.root), ["a: another session changed it too"]);

    // At the same time: nobody knows whose it is.
    let (bed, one, other) = two();
    one.before(&id("c"), &Scope::Roots, &never).unwrap();
    call(&other, "c", || bed.write("a", "1\n"));
    one.after(&id("c")).unwrap();
    let why = ["a: another session ran at the same time and may have changed it"];
    assert_eq!(conflicts(&undo(&one, "r", &["c"]), &bed.root), why);
    assert_eq!(conflicts(&undo(&other, "r", &["c"]), &bed.root), why);

    // A file tool knows what it did, whatever runs beside it.
    let (bed, one, other) = two();
    one.before(&id("c"), &Scope::Roots, &never).unwrap();
    other.before(&id("c"), &Scope::Files(vec![bed.root.join("a")]), &never).unwrap();
    bed.write("a", "1\n");
    other.after(&id("c")).unwrap();
    bed.write("b", "1\n");
    one.after(&id("c")).unwrap();
    assert_eq!(conflicts(&undo(&other, "r", &["c"]), &bed.root), Vec::<String>::new());
    assert_eq!((bed.read("a"), bed.read("b")), ("0\n".into(), "1\n".into()));
}

#[test]
fn a_session_that_is_being_closed_is_waited_for() {
    let bed = bed();
    let before = Mutex::new(Some(bed.opened("s")));
    // To close it takes the lock of the root.
    let close = || before.lock().unwrap().take().is_none();
    bed.session("s").open(&close).unwrap();
    assert!(before.lock().unwrap().is_none(), "nobody asked whether it goes on");
    let _before = bed.opened("s");
    assert!(matches!(bed.session("s").open(&|| true), Err(Failure::Cancelled)));
}

#[test]
fn background_command_has_its_own_changes() {
    let bed = bed();
    let checkpoints = bed.opened("s");
    checkpoints.before(&id("bg"), &Scope::Roots, &never).unwrap();
    bed.write("by it", "1\n");
    call(&checkpoints, "c", || bed.write("by both", "1\n"));
    bed.write("by it later", "1\n");
    let changes = checkpoints.after(&id("bg")).unwrap();
    assert_eq!(changes.n_files, 3);
    undo(&checkpoints, "r", &["bg", "c"]);
    assert_eq!(fs::read_dir(&bed.root).unwrap().count(), 0);
}

#[test]
fn files_of_a_client_are_what_it_says() {
    let bed = bed();
    bed.write("a", "on disk\n");
    let path = bed.root.join("a");
    let checkpoints = bed.opened("s");
    let content = |it: &str| vec![(path.clone(), Some(it.as_bytes().to_vec()))];
    checkpoints.before_content(&id("c"), &content("in the buffer\n")).unwrap();
    let changes = checkpoints.after_content(&id("c"), &content("by the agent\n")).unwrap();
    assert_eq!((changes.n_files, changes.added, changes.removed), (1, 1, 1));
    let restore = |own: &str, buffer: &str| {
        let buffers = Buffers([(path.clone(), buffer.as_bytes().to_vec())].into());
        checkpoints.restore(&order(own, &["c"], OnConflict::Fail), &buffers).unwrap()
    };
    let dirty = restore("r1", "typed since\n");
    assert_eq!(conflicts(&dirty, &bed.root), ["a: it was changed since"]);
    let done = restore("r2", "by the agent\n");
    assert_eq!(done.to_client, [(path.clone(), b"in the buffer\n".to_vec())]);
    assert_eq!(bed.read("a"), "on disk\n", "the client writes it");
}

/// What the client has, what the disk has, and what becomes of both: to the client, on the disk, or a conflict.
#[test]
fn a_restore_knows_buffers_and_disks_apart() {
    // The call made `two` of it, as the client has it; or nothing, or of nothing.
    for (before, after, buffer, disk, expected) in [
        (Some("one"), Some("two"), "two", Some("two"), "to the client: one"),
        (Some("one"), Some("two"), "two", Some("one"), "to the client: one"),
        (Some("one"), Some("two"), "one", Some("two"), "to the client: one"),
        (Some("one"), Some("two"), "one", Some("one"), "nothing"),
        (Some("one"), Some("two"), "typed", Some("one"), "it was changed since"),
        (Some("one"), Some("two"), "typed", Some("two"), "it was changed since"),
        (Some("one"), Some("two"), "two", Some("theirs"), "it was changed since"),
        (Some("one"), Some("two"), "one", Some("theirs"), "it was changed since"),
        (Some("one"), Some("two"), "two", None, "it was changed since"),
        (Some("one"), None, "one", None, "to the client: one"),
        (None, Some("two"), "two", Some("two"), "gone"),
        (None, Some("two"), "two", None, "nothing"),
        (None, Some("two"), "typed", Some("two"), "it was changed since"),
    ] {
        let bed = bed();
        bed.write("else", "so that the root is not empty");
        let put = |it: Option<&str>| match it {
            Some(it) => bed.write("a", it),
            None => _ = fs::remove_file(bed.path("a")),
        };
        put(before);
        let (path, checkpoints) = (bed.root.join("a"), bed.opened("s"));
        let content = |it: Option<&str>| vec![(path.clone(), it.map(|it| it.as_bytes().to_vec()))];
        checkpoints.before_content(&id("c"), &content(before)).unwrap();
        checkpoints.after_content(&id("c"), &content(after)).unwrap();
        put(disk);
        let order = order("r", &["c"], OnConflict::Fail);
        assert_eq!(checkpoints.plan(&order, &Buffers::default()).unwrap().files, std::slice::from_ref(&path));
        let buffers = Buffers([(path.clone(), buffer.as_bytes().to_vec())].into());
        let done = checkpoints.restore(&order, &buffers).unwrap();
        let found = match (done.restored.conflicts.first(), done.to_client.first()) {
            (Some(it), _) => it.reason.clone(),
            (None, Some(it)) => format!("to the client: {}", String::from_utf8_lossy(&it.1)),
            _ if done.restored.restored.is_empty() => "nothing".to_owned(),
            _ => "gone".to_owned(),
        };
        let now = fs::read_to_string(bed.path("a")).ok();
        assert_eq!(now.as_deref(), if expected == "gone" { None } else { disk }, "the client writes it");
        assert_eq!(found, expected, "{before:?} {after:?} {buffer} {disk:?}");
    }
}

/// No disk ever had it: it is held all the same.
#[test]
fn redo_restores_unsaved_buffer_text() {
    let bed = bed();
    bed.write("a", "one");
    let (path, checkpoints) = (bed.root.join("a"), bed.opened("s"));
    let content = |it: &str| vec![(path.clone(), Some(it.as_bytes().to_vec()))];
    checkpoints.before_content(&id("c"), &content("one")).unwrap();
    checkpoints.after_content(&id("c"), &content("two")).unwrap();
    let restore = |own: &str, undone: &str, buffer: &str| {
        let buffers = Buffers([(path.clone(), buffer.as_bytes().to_vec())].into());
        let done = checkpoints.restore(&order(own, &[undone], OnConflict::Restore), &buffers).unwrap();
        String::from_utf8(done.to_client[0].1.clone()).unwrap()
    };
    assert_eq!(restore("r", "c", "typed"), "one");
    assert_eq!(restore("q", "r", "one"), "typed");
}

#[test]
fn branches_are_restored_one_by_one() {
    if !has_git() {
        return;
    }
    let bed = bed();
    let rev = |name: &str| fs::read_to_string(bed.path(&format!(".git/refs/heads/{name}"))).unwrap_or_default();
    bed.sh("git init -q -b main . && echo 1 > a && git add a && git commit -qm one && git branch mine && git branch theirs");
    let checkpoints = bed.opened("s");
    let changes = call(&checkpoints, "c", || {
        bed.sh("echo 2 > a && git commit -qam two && git branch -f theirs && git branch -D -q mine")
    });
    assert_eq!(changes.n_files, 2, "{changes:?}");
    let (old, new) = (rev("mine"), rev("main"));
    assert_eq!((old.as_str(), rev("theirs")), ("", new.clone()));
    // The user goes on with another branch, and packs all of them.
    bed.sh("git branch more && git pack-refs --all");
    let plan = checkpoints.plan(&order("r", &["c"], OnConflict::Fail), &Buffers::default()).unwrap();
    assert_eq!(plan.paths.iter().map(|it| it.path.clone()).collect::<Vec<_>>(), [bed.path(".git"), bed.path("a")]);
    // And with this one.
    bed.sh("git commit -q --allow-empty -m three");
    let done = undo(&checkpoints, "r", &["c"]);
    let said = conflicts(&done, &bed.root);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(
        said[0].starts_with(".git: branch main is at ")
            && said[0].contains(&new[..12])
            && said[0].ends_with("it was changed since"),
        "{said:?}"
    );
    let kept = checkpoints.restore(&order("k", &["c"], OnConflict::Keep), &Buffers::default()).unwrap();
    assert_eq!(kept.restored.restored, [bed.path(".git"), bed.path("a")]);
    bed.sh(
        "test $(git rev-parse mine) = $(git rev-parse main~2) && test $(git rev-parse theirs) = $(git rev-parse mine)",
    );
    bed.sh("git rev-parse -q --verify more && git fsck --no-progress");
    assert!(!bed.path(".git/refs/heads/mine.lock").exists());
}

#[test]
fn locked_git_ref_does_not_block_a_restore() {
    if !has_git() {
        return;
    }
    let bed = bed();
    bed.sh("git init -q -b main . && echo 1 > a && git add a && git commit -qm one");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.sh("echo 2 > a && git commit -qam two"));
    bed.write(".git/refs/heads/main.lock", "");
    let res = checkpoints.restore(&order("r", &["c"], OnConflict::Fail), &Buffers::default());
    assert!(
        matches!(&res, Err(Failure::Io { source, .. }) if source.to_string().contains("git is at work")),
        "{res:?}"
    );
    assert_eq!(bed.read("a"), "2\n", "nothing is half done");
    fs::remove_file(bed.path(".git/refs/heads/main.lock")).unwrap();
    undo(&checkpoints, "r", &["c"]);
    assert_eq!(bed.read("a"), "1\n");
    bed.sh("test -z \"$(git status --porcelain)\"");
}

#[test]
fn restore_keeps_later_staged_changes() {
    if !has_git() {
        return;
    }
    let bed = bed();
    bed.sh("git init -q -b main . && echo 1 > a && git add a && git commit -qm one && echo m > mine");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.sh("echo 2 > a && git add a"));
    bed.sh("touch a && git status -s > /dev/null");
    let looked = checkpoints.plan(&order("r", &["c"], OnConflict::Fail), &Buffers::default()).unwrap();
    assert!(looked.paths.iter().all(|it| it.conflict.is_none()), "git only looked: {looked:?}");
    bed.sh("git add mine");
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!(conflicts(&done, &bed.root), [".git/index: it was changed since"]);
}

/// They come and go with whatever is confined, also while nobody works.
#[test]
fn castor_placeholders_are_no_changes() {
    let bed = bed();
    bed.write(".git/HEAD", "ref: refs/heads/main\n");
    bed.write("a", "one\n");
    let checkpoints = bed.opened("s");
    let stand = || {
        bed.write(".git/config.worktree", "");
        bed.write(".git/commondir", "././.\n");
    };
    assert!(call(&checkpoints, "c1", stand).is_empty());
    let changes = call(&checkpoints, "c2", || {
        fs::remove_file(bed.path(".git/commondir")).unwrap();
        bed.write("a", "two\n");
    });
    assert_eq!(changes.files.iter().map(|it| it.path.clone()).collect::<Vec<_>>(), [bed.path("a")]);
    assert_eq!(undo(&checkpoints, "r1", &["c1", "c2"]).restored.restored, [bed.path("a")]);
    assert!(bed.path(".git/config.worktree").exists());
    let changes = call(&checkpoints, "c3", || bed.write(".git/config.worktree", "[core]\n"));
    assert_eq!(changes.n_files, 1);
}
