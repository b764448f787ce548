//! Tests of `apply_patch`: a table of patches on files, and what happens where something is in the way.
#![allow(clippy::disallowed_methods)]

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use super::ApplyPatch;
use crate::builtin::{Builtin, testing::ToolFixture};
use castor_base::{
    path::AbsPath,
    tool::{Display, ToolOutput},
};

fn args(body: &str) -> Value {
    json!({ "input": format!("*** Begin Patch\n{body}\n*** End Patch\n") })
}

/// Names below a folder with the texts of files, such as `a=x b/c=y`.
fn listing(ground: &ToolFixture) -> String {
    fn walk(dir: &AbsPath, top: &AbsPath, out: &mut Vec<String>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = dir.join(entry.unwrap().file_name());
            if path.as_path().is_dir() {
                walk(&path, top, out);
            } else {
                out.push(format!("{}={}", path.relative_to(top), String::from_utf8_lossy(&fs::read(&path).unwrap())));
            }
        }
    }
    let mut res = Vec::new();
    walk(&ground.cwd, &ground.cwd, &mut res);
    res.sort();
    res.join("|")
}

/// `files` and `expected` are `name=text|name=text`. An expectation with a `!` is part of an error: then nothing changed.
fn check(files: &str, body: &str, expected: &str) {
    let ground = ToolFixture::new(&[]);
    for (name, text) in files.split('|').filter_map(|it| it.split_once('=')) {
        ground.write(name, text.as_bytes());
    }
    let before = listing(&ground);
    let output = ground.run(&ApplyPatch, &args(body));
    match expected.strip_prefix('!') {
        None => {
            assert_eq!(output.error, None, "{files:?} {body:?}");
            assert_eq!(listing(&ground), expected, "{body:?}");
        }
        Some(why) => {
            let error = output.error.expect(body);
            let said = format!("{}: {}", error.kind, error.message).replace(&ground.cwd.to_string(), "$W");
            assert!(said.contains(why), "{said}\nis not {why}");
            assert_eq!(listing(&ground), before, "{body:?}");
        }
    }
}

#[test]
fn kinds_of_changes() {
    // Add, several operations, several hunks, a move into a new folder.
    check("", "*** Add File: new.md\n+one\n+two", "new.md=one\ntwo\n");
    check(
        "edit.txt=1\n2\n|old.txt=x\n",
        "*** Add File: deep/er/new.txt\n+made\n*** Delete File: old.txt\n*** Update File: edit.txt\n@@\n-2\n+zwei",
        "deep/er/new.txt=made\n|edit.txt=1\nzwei\n",
    );
    check("m=1\n2\n3\n4\n", "*** Update File: m\n@@\n-2\n+II\n@@\n-4\n+IV", "m=1\nII\n3\nIV\n");
    check(
        "old/a=text\n|old/b=stays\n",
        "*** Update File: old/a\n*** Move to: new/dir/a\n@@\n-text\n+moved",
        "new/dir/a=moved\n|old/b=stays\n",
    );
    check("a=x\n", "*** Update File: a\n*** Move to: b/c", "b/c=x\n");
    // What is refused as a whole.
    check("a=x\n", "", "!invalid_tool_params: Line 2 of the patch: it names no file");
    check("a=1\n2\n", "*** Update File: a\n@@\n-3\n+4", "!its lines are not in the file");
    check("a=x\n", "*** Delete File: b", "!file_not_found: File not found: $W/b.");
    check("a=x\n", "*** Update File: a", "!the update of a has no hunks");
    check("a=x\n", "*** Update File: b\n@@\n-x\n+y", "!file_not_found");
    check("d/a=x\n", "*** Delete File: d", "!target_is_directory");
    check("a=x\n", "*** Shuffle File: a", "!got '*** Shuffle File: a'");
    // Over what is there.
    check("n/a=old\n|o/a=from\n", "*** Update File: o/a\n*** Move to: n/a\n@@\n-from\n+to", "n/a=to\n");
    check("a=old\n", "*** Add File: a\n+new", "a=new\n");
    // A later part that fails undoes the first ones.
    check("a=x\n", "*** Add File: b\n+made\n*** Update File: c\n@@\n-o\n+n", "!No file of the patch was changed.");
    check("a=x\n|b=y\n", "*** Delete File: a\n*** Update File: b\n@@\n-z\n+y", "!does not fit b");
    // Ends of files, additions alone, lines that only go, blanks around markers, characters beyond ASCII.
    check("a=no end", "*** Update File: a\n@@\n-no end\n+one\n+two", "a=one\ntwo\n");
    check("a=1\n2\n", "*** Update File: a\n@@\n+3\n+4", "a=1\n2\n3\n4\n");
    check("a=1\n2\n3\n", "*** Update File: a\n@@\n 1\n-2\n 3", "a=1\n3\n");
    check("a=old\n", "  *** Update File: a  \n@@\n-old\n+new", "a=new\n");
    check("a=l1\nnaïve café\n", "*** Update File: a\n@@\n l1\n-naïve café\n+naïve café ✅", "a=l1\nnaïve café ✅\n");
    check("a=x\n|b=y\n", "*** Delete File: a", "b=y\n");
    check("a=1\n2\n", "*** Update File: a\n@@\n 1\n-2\n+two\n*** End of File", "a=1\ntwo\n");
}

