//! Files that change during a session: settings, policies, memory and commands count from the next prompt on, with a word
//! about it; what was trusted by its content is asked about.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    mcp_server,
    model_server::{ModelServer, calls, says},
};

fn sandbox(server: &ModelServer) -> Sandbox {
    let mut sandbox = Sandbox::new();
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox
}

fn begin(sandbox: &Sandbox) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

fn params(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

fn prompt(client: &mut Client, session: &str, text: &str) -> String {
    let (answer, updates) = client.call("session/prompt", params(session, text)).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    updates.iter().map(Value::to_string).collect()
}

#[test]
fn changed_files_count_from_the_next_prompt_on() {
    let server = ModelServer::start(vec![says("One."), says("Two."), says("Three.")]);
    let sandbox = sandbox(&server);
    sandbox.write("ws/GEMINI.md", "OLD-WORD");
    let (mut client, session) = begin(&sandbox);
    prompt(&mut client, &session, "one");
    assert!(server.asked()[0].body.contains("OLD-WORD") && server.asked()[0].body.contains("\"glob\""));

    sandbox.write("ws/GEMINI.md", "NEW-WORD");
    sandbox.write("home/.castor/settings.json", r#"{"tools": {"exclude": ["glob"]}, "general": {"maxAtempts": 3}}"#);
    let rule = "[[rule]]\ntoolName = 'grep_search'\ndecision = 'deny'\npriority = 10\n";
    sandbox.write("ws/.gemini/policies/mine.toml", rule);
    sandbox.write("ws/.gemini/commands/go.toml", "prompt = 'Go.'");
    let said = prompt(&mut client, &session, "two");
    for what in [
        "Files changed, and castor read them anew.",
        "settings: tools.exclude",
        "policies: .gemini/policies/mine.toml",
        "commands: /go (new)",
        "GEMINI.md",
        "general.maxAtempts in",
        "settings.json:1 (is not a setting that castor knows; did you mean general.maxAttempts?)",
    ] {
        assert!(said.contains(what), "{what}: {said}");
    }
    let second = &server.asked()[1].body;
    assert!(second.contains("NEW-WORD") && !second.contains("OLD-WORD"), "{second}");
    assert!(!second.contains("\"name\":\"glob\"") && !second.contains("\"name\":\"grep_search\""), "{second}");

    let said = prompt(&mut client, &session, "three");
    assert!(!said.contains("changed"), "{said}");
    client.end().unwrap();
}

/// A workspace's file that was trusted as it was: as long as nobody said yes to the new one, the old one holds.
#[test]
fn what_was_trusted_by_its_content_is_asked_about() {
    let shell = || calls("run_shell_command", &json!({ "command": "touch ran" }));
    let server = ModelServer::start(vec![says("One."), shell(), says("Two."), shell(), says("Three.")]);
    let mut sandbox = sandbox(&server);
    sandbox.env.retain(|it| it.0 != "CASTOR_TRUST_WORKSPACE");
    sandbox.env.push(("CASTOR_TRUST_WORKSPACE".into(), String::new()));
    let workspace = sandbox.workspace().to_string_lossy().into_owned();
    sandbox.write("home/.castor/trustedFolders.json", &json!({ workspace: "TRUST_FOLDER" }).to_string());
    let deny = "[[rule]]\ntoolName = 'run_shell_command'\ndecision = 'deny'\npriority = 10\n";
    sandbox.write("ws/.gemini/policies/mine.toml", deny);
    let (mut client, session) = begin(&sandbox);
    prompt(&mut client, &session, "one");

    sandbox.write("ws/.gemini/policies/mine.toml", "");
    for (answer, denied) in [("not_now", true), ("trust_folder", false)] {
        let (asked, seen) = prompt_answering(&mut client, &session, answer);
        assert!(asked[0].contains("trust"), "{asked:?}");
        assert_eq!(asked.len() == 1, denied, "{asked:?} {seen}");
        // Something changes again, so that the next prompt asks again.
        sandbox.write("ws/.gemini/policies/mine.toml", "# nothing\n");
    }
    client.end().unwrap();
}

/// `/mcp add` writes the workspace's settings, and is no yes to them.
#[test]
fn a_server_that_is_added_to_a_workspace_waits_for_the_users_yes() {
    let server = ModelServer::start(["One.", "Two.", "Three."].map(says).to_vec());
    let mut sandbox = sandbox(&server);
    sandbox.env.retain(|it| it.0 != "CASTOR_TRUST_WORKSPACE");
    sandbox.env.push(("CASTOR_TRUST_WORKSPACE".into(), String::new()));
    let workspace = sandbox.workspace().to_string_lossy().into_owned();
    sandbox.write("home/.castor/trustedFolders.json", &json!({ workspace: "TRUST_FOLDER" }).to_string());
    let (mut client, session) = begin(&sandbox);
    prompt(&mut client, &session, "one");
    let program = std::env::current_exe().unwrap();
    let add = format!("/mcp add -e MCP_SERVER=x probe {} {}", program.display(), mcp_server::ARGS.join(" "));
    for (answer, is_there) in [("not_now", false), ("trust_folder", true)] {
        let add = add.replacen("add", &format!("add --description {answer}"), 1);
        let said = prompt(&mut client, &session, &add);
        assert!(said.contains("It starts with your next prompt, once this folder is trusted with it."), "{said}");
        let (asked, seen) = prompt_answering(&mut client, &session, answer);
        assert!(asked.len() == 1 && asked[0].contains("trust"), "{asked:?} {seen}");
        let body = server.asked().last().unwrap().body.clone();
        assert_eq!(body.contains("mcp_probe_echo"), is_there, "{answer}: {seen} {body}");
    }
    client.end().unwrap();
}

/// Questions about trust get this answer, all others a no. What was asked, and all that came.
fn prompt_answering(client: &mut Client, session: &str, answer: &str) -> (Vec<String>, String) {
    client.request_as(json!(answer), "session/prompt", params(session, "go"));
    let (mut asked, mut seen) = (Vec::new(), String::new());
    loop {
        let it = client.next().unwrap().unwrap();
        if it["id"] == answer && it.get("method").is_none() {
            return (asked, seen);
        }
        if it["method"] == "session/request_permission" {
            let title = it["params"]["toolCall"]["title"].as_str().unwrap_or_default().to_owned();
            let choice = if title.contains("trust") { answer } else { "reject_once" };
            let outcome = json!({ "outcome": { "outcome": "selected", "optionId": choice } });
            client.send(&json!({ "jsonrpc": "2.0", "id": it["id"], "result": outcome }));
            asked.push(title);
        }
        seen += &it.to_string();
    }
}

/// What a skill has the model run, or read, is trusted as it was.
#[test]
fn a_skill_whose_script_changes_is_not_used_before_another_yes() {
    let server = ModelServer::start(vec![says("One."), says("Two."), says("Three.")]);
    let mut sandbox = sandbox(&server);
    sandbox.env.retain(|it| it.0 != "CASTOR_TRUST_WORKSPACE");
    sandbox.env.push(("CASTOR_TRUST_WORKSPACE".into(), String::new()));
    let workspace = sandbox.workspace().to_string_lossy().into_owned();
    sandbox.write("home/.castor/trustedFolders.json", &json!({ workspace: "TRUST_FOLDER" }).to_string());
    sandbox.write("ws/.agents/skills/fill/SKILL.md", "---\nname: fill\ndescription: Fills forms\n---\nRun fill.py.");
    sandbox.write("ws/.agents/skills/fill/fill.py", "good()");
    let (mut client, session) = begin(&sandbox);
    prompt(&mut client, &session, "one");

    sandbox.write("ws/.agents/skills/fill/fill.py", "evil_things()");
    for (answer, is_offered) in [("not_now", false), ("trust_folder", true)] {
        let (asked, seen) = prompt_answering(&mut client, &session, answer);
        assert!(asked.len() == 1 && seen.contains(".agents/skills/fill/fill.py (changed)"), "{asked:?} {seen}");
        let body = server.asked().last().unwrap().body.clone();
        assert_eq!(body.contains("Fills forms"), is_offered, "{answer}: {body}");
        // Something changes again, so that the next prompt asks again.
        sandbox.write("ws/.agents/skills/fill/fill.py", "evil_things_again()");
    }
    client.end().unwrap();
}

#[test]
fn the_mode_follows_the_settings_unless_it_was_chosen() {
    let server = ModelServer::start(vec![says("One."), says("Two."), says("Three.")]);
    let sandbox = sandbox(&server);
    let (mut client, session) = begin(&sandbox);
    prompt(&mut client, &session, "one");
    sandbox.write("home/.castor/settings.json", r#"{"general": {"defaultApprovalMode": "auto_edit"}}"#);
    let said = prompt(&mut client, &session, "two");
    for what in [r#""currentModeId":"autoEdit""#, "settings: general.defaultApprovalMode"] {
        assert!(said.contains(what), "{said}");
    }
    client.call("session/set_mode", json!({ "sessionId": session, "modeId": "plan" })).unwrap();
    sandbox.write("home/.castor/settings.json", "{}");
    let said = prompt(&mut client, &session, "three");
    assert!(said.contains("settings: general.defaultApprovalMode") && !said.contains("currentModeId"), "{said}");
    client.end().unwrap();
}
