//! Commands and skills of files that change while a session runs, and the commands of castor's command line about them.

use std::process::Command;

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

/// Types a prompt: what castor says, and the commands that the client was told of.
fn typed(client: &mut Client, session: &str, text: &str) -> (String, Option<Vec<String>>) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (_, messages) = client.call("session/prompt", params).unwrap();
    let updates = || messages.iter().map(|it| &it["params"]["update"]);
    let is_chunk = |it: &&Value| it["sessionUpdate"] == "agent_message_chunk";
    let said = updates().filter(is_chunk).filter_map(|it| it["content"]["text"].as_str()).collect();
    let offer = updates().find(|it| it["sessionUpdate"] == "available_commands_update").map(|it| {
        let all = it["availableCommands"].as_array().unwrap();
        all.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    });
    (said, offer)
}

const SKILL: &str = "---\nname: tidy\ndescription: Tidies up\n---\nSweep.";

#[test]
fn files_that_change_count_from_the_next_prompt_on() {
    let mut sandbox = Sandbox::new();
    let script = sandbox.write("script.jsonl", "");
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    sandbox.write("home/.gemini/commands/a.toml", "prompt = 'One.'");
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    assert_eq!(typed(&mut client, &session, "/commands").0, "- `/a` (user): One.\n");
    sandbox.write("home/.gemini/commands/b.toml", "prompt = 'Two.'\ndescription = 'Second'");
    sandbox.write("home/.agents/skills/tidy/SKILL.md", SKILL);
    let (said, offer) = typed(&mut client, &session, "/commands");
    assert_eq!(said, "- `/a` (user): One.\n- `/b` (user): Second\n");
    let offer = offer.unwrap();
    assert!(["a", "b", "tidy", "skills"].iter().all(|it| offer.contains(&(*it).to_owned())), "{offer:?}");
    sandbox.write("home/.gemini/commands/a.toml", "prompt = 'Changed now.'");
    std::fs::remove_file(sandbox.home().join(".gemini/commands/b.toml")).unwrap();
    let (said, offer) = typed(&mut client, &session, "/commands");
    assert_eq!(said, "- `/a` (user): Changed now.\n");
    assert!(!offer.unwrap().contains(&"b".to_owned()));
    assert_eq!(typed(&mut client, &session, "/commands").1, None, "said once");
    assert!(typed(&mut client, &session, "/b").0.starts_with("There is no command `/b`."));
}

/// Runs castor: its exit code, and what it printed.
fn castor(sandbox: &Sandbox, args: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_castor"));
    command.args(args).current_dir(sandbox.workspace()).env_clear();
    command.env("HOME", sandbox.home()).env("CASTOR_TRUST_WORKSPACE", "true");
    let out = command.output().unwrap();
    let text = [out.stdout, out.stderr].map(|it| String::from_utf8(it).unwrap()).concat();
    (out.status.code().unwrap(), text)
}

#[test]
fn command_line_lists_shows_switches_and_checks() {
    let sandbox = Sandbox::new();
    sandbox.write("ws/.gemini/commands/git/fix.toml", "prompt = 'Fix {{args}}.'\ndescription = 'Fixes'");
    sandbox.write("ws/.claude/commands/bad.md", "---\ndescription: x\n");
    sandbox.write("home/.agents/skills/tidy/SKILL.md", SKILL);
    let (code, text) = castor(&sandbox, &["commands", "list"]);
    assert!(code == 0 && text.starts_with("/git:fix arguments ") && text.contains(" workspace  Fixes"), "{text}");
    let (code, text) = castor(&sandbox, &["commands", "check"]);
    assert!(code == 1 && text.contains("bad.md:1:1: "), "{text}");
    let (code, text) = castor(&sandbox, &["commands", "show", "/git:fix"]);
    assert!(code == 0 && text.ends_with("\n  Fix {{args}}.\n"), "{text}");
    assert_eq!(castor(&sandbox, &["commands", "show", "none"]).0, 42);
    let (code, text) = castor(&sandbox, &["commands", "check", ".gemini/commands/git/fix.toml"]);
    assert_eq!((code, text.as_str()), (0, "The command fix is in order.\n"));
    let state = |sandbox: &Sandbox| {
        let (_, text) = castor(sandbox, &["skills", "list"]);
        text.split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!(state(&sandbox), "on");
    assert_eq!(castor(&sandbox, &["skills", "disable", "tidy"]).0, 0);
    assert_eq!(state(&sandbox), "off");
    assert_eq!(castor(&sandbox, &["skills", "enable", "TIDY"]).0, 0);
    assert_eq!(state(&sandbox), "on");
    let (code, text) = castor(&sandbox, &["skills", "show", "tidy"]);
    assert!(code == 0 && text.contains("\n  Sweep.\n"), "{text}");
    assert_eq!(castor(&sandbox, &["skills", "check"]), (0, "Skills: 1.\n".to_owned()));
}
