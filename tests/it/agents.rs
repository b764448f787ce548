//! Agents whose files change while a session runs, and what models see of sub-agents.

use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use castor_base::clock::Now;
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    model_server::{self, Asked, ModelServer, answers, calls, says},
    schemas,
};

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
        ("Nothing changed: there are 5 agents.\n".into(), None)
    );
    sandbox.write("home/.castor/agents/a.md", &file("a", "Another."));
    sandbox.write("home/.castor/agents/b.md", &file("c", "Three."));
    let (said, offer) = command(&mut client, &session, "/agents reload");
    let holds = "From the next prompt on this holds:\n- New: `c`\n- Changed: `a`\n- Gone: `b`\n";
    assert_eq!(said, format!("There are 5 agents. {holds}"));
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

/// They lie in a folder with the name of their session, are in no list, and go with it.
#[test]
fn logs_of_sub_agents_go_with_their_session() {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/agents/helper.md", &file("helper", "You are the helper."));
    let line = |it| crate::conversation::model::response(it).unwrap().to_string() + "\n";
    let start = "call invoke_agent {\"agent_name\":\"helper\",\"prompt\":\"Go.\"}";
    let hand_in = "for \"You are the helper\" call complete_task {\"result\":\"R\"}";
    let script = sandbox.write("script.jsonl", &[start, hand_in, "text \"Done.\""].map(line).concat());
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    assert_eq!(command(&mut client, &session, "go").0, "Done.");
    let folder = sandbox.home().join(".castor/sessions").join(&session);
    assert_eq!(schemas::files(&folder, "jsonl").len(), 1, "{}", folder.display());
    let listed = client.result("session/list", json!({})).unwrap();
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 1, "{listed}");
    client.result("session/delete", json!({ "sessionId": session })).unwrap();
    assert!(!folder.exists());
    client.end().unwrap();
}

/// A session with an agent `helper`, whose models are behind this address.
fn with_helper(url: &str, settings: &Value) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/agents/helper.md", &file("helper", "You are the helper."));
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), url.to_owned()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    sandbox.args.extend(["--model", "gemini-4-hydrogen"].map(Into::into));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

fn invoke() -> String {
    calls("invoke_agent", &json!({ "agent_name": "helper", "prompt": "Help." }))
}

fn is_of_helper(asked: &Asked) -> bool {
    asked.body.contains("You are the helper.")
}

fn model(asked: &Asked) -> &str {
    asked.head.split("/models/").nth(1).and_then(|it| it.split(':').next()).unwrap_or_default()
}

#[test]
fn model_that_is_out_for_a_sub_agent_is_out_for_all_sessions() {
    let server = ModelServer::answering(|asked| {
        Some(match (is_of_helper(asked), model(asked)) {
            (false, "gemini-4-hydrogen") => invoke(),
            (true, "gemini-4-hydrogen") => {
                let details = json!([{ "@type": "x", "retryDelay": "3600s" }]);
                let status = json!({ "code": 429, "message": "Daily limit.", "status": "RESOURCE_EXHAUSTED", "details": details });
                answers("429 Too Many Requests", &json!({ "error": status }).to_string())
            }
            (true, _) => calls("run_shell_command", &json!({ "command": "touch x" })),
            (false, _) => says("Done."),
        })
    });
    let fallback = json!({ "models": ["gemini-3.8-flash"], "action": "silent" });
    let (sandbox, mut client, session) = with_helper(&server.url, &json!({ "model": { "fallback": fallback } }));
    let prompt = |session: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    client.request_as(json!("p"), "session/prompt", prompt(&session));
    // The sub-agent is at work when another session begins.
    while client.next().unwrap().expect("the agent ended")["method"] != "session/request_permission" {}
    let other = client.new_session(&sandbox.workspace()).unwrap();
    assert_eq!(client.result("session/prompt", prompt(&other)).unwrap()["stopReason"], "end_turn");
    let asked = server.asked();
    let models: Vec<(bool, &str)> = asked.iter().map(|it| (is_of_helper(it), model(it))).collect();
    let (pro, flash) = ("gemini-4-hydrogen", "gemini-3.8-flash");
    assert_eq!(models, [(false, pro), (true, pro), (true, flash), (false, flash)]);
    client.notify("session/cancel", json!({ "sessionId": session }));
    while client.next().unwrap().expect("the agent ended")["id"] != "p" {}
}

#[test]
fn cancel_closes_the_connection_of_a_sub_agent_to_its_model() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if !is_of_helper(&model_server::read(&stream)) {
                stream.write_all(invoke().as_bytes()).unwrap();
                continue;
            }
            tell.send("asked").unwrap();
            // Nothing is answered: there is nothing to read before the other side closes.
            _ = stream.read(&mut [0; 1]);
            tell.send("closed").unwrap();
        }
    });
    let (_sandbox, mut client, session) = with_helper(&url, &json!({}));
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    client.request_as(json!("p"), "session/prompt", params);
    assert_eq!(told.recv_timeout(WATCHDOG).unwrap(), "asked");
    client.notify("session/cancel", json!({ "sessionId": session }));
    assert_eq!(told.recv_timeout(WATCHDOG).unwrap(), "closed");
    while client.next().unwrap().expect("the agent ended")["id"] != "p" {}
}

