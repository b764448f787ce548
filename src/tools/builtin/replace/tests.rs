//! The edit corpus: a file, an edit, and the resulting file or error.

use serde_json::{Value, json};

use super::Replace;
use crate::builtin::{Builtin, testing::ToolFixture};
use castor_base::{
    content::joined_text,
    tool::{Display, ToolOutput},
};

#[track_caller]
fn check_with(before: &str, old: &str, new: &str, all: bool, expected: Result<&str, &str>) {
    let ground = ToolFixture::new(&[("f", before)]);
    let args = json!({"file_path": "f", "old_string": old, "new_string": new, "allow_multiple": all});
    let said = ground.result_text(&Replace, &args);
    let after = String::from_utf8(ground.read("f")).unwrap();
    match expected {
        Ok(expected) => assert_eq!(after, expected, "{said}"),
        Err(expected) => {
            assert_eq!(after, before);
            assert!(said.starts_with(expected), "{said}\nis not\n{expected}");
        }
    }
}

#[track_caller]
fn check(before: &str, old: &str, new: &str, after: &str) {
    check_with(before, old, new, false, Ok(after));
}

#[track_caller]
fn check_error(before: &str, old: &str, new: &str, error: &str) {
    check_with(before, old, new, false, Err(error));
}

#[test]
fn exact() {
    check("a b c\n", "b", "x", "a x c\n");
    check("cost: 5\n", "5", "$1 $& $$ \\0", "cost: $1 $& $$ \\0\n");
    check("a\tb\n", "\tb", "\t\tc", "a\t\tc\n");
    check("a\nb\nc\n", "b\n", "", "a\nc\n");
    check("ñandú\n", "ñ", "Ñ", "Ñandú\n");
    check_with("a a a\n", "a", "b", true, Ok("b b b\n"));
    check_with("aaa\n", "aa", "b", true, Ok("ba\n"));
}

#[test]
fn line_ends_round_trip() {
    check("a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n");
    check("a\r\nb\r\n", "a\r\nb", "c\r\nd", "c\r\nd\r\n");
    check("\u{feff}a\r\nb", "b", "c", "\u{feff}a\r\nc");
    // Lines that are not touched keep their own ends.
    check("a\r\nb\nc\r\nd\r\n", "c", "x\ny", "a\r\nb\nx\r\ny\r\nd\r\n");
    check("a\nb\nc\r\n", "b", "x\ny", "a\nx\ny\nc\r\n");
    check("a\rb\n", "b", "c", "a\rc\n");
    check("a\nb\n", "b\n", "c", "a\nc\n");
    check("a\nb", "b", "c\n", "a\nc");
    check("a\nb", "b", "b\n", "a\nb\n");
    check("a\nb\n", "b\n", "b", "a\nb");
    check("a\n", "a\n", "", "");
}

/// What was done beyond the exact is said to the model, and to the person by itself.
#[test]
fn says_what_it_did_beyond_the_exact() {
    let check = |before: &str, old: &str, new: &str, note: Option<&str>| {
        let ground = ToolFixture::new(&[("f", before)]);
        let output = ground.run(&Replace, &json!({"file_path": "f", "old_string": old, "new_string": new}));
        assert_eq!(output.error, None);
        assert_eq!(output.data.get("editNote").and_then(Value::as_str), note);
        let said = joined_text(&output.content);
        assert!(note.is_none_or(|it| said.contains(&format!("(1 replacements). {it} Here is"))), "{said}");
    };
    check("a\n", "a", "b", None);
    let note = "At line 2, old_string was found but for blanks at line ends; new_string stands as written.";
    check("x\na\n", "a  \n", "b\n", Some(note));
    let note = "At line 1, old_string was indented otherwise; new_string got the file's indentation.";
    check("\ta\n\tb\n", "    a\n    b", "    a\n    c", Some(note));
    let note = "At line 1, old_string was spaced otherwise; lines that stay are as the file had them.";
    check("f( a )\n", "f(a)\n", "g(a)\n", Some(note));
    let note = "At line 1, old_string had slips of the pen in lines that went; lines that stay are the file's.";
    check("let message = compute();\n", "let mesage = compute();\n", "go();\n", Some(note));
}

