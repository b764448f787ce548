//! Power cuts: what castor's own folder and the root hold of what was said to be done.

use std::fs;

use super::{Bed, bed, call, id, never, order, undo};
use crate::{
    checkpoints::{Buffers, Checkpoints},
    disk::{fault::disk::PowerCut, lasting},
};
use castor_base::checkpoint::{OnConflict, Scope};

fn start() -> (Bed, Checkpoints, PowerCut) {
    let bed = bed();
    let cut = PowerCut::watch(&[bed.dir.path()]);
    for n in 0..40 {
        bed.write(&format!("src/{n}"), format!("{n}\n"));
    }
    bed.write("large", vec![b'x'; 3 << 20]);
    bed.write("a", "one\n");
    let checkpoints = bed.opened("s");
    (bed, checkpoints, cut)
}

/// castor's folder is what the disk has of it; the root stays as it is, but for what castor itself did there.
fn cut_power(bed: &Bed, cut: &PowerCut, with_root: bool) -> Checkpoints {
    let (home, left) = (bed.home.as_path(), bed.dir.path().join("left"));
    cut.rebuild(home, &left);
    fs::remove_dir_all(home).unwrap();
    fs::rename(&left, home).unwrap();
    if with_root {
        cut.rebuild(bed.root.as_path(), &left);
        fs::remove_dir_all(&bed.root).unwrap();
        fs::rename(&left, &bed.root).unwrap();
    }
    bed.opened("s")
}

fn all(bed: &Bed) -> Vec<String> {
    let names = (0..40).map(|n| format!("src/{n}")).chain(["a".to_owned()]);
    names.map(|it| bed.read(&it)).chain([bed.read("large").len().to_string()]).collect()
}

#[test]
fn a_call_in_the_midst_of_which_the_power_fails_is_undone() {
    let (bed, checkpoints, cut) = start();
    let before = all(&bed);
    bed.write("a", "two, by the user\n");
    checkpoints.before(&id("c"), &Scope::Roots, &never).unwrap();
    let expected = all(&bed);
    assert_ne!(before, expected);
    bed.sh("rm -r src large; echo three > a");
    checkpoints.abandon();
    let again = cut_power(&bed, &cut, false);
    // Castor was stopped in the midst of the call: whose change it is is asked.
    let done = again.restore(&order("r", &["c"], OnConflict::Restore), &Buffers::default()).unwrap();
    assert_eq!(done.restored.not_kept, Vec::<std::path::PathBuf>::new());
    assert_eq!(all(&bed), expected);
}

#[test]
fn what_a_call_changed_is_known_after_a_power_cut() {
    let (bed, checkpoints, cut) = start();
    let expected = all(&bed);
    call(&checkpoints, "c", || bed.sh("rm -r src large; echo three > a"));
    checkpoints.abandon();
    let again = cut_power(&bed, &cut, false);
    assert_eq!(undo(&again, "r", &["c"]).restored.conflicts, []);
    assert_eq!(all(&bed), expected);
    // And forth: what the call left is held, too.
    assert_eq!(undo(&again, "q", &["r"]).restored.conflicts, []);
    assert_eq!(bed.read("a"), "three\n");
}

#[test]
fn a_restore_that_was_told_outlasts_a_power_cut() {
    let (bed, checkpoints, cut) = start();
    let expected = all(&bed);
    call(&checkpoints, "c", || bed.sh("rm -r src large; echo three > a; mkdir new; echo x > new/x"));
    lasting::sync_disk(fs::File::open(&bed.root).unwrap()).unwrap();
    undo(&checkpoints, "r", &["c"]);
    checkpoints.abandon();
    let again = cut_power(&bed, &cut, true);
    assert_eq!(all(&bed), expected);
    assert!(!bed.path("new").exists());
    assert_eq!(undo(&again, "q", &["r"]).restored.conflicts, []);
    assert_eq!(bed.read("new/x"), "x\n");
}

/// The disk of these tests forgets: without it none of them could fail.
#[test]
fn what_was_not_synced_is_gone() {
    let bed = bed();
    let cut = PowerCut::watch(&[bed.dir.path()]);
    bed.write("a", "one\n");
    let left = bed.dir.path().join("left");
    cut.rebuild(bed.root.as_path(), &left);
    assert!(!left.join("a").exists());
    lasting::sync_dir(fs::File::open(&bed.root).unwrap()).unwrap();
    cut.rebuild(bed.root.as_path(), &left);
    assert_ne!(fs::read(left.join("a")).unwrap(), b"one\n");
    lasting::sync_file(&fs::File::open(bed.path("a")).unwrap()).unwrap();
    cut.rebuild(bed.root.as_path(), &left);
    assert_eq!(fs::read(left.join("a")).unwrap(), b"one\n");
}
