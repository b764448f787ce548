//! A session that the database holds up: nothing of it is shown, and all other sessions go on.

use std::{sync::mpsc, thread};

use serde_json::{Value, json};

use super::{database, load, prompt, sandbox, says, sql, start};
use crate::{client::Client, kill9::chunk};

/// Another transaction has the row of a session until this is dropped.
struct RowLock {
    release: mpsc::Sender<()>,
    thread: Option<thread::JoinHandle<()>>,
}

impl RowLock {
    fn new(url: &str, session: &str) -> Self {
        let (release, released) = mpsc::channel::<()>();
        let (tell, locked) = mpsc::channel();
        let (url, text) = (url.to_owned(), format!("select from castor_sessions where id = '{session}' for update"));
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let (mut client, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
                tokio::spawn(connection);
                let work = client.transaction().await.unwrap();
                work.batch_execute(&text).await.unwrap();
                tell.send(()).unwrap();
                _ = tokio::task::block_in_place(|| released.recv());
                work.commit().await.unwrap();
            });
        });
        locked.recv().unwrap();
        Self { release, thread: Some(thread) }
    }
}

impl Drop for RowLock {
    fn drop(&mut self) {
        _ = self.release.send(());
        _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

/// Reads up to the answer to a request; what came before it.
fn answer_to(client: &mut Client, id: &str) -> (Value, Vec<Value>) {
    let mut before = Vec::new();
    loop {
        let message = client.next().unwrap().unwrap();
        if message["id"] == id && message.get("method").is_none() {
            return (message, before);
        }
        before.push(message);
    }
}

#[test]
fn a_session_that_is_held_up_holds_up_no_other_one() {
    let Some(url) = database() else { return };
    let sandbox = sandbox(&url, ["one", "two", "three", "four", "five", "six"].map(says).to_vec());
    let mut client = start(&sandbox);
    let cwd = sandbox.workspace();
    let [slow, quick, past] = [(); 3].map(|()| client.new_session(&cwd).unwrap());
    client.call("session/prompt", prompt(&past, "past")).unwrap();
    client.call("session/close", json!({ "sessionId": past })).unwrap();
    client.call("session/prompt", prompt(&slow, "first")).unwrap();
    let lock = RowLock::new(&url, &slow);
    client.request_as(json!("slow"), "session/prompt", prompt(&slow, "second"));
    let mut seen = Vec::new();
    let mut call = |client: &mut Client, method: &str, params: Value| {
        let (answer, before) = client.call(method, params).unwrap();
        assert!(answer.get("result").is_some(), "{method}: {answer}");
        seen.extend(before);
        answer["result"].clone()
    };
    assert_eq!(call(&mut client, "session/prompt", prompt(&quick, "go"))["stopReason"], "end_turn");
    let place = |id: &str| json!({"sessionId": id, "cwd": cwd, "mcpServers": []});
    call(&mut client, "session/load", place(&past));
    let fork = call(&mut client, "session/fork", place(&quick));
    call(&mut client, "session/close", json!({"sessionId": fork["sessionId"]}));
    let new = call(&mut client, "session/new", json!({"cwd": cwd, "mcpServers": []}));
    let new = new["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(call(&mut client, "session/prompt", prompt(&new, "go"))["stopReason"], "end_turn");
    call(&mut client, "session/delete", json!({ "sessionId": new }));
    let of_slow: Vec<&Value> = seen.iter().filter(|it| it["params"]["sessionId"] == slow.as_str()).collect();
    assert!(of_slow.is_empty(), "shown before it was stored: {of_slow:?}");
    drop(lock);
    let (answer, told) = answer_to(&mut client, "slow");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(json!(told).to_string().contains("agent_message_chunk"), "{told:?}");
    client.end().unwrap();
}

#[test]
fn titles_and_the_archive_hold_up_no_other_session() {
    let Some(url) = database() else { return };
    let sandbox = sandbox(&url, ["one", "two", "three"].map(says).to_vec());
    let mut client = start(&sandbox);
    let cwd = sandbox.workspace();
    let [open, past, other] = [(); 3].map(|()| client.new_session(&cwd).unwrap());
    for it in [&open, &past] {
        client.call("session/prompt", prompt(it, "first")).unwrap();
    }
    client.call("session/close", json!({ "sessionId": past })).unwrap();
    let locks = [&open, &past].map(|it| RowLock::new(&url, it));
    for (id, method, params) in [
        ("title", "session/set_title", json!({"sessionId": open, "title": "Open"})),
        ("retitle", "session/set_title", json!({"sessionId": past, "title": "Past"})),
        ("archive", "session/archive", json!({ "sessionId": past })),
        ("status", "session/status", json!({ "sessionId": past })),
        ("unarchive", "session/unarchive", json!({ "sessionId": past })),
    ] {
        client.request_as(json!(id), method, params);
    }
    let (answer, before) = client.call("session/prompt", prompt(&other, "go")).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(before.iter().all(|it| it.get("result").is_none() && it.get("error").is_none()), "{before:?}");
    drop(locks);
    let mut answered = Vec::new();
    while answered.len() < 5 {
        let message = client.next().unwrap().unwrap();
        if message.get("method").is_none() {
            assert!(message.get("result").is_some(), "{message}");
            answered.push(message["id"].as_str().unwrap().to_owned());
        }
    }
    answered.retain(|it| it != "title");
    assert_eq!(answered, ["retitle", "archive", "status", "unarchive"]);
    let listed = client.result("session/list", json!({})).unwrap();
    let titles: Vec<&str> =
        listed["sessions"].as_array().unwrap().iter().filter_map(|it| it["title"].as_str()).collect();
    assert!(titles.contains(&"Open") && titles.contains(&"Past"), "{listed}");
    client.end().unwrap();
}

/// What is asked of a session that is being closed and opened again comes after both, in the order of the requests.
#[test]
fn requests_behind_a_close_and_a_load_wait_for_them() {
    let Some(url) = database() else { return };
    let sandbox = sandbox(&url, ["one", "two", "three", "four"].map(says).to_vec());
    let mut client = start(&sandbox);
    let cwd = sandbox.workspace();
    let [session, other] = [(); 2].map(|()| client.new_session(&cwd).unwrap());
    client.call("session/prompt", prompt(&session, "first")).unwrap();
    let lock = RowLock::new(&url, &session);
    client.request_as(json!("prompt"), "session/prompt", prompt(&session, "second"));
    let place = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
    for (id, method, params) in [
        ("close", "session/close", json!({ "sessionId": session })),
        ("gone", "session/set_mode", json!({"sessionId": session, "modeId": "plan"})),
        ("load", "session/load", place.clone()),
        ("again", "session/prompt", prompt(&session, "third")),
    ] {
        client.request_as(json!(id), method, params);
    }
    let (answer, before) = client.call("session/prompt", prompt(&other, "go")).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    assert!(before.iter().all(|it| it.get("result").is_none() && it.get("error").is_none()), "{before:?}");
    drop(lock);
    let mut ids = Vec::new();
    while ids.last().is_none_or(|it| it != "again") {
        let message = client.next().unwrap().unwrap();
        if message.get("method").is_none() {
            let is_well = message["id"] == "gone" && message["error"].to_string().contains("not found")
                || message.get("result").is_some();
            assert!(is_well, "{message}");
            ids.push(message["id"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(ids, ["prompt", "close", "gone", "load", "again"]);
    let (answer, replay) = load(&mut client, &session, &cwd);
    let replay = json!(replay).to_string();
    assert!(answer.get("result").is_some() && replay.contains("third"), "{answer} {replay}");
    client.end().unwrap();
}

/// Each append takes long here. A turn waits for its prompt, for the first call, and for all that it shows later.
#[test]
fn steps_that_only_look_do_not_wait_for_the_store() {
    let Some(url) = database() else { return };
    let read = || vec![chunk(json!({"functionCall": {"name": "read_file", "args": {"file_path": "notes.txt"}}}))];
    let sandbox = sandbox(&url, vec![read(), read(), says("done")]);
    sandbox.write("ws/notes.txt", "one\ntwo\n");
    let mut client = start(&sandbox);
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let wait = "begin perform pg_sleep(0.5); return null; end";
    sql(&url, &format!("create function wait() returns trigger language plpgsql as '{wait}'"));
    sql(&url, "create trigger wait after insert on castor_entries for each statement execute function wait()");
    let (answer, told) = client.call("session/prompt", prompt(&session, "read it twice")).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let told = json!(told).to_string();
    assert!(told.matches("\"completed\"").count() == 2 && told.contains("done"), "{told}");
    let n_appends = "(select count(distinct xmin::text) from castor_entries)";
    // One was that of session/new.
    sql(&url, &format!("do $$ begin assert {n_appends} = 4, {n_appends}; end $$"));
    client.end().unwrap();
}
