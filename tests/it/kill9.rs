//! SIGKILL at random moments: what was shown comes back, and the session goes on.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::client::{Client, Sandbox, WATCHDOG};

const N_KILLS: u64 = 200;
const N_THREADS: u64 = 2;
const SEED: u64 = 0x9e37_79b9_7f4a_7c15;
const N_CHUNKS: usize = 40;
/// Calls of each sub-agent.
const N_READS: usize = 10;
/// About as many updates as a whole session shows.
const N_MOMENTS: u64 = 100;

/// What the clients of every second kill know.
const ALL_CAPABILITIES: &str = r#"{"subagents": {}, "_meta": {"castor": {"events": true}}}"#;

#[test]
fn shown_updates_survive_kill_9() {
    let n_moments = [N_MOMENTS, N_MOMENTS];
    kill_often(N_KILLS, &Killing { script: long_script(), first: "", n_moments, store: None });
}

/// Two agents run side by side, each with calls of its own. Both are at work from the first moment on.
#[test]
fn sub_agents_survive_kill_9() {
    let first = r#""title":"two: Work.","locations""#;
    kill_often(100, &Killing { script: agents_script(), first, n_moments: [40, 100], store: None });
}

/// The same on a database, whose sessions are free some seconds after the death of their castor.
#[cfg(feature = "postgres")]
pub fn kill_on_store(n_kills: u64, url: &str) {
    let n_moments = [N_MOMENTS, N_MOMENTS];
    kill_often(n_kills, &Killing { script: long_script(), first: "", n_moments, store: Some(url.to_owned()) });
}

/// When castor is killed: so many updates after the first with that text, without and with all capabilities.
struct Killing {
    script: String,
    first: &'static str,
    n_moments: [u64; 2],
    /// Where sessions are kept, if not in files.
    store: Option<String>,
}

fn kill_often(n_kills: u64, killing: &Killing) {
    thread::scope(|scope| {
        let workers = (0..N_THREADS).map(|first| {
            let mut numbers = (first..n_kills).step_by(N_THREADS as usize);
            scope.spawn(move || numbers.all(|it| kill_and_load(it, killing)))
        });
        let workers: Vec<_> = workers.collect();
        let fine = workers.into_iter().all(|it| it.join().is_ok_and(|it| it));
        assert!(fine, "see above");
    });
}

fn kill_and_load(number: u64, killing: &Killing) -> bool {
    let knows_all = number % 4 > 1;
    let moment = 1 + random(number) % killing.n_moments[usize::from(knows_all)];
    let capabilities = if knows_all { serde_json::from_str(ALL_CAPABILITIES).unwrap() } else { json!({}) };
    try_kill_and_load(moment, &capabilities, killing)
        .inspect_err(|why| println!("kill {number}, after {moment} updates, {capabilities}: {why}"))
        .is_ok()
}

fn try_kill_and_load(moment: u64, capabilities: &Value, killing: &Killing) -> Result<(), String> {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/notes.txt", "one\ntwo\n");
    sandbox.write("home/.castor/agents/one.md", "---\nname: one\ndescription: One.\n---\nYou are one.");
    sandbox.write("home/.castor/agents/two.md", "---\nname: two\ndescription: Two.\n---\nYou are two.");
    sandbox.env.extend(killing.store.clone().map(|it| ("CASTOR_STORE".to_owned(), it)));
    let killed = sandbox.write("killed.jsonl", &killing.script);
    let loaded = sandbox.write("loaded.jsonl", &short_script());
    let acp = ["acp", "--approval-mode", "yolo", "--fake-responses"].map(Into::into);
    sandbox.args = [&acp[..], &[killed.into()]].concat();
    let mut client = Client::start(&sandbox);
    client.initialize(capabilities)?;
    let (session, shown) = show_and_kill(client, &sandbox, (moment, killing.first))?;
    sandbox.args = [&acp[..], &[loaded.into()]].concat();
    let mut client = Client::start(&sandbox);
    client.initialize(capabilities)?;
    load(client, &sandbox, &session, &shown)
}

/// Returns the session and all that was written of its turn before the end.
fn show_and_kill(
    mut client: Client,
    sandbox: &Sandbox,
    (moment, first): (u64, &str),
) -> Result<(String, Vec<Value>), String> {
    let session = client.new_session(&sandbox.workspace())?;
    client.request_as(json!(1), "session/prompt", prompt(&session, "work"));
    let mut shown = Vec::new();
    let (mut n_shown, mut is_first) = (0, false);
    while n_shown < moment {
        let Some(message) = client.next()? else { return Err("the agent ended by itself".to_owned()) };
        let ended = message["id"] == 1 && message.get("method").is_none();
        is_first |= message.to_string().contains(first);
        n_shown += u64::from(is_first && is_of_turn(&message));
        shown.push(message);
        if ended {
            break;
        }
    }
    shown.extend(client.kill()?);
    Ok((session, shown))
}

