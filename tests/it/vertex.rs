//! Vertex AI from the editor's side: what is sent where, and with which credentials.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{ModelServer, calls, gives, refuses, says},
};

fn token(value: &str) -> String {
    gives(&json!({ "access_token": value, "expires_in": 3_600, "token_type": "Bearer" }))
}

/// A castor that is to use Vertex AI, with these variables as well.
fn agent(env: &[(&str, &str)]) -> (Sandbox, Client) {
    let mut sandbox = Sandbox::new();
    let wish = ("GOOGLE_GENAI_USE_VERTEXAI", "true");
    sandbox.env.extend(env.iter().chain([&wish]).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    (sandbox, client)
}

fn prompt(client: &mut Client, session: &str) -> Value {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.call("session/prompt", params).unwrap().0
}

const PLACE: &str = "POST /v1beta1/projects/p1/locations/europe-west1/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse ";

#[test]
fn a_turn_with_a_key() {
    let server = ModelServer::start(vec![calls("list_directory", &json!({ "dir_path": "." })), says("Done.")]);
    let (sandbox, mut client) = agent(&[("GOOGLE_API_KEY", "CANARY-key"), ("GOOGLE_VERTEX_BASE_URL", &server.url)]);
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let answer = prompt(&mut client, &session);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let asked = server.asked();
    let line = "POST /v1beta1/publishers/google/models/gemini-3.8-flash:streamGenerateContent?alt=sse ";
    assert!(asked.iter().all(|it| it.head.starts_with(line)), "{}", asked[0].head);
    assert!(asked.iter().all(|it| it.header("x-goog-api-key") == Some("CANARY-key")));
    // This service refuses calls and results with ids.
    let body: Value = serde_json::from_str(&asked[1].body).unwrap();
    let contents = body["contents"].as_array().unwrap();
    let parts: Vec<&Value> = contents.iter().flat_map(|it| it["parts"].as_array().unwrap()).collect();
    let found = |name: &str| parts.iter().find_map(|it| it.get(name)).cloned().unwrap();
    for it in [found("functionCall"), found("functionResponse")] {
        assert_eq!((&it["name"], it.get("id")), (&json!("list_directory"), None));
    }
}

#[test]
fn metadata_token_is_cached_until_refused() {
    let tokens = ModelServer::start(vec![token("CANARY-one"), token("CANARY-two")]);
    let server = ModelServer::start(vec![says("One."), refuses("CANARY-one"), says("Two.")]);
    let host = tokens.url.trim_start_matches("http://").to_owned();
    let (sandbox, mut client) = agent(&[
        ("GOOGLE_CLOUD_PROJECT", "p1"),
        ("GOOGLE_CLOUD_LOCATION", "europe-west1"),
        ("GOOGLE_VERTEX_BASE_URL", &server.url),
        ("GCE_METADATA_HOST", &host),
    ]);
    let session = client.new_session(&sandbox.workspace()).unwrap();
    assert_eq!(tokens.asked().len(), 0, "before somebody asks");
    let answers: Vec<Value> = (0..3).map(|_| prompt(&mut client, &session)).collect();
    assert_eq!(answers[0]["result"]["stopReason"], "end_turn", "{answers:?}");
    let refused = answers[1].to_string();
    assert!(answers[1]["error"]["code"] == -32000 && !refused.contains("CANARY"), "{refused}");
    assert_eq!(answers[2]["result"]["stopReason"], "end_turn", "{answers:?}");
    let asked = server.asked();
    let used: Vec<_> = asked.iter().map(|it| it.header("authorization").unwrap()).collect();
    assert_eq!(used, ["Bearer CANARY-one", "Bearer CANARY-one", "Bearer CANARY-two"]);
    assert!(asked.iter().all(|it| it.head.starts_with(PLACE)), "{}", asked[0].head);
    assert!(tokens.asked().iter().all(|it| it.header("metadata-flavor") == Some("Google")));
    assert_eq!(tokens.asked().len(), 2);
}

#[test]
fn files_of_credentials() {
    let key = include_str!("../data/tls/service-account.key");
    let user = json!({
        "type": "authorized_user", "client_id": "i", "client_secret": "CANARY", "refresh_token": "CANARY"
    });
    let service =
        json!({ "type": "service_account", "client_email": "me@p1.example", "private_key": key, "project_id": "p1" });
    for (mut credentials, grant) in [(user, "grant_type=refresh_token"), (service, "jwt-bearer&assertion=ey")] {
        let tokens = ModelServer::start(vec![token("CANARY-one")]);
        let server = ModelServer::start(vec![says("One.")]);
        credentials["token_uri"] = format!("{}/token", tokens.url).into();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials.json");
        std::fs::write(&file, credentials.to_string()).unwrap();
        let (sandbox, mut client) = agent(&[
            ("GOOGLE_CLOUD_PROJECT", "p1"),
            ("GOOGLE_CLOUD_LOCATION", "europe-west1"),
            ("GOOGLE_VERTEX_BASE_URL", &server.url),
            ("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap()),
        ]);
        let session = client.new_session(&sandbox.workspace()).unwrap();
        let answer = prompt(&mut client, &session);
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
        assert!(tokens.asked()[0].body.contains(grant), "{}", tokens.asked()[0].body);
        assert_eq!(server.asked()[0].header("authorization"), Some("Bearer CANARY-one"));
    }
}

/// The demo model does not answer instead.
#[test]
fn missing_vertex_settings_are_reported() {
    for (env, words) in [
        (&[][..], "Vertex AI is not configured: set GOOGLE_API_KEY, or GOOGLE_CLOUD_PROJECT and GOOGLE_CLOUD_LOCATION"),
        (&[("GOOGLE_CLOUD_PROJECT", "p1"), ("GOOGLE_CLOUD_LOCATION", "x/y")], "is not a place such as"),
        (
            &[
                ("GOOGLE_CLOUD_PROJECT", "p1"),
                ("GOOGLE_CLOUD_LOCATION", "us"),
                ("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json"),
            ],
            "GOOGLE_APPLICATION_CREDENTIALS: /nowhere.json: ",
        ),
    ] {
        let (sandbox, mut client) = agent(env);
        let (answer, _) = client.call("session/new", json!({"cwd": sandbox.workspace(), "mcpServers": []})).unwrap();
        assert_eq!(answer["error"]["code"], -32000, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
}
