//! Hostile workspaces that try to have files outside of them read or written.

use std::{
    cell::RefCell,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::PathBuf,
    rc::Rc,
};

use super::{
    as_somebody, bed, call, conflicts,
    fault::{Plan, set, take},
    has_git, id, look_as_somebody, never, order, set_mode, tree, undo,
};
use crate::checkpoints::Buffers;
use castor_base::checkpoint::{OnConflict, Scope};

#[test]
fn uncheckpointable_files_are_reported_and_stay() {
    let bed = bed();
    bed.write("a", "one\n");
    fs::File::create(bed.path("holes")).unwrap().set_len(1 << 40).unwrap();
    nix::unistd::mkfifo(&bed.path("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(bed.path("socket")).unwrap();
    let checkpoints = bed.session("s");
    let opened = checkpoints.open(&never).unwrap();
    assert_eq!(opened.held.not_kept, ["holes", "pipe", "socket"].map(|it| bed.path(it)));
    let changes = call(&checkpoints, "c", || {
        fs::remove_file(bed.path("holes")).unwrap();
        bed.write("a", "two\n");
    });
    assert_eq!(changes.not_kept, [bed.path("holes")]);
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!(done.restored.not_kept, [bed.path("holes")]);
    assert_eq!(bed.read("a"), "one\n");
}

#[test]
fn odd_names_are_names() {
    let bed = bed();
    for name in [".GIT/config", "git~1/x", "--output=x", "-rf", ".git /hooks/x", "a\\b", ".git./x"] {
        bed.write(name, name);
    }
    symlink("/etc/passwd", bed.path(".gitmodules")).unwrap();
    let checkpoints = bed.opened("s");
    let before = tree(bed.root.as_path());
    call(&checkpoints, "c", || {
        for entry in fs::read_dir(&bed.root).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => fs::remove_dir_all(entry.path()).unwrap(),
                false => fs::remove_file(entry.path()).unwrap(),
            }
        }
    });
    undo(&checkpoints, "r", &["c"]);
    assert_eq!(tree(bed.root.as_path()), before);
}

#[test]
fn a_repository_that_lies_elsewhere_is_left_alone() {
    if !has_git() {
        return;
    }
    let bed = bed();
    let elsewhere = bed.root.parent().unwrap().join("elsewhere");
    bed.sh(&format!("git init -q --separate-git-dir {elsewhere} . && echo a > a && git add a && git commit -qm a"));
    let inside = tree(elsewhere.as_path());
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || bed.sh("echo b > a"));
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!(bed.read("a"), "a\n");
    assert_eq!(done.notes.len(), 1, "{:?}", done.notes);
    assert_eq!(tree(elsewhere.as_path()), inside);
    let store = fs::read_dir(bed.home.join("checkpoints")).unwrap().count();
    assert_eq!(store, 1);
}

