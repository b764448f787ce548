//! Command lines as Gemini CLI's, from the real processes: flags without a command, lines of JSON, sessions by number.

use std::{
    os::unix::process::CommandExt,
    process::{Output, Stdio},
};

use serde_json::{Value, json};

use crate::{
    client::Sandbox,
    exits::{Case, SCRIPT},
    schemas,
};

/// Exit code, stdout and stderr of a command line without a command.
fn castor(sandbox: &Sandbox, line: &[&str]) -> (i32, String, String) {
    let mut command = sandbox.command();
    command.args(line).stdin(Stdio::null());
    // Whoever runs the tests on a terminal is not asked.
    // SAFETY: makes a system call only.
    unsafe { command.pre_exec(|| Ok(nix::unistd::setsid().map(drop)?)) };
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [out, said] = [stdout, stderr].map(|it| String::from_utf8(it).unwrap());
    (status.code().unwrap(), out, said)
}

/// The lines of `stream-json`, each of which fits the schema, without their times.
fn stream(sandbox: &Sandbox, line: &[&str]) -> (i32, Vec<Value>) {
    let (code, out, said) = castor(sandbox, &[line, &["-o", "stream-json", SCRIPT]].concat());
    let event = |line: &str| {
        let mut event: Value = serde_json::from_str(line).unwrap_or_else(|it| panic!("{it}: {line} {said}"));
        schemas::check("stream", &event).unwrap();
        let time = event.as_object_mut().unwrap().remove("timestamp").unwrap();
        assert!(time.as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{time}");
        event
    };
    (code, out.lines().map(event).collect())
}

const WRITE: &str = r#"text "I write." + call write_file {"file_path":"a.txt","content":"one\n"} + usage 1000 10"#;
const READ: &str = r#"call read_file {"file_path":"no.txt"}"#;

#[test]
fn lines_of_json_tell_the_whole_turn() {
    let case = Case::answers(&[WRITE, READ, r#"text "Done." + usage 2000 20"#]);
    let (code, mut events) = stream(&case.sandbox, &["-y", "-p", "go"]);
    assert_eq!(code, 0, "{events:?}");
    let result = events.pop().unwrap();
    assert_eq!((&events[0]["type"], &events[0]["model"]), (&json!("init"), &json!("script")), "{events:?}");
    assert!(events[0]["session_id"].as_str().is_some_and(|it| it.len() == 36));
    assert_eq!(events[1], json!({"type": "message", "role": "user", "content": "go"}));
    let answer = |it: &str| json!({"type": "message", "role": "assistant", "content": it, "delta": true});
    assert_eq!((&events[2], events.last().unwrap()), (&answer("I write."), &answer("Done.")));
    let of = |kind: &str| events.iter().filter(|it| it["type"] == kind).collect::<Vec<_>>();
    let (calls, results) = (of("tool_use"), of("tool_result"));
    assert_eq!(calls[0]["parameters"], json!({"file_path": "a.txt", "content": "one\n"}));
    assert_eq!((&calls[0]["tool_name"], &calls[1]["tool_name"]), (&json!("write_file"), &json!("read_file")));
    assert_eq!((&results[0]["tool_id"], &results[0]["status"]), (&calls[0]["tool_id"], &json!("success")));
    assert_eq!((&results[1]["tool_id"], &results[1]["status"]), (&calls[1]["tool_id"], &json!("error")));
    assert!(results[1]["error"]["message"].as_str().is_some_and(|it| it.contains("no.txt")), "{results:?}");
    assert_eq!((&result["type"], &result["status"]), (&json!("result"), &json!("success")));
    let stats = &result["stats"];
    assert_eq!(
        (&stats["input_tokens"], &stats["output_tokens"], &stats["tool_calls"]),
        (&json!(3010), &json!(35), &json!(2))
    );
    assert_eq!(stats["models"]["script"]["total_tokens"], stats["total_tokens"]);
    assert_eq!(result["castor"]["changes"]["added"], 1);
}

#[test]
fn the_last_line_says_why_a_run_failed() {
    let (code, events) = stream(&Case::answers(&[READ]).sandbox, &["-p", "go", "--max-turns", "1"]);
    let result = events.last().unwrap();
    assert_eq!((code, &result["error"]["type"]), (53, &json!("FatalTurnLimitedError")), "{result}");
    assert!(events.iter().any(|it| it["type"] == "error" && it["severity"] == "warning"), "{events:?}");
    let (code, events) = stream(&Case::answers(&[]).sandbox, &["-p", "go", "--cwd", "nowhere"]);
    assert_eq!((code, events.len(), &events[0]["status"]), (42, 1, &json!("error")));
}

/// What the session warned of is in the object, too.
#[test]
fn warnings_are_in_the_object() {
    let (code, out, said) =
        castor(&Case::answers(&[READ]).sandbox, &["-p", "go", "--max-turns", "1", "-o", "json", SCRIPT]);
    let object: Value = serde_json::from_str(&out).unwrap_or_else(|it| panic!("{it}: {said}"));
    schemas::check("run", &object).unwrap();
    assert!(
        code == 53 && object["warnings"][0].as_str().is_some_and(|it| it.contains("limit of 1 model call")),
        "{out}"
    );
}

#[test]
fn prompts_need_no_command() {
    let case = Case::answers(&[r#"text "fine""#]);
    for line in [&["-p", "go"][..], &["what is this?"], &["run", "-p", "go"], &["--model", "x", "go"]] {
        let (code, out, said) = castor(&case.sandbox, &[line, &[SCRIPT]].concat());
        assert_eq!((code, out.as_str()), (0, "fine\n"), "{line:?} {said}");
    }
    for (line, says) in [
        (&["-p", "go", "mcp"][..], "cannot be used with"),
        (&["-d", "doctor"], "`doctor` is a command, and stands before its flags"),
        (&["-i", "go"], "castor chat needs a terminal"),
        (&["-p", "go", "-y", "--approval-mode", "plan"], "cannot be used with"),
    ] {
        let (code, _, said) = castor(&case.sandbox, line);
        assert!(code == 42 && said.contains(says), "{line:?} {said}");
    }
    let (code, out, _) = castor(&case.sandbox, &["-v"]);
    assert!(code == 0 && out.starts_with("castor "), "{out}");
}

#[test]
fn sessions_have_numbers() {
    let case = Case::answers(&[r#"text "fine""#]);
    let run = |line: &[&str]| castor(&case.sandbox, &[line, &[SCRIPT]].concat());
    assert_eq!(run(&["-p", "the first", "--session-id", "first-one"]).0, 0);
    assert_eq!(run(&["-p", "the second", "--session-id=2nd_one"]).0, 0);
    let (code, _, said) = run(&["-p", "again", "--session-id", "first-one"]);
    assert!(code == 42 && said.contains("-r first-one continues it"), "{said}");
    for id in ["../session", "1234", "latest"] {
        assert_eq!(run(&["-p", "x", "--session-id", id]).0, 42, "{id}");
    }
    // The first one is the last that was worked in, and keeps its number.
    let (code, out, said) = run(&["-r", "1", "-p", "go on", "-o", "json"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["session_id"], "first-one");
    let (_, out, _) = run(&["--list-sessions"]);
    let lines: Vec<&str> = out.lines().skip(1).collect();
    assert!(lines.len() == 2 && lines[0].starts_with("  1. the first (") && lines[1].ends_with("[2nd_one]"), "{out}");
    // Without a terminal nobody chooses: it is the last.
    let (_, out, said) = run(&["-r", "-p", "more", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap_or_default()["session_id"], "first-one", "{said}");
    let (code, _, said) = run(&["-r", "7", "-p", "x"]);
    assert!(code == 42 && said.contains("has 2 sessions"), "{said}");
    assert_eq!(castor(&case.sandbox, &["--delete-session", "1"]).0, 0);
    assert_eq!(castor(&case.sandbox, &["--delete-session", "9"]).0, 42);
    let (_, out, _) = castor(&case.sandbox, &["--list-sessions"]);
    assert!(out.contains("(1):") && out.contains("  1. the second"), "{out}");
}

#[test]
fn lists_of_flags_are_settings() {
    let case = Case::answers(&[r#"call run_shell_command {"command":"touch built"}"#, r#"text "done""#]);
    let run = |line: &[&str]| castor(&case.sandbox, &[&["-p", "go", SCRIPT], line].concat());
    assert_eq!(run(&[]).0, 56);
    let (code, _, said) = run(&["--allowed-tools", "glob,run_shell_command(touch)"]);
    assert_eq!(code, 0, "{said}");
    case.sandbox
        .write("ws/rules.toml", "[[rule]]\ntoolName = \"run_shell_command\"\ndecision = \"allow\"\npriority = 100\n");
    let (code, _, said) = run(&["--policy", "rules.toml"]);
    assert_eq!(code, 0, "{said}");
    let (code, _, said) = run(&["--policy", "rules.toml", "-e", "some", "--raw-output"]);
    assert!(code == 0 && said.contains("there is no extension some") && said.contains("--raw-output: "), "{said}");
}

#[test]
fn more_folders_belong_to_the_workspace() {
    let case = Case::answers(&[r#"call read_file {"file_path":"../more/b.txt"}"#, r#"text "done""#]);
    case.sandbox.write("more/b.txt", "here");
    let run = |line: &[&str]| castor(&case.sandbox, &[&["-p", "go", "-o", "json", SCRIPT], line].concat());
    let failed = |out: &str| serde_json::from_str::<Value>(out).unwrap()["stats"]["tools"]["totalFail"].clone();
    assert_eq!(failed(&run(&["--include-directories", "../more"]).1), 0);
    let (code, _, said) = run(&["--include-directories", "../none"]);
    assert!(code == 42 && said.contains("../none is no folder"), "{said}");
}

/// A folder that nobody trusts counts as trusted for this run alone.
#[test]
fn trust_can_be_skipped() {
    let mut case = Case::answers(&[r#"text "fine""#]);
    case.sandbox.env.clear();
    assert_eq!(castor(&case.sandbox, &["-y", "-p", "go", SCRIPT]).0, 55);
    let (code, _, said) = castor(&case.sandbox, &["-y", "-p", "go", "--skip-trust", "-d", SCRIPT]);
    assert!(code == 0 && said.contains("DEBUG"), "{said}");
    assert_eq!(castor(&case.sandbox, &["-y", "-p", "go", SCRIPT]).0, 55);
}

/// Who asks for a sandbox by its flag never goes without.
#[cfg(target_os = "linux")]
#[test]
fn a_sandbox_that_is_asked_for_is_there() {
    use nix::libc::{ENOSYS, SYS_landlock_create_ruleset};
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    let case = Case::answers(&[r#"text "fine""#]);
    let (code, _, said) = castor(&case.sandbox, &["-s", "-p", "go", SCRIPT]);
    assert_eq!(code, 0, "{said}");
    let old_kernel = |line: &[&str]| {
        let rules = [(SYS_landlock_create_ruleset, Vec::new())].into_iter().collect();
        let (refuse, arch) = (SeccompAction::Errno(ENOSYS as u32), std::env::consts::ARCH.try_into().unwrap());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch).unwrap();
        let filter: BpfProgram = filter.try_into().unwrap();
        let mut command = case.sandbox.command();
        command.args(line).stdin(Stdio::null());
        let restrict = move || {
            nix::sys::prctl::set_no_new_privs()?;
            apply_filter(&filter).map_err(|_| std::io::ErrorKind::PermissionDenied.into())
        };
        // SAFETY: makes system calls only; the filter was made before.
        unsafe { command.pre_exec(restrict) };
        let Output { status, stderr, .. } = command.output().unwrap();
        (status.code().unwrap(), String::from_utf8(stderr).unwrap())
    };
    let (code, said) = old_kernel(&["-s", "-p", "go", SCRIPT]);
    assert!(code == 44 && said.contains("no sandbox works on this system"), "{code} {said}");
    assert_eq!(old_kernel(&["-p", "go", SCRIPT]).0, 0);
}