#[test]
fn several_edits_are_made_one_after_the_other_or_none() {
    let ground = ToolFixture::new(&[("f", "a\nb\nb\n")]);
    let said = |edits: Value, more: Value| {
        let mut args = json!({"file_path": "f", "edits": edits});
        args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (ground.title(&Replace, &args), ground.result_text(&Replace, &args))
    };
    let edit = |old: &str, new: &str| json!({"old_string": old, "new_string": new});
    let check_error = |edits: Value, more: Value, expected: &str| {
        let before = ground.read("f");
        let said = said(edits, more).1;
        assert!(said.starts_with(expected), "{said}\nis not\n{expected}");
        assert_eq!(ground.read("f"), before);
    };
    check_error(
        json!([edit("a", "x"), edit("a", "y")]),
        json!({}),
        "edit_no_occurrence_found: Edit 2 of 2, so none was made: Failed to edit, 0 occurrences found",
    );
    let twice = "edit_expected_occurrence_mismatch: Edit 1 of 2, so none was made: Failed to edit, Expected 1";
    check_error(json!([edit("b", "x"), edit("a", "y")]), json!({}), twice);
    check_error(json!([edit("a", "x"), edit("x", "a")]), json!({}), "edit_no_change: No changes to apply.");
    check_error(json!([edit("a", "x"), edit("", "y")]), json!({}), "invalid_tool_params: An empty old_string");
    check_error(json!([edit("a", "x")]), edit("a", "y"), "invalid_tool_params: Give either edits, or old_string");
    check_error(json!([{"old_string": "a"}]), json!({}), "invalid_tool_params: params must have required property");
    check_error(json!(["a"]), json!({}), "invalid_tool_params: params/edits must be array of objects");
    check_error(
        json!([]),
        json!({}),
        "invalid_tool_params: params must have 'old_string' and 'new_string', or 'edits'",
    );
    check_error(json!([]), json!({"old_string": "a"}), "invalid_tool_params: params must have required property");
    // Some models fill in what they do not need.
    let (title, said) = said(json!([edit("a", "x"), edit("x\nb", "c")]), edit("", ""));
    assert_eq!(title, "f: a => x (and 1 more)");
    assert!(said.starts_with("Successfully modified file: $W/f (2 replacements). Here is"), "{said}");
    assert_eq!(ground.read("f"), b"c\nb\n");
}

#[test]
fn refusals() {
    check_error(
        "a\nb a\n",
        "a",
        "x",
        "edit_expected_occurrence_mismatch: Failed to edit, Expected 1 occurrence but found 2 for old_string in file: \
         $W/f, at lines 1, 2. Add context that names one of them, or, to replace them all, set 'allow_multiple' to true.",
    );
    check_error("a\n", "a", "a", "edit_no_change");
    check_error("a\n", "", "b", "attempt_to_create_existing_file");
    check_error("a\n", "a", "b\n// rest of code ...\n", "invalid_tool_params: `new_string` contains an omission");
    check_error("\0\0\0", "a", "b", "edit_preparation_failure");
    let ground = ToolFixture::new(&[]);
    let said = |args: Value| ground.result_text(&Replace, &args);
    assert_eq!(
        said(json!({"file_path": "g", "old_string": "a", "new_string": "b"})),
        "file_not_found: File not found: $W/g. Cannot apply edit. Use an empty old_string to create a new file."
    );
    let create = json!({"file_path": "new/g", "old_string": "", "new_string": "b", "instruction": "why"});
    assert_eq!(ground.title(&Replace, &create), "Create new/g");
    assert_eq!(said(create), "Created new file: $W/new/g with provided content.");
    assert_eq!(ground.read("new/g"), b"b");
    let edit = json!({"file_path": "f", "old_string": "  one\ntwo", "new_string": "x".repeat(31)});
    assert_eq!(ground.title(&Replace, &edit), format!("f: one => {}…", "x".repeat(30)));
}

/// A run and a preview fail with the same: the advice is for the model.
#[test]
fn the_person_reads_one_sentence_with_the_file() {
    let ground = ToolFixture::new(&[("f", "a\nb a\n")]);
    let check = |file: &str, old: &str, new: &str, for_person: &str| {
        let args = json!({"file_path": file, "old_string": old, "new_string": new});
        let previewed = ground.block_on(Replace.preview(&args, &ground.ctx())).unwrap_err();
        let (ran, previewed) = (ground.run(&Replace, &args), ToolOutput::failed(previewed));
        assert_eq!((&ran.error, &ran.content), (&previewed.error, &previewed.content));
        assert_eq!(ran.error.unwrap().message.replace(&ground.cwd.to_string(), "$W"), for_person);
        assert!(!ran.content.is_empty(), "{for_person}");
    };
    check("f", "zzz", "x", "The text to replace is not in $W/f.");
    check("f", "a", "x", "The text to replace is in $W/f 2 times, not once.");
    check("f", "b", "b", "The edit would change nothing in $W/f.");
    check("f", "", "b", "The file exists already: $W/f");
    check("g", "a", "b", "File not found: $W/g.");
}