#[test]
fn contents_that_were_replaced_are_never_written() {
    let bed = bed();
    bed.write("a", "one\n");
    bed.write("b", "two\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || {
        fs::remove_file(bed.path("a")).unwrap();
        bed.write("b", "new\n");
    });
    let hash = crate::checkpoints::hash_of(b"one\n");
    let name = crate::checkpoints::blobs::Blobs::name(&hash, false);
    let store = fs::read_dir(bed.home.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    for replaced in [Some("evil"), None] {
        let path = store.join("blobs").join(&name);
        match replaced {
            Some(it) => fs::write(&path, it).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let done = undo(&checkpoints, "r", &["c"]);
        assert_eq!(conflicts(&done, &bed.root), ["a: the checkpoint is damaged"]);
        assert_eq!((bed.path("a").exists(), bed.read("b")), (false, "new\n".into()));
    }
    for (own, undone, on_conflict) in [("k", "c", OnConflict::Keep), ("f", "c", OnConflict::Restore)] {
        let done = checkpoints.restore(&order(own, &[undone], on_conflict), &Buffers::default()).unwrap();
        // All else comes back.
        assert_eq!(conflicts(&done, &bed.root), ["a: the checkpoint is damaged"]);
        assert_eq!((bed.path("a").exists(), bed.read("b")), (false, "two\n".into()));
        bed.write("b", "new\n");
    }
}

fn first_object(bed: &super::Bed) -> PathBuf {
    let all = fs::read_dir(bed.path(".git/objects")).unwrap().flatten().filter(|it| it.file_name().len() == 2);
    let files = all.flat_map(|it| fs::read_dir(it.path()).unwrap().flatten()).map(|it| it.path());
    files.min().unwrap()
}

#[test]
fn objects_that_were_changed_in_place_are_put_back() {
    if !has_git() {
        return;
    }
    let bed = bed();
    bed.sh("git init -q -b main . && echo a > a && git add a && git commit -qm a");
    let checkpoints = bed.opened("s");
    let path = first_object(&bed);
    let good = fs::read(&path).unwrap();
    assert_eq!(path.metadata().unwrap().nlink(), 1, "a copy");
    call(&checkpoints, "c", || {
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        fs::write(&path, "evil").unwrap();
        fs::remove_dir_all(bed.path(".git")).unwrap();
    });
    assert_eq!(conflicts(&undo(&checkpoints, "r", &["c"]), &bed.root), Vec::<String>::new());
    assert_eq!(fs::read(&path).unwrap(), good);
    bed.sh("git fsck --strict && git log -1");
}

/// A large one is shared; in a sandbox nobody writes it.
#[test]
fn large_packs_that_were_changed_in_place_are_not_put_back() {
    let bed = bed();
    let pack = format!(".git/objects/pack/pack-{}.pack", "a".repeat(40));
    bed.write(&pack, "");
    bed.write(".git/HEAD", "ref: refs/heads/main\n");
    let path = bed.path(&pack);
    fs::File::options().write(true).open(&path).unwrap().set_len(101 << 20).unwrap();
    let checkpoints = bed.opened("s");
    assert_eq!(path.metadata().unwrap().nlink(), 2, "another name, no copy");
    call(&checkpoints, "c", || {
        fs::write(&path, "evil").unwrap();
        fs::remove_dir_all(bed.path(".git")).unwrap();
    });
    let expected = [format!("{pack}: the checkpoint is damaged")];
    assert_eq!(conflicts(&undo(&checkpoints, "r", &["c"]), &bed.root), expected);
    assert!(!bed.path(".git").exists());
    let plan = checkpoints.plan(&order("f", &["c"], OnConflict::Restore), &Buffers::default()).unwrap();
    let shown = plan.paths.iter().filter(|it| it.conflict.is_none());
    assert!(shown.clone().count() > 0 && shown.clone().all(|it| checkpoints.content(it).is_ok()));
    let kept = checkpoints.restore(&order("k", &["c"], OnConflict::Keep), &Buffers::default()).unwrap();
    assert_eq!(conflicts(&kept, &bed.root), expected);
    assert!(bed.path(".git/HEAD").exists() && !path.exists());
}

#[test]
fn git_object_content_restores_no_other_file() {
    let bed = bed();
    let object = format!(".git/objects/aa/{}", "b".repeat(38));
    bed.write(&object, "good\n");
    bed.write("a", "good\n");
    let checkpoints = bed.opened("s");
    call(&checkpoints, "c", || {
        bed.write(&object, "evil\n");
        fs::remove_file(bed.path("a")).unwrap();
    });
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!((conflicts(&done, &bed.root), bed.read("a")), (Vec::new(), "good\n".into()));
    assert_eq!(bed.path("a").metadata().unwrap().nlink(), 1);
}

/// Of what a call did nothing hides behind a mode.
#[test]
fn folders_closed_by_a_call_are_still_read() {
    for (path, mode) in [("", 0o000), ("d", 0o000), ("d", 0o400), ("d", 0o300), ("d/e", 0o000), ("d/e/f", 0o000)] {
        let bed = bed();
        for name in ["a", "d/e/f", "d/g"] {
            bed.write(name, "one\n");
        }
        as_somebody(&bed, || {
            let (checkpoints, before) = (bed.opened("s"), tree(bed.root.as_path()));
            let changes = call(&checkpoints, "c", || {
                let file = fs::OpenOptions::new().write(true).open(bed.path("d/e/f")).unwrap();
                let time = file.metadata().unwrap().modified().unwrap();
                std::io::Write::write_all(&mut &file, b"two\n").unwrap();
                file.set_modified(time).unwrap();
                fs::remove_file(bed.path("a")).unwrap();
                fs::remove_file(bed.path("d/g")).unwrap();
                set_mode(&bed.path(path), mode);
            });
            assert!(changes.n_files >= 3 && changes.not_kept.is_empty(), "{path} {mode:o}: {changes:?}");
            let now = || bed.path(path).metadata().unwrap().permissions().mode() & 0o777;
            assert_eq!(now(), mode, "{path}: it was left open");
            for (own, undone) in [("r", "c"), ("t", "q")] {
                let done = undo(&checkpoints, own, &[undone]);
                assert_eq!(conflicts(&done, &bed.root), Vec::<String>::new(), "{path} {mode:o}");
                assert_eq!(tree(bed.root.as_path()), before, "{path} {mode:o}");
                if own == "r" {
                    undo(&checkpoints, "q", &["r"]);
                    assert_eq!(now(), mode, "{path}");
                }
            }
        });
    }
}

#[test]
fn files_of_other_users_are_not_checkpointed() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    let bed = bed();
    bed.write("d/a", "one\n");
    bed.write("theirs/a", "one\n");
    let close = |name: &str| {
        set_mode(&bed.path(name), 0o700);
        std::os::unix::fs::chown(bed.path(name), Some(0), None).unwrap();
    };
    let checkpoints = bed.session("s");
    as_somebody(&bed, || ());
    close("theirs");
    // Between the looks the tests' own user does what nobody else could.
    let opened = look_as_somebody(|| checkpoints.open(&never).unwrap());
    assert_eq!(opened.held.not_kept, [bed.path("theirs")]);
    look_as_somebody(|| checkpoints.before(&id("c"), &Scope::Roots, &never).unwrap());
    close("d");
    let changes = look_as_somebody(|| checkpoints.after(&id("c")).unwrap());
    assert_eq!(changes.not_kept, [bed.path("d")]);
    let done = look_as_somebody(|| undo(&checkpoints, "r", &["c"]));
    assert_eq!(conflicts(&done, &bed.root).len(), 2, "{done:?}");
}

