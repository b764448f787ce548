//! The AHP host for clients of versions below 1.0, with the shapes of messages that VS Code sends.

use ahp::SubscriptionEvent;
use serde_json::{Value, json};

use super::{
    Server,
    ahp_client::{AhpSocket, ROOT, session, turn_started},
    call, say, script,
};

const SESSION: &str = "castor:/s";
/// base64url of castor:/s
const CHAT: &str = "ahp-chat://default/Y2FzdG9yOi9z";

fn listed(it: &AhpSocket) -> Value {
    it.call("listSessions", json!({ "channel": ROOT })).unwrap()["items"].clone()
}

/// With options of another agent, as VS Code always sends them.
fn create(it: &mut AhpSocket, server: &Server) {
    let folder = format!("file://{}", server.sandbox.workspace().display());
    let config = json!({ "isolation": "folder", "autoApprove": "default", "mode": "interactive" });
    let wanted = json!({
        "channel": SESSION, "provider": "castor", "workingDirectories": [folder], "config": config,
        "progressToken": "p",
    });
    it.call("createSession", wanted).unwrap();
    it.subscribe(SESSION);
    it.subscribe(CHAT);
}

fn prompt(it: &AhpSocket, turn: &str, text: &str) {
    it.dispatch(CHAT, turn_started(turn, json!({ "text": text, "origin": { "kind": "user" } })));
}

fn until_turns(it: &mut AhpSocket, n: usize) {
    it.until(|it| it.state(CHAT)["activeTurn"].is_null() && it.state(CHAT)["turns"].as_array().unwrap().len() >= n);
}

fn is_added(it: &AhpSocket) -> bool {
    it.told.iter().any(|it| matches!(&it.event, SubscriptionEvent::SessionAdded(it) if it.summary.resource == SESSION))
}

#[test]
fn sessions_have_uris_of_the_provider_and_are_listed_from_their_first_turn_on() {
    let write = call("write_file", json!({ "file_path": "a b.txt", "content": "one\n" }));
    let all = script(&[vec![write], vec![say("Done.")]]);
    let server = Server::start(&all, &["--approval-mode=yolo"]);
    let mut one = AhpSocket::begin_older(&server, "one");
    create(&mut one, &server);
    assert_eq!(one.state(SESSION)["defaultChat"], CHAT);
    assert_eq!(one.state(SESSION)["config"]["values"]["mode"], "yolo", "what the schema does not have is left out");
    assert_eq!(listed(&one), json!([]), "an empty session is in no list");
    assert!(!is_added(&one));
    prompt(&one, "t1", "go");
    until_turns(&mut one, 1);
    one.until(is_added);
    let summary = listed(&one)[0].clone();
    assert_eq!((&summary["resource"], &summary["defaultChat"]), (&json!(SESSION), &json!(CHAT)));
    // Names of files are taken from the ends of URIs.
    let turn = one.state(CHAT)["turns"][0].clone();
    let edit = turn["responseParts"][0]["toolCall"]["content"].to_string();
    let uri = edit.split('"').find(|it| it.starts_with("castor-content:")).unwrap();
    assert!(uri.ends_with("/a%20b.txt"), "{uri}");
    let read = one.call("resourceRead", json!({ "channel": ROOT, "uri": uri, "encoding": "base64" })).unwrap();
    assert_eq!(read["data"], "one\n");
    // Another client is shown the protocol's own URIs.
    assert_eq!(listed(&AhpSocket::begin(&server, "two"))[0]["resource"], session("s"));
    let missing = one.call("resourceResolve", json!({ "channel": ROOT, "uri": "castor-agent:/" })).unwrap_err();
    assert!(missing.contains("-32008"), "{missing}");
}

#[test]
fn a_client_that_comes_back_is_shown_its_own_uris() {
    let server = Server::start(&script(&[vec![say("Hi.")]]), &[]);
    let mut one = AhpSocket::begin_older(&server, "one");
    create(&mut one, &server);
    prompt(&one, "t1", "! echo hi");
    until_turns(&mut one, 1);
    let last = one.cut().last;
    let server = server.restart();
    let mut root_alone = AhpSocket::begin(&server, "two");
    root_alone.last = last;
    let (back, _) = AhpSocket::come_back(&server, "one", &root_alone);
    assert_eq!(listed(&back)[0]["resource"], SESSION, "it said no version, and is known");
    let mut again = AhpSocket::begin_older(&server, "three");
    again.subscribe(SESSION);
    again.subscribe(CHAT);
    assert_eq!(again.state(CHAT)["turns"][0]["message"]["text"], "!echo hi", "as it was typed");
}

