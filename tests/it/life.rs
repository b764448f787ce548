//! Sessions for life: nothing is lost, nothing is written by who only looks, one process at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    time::SystemTime,
};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

const N_PROCESSES: usize = 20;
const N_EACH: usize = 50;

/// A thousand sessions within a minute, each created and asked in one process and loaded in the next.
#[test]
fn a_thousand_create_and_load_cycles_lose_nothing() {
    let sandbox = scripted(N_EACH);
    let mut made: BTreeMap<String, String> = BTreeMap::new();
    let mut fresh: Vec<String> = Vec::new();
    for process in 0..=N_PROCESSES {
        let before = files(&sandbox);
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        for id in fresh.drain(..) {
            load(&sandbox, &mut client, &id, &made[&id]);
        }
        assert_eq!(files(&sandbox), before, "loading changed a log");
        if process == N_PROCESSES {
            break;
        }
        for number in 0..N_EACH {
            let (id, text) =
                (client.new_session(&sandbox.workspace()).unwrap(), format!("process {process}, {number}"));
            client.result("session/prompt", prompt(&id, &text)).unwrap();
            made.insert(id.clone(), text);
            fresh.push(id);
        }
        client.end().unwrap();
    }
    assert_eq!(made.len(), N_PROCESSES * N_EACH);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let listed = list(&mut client, || ());
    assert_eq!(listed.len(), made.len());
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), made.into_keys().collect());
}

/// Pages follow each other whatever happens between them: nothing twice, and nothing left out that stayed as it was.
#[test]
fn pages_stay_in_step_while_sessions_come_and_go() {
    let sandbox = scripted(1);
    for n in 0..250 {
        log(&sandbox, &format!("s{n:03}"), 1_000_000 - n);
    }
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let mut n_pages = 0;
    let listed = list(&mut client, || {
        n_pages += 1;
        // One of the page that was read goes, a newer one comes, and one that was not read yet becomes the newest.
        _ = fs::remove_file(path(&sandbox, &format!("s{:03}", n_pages * 10)));
        log(&sandbox, &format!("new{n_pages}"), 2_000_000 + n_pages);
        log(&sandbox, &format!("s{:03}", 240 + n_pages), 2_000_100 + n_pages);
    });
    let once: BTreeSet<&String> = listed.iter().collect();
    assert_eq!(once.len(), listed.len(), "twice");
    assert_eq!(n_pages, 3);
    let expected = (0..250).map(|n| format!("s{n:03}")).filter(|it| *it != "s241" && *it != "s242");
    assert_eq!(listed, expected.collect::<Vec<_>>());
    let (bad, _) = client.call("session/list", json!({"cursor": "100"})).unwrap();
    assert_eq!(bad["error"]["code"], -32602);
}

/// Who sends everything and closes gets its answers all the same.
#[test]
fn a_list_is_answered_at_the_end_of_input() {
    let sandbox = scripted(1);
    log(&sandbox, "s1", 5);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    client.request_as(json!("last"), "session/list", json!({}));
    client.close_stdin();
    let answer = client.next().unwrap().unwrap();
    assert_eq!(answer["result"]["sessions"][0]["sessionId"], "s1", "{answer}");
    client.end().unwrap();
}

#[test]
fn second_process_learns_the_session_holder() {
    let sandbox = scripted(1);
    let mut first = Client::start(&sandbox);
    first.initialize(&json!({})).unwrap();
    let id = first.new_session(&sandbox.workspace()).unwrap();
    first.result("session/prompt", prompt(&id, "mine")).unwrap();
    let mut second = Client::start(&sandbox);
    second.initialize(&json!({})).unwrap();
    let params = json!({"sessionId": id, "cwd": sandbox.workspace(), "mcpServers": []});
    let (refused, _) = second.call("session/load", params.clone()).unwrap();
    let (message, data) = (refused["error"]["message"].as_str().unwrap(), &refused["error"]["data"]);
    assert!(
        message.starts_with("session ") && message.contains("for it)") && message.contains("close it there first"),
        "{refused}"
    );
    assert_eq!((&data["kind"], &data["holder"]["client"]), (&json!("locked"), &json!("it")), "{refused}");
    assert!(data["holder"]["pid"].is_u64());
    first.kill().unwrap();
    let (loaded, _) = second.call("session/load", params).unwrap();
    assert!(loaded.get("result").is_some(), "the dead hold nothing: {loaded}");
}