/// Not the commands, titles and such that a client is told at any time.
fn is_of_turn(message: &Value) -> bool {
    let update = &message["params"]["update"];
    update.get("content").or_else(|| update.get("toolCallId")).is_some()
}

fn load(mut client: Client, sandbox: &Sandbox, session: &str, shown: &[Value]) -> Result<(), String> {
    let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
    let (mut response, mut replay) = client.call("session/load", params.clone())?;
    let start = Instant::now();
    // In files the lock goes with its holder.
    let is_database = sandbox.env.iter().any(|it| it.0 == "CASTOR_STORE");
    while is_database && response.get("result").is_none() && start.elapsed() < WATCHDOG {
        (response, replay) = client.call("session/load", params.clone())?;
    }
    if response.get("result").is_none() {
        return Err(format!("session/load failed: {response}"));
    }
    let replayed = updates(&replay);
    check_texts(&updates(shown), &replayed)?;
    check_calls(&updates(shown), &replayed)?;
    check_children(shown, &replay)?;
    let loaded = events(&mut client, session)?;
    check_events(shown, &loaded)?;
    let (response, live) = client.call("session/prompt", prompt(session, "go on"))?;
    if response["result"]["stopReason"] != "end_turn" {
        return Err(format!("the next prompt failed: {response}"));
    }
    let said: String = texts(&updates(&live)).into_values().collect();
    // What did not come along with a session of a database is said beside it.
    let is_back = if is_database { said.contains("back") } else { said == "back" };
    if !is_back {
        return Err(format!("the next prompt said {said:?}"));
    }
    // What was told before the next write is what it wrote.
    let went_on = events(&mut client, session)?;
    check_streams(&went_on)?;
    let kept: Vec<&Value> = went_on.iter().filter(|it| loaded.contains(it)).collect();
    if !kept.iter().copied().eq(&loaded) {
        return Err(format!("events of the past changed: {loaded:?}\n{went_on:?}"));
    }
    // Titles and such may follow the response.
    client.end().map(|_| ())
}

/// The whole trajectory.
fn events(client: &mut Client, session: &str) -> Result<Vec<Value>, String> {
    let (answer, _) = client.call("_castor/session/events", json!({ "sessionId": session }))?;
    answer["result"]["events"].as_array().cloned().ok_or_else(|| answer.to_string())
}

/// Each stream has one start and one end, which is its last event of a turn; each call one result, before that.
pub fn check_streams(all: &[Value]) -> Result<(), String> {
    let mut ids = BTreeSet::new();
    let (mut open, mut calls, mut ended) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for it in all {
        let stream = (it["threadId"].to_string(), it["streamId"].to_string());
        let call = (stream.clone(), it["requestId"].to_string());
        let is_wrong = match it["type"].as_str() {
            _ if !ids.insert((it["threadId"].to_string(), it["id"].to_string())) => true,
            Some("agent_start") => ended.contains(&stream) || !open.insert(stream),
            Some("agent_end") => {
                let has_call = calls.iter().any(|(of, _)| *of == stream);
                has_call || !open.remove(&stream) || !ended.insert(stream)
            }
            Some("tool_request") => !open.contains(&stream) || !calls.insert(call),
            Some("tool_response") => !calls.remove(&call),
            _ => false,
        };
        if is_wrong {
            return Err(format!("{it} is not the next event of {all:?}"));
        }
    }
    match open.is_empty() && calls.is_empty() {
        true => Ok(()),
        false => Err(format!("no end of {open:?} {calls:?} in {all:?}")),
    }
}

/// Every sub-agent that was shown is shown again and has ended, in the way that was shown if one was.
fn check_children(shown: &[Value], replay: &[Value]) -> Result<(), String> {
    let replayed = children(replay);
    for (id, state) in children(shown) {
        let found = replayed.get(&id).ok_or_else(|| format!("{id} was not replayed"))?;
        let is_over = |it: &Value| ["idle", "unknown"].iter().any(|state| it["state"] == *state);
        if !is_over(found) || is_over(&state) && *found != state {
            return Err(format!("{id} was {state}, replayed as {found}"));
        }
    }
    Ok(())
}

/// The last state of each.
fn children(messages: &[Value]) -> BTreeMap<String, Value> {
    let updates = updates(messages);
    let of_child = updates.iter().filter(|it| it["sessionUpdate"] == "subagent_update");
    of_child.map(|it| (it["sessionId"].as_str().unwrap_or_default().to_owned(), it["state"].clone())).collect()
}

/// Every event that was told is in the trajectory, in its thread, and all that began has an end.
fn check_events(shown: &[Value], all: &[Value]) -> Result<(), String> {
    let told = shown.iter().filter(|it| it["method"] == "_castor/session/event").map(|it| &it["params"]["event"]);
    let about = |it: &Value| ["type", "threadId", "streamId"].map(|key| it[key].clone());
    for event in told {
        let found = all.iter().find(|it| it["id"] == event["id"] && it["threadId"] == event["threadId"]);
        if found.map(about) != Some(about(event)) {
            return Err(format!("{event} was told, and is kept as {found:?}"));
        }
    }
    check_streams(all)
}

