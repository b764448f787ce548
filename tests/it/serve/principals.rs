//! Principals of `castor serve` that are not the user: their folders, modes and models, and the sandbox around their agent.

use std::fs;

use serde_json::json;

use super::{Server, Socket, call, is_question, prompt, say, script, verb};
use crate::client::Sandbox;

/// A server with a token of the principal `bots`, which works in `ws/work`.
struct Shared {
    server: Server,
    token: String,
}

impl Shared {
    /// The script lies where the agent sees it.
    fn start(script: &str, rights: &[&str]) -> Self {
        Self::start_in(Sandbox::new(), script, rights)
    }

    fn start_in(mut sandbox: Sandbox, script: &str, rights: &[&str]) -> Self {
        sandbox.env.push(("GEMINI_API_KEY".into(), "AIza-canary".into()));
        let file = sandbox.write("ws/work/script", script);
        sandbox.write("ws/beside/secret", "canary");
        sandbox.write("home/secret", "canary");
        let add = ["serve", "token", "add", "bot", "--principal=bots", "--root=work"];
        let token = verb(&mut sandbox, &[&add, rights].concat());
        let server = Server::start_in(sandbox, &[&format!("--fake-responses={}", file.display())]);
        Self { server, token }
    }

    fn client(&self) -> Socket {
        let mut res = Socket::open(&self.server, &self.token, None).unwrap();
        let hello =
            res.call("initialize", json!({"protocolVersion": 1, "clientInfo": {"name": "bot", "version": "1"}}));
        assert!(hello["result"].is_object(), "{hello}");
        res
    }
}

#[test]
fn it_works_in_its_folders_with_its_modes_and_sees_nobody_elses_sessions() {
    let it = Shared::start(&script(&[vec![say("Hello.")]]), &["--mode=plan", "--mode=default"]);
    let workspace = it.server.sandbox.workspace();
    let mut user = it.server.client();
    let of_user = user.new_session(&it.server);
    let mut bot = it.client();
    for outside in [workspace.clone(), workspace.join("beside"), "/etc".into()] {
        let answer = bot.call("session/new", json!({"cwd": outside, "mcpServers": []}));
        assert_eq!(answer["error"]["code"], -32602, "{}: {answer}", outside.display());
    }
    let more = json!({"cwd": workspace.join("work"), "additionalDirectories": ["/etc"], "mcpServers": []});
    assert_eq!(bot.call("session/new", more)["error"]["code"], -32602);
    let new = bot.call("session/new", json!({"cwd": workspace.join("work"), "mcpServers": []}));
    let session = new["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{new}")).to_owned();
    let modes: Vec<_> =
        new["result"]["modes"]["availableModes"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    assert_eq!(modes, ["plan", "default"]);
    let yolo = bot.call("session/set_mode", json!({"sessionId": session, "modeId": "yolo"}));
    assert_eq!(yolo["error"]["code"], -32602, "{yolo}");
    let load = json!({"sessionId": of_user, "cwd": workspace.join("work"), "mcpServers": []});
    assert_eq!(bot.call("session/load", load)["error"]["code"], -32002);
    let theirs = Socket::open(&it.server, &it.token, Some((&user.connection, 0)));
    assert_eq!(theirs.err(), Some(404), "connections of others are unknown");
    assert_eq!(bot.call("session/prompt", prompt(&session, "go"))["result"]["stopReason"], "end_turn");
}

/// Its name and its principal are the same: its connections and its agent are not.
#[test]
fn a_new_token_has_nothing_of_an_old_one_of_its_name() {
    let mut it = Shared::start("", &["--root=beside"]);
    let mut bot = it.client();
    let cwd = |it: &Shared, folder: &str| json!({"cwd": it.server.sandbox.workspace().join(folder), "mcpServers": []});
    assert!(bot.call("session/new", cwd(&it, "beside"))["result"].is_object());
    verb(&mut it.server.sandbox, &["serve", "token", "remove", "bot"]);
    it.token = verb(&mut it.server.sandbox, &["serve", "token", "add", "bot", "--principal=bots", "--root=work"]);
    let end = std::iter::repeat_with(|| bot.try_next()).find_map(Result::err);
    assert_eq!(end.unwrap(), "1013 the token was removed");
    let mut bot = it.client();
    assert_eq!(bot.call("session/new", cwd(&it, "beside"))["error"]["code"], -32602);
    assert!(bot.call("session/new", cwd(&it, "work"))["result"].is_object());
}

/// The address of a database would open everybody's sessions: with it the agent would not even start here.
#[test]
fn it_does_not_get_the_store_of_the_user() {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("CASTOR_STORE".into(), "postgres://u:canary@127.0.0.1:1/d".into()));
    let it = Shared::start_in(sandbox, &script(&[vec![say("Hello.")]]), &["--env=CASTOR_STORE"]);
    let mut bot = it.client();
    let new = bot.call("session/new", json!({"cwd": it.server.sandbox.workspace().join("work"), "mcpServers": []}));
    let session = new["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{new}"));
    assert_eq!(bot.call("session/prompt", prompt(session, "go"))["result"]["stopReason"], "end_turn");
}

#[test]
fn other_models_than_its_own_are_refused() {
    let it = Shared::start(&script(&[vec![say("Hello.")]]), &["--model=small"]);
    let mut bot = it.client();
    let cwd = it.server.sandbox.workspace().join("work");
    let new = bot.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
    let why = new["error"]["message"].as_str().unwrap_or_else(|| panic!("{new}"));
    assert!(why.contains("small"), "{why}");
}

/// Whatever it says yes to.
#[test]
fn its_commands_and_tools_are_held_whatever_it_allows() {
    let show = "cat ../beside/secret; ls ..; cat ~/secret; cat $CASTOR_HOME/../../../tokens.json; env; echo x > ../made; \
                echo x > here; true";
    let read = call("read_file", json!({"file_path": "../beside/secret"}));
    let run = call("run_shell_command", json!({"command": show}));
    let it = Shared::start(&script(&[vec![run], vec![read], vec![say("Done.")]]), &[]);
    let workspace = it.server.sandbox.workspace();
    let mut bot = it.client();
    let new = bot.call("session/new", json!({"cwd": workspace.join("work"), "mcpServers": []}));
    let session = new["result"]["sessionId"].as_str().unwrap_or_else(|| panic!("{new}")).to_owned();
    bot.request("p", "session/prompt", prompt(&session, "go"));
    loop {
        let next = bot.until(|it| is_question(it) || it["id"] == "p");
        if !is_question(&next) {
            assert_eq!(next["result"]["stopReason"], "end_turn", "{next}");
            break;
        }
        let options = next["params"]["options"].as_array().unwrap();
        let yes = options.iter().find(|it| it["kind"] == "allow_once").unwrap_or_else(|| panic!("{next}"));
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": yes["optionId"]}});
        bot.send(&json!({"jsonrpc": "2.0", "id": next["id"], "result": outcome}));
    }
    let seen = serde_json::to_string(&bot.before).unwrap();
    assert!(!seen.contains("canary"), "{seen}");
    assert!(!workspace.join("made").exists());
    assert_eq!(fs::read_to_string(workspace.join("work/here")).unwrap(), "x\n");
}
