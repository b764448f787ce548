//! What an agent wrote is unseen until a person looked: each way of looking, and what is none.

use std::{
    fs,
    io::Read,
    process::{Command, Stdio},
};

use serde_json::json;

use crate::{
    client::{Client, Sandbox},
    conversation::model,
    repositories::{commit_all, git},
    undo::{castor, run, turn, write},
};

/// What `castor looked` lists, which is nothing but asked where no terminal is.
fn unseen(sandbox: &mut Sandbox) -> Vec<String> {
    let told = castor(sandbox, "looked");
    let lines = told.lines().filter_map(|it| it.strip_prefix("  ")).map(|it| it.split(", by ").next().unwrap());
    lines.map(str::to_owned).collect()
}

/// `castor diff` with its stdout on a terminal.
fn diff_on_a_terminal(sandbox: &mut Sandbox) -> String {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let own = std::mem::replace(&mut sandbox.args, vec!["diff".into()]);
    let mut child = sandbox.command().stdin(Stdio::null()).stdout(terminal.slave).spawn().unwrap();
    sandbox.args = own;
    let (mut master, mut shown) = (fs::File::from(terminal.master), Vec::new());
    // The end of a terminal without a writer is an error.
    _ = master.read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&shown).into_owned()
}

#[test]
fn a_diff_is_a_look_where_a_person_can_read_it() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    let told = turn(&mut sandbox, "", &write("a.txt", "one\ntwo\n"));
    assert!(told.contains("1 file +1 −0; 1 not looked at: castor diff (castor undo takes it back)"), "{told}");
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
    let mark = "a.txt: written by an agent, not looked at";
    assert!(castor(&mut sandbox, "diff").contains(mark));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"], "that went nowhere a person reads");
    let shown = diff_on_a_terminal(&mut sandbox);
    assert!(shown.contains(mark) && shown.contains("1 file counts as looked at now"), "{shown}");
    assert_eq!(unseen(&mut sandbox), Vec::<String>::new());
    assert!(!castor(&mut sandbox, "diff").contains(mark));
    // What is written after it is unseen again.
    turn(&mut sandbox, "--resume latest ", &write("a.txt", "one\ntwo\nthree\n"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
}

/// The other session's diff does not have the lines of the first.
#[test]
fn a_diff_shows_no_more_than_it_shows() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    turn(&mut sandbox, "", &write("a.txt", "evil\n2\n3\n4\n5\n6\n7\n8\n9\n"));
    turn(&mut sandbox, "", &write("a.txt", "evil\n2\n3\n4\n5\n6\n7\n8\nnine\n"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (2 line(s))"]);
    diff_on_a_terminal(&mut sandbox);
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
}

#[test]
fn a_formatter_and_a_move_are_no_look_and_an_edit_is_one_of_its_lines() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.js", "function a() {\n  run('x')\n  go('y')\n}\n"));
    sandbox.write("ws/a.js", "function a() {\r\n    run(\"x\");\r\n    go(\"y\");\r\n}\r\n");
    assert_eq!(unseen(&mut sandbox), ["a.js (4 line(s))"]);
    fs::rename(sandbox.workspace().join("a.js"), sandbox.workspace().join("b.js")).unwrap();
    turn(&mut sandbox, "", &run("touch now"));
    assert_eq!(unseen(&mut sandbox), ["b.js (4 line(s))", "now (0 line(s))"]);
    sandbox.write("ws/b.js", "function a() {\n    run(\"mine\");\n    go(\"y\");\n}\n");
    assert_eq!(unseen(&mut sandbox), ["b.js (3 line(s))", "now (0 line(s))"]);
}

#[test]
fn castor_looked_says_what_it_takes() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &(write("a.txt", "one\n") + " + " + &write("sub/b.txt", "b\n")));
    let told = castor(&mut sandbox, "looked");
    assert!(told.contains("say which: castor looked PATH") && told.contains("[exit 42]"), "{told}");
    let told = castor(&mut sandbox, "looked sub");
    assert!(told.contains("  sub/b.txt (1 line(s)), by session $ID\nIt counts as looked at, as it is now."), "{told}");
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
    assert!(castor(&mut sandbox, "looked nowhere").contains("nowhere: "));
    castor(&mut sandbox, "looked a.txt");
    assert_eq!(castor(&mut sandbox, "looked"), "Nothing here was written by an agent and not looked at.\n");
}