/// One file in several parts of a patch: each sees what the one before it left.
#[test]
fn a_file_may_come_again() {
    check("a=1\n2\n", "*** Update File: a\n@@\n-2\n+II\n*** Update File: ./a\n@@\n-1\n+I", "a=I\nII\n");
    check("", "*** Add File: a\n+1\n*** Update File: a\n@@\n-1\n+2", "a=2\n");
    check("a=1\n", "*** Delete File: a\n*** Add File: a\n+2", "a=2\n");
    check("a=1\n", "*** Update File: a\n*** Move to: b\n*** Update File: b\n@@\n-1\n+2", "b=2\n");
    check("a=1\n", "*** Update File: a\n*** Move to: a\n@@\n-1\n+2", "a=2\n");
    check("a=1\n", "*** Delete File: a\n*** Update File: a\n@@\n-1\n+2", "!file_not_found");
    check("a=1\n|b=2\n", "*** Update File: a\n*** Move to: c\n*** Update File: b\n*** Move to: a", "a=2\n|c=1\n");
    check("a=1\n", "*** Add File: b\n+x\n*** Delete File: b", "!edit_no_change");
    check("a=1\n", "*** Update File: a\n@@\n 1", "!edit_no_change: The patch would change nothing.");
}

#[test]
fn line_ends_and_encodings_stay() {
    check("a=1\r\n2\r\n", "*** Update File: a\n@@\n 1\n-2\n+3\n+4", "a=1\r\n3\r\n4\r\n");
    check("a=1\r\n2\n3\r\n", "*** Update File: a\n@@\n 2\n-3\n+4", "a=1\r\n2\n4\r\n");
    check("a=1\n2", "*** Update File: a\n@@\n-1\n+one", "a=one\n2");
    check("a=1\n2", "*** Update File: a\n@@\n 2\n+3", "a=1\n2\n3\n");
    check("a=1\r\n", "*** Add File: a\n+2", "a=2\r\n");
    let ground = ToolFixture::new(&[]);
    ground.write("latin", b"caf\xe9\nx\n");
    ground.write("bom", b"\xef\xbb\xbfa\n");
    ground.write("binary", b"\x7fELF\0\0");
    let body = "*** Update File: latin\n@@\n-x\n+y\n*** Update File: bom\n@@\n-a\n+b\n*** Update File: binary\n*** Move to: moved";
    assert_eq!(ground.run(&ApplyPatch, &args(body)).error, None);
    assert_eq!(ground.read("latin"), b"caf\xe9\ny\n");
    assert_eq!(ground.read("bom"), b"\xef\xbb\xbfb\n");
    assert_eq!(ground.read("moved"), b"\x7fELF\0\0");
    let body = "*** Update File: latin\n@@\n-y\n+\u{4e2d}";
    assert_eq!(ground.run(&ApplyPatch, &args(body)).error.unwrap().kind, "edit_preparation_failure");
}

