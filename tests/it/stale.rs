//! A file that changes while the user looks at an edit of it: the edit is not made, and nothing is lost.

use std::fs;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    conversation::model::response,
};

const FILE: &str = "ws/a.txt";

/// The one call of the model's, which is allowed once somebody else has done `meanwhile`. What the client was told of it.
fn edited(call: &str, before: Option<&str>, meanwhile: impl FnOnce(&Sandbox)) -> (String, Option<String>) {
    let mut sandbox = Sandbox::new();
    before.map(|it| sandbox.write(FILE, it));
    let answers = [call, "text \"Done.\""].map(|it| response(it).unwrap().to_string() + "\n");
    let script = sandbox.write("script.jsonl", &answers.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "edit it"}]});
    client.request_as(json!("p"), "session/prompt", prompt);
    let question = until(&mut client, |it| it["method"] == "session/request_permission").pop().unwrap();
    meanwhile(&sandbox);
    let outcome = json!({"outcome": {"outcome": "selected", "optionId": "allow_once"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": outcome}));
    let told = until(&mut client, |it| it["id"] == "p");
    client.end().unwrap();
    let ended = told
        .iter()
        .map(|it| &it["params"]["update"])
        .find(|it| it["status"] == "failed" || it["status"] == "completed");
    let now = fs::read_to_string(sandbox.workspace().join("a.txt")).ok();
    (ended.expect("the call has an end").to_string(), now)
}

fn until(client: &mut Client, is_last: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut res = Vec::new();
    while !res.last().is_some_and(&is_last) {
        res.push(client.next().unwrap().expect("more was to come"));
    }
    res
}

const WRITE: &str = r#"call write_file {"file_path":"a.txt","content":"ours\n"}"#;
const REPLACE: &str = r#"call replace {"file_path":"a.txt","old_string":"one","new_string":"ours","instruction":"x"}"#;

#[test]
fn edit_applies_to_the_previewed_file() {
    for call in [WRITE, REPLACE] {
        let (told, now) = edited(call, Some("one\n"), |_| ());
        assert!(told.contains("completed"), "{told}");
        assert_eq!(now.as_deref(), Some("ours\n"));
    }
}

/// What is there by then would still fit the edit: only what was shown tells that it is another file.
#[test]
fn edit_fails_when_the_file_changed_since_the_preview() {
    for call in [WRITE, REPLACE] {
        let (told, now) = edited(call, Some("one\n"), |it| _ = it.write(FILE, "one\ntheirs\n"));
        assert!(told.contains("failed") && told.contains("changed after this edit was prepared"), "{told}");
        assert_eq!(now.as_deref(), Some("one\ntheirs\n"));
    }
}

#[test]
fn a_file_that_was_not_there_is_not_written_over() {
    let (told, now) = edited(WRITE, None, |it| _ = it.write(FILE, "theirs\n"));
    assert!(told.contains("failed") && told.contains("changed after this edit was prepared"), "{told}");
    assert_eq!(now.as_deref(), Some("theirs\n"));
}

#[test]
fn removed_file_is_not_written_again() {
    let (told, now) = edited(WRITE, Some("one\n"), |it| fs::remove_file(it.workspace().join("a.txt")).unwrap());
    assert!(told.contains("failed") && told.contains("changed after this edit was prepared"), "{told}");
    assert_eq!(now, None);
}

/// What the client was told of the last call of two prompts in a mode that asks about no edit, and the file afterwards.
fn written_later(first: &[&str], meanwhile: impl FnOnce(&Sandbox), second: &[&str]) -> (String, Option<String>) {
    let mut sandbox = Sandbox::new();
    sandbox.write(FILE, "one\n");
    let steps = first.iter().chain([&"text \"Read.\""]).chain(second).chain([&"text \"Done.\""]);
    let answers: Vec<String> = steps.map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &answers.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into(), "--approval-mode".into(), "yolo".into()]);
    sandbox.env.push(("CASTOR_TRUST_WORKSPACE".to_owned(), "true".to_owned()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let mut say = |id: &str| {
        let prompt = json!({"sessionId": session, "prompt": [{"type": "text", "text": "edit it"}]});
        client.request_as(json!(id), "session/prompt", prompt);
        until(&mut client, |it| it["id"] == id)
    };
    say("p");
    meanwhile(&sandbox);
    let told = say("q");
    client.end().unwrap();
    let mut ends = told.iter().map(|it| &it["params"]["update"]);
    let last = ends.rfind(|it| it["status"] == "failed" || it["status"] == "completed");
    let now = fs::read_to_string(sandbox.workspace().join("a.txt")).ok();
    (last.expect("the call has an end").to_string(), now)
}

const READ: &str = r#"call read_file {"file_path":"a.txt"}"#;

/// Nobody is asked, so nobody sees that it is another file: what was read tells.
#[test]
fn write_fails_when_the_file_changed_since_the_read() {
    let theirs = |it: &Sandbox| _ = it.write(FILE, "one\ntheirs\n");
    for first in [&[READ][..], &[WRITE], &[READ, REPLACE]] {
        let (told, now) = written_later(first, theirs, &[WRITE]);
        assert!(told.contains("failed") && told.contains("changed since it was read"), "{first:?}: {told}");
        assert_eq!(now.as_deref(), Some("one\ntheirs\n"));
    }
    // A part that was changed meanwhile makes the rest no better known.
    let (told, now) = written_later(&[READ], theirs, &[REPLACE, WRITE]);
    assert!(told.contains("failed"), "{told}");
    assert_eq!(now.as_deref(), Some("ours\ntheirs\n"));
}

/// A patch that adds a file over one, or moves one over it, writes it as a whole; hunks look for their lines.
#[test]
fn a_patch_over_a_file_that_changed_since_the_read_fails() {
    let patch = |text: &str| {
        format!("call apply_patch {}", json!({ "input": format!("*** Begin Patch\n{text}*** End Patch\n") }))
    };
    let add = patch("*** Add File: a.txt\n+ours\n");
    let moved = patch("*** Add File: b.txt\n+ours\n*** Update File: b.txt\n*** Move to: a.txt\n");
    let hunk = patch("*** Update File: a.txt\n@@\n-one\n+ours\n");
    let theirs = |it: &Sandbox| _ = it.write(FILE, "one\ntheirs\n");
    for second in [&add, &moved] {
        let (told, now) = written_later(&[READ], theirs, &[second.as_str()]);
        assert!(told.contains("failed") && told.contains("changed since it was read"), "{second}: {told}");
        assert_eq!(now.as_deref(), Some("one\ntheirs\n"));
        let (told, now) = written_later(&[READ], |_| (), &[second.as_str()]);
        assert!(told.contains("completed"), "{second}: {told}");
        assert_eq!(now.as_deref(), Some("ours\n"));
    }
    let (told, now) = written_later(&[READ], theirs, &[hunk.as_str()]);
    assert!(told.contains("completed"), "{told}");
    assert_eq!(now.as_deref(), Some("ours\ntheirs\n"));
    let others = |it: &Sandbox| _ = it.write(FILE, "theirs\n");
    let (told, now) = written_later(&[READ], others, &[hunk.as_str()]);
    assert!(told.contains("failed"), "{told}");
    assert_eq!(now.as_deref(), Some("theirs\n"));
}

#[test]
fn write_succeeds_without_a_stale_read() {
    let nobody = |_: &Sandbox| ();
    let theirs = |it: &Sandbox| _ = it.write(FILE, "one\ntheirs\n");
    let gone = |it: &Sandbox| fs::remove_file(it.workspace().join("a.txt")).unwrap();
    let check = |(told, now): (String, Option<String>)| {
        assert!(told.contains("completed"), "{told}");
        assert_eq!(now.as_deref(), Some("ours\n"));
    };
    check(written_later(&[READ], nobody, &[WRITE]));
    check(written_later(&[READ, REPLACE, WRITE], nobody, &[WRITE]));
    check(written_later(&[READ], theirs, &[READ, WRITE]));
    check(written_later(&[READ], gone, &[WRITE]));
    check(written_later(&[], theirs, &[WRITE]));
}
