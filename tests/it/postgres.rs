//! Sessions in a database: several castors on one store, which are killed, stopped and overtaken.

mod cost;
mod deaths;
mod lanes;

use std::{
    path::Path,
    process::{Command, Output},
    time::{Duration, Instant},
};

use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    kill9::{chunk, kill_on_store, script},
};

/// After a death the session can be had within this time.
const TAKEOVER: Duration = Duration::from_secs(5);

/// A schema of its own in the database of `CASTOR_TEST_POSTGRES`; `None`: there is none, which is said.
fn database() -> Option<String> {
    let Ok(base) = std::env::var("CASTOR_TEST_POSTGRES") else {
        eprintln!("skipped: CASTOR_TEST_POSTGRES names no database; .ci/postgres starts one");
        return None;
    };
    let schema = format!("w{}", uuid::Uuid::now_v7().simple());
    let url = format!("{base}?application_name={schema}&options=-c%20search_path%3D{schema}");
    sql(&url, &format!("create schema {schema}"));
    Some(url)
}

/// Says something that no castor would.
fn sql(url: &str, text: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(text).await.unwrap();
    });
}

fn sandbox(url: &str, answers: Vec<Vec<Value>>) -> Sandbox {
    let mut res = Sandbox::new();
    let file = res.write("answers.jsonl", &script(answers));
    let args = ["acp", "--approval-mode", "yolo", "--fake-responses"].map(Into::into);
    res.args = [&args[..], &[file.into()]].concat();
    res.env.push(("CASTOR_STORE".into(), url.into()));
    res
}

fn start(sandbox: &Sandbox) -> Client {
    let mut res = Client::start(sandbox);
    res.initialize(&json!({})).unwrap();
    res
}