#[test]
fn values_of_an_active_client_come_back_unchanged() {
    let server = Server::start(&script(&[]), &[]);
    let mut one = AhpSocket::begin_older(&server, "one");
    create(&mut one, &server);
    let tool = json!({ "name": "read_file", "inputSchema": { "type": "object" } });
    let it = json!({ "clientId": "one", "displayName": "VS Code", "tools": [tool], "customizations": [] });
    one.dispatch(SESSION, json!({ "type": "session/activeClientSet", "activeClient": it }));
    one.until(|one| one.state(SESSION)["activeClients"] == json!([it]));
    one.subscribe(SESSION);
    assert_eq!(one.state(SESSION)["activeClients"], json!([it]));
    // The root has no configuration.
    one.dispatch(ROOT, json!({ "type": "root/configChanged", "config": { "http.proxy": "" } }));
    one.until(|one| one.rejections == ["castor has no configuration at the root"]);
}

#[test]
fn options_and_commands_are_offered_in_shapes_that_editors_show() {
    let server = Server::start(&script(&[]), &[]);
    let mut one = AhpSocket::begin_older(&server, "one");
    let config = json!({ "autoApprove": "default", "mode": "interactive" });
    let resolved = one.call("resolveSessionConfig", json!({ "channel": ROOT, "provider": "castor", "config": config }));
    let resolved = resolved.unwrap();
    let mode = &resolved["values"]["mode"];
    assert!(resolved["schema"]["properties"]["mode"]["enum"].as_array().unwrap().contains(mode), "{resolved}");
    assert!(resolved["values"]["autoApprove"].is_null(), "{resolved}");
    create(&mut one, &server);
    let asked = json!({ "kind": "userMessage", "channel": SESSION, "text": "/", "offset": 1 });
    let answer = one.call("completions", asked).unwrap();
    let items = answer["items"].as_array().unwrap();
    let help = items.iter().find(|it| it["insertText"] == "/help ").unwrap();
    assert_eq!(
        (&help["attachment"]["label"], &help["attachment"]["_meta"]["command"]),
        (&json!("/help"), &json!("help"))
    );
    assert!(help["attachment"]["_meta"]["description"].is_string(), "{help}");
    assert!(items.iter().any(|it| it["attachment"]["_meta"]["argumentHint"].is_string()), "{answer}");
}

#[test]
fn a_terminal_has_the_uri_that_its_client_made() {
    let server = Server::start(&script(&[]), &[]);
    let mut one = AhpSocket::begin_older(&server, "one");
    let terminal = "agenthost-terminal:/4b4add4b-7350";
    let wanted =
        json!({ "channel": terminal, "claim": { "kind": "client", "clientId": "one" }, "cols": 80, "rows": 30 });
    one.call("createTerminal", wanted).unwrap();
    one.until(|it| it.state(ROOT)["terminals"][0]["resource"] == terminal);
    one.subscribe(terminal);
    one.dispatch(terminal, json!({ "type": "terminal/input", "data": "echo $((40+2))\r" }));
    one.until(|it| it.state(terminal)["content"].to_string().contains("42"));
    one.call("disposeTerminal", json!({ "channel": terminal })).unwrap();
    one.until(|it| it.state(ROOT)["terminals"] == json!([]));
}

#[test]
fn without_a_path_the_same_checks_hold() {
    let server = Server::start(&script(&[]), &[]);
    let own = format!("/?tkn={}", server.token);
    assert!(AhpSocket::open_at(&server, &own, None).is_ok());
    assert_eq!(AhpSocket::open_at(&server, "/?tkn=castor_wrong", None).err(), Some(401));
    assert_eq!(AhpSocket::open_at(&server, "/?tkn=", None).err(), Some(401));
    assert_eq!(AhpSocket::open_at(&server, "/", Some(&server.token)).err(), Some(404));
    assert_eq!(AhpSocket::open_at(&server, &format!("/x?tkn={}", server.token), None).err(), Some(404));
    assert_eq!(server.http(&format!("GET {own}"), &[], "").0, 426);
    assert_eq!(server.http(&format!("POST {own}"), &[], "{}").0, 405);
    for header in [("Origin", "https://evil.example"), ("Host", "evil.example")] {
        assert_eq!(server.http(&format!("GET {own}"), &[header], "").0, 403);
    }
}
