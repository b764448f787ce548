//! Streams that are followed from random moments on, in running turns and after kills: nothing is lost, nothing comes twice.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    kill9::{chunk, random, script},
};

/// Turns, and how often a stream is asked for in each.
const N_TURNS: u64 = 30;
const N_ASKED: usize = 40;
/// Kills, and how often a stream is asked for after each.
const N_KILLS: u64 = 40;
const N_CHUNKS: usize = 20;

/// What the client was told, by the request that it was told for; without one it was told of all.
#[derive(Default)]
struct Told {
    all: Vec<Value>,
    by_request: BTreeMap<String, Vec<Value>>,
    ends: BTreeMap<String, Value>,
}

impl Told {
    /// Takes a message of castor.
    fn take(&mut self, message: &Value) {
        let (params, id) = (&message["params"], &message["id"]);
        let event = || params["event"].clone();
        match (message["method"].as_str(), params["requestId"].as_str(), id.as_str()) {
            (Some("_castor/session/event"), Some(request), _) => {
                self.by_request.entry(request.to_owned()).or_default().push(event());
            }
            (Some("_castor/session/event"), None, _) => self.all.push(event()),
            (None, _, Some(request)) => _ = self.ends.insert(request.to_owned(), message["result"].clone()),
            _ => (),
        }
    }
}

/// Where a client goes on: after this event, or at the start of its stream.
fn place(event: &Value, seed: u64) -> Value {
    match seed % 4 {
        0 => json!({ "streamId": event["streamId"] }),
        _ => json!({ "eventId": event["id"], "threadId": event["threadId"].as_str().unwrap_or_default() }),
    }
}

/// What a stream has from there on.
fn rest(all: &[Value], place: &Value) -> Vec<Value> {
    let of_stream = |stream: &Value| {
        let its: Vec<Value> = all.iter().filter(|it| it["streamId"] == *stream).cloned().collect();
        let start = its.iter().position(|it| it["type"] == "agent_start").unwrap();
        let end = its.iter().position(|it| it["type"] == "agent_end").unwrap();
        its[start..=end].to_vec()
    };
    match place.get("eventId") {
        None => of_stream(&place["streamId"]),
        Some(id) => {
            let at = all
                .iter()
                .find(|it| it["id"] == *id && it["threadId"].as_str().unwrap_or_default() == place["threadId"]);
            let its = of_stream(&at.unwrap()["streamId"]);
            let n_before = its.iter().position(|it| it["id"] == *id).map_or(0, |it| it + 1);
            its[n_before..].to_vec()
        }
    }
}

fn start(script: &str) -> (Sandbox, Client, String) {
    let mut sandbox = Sandbox::new();
    sandbox.write("ws/notes.txt", "one\ntwo\n");
    sandbox.write("home/.castor/agents/one.md", "---\nname: one\ndescription: One.\n---\nYou are one.");
    let script = sandbox.write("script.jsonl", script);
    sandbox.args = ["acp", "--approval-mode", "yolo", "--fake-responses"].map(Into::into).to_vec();
    sandbox.args.push(script.into());
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({ "_meta": { "castor": { "events": true, "streams": true } } })).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, client, session)
}

/// Words, a call, a sub-agent with a call of its own, and words.
fn working_script() -> String {
    let call = |name: &str, args: Value| chunk(json!({"functionCall": {"name": name, "args": args}}));
    let words = |what: &'static str| (0..N_CHUNKS).map(move |it| chunk(json!({"text": format!("{what} {it} ")})));
    let read = || call("read_file", json!({"file_path": "notes.txt"}));
    let first: Vec<Value> = words("first").chain([read()]).collect();
    let delegate = call("invoke_agent", json!({"agent_name": "one", "prompt": "Work."}));
    let second: Vec<Value> = words("second").chain([delegate]).collect();
    let mut res = script(vec![first, second, words("third").collect()]);
    let of_agent = script(vec![vec![read()], vec![call("complete_task", json!({"result": "all read"}))]]);
    for line in of_agent.lines() {
        let mut line: Value = serde_json::from_str(line).unwrap();
        line["system"] = json!("You are one.");
        res += &format!("{line}\n");
    }
    res
}

