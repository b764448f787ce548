//! `castor serve` at `/ahp`, with the client of the protocol's own crate: sessions, turns, questions, files, breaks.

use ahp::ahp_types::commands::ReconnectResult;
use serde_json::{Value, json};

use super::{
    Server,
    ahp_client::{AhpSocket, ROOT, chat, session, turn_started},
    call, is_question, prompt, say, script, verb,
};

fn touch(file: &str) -> Value {
    call("run_shell_command", json!({"command": format!("echo x > {file}")}))
}

pub fn is_pending(it: &AhpSocket, id: &str) -> bool {
    let turn = serde_json::to_value(&it.chat(id).active_turn).unwrap();
    turn.to_string().contains("\"pending-confirmation\"")
}

/// The last call of the turn that runs.
pub fn last_call(it: &AhpSocket, id: &str) -> Value {
    let turn = serde_json::to_value(&it.chat(id).active_turn).unwrap();
    let parts = turn["responseParts"].as_array().unwrap();
    parts.iter().rev().find(|it| it["kind"] == "toolCall").unwrap()["toolCall"].clone()
}

pub fn confirmed(turn: &str, call: &Value, approved: bool) -> Value {
    let mut action = json!({
        "type": "chat/toolCallConfirmed", "turnId": turn, "toolCallId": call["toolCallId"], "approved": approved,
    });
    match approved {
        true => action["confirmed"] = json!("user-action"),
        false => action["reason"] = json!("denied"),
    }
    action
}

