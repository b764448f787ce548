//! Session state beside kills and other processes: an acknowledged change is kept, and no writer loses another's.

use std::thread;

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

fn sandbox() -> Sandbox {
    let mut res = Sandbox::new();
    res.args.extend(["--model", "demo"].map(Into::into));
    res
}

fn begin(sandbox: &Sandbox) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

fn state(client: &mut Client, session: &str, params: Value) -> Value {
    let mut params = params;
    params["sessionId"] = json!(session);
    client.result("_castor/session/state", params).unwrap()["state"].take()
}

#[test]
fn acknowledged_changes_survive_kill_9() {
    let sandbox = sandbox();
    for round in 0..10 {
        let (mut client, session) = begin(&sandbox);
        let set = json!({ "set": { "a": round, "user:b": round, format!("app:k{round}"): round } });
        state(&mut client, &session, set);
        client.kill().unwrap();
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let place = json!({ "sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [] });
        client.result("session/load", place).unwrap();
        let found = state(&mut client, &session, json!({}));
        assert_eq!((&found["a"], &found["user:b"]), (&json!(round), &json!(round)));
        assert_eq!((0..=round).filter(|it| found[format!("app:k{it}")] == *it).count(), round + 1, "{found}");
        client.end().unwrap();
    }
}

/// Two processes with two sessions each, all at the same time.
#[test]
fn writers_lose_nothing() {
    let sandbox = sandbox();
    thread::scope(|scope| {
        for process in 0..2 {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let (mut client, first) = begin(sandbox);
                let second = client.new_session(&sandbox.workspace()).unwrap();
                for n in 0..20 {
                    // The next one does not wait for the answer.
                    let set = json!({ "sessionId": first, "set": { format!("app:p{process}_{n}"): n }, "get": [] });
                    client.request_as(json!(format!("s{n}")), "_castor/session/state", set);
                    state(&mut client, &second, json!({ "set": { format!("user:p{process}_{n}"): n }, "get": [] }));
                }
                state(&mut client, &first, json!({ "get": [] }));
                client.end().unwrap();
            });
        }
    });
    let (mut client, session) = begin(&sandbox);
    let found = state(&mut client, &session, json!({}));
    assert_eq!(found.as_object().unwrap().len(), 80, "{found}");
    client.end().unwrap();
}

/// What is too much is refused as a whole, with the reason, and what was there stays.
#[test]
fn caps_are_told_and_nothing_is_written() {
    let sandbox = sandbox();
    let (mut client, session) = begin(&sandbox);
    let mut refused = |key: &str, value: &str| {
        let set = json!({ key: value, "user:seen": true });
        let (answer, _) = client.call("_castor/session/state", json!({ "sessionId": session, "set": set })).unwrap();
        let told = |it: &str| answer["error"].pointer(it).and_then(Value::as_str).unwrap_or_default().to_owned();
        (told("/data/kind"), told("/message"))
    };
    let value = "x".repeat(60 << 10);
    for scope in ["app:", "user:", ""] {
        for n in 0..4 {
            assert_eq!(refused(&format!("{scope}k{n}"), &value).1, "", "{scope}{n}");
        }
        let (kind, why) = refused(&format!("{scope}k4"), &value);
        assert!(kind == "state" && why.contains("at most 262144; delete some first"), "{scope}: {why}");
    }
    let (kind, why) = refused("a", &"x".repeat(64 << 10));
    assert!(kind == "params" && why.contains("a: the value has 65538 bytes"), "{why}");
    assert_eq!(state(&mut client, &session, json!({})).as_object().unwrap().len(), 13);
    client.end().unwrap();
}
