//! Sessions of the AHP host over their life: read, archived, resumed after a failure, with more folders and clients' tools.

use std::fs;

use serde_json::{Value, json};

use super::{
    Server,
    ahp_client::{AhpSocket, ROOT, chat, session},
    call, say, script,
};

/// The bits of a session's status.
const READ: u64 = 32;
const ARCHIVED: u64 = 64;

fn listed(it: &AhpSocket) -> Value {
    it.call("listSessions", json!({ "channel": ROOT })).unwrap()["items"][0].clone()
}

fn has(summary: &Value, flag: u64) -> bool {
    summary["status"].as_u64().unwrap() & flag != 0
}

#[test]
fn read_and_archived_sessions_stay_so_over_a_restart() {
    let server = Server::start(&script(&[vec![say("One.")], vec![say("Two.")]]), &[]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "go");
    one.until_turns("s", 1);
    assert!(!has(&listed(&one), READ), "nobody looked at the answer");
    drop(one);
    let server = server.restart();
    let mut one = AhpSocket::begin(&server, "one");
    assert!(!has(&listed(&one), READ));
    one.subscribe(&session("s"));
    one.subscribe(&chat("s"));
    assert!(!has(&one.state(&session("s")), READ));
    one.dispatch(&session("s"), json!({ "type": "session/isReadChanged", "isRead": true }));
    one.until(|it| has(&it.state(&chat("s")), READ));
    one.dispatch(&session("s"), json!({ "type": "session/isArchivedChanged", "isArchived": true }));
    one.until(|it| has(&it.state(&chat("s")), ARCHIVED));
    drop(one);
    let server = server.restart();
    let mut one = AhpSocket::begin(&server, "one");
    let summary = listed(&one);
    assert!(has(&summary, READ) && has(&summary, ARCHIVED), "{summary}");
    one.subscribe(&session("s"));
    one.subscribe(&chat("s"));
    assert!(has(&one.state(&session("s")), ARCHIVED));
    one.dispatch(&session("s"), json!({ "type": "session/isArchivedChanged", "isArchived": false }));
    one.until(|it| !has(&it.state(&chat("s")), ARCHIVED));
    assert!(!has(&listed(&one), ARCHIVED));
    // An archived session was closed in the agent, and goes on all the same.
    one.prompt("s", "t2", "again");
    one.until_turns("s", 2);
    assert_eq!(one.said("s", 1), "One.", "the script begins anew with its process");
    one.check_chat("s");
}

#[test]
fn a_failed_turn_is_resumed_where_it_was() {
    let fails =
        json!({ "method": "generateContentStream", "wants": ["never said"], "response": [] }).to_string() + "\n";
    let made = call("run_shell_command", json!({"command": "echo x >> made"}));
    let all = script(&[vec![say("I will. "), made]]) + &fails + &script(&[vec![say("Done.")]]);
    let server = Server::start(&all, &["--approval-mode=yolo"]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "go");
    one.until_turns("s", 1);
    let failed = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!(failed["state"], "error", "{failed}");
    assert_eq!(failed["responseParts"].as_array().unwrap().last().unwrap()["resumable"], true);
    one.dispatch(&chat("s"), json!({ "type": "chat/turnResume", "turnId": "t1" }));
    one.until(|it| it.chat("s").active_turn.is_some());
    one.until_turns("s", 1);
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!((&turn["state"], one.said("s", 0).as_str()), (&json!("complete"), "I will. Done."), "{turn}");
    one.check_chat("s");
    // The call before the failure was not made again.
    assert_eq!(fs::read_to_string(server.sandbox.workspace().join("made")).unwrap(), "x\n");
    one.dispatch(&chat("s"), json!({ "type": "chat/turnResume", "turnId": "t1" }));
    one.until(|it| it.rejections.len() == 1);
    // A message that the agent did not take cannot go on.
    let message = json!({ "text": "go", "origin": { "kind": "user" }, "model": { "id": "no-such-model" } });
    one.dispatch(&chat("s"), super::ahp_client::turn_started("t2", message));
    one.until_turns("s", 2);
    let refused = serde_json::to_value(&one.chat("s").turns[1]).unwrap();
    assert_eq!(refused["responseParts"][0]["resumable"], false, "{refused}");
}

