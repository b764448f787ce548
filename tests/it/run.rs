//! `castor run` from outside: what only the real process shows.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    process::{Command, Stdio},
};

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

/// What a flag names must be there: that is configuration, and has its own exit code.
#[test]
fn a_script_that_is_not_there_is_bad_configuration() {
    let home = tempfile::tempdir().unwrap();
    let mut castor = Command::new(env!("CARGO_BIN_EXE_castor"));
    castor.args(["run", "hi", "--fake-responses", "no-such-file"]).current_dir(home.path());
    let output = castor.env("HOME", home.path()).stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(52), "{error}");
    assert!(error.contains("--fake-responses"), "{error}");
}

/// Nobody can be asked, so it is said what is not used, and how it would be.
#[test]
fn a_folder_that_is_not_trusted_is_told_of() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("ws");
    fs::create_dir_all(folder.join(".castor")).unwrap();
    fs::write(folder.join(".castor/settings.json"), r#"{"model": {"name": "x"}}"#).unwrap();
    let mut castor = Command::new(env!("CARGO_BIN_EXE_castor"));
    castor.args(["run", "--model", "demo", "hi"]).current_dir(&folder).env("HOME", home.path());
    let output = castor.env_remove("CASTOR_TRUST_WORKSPACE").stdin(Stdio::null()).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{error}");
    assert!(error.contains("This folder is not trusted") && error.contains("castor trust"), "{error}");
}