/// At each step of a name, a folder is swapped for a link that leads out of the root.
fn swap_at(step: &'static str, act: impl FnOnce(&super::Bed, &super::Checkpoints)) {
    let bed = bed();
    let outside = bed.root.parent().unwrap().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    bed.write("d/secret", "mine\n");
    bed.write("d/other", "mine too\n");
    bed.write("e/x", "x\n");
    let checkpoints = bed.opened("s");
    let swapped = Rc::new(RefCell::new(false));
    let (real, aside, to) = (bed.path("d"), bed.path("aside"), outside.clone());
    let seen = Rc::clone(&swapped);
    set(Plan::Run(
        step,
        Box::new(move || {
            if !seen.replace(true) && fs::rename(&real, &aside).is_ok() {
                symlink(&to, &real).unwrap();
            }
        }),
    ));
    act(&bed, &checkpoints);
    set(Plan::None);
    assert!(*swapped.borrow(), "{step}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{step}");
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "secret", "{step}");
    let store = fs::read_dir(bed.home.join("checkpoints")).unwrap().next().unwrap().unwrap().path();
    let hash = crate::checkpoints::hash_of(b"secret");
    let held = crate::checkpoints::blobs::Blobs::name(&hash, false);
    assert!(!store.join("blobs").join(held).exists(), "{step}: it was read");
}

#[test]
fn folders_that_become_links_lead_nowhere() {
    for step in ["walk: folder", "walk: file", "new file: create", "new file: rename"] {
        swap_at(step, |bed, checkpoints| {
            bed.write("d/other", "changed\n");
            bed.write("d/third", "new\n");
            // It may fail, or see the link.
            _ = checkpoints.before(&id("c"), &Scope::Roots, &never);
        });
    }
    for step in ["apply: stage", "apply: write", "apply: remove", "apply: put", "apply: mode", "journal: remove"] {
        swap_at(step, |bed, checkpoints| {
            set_aside(|| {
                call(checkpoints, "c", || {
                    bed.write("d/secret", "changed\n");
                    bed.write("d/new", "new\n");
                    bed.write("d/deep/new", "new\n");
                    fs::remove_file(bed.path("d/other")).unwrap();
                    fs::remove_dir_all(bed.path("e")).unwrap();
                });
            });
            _ = checkpoints.restore(&order("r", &["c"], OnConflict::Fail), &Buffers::default());
        });
    }
}

/// What is planned for steps waits.
fn set_aside(act: impl FnOnce()) {
    let plan = take();
    act();
    set(plan);
}

#[test]
fn castors_own_folder_is_not_looked_into() {
    let mut bed = bed();
    bed.home = bed.root.join("sub/.castor");
    bed.write("sub/a", "one\n");
    let checkpoints = bed.opened("s");
    let changes = call(&checkpoints, "c", || bed.write("sub/a", "two\n"));
    assert_eq!(changes.n_files, 1, "{changes:?}");
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!((conflicts(&done, &bed.root).len(), bed.read("sub/a")), (0, "one\n".into()));
}