#[test]
fn a_session_has_more_folders_which_come_and_go() {
    let read = |path: String| call("read_file", json!({ "file_path": path }));
    let sandbox = crate::client::Sandbox::new();
    let more = sandbox.write("more/a.txt", "text of a").parent().unwrap().to_path_buf();
    let (a, ask) = (more.join("a.txt").display().to_string(), vec![say("Done.")]);
    let all = script(&[vec![read(a.clone())], ask.clone(), vec![read(a)], ask]);
    let file = sandbox.write("script", &all);
    let server = Server::start_in(sandbox, &[&format!("--fake-responses={}", file.display())]);
    let mut one = AhpSocket::begin(&server, "one");
    let capability = &one.state(ROOT)["agents"][0]["capabilities"]["multipleWorkingDirectories"];
    assert_eq!(capability["immutablePrimary"], true);
    let [folder, more] = [server.sandbox.workspace(), more].map(|it| format!("file://{}", it.display()));
    let wanted = json!({ "channel": session("s"), "workingDirectories": [folder, more] });
    one.call("createSession", wanted).unwrap();
    one.subscribe(&session("s"));
    one.subscribe(&chat("s"));
    assert_eq!(one.state(&session("s"))["workingDirectories"], json!([folder, more]));
    // It is read without a question, as the first folder is.
    one.prompt("s", "t1", "read");
    one.until_turns("s", 1);
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!(turn["responseParts"][0]["toolCall"]["status"], "completed", "{turn}");
    one.dispatch(&session("s"), json!({ "type": "session/workingDirectoryRemoved", "directory": folder }));
    one.until(|it| it.rejections.len() == 1);
    one.dispatch(&session("s"), json!({ "type": "session/workingDirectoryRemoved", "directory": more }));
    one.until(|it| it.state(&session("s"))["workingDirectories"] == json!([folder]));
    // Now it is asked about.
    one.prompt("s", "t2", "read");
    one.until(|it| it.state(&session("s"))["inputNeeded"][0]["kind"] == "toolConfirmation");
    let call = one.state(&session("s"))["inputNeeded"][0]["toolCall"]["toolCallId"].clone();
    let denied = json!({
        "type": "chat/toolCallConfirmed", "turnId": "t2", "toolCallId": call, "approved": false, "reason": "denied",
    });
    one.dispatch(&chat("s"), denied);
    one.until_turns("s", 2);
    one.dispatch(&session("s"), json!({ "type": "session/workingDirectorySet", "directory": more }));
    one.until(|it| it.state(&session("s"))["workingDirectories"] == json!([folder, more]));
    drop(one);
    let server = server.restart();
    let mut one = AhpSocket::begin(&server, "one");
    assert_eq!(listed(&one)["workingDirectories"], json!([folder, more]));
    one.subscribe(&session("s"));
    assert_eq!(one.state(&session("s"))["workingDirectories"], json!([folder, more]));
}