/// Hunks on one file; in the error `A`: the advice for the model.
#[test]
fn places_of_hunks() {
    let fits = |file: &str, hunks: &str, expected: &str| {
        check(&format!("f={file}"), &format!("*** Update File: f\n{hunks}"), expected)
    };
    let twice = "class A:\n  def f():\n    1\n  def g():\n    1\nclass B:\n  def f():\n    1\n  def g():\n    1\n";
    let changed = |nth: usize| {
        let mut lines: Vec<&str> = twice.lines().collect();
        lines[nth - 1] = "    2";
        format!("f={}\n", lines.join("\n"))
    };
    // Anchors narrow down, one after the other; else the first place counts.
    fits(twice, "@@\n-    1\n+    2", &changed(3));
    fits(twice, "@@ class B:\n-    1\n+    2", &changed(8));
    fits(twice, "@@ class B:\n@@   def g():\n-    1\n+    2", &changed(10));
    fits(twice, "@@ class B\n@@ def g():\n-    1\n+    2", &changed(10));
    fits(twice, "@@   def g():\n-    1\n+    2", &changed(5));
    fits(twice, "@@\n-    1\n+    2\n*** End of File", &changed(10));
    fits("a\nb\nc\n", "@@ a\n-b\n+B\n@@ a\n-c\n+C", "f=a\nB\nC\n");
    fits("a\nb\n", "@@ a\n+x", "f=a\nx\nb\n");
    fits("a\nb\n\n", "@@\n+x", "f=a\nb\nx\n\n");
    fits("a\n", "@@ z\n-a\n+b", "!the line 'z' behind @@ is not in the file");
    fits("a\nb\n", "@@\n-b\n+B\n@@\n-a\n+A", "!its lines stand at line 1, before those of the hunk above it");
    fits("a\nb\n", "@@\n-a\n+A\n*** End of File", "!its lines are not the last ones of the file");
    // An empty line that lost its blank, and one at the end that is none of the file.
    fits("a\n\nb\n", "@@\n a\n\n-b\n+c", "f=a\n\nc\n");
    fits("a\nb\n", "@@\n a\n-b\n+c\n\n", "f=a\nc\n");
    // Trailing blanks: the file's lines stay as they are.
    fits("a  \nb\t\nc\n", "@@\n a\n-b\n+B\n c ", "f=a  \nB\nc\n");
    // Another indentation, which new lines get.
    fits("\tif a:\n\t\tb\n", "@@\n     if a:\n-        b\n+        c\n+            d", "f=\tif a:\n\t\tc\n\t\t\td\n");
    fits("    if a:\n        b\n", "@@\n if a:\n-    b\n+    c\n+d", "f=    if a:\n        c\n    d\n");
    fits("  a\n    b\n", "@@\n   a\n-  b\n+  c", "!contradict each other");
    fits("  a\nb\n  a\n", "@@\n-a\n+c", "!with other white space its lines stand at several places: lines 1, 3");
    // Typographic signs: what stays is the file's.
    fits("say “hi” – so\nb\n", "@@\n say \"hi\" - so\n-b\n+c", "f=say “hi” – so\nc\n");
    fits("a\u{a0}b\n", "@@\n-a b\n+c", "f=c\n");
    fits("a\nx b\n", "@@\n a\n-x c\n+x d", "!its lines are not in the file");
}