#[test]
fn old_sessions_go_after_the_first_session_and_open_ones_stay() {
    let sandbox = scripted(1);
    let days = |n: u64| SystemTime::now() - std::time::Duration::from_secs(n * 24 * 3600);
    for (id, age) in [("old", 40), ("young", 20)] {
        log(&sandbox, id, 1);
        let file = fs::File::open(path(&sandbox, id)).unwrap();
        file.set_modified(days(age)).unwrap();
        sandbox.write(format!("home/.castor/tmp/{id}/out.txt"), "x");
    }
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    assert!(path(&sandbox, "old").exists(), "nothing goes before there is a session");
    client.new_session(&sandbox.workspace()).unwrap();
    // The sweep has no answer to wait for; each question gives it time.
    let scratch = sandbox.home().join(".castor/tmp/old");
    let is_gone = |client: &mut Client| {
        client.result("session/list", json!({})).unwrap();
        !path(&sandbox, "old").exists() && !scratch.exists()
    };
    assert!((0..2000).any(|_| is_gone(&mut client)));
    assert!(path(&sandbox, "young").exists() && sandbox.home().join(".castor/tmp/young").exists());
}

fn load(sandbox: &Sandbox, client: &mut Client, id: &str, text: &str) {
    let params = json!({"sessionId": id, "cwd": sandbox.workspace(), "mcpServers": []});
    let (response, replayed) = client.call("session/load", params).unwrap();
    assert!(response.get("result").is_some(), "{response}");
    let said = |kind: &str| -> String {
        let updates = replayed.iter().map(|it| &it["params"]["update"]).filter(|it| it["sessionUpdate"] == kind);
        updates.filter_map(|it| it["content"]["text"].as_str()).collect()
    };
    assert_eq!((said("user_message_chunk").as_str(), said("agent_message_chunk").as_str()), (text, "fine"));
}

/// All pages; `between` happens after each of them.
fn list(client: &mut Client, mut between: impl FnMut()) -> Vec<String> {
    let (mut res, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let params = if cursor.is_null() { json!({}) } else { json!({"cursor": cursor}) };
        let page = client.result("session/list", params).unwrap();
        let ids = page["sessions"].as_array().unwrap().iter().map(|it| it["sessionId"].as_str().unwrap().to_owned());
        res.extend(ids);
        between();
        match page.get("nextCursor").filter(|it| it.is_string()) {
            Some(it) => cursor = it.clone(),
            None => return res,
        }
    }
}

/// Every log, with its time.
fn files(sandbox: &Sandbox) -> BTreeMap<PathBuf, (SystemTime, Vec<u8>)> {
    let folder = sandbox.home().join(".castor/sessions");
    let paths = fs::read_dir(folder).into_iter().flatten().map(|it| it.unwrap().path());
    let logs = paths.filter(|it| it.extension().is_some_and(|it| it == "jsonl"));
    logs.map(|it| (it.clone(), (fs::metadata(&it).unwrap().modified().unwrap(), fs::read(&it).unwrap()))).collect()
}

fn path(sandbox: &Sandbox, id: &str) -> PathBuf {
    sandbox.home().join(format!(".castor/sessions/{id}.jsonl"))
}

/// A log in which something was asked, last changed `s` seconds before now, counted down from a far number.
fn log(sandbox: &Sandbox, id: &str, s: u64) {
    let cwd = sandbox.workspace();
    let lines = [
        json!({"at": 1, "fact": "created", "version": 1, "castor": "0", "session": id, "cwd": cwd, "roots": [cwd],
            "mode": "default", "model": "m"}),
        json!({"at": 2, "fact": "event", "event": {"id": "s-0", "streamId": "s", "timestamp": 2, "type": "message",
            "role": "user", "messageId": "m1", "content": [{"type": "text", "text": "hello"}]}}),
    ];
    let text: String = lines.iter().map(|it| format!("{it}\n")).collect();
    let path = sandbox.write(format!("home/.castor/sessions/{id}.jsonl"), &text);
    let now = SystemTime::now() - std::time::Duration::from_secs(3_000_000 - s);
    fs::File::open(path).unwrap().set_modified(now).unwrap();
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// A sandbox whose model says "fine" so many times.
fn scripted(n: usize) -> Sandbox {
    let mut sandbox = Sandbox::new();
    let chunk =
        json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "fine"}]}, "finishReason": "STOP"}]});
    let line = format!("{}\n", json!({"method": "generateContentStream", "response": [chunk]}));
    let script = sandbox.write("script.jsonl", &line.repeat(n));
    sandbox.args = vec!["acp".into(), "--fake-responses".into(), script.into()];
    sandbox
}