/// With a sandbox castor's home is masked; without one its parents say where it comes from, whatever variables say.
#[test]
fn an_agent_cannot_look() {
    for flags in ["", "--sandbox off "] {
        let mut sandbox = Sandbox::new();
        let own = format!("env -i HOME=\"$HOME\" CASTOR_HOME=\"$HOME/.castor\" '{}'", env!("CARGO_BIN_EXE_castor"));
        let line = format!("echo evil > a.txt; {own} looked a.txt; script -qec \"{own} diff\" /dev/null; true");
        turn(&mut sandbox, flags, &run(&line));
        let again = format!("{own} looked a.txt; script -qec '{own} diff' /dev/null; true");
        let told = turn(&mut sandbox, flags, &run(&again));
        assert!(unseen(&mut sandbox).contains(&"a.txt (1 line(s))".to_owned()), "{flags}: {told}");
    }
}

#[test]
fn a_commit_is_a_look_if_a_person_writes_it() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    commit_all(&sandbox.workspace());
    let root = sandbox.workspace();
    turn(&mut sandbox, "", &run("echo evil > a.txt && git commit -qam agents; echo left > b.txt"));
    let both = ["a.txt (1 line(s))", "b.txt (1 line(s))"];
    assert_eq!(unseen(&mut sandbox), both);
    git(&root, &["commit", "-q", "--amend", "--allow-empty", "-m", "mine"]);
    assert_eq!(unseen(&mut sandbox), both, "an amended commit of the agent's");
    git(&root, &["checkout", "-qb", "side", "HEAD~1"]);
    git(&root, &["commit", "-q", "--allow-empty", "-m", "side"]);
    git(&root, &["checkout", "-q", "main"]);
    git(&root, &["rebase", "-q", "side"]);
    assert_eq!(unseen(&mut sandbox), both, "a rebased one");
    git(&root, &["add", "b.txt"]);
    git(&root, &["commit", "-qm", "mine"]);
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
    // As the next session has it, too.
    turn(&mut sandbox, "", &run("true; echo c > c.txt"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))", "c.txt (1 line(s))"]);
}

/// The agent's commit comes back by the user's own pull, merge, pick or stash, after it was gone.
#[test]
fn a_commit_of_an_agents_stays_its_own_by_whatever_way_it_comes_back() {
    const WAYS: &[&[&str]] = &[
        &["pull", "-q", "../far.git", "main"],
        &["merge", "-q", "agents"],
        &["merge", "-q", "--squash", "agents"],
        &["cherry-pick", "agents"],
        &["checkout", "-q", "agents", "--", "a.txt"],
        &["reset", "-q", "--hard", "agents"],
        &["stash", "apply", "-q"],
    ];
    for way in WAYS {
        let mut sandbox = Sandbox::new();
        sandbox.write("ws/a.txt", "one\n");
        let root = sandbox.workspace();
        commit_all(&root);
        git(&root, &["init", "-q", "--bare", "../far.git"]);
        let line =
            "echo evil > a.txt && git stash -q && git stash apply -q && git commit -qam agents && git branch agents";
        turn(&mut sandbox, "", &run(line));
        git(&root, &["push", "-q", "../far.git", "agents:main"]);
        git(&root, &["reset", "-q", "--hard", "HEAD~1"]);
        assert_eq!(unseen(&mut sandbox), [""; 0], "{way:?}");
        git(&root, way);
        assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"], "{way:?}");
        // As the next session has it, too.
        turn(&mut sandbox, "", &run("touch now"));
        assert_eq!(unseen(&mut sandbox)[0], "a.txt (1 line(s))", "{way:?}");
    }
}