#[test]
fn says_what_it_did() {
    let ground = ToolFixture::new(&[("a", "  x\n"), ("b", "1\n"), ("c", "1\n1\n")]);
    let body =
        "*** Update File: a\n@@\n-x\n+y\n*** Delete File: b\n*** Add File: d/e\n+z\n*** Update File: c\n@@\n-1\n+2";
    assert_eq!(
        ground.result_text(&ApplyPatch, &args(body)),
        "Success. Updated the following files:\nM a\nD b\nA d/e\nM c\nIn a the file has another indentation, which the \
         new lines got, from line 1 on.\nIn c its lines stand at lines 1, 2; the first was changed."
    );
    assert_eq!(ground.read("a"), b"  y\n");
    assert_eq!(ground.title(&ApplyPatch, &args(body)), "Patch a, b (deleted), d/e (new), c");
    let body = "*** Update File: a\n@@\n   y\n-k\n-q\n+z";
    let said = ground.result_text(&ApplyPatch, &args(body));
    assert!(said.contains("The nearest lines are:\n1:   y\nCopy ' ' and '-' lines from the file."), "{said}");
}

#[test]
fn every_name_is_a_target() {
    let ground = ToolFixture::new(&[("a", "x\n"), ("d/b", "x\n")]);
    ground.link("d", "link");
    let ctx = ground.ctx();
    let body = "*** Add File: /tmp/new\n+x\n*** Update File: a\n*** Move to: ../out\n*** Delete File: link/b\n*** Update File: .git/config\n@@\n+x";
    let targets = ground.block_on(ApplyPatch.targets(&args(body), &ctx)).unwrap();
    let show = |it: &castor_base::tool::TargetPath| {
        format!("{} {} {}", it.path, it.real, it.in_roots).replace(&ground.cwd.to_string(), "$W")
    };
    let all: Vec<String> = targets.paths.iter().map(show).collect();
    let out = ground.cwd.join("../out").to_string();
    assert_eq!(
        all,
        [
            "/tmp/new /tmp/new false".to_owned(),
            "$W/a $W/a true".to_owned(),
            format!("{out} {out} false"),
            "$W/link/b $W/d/b true".to_owned(),
            "$W/.git/config $W/.git/config true".to_owned(),
        ]
    );
    let parts: Vec<String> =
        targets.parts.iter().map(|it| format!("{} {}", it.tool, it.targets.paths[0].path)).collect();
    assert_eq!(parts.len(), 5);
    assert!(parts[0].starts_with("write_file /tmp/new") && parts[4].starts_with("replace "), "{parts:?}");
}

#[test]
fn a_link_is_not_removed() {
    let ground = ToolFixture::new(&[("a", "x\n")]);
    ground.link("a", "link");
    for body in ["*** Delete File: link", "*** Update File: link\n*** Move to: b"] {
        assert!(ground.result_text(&ApplyPatch, &args(body)).contains("it is a link"));
    }
    assert_eq!(ground.run(&ApplyPatch, &args("*** Update File: link\n@@\n-x\n+y")).error, None);
    assert_eq!(ground.read("a"), b"y\n");
}

#[test]
fn other_names_keep_their_text() {
    let ground = ToolFixture::new(&[("a", "1\n")]);
    fs::hard_link(ground.cwd.join("a"), ground.cwd.join("b")).unwrap();
    let said = ground.result_text(&ApplyPatch, &args("*** Update File: a\n@@\n-1\n+2"));
    assert!(said.contains("a: It was a hard link: the file's other names keep the old text."), "{said}");
    assert_eq!([ground.read("a"), ground.read("b")], [b"2\n", b"1\n"]);
}

/// The base covers all files of the patch, also those that are not there.
#[test]
fn writes_only_what_was_shown() {
    let body = "*** Update File: a\n@@\n-1\n+2\n*** Add File: b\n+x\n*** Delete File: c";
    let others: [(&str, Option<&[u8]>); 4] =
        [("a", Some(b"0\n1\n")), ("b", Some(b"theirs")), ("c", Some(b"more")), ("c", None)];
    for (name, theirs) in others {
        let ground = ToolFixture::new(&[("a", "1\n"), ("c", "x\n")]);
        let ctx = ground.ctx();
        let preview = ground.block_on(ApplyPatch.preview(&args(body), &ctx)).unwrap();
        let Some(Display::Diffs { files }) = &preview.display else { panic!() };
        let shown: Vec<_> = files.iter().map(|it| (it.before.as_deref(), it.after.as_deref())).collect();
        assert_eq!(shown, [(Some("1\n"), Some("2\n")), (None, Some("x\n")), (Some("x\n"), None)]);
        match theirs {
            Some(it) => ground.write(name, it),
            None => fs::remove_file(ground.cwd.join(name)).unwrap(),
        }
        let before = listing(&ground);
        let refused = ground.block_on(ApplyPatch.run(&args(body), preview.base.as_ref(), &ctx)).unwrap_err();
        assert_eq!(refused.kind, "file_changed");
        assert_eq!(listing(&ground), before);
    }
}

