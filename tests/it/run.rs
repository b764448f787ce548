//! `castor run` from outside: what only the real process shows.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt, process::Command};

#[test]
fn a_folder_that_the_protocol_cannot_name_is_told() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join(OsStr::from_bytes(b"n\xff"));
    fs::create_dir(&folder).unwrap();
    let mut run = Command::new(env!("CARGO_BIN_EXE_castor"));
    let ended = run.args(["run", "--model", "demo", "hi"]).current_dir(&folder).env("HOME", home.path()).output();
    let ended = ended.unwrap();
    assert_eq!(ended.status.code(), Some(42));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains("not UTF-8"), "{said}");
}
