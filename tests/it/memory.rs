//! Memory files from the editor's side: what of them is in the request to the model.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, says},
};

fn agent(server: &ModelServer, trusted: bool) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    if !trusted {
        sandbox.env.push(("CASTOR_TRUST_WORKSPACE".into(), "false".into()));
    }
    for (name, text) in [
        ("home/.gemini/GEMINI.md", "USER-WORD"),
        ("ws/.git/HEAD", ""),
        ("ws/AGENTS.md", "PROJECT-WORD @docs/more.md"),
        ("ws/docs/more.md", "IMPORTED-WORD"),
        ("ws/sub/GEMINI.md", "NEAREST-WORD"),
    ] {
        sandbox.write(name, text);
    }
    sandbox
}

fn prompt(client: &mut Client, session: &str, text: &str) -> (Value, String) {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    (answer, updates.iter().map(Value::to_string).collect())
}

fn system(server: &ModelServer, at: usize) -> String {
    let body: Value = serde_json::from_str(&server.asked()[at].body).unwrap();
    body["systemInstruction"].to_string()
}

#[test]
fn the_request_has_them_and_stays_as_it_is_until_they_are_read_again() {
    let server = ModelServer::start(vec![says("One."), says("Two."), says("Three."), says("Four.")]);
    let sandbox = agent(&server, true);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let sub = sandbox.workspace().join("sub");
    let session = client.new_session(&sub).unwrap();
    prompt(&mut client, &session, "one");
    let first = system(&server, 0);
    let places = ["USER-WORD", "PROJECT-WORD", "IMPORTED-WORD", "NEAREST-WORD"].map(|it| first.find(it));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?} {first}");

    // A request that changes with every save of a file would not be cached.
    sandbox.write("ws/AGENTS.md", "CHANGED-WORD");
    prompt(&mut client, &session, "two");
    assert_eq!(system(&server, 1), first);
    let (_, said) = prompt(&mut client, &session, "/memory refresh");
    assert!(said.contains("AGENTS.md` (project, 12 bytes)") && said.contains("(global, 9 bytes)"), "{said}");
    prompt(&mut client, &session, "three");
    let third = system(&server, 2);
    assert!(
        third.contains("CHANGED-WORD") && !third.contains("PROJECT-WORD") && !third.contains("IMPORTED"),
        "{third}"
    );
    assert!(!server.asked()[2].body.contains("/memory"), "what the user asks castor is not the model's to see");

    // A session that is loaded looks at the files of now.
    client.end().unwrap();
    sandbox.write("ws/AGENTS.md", "NEWEST-WORD");
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": sub, "mcpServers": [] });
    client.result("session/load", params).unwrap();
    prompt(&mut client, &session, "four");
    let fourth = system(&server, 3);
    assert!(fourth.contains("NEWEST-WORD") && !fourth.contains("CHANGED-WORD"), "{fourth}");
}

#[test]
fn of_a_folder_without_trust_there_is_nothing() {
    let server = ModelServer::start(vec![says("One.")]);
    let sandbox = agent(&server, false);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "one");
    let body = &server.asked()[0].body;
    assert!(body.contains("USER-WORD"), "the user's own files are the user's word anywhere: {body}");
    assert!(!body.contains("PROJECT-WORD") && !body.contains("IMPORTED-WORD"), "{body}");
    let (_, said) = prompt(&mut client, &session, "/memory");
    assert!(said.contains("1 memory file") && !said.contains("AGENTS.md` (project"), "{said}");
}

/// A workspace's settings cannot make memory of what the user's own folders keep.
#[test]
fn settings_name_them() {
    let server = ModelServer::start(vec![says("One.")]);
    let sandbox = agent(&server, true);
    sandbox.write("home/.gemini/oauth_creds.json", "CREDENTIAL-WORD");
    sandbox.write("ws/NOTES.md", "NOTES-WORD");
    let settings = json!({ "context": { "fileName": ["NOTES.md", "oauth_creds.json"] } });
    sandbox.write("ws/.gemini/settings.json", &settings.to_string());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "one");
    let body = &server.asked()[0].body;
    assert!(body.contains("NOTES-WORD"), "{body}");
    assert!(["CREDENTIAL", "USER-WORD", "PROJECT-WORD"].iter().all(|it| !body.contains(it)), "{body}");
}
