//! Cases one by one.

use super::{bed, call, conflicts, undo};

#[test]
fn a_call_is_taken_back_and_done_again() {
    let bed = bed();
    bed.write("a", "one\n");
    bed.write("d/b", "two\n");
    let checkpoints = bed.opened("s");
    let changes = call(&checkpoints, "c1", || {
        bed.write("a", "ONE\n");
        bed.write("new/c", "three\n");
        std::fs::remove_dir_all(bed.path("d")).unwrap();
    });
    let files: Vec<_> = changes
        .files
        .iter()
        .map(|it| (it.path.strip_prefix(bed.root.as_path()).unwrap().to_str().unwrap(), it.change))
        .collect();
    println!("{files:?} {} {}", changes.added, changes.removed);
    let done = undo(&checkpoints, "r1", &["c1"]);
    assert_eq!(conflicts(&done, &bed.root), Vec::<String>::new());
    assert_eq!((bed.read("a"), bed.read("d/b")), ("one\n".into(), "two\n".into()));
    assert!(!bed.path("new").exists());
    undo(&checkpoints, "r2", &["r1"]);
    assert_eq!((bed.read("a"), bed.read("new/c")), ("ONE\n".into(), "three\n".into()));
    assert!(!bed.path("d").exists());
}