fn today() -> String {
    let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    Now { unix_ms, seed: 0 }.date()
}

/// The agent's own model is asked, and its instructions name it; the session's model is told the day, too.
#[test]
fn agents_know_their_model_version_and_day() {
    let server = ModelServer::answering(|asked| {
        Some(match asked.body.contains("You are the helper.") {
            true => calls("complete_task", &json!({ "result": "R" })),
            false if asked.body.contains("functionResponse") => says("Done."),
            false => invoke(),
        })
    });
    let mut sandbox = Sandbox::new();
    let keys = "name: helper\ndescription: Helps.\nmodel: gemini-3.8-flash";
    let text = "You are the helper. ${cliVersion} with ${activeModel} on ${today}.";
    sandbox.write("home/.castor/agents/helper.md", &format!("---\n{keys}\n---\n{text}"));
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    sandbox.args.extend(["--model", "gemini-4-hydrogen"].map(Into::into));
    let before = today();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    assert_eq!(client.result("session/prompt", params).unwrap()["stopReason"], "end_turn");
    let days = [before, today()];
    let asked = server.asked();
    let (pro, flash) = ("gemini-4-hydrogen", "gemini-3.8-flash");
    assert_eq!(asked.iter().map(model).collect::<Vec<_>>(), [pro, flash, pro]);
    let of_agent = |day: &str| format!("{} with {flash} on {day}.", env!("CARGO_PKG_VERSION"));
    let of_session = |day: &str| format!("- This session began on {day}\\n");
    assert!(days.iter().any(|it| asked[1].body.contains(&of_agent(it))), "{}", asked[1].body);
    for asked in &asked {
        assert!(days.iter().any(|it| asked.body.contains(&of_session(it))), "{}", asked.body);
    }
}

/// Answers of models that come side by side; `None` leaves a request without one until castor leaves.
fn models(answer: fn(&str) -> Option<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            thread::spawn(move || match answer(&model_server::read(&stream).body) {
                Some(it) => stream.write_all(it.as_bytes()).unwrap(),
                None => _ = stream.read(&mut [0; 1]),
            });
        }
    });
    url
}

/// The agent that waits for the user has the same two seconds as one whose model is slow, and waits for longer than it.
#[test]
fn time_limit_ends_a_slow_model_and_stands_still_while_the_user_is_asked() {
    let url = models(|asked| {
        let agent = |name: &str| calls("invoke_agent", &json!({ "agent_name": name, "prompt": "Go." }));
        Some(match asked {
            it if it.contains("You are slow.") && it.contains("You have exceeded the time limit.") => says("So far."),
            it if it.contains("You are slow.") => return None,
            it if it.contains("You ask.") && it.contains("functionResponse") => {
                calls("complete_task", &json!({ "result": "R" }))
            }
            it if it.contains("You ask.") => calls("run_shell_command", &json!({ "command": "touch x" })),
            it if it.contains("functionResponse") => says("Done."),
            it if it.contains("start the slow one") => agent("slow"),
            _ => agent("asks"),
        })
    });
    let (sandbox, mut client, _) = with_helper(&url, &json!({}));
    for (name, text) in [("asks", "You ask."), ("slow", "You are slow.")] {
        let keys = format!("name: {name}\ndescription: Helps.\ntimeout_mins: 0.03");
        sandbox.write(format!("home/.castor/agents/{name}.md"), &format!("---\n{keys}\n---\n{text}"));
    }
    let sessions = [(); 2].map(|()| client.new_session(&sandbox.workspace()).unwrap());
    let prompt =
        |session: &str, text: &str| json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    client.request_as(json!("asks"), "session/prompt", prompt(&sessions[0], "go"));
    let (mut question, mut ends, mut n_answers) = (Value::Null, Vec::new(), 0);
    while n_answers < 2 {
        let it = client.next().unwrap().expect("the agent ended");
        n_answers += usize::from(it["id"] == "asks" || it["id"] == "slow");
        if it["method"] == "session/request_permission" {
            question = it.clone();
            client.request_as(json!("slow"), "session/prompt", prompt(&sessions[1], "start the slow one"));
        }
        let output = &it["params"]["update"]["rawOutput"];
        let (Some(agent), Some(reason)) = (output["agent"].as_str(), output["terminateReason"].as_str()) else {
            continue;
        };
        ends.push(format!("{agent} {reason}"));
        if agent == "slow" {
            let options = question["params"]["options"].as_array().unwrap();
            let option = options.iter().find(|it| it["kind"] == "reject_once").unwrap();
            let outcome = json!({ "outcome": "selected", "optionId": option["optionId"] });
            client.send(&json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "outcome": outcome } }));
        }
    }
    assert_eq!(ends, ["slow TIMEOUT", "asks GOAL"]);
}