fn prompt(client: &mut Client, session: &str) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "work"}]});
    client.request_as(json!(1), "session/prompt", params);
}

fn follow(client: &mut Client, session: &str, request: &str, place: &Value) {
    let mut params = place.clone();
    params["sessionId"] = json!(session);
    client.request_as(json!(request), "_castor/session/stream", params);
}

/// Follows the next stream, as `next`; of the streams that begin from now on that is the first.
fn follow_next(client: &mut Client, session: &str) {
    follow(client, session, "next", &json!({}));
    // What is answered later was taken later.
    all_events(client, session);
}

fn all_events(client: &mut Client, session: &str) -> Vec<Value> {
    let answer = client.result("_castor/session/events", json!({ "sessionId": session })).unwrap();
    answer["events"].as_array().unwrap().clone()
}

/// All that was told is what there is; each request got the rest of its stream, and its end.
fn check(told: &Told, all: &[Value], asked: &BTreeMap<String, Value>) {
    for (request, place) in asked {
        let expected = rest(all, place);
        let found = told.by_request.get(request).cloned().unwrap_or_default();
        assert_eq!(found, expected, "{request} from {place}");
        assert_eq!(told.ends[request]["outcome"], "ended", "{request} from {place}");
    }
}

/// Follows streams of a turn from random moments on, each at a moment of its own. Returns how often.
fn follow_a_turn(seed: u64) -> usize {
    let (_sandbox, mut client, session) = start(&working_script());
    let (mut told, mut asked) = (Told::default(), BTreeMap::new());
    prompt(&mut client, &session);
    let (mut n, mut is_over) = (0, false);
    while !is_over || told.ends.len() < asked.len() {
        let message = client.next().unwrap().unwrap();
        told.take(&message);
        is_over |= message["id"] == 1 && message.get("method").is_none();
        let is_told = message["method"] == "_castor/session/event" && message["params"].get("requestId").is_none();
        let known: Vec<&Value> = told.all.iter().filter(|it| it["streamId"] != "s").collect();
        n += 1;
        let dice = random(seed * 10_000 + n);
        if is_told && !is_over && !known.is_empty() && dice.is_multiple_of(2) && asked.len() < N_ASKED {
            let place = place(known[(dice / 2) as usize % known.len()], dice / 1000);
            let request = format!("follow {}", asked.len());
            follow(&mut client, &session, &request, &place);
            asked.insert(request, place);
        }
    }
    let all = all_events(&mut client, &session);
    let of_feed = |it: &&Value| it["streamId"] != "s";
    assert!(told.all.iter().filter(of_feed).all(|it| all.contains(it)), "{:?}\n{all:?}", told.all);
    check(&told, &all, &asked);
    client.end().unwrap();
    asked.len()
}

#[test]
fn followed_streams_are_whole_at_random_moments() {
    let n_asked: usize = (0..N_TURNS).map(follow_a_turn).sum();
    assert!(n_asked > 500, "{n_asked}");
}

/// A client that lost its castor goes on after the last event that it saw, and after each that it saw before.
fn follow_after_a_kill(seed: u64) -> usize {
    let (sandbox, mut client, session) = start(&working_script());
    prompt(&mut client, &session);
    let mut told = Told::default();
    let moment = 1 + random(seed) % 60;
    for _ in 0..moment {
        told.take(&client.next().unwrap().unwrap());
    }
    client.kill().unwrap().iter().for_each(|it| told.take(it));
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    if seed.is_multiple_of(2) {
        let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
        client.result("session/load", params).unwrap();
    }
    let (mut again, mut asked) = (Told::default(), BTreeMap::new());
    for event in told.all.iter().filter(|it| it["streamId"] != "s") {
        let request = format!("follow {}", asked.len());
        let place = place(event, seed + asked.len() as u64);
        follow(&mut client, &session, &request, &place);
        asked.insert(request.clone(), place);
        while !again.ends.contains_key(&request) {
            again.take(&client.next().unwrap().unwrap());
        }
    }
    let all = all_events(&mut client, &session);
    check(&again, &all, &asked);
    client.end().unwrap();
    asked.len()
}

#[test]
fn followed_streams_are_whole_after_a_kill() {
    let n_asked: usize = (0..N_KILLS).map(follow_after_a_kill).sum();
    assert!(n_asked > 500, "{n_asked}");
}

