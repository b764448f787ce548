//! Saved permissions on a real disk.

#![allow(clippy::disallowed_methods)]

use super::{add, file, list, revoke};
use castor_base::{
    log::{Mode, PersistentGrant},
    path::AbsPath,
};

fn lasting(prefix: &str) -> PersistentGrant {
    let modes = vec![Mode::Default, Mode::Yolo];
    let (tool, prefixes) = ("run_shell_command".to_owned(), vec![prefix.to_owned()]);
    PersistentGrant { tool, server: None, prefixes, args_pattern: None, modes, digest: None }
}

#[test]
fn saves_lists_and_takes_back() {
    let temp = tempfile::tempdir().unwrap();
    let home = AbsPath::new(temp.path().join("new")).unwrap();
    assert!(list(&home).unwrap().is_empty());
    let (w, x) = (home.join("w"), home.join("x"));
    for (folder, it) in [(&w, "git status"), (&w, "cargo"), (&w, "git status"), (&x, "cargo")] {
        assert_eq!(add(&home, folder, &lasting(it)).unwrap(), None);
    }
    let edit = PersistentGrant {
        tool: "replace".to_owned(),
        server: None,
        prefixes: Vec::new(),
        args_pattern: Some("\\x00\"file_path\":\"a\"\\x00".to_owned()),
        modes: Vec::new(),
        digest: None,
    };
    add(&home, &w, &edit).unwrap();
    let all = [
        format!("commands `git status`, in {w}"),
        format!("commands `cargo`, in {w}"),
        format!("commands `cargo`, in {x}"),
        format!("`replace` of a, in {w}"),
    ];
    assert_eq!(list(&home).unwrap(), all);
    assert_eq!(revoke(&home, Some(9)).unwrap(), 0);
    assert_eq!(revoke(&home, Some(0)).unwrap(), 1);
    assert_eq!(list(&home).unwrap(), all[1..]);
    assert_eq!(revoke(&home, None).unwrap(), 3);
}

#[test]
fn corrupted_file_is_backed_up() {
    let temp = tempfile::tempdir().unwrap();
    let home = AbsPath::new(temp.path()).unwrap();
    std::fs::create_dir(temp.path().join("policies")).unwrap();
    for bad in ["[[rule", "rule = 5", "rule = [1]"] {
        std::fs::write(file(&home), bad).unwrap();
        assert!(list(&home).is_err());
        let warning = add(&home, &home, &lasting("ls")).unwrap().unwrap().to_string();
        assert!(warning.contains("auto-saved.toml.bak"), "{warning}");
        assert_eq!(std::fs::read_to_string(temp.path().join("policies/auto-saved.toml.bak")).unwrap(), bad);
        assert_eq!(list(&home).unwrap().len(), 1);
    }
}

/// Nothing goes that nobody spoke of.
#[test]
fn other_entries_of_the_file_stay() {
    let temp = tempfile::tempdir().unwrap();
    let home = AbsPath::new(temp.path()).unwrap();
    add(&home, &home, &lasting("ls")).unwrap();
    let own = "\n# mine\n[[safety_checker]]\ntoolName = \"*\"\npriority = 1\n[safety_checker.checker]\n";
    let text = std::fs::read_to_string(file(&home)).unwrap() + own;
    std::fs::write(file(&home), &text).unwrap();
    assert_eq!(revoke(&home, Some(5)).unwrap(), 0);
    assert_eq!(std::fs::read_to_string(file(&home)).unwrap(), text);
    assert_eq!(revoke(&home, Some(0)).unwrap(), 1);
    let left = std::fs::read_to_string(file(&home)).unwrap();
    assert!(left.contains("[[safety_checker]]") && !left.contains("toolName = \"run_shell_command\""), "{left}");
    std::fs::write(file(&home), format!("{text}oops\n")).unwrap();
    for which in [Some(0), Some(5), None] {
        assert!(revoke(&home, which).unwrap_err().to_string().contains("auto-saved.toml: "));
        assert_eq!(std::fs::read_to_string(file(&home)).unwrap(), format!("{text}oops\n"));
    }
}

#[test]
fn many_writers_lose_nothing() {
    let temp = tempfile::tempdir().unwrap();
    let home = AbsPath::new(temp.path()).unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let home = &home;
            scope.spawn(move || add(home, home, &lasting(&format!("tool{n}"))).unwrap());
        }
    });
    assert_eq!(list(&home).unwrap().len(), 8);
}
