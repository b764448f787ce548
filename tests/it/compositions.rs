//! Agents that are run as one: what overlaps in time, and what hosts see of each part.

use std::{
    collections::BTreeMap,
    io::{Read as _, Write as _},
    net::TcpListener,
    sync::{
        Arc, Barrier,
        mpsc::{Receiver, channel},
    },
    thread,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    conversation::model::response,
    model_server::{answers, calls, read, says},
};

const N_BRANCHES: usize = 3;

fn agent(sandbox: &mut Sandbox, name: &str, keys: &str, text: &str) {
    let file = format!("---\nname: {name}\ndescription: It.\n{keys}---\n{text}");
    sandbox.write(format!("home/.castor/agents/{name}.md"), &file);
}

fn prompt(client: &mut Client, session: &str, text: &str) -> Value {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]});
    client.result("session/prompt", params).unwrap()
}

fn events(client: &mut Client, session: &str) -> Vec<Value> {
    let answer = client.result("_castor/session/events", json!({"sessionId": session})).unwrap();
    answer["events"].as_array().unwrap().clone()
}

/// A model whose branches go by `answer`, when all of `n` have asked; `None` leaves the branch without an answer.
fn branches_model(n: usize, answer: fn(usize) -> Option<String>) -> (String, Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let all_asked = Arc::new(Barrier::new(n));
    let (sender, left) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, all_asked, sender) = (stream.unwrap(), all_asked.clone(), sender.clone());
            thread::spawn(move || {
                let asked = read(&stream).body;
                let branch = (0..n).find(|it| asked.contains(&format!("You are branch {it}.")));
                if branch.is_some() {
                    all_asked.wait();
                }
                let answer = match branch {
                    Some(n) => answer(n),
                    None if asked.contains("functionResponse") => Some(says("All.")),
                    None => Some(calls("invoke_agent", &json!({"agent_name": "all", "prompt": "Look."}))),
                };
                match answer {
                    Some(it) => stream.write_all(it.as_bytes()).unwrap(),
                    // Until castor leaves.
                    None => {
                        _ = stream.read(&mut [0]);
                        sender.send(branch.unwrap()).unwrap();
                    }
                }
            });
        }
    });
    (url, left)
}

fn start_branches(n: usize, url: String) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    let names: Vec<String> = (0..n).map(|it| format!("b{it}")).collect();
    for (n, name) in names.iter().enumerate() {
        agent(&mut sandbox, name, "", &format!("You are branch {n}."));
    }
    agent(&mut sandbox, "all", &format!("kind: parallel\nagents: [{}]\n", names.join(", ")), "");
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), url));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

