//! The programs in `examples/` that need Python alone, with a scripted model. Without Python 3.10 they are left out.

use std::{
    fs::File,
    path::Path,
    process::{Command, Output},
};

use serde_json::Value;

use crate::{client::Sandbox, conversation::model};

/// A review with one finding, between fences.
const FITS: &str = r#"text "Here it is:\n```json\n{\"findings\": [{\"file\": \"a.py\", \"line\": 2, \"severity\": \"error\", \"text\": \"Divides by zero.\"}]}\n```""#;
/// Another file, a line that no file has, a severity of its own, and a member too many.
const FITS_NOT: &str = r#"text "{\"findings\": [{\"file\": \"b.py\", \"line\": 0, \"severity\": \"bad\", \"text\": \"x\"}], \"more\": 1}""#;
const DIFF: &str = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1,2 @@\n a = 1\n+b = a / 0\n";

/// What an example did.
struct Run {
    code: Option<i32>,
    out: String,
    err: String,
    sandbox: Sandbox,
}

/// Runs an example on a model that gives these answers. `None`: nothing here runs it.
fn run(example: &[&str], answers: &[&str], input: &str) -> Option<Run> {
    let is_new_enough = "import sys; sys.exit(sys.version_info < (3, 10))";
    if !Command::new("python3").args(["-c", is_new_enough]).status().is_ok_and(|it| it.success()) {
        return None;
    }
    let mut sandbox = Sandbox::new();
    let lines: String = answers.iter().map(|it| format!("{}\n", model::response(it).unwrap())).collect();
    let script = sandbox.write("script", &lines);
    let input = File::open(sandbox.write("input", input)).unwrap();
    sandbox.program = "python3".into();
    sandbox.args = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(example[0]).into()];
    let mut command = sandbox.command();
    command.args(&example[1..]).arg("--fake-responses").arg(script).stdin(input);
    let Output { status, stdout, stderr } =
        command.env("CASTOR", sandbox.watched().agent()).env("PYTHONDONTWRITEBYTECODE", "1").output().unwrap();
    let [out, err] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
    Some(Run { code: status.code(), out, err, sandbox })
}

fn is_there(run: &Run, file: &str) -> bool {
    run.sandbox.workspace().join(file).exists()
}

/// The answer comes in pieces; the edit is approved, and the command is not.
#[test]
fn driver_prints_the_answer_and_approves_edits_alone() {
    let edit = r#"call write_file {"file_path": "made.md", "content": "x"}"#;
    let command = r#"call run_shell_command {"command": "touch ran"}"#;
    let answers = [edit, command, r#"thought "hm" + text "All " + text "done.""#];
    let Some(run) = run(&["driver.py", "Go"], &answers, "") else { return };
    assert_eq!((run.code, run.out.as_str()), (Some(0), "All done."), "{}", run.err);
    assert_eq!((is_there(&run, "made.md"), is_there(&run, "ran")), (true, false), "{}", run.err);
    assert!(run.err.contains("castor calls WriteFile made.md\ncastor calls touch ran\n"), "{}", run.err);
    assert!(run.err.ends_with("\nended with end_turn\n"), "{}", run.err);
}

#[test]
fn driver_ends_with_the_error_of_castor() {
    let Some(run) = run(&["driver.py", "Go"], &[], "") else { return };
    assert_eq!((run.code, run.out.as_str()), (Some(1), ""), "{}", run.err);
    assert!(run.err.contains("driver.py: ") && run.err.contains("No more mock responses"), "{}", run.err);
    assert!(!run.err.contains("Traceback"), "{}", run.err);
}

#[test]
fn review_bot_prints_an_answer_that_fits() {
    for (flags, code) in [(&["review_bot.py"][..], 1), (&["review_bot.py", "--fail-on", "never"], 0)] {
        let Some(run) = run(flags, &[FITS], DIFF) else { return };
        assert_eq!(run.code, Some(code), "{}", run.err);
        let review: Value = serde_json::from_str(&run.out).unwrap();
        assert_eq!(review["findings"][0]["text"], "Divides by zero.", "{review}");
    }
}

/// The second question says what was wrong with the first answer; a second answer that does not fit is no review.
#[test]
fn review_bot_asks_once_more() {
    let again = format!(r#"wants "answer.findings[0].file is \"b.py\"" {FITS}"#);
    let Some(mended) = run(&["review_bot.py"], &[FITS_NOT, &again], DIFF) else { return };
    assert_eq!(mended.code, Some(1), "{}", mended.err);
    for fault in ["b.py", "line is too small", "\"bad\"", "answer has more"] {
        assert!(mended.err.contains(fault), "{fault} is not in {}", mended.err);
    }
    let given_up = run(&["review_bot.py"], &[r#"text "All is well.""#, FITS_NOT, FITS], DIFF).unwrap();
    assert_eq!((given_up.code, given_up.out.as_str()), (Some(3), ""), "{}", given_up.err);
}

/// Also where the model obeys a text in the change.
#[test]
fn review_bot_writes_and_runs_nothing() {
    let edit = r#"call write_file {"file_path": "made", "content": "x"}"#;
    let command = r#"call run_shell_command {"command": "touch ran"}"#;
    let Some(run) = run(&["review_bot.py"], &[edit, command, FITS], DIFF) else { return };
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert_eq!((is_there(&run, "made"), is_there(&run, "ran")), (false, false), "{}", run.err);
}

#[test]
fn review_bot_asks_nothing_about_no_change() {
    let Some(none) = run(&["review_bot.py"], &[], "") else { return };
    assert_eq!((none.code, none.out.contains("\"findings\": []")), (Some(0), true), "{}", none.err);
    let other = run(&["review_bot.py"], &[], "hello\n").unwrap();
    assert_eq!((other.code, other.err.contains("no git diff")), (Some(2), true), "{}", other.err);
}
