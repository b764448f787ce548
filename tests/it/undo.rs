//! Undo from outside: the verbs, two castors on one folder, and one that is killed in the middle of it.

mod large;
mod shell;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    conversation::model::response,
};

/// What is typed in a shell, and what comes of it: both streams, and the exit code where it is not 0.
fn check_shell(sandbox: &mut Sandbox, transcript: &str) {
    let mut told = String::new();
    for line in transcript.lines().filter_map(|it| it.strip_prefix("$ castor ")) {
        told += &format!("$ castor {line}\n{}", castor(sandbox, line));
    }
    assert_eq!(told.trim_end(), transcript.trim());
}

pub fn castor(sandbox: &mut Sandbox, line: &str) -> String {
    let own = std::mem::replace(&mut sandbox.args, line.split(' ').map(Into::into).collect());
    let done = sandbox.command().stdin(Stdio::null()).output().unwrap();
    sandbox.args = own;
    let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    let text = text.replace(sandbox.workspace().to_str().unwrap(), "$WS");
    let mut text = text.replace(sandbox.home().to_str().unwrap(), "$HOME");
    for it in fs::read_dir(sandbox.home().join(".castor/sessions")).into_iter().flatten() {
        let name = it.unwrap().file_name().into_string().unwrap();
        text = text.replace(name.trim_end_matches(".jsonl"), "$ID");
    }
    match done.status.code() {
        Some(0) => text,
        code => format!("{text}[exit {}]\n", code.unwrap_or(-1)),
    }
}

/// The answers of the model, for all that is started next.
fn answer(sandbox: &mut Sandbox, answers: &[&str]) {
    let lines: String = answers.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines);
    sandbox.args = ["acp", "--approval-mode", "yolo", "--fake-responses"].map(Into::into).to_vec();
    sandbox.args.push(script.into());
}