#[test]
fn a_turn_streams_to_a_client_that_began_the_session() {
    let usage = json!({"candidates": [{"content": {"role": "model", "parts": [{"text": "Hel"}]}}]});
    let end = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": "lo."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    });
    let line = json!({"method": "generateContentStream", "response": [usage, end]}).to_string() + "\n";
    let server = Server::start(&line, &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s-1", json!({}));
    one.prompt("s-1", "t1", "say hello");
    one.until_turns("s-1", 1);
    assert_eq!(one.said("s-1", 0), "Hello.");
    let turn = serde_json::to_value(&one.chat("s-1").turns[0]).unwrap();
    assert_eq!((&turn["state"], &turn["id"]), (&json!("complete"), &json!("t1")));
    assert_eq!((&turn["usage"]["inputTokens"], &turn["usage"]["outputTokens"]), (&json!(10), &json!(5)));
    one.check_chat("s-1");
    one.until(|it| it.state(&session("s-1"))["title"] == "say hello");
    let list = one.call("listSessions", json!({ "channel": ROOT })).unwrap();
    assert_eq!(
        (&list["items"][0]["resource"], &list["items"][0]["title"]),
        (&json!(session("s-1")), &json!("say hello"))
    );
    assert!(!one.told.is_empty(), "the root tells of the session");
    one.call("ping", json!({ "channel": ROOT })).unwrap();
    one.call("disposeSession", json!({ "channel": session("s-1") })).unwrap();
    let list = one.call("listSessions", json!({ "channel": ROOT })).unwrap();
    assert_eq!(list["items"][0]["status"].as_u64().unwrap() & 64, 64, "it is archived");
}

#[test]
fn the_first_of_two_clients_confirms_a_call() {
    let server = Server::start(&script(&[vec![say("I will. "), touch("made")], vec![say("Done.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let mut two = AhpSocket::begin(&server, "two");
    two.subscribe(&session("s"));
    two.subscribe(&chat("s"));
    one.prompt("s", "t1", "go");
    for it in [&mut one, &mut two] {
        it.until(|it| is_pending(it, "s") && !it.state(&session("s"))["inputNeeded"].is_null());
    }
    let call = last_call(&one, "s");
    assert_eq!(call["options"][0], json!({"id": "allow_once", "label": "Allow", "kind": "approve"}));
    assert_eq!(one.state(&session("s"))["inputNeeded"][0]["toolCall"]["toolCallId"], call["toolCallId"]);
    two.dispatch(&chat("s"), confirmed("t1", &call, true));
    one.until(|it| !is_pending(it, "s"));
    one.dispatch(&chat("s"), confirmed("t1", &call, false));
    one.until(|it| !it.rejections.is_empty());
    assert!(one.rejections[0].contains("answer already"), "{:?}", one.rejections);
    for it in [&mut one, &mut two] {
        it.until_turns("s", 1);
        assert_eq!(it.said("s", 0), "I will. Done.");
        it.check_chat("s");
        assert!(it.state(&session("s"))["inputNeeded"].is_null());
    }
    assert!(server.sandbox.workspace().join("made").exists());
}

#[test]
fn a_call_that_is_denied_is_not_run() {
    let server = Server::start(&script(&[vec![touch("made")], vec![say("Well.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "go");
    one.until(|it| is_pending(it, "s"));
    let call = last_call(&one, "s");
    one.dispatch(&chat("s"), confirmed("t1", &call, false));
    one.until_turns("s", 1);
    let parts = serde_json::to_value(&one.chat("s").turns[0].response_parts).unwrap();
    assert_eq!(parts[0]["toolCall"]["status"], "cancelled");
    one.check_chat("s");
    assert!(!server.sandbox.workspace().join("made").exists());
}

#[test]
fn an_acp_client_and_an_ahp_client_share_a_session() {
    let first = vec![say("I will. "), touch("made")];
    let server = Server::start(&script(&[first, vec![say("Done.")], vec![say("Again.")]]), &[]);
    let mut acp = server.client();
    let id = acp.new_session(&server);
    acp.request("p", "session/prompt", prompt(&id, "go"));
    acp.until(is_question);
    // It comes when the turn runs and asks.
    let mut one = AhpSocket::begin(&server, "one");
    one.subscribe(&session(&id));
    one.subscribe(&chat(&id));
    one.until(|it| is_pending(it, &id));
    let turn = one.chat(&id).active_turn.clone().unwrap();
    assert_eq!(turn.message.text, "go");
    let call = last_call(&one, &id);
    one.dispatch(&chat(&id), confirmed(&turn.id, &call, true));
    acp.until(|it| it["method"] == "$/cancel_request");
    assert_eq!(acp.answer_to("p")["result"]["stopReason"], "end_turn");
    one.until_turns(&id, 1);
    assert_eq!(one.said(&id, 0), "I will. Done.");
    // The other way round: what the one says, the other sees.
    one.prompt(&id, "t2", "and again");
    acp.until(|it| it["params"]["update"]["content"]["text"] == "and again");
    acp.until(|it| it["method"] == "_castor/session/prompt_ended");
    assert!(acp.said().ends_with("Again."));
    one.until_turns(&id, 2);
    one.check_chat(&id);
}

#[test]
fn a_client_that_comes_back_gets_what_it_missed_or_a_snapshot() {
    let words: Vec<Value> = (0..50).map(|it| say(&format!("{it} "))).collect();
    let whole: String = (0..50).map(|it| format!("{it} ")).collect();
    let server = Server::start(&script(&[[words, vec![touch("made")]].concat(), vec![say("Done.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let mut two = AhpSocket::begin(&server, "two");
    two.subscribe(&chat("s"));
    one.prompt("s", "t1", "go");
    one.until(|it| it.chat("s").active_turn.as_ref().is_some_and(|it| !it.response_parts.is_empty()));
    let one = one.cut();
    // The turn goes on without it.
    two.until(|it| is_pending(it, "s"));
    let (mut one, answer) = AhpSocket::come_back(&server, "one", &one);
    assert!(matches!(&answer, ReconnectResult::Replay(it) if !it.actions.is_empty()), "{answer:?}");
    one.until(|it| is_pending(it, "s"));
    one.check_chat("s");
    let call = last_call(&one, "s");
    one.dispatch(&chat("s"), confirmed("t1", &call, true));
    one.until_turns("s", 1);
    assert_eq!(one.said("s", 0), format!("{whole}Done."));
    // A number of another host.
    let mut one = one.cut();
    one.last = 1;
    let (one, answer) = AhpSocket::come_back(&server, "one", &one);
    assert!(matches!(answer, ReconnectResult::Snapshot(_)), "{answer:?}");
    assert_eq!(one.said("s", 0), format!("{whole}Done."));
}

#[test]
fn models_modes_and_agents_are_chosen() {
    let server = Server::start(&script(&[vec![say("One.")], vec![say("Two.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.until(|it| it.state(ROOT)["agents"][0]["models"][0]["id"] == "script");
    let folder = format!("file://{}", server.sandbox.workspace().display());
    let wanted =
        json!({ "channel": ROOT, "provider": "castor", "workingDirectory": folder, "config": { "mode": "plan" } });
    let resolved = one.call("resolveSessionConfig", wanted).unwrap();
    assert_eq!(resolved["values"]["mode"], "plan");
    assert!(resolved["schema"]["properties"]["mode"]["enum"].as_array().unwrap().contains(&json!("default")));
    one.create(&server, "s", json!({ "mode": "plan" }));
    assert_eq!(one.state(&session("s"))["config"]["values"]["mode"], "plan");
    one.dispatch(&session("s"), json!({ "type": "session/configChanged", "config": { "mode": "default" } }));
    one.until(|it| it.state(&session("s"))["config"]["values"]["mode"] == "default");
    one.dispatch(&session("s"), json!({ "type": "session/configChanged", "config": { "mode": "nope" } }));
    one.until(|it| it.rejections.len() == 1);
    let agents = one.state(&session("s"))["customizations"][0]["children"].clone();
    let uri = agents[0]["uri"].as_str().unwrap().to_owned();
    assert!(uri.starts_with("castor-agent:/"), "{agents}");
    let user = json!({ "kind": "user" });
    let message = json!({ "text": "go", "origin": user, "model": { "id": "script" }, "agent": { "uri": uri } });
    one.dispatch(&chat("s"), turn_started("t1", message));
    one.until_turns("s", 1);
    assert_eq!(one.said("s", 0), "One.");
    let message = json!({ "text": "go", "origin": user, "model": { "id": "no-such-model" } });
    one.dispatch(&chat("s"), turn_started("t2", message));
    one.until_turns("s", 2);
    assert_eq!(serde_json::to_value(&one.chat("s").turns[1]).unwrap()["state"], "error");
    one.check_chat("s");
}

#[test]
fn messages_wait_steer_and_are_cut() {
    let asks = vec![touch("made")];
    let server = Server::start(&script(&[asks, vec![say("One.")], vec![say("Two.")], vec![say("Three.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "first");
    one.until(|it| is_pending(it, "s"));
    let message = |text: &str| json!({ "text": text, "origin": { "kind": "user" } });
    let pending = |kind: &str, id: &str, text: &str| {
        let message = message(text);
        json!({ "type": "chat/pendingMessageSet", "kind": kind, "id": id, "message": message })
    };
    one.dispatch(&chat("s"), pending("queued", "q1", "second"));
    one.dispatch(&chat("s"), pending("steering", "s1", "use tabs"));
    one.dispatch(&chat("s"), json!({ "type": "chat/draftChanged", "draft": message("dra") }));
    one.until(|it| it.chat("s").draft.is_some());
    let call = last_call(&one, "s");
    one.dispatch(&chat("s"), confirmed("t1", &call, true));
    one.until_turns("s", 2);
    assert_eq!((one.said("s", 0).as_str(), one.said("s", 1).as_str()), ("One.", "Two."));
    let first = serde_json::to_value(&one.chat("s").turns[0]).unwrap().to_string();
    assert!(first.contains("You said: use tabs"), "{first}");
    assert_eq!(one.chat("s").turns[1].message.text, "second");
    // The second turn goes, and its message with it.
    one.dispatch(&chat("s"), json!({ "type": "chat/truncated", "turnId": "t1" }));
    one.until(|it| it.chat("s").turns.len() == 1);
    one.prompt("s", "t3", "third");
    one.until_turns("s", 2);
    assert_eq!(one.said("s", 1), "Three.");
    one.check_chat("s");
    let acp = &mut server.client();
    acp.load(&server, "s");
    let told = serde_json::to_string(&acp.before).unwrap();
    assert!(told.contains("third") && !told.contains("second"), "{told}");
}

#[test]
fn a_turn_is_cancelled_and_the_next_one_is_its_own() {
    let server = Server::start(&script(&[vec![touch("made")], vec![say("Two.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "first");
    one.until(|it| is_pending(it, "s"));
    one.dispatch(&chat("s"), json!({ "type": "chat/turnCancelled", "turnId": "t1", "duration": 0 }));
    one.prompt("s", "t2", "second");
    one.until_turns("s", 2);
    assert_eq!(serde_json::to_value(&one.chat("s").turns[0]).unwrap()["state"], "cancelled");
    assert_eq!(one.said("s", 1), "Two.");
    one.check_chat("s");
    assert!(!server.sandbox.workspace().join("made").exists());
}

#[test]
fn changed_files_are_reviewed_by_one_for_all_and_undone() {
    let write = call("write_file", json!({"file_path": "a.txt", "content": "one\n"}));
    let server = Server::start(&script(&[vec![write], vec![say("Done.")]]), &["--approval-mode=yolo"]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let mut two = AhpSocket::begin(&server, "two");
    let changes = one.state(&session("s"))["changesets"][0]["uriTemplate"].as_str().unwrap().to_owned();
    one.subscribe(&changes);
    two.subscribe(&changes);
    one.prompt("s", "t1", "go");
    for it in [&mut one, &mut two] {
        it.until(|it| it.state(&changes)["files"][0].is_object());
    }
    let file = one.state(&changes)["files"][0].clone();
    assert_eq!((&file["edit"]["diff"]["added"], &file["edit"]["before"]), (&json!(1), &Value::Null));
    let uri = file["edit"]["after"]["content"]["uri"].clone();
    let text = one.call("resourceRead", json!({ "channel": ROOT, "uri": uri })).unwrap();
    assert_eq!(text["data"], "one\n");
    let reviewed = json!({ "type": "changeset/filesReviewChanged", "files": [file["id"]], "reviewed": true });
    one.dispatch(&changes, reviewed);
    two.until(|it| it.state(&changes)["files"][0]["reviewed"] == true);
    let target = json!({ "kind": "resource", "resource": file["id"] });
    let order = json!({ "channel": changes, "operationId": "revert", "target": target });
    two.call("invokeChangesetOperation", order).unwrap();
    assert!(!server.sandbox.workspace().join("a.txt").exists());
    two.until(|it| it.state(&changes)["files"] == json!([]));
}

#[test]
fn a_question_of_the_model_is_a_request_for_input() {
    let questions = json!({"questions": [
        {"question": "Which database?", "header": "Database", "type": "choice",
            "options": [{"label": "SQLite", "description": "one file"}, {"label": "Postgres"}]},
        {"question": "Which name?", "header": "Name", "type": "text"},
    ]});
    let server = Server::start(&script(&[vec![call("ask_user", questions)], vec![say("Good.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "ask");
    one.until(|it| it.state(&session("s"))["inputNeeded"][0]["kind"] == "chatInput");
    let request = one.state(&session("s"))["inputNeeded"][0]["request"].clone();
    let questions = request["questions"].as_array().unwrap();
    let of_kind = |kind: &str| questions.iter().find(|it| it["kind"] == kind).unwrap_or_else(|| panic!("{request}"));
    let (choice, name) = (of_kind("single-select"), of_kind("text"));
    assert_eq!(choice["options"][1]["label"], "Postgres");
    let chosen = json!({ "kind": "selected", "value": choice["options"][1]["id"] });
    let mut answers = json!({});
    answers[choice["id"].as_str().unwrap()] = json!({ "state": "submitted", "value": chosen });
    let drafted = json!({ "state": "draft", "value": { "kind": "text", "value": "shop" } });
    one.dispatch(
        &chat("s"),
        json!({
            "type": "chat/inputAnswerChanged", "requestId": request["id"], "questionId": name["id"], "answer": drafted,
        }),
    );
    let action =
        json!({ "type": "chat/inputCompleted", "requestId": request["id"], "response": "accept", "answers": answers });
    one.dispatch(&chat("s"), action);
    one.until_turns("s", 1);
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap().to_string();
    assert!(turn.contains("Database → Postgres") && turn.contains("Name → shop"), "{turn}");
    one.check_chat("s");
}

#[test]
fn history_and_annotations_are_there_after_a_restart() {
    let server = Server::start(&script(&[vec![touch("made")], vec![say("Done.")]]), &["--approval-mode=yolo"]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let notes = format!("{}/annotations", session("s"));
    one.subscribe(&notes);
    let entry = json!({ "id": "e1", "text": "Why?" });
    let origin = json!({ "session": session("s") });
    let annotation =
        json!({ "id": "a1", "origin": origin, "resource": "file:///x", "resolved": false, "entries": [entry] });
    one.dispatch(&notes, json!({ "type": "annotations/set", "annotation": annotation }));
    one.until(|it| it.state(&notes)["annotations"][0]["id"] == "a1");
    let image = json!({ "type": "embeddedResource", "label": "p.png", "contentType": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==" });
    let message = json!({ "text": "look", "origin": { "kind": "user" }, "attachments": [image] });
    one.dispatch(&chat("s"), turn_started("t1", message));
    one.until_turns("s", 1);
    let said = one.said("s", 0);
    drop(one);
    let server = server.restart();
    let mut one = AhpSocket::begin(&server, "one");
    one.subscribe(&chat("s"));
    one.subscribe(&notes);
    assert_eq!(one.said("s", 0), said);
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!(turn["message"]["text"], "look[image]");
    assert_eq!(turn["responseParts"][0]["toolCall"]["status"], "completed");
    assert_eq!(one.state(&notes)["annotations"][0]["entries"][0]["text"], "Why?");
}

#[test]
fn strangers_other_origins_and_other_ways_are_refused() {
    let mut server = Server::start(&script(&[]), &[]);
    let no_token = AhpSocket::open(&server, "", None).err();
    let wrong = AhpSocket::open(&server, "?tkn=castor_wrong", None).err();
    assert_eq!((no_token, wrong), (Some(401), Some(401)));
    assert!(AhpSocket::open(&server, "", Some(&server.token)).is_ok());
    assert!(AhpSocket::open(&server, &format!("?token={}", server.token), None).is_ok());
    let bearer = server.bearer();
    let own = [("Authorization", bearer.as_str())];
    assert_eq!(server.http("GET /ahp", &own, "").0, 426);
    assert_eq!(server.http("POST /ahp", &own, "{}").0, 405);
    let other = [own[0], ("Origin", "https://evil.example")];
    assert_eq!(server.http("GET /ahp", &other, "").0, 403);
    assert_eq!(server.http("GET /ahp", &[own[0], ("Host", "evil.example")], "").0, 403);
    // A token that is removed takes its connection with it.
    let mut one = AhpSocket::begin(&server, "one");
    let args = server.sandbox.args.clone();
    verb(&mut server.sandbox, &["serve", "token", "remove", "mine"]);
    server.sandbox.args = args;
    one.until_gone();
}

#[test]
fn a_client_is_shown_the_uris_that_it_writes() {
    let server = Server::start(&script(&[vec![say("Hi.")]]), &[]);
    let one = AhpSocket::begin(&server, "one");
    one.call("createSession", json!({ "channel": "castor:/s" })).unwrap();
    let shown = one.call("subscribe", json!({ "channel": "castor:/s" })).unwrap();
    assert_eq!(shown["snapshot"]["resource"], "castor:/s");
    // base64url of castor:/s
    let derived = "ahp-chat://default/Y2FzdG9yOi9z";
    let shown = one.call("subscribe", json!({ "channel": derived })).unwrap();
    assert_eq!(
        (&shown["snapshot"]["resource"], &shown["snapshot"]["state"]["resource"]),
        (&json!(derived), &json!(derived))
    );
}