fn says(text: &str) -> Vec<Value> {
    vec![chunk(json!({ "text": text }))]
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn load(client: &mut Client, session: &str, cwd: &Path) -> (Value, Vec<Value>) {
    client.call("session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []})).unwrap()
}

/// As soon as it can be had.
fn load_soon(client: &mut Client, session: &str, cwd: &Path) -> (Vec<Value>, Duration) {
    let start = Instant::now();
    loop {
        let (answer, told) = load(client, session, cwd);
        if answer.get("result").is_some() {
            return (told, start.elapsed());
        }
        assert!(start.elapsed() < WATCHDOG, "{answer}");
    }
}

#[test]
fn a_session_goes_on_in_another_castor_after_kill_9() {
    let Some(url) = database() else { return };
    let call = chunk(json!({"functionCall": {"name": "run_shell_command", "args": {"command": "sleep 60"}}}));
    let first = sandbox(&url, vec![vec![chunk(json!({"text": "I wait. "})), call]]);
    let second = sandbox(&url, vec![says("back")]);
    let mut killed = start(&first);
    let session = killed.new_session(&first.workspace()).unwrap();
    killed.request_as(json!("p"), "session/prompt", prompt(&session, "work"));
    while !killed.next().unwrap().unwrap().to_string().contains("in_progress") {}
    let mut client = start(&second);
    // It lives: the other one learns who has it, and lists it.
    let (refused, _) = load(&mut client, &session, &second.workspace());
    let why = refused["error"]["message"].to_string();
    assert!(why.contains(&format!("process {} on ", killed.pid())), "{refused}");
    let listed = client.result("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"][0]["sessionId"], session.as_str(), "{listed}");
    let pid = killed.pid();
    killed.kill().unwrap();
    let (replay, took) = load_soon(&mut client, &session, &second.workspace());
    assert!(took < TAKEOVER, "{took:?}");
    let (answer, told) = client.call("session/prompt", prompt(&session, "go on")).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let told = json!([replay, told]).to_string();
    for expected in ["I wait. ", "\"work\"", "\"failed\"", &format!("This session was open in process {pid}")] {
        assert!(told.contains(expected), "no {expected} in {told}");
    }
    client.end().unwrap();
    // Let go of at the end: nobody waits for its death.
    let third = sandbox(&url, vec![]);
    let mut client = start(&third);
    let (answer, _) = load(&mut client, &session, &third.workspace());
    assert!(answer.get("result").is_some(), "{answer}");
    client.end().unwrap();
}

/// It is stopped for so long that the other one takes it for dead.
#[test]
fn a_castor_that_lost_its_session_says_who_has_it() {
    let Some(url) = database() else { return };
    let first = sandbox(&url, vec![says("first"), says("never logged"), says("again")]);
    let second = sandbox(&url, vec![says("second")]);
    let mut old = start(&first);
    let session = old.new_session(&first.workspace()).unwrap();
    old.call("session/prompt", prompt(&session, "one")).unwrap();
    kill(old.pid(), Signal::SIGSTOP).unwrap();
    let mut new = start(&second);
    load_soon(&mut new, &session, &second.workspace());
    kill(old.pid(), Signal::SIGCONT).unwrap();
    let (answer, told) = old.call("session/prompt", prompt(&session, "two")).unwrap();
    let why = answer["error"]["message"].as_str().unwrap_or_default();
    let expected = format!("the session was taken over by another castor (process {} on ", new.pid());
    assert!(why.contains(&expected), "{answer}");
    assert!(!json!(told).to_string().contains("never logged"), "{told:?}");
    // It is closed here, and stays so until the other one lets go.
    let (answer, _) = old.call("session/prompt", prompt(&session, "three")).unwrap();
    assert!(answer["error"]["message"].to_string().contains("Session not found"), "{answer}");
    let (answer, _) = new.call("session/prompt", prompt(&session, "mine")).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    new.end().unwrap();
    let (answer, replay) = load(&mut old, &session, &first.workspace());
    assert!(answer.get("result").is_some(), "{answer}");
    let replay = json!(replay).to_string();
    assert!(replay.contains("mine") && replay.contains("second") && !replay.contains("\"two\""), "{replay}");
    old.end().unwrap();
}

#[test]
fn a_turn_survives_cut_connections() {
    let Some(url) = database() else { return };
    let call = |n: usize| {
        vec![chunk(
            json!({"functionCall": {"name": "run_shell_command", "args": {"command": format!("sleep 0.2; echo {n}")}}}),
        )]
    };
    let answers = (0..10).map(call).chain([says("done")]).collect();
    let sandbox = sandbox(&url, answers);
    let mut client = start(&sandbox);
    let session = client.new_session(&sandbox.workspace()).unwrap();
    client.request_as(json!("p"), "session/prompt", prompt(&session, "work"));
    let mut told = Vec::new();
    loop {
        let message = client.next().unwrap().unwrap();
        if message["id"] == "p" && message.get("method").is_none() {
            assert_eq!(message["result"]["stopReason"], "end_turn", "{message}");
            break;
        }
        if message.to_string().contains("in_progress") {
            let others = "application_name = current_schema() and pid <> pg_backend_pid()";
            sql(&url, &format!("select pg_terminate_backend(pid) from pg_stat_activity where {others}"));
        }
        told.push(message);
    }
    let (_, replay) = {
        let mut other = Sandbox::new();
        other.env.clone_from(&sandbox.env);
        client.end().unwrap();
        let mut client = start(&other);
        let res = load(&mut client, &session, &other.workspace());
        client.end().unwrap();
        res
    };
    let calls = |all: &[Value]| {
        let ended = all.iter().map(|it| &it["params"]["update"]).filter(|it| it["status"] == "completed");
        ended.map(|it| it["toolCallId"].to_string()).collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!((calls(&told).len(), calls(&told)), (10, calls(&replay)), "once each, and none is lost");
}

/// A castor that only reads is told what happens, by notifications of the database.
#[test]
fn another_castor_follows_a_session() {
    let Some(url) = database() else { return };
    let first = sandbox(&url, vec![says("one"), says("two")]);
    let second = sandbox(&url, vec![]);
    let (mut writer, mut reader) = (start(&first), start(&second));
    let session = writer.new_session(&first.workspace()).unwrap();
    writer.call("session/prompt", prompt(&session, "a")).unwrap();
    let (answer, past) =
        reader.call("_castor/session/subscribe", json!({"sessionId": session, "replay": true})).unwrap();
    assert!(answer.get("result").is_some(), "{answer}");
    let mut seen = json!(past).to_string() + &answer.to_string();
    writer.call("session/prompt", prompt(&session, "b")).unwrap();
    while !seen.contains("\"two\"") {
        seen += &reader.next().unwrap().unwrap().to_string();
    }
    assert!(seen.contains("\"one\""), "{seen}");
    writer.end().unwrap();
    reader.kill().unwrap();
}

#[test]
fn shown_updates_survive_kill_9_in_a_database() {
    if let Some(url) = database() {
        kill_on_store(12, &url);
    }
}

#[test]
fn sessions_move_between_files_and_a_database() {
    let Some(url) = database() else { return };
    let mut sandbox = sandbox(&url, vec![says("kept")]);
    let store = sandbox.env.pop().unwrap();
    let mut client = start(&sandbox);
    let session = client.new_session(&sandbox.workspace()).unwrap();
    client.call("session/prompt", prompt(&session, "remember this")).unwrap();
    client.end().unwrap();
    let without = castor(&sandbox, &["sessions", "copy", "--all", "--to", "postgres"]);
    assert!(!without.status.success() && text(&without).contains("set CASTOR_STORE"), "{without:?}");
    sandbox.env.push(store);
    assert!(text(&castor(&sandbox, &["sessions", "list"])).contains("No session of"), "the database has none yet");
    let there = castor(&sandbox, &["sessions", "copy", "--all", "--to", "postgres"]);
    assert_eq!(text(&there), format!("Copied session {session}\n"));
    assert!(text(&castor(&sandbox, &["sessions", "list", "--search", "remember"])).contains("remember this"));
    assert!(text(&castor(&sandbox, &["sessions", "export", &session])).contains("kept"));
    assert!(castor(&sandbox, &["sessions", "delete", "--yes", &session]).status.success());
    assert!(text(&castor(&sandbox, &["sessions", "copy", &session, "--to", "postgres"])).starts_with("Copied"));
    let file = sandbox.home().join(".castor/sessions").join(format!("{session}.jsonl"));
    let log = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let back = castor(&sandbox, &["sessions", "copy", &session, "--to", "files"]);
    assert_eq!((text(&back), std::fs::read(&file).unwrap()), (format!("Copied session {session}\n"), log));
}

#[test]
fn a_database_that_cannot_be_used_is_named() {
    let mut sandbox = Sandbox::new();
    let secret = "postgres://u:secret@127.0.0.1:1/d";
    for (args, env, expected) in [
        (
            vec!["acp", "--store", "mysql://u:secret@h/d"],
            None,
            "castor: cannot serve: --store: a session store is files, or",
        ),
        (vec!["acp"], Some("secret"), "castor: cannot serve: CASTOR_STORE: a session store is files, or"),
        (vec!["acp"], Some(secret), "castor: cannot serve: the session store cannot be reached"),
        (vec!["sessions", "list"], Some(secret), "castor: the session store cannot be reached"),
    ] {
        sandbox.env.retain(|it| it.0 != "CASTOR_STORE");
        sandbox.env.extend(env.map(|it| ("CASTOR_STORE".to_owned(), it.to_owned())));
        let out = castor(&sandbox, &args);
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(!out.status.success() && said.contains(expected) && !said.contains("secret"), "{args:?}: {said}");
    }
}

fn castor(sandbox: &Sandbox, args: &[&str]) -> Output {
    let command = sandbox.command();
    let program = command.get_program().to_owned();
    let mut res = Command::new(program);
    res.args(args).current_dir(sandbox.workspace()).env_clear();
    res.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    res.stdin(std::process::Stdio::null()).output().unwrap()
}

fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}
