//! `castor stats` with the real binary: what runs did is summed up, and many logs need no more memory than few.

use std::process::{Output, Stdio};

use serde_json::{Value, json};

use crate::{client::Sandbox, exits::Case, schemas};

const PRICES: &str = r#"{"model": {"prices": {"script": {"input": 2, "output": 10}}}}"#;
const WRITE: &str = r#"call write_file {"file_path":"a.txt","content":"one\n"} + usage 1000 10"#;
const BAD: &str = r#"call read_file {"file_path":"missing.txt"} + usage 1500 10"#;

fn stats(sandbox: &Sandbox, line: &[&str]) -> Output {
    let mut command = sandbox.command();
    command.arg("stats").args(line).stdin(Stdio::null()).output().unwrap()
}

fn sums(sandbox: &Sandbox, line: &[&str]) -> Value {
    let Output { status, stdout, stderr } = stats(sandbox, &[line, &["-o", "json"]].concat());
    assert!(status.success() && stderr.is_empty(), "{}", String::from_utf8_lossy(&stderr));
    let object = serde_json::from_slice(&stdout).unwrap();
    schemas::check("stats", &object).unwrap();
    object
}

#[test]
fn a_run_is_summed_up() {
    let case = Case { settings: PRICES, ..Case::answers(&[WRITE, BAD, r#"text "Done." + usage 2000 20"#]) };
    let run = case.command().args(["--approval-mode", "auto_edit"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let all = sums(&case.sandbox, &[]);
    let total = &all["total"];
    assert_eq!((&total["sessions"], &total["prompts"], &total["requests"]), (&json!(1), &json!(1), &json!(3)));
    assert_eq!((&total["tokens"]["input"], &total["tokens"]["output"]), (&json!(4500), &json!(40)));
    // 4500 × 2 and 40 × 10 of a million.
    assert_eq!((&total["cost"], &total["costIsPartial"]), (&json!(0.0094), &json!(false)));
    assert_eq!(total["calls"], json!({"total": 2, "failed": 1, "stopped": 0}));
    let row = |group: &str, nth: usize| all[group][nth]["name"].clone();
    assert_eq!(row("models", 0), "script");
    // Either may have taken longer.
    let tools = [row("tools", 0), row("tools", 1)];
    assert!(["read_file", "write_file"].iter().all(|it| tools.contains(&json!(it))), "{tools:?}");
    assert_eq!(row("folders", 0), json!(case.sandbox.workspace().canonicalize().unwrap()));
    // A copy is nothing new.
    let mut fork = case.sandbox.command();
    let fork = fork.args(["sessions", "fork", "latest"]).current_dir(case.sandbox.workspace()).output().unwrap();
    assert!(fork.status.success(), "{}", String::from_utf8_lossy(&fork.stderr));
    assert_eq!(sums(&case.sandbox, &[])["total"], *total);
    assert_eq!(sums(&case.sandbox, &["--until", "2001-01-01", "--by", "model"])["models"], json!([]));
    let shown = String::from_utf8(stats(&case.sandbox, &["--by", "tool"]).stdout).unwrap();
    assert!(shown.contains("Tool calls 2: 1 failed") && shown.contains('█') && !shown.contains('\u{1b}'), "{shown}");
    let page = String::from_utf8(stats(&case.sandbox, &["-o", "html"]).stdout).unwrap();
    assert!(page.contains("<svg") && page.ends_with("</html>\n"), "{page}");
    let bad = stats(&case.sandbox, &["--since", "soon"]);
    assert_eq!(bad.status.code(), Some(42));
    assert!(String::from_utf8_lossy(&bad.stderr).contains("--since soon is no time"));
}

/// A log that is larger than the memory that castor may have, and two thousand others.
#[cfg(target_os = "linux")]
#[test]
fn many_logs_need_no_more_memory_than_few() {
    const KIB: u64 = 48 << 10;
    let sandbox = Sandbox::new();
    let line = |id: &str, at: u64, rest: Value| {
        let mut it = json!({"at": at, "fact": "event", "event": {"id": id, "streamId": "s", "timestamp": at}});
        it["event"].as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        format!("{it}\n")
    };
    let log = |id: &str, at: u64| {
        let created = json!({"at": at, "fact": "created", "version": 2, "castor": "0", "session": id, "cwd": "/w",
            "roots": ["/w"], "mode": "default", "model": "m"});
        let usage = json!({"type": "usage", "model": "m", "input": 3, "output": 1, "total": 4, "size": 9});
        format!("{created}\n{}{}", line("s-0", at, json!({"type": "agent_start"})), line("s-1", at, usage))
    };
    for nth in 0..2_000 {
        let id = format!("session-{nth}");
        sandbox.write(format!("home/.castor/sessions/{id}.jsonl"), &log(&id, 1_000 + nth));
    }
    let text = "\"usage\" ".repeat(8 << 10);
    let large = line(
        "s-2",
        5,
        json!({"type": "message", "role": "agent", "messageId": "m",
        "content": [{"type": "text", "text": text}]}),
    );
    let large = log("large", 5) + &large.repeat((KIB as usize * 1_024).div_ceil(large.len()));
    assert!(large.len() as u64 >= KIB * 1_024);
    sandbox.write("home/.castor/sessions/large.jsonl", &large);
    let command = sandbox.command();
    let mut limited = std::process::Command::new("sh");
    limited.env_clear();
    for (name, value) in command.get_envs() {
        match value {
            Some(it) => limited.env(name, it),
            None => limited.env_remove(name),
        };
    }
    limited.arg("-c").arg(format!("ulimit -d {KIB}; exec \"$0\" stats -o json")).arg(command.get_program());
    let Output { status, stdout, stderr } = limited.stdin(Stdio::null()).output().unwrap();
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
    let total = &serde_json::from_slice::<Value>(&stdout).unwrap()["total"];
    assert_eq!((&total["sessions"], &total["tokens"]["input"]), (&json!(2_001), &json!(6_003)));
}