/// A hook that commits by itself, as tools do.
#[test]
fn what_commits_by_itself_in_a_session_looks_at_nothing() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/a.txt", "one\n");
    commit_all(&sandbox.workspace());
    let hook =
        r#"{"hooks":{"AfterTool":[{"hooks":[{"type":"command","command":"git add -A && git commit -qm auto"}]}]}}"#;
    sandbox.write("home/.castor/settings.json", hook);
    turn(&mut sandbox, "", &write("a.txt", "evil\n"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
    turn(&mut sandbox, "", &write("b.txt", "evil\n"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))", "b.txt (1 line(s))"]);
}

/// Code of an agent's that a person runs in the sandbox writes for the agent.
#[test]
#[cfg(target_os = "linux")]
fn what_runs_beside_unseen_code_leaves_unseen_files() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &run("echo 'echo evil > made.txt; rm gen.sh' > gen.sh"));
    assert_eq!(castor(&mut sandbox, "exec -- sh gen.sh"), "");
    assert_eq!(unseen(&mut sandbox), ["made.txt (1 line(s))"]);
    castor(&mut sandbox, "looked made.txt");
    assert_eq!(castor(&mut sandbox, "exec -- touch mine.txt"), "");
    assert_eq!(unseen(&mut sandbox), Vec::<String>::new());
}

#[test]
fn a_flood_is_a_folder_and_hides_nothing() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("evil.txt", "evil\n"));
    turn(&mut sandbox, "", &run("mkdir d && cd d && for i in $(seq 1200); do echo $i > $i; done"));
    assert_eq!(unseen(&mut sandbox), ["d (a folder, as a whole)", "evil.txt (1 line(s))"]);
    assert!(castor(&mut sandbox, "looked d/7").contains("d/7"));
    assert_eq!(unseen(&mut sandbox), ["d (a folder, as a whole)", "evil.txt (1 line(s))"]);
    castor(&mut sandbox, "looked d");
    assert_eq!(unseen(&mut sandbox), ["evil.txt (1 line(s))"]);
}

#[test]
fn built_folders_are_unseen_from_the_first_command_on() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/.gitignore", "node_modules\n");
    sandbox.write("ws/node_modules/x/cli.js", "1\n");
    commit_all(&sandbox.workspace());
    turn(&mut sandbox, "", &write("a.txt", "one\n"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
    turn(&mut sandbox, "", &run("echo 2 > node_modules/x/cli.js"));
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))", "node_modules (a folder, as a whole)"]);
    _ = Command::new("rm").arg("-rf").arg(sandbox.workspace().join("node_modules")).status().unwrap();
    assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
}