#[test]
fn a_client_runs_calls_of_its_tools_and_sees_the_agents_own() {
    let lookup = call("lookup", json!({"word": "castor"}));
    let all = [vec![lookup.clone()], vec![say("A beaver.")], vec![lookup], vec![say("Well.")]];
    let server = Server::start(&script(&all), &["--approval-mode=yolo"]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    one.until(|it| !it.state(&session("s"))["serverTools"].is_null());
    let own = one.state(&session("s"))["serverTools"].clone();
    let read = own.as_array().unwrap().iter().find(|it| it["name"] == "read_file").unwrap();
    assert_eq!((&read["annotations"]["readOnlyHint"], &read["inputSchema"]["type"]), (&json!(true), &json!("object")));
    let tool =
        |name: &str| json!({ "name": name, "description": "Looks a word up.", "inputSchema": { "type": "object" } });
    let tools = json!([tool("lookup"), tool("read_file"), tool("no name")]);
    let client = json!({ "clientId": "one", "tools": tools.clone() });
    one.dispatch(&session("s"), json!({ "type": "session/activeClientSet", "activeClient": client }));
    one.until(|it| !it.state(&session("s"))["activeClients"][0].is_null());
    let counted = one.state(&session("s"))["activeClients"][0]["tools"].clone();
    assert_eq!(counted, tools, "the state has what the client said; which of it counts is the agent's matter");
    let mut two = AhpSocket::begin(&server, "two");
    two.subscribe(&session("s"));
    two.subscribe(&chat("s"));
    one.prompt("s", "t1", "what is it?");
    let runs = |it: &AhpSocket| it.state(&session("s"))["inputNeeded"][0]["kind"] == "toolClientExecution";
    one.until(runs);
    let needed = one.state(&session("s"))["inputNeeded"][0].clone();
    assert_eq!(needed["toolCall"]["contributor"], json!({ "kind": "client", "clientId": "one" }), "{needed}");
    let id = needed["toolCall"]["toolCallId"].clone();
    let result =
        json!({ "success": true, "pastTenseMessage": "Looked up", "content": [{ "type": "text", "text": "rodent" }] });
    let done = json!({ "type": "chat/toolCallComplete", "turnId": "t1", "toolCallId": id, "result": result });
    two.until(runs);
    two.dispatch(&chat("s"), done.clone());
    two.until(|it| it.rejections.len() == 1);
    one.dispatch(&chat("s"), done);
    one.until_turns("s", 1);
    assert_eq!(one.said("s", 0), "A beaver.");
    let turn = serde_json::to_value(&one.chat("s").turns[0]).unwrap();
    assert_eq!(turn["responseParts"][0]["toolCall"]["content"][0]["text"], "rodent", "{turn}");
    one.check_chat("s");
    // Its client leaves while the call waits for it.
    two.prompt("s", "t2", "again");
    one.until(runs);
    drop(one.cut());
    two.until_turns("s", 2);
    assert_eq!(two.said("s", 1), "Well.");
    let turn = serde_json::to_value(&two.chat("s").turns[1]).unwrap();
    assert_eq!(turn["responseParts"][0]["toolCall"]["success"], false, "{turn}");
    two.check_chat("s");
}

#[test]
fn telemetry_and_paths_come_as_they_are_asked_for() {
    let end = json!({
        "candidates": [{"content": {"role": "model", "parts": [{"text": "Hi."}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
    });
    let line = json!({"method": "generateContentStream", "response": [end]}).to_string() + "\n";
    let mut sandbox = crate::client::Sandbox::new();
    sandbox.env.push(("CASTOR_LOG".into(), "debug".into()));
    sandbox.write("ws/src/main.rs", "");
    let file = sandbox.write("script", &line);
    let server = Server::start_in(sandbox, &[&format!("--fake-responses={}", file.display())]);
    let mut one = AhpSocket::begin(&server, "one");
    for channel in ["ahp-otlp:/logs/debug", "ahp-otlp:/metrics"] {
        one.call("subscribe", json!({ "channel": channel })).unwrap();
    }
    one.create(&server, "s", json!({}));
    one.prompt("s", "t1", "go");
    let logs = one.telemetry(|it| it["channel"] == "ahp-otlp:/logs/debug");
    let record = &logs["payload"]["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    assert!(record["body"]["stringValue"].is_string() && record["severityNumber"].is_u64(), "{logs}");
    let metrics = one.telemetry(|it| it["channel"] == "ahp-otlp:/metrics");
    let usage = &metrics["payload"]["resourceMetrics"][0]["scopeMetrics"][0]["metrics"][0];
    assert_eq!(usage["sum"]["dataPoints"][0]["asInt"], "10", "{metrics}");
    one.until_turns("s", 1);
    let wanted = json!({ "channel": chat("s"), "kind": "userMessage", "text": "see @src/ma", "offset": 11 });
    let found = one.call("completions", wanted).unwrap();
    assert_eq!(found["items"][0]["insertText"], "@src/main.rs ", "{found}");
}

#[test]
fn reviews_of_changed_files_are_kept_over_a_restart() {
    let write = call("write_file", json!({"file_path": "a.txt", "content": "one\n"}));
    let server = Server::start(&script(&[vec![write], vec![say("Done.")]]), &["--approval-mode=yolo"]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let changes = one.state(&session("s"))["changesets"][0]["uriTemplate"].as_str().unwrap().to_owned();
    one.subscribe(&changes);
    one.prompt("s", "t1", "go");
    one.until(|it| it.state(&changes)["files"][0].is_object());
    let file = one.state(&changes)["files"][0]["id"].clone();
    one.dispatch(&changes, json!({ "type": "changeset/filesReviewChanged", "files": [file], "reviewed": true }));
    one.until(|it| it.state(&changes)["files"][0]["reviewed"] == true);
    // The state is written when a later request is answered.
    one.call("subscribe", json!({ "channel": session("s") })).unwrap();
    one.dispatch(&session("s"), json!({ "type": "session/titleChanged", "title": "Kept" }));
    one.until(|it| it.state(&session("s"))["title"] == "Kept");
    drop(one);
    let server = server.restart();
    let mut one = AhpSocket::begin(&server, "one");
    one.subscribe(&changes);
    one.until(|it| it.state(&changes)["files"][0]["reviewed"] == true);
}

/// Of the server `probe`, as the session shows it.
fn probe(it: &AhpSocket) -> Value {
    let state = it.state(&session("s"));
    let mut all = state["customizations"].as_array().into_iter().flatten();
    all.find(|it| it["type"] == "mcpServer" && it["name"] == "probe").cloned().unwrap_or_default()
}

#[test]
fn mcp_servers_are_shown_stopped_and_started() {
    let sandbox = crate::client::Sandbox::new();
    let program = std::env::current_exe().unwrap();
    let server = json!({"command": program, "args": crate::mcp_server::ARGS, "env": {"MCP_SERVER": "x"}});
    let settings = json!({"mcpServers": {"probe": server}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let file = sandbox.write("script", &script(&[vec![say("Hi.")]]));
    let server = Server::start_in(sandbox, &[&format!("--fake-responses={}", file.display())]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let has_tool = |it: &AhpSocket| it.state(&session("s"))["serverTools"].to_string().contains("mcp_probe_echo");
    let is = |kind: &'static str| move |it: &AhpSocket| probe(it)["state"]["kind"] == kind;
    one.until(|it| is("ready")(it) && has_tool(it));
    let shown = probe(&one);
    assert!(shown["enablement"].is_null() && shown["_meta"]["castor"]["tools"].as_u64() > Some(0), "{shown}");
    let id = shown["id"].clone();
    one.dispatch(&session("s"), json!({ "type": "session/mcpServerStopRequested", "id": id }));
    one.until(|it| is("stopped")(it) && !probe(it)["enablement"].is_null() && !has_tool(it));
    one.dispatch(&session("s"), json!({ "type": "session/mcpServerStartRequested", "id": id }));
    one.until(|it| is("ready")(it) && has_tool(it));
    let toggled = |id: &Value, kind: &str| {
        let enablement = json!([{ "kind": kind, "enabled": false }]);
        json!({ "type": "session/customizationToggled", "id": id, "enablement": enablement })
    };
    one.dispatch(&session("s"), toggled(&id, "session"));
    one.until(is("stopped"));
    one.dispatch(&session("s"), toggled(&id, "global"));
    one.dispatch(&session("s"), toggled(&json!("castor-mcp-other"), "session"));
    one.until(|it| it.rejections.len() == 2);
    assert!(one.rejections[0].contains("for a session alone") && one.rejections[1].contains("is no MCP server"));
    // Another client sees the same.
    let mut two = AhpSocket::begin(&server, "two");
    two.subscribe(&session("s"));
    assert_eq!(probe(&two), probe(&one));
}

#[test]
fn commands_and_skills_are_shown_and_skills_are_switched() {
    let sandbox = crate::client::Sandbox::new();
    sandbox
        .write("home/.castor/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDFs.\n---\nUse pdftotext.\n");
    sandbox.write("home/.castor/commands/ship.toml", "description = \"Ships it\"\nprompt = \"Ship.\"\n");
    let file = sandbox.write("script", &script(&[vec![say("Hi.")]]));
    let server = Server::start_in(sandbox, &[&format!("--fake-responses={}", file.display())]);
    let mut one = AhpSocket::begin(&server, "one");
    one.create(&server, "s", json!({}));
    let child = |it: &AhpSocket, folder: &str, name: &str| {
        let state = it.state(&session("s"));
        let all = state["customizations"].as_array().cloned().unwrap_or_default();
        let folder = all.into_iter().find(|it| it["id"] == folder).unwrap_or_default();
        let children = folder["children"].as_array().cloned().unwrap_or_default();
        children.into_iter().find(|it| it["name"] == name).unwrap_or_default()
    };
    let skill = |it: &AhpSocket| child(it, "castor-skills", "pdf");
    one.until(|it| !skill(it).is_null());
    let (shown, command) = (skill(&one), child(&one, "castor-commands", "ship"));
    assert_eq!((&shown["type"], &shown["enabled"]), (&json!("skill"), &json!(true)));
    assert!(shown["uri"].as_str().unwrap().ends_with("/.castor/skills/pdf/SKILL.md"), "{shown}");
    assert_eq!((&command["type"], &command["description"]), (&json!("prompt"), &json!("Ships it")));
    let toggled = |id: &Value| {
        let enablement = json!([{ "kind": "session", "enabled": false }]);
        json!({ "type": "session/customizationToggled", "id": id, "enablement": enablement })
    };
    one.dispatch(&session("s"), toggled(&shown["id"]));
    one.until(|it| skill(it)["enabled"] == false);
    // castor has no switch for a command.
    one.dispatch(&session("s"), toggled(&command["id"]));
    one.until(|it| it.rejections.len() == 1);
    let is_tool = |it: &AhpSocket| it.state(&session("s"))["serverTools"].to_string().contains("activate_skill");
    one.until(|it| !is_tool(it));
    // The agent has it so, too.
    let mut two = AhpSocket::begin(&server, "two");
    two.subscribe(&session("s"));
    assert_eq!(skill(&two)["enabled"], false);
    one.prompt("s", "t1", "go");
    one.until_turns("s", 1);
    drop((one, two));
    let server = server.restart();
    let mut one = AhpSocket::begin(&server, "one");
    one.subscribe(&session("s"));
    one.until(|it| skill(it)["enabled"] == false);
}