/// A folder that cannot be written, and a file that nobody may change: root may do both.
#[test]
fn nothing_half_done() {
    let ground = ToolFixture::new(&[("a", "1\n"), ("locked/b", "1\n"), ("c", "1\n")]);
    let locked = ground.cwd.join("locked");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
    if fs::write(locked.join("probe"), "").is_ok() {
        return;
    }
    let before = listing(&ground);
    for part in ["*** Update File: locked/b\n@@\n-1\n+2", "*** Delete File: locked/b", "*** Add File: locked/n\n+x"] {
        let body = format!("*** Update File: a\n@@\n-1\n+2\n*** Add File: made/new\n+x\n*** Delete File: c\n{part}");
        let output = ground.run(&ApplyPatch, &args(&body));
        assert_eq!(output.error.unwrap().kind, "permission_denied", "{part}");
        assert_eq!(listing(&ground), before, "{part}");
        assert!(!ground.cwd.join("made").as_path().exists());
    }
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn keeps_rights_and_knows_the_files() {
    let ground = ToolFixture::new(&[("run.sh", "1\n"), ("b", "1\n")]);
    fs::set_permissions(ground.cwd.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let body = "*** Update File: run.sh\n*** Move to: bin/run\n@@\n-1\n+2\n*** Update File: b\n@@\n-1\n+2\n*** Add File: c\n+x";
    let output: ToolOutput = ground.run(&ApplyPatch, &args(body));
    assert_eq!(output.error, None);
    assert_eq!(fs::metadata(ground.cwd.join("bin/run")).unwrap().permissions().mode() & 0o777, 0o755);
    let known = output.file_knowledge.unwrap();
    assert_eq!((known.path.clone(), known.before.is_some()), (ground.cwd.join("b"), true));
    assert_eq!(known.others.iter().map(|it| &it.path).collect::<Vec<_>>(), [&ground.cwd.join("c")]);
}

#[test]
fn refuses_what_would_lose_text() {
    check("a=1\n", "*** Add File: b\n+// rest of code ...", "!omission placeholder");
    check("a=1\n2\n", "*** Update File: a\n@@\n-1\n+// unchanged code ...", "!omission placeholder");
    check("a=K=x\n", "*** Update File: a\n@@\n-K=x\n+K=[secret from .env]", "!secret_mark");
    let ground = ToolFixture::new(&[("a", "1\n")]);
    ground.cancel.cancel();
    let output = ground.run(&ApplyPatch, &args("*** Delete File: a"));
    assert_eq!(output.error.unwrap().kind, "cancelled");
    assert_eq!(ground.read("a"), b"1\n");
}

/// 50,000 lines, and hunks that fit late, loosely or not at all.
#[test]
fn large_files_take_no_time() {
    let text: String = (0..50_000).map(|it| format!("  line {it}\n")).collect();
    let ground = ToolFixture::new(&[("a", &text)]);
    let hunk = |it: usize| format!("@@\n line {it}\n-line {}\n+new {it}", it + 1);
    let body: Vec<String> = (0..100).map(|it| hunk(it * 400)).collect();
    let started = std::time::Instant::now();
    let output = ground.run(&ApplyPatch, &args(&format!("*** Update File: a\n{}", body.join("\n"))));
    assert_eq!(output.error, None);
    let missing = format!("*** Update File: a\n@@\n{}", " no\n".repeat(500));
    assert!(ground.run(&ApplyPatch, &args(&missing)).error.is_some());
    println!("{} ms", started.elapsed().as_millis());
}
