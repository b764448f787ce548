//! Redaction through the whole of castor: what client, model, logs and exports get of secrets in files.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::{
    client::{Client, Sandbox},
    incidents::{CANARY, all_files, prompt},
    model_server::{ModelServer, calls, says},
};

/// Secrets in the workspace's own files: commands, hooks and searches print them, in many ways and pieces.
#[test]
fn no_secret_of_a_file_gets_out() {
    let print = "key=$(sed -n 's/^API_KEY=//p' .env); for it in 1 2 3; do cat .env; printf %s ${key%user}; echo user; done; \
                 base64 -w0 .env; printf %s $key | od -An -tx1 | tr -d ' \\n'; echo; cat .env >&2; cat secrets.yml; exit 3";
    let mut answers = vec![
        calls("run_shell_command", &json!({"command": "sh print.sh"})),
        says("1"),
        calls("grep_search", &json!({"pattern": "CANARY"})),
        says("2"),
    ]
    .into_iter();
    let model = ModelServer::answering(move |_| answers.next());
    let mut sandbox = Sandbox::new();
    let hook =
        json!({"hooks": [{"type": "command", "command": format!("cat {}/.env", sandbox.workspace().display())}]});
    let settings = json!({"hooks": {"AfterTool": [hook], "BeforeAgent": [hook]}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    let lines = "MULTI_KEY=\"-----BEGIN X-----\nsecond1line2of3armour\n-----END X-----\"";
    sandbox.write("ws/.env", &format!("API_KEY={CANARY}\nURL=redis://app:{CANARY}@h\n{lines}\n"));
    sandbox.write("ws/secrets.yml", "db:\n  list:\n    - third1item2of3list\n");
    sandbox.write("ws/print.sh", print);
    sandbox.write("ws/notes.txt", &format!("it is {CANARY}\n"));
    for (name, it) in [("GEMINI_API_KEY", "k"), ("GOOGLE_GEMINI_BASE_URL", &*model.url)] {
        sandbox.env.push((name.to_owned(), it.to_owned()));
    }
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let mut said = String::new();
    for text in ["1", "2"] {
        said += &prompt(&mut client, &session, text, "allow_once").1;
    }
    client.end().unwrap();
    said += client.transcript().split("-- stderr --").nth(1).unwrap_or_default();
    let mut castor = std::process::Command::new(env!("CARGO_BIN_EXE_castor"));
    let plain = Sandbox::command(&sandbox);
    let envs = plain.get_envs().filter_map(|(name, it)| Some((name.to_owned(), it?.to_owned())));
    castor.env_clear().envs(envs).current_dir(sandbox.workspace()).args(["sessions", "export", &session]);
    let export = castor.output().unwrap().stdout;
    assert!(!export.is_empty());
    let told: String = model.asked().iter().map(|it| it.body.clone()).collect();
    // Checkpoints hold the files themselves: nobody but the user reads them.
    let is_log = |it: &PathBuf| it.is_file() && !it.components().any(|it| it.as_os_str() == "checkpoints");
    let logs = all_files(&sandbox.home().join(".castor")).into_iter().filter(is_log);
    let kept: String = logs.map(|it| String::from_utf8_lossy(&fs::read(it).unwrap()).into_owned()).collect();
    let hex: String = CANARY.bytes().map(|it| format!("{it:02x}")).collect();
    // In base64, whatever stands around it.
    let middle = ["NBTkFSWS1vZi10aGUtdXNl", "DQU5BUlktb2YtdGhlLXVzZX", "Q0FOQVJZLW9mLXRoZS11c2Vy"];
    for (what, text) in [("said", said), ("told", told), ("kept", kept), ("export", String::from_utf8(export).unwrap())]
    {
        assert!(text.contains("[secret from .env]"), "{what}: {text}");
        for it in [CANARY, &hex, "second1line2of3armour", "third1item2of3list"].into_iter().chain(middle) {
            assert!(!text.contains(it), "{what} {it}: {text}");
        }
    }
}
