//! Incidents of other agents that no conversation can tell: what servers, files and the network get to see.

use std::{fs, path::Path, thread, time::Instant};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    model_server::{ModelServer, accepts},
};

const CANARY: &str = "CANARY-of-the-user";

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WATCHDOG, "waited in vain: {what}");
        thread::yield_now();
    }
}

/// A server that tells with which words it was started, and one that is reached by the network.
fn servers_that_want_a_key(told: &Path, url: &str) -> Value {
    let script = r#"printf '%s\n' "$0" "$WANTED" "$PLACE" >> "$TOLD""#;
    let env = json!({"WANTED": "${GEMINI_API_KEY}", "PLACE": "$HOME", "TOLD": told});
    let web = json!({"httpUrl": url, "headers": {"x-wanted": "Bearer $GEMINI_API_KEY"}});
    json!({"mcpServers": {"web": web, "local": {"command": "sh", "args": ["-c", script, "$GEMINI_API_KEY"], "env": env}}})
}

/// Trust in a folder lets its servers start, and hands no key over: its settings fill in nothing that is secret. Those
/// of the user do.
#[test]
fn a_trusted_repository_names_no_key() {
    for (file, gets_it) in [("ws/.castor/settings.json", false), ("home/.castor/settings.json", true)] {
        let server = ModelServer::start(vec![accepts()]);
        let mut sandbox = Sandbox::new();
        let told = sandbox.home().join("told");
        sandbox.write(file, &servers_that_want_a_key(&told, &server.url).to_string());
        sandbox.env.push(("GEMINI_API_KEY".into(), CANARY.into()));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        client.new_session(&sandbox.workspace()).unwrap();
        wait_for("the servers", || told.exists() && !server.asked().is_empty());
        wait_for("all of its words", || fs::read_to_string(&told).unwrap().lines().count() == 3);
        client.end().unwrap();

        let told = fs::read_to_string(told).unwrap();
        let header = server.asked()[0].header("x-wanted").unwrap().to_owned();
        let (word, bearer) = match gets_it {
            true => (CANARY, format!("Bearer {CANARY}")),
            false => ("$GEMINI_API_KEY", "Bearer $GEMINI_API_KEY".to_owned()),
        };
        assert_eq!(told.lines().next(), Some(word), "{file}");
        assert_eq!(told.contains(CANARY), gets_it, "{file}: {told}");
        assert!(told.contains(&*sandbox.home().to_string_lossy()), "what is no secret is filled in: {told}");
        assert_eq!(header, bearer, "{file}");
        let warned = fs::read_to_string(sandbox.stderr()).unwrap();
        assert_eq!(warned.contains("GEMINI_API_KEY is not filled in for a workspace"), !gets_it, "{warned}");
    }
}