/// A session over the wire whose first question gets this answer; later ones are none.
fn edits(sandbox: &mut Sandbox, answer: &str, between: impl Fn(&Sandbox)) -> usize {
    let answers =
        [write("a.txt", "one\n"), write("a.txt", "one\ntwo\n"), write("b.txt", "three\n"), "text \"Done.\"".into()];
    let lines: Vec<String> = answers.iter().map(|it| model::response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args = vec!["acp".into(), "--fake-responses".into(), script.into()];
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = json!([{ "type": "text", "text": "go" }]);
    client.request_as(json!("p"), "session/prompt", json!({ "sessionId": session, "prompt": prompt }));
    let (mut n_asked, mut seen) = (0, String::new());
    while let Some(it) = client.next().unwrap_or_else(|why| panic!("{why}: {seen}")).filter(|it| it["id"] != "p") {
        seen += &format!("{it}\n");
        if it["method"] == "session/request_permission" {
            n_asked += 1;
            let outcome = json!({ "outcome": { "outcome": "selected", "optionId": answer } });
            client.send(&json!({ "jsonrpc": "2.0", "id": it["id"], "result": outcome }));
        }
    }
    between(sandbox);
    client.end().unwrap();
    sandbox.args.clear();
    n_asked
}

/// Each yes to a diff is a look at that one, and no yes that is given in advance.
#[test]
fn only_a_yes_to_one_diff_is_a_look() {
    let both = &["a.txt (2 line(s))", "b.txt (1 line(s))"][..];
    for (answer, n_asked, left) in
        [("allow_once", 3, &[][..]), ("allow_session", 1, both), ("allow_always_save", 2, both)]
    {
        let mut sandbox = Sandbox::new();
        assert_eq!(edits(&mut sandbox, answer, |_| ()), n_asked, "{answer}");
        assert_eq!(unseen(&mut sandbox), left, "{answer}");
    }
}

/// Tools that commit on each save, or by a timer, do so while the session is open.
#[test]
fn what_commits_beside_an_open_session_looks_at_nothing() {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/x.txt", "mine\n");
    commit_all(&sandbox.workspace());
    edits(&mut sandbox, "allow_session", |it| {
        git(&it.workspace(), &["add", "-A"]);
        git(&it.workspace(), &["commit", "-qm", "saved by a timer"]);
    });
    assert_eq!(unseen(&mut sandbox), ["a.txt (2 line(s))", "b.txt (1 line(s))"]);
}

/// Where nobody can read what is printed: the device that forgets, a file, a pipe.
#[test]
fn a_diff_that_nobody_reads_is_no_look() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &write("a.txt", "one\n"));
    let file = fs::File::create(sandbox.home().join("out")).unwrap();
    for to in [Stdio::null(), Stdio::from(file), Stdio::piped()] {
        sandbox.args = vec!["diff".into()];
        let done = sandbox.command().stdin(Stdio::null()).stdout(to).spawn().unwrap().wait_with_output().unwrap();
        assert!(done.status.success());
        sandbox.args.clear();
        assert_eq!(unseen(&mut sandbox), ["a.txt (1 line(s))"]);
    }
}

/// A file that was looked at brings nothing in that was not.
#[test]
fn a_look_at_a_file_is_none_at_what_it_imports() {
    let mut sandbox = Sandbox::new();
    turn(&mut sandbox, "", &(write("AGENTS.md", "@docs/more.md\n") + " + " + &write("docs/more.md", "SMUGGLED\n")));
    castor(&mut sandbox, "looked AGENTS.md");
    assert_eq!(unseen(&mut sandbox), ["docs/more.md (1 line(s))"]);
    let told = turn(&mut sandbox, "", "text \"hi\"");
    assert!(told.contains("imports @docs/more.md, but that failed"), "{told}");
}

/// More files than any list holds, and a hook outside that waits for a moment in which something is forgotten.
/// `FLOOD=100001` writes more of them, which takes a minute.
#[test]
fn a_flood_of_files_makes_nothing_seen() {
    let n = std::env::var("FLOOD").unwrap_or("2001".to_owned());
    let mut sandbox = Sandbox::new();
    let hook = json!({"type": "command", "command": "touch $HOME/ran; cat evil.sh >/dev/null", "sandbox": false});
    let settings = json!({"hooks": {"AfterTool": [{"matcher": "run_shell_command", "hooks": [hook]}]}});
    turn(&mut sandbox, "", &write("evil.sh", "evil\n"));
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    turn(&mut sandbox, "", &run(&format!("mkdir many && cd many && seq {n} | split -a 5 -l 1 - f")));
    let left = unseen(&mut sandbox);
    assert!(left.contains(&"evil.sh (1 line(s))".to_owned()), "{left:?}");
    assert!(left.iter().any(|it| it.starts_with("many")), "{left:?}");
    turn(&mut sandbox, "", &run("true"));
    assert!(!sandbox.home().join("ran").exists());
}