#[test]
fn shows_the_files_lines_with_a_refusal() {
    check_error(
        "{\n    a\n    b\n    c\n}\n",
        "a\nb\n    c\n",
        "x\n",
        "edit_indentation_mismatch: Failed to edit $W/f: the indentation of old_string differs from the file's in more than \
         one way, from line 4 on otherwise than before. Nothing was changed. Copy the lines from the file, which has:\n\
         2:     a\n3:     b\n4:     c",
    );
    check_error(
        "if a:\n    b\n",
        "    if a:\n        b\n",
        "c\n",
        "edit_indentation_mismatch: Failed to edit $W/f: old_string is indented otherwise than the file, and that does \
         not tell how deep this line of new_string has to go: c\nNothing was changed. Copy the lines from the file, \
         which has:\n1: if a:\n2:     b",
    );
    check_error(
        "-\nlet message = compute();\n",
        "let mesage = compute();\n",
        "let mesage = compute(1);\n",
        "edit_stale_text: Failed to edit $W/f: line 2 is not the line of old_string that new_string would keep: let \
         mesage = compute();\nNothing was changed. Copy the lines from the file, which has:\n\
         2: let message = compute();",
    );
    let missing = "use a;\nfn first() {\n    one();\n    two();\n    three();\n}\n";
    check_error(
        missing,
        "fn first() {\n    one();\n    three();\n}\n",
        "x\n",
        "edit_no_occurrence_found: Failed to edit, 0 occurrences found for old_string in $W/f. Ensure you're not \
         escaping content incorrectly and check whitespace, indentation, and context. Use read_file tool to verify. \
         Line 4 of the file is not in old_string.\nThe nearest lines",
    );
    check_error(
        missing,
        "    one();\n    two();\n    extra();\n    three();\n",
        "x\n",
        "edit_no_occurrence_found: Failed to edit, 0 occurrences found for old_string in $W/f. Ensure you're not \
         escaping content incorrectly and check whitespace, indentation, and context. Use read_file tool to verify. \
         The file has no such line: extra();\nThe nearest lines",
    );
}

#[test]
fn shows_the_nearest_block() {
    let before = "use a;\n\nfn first() {\n    call(one);\n}\n\nfn second(count: usize) {\n    call(two, count);\n}\n";
    check_error(
        before,
        "fn second() -> u8 {\n    call(two, three, four)\n}",
        "x",
        "edit_no_occurrence_found: Failed to edit, 0 occurrences found for old_string in $W/f. Ensure you're not \
         escaping content incorrectly and check whitespace, indentation, and context. Use read_file tool to verify.\n\
         The nearest lines in the file, with their numbers, are:\n\
         5: }\n6: \n7: fn second(count: usize) {\n8:     call(two, count);\n9: }",
    );
    let ground = ToolFixture::new(&[("f", "let done = already(there);\n")]);
    let args = json!({"file_path": "f", "old_string": "zzz qqq", "new_string": "let done = already(there);"});
    assert!(
        ground
            .result_text(&Replace, &args)
            .ends_with("already there, at line 1: the edit may have been applied before.")
    );
}

#[test]
fn unusual_encodings_round_trip() {
    let ground = ToolFixture::new(&[]);
    let run = |bytes: &[u8]| {
        ground.write("f", bytes);
        let said = ground.result_text(&Replace, &json!({"file_path": "f", "old_string": "b", "new_string": "é"}));
        (ground.read("f"), said)
    };
    assert_eq!(run(b"\xff\xfea\0\r\0\n\0b\0").0, b"\xff\xfea\0\r\0\n\0\xe9\0");
    assert_eq!(run(b"caf\xe9 b").0, b"caf\xe9 \xe9");
    let broken = "é日本 b".as_bytes().iter().copied().chain([0xe6]).collect::<Vec<_>>();
    let (after, said) = run(&broken);
    assert_eq!(after, broken);
    assert!(said.starts_with("edit_preparation_failure"), "{said}");
}

#[test]
fn edit_fails_when_the_file_changed_since_the_preview() {
    let ground = ToolFixture::new(&[("f", "a\r\nb\r\n")]);
    let ctx = ground.ctx();
    let args = json!({"file_path": "f", "old_string": "b", "new_string": "c"});
    let preview = ground.block_on(Replace.preview(&args, &ctx)).unwrap();
    let Some(Display::Diff { before, after, .. }) = preview.display else { panic!() };
    assert_eq!((before.as_deref(), &*after), (Some("a\r\nb\r\n"), "a\r\nc\r\n"));
    ground.write("f", b"b!");
    let refused = ground.block_on(Replace.run(&args, preview.base.as_ref(), &ctx)).unwrap_err();
    assert_eq!(refused.kind, "file_changed");
    assert_eq!(ground.read("f"), b"b!");
}
