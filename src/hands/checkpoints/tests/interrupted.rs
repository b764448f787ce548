//! Restores that are killed, or run out of disk, at each step: the result is wholly old or wholly new.

use std::{
    fs,
    os::unix::fs::symlink,
    panic::{AssertUnwindSafe, catch_unwind},
};

use super::{
    Bed, Checkpoints, Tree, bed, call,
    fault::{Plan, set},
    has_git, id, never, order, tree, undo,
};
use crate::checkpoints::{Buffers, Failure};
use castor_base::checkpoint::{OnConflict, Scope};

fn start(git: bool) -> (Bed, Checkpoints, Tree) {
    let bed = bed();
    bed.write("a", "one\n");
    bed.write("d/e/f", "two\n");
    bed.write("file", "a file\n");
    bed.write("mode", "x");
    fs::create_dir(bed.path("empty")).unwrap();
    symlink("nowhere", bed.path("link")).unwrap();
    if git {
        bed.sh("git init -q -b main . && git add a && git commit -qm one && git branch side && git branch gone");
    }
    let checkpoints = bed.opened("s");
    let before = tree(bed.root.as_path());
    (bed, checkpoints, before)
}

fn change(bed: &Bed, git: bool) {
    bed.write("a", "ONE\n");
    fs::remove_dir_all(bed.path("d")).unwrap();
    fs::remove_file(bed.path("file")).unwrap();
    bed.write("file/is/now", "a folder\n");
    bed.write("new/x", "new\n");
    fs::remove_dir(bed.path("empty")).unwrap();
    fs::remove_file(bed.path("link")).unwrap();
    bed.write("link", "no link\n");
    symlink("a", bed.path("another")).unwrap();
    fs::set_permissions(bed.path("mode"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    if git {
        bed.sh("git commit -qam two && git branch -q -D gone && git checkout -q side -f");
        bed.write("a", "ONE\n");
    }
}

/// Tells whether the thread was ended before it was done.
fn is_killed(plan: Plan, act: impl FnOnce()) -> bool {
    set(plan);
    let res = catch_unwind(AssertUnwindSafe(act));
    set(Plan::None);
    res.is_err()
}

#[test]
fn a_restore_that_is_killed_is_finished_or_taken_back() {
    kill_restores(false, 1);
    if has_git() {
        // git itself is what takes the time.
        kill_restores(true, stride());
    }
}

/// Every step with git only where there is time for it.
fn stride() -> usize {
    let seeds = std::env::var("CHECKPOINT_SEEDS").ok().and_then(|it| it.parse().ok()).unwrap_or(0);
    if seeds >= 100 { 1 } else { 9 }
}

fn kill_restores(git: bool, stride: usize) {
    let (mut n, mut finished) = (0, 0);
    loop {
        n += stride;
        let (bed, checkpoints, before) = start(git);
        call(&checkpoints, "c", || change(&bed, git));
        let after = tree(bed.root.as_path());
        let killed = is_killed(Plan::Die(n), || _ = undo(&checkpoints, "r", &["c"]));
        checkpoints.abandon();
        let next = bed.session("t");
        let opened = next.open(&never).unwrap();
        let found = tree(bed.root.as_path());
        assert!(found == before || found == after, "step {n}: {found:#?}");
        finished += usize::from(!opened.notices.is_empty());
        drop(next);
        // The session goes on where it was.
        let again = bed.opened("s");
        let back = if found == before { vec!["r"] } else { vec!["c"] };
        let done = undo(&again, "q", &back);
        assert_eq!(done.restored.conflicts, [], "step {n}");
        assert_eq!(tree(bed.root.as_path()), if found == before { after } else { before }, "step {n}");
        if !killed {
            break;
        }
    }
    assert!(n > 40 && finished > 20 / stride, "{n} steps, {finished} finished");
}

#[test]
fn a_checkpoint_that_is_killed_loses_nothing() {
    let mut n = 0;
    loop {
        n += 1;
        let (bed, checkpoints, _) = start(false);
        // The user's, then the call's.
        bed.write("by the user", "mine\n");
        let before = tree(bed.root.as_path());
        let killed = is_killed(Plan::Die(n), || {
            checkpoints.before(&id("c"), &Scope::Roots, &never).unwrap();
            change(&bed, false);
            checkpoints.after(&id("c")).unwrap();
        });
        checkpoints.abandon();
        let now = tree(bed.root.as_path());
        let again = bed.opened("s");
        assert_eq!(tree(bed.root.as_path()), now, "step {n}");
        // Castor was stopped while the call ran: that may be the user's, and is asked about.
        let res = again.restore(&order("r", &["c"], OnConflict::Restore), &Buffers::default());
        // It had not begun.
        assert!(matches!(res, Ok(_) | Err(Failure::Gone)), "step {n}: {res:?}");
        let found = tree(bed.root.as_path());
        assert!(found == before || found == now, "step {n}: {found:#?}");
        call(&again, "d", || bed.write("a", "later\n"));
        assert_eq!(undo(&again, "q", &["d"]).restored.restored, [bed.path("a")], "step {n}");
        if !killed {
            assert_eq!(found, before);
            break;
        }
    }
    assert!(n > 20, "{n} steps");
}

#[test]
fn a_first_walk_that_is_killed_is_done_again() {
    for n in 1.. {
        let bed = bed();
        bed.write("a", "one\n");
        bed.write("b/c", "two\n");
        let first = bed.session("s");
        let killed = is_killed(Plan::Die(n), || _ = first.open(&never).unwrap());
        first.abandon();
        let next = bed.opened("s");
        call(&next, "c", || fs::remove_dir_all(bed.path("b")).unwrap());
        undo(&next, "r", &["c"]);
        assert_eq!((bed.read("a"), bed.read("b/c")), ("one\n".into(), "two\n".into()), "step {n}");
        if !killed {
            return assert!(n > 8, "{n} steps");
        }
    }
}

#[test]
fn a_full_disk_changes_nothing() {
    for (times, git) in [(1, false), (usize::MAX, false), (1, true), (usize::MAX, true)] {
        if git && !has_git() {
            continue;
        }
        for n in (1..).step_by(if git { stride() } else { 1 }) {
            let (bed, checkpoints, before) = start(git);
            call(&checkpoints, "c", || change(&bed, git));
            let after = tree(bed.root.as_path());
            set(Plan::Full(n, times));
            let res = checkpoints.restore(&order("r", &["c"], OnConflict::Fail), &Buffers::default());
            set(Plan::None);
            if times == 1 && res.is_err() {
                let found = tree(bed.root.as_path());
                // After the last step it is only to be written down.
                assert!(found == after || found == before, "step {n}: {:?} {found:#?}", res.err());
            }
            drop(checkpoints);
            let next = bed.opened("s");
            let found = tree(bed.root.as_path());
            assert!(found == after || found == before, "step {n} of {times}: {res:?} {found:#?}");
            drop(next);
            if res.is_ok() {
                assert_eq!(found, before);
                break;
            }
        }
    }
}

#[test]
fn a_full_disk_is_no_checkpoint() {
    for n in 1.. {
        let (bed, checkpoints, _) = start(false);
        bed.write("by the user", "mine\n");
        set(Plan::Full(n, 1));
        let res = checkpoints.before(&id("c"), &Scope::Roots, &never);
        set(Plan::None);
        if res.is_ok() {
            return assert!(n > 3, "{n} steps");
        }
        call(&checkpoints, "d", || change(&bed, false));
        undo(&checkpoints, "r", &["d"]);
        assert_eq!((bed.read("by the user"), bed.read("a")), ("mine\n".into(), "one\n".into()));
    }
}
