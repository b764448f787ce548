//! Undo from outside: what the verbs print, two castors on one folder, and one that is killed in the middle of it.

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

fn castor(sandbox: &mut Sandbox, line: &str) -> String {
    let own = std::mem::replace(&mut sandbox.args, line.split(' ').map(Into::into).collect());
    let done = sandbox.command().stdin(Stdio::null()).output().unwrap();
    sandbox.args = own;
    let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
    let text = text.replace(sandbox.workspace().to_str().unwrap(), "$WS");
    let text = text.replace(sandbox.home().to_str().unwrap(), "$HOME");
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
fn turn(sandbox: &mut Sandbox, flags: &str, call: &str) -> String {
    answer(sandbox, &[call, r#"text "Done.""#]);
    let script = sandbox.args.pop().unwrap().into_string().unwrap();
    castor(sandbox, &format!("run go --approval-mode yolo {flags}--fake-responses {script}"))
}

fn write(path: &str, text: &str) -> String {
    format!(r#"call write_file {}"#, json!({"file_path": path, "content": text}))
}

fn run(line: &str) -> String {
    format!(r#"call run_shell_command {}"#, json!({ "command": line }))
}

#[test]
fn verbs_say_what_they_give_back() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    check_shell(
        &mut sandbox,
        "
$ castor undo
castor: no session of $WS changed files that can be given back
[exit 1]
$ castor diff
castor: no session of $WS changed files that can be given back
[exit 1]
$ castor undo nob
castor: nob is too short: an id needs its first 6 characters at least, or say latest; `castor sessions list --all` has all
[exit 42]
$ castor rewind 1 nobody-is-called-so
castor: session nobody-is-called-so was not found; `castor sessions list --all` has all
[exit 42]
",
    );
    let first = turn(&mut sandbox, "", &(write("a.txt", "two\n") + " + " + &write("new/b.txt", "b\n")));
    assert!(first.ends_with("castor: 3 files changed, +2 -1. Take it back: castor undo\n"), "{first}");
    turn(&mut sandbox, "--resume latest ", &write("a.txt", "three\n"));
    check_shell(
        &mut sandbox,
        "
$ castor diff
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+three
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1 @@
+b
$ castor undo
Restored
  a.txt
$ castor diff
--- a/a.txt
+++ b/a.txt
@@ -1 +1 @@
-one
+two
--- /dev/null
+++ b/new/b.txt
@@ -0,0 +1 @@
+b
$ castor undo
Restored
  a.txt
  new
  new/b.txt
$ castor undo
castor: there is nothing to take back: no file was changed since
[exit 1]
$ castor diff
Nothing that this session changed still stands.
$ castor redo
Restored
  a.txt
  new
  new/b.txt
$ castor redo
Restored
  a.txt
$ castor redo
castor: nothing was undone that can be done again
[exit 1]
$ castor undo 2
Restored
  a.txt
  new
  new/b.txt
",
    );
    assert!(holds(&sandbox.workspace().join("a.txt"), "one\n") && !sandbox.workspace().join("new").exists());
}

#[test]
fn a_prompt_is_named_by_its_number_or_its_words() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.txt", "one\n"));
    turn(&mut sandbox, "--resume latest ", &write("a.txt", "two\n"));
    check_shell(
        &mut sandbox,
        "
$ castor rewind nothing
castor: There is no prompt `nothing`; `/checkpoints` lists them.
[exit 42]
$ castor rewind go
castor: 2 prompts say `go`; `/checkpoints` lists them with their numbers.
[exit 42]
$ castor undo two latest
castor: two is no number of turns
[exit 42]
$ castor undo --on-conflict sometimes
error: invalid value 'sometimes' for '--on-conflict <WHAT>'
  [possible values: fail, keep, restore]

For more information, try '--help'.
[exit 42]
$ castor rewind 2 --what files
Restored
  a.txt
$ castor rewind 2
The conversation is what it was before that prompt.
$ castor rewind 1
Restored
  a.txt
The conversation is what it was before that prompt.
$ castor redo
Restored
  a.txt
",
    );
    assert!(holds(&sandbox.workspace().join("a.txt"), "one\n"));
}

#[test]
fn what_the_user_changed_is_a_conflict_that_a_script_decides() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    turn(&mut sandbox, "", &run("echo two > a.txt; echo two > b.txt"));
    sandbox.write("ws/a.txt", "mine\n");
    check_shell(
        &mut sandbox,
        "
$ castor undo
castor: these files are not as the agent left them; nothing was changed (--on-conflict keep leaves them, --on-conflict restore restores them, too):
  a.txt: it was changed since
[exit 1]
$ castor undo --on-conflict fail
castor: these files are not as the agent left them; nothing was changed (--on-conflict keep leaves them, --on-conflict restore restores them, too):
  a.txt: it was changed since
[exit 1]
$ castor undo --on-conflict keep
Restored
  b.txt
Not restored
  a.txt: it was changed since
$ castor redo
Restored
  b.txt
$ castor undo --on-conflict restore
Restored
  a.txt
  b.txt
$ castor redo
Restored
  a.txt
  b.txt
",
    );
    assert_eq!(fs::read_to_string(sandbox.workspace().join("a.txt")).unwrap(), "mine\n");
}

/// Nothing pretends that it gave back what was freed.
#[test]
fn what_was_freed_is_not_given_back_and_that_is_said() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.txt", "two\n"));
    check_shell(
        &mut sandbox,
        "
$ castor clean
Checkpoints take 1 KB in $HOME/.castor/checkpoints.
`castor clean --yes` frees those of closed sessions.
$ castor clean --yes
Checkpoints take 1 KB in $HOME/.castor/checkpoints.
Freed 1 KB, of 1 session(s).
$ castor undo
castor: nothing was restored: nothing of what was changed is held
[exit 1]
$ castor redo
castor: nothing was undone that can be done again
[exit 1]
$ castor diff
castor: nothing of what was changed is held
[exit 1]
",
    );
    assert_eq!(fs::read_to_string(sandbox.workspace().join("a.txt")).unwrap(), "two\n");
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
fn who_has_a_session_open_is_the_one_who_gives_back() {
    let mut sandbox = Sandbox::new();
    let mut agent = Agent::start(&mut sandbox, &[&write("a.txt", "two\n"), r#"text "Done.""#]);
    agent.prompt("go");
    for line in ["undo", "redo", "rewind 1"] {
        let said = castor(&mut sandbox, line);
        let expected = format!(
            "castor: session {} is open in another castor process (process {} for it); close it there first\n[exit 1]\n",
            agent.session,
            agent.client.pid()
        );
        assert_eq!(said, expected);
    }
    let diff = castor(&mut sandbox, "diff");
    assert_eq!(diff, "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+two\n", "to look is no matter");
    assert!(castor(&mut sandbox, "clean --yes").ends_with("Freed 0 KB, of 0 session(s).\n"));
    assert_eq!(agent.rewind("fail").unwrap(), (vec!["a.txt".to_owned()], Vec::new()));
    agent.client.end().unwrap();
    assert!(castor(&mut sandbox, "redo").starts_with("Restored\n"));
}

#[test]
fn what_two_castors_changed_at_once_is_a_conflict() {
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

#[test]
fn a_castor_that_is_killed_in_a_restore_leaves_no_half_of_it() {
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
fn what_ran_in_the_background_is_given_back_when_it_has_ended() {
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
