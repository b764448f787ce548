//! Patches: what is one, what is none, and the calls that they stand for.

use serde_json::json;

use super::{FileCall, FilePatch, LineKind, PatchAction, file_calls, from_operation, parse, text_of};

/// A line for each file; `E` and the error where it is no patch.
fn check(text: &str, expected: &str) {
    let got = match parse(text) {
        Ok(files) => files.iter().map(describe).collect::<Vec<_>>().join(" | "),
        Err(it) => format!("E {it}"),
    };
    assert_eq!(got, expected, "{text:?}");
}

fn describe(it: &FilePatch) -> String {
    let what = match &it.action {
        PatchAction::Add { content } => format!("add {content:?}"),
        PatchAction::Delete => "delete".to_owned(),
        PatchAction::Update { move_to, hunks } => {
            let hunk = |it: &super::Hunk| {
                let sign = |it: &super::HunkLine| match it.kind {
                    LineKind::Keep => format!(" {}", it.text),
                    LineKind::Remove => format!("-{}", it.text),
                    LineKind::Add => format!("+{}", it.text),
                };
                let lines = it.lines.iter().map(sign).collect::<Vec<_>>().join("/");
                let end = if it.at_end { " END" } else { "" };
                format!("{} {:?} {lines}{end}", it.line, it.anchors)
            };
            let hunks = hunks.iter().map(hunk).collect::<Vec<_>>().join("; ");
            format!("update {} {hunks}", move_to.as_deref().unwrap_or_default())
        }
    };
    format!("{} {what}", it.path)
}

#[test]
fn envelopes() {
    let whole = "*** Begin Patch\n*** Delete File: a\n*** End Patch";
    for text in [
        whole.to_owned(),
        format!("\n\n  {whole} \n\n"),
        whole.replace('\n', "\r\n"),
        whole.replace("*** End", " *** End").replace("Begin Patch", "Begin Patch  "),
        whole.replace("*** Delete", "  *** Delete"),
        whole.replace("*** Delete", "\n*** Delete"),
        format!("<<'EOF'\n{whole}\nEOF\n"),
        format!("<<EOF\n{whole}\nEOF"),
        format!("<<\"PATCH\"\n{whole}\nPATCH"),
        format!("apply_patch <<'EOF'\n{whole}\nEOF\n"),
    ] {
        check(&text, "a delete");
    }
    check("", "E Line 1 of the patch: it is empty");
    check("*** Begin Patch", "E Line 1 of the patch: the last line has to be '*** End Patch'");
    check("*** Delete File: a\n*** End Patch", "E Line 1 of the patch: the first line has to be '*** Begin Patch'");
    check("*** Begin Patch\n*** Delete File: a", "E Line 2 of the patch: the last line has to be '*** End Patch'");
    check("<<'EOF'\n*** Begin Patch\n*** End\nEOF", "E Line 3 of the patch: the last line has to be '*** End Patch'");
    let none = "it names no file; write '*** Add File: PATH', '*** Update File: PATH' or '*** Delete File: PATH'";
    check("*** Begin Patch\n*** End Patch", &format!("E Line 2 of the patch: {none}"));
    let odd = "expected '*** Add File: PATH', '*** Update File: PATH' or '*** Delete File: PATH', got '*** Rename: a'";
    check("*** Begin Patch\n*** Rename: a\n*** End Patch", &format!("E Line 2 of the patch: {odd}"));
    check("*** Begin Patch\n*** Delete File: \n*** End Patch", "E Line 2 of the patch: the path is missing");
}

