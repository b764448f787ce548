//! A folder beyond the limits of checkpoints: what castor's own tools write there is saved all the same.

use std::{fs, time::Duration};

use serde_json::{Value, json};

use super::{Agent, write};
use crate::client::{Client, Next, Sandbox};

/// A loaded machine looks at as many files for minutes.
const PATIENCE: Duration = Duration::from_secs(600);
/// The limit and one more; hard links of a few files, since they are made quickly.
const FOLDERS: usize = 4;
const FILES: usize = 50_001;

fn large_folder(sandbox: &Sandbox) {
    for folder in 0..FOLDERS {
        let first = sandbox.write(format!("ws/many/{folder}/0"), "");
        (1..FILES).for_each(|n| fs::hard_link(&first, first.with_file_name(n.to_string())).unwrap());
    }
}

/// The answer, and what came before.
fn call(client: &mut Client, method: &str, params: Value) -> (Value, Vec<Value>) {
    client.request_as(json!(method), method, params);
    let mut told = Vec::new();
    loop {
        match client.next_within(PATIENCE).unwrap() {
            Next::Message(it) if it["id"] == method => return (it, told),
            Next::Message(it) => told.push(it),
            Next::Nothing | Next::End => panic!("no answer to {method}: {told:?}"),
        }
    }
}

/// The user hears of the limit before the first edit, and the edit is taken back all the same.
#[test]
fn what_a_file_tool_writes_beyond_the_limit_is_saved_and_the_limit_is_said_before() {
    let mut sandbox = Sandbox::new();
    large_folder(&sandbox);
    sandbox.write("ws/zz/kept.txt", "before\n");
    let calls = write("zz/kept.txt", "after\n") + " + " + &write("zz/new.txt", "new\n");
    let mut agent = Agent::start(&mut sandbox, &[&calls, r#"text "Done.""#]);
    let params = agent.params("go");
    let (answer, told) = call(&mut agent.client, "session/prompt", params);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let updates: Vec<_> = told.iter().map(|it| &it["params"]["update"]).collect();
    let said = |it: &str| {
        updates.iter().position(|update| update["content"]["text"].as_str().is_some_and(|text| text.contains(it)))
    };
    let limit = said("has more than 200,000 files or 2 GiB").expect("the limit is said");
    let is_begun = |it: &&Value| it["status"] == "in_progress" || it["status"] == "completed";
    let edit = updates.iter().position(is_begun).expect("an edit began");
    assert!(limit < edit, "{updates:?}");
    let at = |it: &str| sandbox.workspace().join("zz").join(it);
    assert_eq!((fs::read_to_string(at("kept.txt")).unwrap(), at("new.txt").exists()), ("after\n".to_owned(), true));
    let (all, _) = call(&mut agent.client, "_castor/session/checkpoints", json!({"sessionId": agent.session}));
    let first = &all["result"]["checkpoints"][0]["id"];
    let params = json!({"sessionId": agent.session, "checkpointId": first, "what": "files", "onConflict": "fail"});
    let (answer, _) = call(&mut agent.client, "_castor/session/rewind", params);
    let n = |it: &str| answer["result"][it].as_array().map_or(0, Vec::len);
    assert_eq!((n("restored"), n("conflicts")), (2, 0), "{answer}");
    assert_eq!((fs::read_to_string(at("kept.txt")).unwrap(), at("new.txt").exists()), ("before\n".to_owned(), false));
}