/// The stream's name comes before its first event, and with the answer.
#[test]
fn a_prompt_names_its_stream() {
    let (_sandbox, mut client, session) = start(&working_script());
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "work"}]});
    let (answer, before) = client.call("session/prompt", params).unwrap();
    let started = before.iter().position(|it| it["method"] == "_castor/session/stream_started").unwrap();
    let stream = &before[started]["params"]["streamId"];
    let first = before.iter().position(|it| it["params"]["event"]["streamId"] == *stream).unwrap();
    assert!(started < first, "{before:?}");
    assert_eq!(before[first]["params"]["event"]["type"], "agent_start");
    assert_eq!(answer["result"]["_meta"]["castor"]["streamId"], *stream, "{answer}");
    client.end().unwrap();
}

/// Reads until a request is answered.
fn read_until(client: &mut Client, told: &mut Told, request: &str) {
    while !told.ends.contains_key(request) {
        told.take(&client.next().unwrap().unwrap());
    }
}

#[test]
fn a_session_of_another_castor_is_followed_and_not_changed() {
    let (sandbox, mut owner, session) = start(&working_script());
    let mut reader = Client::start(&sandbox);
    reader.initialize(&json!({})).unwrap();
    let mut told = Told::default();
    let params = json!({"sessionId": session, "types": ["agent_end"], "threadId": ""});
    reader.result("_castor/session/subscribe", params).unwrap();
    follow_next(&mut reader, &session);
    let text = json!([{"type": "text", "text": "work"}]);
    let (answer, _) = owner.call("session/prompt", json!({"sessionId": session, "prompt": text})).unwrap();
    let stream = &answer["result"]["_meta"]["castor"]["streamId"];
    read_until(&mut reader, &mut told, "next");
    let all = all_events(&mut owner, &session);
    check(&told, &all, &BTreeMap::from([("next".to_owned(), json!({ "streamId": stream }))]));
    assert_eq!(told.all, [rest(&all, &json!({ "streamId": stream })).pop().unwrap()], "the subscription");
    let (refused, _) = reader.call("session/prompt", json!({"sessionId": session, "prompt": text})).unwrap();
    assert_eq!(refused["error"]["data"]["kind"], "not_found", "{refused}");
    let params = json!({"sessionId": session, "subscriptionId": "sub-1"});
    reader.result("_castor/session/unsubscribe", params).unwrap();
    // What is over is there at once, whoever has the session.
    follow(&mut reader, &session, "again", &json!({ "streamId": stream }));
    read_until(&mut reader, &mut told, "again");
    check(&told, &all, &BTreeMap::from([("again".to_owned(), json!({ "streamId": stream }))]));
    reader.end().unwrap();
    owner.end().unwrap();
}

#[test]
fn a_reader_sees_the_end_of_a_session_whose_castor_is_killed() {
    for seed in 0..10 {
        let (sandbox, mut owner, session) = start(&working_script());
        let mut reader = Client::start(&sandbox);
        reader.initialize(&json!({})).unwrap();
        follow_next(&mut reader, &session);
        prompt(&mut owner, &session);
        let (mut ignored, mut told) = (Told::default(), Told::default());
        for _ in 0..6 + random(seed) % 40 {
            ignored.take(&owner.next().unwrap().unwrap());
        }
        owner.kill().unwrap();
        read_until(&mut reader, &mut told, "next");
        let all = all_events(&mut reader, &session);
        let stream = &told.ends["next"]["streamId"];
        check(&told, &all, &BTreeMap::from([("next".to_owned(), json!({ "streamId": stream }))]));
        // Who takes the session over goes on in the same place.
        let params = json!({"types": ["agent_end"], "threadId": "", "sessionId": session});
        reader.result("_castor/session/subscribe", params).unwrap();
        let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": []});
        reader.result("session/load", params).unwrap();
        let text = json!([{"type": "text", "text": "/about"}]);
        let (_, before) = reader.call("session/prompt", json!({"sessionId": session, "prompt": text})).unwrap();
        let ends = before.iter().filter(|it| it["params"]["subscriptionId"] == "sub-1").count();
        assert_eq!(ends, 1, "{before:?}");
        reader.end().unwrap();
    }
}
