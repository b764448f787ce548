//! Agents whose files change while a session runs.

use serde_json::{Value, json};

use crate::client::{Client, Sandbox};

/// Types a command: what castor says, and the agents that can be chosen then, if it told them.
fn command(client: &mut Client, session: &str, text: &str) -> (String, Option<Vec<String>>) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    let (_, messages) = client.call("session/prompt", params).unwrap();
    let updates = || messages.iter().map(|it| &it["params"]["update"]);
    let is_chunk = |it: &&Value| it["sessionUpdate"] == "agent_message_chunk";
    let said = updates().filter(is_chunk).filter_map(|it| it["content"]["text"].as_str()).collect();
    let options = updates().find(|it| it["sessionUpdate"] == "config_option_update").map(agents_on_offer);
    (said, options)
}

fn agents_on_offer(update: &Value) -> Vec<String> {
    let options = update["configOptions"].as_array().unwrap();
    let agents = options.iter().find(|it| it["id"] == "agent").unwrap();
    agents["options"].as_array().unwrap().iter().map(|it| it["value"].as_str().unwrap().to_owned()).collect()
}

fn file(name: &str, text: &str) -> String {
    format!("---\nname: {name}\ndescription: Helps.\n---\n{text}")
}

#[test]
fn reload_says_what_changed() {
    let mut sandbox = Sandbox::new();
    let script = sandbox.write("script.jsonl", "");
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    sandbox.write("home/.castor/agents/a.md", &file("a", "One."));
    sandbox.write("home/.castor/agents/b.md", &file("b", "Two."));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    assert_eq!(
        command(&mut client, &session, "/agents reload"),
        ("Nothing changed: there are 4 agents.\n".into(), None)
    );
    sandbox.write("home/.castor/agents/a.md", &file("a", "Another."));
    sandbox.write("home/.castor/agents/b.md", &file("c", "Three."));
    let (said, offer) = command(&mut client, &session, "/agents reload");
    let holds = "From the next prompt on this holds:\n- New: `c`\n- Changed: `a`\n- Gone: `b`\n";
    assert_eq!(said, format!("There are 4 agents. {holds}"));
    assert_eq!(offer.unwrap(), ["default", "codebase_investigator", "generalist", "a", "c"]);
    assert!(command(&mut client, &session, "/agents show a").0.ends_with("\nAnother.\n"));
}

#[test]
fn session_goes_on_without_an_agent_that_is_gone() {
    let mut sandbox = Sandbox::new();
    let line = |it| crate::conversation::model::response(it).unwrap().to_string() + "\n";
    let answers = ["for \"One.\" text \"Mine.\"", "for \"You are castor\" text \"Castor's.\""].map(line);
    let script = sandbox.write("script.jsonl", &answers.concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let path = sandbox.write("home/.castor/agents/a.md", &file("a", "One."));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({"cwd": sandbox.workspace(), "mcpServers": [], "_meta": {"castor": {"agent": "a"}}});
    let made = client.result("session/new", params).unwrap();
    let session = made["sessionId"].as_str().unwrap();
    assert_eq!(command(&mut client, session, "go").0, "Mine.");
    std::fs::remove_file(path).unwrap();
    command(&mut client, session, "/agents reload");
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let (_, messages) = client.call("session/prompt", params).unwrap();
    let said: String = messages.iter().map(Value::to_string).collect();
    assert!(said.contains("Castor's.") && said.contains("continues without its agent a"), "{said}");
    assert!(said.contains("\"currentValue\":\"default\""), "{said}");
}
