//! Build folders, and files in them.

use std::fs;

use super::{bed, call, conflicts, has_git, id, never, undo};
use castor_base::checkpoint::Scope;

#[test]
fn build_output_is_not_checkpointed() {
    if !has_git() {
        return;
    }
    let bed = bed();
    bed.write("target/debug/x", "built\n");
    bed.write("dist/kept", "tracked\n");
    bed.write("build/x", "not ignored\n");
    bed.sh(
        "git init -q . && printf 'target\\ndist\\n' > .gitignore && git add -f dist .gitignore && git commit -qm one",
    );
    let checkpoints = bed.opened("s");
    let changes = call(&checkpoints, "c", || {
        // What git ignores now does not count.
        bed.write(".gitignore", "target\ndist\nbuild\n");
        for dir in ["target", "dist", "build"] {
            fs::remove_dir_all(bed.path(dir)).unwrap();
        }
    });
    assert_eq!(changes.not_kept, [bed.path("target")]);
    let done = undo(&checkpoints, "r", &["c"]);
    assert_eq!(done.restored.not_kept, [bed.path("target")]);
    assert_eq!((bed.read("dist/kept"), bed.read("build/x")), ("tracked\n".into(), "not ignored\n".into()));
    assert!(!bed.path("target").exists());
}

/// Though the folder that it lies in is not.
#[test]
fn file_tool_write_in_build_output_is_checkpointed() {
    let bed = bed();
    bed.write(".gitignore", "node_modules\n");
    bed.write("node_modules/x/a", "0\n");
    bed.write("node_modules/x/b", "0\n");
    let checkpoints = bed.opened("s");
    let path = |it: &str| bed.root.join("node_modules/x").join(it);
    let tool = |own: &str, it: &str, text: &str| {
        let held = checkpoints.before(&id(own), &Scope::Files(vec![path(it)]), &never).unwrap();
        assert!(held.not_kept.is_empty());
        fs::write(path(it).as_path(), text).unwrap();
        checkpoints.after(&id(own)).unwrap()
    };
    // What is held from now on is nothing that was made.
    checkpoints.before(&id("bg"), &Scope::Roots, &never).unwrap();
    assert_eq!(tool("c", "a", "1\n").n_files, 1);
    assert_eq!(tool("d", "new", "1\n").n_files, 1);
    checkpoints.after(&id("bg")).unwrap();
    let read = |it: &str| bed.read(&format!("node_modules/x/{it}"));
    let undone = undo(&checkpoints, "r", &["bg", "c", "d"]);
    assert_eq!(
        (conflicts(&undone, &bed.root), read("a"), path("new").as_path().exists()),
        (vec![], "0\n".into(), false)
    );
    undo(&checkpoints, "q", &["r"]);
    assert_eq!((read("a"), read("new")), ("1\n".into(), "1\n".into()));
    // With the folder all but this goes.
    call(&checkpoints, "e", || fs::remove_dir_all(bed.path("node_modules")).unwrap());
    let undone = undo(&checkpoints, "p", &["e"]);
    assert_eq!((conflicts(&undone, &bed.root), &undone.restored.not_kept), (vec![], &vec![bed.path("node_modules")]));
    assert_eq!((read("a"), path("b").as_path().exists()), ("1\n".into(), false));
}

#[test]
fn another_session_decides_anew_what_is_built() {
    let bed = bed();
    bed.write("build/x", "1\n");
    let first = bed.opened("s");
    call(&first, "c", || bed.write("build/x", "2\n"));
    drop(first);
    bed.write(".gitignore", "build\n");
    let second = bed.opened("t");
    let changes = call(&second, "c", || bed.write("build/y", "1\n"));
    assert!(changes.is_empty(), "{changes:?}");
    drop(second);
    fs::remove_file(bed.path(".gitignore")).unwrap();
    let third = bed.opened("u");
    call(&third, "c", || fs::remove_dir_all(bed.path("build")).unwrap());
    undo(&third, "r", &["c"]);
    assert_eq!((bed.read("build/x"), bed.read("build/y")), ("2\n".into(), "1\n".into()));
}
