//! A new user's first ten commands: with "work without questions here" chosen first, they cost one question in all.
#![cfg(target_os = "linux")]

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::{Value, json};

use crate::{
    client::{Client, Namespaces, Sandbox},
    model_server::{ModelServer, calls, says},
    repositories::commit_all,
};

const COMMANDS: [&str; 10] = [
    "ls -la",
    "cargo build",
    "npm test",
    "python -m pytest -q || pytest -q",
    "git status --short && git diff",
    "grep -rn main src | head -5",
    "mkdir -p out/reports && echo done >out/reports/a.txt",
    "python3 -c 'open(\"out/b.txt\", \"w\").write(\"x\")'",
    "sed -i 's/one/two/' src/main.rs",
    "rm -rf out && git add -A && git commit -q --allow-empty -m work",
];

/// What builds and tests do to a folder: they make folders of their own, and write in the session's `/tmp`.
const TOOL: &str =
    "#!/bin/sh\nmkdir -p \"target/$(basename $0)\" && echo x >\"target/$(basename $0)/log\" && echo x >/tmp/of-$$\n";
const CHOICE: &str = "work without questions here";

fn new_user() -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.env.retain(|it| it.0 != "CASTOR_TRUST_WORKSPACE");
    for name in ["cargo", "npm", "pytest"] {
        let it = sandbox.write(format!("home/bin/{name}"), TOOL);
        fs::set_permissions(it, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    sandbox.env.push(("PATH".into(), format!("{}:{path}", sandbox.home().join("bin").display())));
    sandbox.write("ws/src/main.rs", "fn main() { /* one */ }\n");
    sandbox.write("ws/.gitignore", "target\n");
    commit_all(&sandbox.workspace());
    sandbox
}

/// The titles of what is asked, answered by the choice where it is there, and how many commands failed.
fn work(client: &mut Client, session: &str) -> (Vec<String>, usize) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("p"), "session/prompt", params);
    let (mut asked, mut n_failed) = (Vec::new(), 0);
    loop {
        let it = client.next().unwrap().expect("more was to come");
        let update = &it["params"]["update"];
        if it["method"] == "session/request_permission" {
            asked.push(it["params"]["toolCall"]["title"].to_string());
            let options = it["params"]["options"].as_array().unwrap();
            let named = options.iter().find(|it| it["name"].as_str().unwrap().contains(CHOICE));
            let chosen: Value = named.unwrap_or(&options[0])["optionId"].clone();
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": chosen}});
            client.send(&json!({"jsonrpc": "2.0", "id": it["id"], "result": outcome}));
        } else if it["id"] == "p" {
            return (asked, n_failed);
        } else if update["sessionUpdate"] == "tool_call_update" && update["status"] == "failed" {
            n_failed += 1;
        }
    }
}

/// Where the folder brings something to trust, the question about trust has the choice; else the first command's has it. The
/// next session asks nothing any more.
#[test]
fn a_new_users_first_ten_commands_ask_once() {
    if Sandbox::new().namespaces == Namespaces::Nobody {
        return;
    }
    for brings in [None, Some("ws/AGENTS.md"), Some("ws/.castor/settings.json")] {
        let mut sandbox = new_user();
        brings.into_iter().for_each(|it| _ = sandbox.write(it, "{}\n"));
        let lines = COMMANDS.iter().chain(&COMMANDS).map(|it| calls("run_shell_command", &json!({"command": it})));
        let mut answers: Vec<String> = lines.collect();
        answers.insert(COMMANDS.len(), says("Done."));
        answers.push(says("Done."));
        let model = ModelServer::start(answers);
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
        sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
        for n_asked in [1, 0] {
            let mut client = Client::start(&sandbox);
            client.initialize(&json!({})).unwrap();
            let session = client.new_session(&sandbox.workspace()).unwrap();
            let (asked, n_failed) = work(&mut client, &session);
            assert_eq!((asked.len(), n_failed), (n_asked, 0), "{brings:?}: {asked:?}");
            assert!(client.end().unwrap().0.success());
        }
        assert!(model.asked().len() >= 2 * COMMANDS.len(), "{} requests", model.asked().len());
        let text = fs::read_to_string(sandbox.workspace().join("src/main.rs")).unwrap();
        assert!(text.contains("two"), "{text}");
    }
}