/// A turn of `castor run`, which does one call.
pub fn turn(sandbox: &mut Sandbox, flags: &str, call: &str) -> String {
    answer(sandbox, &[call, r#"text "Done.""#]);
    let script = sandbox.args.pop().unwrap().into_string().unwrap();
    castor(sandbox, &format!("run go --approval-mode yolo {flags}--fake-responses {script}"))
}

pub fn write(path: &str, text: &str) -> String {
    format!(r#"call write_file {}"#, json!({"file_path": path, "content": text}))
}

pub fn run(line: &str) -> String {
    format!(r#"call run_shell_command {}"#, json!({ "command": line }))
}

/// A session over the wire.
struct Agent {
    client: Client,
    session: String,
}

impl Agent {
    fn start(sandbox: &mut Sandbox, answers: &[&str]) -> Self {
        answer(sandbox, answers);
        let mut client = Client::start(sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { client, session }
    }

    fn params(&self, text: &str) -> Value {
        json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]})
    }

    /// What it says.
    fn prompt(&mut self, text: &str) -> String {
        let params = self.params(text);
        let (answer, told) = self.client.call("session/prompt", params).unwrap();
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        let updates = told.iter().map(|it| &it["params"]["update"]);
        updates.filter_map(|it| it["content"]["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// Without waiting for its end.
    fn begin(&mut self, text: &str) {
        let params = self.params(text);
        self.client.request_as(json!("begun"), "session/prompt", params);
    }

    fn end_turn(&mut self) {
        while self.client.next().unwrap().expect("its end was to come")["id"] != "begun" {}
    }

    /// Files as they were before the first of its calls; the paths that came back, the conflicts or why not.
    fn rewind(&mut self, on_conflict: &str) -> Result<(Vec<String>, Vec<String>), String> {
        let params = json!({"sessionId": self.session});
        let all = self.client.result("_castor/session/checkpoints", params).unwrap();
        let first = &all["checkpoints"][0]["id"];
        let params =
            json!({"sessionId": self.session, "checkpointId": first, "what": "files", "onConflict": on_conflict});
        let answer = self.client.call("_castor/session/rewind", params).unwrap().0;
        if let Some(why) = answer["error"]["message"].as_str() {
            return Err(why.to_owned());
        }
        let name = |it: &Value| Path::new(it.as_str().unwrap()).file_name().unwrap().to_str().unwrap().to_owned();
        let list = |it: &Value| it.as_array().unwrap().clone();
        let conflict = |it: &Value| format!("{}: {}", name(&it["path"]), it["reason"].as_str().unwrap());
        let (restored, conflicts) = (&answer["result"]["restored"], &answer["result"]["conflicts"]);
        Ok((list(restored).iter().map(name).collect(), list(conflicts).iter().map(conflict).collect()))
    }
}

fn until(what: impl Fn() -> bool) {
    let start = Instant::now();
    while !what() {
        assert!(start.elapsed() < WATCHDOG, "it never comes");
        thread::yield_now();
    }
}

fn holds(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|it| it == text)
}

#[test]
fn only_the_session_holder_can_undo() {
    let mut sandbox = Sandbox::new();
    let mut agent = Agent::start(&mut sandbox, &[&write("a.txt", "two\n"), r#"text "Done.""#]);
    agent.prompt("go");
    for line in ["undo", "redo", "rewind 1"] {
        let said = castor(&mut sandbox, line);
        let expected = format!(
            "castor: session $ID is open in another castor process (process {} for it); close it there first\n[exit 1]\n",
            agent.client.pid()
        );
        assert_eq!(said, expected);
    }
    let diff = castor(&mut sandbox, "diff");
    assert_eq!(
        diff, "a.txt: written by an agent, not looked at\n--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+two\n",
        "to look is no matter"
    );
    assert!(castor(&mut sandbox, "clean --yes").ends_with("Freed 0 KB, of 0 session(s).\n"));
    assert_eq!(agent.rewind("fail").unwrap(), (vec!["a.txt".to_owned()], Vec::new()));
    agent.client.end().unwrap();
    assert!(castor(&mut sandbox, "redo").starts_with("Session $ID (go)\nRestored\n"));
}

/// A file that the other castor may have changed at the same time is one.
#[test]
fn concurrent_castors_cause_a_conflict() {
    let mut sandbox = Sandbox::new();
    let ws = sandbox.workspace();
    let line = "mkfifo go; echo a > both; read < go; rm go; echo a > mine";
    let mut first = Agent::start(&mut sandbox, &[&run(line), r#"text "Done.""#]);
    let mut second = Agent::start(&mut sandbox, &[&run("echo b > both; echo b > theirs"), r#"text "Done.""#]);
    first.begin("go");
    until(|| holds(&ws.join("both"), "a\n"));
    second.prompt("go");
    fs::write(ws.join("go"), "\n").unwrap();
    first.end_turn();
    let reason = "another session ran at the same time and may have changed it";
    let said = [format!("both: {reason}"), format!("theirs: {reason}")];
    for it in [&mut first, &mut second] {
        let (restored, conflicts) = it.rewind("fail").unwrap();
        assert_eq!((restored, &conflicts[..]), (Vec::new(), &said[..]));
    }
    assert!(holds(&ws.join("both"), "b\n") && holds(&ws.join("mine"), "a\n"), "nothing was changed");
    let (restored, conflicts) = first.rewind("keep").unwrap();
    assert_eq!((&restored[..], &conflicts[..]), (&["mine".to_owned()][..], &said[..]));
    assert!(holds(&ws.join("both"), "b\n") && holds(&ws.join("theirs"), "b\n") && !ws.join("mine").exists());
    second.rewind("restore").unwrap();
    assert!(holds(&ws.join("both"), "a\n") && !ws.join("theirs").exists());
    first.client.end().unwrap();
    second.client.end().unwrap();
}

/// One works on, and the other goes back: each file is one's or the other's.
#[test]
fn a_restore_while_another_castor_works_does_not_tear() {
    let mut sandbox = Sandbox::new();
    let ws = sandbox.workspace();
    (0..100).for_each(|it| _ = sandbox.write(format!("ws/all/{it}"), "one\n"));
    let mut first = Agent::start(&mut sandbox, &[&run("echo two | tee all/* > made"), r#"text "Done.""#]);
    first.prompt("go");
    let line = "until [ -e stop ]; do echo $((++n)) > counted; done; echo three > all/7";
    let mut second = Agent::start(&mut sandbox, &[&run(line), r#"text "Done.""#]);
    second.begin("go");
    until(|| ws.join("counted").exists());
    let (restored, conflicts) = first.rewind("fail").unwrap();
    assert_eq!((restored.len(), conflicts), (101, Vec::new()));
    let is_back = |it: &usize| holds(&ws.join(format!("all/{it}")), "one\n");
    assert!((0..100).all(|it| is_back(&it)) && !ws.join("made").exists());
    fs::write(ws.join("stop"), "").unwrap();
    second.end_turn();
    assert_eq!((0..100).filter(|it| !is_back(it)).collect::<Vec<_>>(), [7]);
    // What the other did is its own, and goes back to what the restore left.
    let (_, conflicts) = second.rewind("fail").unwrap();
    assert_eq!(conflicts, Vec::<String>::new());
    assert!((0..100).all(|it| is_back(&it)) && !ws.join("counted").exists());
    first.client.end().unwrap();
    second.client.end().unwrap();
}

/// Where a restore writes down what it is about to do.
fn journals(sandbox: &Sandbox) -> Vec<PathBuf> {
    let stores = fs::read_dir(sandbox.home().join(".castor/checkpoints")).unwrap();
    stores.map(|it| it.unwrap().path().join("journal")).filter(|it| it.exists()).collect()
}

/// The next session, or the doctor, finishes the restore or takes it back, and says so.
#[test]
fn killed_castor_leaves_no_half_restore() {
    const N: usize = 150;
    for by_doctor in [true, false] {
        let mut sandbox = Sandbox::new();
        let ws = sandbox.workspace();
        (0..N).for_each(|it| _ = sandbox.write(format!("ws/{it:03}"), "one\n"));
        let mut agent = Agent::start(&mut sandbox, &[&run("echo two | tee ??? > made"), r#"text "Done.""#]);
        agent.prompt("go");
        agent.begin("/undo");
        until(|| !holds(&ws.join("000"), "two\n"));
        agent.client.kill().unwrap();
        let was_halved = !journals(&sandbox).is_empty();
        let said = if by_doctor {
            castor(&mut sandbox, "doctor --all")
        } else {
            let touch = run("touch made-later");
            let mut answers = vec![touch.as_str()];
            answers.extend([r#"text "Yes.""#; 99]);
            let mut next = Agent::start(&mut sandbox, &answers);
            // What a call may change is held before, and what was halved is whole then; it is told with a later turn.
            let mut said = next.prompt("go");
            for _ in 0..98 {
                if was_halved && !said.contains("interrupted") {
                    said += &next.prompt("on");
                }
            }
            next.client.end().unwrap();
            fs::remove_file(ws.join("made-later")).unwrap();
            said
        };
        let n_old = (0..N).filter(|it| holds(&ws.join(format!("{it:03}")), "one\n")).count();
        let n_new = (0..N).filter(|it| holds(&ws.join(format!("{it:03}")), "two\n")).count();
        let is_old = (n_old, n_new, ws.join("made").exists()) == (N, 0, false);
        let is_new = (n_old, n_new, ws.join("made").exists()) == (0, N, true);
        assert!(is_old || is_new, "{n_old} {n_new}");
        assert_eq!(said.contains("that was interrupted was "), was_halved, "{said}");
        assert_eq!(journals(&sandbox), Vec::<PathBuf>::new());
        let names = fs::read_dir(&ws).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|it| it.starts_with('.')).collect::<Vec<_>>(), Vec::<String>::new());
    }
}

/// Its end lets go of the files, however it is left behind; nobody has to say so.
#[test]
fn background_changes_are_undone_after_they_end() {
    for background in [true, false] {
        let mut sandbox = Sandbox::new();
        let ws = sandbox.workspace();
        let line = if background {
            "mkfifo go; read < go; echo late > made"
        } else {
            "mkfifo go; (read < go; echo late > made) &"
        };
        let call = json!({"command": line, "is_background": background, "delay_ms": 0});
        let answers = [write("first", "x\n"), format!("call run_shell_command {call}"), r#"text "Done.""#.to_owned()];
        let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
        let mut agent = Agent::start(&mut sandbox, &answers);
        agent.prompt("go");
        let why = agent.rewind("fail").unwrap_err();
        assert!(why.contains(&format!("`{line}` runs in the background (PID ")), "{why}");
        until(|| ws.join("go").exists());
        fs::write(ws.join("go"), "\n").unwrap();
        until(|| holds(&ws.join("made"), "late\n"));
        let start = Instant::now();
        while let Err(why) = agent.rewind("restore") {
            assert!(why.contains("in the background") && start.elapsed() < WATCHDOG, "{why}");
        }
        assert!(!ws.join("first").exists());
        agent.client.end().unwrap();
    }
}
