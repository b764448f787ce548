//! What the user's own rights refuse is no matter of the sandbox.
#![cfg(target_os = "linux")]

use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::Command,
};

use serde_json::json;

use crate::{
    client::{Namespaces, Sandbox},
    confined::{Bed, work_in_auto},
    incidents::prompt,
};

/// Any that is not the system's.
const USER: &str = "23456";

/// A session of a user who may not do all, also where the tests may.
fn bed(namespaces: Namespaces, commands: &[&str]) -> Bed {
    Bed::prepared(commands, |it| {
        it.namespaces = namespaces;
        work_in_auto(it);
        let settings = r#"{"security": {"sandbox": {"writable": ["~/shut"]}}}"#;
        it.write("home/.castor/settings.json", settings);
        fs::create_dir(it.home().join("shut")).unwrap();
        set_mode(&it.home().join("shut"), 0o000);
        if nix::unistd::geteuid().is_root() {
            be_nobody(it);
        }
    })
}

fn be_nobody(it: &mut Sandbox) {
    let dir = it.home().join("..").canonicalize().unwrap();
    // Where the tests are built others may not come. By another process: a child that another test starts meanwhile would
    // have the file open for writing, and nobody can run it then.
    let program = dir.join("castor");
    assert!(Command::new("cp").arg(&it.program).arg(&program).status().unwrap().success());
    let given = Command::new("chown").args(["-R", USER]).arg(&dir).status().unwrap();
    assert!(given.success());
    it.program = "setpriv".into();
    let before = ["--reuid", USER, "--regid", USER, "--clear-groups"].map(Into::into);
    it.args = [&before[..], &[program.into()], &it.args].concat();
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn missing_user_permission_is_no_sandbox_denial() {
    let own = [
        "ls -R ~",
        "ls /root",
        "cat /root/x",
        "find / -maxdepth 1 -name root -exec ls {} +",
        "touch /etc/castor-never",
    ];
    let commands = [&own[..], &["touch ~/mine", "echo '<<ran>>' > out/there; cat out/there"]].concat();
    for namespaces in Namespaces::all() {
        let mut bed = bed(namespaces, &commands);
        let mut run = || prompt(&mut bed.client, &bed.session, "go", "allow_once");
        for it in own {
            let (asked, told) = run();
            assert!(asked.is_empty() && !told.contains("kept this command"), "{namespaces:?} {it}: {told}");
            assert!(told.contains("Permission denied") || told.contains("Read-only"), "{namespaces:?} {it}: {told}");
            assert_eq!(told.contains("~/shut cannot be opened, so"), it == own[0], "{told}");
        }
        assert_eq!(run().0, ["touch ~/mine"], "{namespaces:?}");
        let (asked, told) = run();
        assert!(asked.is_empty() && told.contains("<<ran>>"), "{namespaces:?} {told}");
    }
}

/// Root castor sees into it, and nobody in a sandbox does.
#[test]
fn root_only_folders_stop_no_command() {
    if !nix::unistd::geteuid().is_root() {
        return;
    }
    for namespaces in Namespaces::all() {
        let mut bed = Bed::prepared(&["touch out/x && echo '<<ran>>'"], |it| {
            it.namespaces = namespaces;
            for name in ["ws/theirs/a/.git/HEAD", "theirs/in/x"] {
                it.write(name, "");
            }
            let settings = json!({"security": {"sandbox": {"writable": [it.home().join("../theirs/in")]}}});
            it.write("home/.castor/settings.json", &settings.to_string());
            for folder in [it.workspace().join("theirs"), it.home().join("../theirs")] {
                chown(&folder, Some(23456), Some(23456)).unwrap();
                set_mode(&folder, 0o700);
            }
        });
        let told = bed.run();
        assert!(told.contains("<<ran>>") && told.contains("theirs/in cannot be opened"), "{namespaces:?} {told}");
    }
}

/// Its owner could open it, and then write what git obeys.
#[test]
fn unreadable_repository_is_guarded_as_a_whole() {
    for namespaces in Namespaces::all().filter(|it| *it != Namespaces::Nobody) {
        let mut bed = bed(namespaces, &["bash open.sh"]);
        bed.sandbox.write("ws/open.sh", "chmod 700 .git && echo '<<opened>>' || echo '<<ran>>'");
        set_mode(&bed.path(".git"), 0o000);
        let told = bed.run();
        set_mode(&bed.path(".git"), 0o700);
        assert!(told.contains("<<ran>>") && !told.contains("<<opened>>"), "{namespaces:?} {told}");
    }
}
