//! What a command locks in the workspace is neither waited for nor taken for a placeholder; a workspace that nobody writes.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;

use crate::{
    client::{Namespaces, Sandbox},
    confined::Bed,
};

/// A lock can be had on all that can be read.
#[test]
fn locked_files_are_quarantined_without_waiting() {
    let mut bed = Bed::new(&["bash lock.sh", "echo '<<ran>>'"]);
    let lock = "echo evil > .npmrc
for it in '-s .npmrc' '-x .git/config' '-x .git'; do flock $it -c 'touch out/$$; exec sleep 3333' >/dev/null 2>&1 & done
until [ $(ls out | wc -l) = 4 ]; do sleep 0.01; done";
    bed.sandbox.write("ws/lock.sh", lock);
    let told = bed.run();
    assert!(told.contains("put aside"), "{told}");
    assert!(!bed.path(".npmrc").exists() && bed.path(".npmrc.castor-aside").exists());
    let told = bed.run();
    assert!(told.contains("<<ran>>"), "{told}");
    let session = bed.session.clone();
    bed.client.result("session/close", json!({"sessionId": session})).unwrap();
    assert_eq!(fs::read_to_string(bed.path(".git/config")).unwrap(), "[core]");
}

/// Castor starts where that was mounted, as in a container.
fn mounted(sandbox: &mut Sandbox, mount: &str) {
    let first = std::mem::replace(&mut sandbox.program, "unshare".into());
    let script = format!("{mount} && cd . && exec \"$@\"");
    let before = ["-rm", "sh", "-c", &script, "sh"].map(Into::into);
    sandbox.args = [&before[..], &[first], &sandbox.args].concat();
    // The mount needs them itself.
    sandbox.namespaces = Namespaces::Castor;
}

/// Nobody in the sandbox can make it one that is written.
#[test]
fn commands_run_in_a_workspace_that_is_mounted_read_only() {
    let command = "touch a || echo '<<kept>>'; echo x > $TMPDIR/t && cat $TMPDIR/t out/there";
    let mount = "mount --bind . . && mount -o remount,bind,ro .";
    let mut bed = Bed::prepared(&[command], |it| mounted(it, mount));
    let told = bed.run();
    assert!(told.contains("<<kept>>") && told.contains("Read-only") && !told.contains("was not run"), "{told}");
    assert!(!bed.path("a").exists());
}

/// As a volume in a container.
#[test]
fn mount_below_a_workspace_is_read_only() {
    let command = "touch out/a || echo '<<kept>>'; touch b && echo '<<written>>'";
    for namespaces in Namespaces::all().filter(|it| *it != Namespaces::Nobody) {
        let mut bed = Bed::prepared(&[command], |it| match namespaces {
            Namespaces::Bubblewrap => {
                it.namespaces = namespaces;
                let out = it.workspace().join("out").into_os_string();
                let first = std::mem::replace(&mut it.program, "/usr/bin/bwrap".into());
                let before = ["--dev-bind", "/", "/", "--tmpfs"].map(Into::into);
                it.args = [&before[..], &[out, first], &it.args].concat();
            }
            _ => mounted(it, "mount -t tmpfs none out"),
        });
        let told = bed.run();
        assert!(told.contains("<<kept>>") && told.contains("<<written>>"), "{namespaces:?} {told}");
    }
}
