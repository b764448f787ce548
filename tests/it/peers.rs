//! Other agents that are killed, or are castor itself, or lose castor.

use std::{fs, path::Path, process::Stdio, time::Instant};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    conversation::model::response,
    watched_castor::WatchedCastor,
};

fn script(sandbox: &Sandbox, name: &str, answers: &[&str]) -> String {
    let lines = answers.iter().map(|it| response(it).unwrap().to_string() + "\n").collect::<String>();
    sandbox.write(name, &lines).display().to_string()
}

/// The test's own small agent; its arguments have the sandbox's folder, by which its processes are found.
fn own_agent(sandbox: &Sandbox) -> String {
    let program = std::env::current_exe().unwrap();
    let args = json!(["--exact", "acp_agent::serve_acp", "--nocapture", "--quiet", sandbox.home()]);
    let head = format!("command: {}\nargs: {args}\nenv: {{ACP_AGENT: x}}", program.display());
    format!("---\nkind: acp\nname: peer\ndescription: d\n{head}\n---\n")
}

/// A session in which the model gives `prompt` to the agent of `file`.
fn started(sandbox: &mut Sandbox, file: &str, prompt: &str) -> Client {
    sandbox.write("home/.castor/agents/peer.md", file);
    let call = format!("call invoke_agent {}", json!({"agent_name": "peer", "prompt": prompt}));
    let outer = script(sandbox, "outer.jsonl", &[&call, "text \"Done.\""]);
    sandbox.args.extend(["--fake-responses".into(), outer.into(), "--approval-mode".into(), "yolo".into()]);
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("p"), "session/prompt", params);
    client
}

fn until(client: &mut Client, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut res = Vec::new();
    while !res.last().is_some_and(&is_last) {
        res.push(client.next().unwrap().expect("more was to come"));
    }
    res
}

/// What the call came to.
fn outcome(client: &mut Client) -> String {
    let told = until(client, |it| it["id"] == "p");
    let mut updates = told.iter().map(|it| &it["params"]["update"]);
    let ended = updates.rfind(|it| it["status"] == "completed" || it["status"] == "failed");
    ended.expect("the call has an end").to_string()
}

/// Its files and commands go through the one that started it, which asks nobody here; it starts no sandbox of its own.
#[test]
fn castor_is_an_agent_of_castor() {
    let mut sandbox = Sandbox::new();
    let answers = ["call write_file {\"file_path\":\"made.txt\",\"content\":\"x\"}", "text \"I made it.\""];
    let inner = script(&sandbox, "ws/inner.jsonl", &answers);
    let castor = WatchedCastor::agent_in(&sandbox.workspace());
    let program = castor.agent();
    let line = format!("CASTOR_HOME=\"$TMPDIR/castor\" exec '{}' acp --fake-responses {inner}", program.display());
    let file = format!(
        "---\nkind: acp\nname: peer\ndescription: d\ncommand: sh\nargs: {}\nnetwork: false\n---\n",
        json!(["-c", line])
    );
    let mut client = started(&mut sandbox, &file, "Make it.");
    let ended = outcome(&mut client);
    assert!(ended.contains("I made it.") && ended.contains("\"status\":\"completed\""), "{ended}");
    assert_eq!(fs::read_to_string(sandbox.workspace().join("made.txt")).unwrap(), "x");
    client.end().unwrap();
    // Those of both castors.
    castor.assert_checks([4, 5]);
}

/// The agent holds its client to the protocol, and `castor run` is one.
#[test]
fn castor_run_drives_another_agent() {
    let mut sandbox = Sandbox::new();
    let program = std::env::current_exe().unwrap();
    let agent = format!("{} --exact acp_agent::serve_acp --nocapture --quiet", program.display());
    sandbox.env.push(("ACP_AGENT".into(), "x".into()));
    sandbox.args = ["run", "--agent", &agent, "plan One step\nmay make\nsay It is done."].map(Into::into).to_vec();
    let output = sandbox.command().stdin(Stdio::null()).output().unwrap();
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
    // Nobody is there to be asked.
    assert!(said.contains("may: {\"outcome\":{") && said.contains("It is done."), "{said}");
}

/// What it wrote by itself until then is undone, as soon as its process is gone.
#[test]
fn a_cancelled_agent_is_undone() {
    let mut sandbox = Sandbox::new();
    let (file, made) = (own_agent(&sandbox), sandbox.workspace().join("made.txt"));
    let mut client = started(&mut sandbox, &file, &format!("write {} x\ntool Wait\nhang", made.display()));
    let told = until(&mut client, is_at_work);
    let session = told.iter().find_map(|it| it["params"]["sessionId"].as_str()).unwrap().to_owned();
    client.notify("session/cancel", json!({"sessionId": session}));
    until(&mut client, |it| it["id"] == "p");
    assert!(made.exists());
    let start = Instant::now();
    while made.exists() {
        assert!(start.elapsed() < WATCHDOG, "it is not undone");
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/undo"}]});
        client.result("session/prompt", prompt).unwrap();
    }
    client.end().unwrap();
}

/// Processes with this text in their command line.
fn processes(text: &str) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let says = |pid: &i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).into_owned();
        line.contains("acp_agent::serve_acp") && line.contains(text) && !line.contains("__castor-sandbox")
    };
    pids.filter(says).map(Pid::from_raw).collect()
}

fn is_at_work(it: &Value) -> bool {
    it["params"]["update"].to_string().contains("reported: Wait")
}

fn home(sandbox: &Sandbox) -> String {
    Path::new(&sandbox.home()).display().to_string()
}

#[test]
fn an_agent_that_is_killed_is_a_failed_call() {
    let mut sandbox = Sandbox::new();
    let file = own_agent(&sandbox);
    let mut client = started(&mut sandbox, &file, "tool Wait\nhang");
    until(&mut client, is_at_work);
    processes(&home(&sandbox)).into_iter().for_each(|it| kill(it, Signal::SIGKILL).unwrap());
    let ended = outcome(&mut client);
    assert!(ended.contains("ended before its work") && ended.contains("\"status\":\"failed\""), "{ended}");
    client.end().unwrap();
}

#[test]
fn a_castor_that_is_killed_leaves_no_agent() {
    let mut sandbox = Sandbox::new();
    let file = own_agent(&sandbox);
    let mut client = started(&mut sandbox, &file, "child\ntool Wait\nhang");
    until(&mut client, is_at_work);
    assert!(!processes(&home(&sandbox)).is_empty());
    client.kill().unwrap();
    let start = Instant::now();
    while !processes(&home(&sandbox)).is_empty() {
        assert!(start.elapsed() < WATCHDOG, "the agent goes on without castor");
        std::thread::yield_now();
    }
}
