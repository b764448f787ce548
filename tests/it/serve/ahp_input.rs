//! What users give to an AHP host: attachments of messages, and changed input of calls.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};

use super::{
    Server,
    ahp_client::{AhpSocket, chat, turn_started},
    ahp_host::{confirmed, is_pending, last_call},
    call, say, script,
};
use crate::{
    client::Sandbox,
    model_server::{ModelServer, says},
};

/// One answer, which the model gives only to a request that has all of this.
fn wants(words: &[&str], text: &str) -> String {
    let mut line: Value = serde_json::from_str(script(&[vec![say(text)]]).trim()).unwrap();
    line["wants"] = json!(words);
    line.to_string() + "\n"
}

fn embedded(label: &str, kind: &str, data: &[u8]) -> Value {
    let data = BASE64_STANDARD.encode(data);
    json!({ "type": "embeddedResource", "label": label, "contentType": kind, "data": data })
}

fn message(attachments: &Value) -> Value {
    json!({ "text": "look", "origin": { "kind": "user" }, "attachments": attachments })
}

#[test]
fn text_attachments_reach_the_model() {
    let model = ModelServer::answering(|_| Some(says("Read.")));
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
    let server = Server::start_in(sandbox, &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let notes = "ahp-session:/s/annotations";
    one.subscribe(notes);
    let annotation = json!({
        "id": "a1", "origin": { "session": "ahp-session:/s" }, "resource": "file:///x", "resolved": false,
        "entries": [{ "id": "e1", "text": "fix this" }],
    });
    one.dispatch(notes, json!({ "type": "annotations/set", "annotation": annotation }));
    one.until(|it| it.state(notes)["annotations"][0]["id"] == "a1");
    let range = json!({ "start": { "line": 1, "character": 0 }, "end": { "line": 2, "character": 0 } });
    let attachments = json!([
        embedded("notes.md", "text/markdown", "embedded wörds".as_bytes()),
        { "type": "simple", "label": "terminal", "modelRepresentation": "words of the client" },
        { "type": "resource", "label": "a.txt", "uri": "file:///tmp/a.txt" },
        { "type": "resource", "label": "b.txt", "uri": "file:///tmp/b.txt", "selection": { "range": range } },
        { "type": "annotations", "label": "comments", "resource": notes },
    ]);
    one.dispatch(&chat("s"), turn_started("t1", message(&attachments)));
    one.until_turns("s", 1);
    assert_eq!(one.said("s", 0), "Read.", "{:?}", one.chat("s").turns[0]);
    one.check_chat("s");
    let asked = model.asked().into_iter().find(|it| it.body.contains("\"look\"")).unwrap().body;
    let words =
        ["/notes.md", "embedded wörds", "words of the client", "/tmp/a.txt", "lines 2 to 3 of /tmp/b.txt", "fix this"];
    words.iter().for_each(|it| assert!(asked.contains(it), "{it}: {asked}"));
}

#[test]
fn attachments_that_cannot_be_read_are_refused() {
    let server = Server::start(&wants(&["look"], "Hi."), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let odd =
        json!({ "type": "embeddedResource", "label": "odd.txt", "contentType": "text/plain", "data": "no, base64!" });
    let bad = [
        (odd, "the data of the attachment odd.txt is no base64"),
        (embedded("latin.txt", "text/plain", b"caf\xe9"), "latin.txt is text/plain, and is not in UTF-8"),
        (json!({ "type": "chat", "label": "x", "resource": "ahp-chat:/other" }), "no other chat"),
        (json!({ "type": "hologram", "label": "x" }), "does not know this kind"),
    ];
    for (n, (attachment, why)) in bad.into_iter().enumerate() {
        let message = message(&json!([attachment]));
        one.dispatch(&chat("s"), turn_started("t1", message.clone()));
        one.dispatch(
            &chat("s"),
            json!({ "type": "chat/pendingMessageSet", "kind": "queued", "id": "q", "message": message }),
        );
        one.until(|it| it.rejections.len() == 2 * n + 2);
        assert!(one.rejections[2 * n..].iter().all(|it| it.contains(why)), "{:?}", one.rejections);
    }
    assert!(one.chat("s").active_turn.is_none() && one.chat("s").queued_messages.is_none());
    one.prompt("s", "t1", "look");
    one.until_turns("s", 1);
    assert_eq!(one.said("s", 0), "Hi.");
}

fn edited(asked: &Value, input: &Value) -> Value {
    let mut action = confirmed("t1", asked, true);
    action["editedToolInput"] = json!(input.to_string());
    action
}

#[test]
fn a_call_runs_with_the_input_that_a_client_changed() {
    let told = "The user changed the arguments of this call to";
    let server = Server::start(
        &(script(&[vec![call("run_shell_command", json!({"command": "touch made"}))]])
            + &wants(&[told, "touch other"], "Done.")),
        &[],
    );
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "go");
    one.until(|it| is_pending(it, "s"));
    let asked = last_call(&one, "s");
    assert_eq!(asked["editable"], true);
    let mut odd = edited(&asked, &json!({}));
    odd["editedToolInput"] = json!("echo");
    one.dispatch(&chat("s"), odd);
    let mut lasting = edited(&asked, &json!({ "command": "touch other" }));
    lasting["selectedOptionId"] = json!("allow_session");
    one.dispatch(&chat("s"), lasting);
    one.until(|it| it.rejections.len() == 2);
    assert!(one.rejections[0].contains("no JSON object") && one.rejections[1].contains("allowed once"));
    one.dispatch(&chat("s"), edited(&asked, &json!({ "command": "touch other" })));
    one.until_turns("s", 1);
    assert_eq!(one.said("s", 0), "Done.", "{:?}", one.chat("s").turns[0]);
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!(turn["responseParts"][0]["toolCall"]["toolInput"], r#"{"command":"touch other"}"#);
    one.check_chat("s");
    let made = |name: &str| server.sandbox.workspace().join(name).exists();
    assert!(made("other") && !made("made"));
}

#[test]
fn changed_input_that_leads_out_of_the_folders_is_asked_about_again() {
    let server = Server::start(
        &script(&[vec![call("write_file", json!({"file_path": "made", "content": "x"}))], vec![say("Well.")]]),
        &[],
    );
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "go");
    one.until(|it| is_pending(it, "s"));
    let asked = last_call(&one, "s");
    one.dispatch(&chat("s"), edited(&asked, &json!({ "file_path": "../beside", "content": "x" })));
    // It was confirmed, and waits again.
    one.until(|it| !is_pending(it, "s"));
    one.until(|it| is_pending(it, "s"));
    let again = last_call(&one, "s");
    assert_eq!(again["toolInput"], r#"{"file_path":"../beside","content":"x"}"#);
    one.dispatch(&chat("s"), confirmed("t1", &again, false));
    one.until_turns("s", 1);
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!(turn["responseParts"][0]["toolCall"]["status"], "cancelled", "{turn}");
    one.check_chat("s");
    let workspace = server.sandbox.workspace();
    assert!(!workspace.join("made").exists() && !workspace.join("../beside").exists());
}