#[test]
fn a_branch_that_fails_ends_the_others() {
    fn bad() -> String {
        answers("400 Bad Request", r#"{"error": {"code": 400, "message": "No.", "status": "INVALID_ARGUMENT"}}"#)
    }
    let (url, left) = branches_model(2, |n| (n == 0).then(bad));
    let (_sandbox, mut client, session) = start_branches(2, url);
    assert_eq!(prompt(&mut client, &session, "go")["stopReason"], "end_turn");
    assert_eq!(left.recv().unwrap(), 1);
    let events = events(&mut client, &session);
    let text: String = events.iter().filter(|it| it["type"] == "tool_response").map(Value::to_string).collect();
    assert!(text.contains("Not all of its agents ended well.\\n\\n## b0\\nIt failed: "), "{text}");
    assert!(text.contains("## b1\\nIt failed: [Operation Cancelled] Reason: another agent failed"), "{text}");
}

#[test]
fn branches_overlap_in_time_each_in_a_thread_of_its_own() {
    let found = |n| Some(calls("complete_task", &json!({"result": format!("found {n}")})));
    let (url, _) = branches_model(N_BRANCHES, found);
    let (_sandbox, mut client, session) = start_branches(N_BRANCHES, url);
    assert_eq!(prompt(&mut client, &session, "go")["stopReason"], "end_turn");
    let mut threads: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for it in events(&mut client, &session) {
        let thread = it["threadId"].as_str().unwrap_or_default().to_owned();
        let of_thread = threads.entry(thread).or_default();
        if ["agent_start", "agent_end", "usage"].contains(&it["type"].as_str().unwrap()) {
            of_thread.push(it["type"].as_str().unwrap().to_owned());
        }
    }
    let whole = |it: &&Vec<String>| it.first().unwrap() == "agent_start" && it.last().unwrap() == "agent_end";
    assert_eq!(threads.values().filter(whole).count(), 2 + N_BRANCHES, "{threads:?}");
    let below = |it: &&String| it.split('.').count() == 2 && it.starts_with("all-");
    assert_eq!(threads.keys().filter(below).count(), N_BRANCHES, "{threads:?}");
}

/// A session with these agents, and a model that answers so.
fn scripted(agents: &[(&str, &str, &str)], answers: &[&str]) -> (Sandbox, Client) {
    let mut sandbox = Sandbox::new();
    agents.iter().for_each(|(name, keys, text)| agent(&mut sandbox, name, keys, text));
    let lines: String = answers.iter().map(|it| response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines);
    sandbox.args.extend(["--fake-responses".into(), script.into()]);
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    (sandbox, client)
}

#[test]
fn who_escalates_has_completed() {
    let agents = [("critic", "", "You judge."), ("polish", "kind: loop\nagents: [critic]\n", "")];
    let (sandbox, mut client) = scripted(
        &agents,
        &[
            "call invoke_agent {\"agent_name\":\"polish\",\"prompt\":\"Look.\"}",
            "for \"You judge\" call escalate {\"reason\":\"It is good.\"}",
            "text \"Done.\"",
        ],
    );
    let session = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &session, "go");
    let events = events(&mut client, &session);
    let ends: Vec<(&str, Value)> = events
        .iter()
        .filter(|it| it["type"] == "agent_end")
        .map(|it| {
            assert_eq!(it["reason"], "completed");
            (it["source"].as_str().unwrap(), it["data"].clone())
        })
        .collect();
    let of_loop = "It is good.\n\n[The agent critic ended the loop: It is good.]";
    let critic = json!({"result": "", "terminate_reason": "GOAL", "escalateReason": "It is good."});
    let polish = json!({"result": of_loop, "terminate_reason": "GOAL"});
    assert_eq!(ends, [("critic", critic), ("polish", polish), ("agent", Value::Null)]);
}

#[test]
fn a_transfer_ends_one_stream_and_begins_another() {
    let agents = [("desk", "sub_agents: [billing]\n", "You are the desk."), ("billing", "", "You are billing.")];
    let (sandbox, mut client) = scripted(
        &agents,
        &[
            "for \"You are the desk\" call transfer_to_agent {\"agent_name\":\"billing\"}",
            "for \"You are billing\" text \"It is 5.\"",
        ],
    );
    let params = json!({"cwd": sandbox.workspace(), "mcpServers": [], "_meta": {"castor": {"agent": "desk"}}});
    let made = client.result("session/new", params).unwrap();
    let session = made["sessionId"].as_str().unwrap();
    prompt(&mut client, session, "My bill?");
    let streams: Vec<String> = events(&mut client, session)
        .iter()
        .filter(|it| it["type"] == "agent_start" || it["type"] == "agent_end")
        .map(|it| {
            let [kind, agent] = ["type", "agentId"].map(|key| it[key].as_str().unwrap());
            format!("{agent}: {kind} {} {}", it["reason"], it["data"])
        })
        .collect();
    let expected = [
        "desk: agent_start null null",
        "desk: agent_end \"completed\" {\"transferToAgent\":\"billing\"}",
        "billing: agent_start null null",
        "billing: agent_end \"completed\" null",
    ];
    assert_eq!(streams, expected);
}