#[test]
fn files_and_hunks() {
    let check = |body: &str, expected: &str| check(&format!("*** Begin Patch\n{body}\n*** End Patch\n"), expected);
    check("*** Add File: a b/c\n+x\n+\n+ y", r#"a b/c add "x\n\n y\n""#);
    check("*** Add File: a", r#"a add """#);
    check("*** Add File: a\n+x\n\n+y\n\n*** Delete File: b", r#"a add "x\n\ny\n" | b delete"#);
    check("*** Update File: a\n*** Move to: b", "a update b ");
    check("*** Update File: a\n-x\n+y", r#"a update  3 [] -x/+y"#);
    check("*** Update File: a\n*** Move to: b\n@@\n x\n-\n", "a update b 4 [] \u{20}x/-/ ");
    check(
        "*** Update File: a\n@@ f\n@@  g \n\n+x\n*** End of File\n@@\n-y",
        r#"a update  3 ["f", " g "]  /+x END; 8 [] -y"#,
    );
    check("*** Update File: a\n@@\n-x\n\n\n*** Update File: b\n@@\n+y", "a update  3 [] -x/ /  | b update  8 [] +y");
    check("*** Update File: a\n@@ -1,2 +1,3 @@ fn f\n-x\n@@ -7 +8 @@\n-y", "a update  3 [] -x; 5 [] -y");
    check("*** Update File: a\n@@\n-*** End Patch\n+@@", "a update  3 [] -*** End Patch/+@@");
    check("*** Update File: a", "E Line 2 of the patch: the update of a has no hunks");
    check("*** Update File: a\n@@", "E Line 3 of the patch: the hunk has no lines");
    check("*** Update File: a\n@@\n*** Delete File: b", "E Line 3 of the patch: the hunk has no lines");
    let sign = "a line of a hunk begins with ' ' (stays), '-' (goes) or '+' (comes), got 'x'";
    check("*** Update File: a\n@@\n-y\nx", &format!("E Line 5 of the patch: {sign}"));
    check("*** Update File: a\n@@\n-y\n*** End of File\n-x", "E Line 6 of the patch: expected '@@', got '-x'");
}

#[test]
fn calls_for_single_files() {
    let text = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n@@\n k\n-o\n+n\n*** Delete File: c\n\
                *** Update File: d\n*** Move to: e\n@@\n-o\n+n\n*** End Patch";
    let calls = file_calls(&json!({ "patch": text }));
    let describe = |it: &FileCall| format!("{} {} {}", it.tool, it.path, it.args);
    assert_eq!(
        calls.iter().map(describe).collect::<Vec<_>>(),
        [
            r#"write_file a {"file_path":"a","content":"x\n","operation":"add"}"#,
            r#"replace b {"file_path":"b","old_string":"k\no\n","new_string":"k\nn\n","operation":"update"}"#,
            r#"write_file c {"file_path":"c","content":"","operation":"delete"}"#,
            r#"write_file d {"file_path":"d","content":"","operation":"delete"}"#,
            r#"write_file e {"file_path":"e","content":"n\n","operation":"move"}"#,
        ]
    );
    for no in [json!({}), json!({ "input": "x" }), json!({ "input": 1 }), json!("*** Begin Patch")] {
        assert_eq!(file_calls(&no), [], "{no}");
    }
}

/// An operation is a patch of one file; what does not fit is none, or an error of its patch.
#[test]
fn operations_of_providers() {
    let check = |operation: serde_json::Value, expected: &str| {
        let text = from_operation(&operation).unwrap_or_default();
        assert_eq!(parse(&text).map_or_else(|it| it.to_string(), |it| describe(&it[0])), expected, "{operation}");
    };
    check(json!({"type": "create_file", "path": "a", "diff": "+x\n+\n"}), r#"a add "x\n\n""#);
    check(json!({"type": "create_file", "path": "a", "diff": ""}), r#"a add """#);
    check(json!({"type": "update_file", "path": "a", "diff": "@@ f\n-x\n+y"}), r#"a update  3 ["f"] -x/+y"#);
    check(json!({"type": "delete_file", "path": "a"}), "a delete");
    check(json!({"type": "update_file", "path": "a", "diff": ""}), "Line 2 of the patch: the update of a has no hunks");
    for no in [json!({}), json!({"type": "copy_file", "path": "a"}), json!({"type": "delete_file"}), json!([])] {
        assert_eq!(from_operation(&no), None, "{no}");
    }
    assert_eq!(text_of(&json!({ "input": "a", "patch": "b" })), Some("a"));
}