/// Every message that was shown begins the message that is replayed under its name.
pub fn check_texts(shown: &[Value], replayed: &[Value]) -> Result<(), String> {
    let replayed = texts(replayed);
    for (name, text) in texts(shown) {
        let found = replayed.get(&name).map(String::as_str).unwrap_or_default();
        if !found.starts_with(&text) {
            return Err(format!("{name}: shown {text:?}, replayed {found:?}"));
        }
    }
    match replayed.iter().any(|(name, text)| name.starts_with("user_message_chunk") && text == "work") {
        true => Ok(()),
        false => Err(format!("the prompt was not replayed, but {replayed:?}")),
    }
}

/// Every call that was shown is replayed, with its end if that was shown.
pub fn check_calls(shown: &[Value], replayed: &[Value]) -> Result<(), String> {
    let replayed = calls(replayed);
    for (id, status) in calls(shown) {
        let Some(found) = replayed.get(&id) else { return Err(format!("call {id} was not replayed")) };
        let ended = ["completed", "failed"].contains(&status.as_str());
        if ended && *found != status {
            return Err(format!("call {id} was {status}, replayed as {found}"));
        }
    }
    Ok(())
}

/// Text by kind and message; messages without an id count as one.
fn texts(updates: &[Value]) -> BTreeMap<String, String> {
    let mut res: BTreeMap<String, String> = BTreeMap::new();
    for update in updates {
        let Some(text) = update["content"]["text"].as_str() else { continue };
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let message = update["messageId"].as_str().unwrap_or_default();
        res.entry(format!("{kind} {message}")).or_default().push_str(text);
    }
    res
}

/// The last status of each call.
fn calls(updates: &[Value]) -> BTreeMap<String, String> {
    let mut res = BTreeMap::new();
    for update in updates {
        let Some(id) = update["toolCallId"].as_str() else { continue };
        let status: &mut String = res.entry(id.to_owned()).or_insert_with(|| "pending".to_owned());
        if let Some(new) = update["status"].as_str() {
            new.clone_into(status);
        }
    }
    res
}

pub fn updates(messages: &[Value]) -> Vec<Value> {
    let updates = messages.iter().filter(|it| it["method"] == "session/update");
    updates.map(|it| it["params"]["update"].clone()).collect()
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

fn long_script() -> String {
    let mut first: Vec<Value> = vec![chunk(json!({"text": "**Plan**\nI will read.", "thought": true}))];
    first.extend((0..N_CHUNKS).map(|it| chunk(json!({"text": format!("first {it} ")}))));
    first.push(chunk(json!({"functionCall": {"name": "read_file", "args": {"file_path": "notes.txt"}}})));
    let mut second: Vec<Value> = (0..N_CHUNKS).map(|it| chunk(json!({"text": format!("second {it} ")}))).collect();
    let args = json!({"file_path": "made.txt", "content": "made\n"});
    second.push(chunk(json!({"functionCall": {"name": "write_file", "args": args}})));
    script(vec![first, second, vec![chunk(json!({"text": "done"}))]])
}

fn agents_script() -> String {
    let call = |name: &str, args: Value| chunk(json!({"functionCall": {"name": name, "args": args}}));
    let start = |agent: &str| call("invoke_agent", json!({"agent_name": agent, "prompt": "Work."}));
    let mut res = script(vec![vec![start("one"), start("two")], vec![chunk(json!({"text": "done"}))]]);
    for agent in ["You are one.", "You are two."] {
        let read = || vec![call("read_file", json!({"file_path": "notes.txt"}))];
        let mut answers: Vec<_> = (0..N_READS).map(|_| read()).collect();
        answers.push(vec![call("complete_task", json!({"result": "all read"}))]);
        for line in script(answers).lines() {
            let mut line: Value = serde_json::from_str(line).unwrap();
            line["system"] = json!(agent);
            let _ = writeln!(res, "{line}");
        }
    }
    res
}

fn short_script() -> String {
    script(vec![vec![chunk(json!({"text": "back"}))]])
}

pub fn chunk(part: Value) -> Value {
    json!({"candidates": [{"content": {"role": "model", "parts": [part]}}]})
}

pub fn script(answers: Vec<Vec<Value>>) -> String {
    let mut res = String::new();
    for mut chunks in answers {
        if let Some(last) = chunks.last_mut() {
            last["candidates"][0]["finishReason"] = json!("STOP");
        }
        let _ = writeln!(res, "{}", json!({"method": "generateContentStream", "response": chunks}));
    }
    res
}

/// The same numbers in every run (splitmix64).
pub fn random(number: u64) -> u64 {
    let mut it = SEED.wrapping_mul(number + 1);
    it = (it ^ (it >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    it = (it ^ (it >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    it ^ (it >> 31)
}
