//! Links that somebody puts in the way of confined commands.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::json;

use crate::{client::Namespaces, confined::Bed};

#[test]
fn a_root_that_became_a_link_is_not_written_to() {
    for namespaces in Namespaces::all() {
        let lead = "mv p p2 && mkdir p && ln -s ../../victim p/a; echo '<<'$(ls p)'>>'";
        let mut bed = Bed::with(namespaces, &[lead, "touch p/a/escaped; echo '<<ran>>'"]);
        bed.sandbox.write("ws/p/a/there", "");
        bed.sandbox.write("victim/there", "");
        let (ws, root) = (bed.path(""), bed.path("p/a"));
        let new = json!({"cwd": ws, "mcpServers": [], "additionalDirectories": [root]});
        let session = bed.client.result("session/new", new).unwrap();
        bed.session = session["sessionId"].as_str().unwrap().to_owned();
        let told = bed.run();
        assert!(told.contains("<<a>>") && !bed.path("p2").exists(), "{told}");
        // Somebody outside can.
        fs::rename(&root, bed.path("p/b")).unwrap();
        std::os::unix::fs::symlink(ws.join("../victim"), &root).unwrap();
        let told = bed.run();
        assert!(told.contains("is not the folder that it was"), "{told}");
        assert!(!ws.join("../victim/escaped").exists());
    }
}

/// A `worktrees` folder that is a symlink, for example.
#[test]
fn placeholders_are_not_made_where_a_link_leads() {
    let mut bed = Bed::new(&["bash link.sh", "bash link.sh"]);
    bed.sandbox.write("ws/link.sh", "ln -s ../../victim .git/worktrees; echo '<<ran>>'");
    bed.sandbox.write("victim/tree/there", "");
    bed.run();
    assert!(bed.path(".git/worktrees").is_symlink(), "the test has no link");
    let told = bed.run();
    assert!(told.contains("<<ran>>"), "{told}");
    let names: Vec<_> = fs::read_dir(bed.path("../victim/tree")).unwrap().map(|it| it.unwrap().file_name()).collect();
    assert_eq!(names, ["there"]);
}
