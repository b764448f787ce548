//! Remote agents over A2A, against a server of a few lines: both bindings, their faults, cancel, keys and memory.

use std::path::Path;

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    remote_server::{Answer, Asked, Remote, artifact, card, card_at, http, status, task},
};

/// A castor with the remote agent `weather`.
struct Scene {
    sandbox: Sandbox,
}

impl Scene {
    /// `calls`: for how many prompts the model has a call of the agent, and an answer with its result behind it.
    fn new(port: u16, keys: &str, calls: usize) -> Self {
        let mut sandbox = Sandbox::new();
        let line = |it: &str| crate::conversation::model::response(it).unwrap().to_string() + "\n";
        let call = line("call invoke_agent {\"agent_name\":\"weather\",\"prompt\":\"Rain?\"}");
        let script = sandbox.write("script.jsonl", &(call + &line("text \"Done.\"")).repeat(calls));
        let url = format!("http://127.0.0.1:{port}");
        let file = format!("---\nname: weather\nagent_card_url: {url}\n{keys}---\n");
        sandbox.write("home/.castor/agents/weather.md", &file);
        sandbox.write("home/.castor/settings.json", "{\"general\": {\"maxAttempts\": 2}}");
        sandbox.args.extend(["--fake-responses".into(), script.into()]);
        Self { sandbox }
    }

    fn yolo(mut self) -> Self {
        self.sandbox.args.extend(["--approval-mode", "yolo"].map(Into::into));
        self
    }

    fn open(&self) -> (Client, String) {
        self.open_with(&json!({ "elicitation": { "form": {} } }))
    }

    fn open_with(&self, capabilities: &Value) -> (Client, String) {
        let mut client = Client::start(&self.sandbox);
        client.initialize(capabilities).unwrap();
        let session = client.new_session(&self.sandbox.workspace()).unwrap();
        (client, session)
    }

    /// All that the client is told of one prompt.
    fn play(&self) -> String {
        let (mut client, session) = self.open();
        prompt(&mut client, &session)
    }
}

/// Begins a prompt; returns its id.
fn begin(client: &mut Client, session: &str) -> Value {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    client.request_as(json!("go"), "session/prompt", params);
    json!("go")
}

/// All messages up to one that is wanted.
fn read_until(client: &mut Client, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
    let mut res = Vec::new();
    loop {
        res.push(client.next().unwrap().expect("castor has ended"));
        if is_it(res.last().unwrap()) {
            return res;
        }
    }
}

fn respond(client: &mut Client, to: &Value, result: &Value) {
    client.send(&json!({ "jsonrpc": "2.0", "id": to["id"], "result": result }));
}

fn prompt(client: &mut Client, session: &str) -> String {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "go" }] });
    let (_, messages) = client.call("session/prompt", params).unwrap();
    messages.iter().map(|it| it.to_string() + "\n").collect()
}

#[test]
fn status_and_artifacts_stream_over_both_bindings() {
    for rest in [false, true] {
        let remote = Remote::start(rest, move |asked, _| match asked.method() {
            "card" => Answer::One(card(asked, rest, true)),
            _ => Answer::Events(vec![
                status("SUBMITTED", None),
                status("WORKING", Some("Asking the satellite")),
                artifact("Rain ", false),
                artifact("until noon.", true),
                status("COMPLETED", Some("All there.")),
            ]),
        });
        let said = Scene::new(remote.port, "", 1).yolo().play();
        for it in ["Submitted", "Asking the satellite", "Artifact forecast", "Artifact (forecast):\\nRain until noon."]
        {
            assert!(said.contains(it), "{rest} {it}: {said}");
        }
        assert!(said.contains("All there."), "{said}");
        let asked = remote.asked("SendStreamingMessage");
        assert_eq!((asked.len(), asked[0].text()), (1, "Rain?"));
        assert!(asked[0].headers.contains("a2a-version: 1.0"), "{asked:?}");
    }
}

#[test]
fn a_server_that_does_not_stream_is_looked_at_until_it_is_done() {
    for rest in [false, true] {
        let remote = Remote::start(rest, move |asked, _| match asked.method() {
            "card" => Answer::One(card(asked, rest, false)),
            "SendMessage" => Answer::One(json!({ "task": task("WORKING", None) })),
            _ => Answer::One(task("COMPLETED", Some("Sun."))),
        });
        let said = Scene::new(remote.port, "", 1).yolo().play();
        assert!(said.contains("Artifact (forecast):\\nSun."), "{said}");
        assert_eq!((remote.asked("SendMessage").len(), remote.asked("GetTask").len()), (1, 1));
    }
}

/// By a subscription, else by looks at the task.
#[test]
fn a_stream_that_breaks_off_loses_nothing() {
    for subscribes in [true, false] {
        let remote = Remote::start(false, move |asked, _| match asked.method() {
            "card" => Answer::One(card(asked, false, true)),
            "SendStreamingMessage" => Answer::Events(vec![status("WORKING", None), artifact("Rain ", false)]),
            "SubscribeToTask" if subscribes => Answer::Events(vec![
                json!({ "task": task("WORKING", Some("Rain ")) }),
                artifact("until noon.", true),
                status("COMPLETED", None),
            ]),
            "SubscribeToTask" => Answer::Raw(http("400 Bad Request", "application/json", "{}")),
            _ => Answer::One(task("COMPLETED", Some("Rain until noon."))),
        });
        let said = Scene::new(remote.port, "", 1).yolo().play();
        assert!(said.contains("Artifact (forecast):\\nRain until noon."), "{subscribes}: {said}");
        assert_eq!(remote.asked("SendStreamingMessage").len(), 1);
        assert_eq!(remote.asked("GetTask").is_empty(), subscribes);
    }
}

#[test]
fn a_question_of_the_agent_goes_to_the_user() {
    let remote = Remote::start(false, |asked, count| match (asked.method(), count) {
        ("card", _) => Answer::One(card(asked, false, true)),
        (_, 1) => Answer::Events(vec![status("INPUT_REQUIRED", Some("Which city?"))]),
        _ => Answer::Events(vec![status("COMPLETED", Some("Rain."))]),
    });
    let scene = Scene::new(remote.port, "", 1).yolo();
    let (mut client, session) = scene.open();
    let id = begin(&mut client, &session);
    let asked = read_until(&mut client, |it| it["method"] == "elicitation/create");
    assert!(asked.last().unwrap().to_string().contains("weather: Which city?"), "{asked:?}");
    let answer = json!({ "action": "accept", "content": { "0": "Oslo" } });
    respond(&mut client, asked.last().unwrap(), &answer);
    let rest = read_until(&mut client, |it| it["id"] == id);
    let said: String = rest.iter().map(Value::to_string).collect();
    assert!(said.contains("Rain."), "{said}");
    let sent = remote.asked("SendStreamingMessage");
    assert_eq!((sent[1].text(), &sent[1].message()["taskId"]), ("Oslo", &json!("t1")));
    assert_eq!(sent[1].message()["contextId"], "ctx");
}

#[test]
fn a_missing_authorization_ends_with_the_setting() {
    let remote = Remote::start(false, |asked, _| match asked.method() {
        "card" => Answer::One(card(asked, false, true)),
        _ => Answer::Events(vec![status("AUTH_REQUIRED", Some("Sign in to the satellite"))]),
    });
    let said = Scene::new(remote.port, "", 1).yolo().play();
    assert!(said.contains("Sign in to the satellite. Set `auth` in the file of the agent weather"), "{said}");
}

/// The server itself asks for something: it is done there, and the task goes on, by itself or with the message again.
#[test]
fn a_missing_authorization_is_a_question_and_the_task_goes_on() {
    for goes_on in [true, false] {
        let remote = Remote::start(false, move |asked, count| match (asked.method(), count) {
            ("card", _) => Answer::One(card(asked, false, false)),
            ("SendMessage", 1) => Answer::One(json!({ "task": task("AUTH_REQUIRED", None) })),
            ("GetTask", 1) if goes_on => Answer::One(task("WORKING", None)),
            ("GetTask", _) if !goes_on => Answer::One(task("AUTH_REQUIRED", None)),
            ("SendMessage", _) => Answer::One(json!({ "task": task("COMPLETED", Some("Rain.")) })),
            _ => Answer::One(task("COMPLETED", Some("Rain."))),
        });
        let scene = Scene::new(remote.port, "", 1).yolo();
        let (mut client, session) = scene.open_with(&json!({ "elicitation": { "url": {} } }));
        let id = begin(&mut client, &session);
        let asked = read_until(&mut client, |it| it["method"] == "elicitation/create");
        let asked = asked.last().unwrap();
        assert_eq!(asked["params"]["url"], format!("http://127.0.0.1:{}/", remote.port), "{asked}");
        assert_eq!(asked["params"]["_meta"]["castor"]["authRequired"]["credential"], "agent/weather");
        respond(&mut client, asked, &json!({ "action": "accept" }));
        let rest = read_until(&mut client, |it| it["id"] == id);
        let said: String = rest.iter().map(Value::to_string).collect();
        assert!(said.contains("Rain."), "{goes_on}: {said}");
        let sent = remote.asked("SendMessage");
        assert_eq!(sent.len(), if goes_on { 1 } else { 2 });
        assert!(goes_on || sent[1].message()["taskId"] == "t1", "{sent:?}");
    }
}

/// The key of the agent is read again, and the message goes out with the new one.
#[test]
fn a_refused_key_of_an_agent_is_a_question() {
    let remote = Remote::start(false, |asked, _| match asked.method() {
        "card" => Answer::One(card(asked, false, true)),
        _ if !asked.headers.contains("x-api-key: CANARY-new") => Answer::Raw(http("401 No", "text/plain", "expired")),
        _ => Answer::Events(vec![status("COMPLETED", Some("Rain."))]),
    });
    let auth = |key: &str| format!("auth: {{type: apiKey, key: {key}}}\n");
    let scene = Scene::new(remote.port, &auth("CANARY-old"), 1).yolo();
    let (mut client, session) = scene.open_with(&json!({ "elicitation": { "url": {} } }));
    let id = begin(&mut client, &session);
    let before = read_until(&mut client, |it| it["method"] == "elicitation/create");
    let url = format!("http://127.0.0.1:{}", remote.port);
    let file = format!("---\nname: weather\nagent_card_url: {url}\n{}---\n", auth("CANARY-new"));
    scene.sandbox.write("home/.castor/agents/weather.md", &file);
    respond(&mut client, before.last().unwrap(), &json!({ "action": "accept" }));
    let rest = read_until(&mut client, |it| it["id"] == id);
    let said: String = before.iter().chain(&rest).map(Value::to_string).collect();
    assert!(said.contains("Rain.") && !said.contains("CANARY"), "{said}");
    let logs = files_below(&scene.sandbox.home().join(".castor/sessions"));
    assert!(!logs.contains("CANARY"), "{logs}");
}

#[test]
fn a_cancelled_run_cancels_its_task() {
    for rest in [false, true] {
        let remote = Remote::start(rest, move |asked, _| match asked.method() {
            "card" => Answer::One(card(asked, rest, true)),
            "CancelTask" => Answer::One(task("CANCELED", None)),
            _ => Answer::Hang(vec![status("WORKING", Some("On it"))]),
        });
        let scene = Scene::new(remote.port, "", 1).yolo();
        let (mut client, session) = scene.open();
        let id = begin(&mut client, &session);
        read_until(&mut client, |it| it.to_string().contains("On it"));
        client.notify("session/cancel", json!({ "sessionId": session }));
        read_until(&mut client, |it| it["id"] == id);
        remote.wait_for("CancelTask");
    }
}

/// Also when castor was killed in between, in the middle of the first run.
#[test]
fn prompts_of_a_session_share_a_context() {
    let remote = Remote::start(false, |asked, count| match (asked.method(), count) {
        ("card", _) => Answer::One(card(asked, false, true)),
        (_, 1) => Answer::Events(vec![status("COMPLETED", Some("One."))]),
        (_, 2) => Answer::Hang(vec![status("WORKING", Some("Two"))]),
        _ => Answer::Events(vec![status("COMPLETED", Some("Three."))]),
    });
    let scene = Scene::new(remote.port, "", 3).yolo();
    let (mut client, session) = scene.open();
    prompt(&mut client, &session);
    begin(&mut client, &session);
    read_until(&mut client, |it| it.to_string().contains("Two"));
    client.kill().unwrap();
    let mut client = Client::start(&scene.sandbox);
    client.initialize(&json!({})).unwrap();
    let params = json!({ "sessionId": session, "cwd": scene.sandbox.workspace(), "mcpServers": [] });
    client.call("session/load", params).unwrap();
    prompt(&mut client, &session);
    let sent = remote.asked("SendStreamingMessage");
    let contexts: Vec<&Value> = sent.iter().map(|it| &it.message()["contextId"]).collect();
    assert_eq!(contexts, [&Value::Null, &json!("ctx"), &json!("ctx")]);
    assert!(sent.iter().all(|it| it.message()["taskId"].is_null()), "{sent:?}");
}

/// A task that waits is gone on with by the next call, if it still waits.
#[test]
fn a_waiting_task_gets_the_next_prompt() {
    for state in ["INPUT_REQUIRED", "CANCELED"] {
        let remote = Remote::start(false, move |asked, count| match (asked.method(), count) {
            ("card", _) => Answer::One(card(asked, false, true)),
            ("GetTask", _) => Answer::One(task(state, None)),
            (_, 1) => Answer::Events(vec![status("AUTH_REQUIRED", Some("Sign in"))]),
            _ => Answer::Events(vec![status("COMPLETED", Some("Rain."))]),
        });
        let scene = Scene::new(remote.port, "", 2).yolo();
        let (mut client, session) = scene.open();
        prompt(&mut client, &session);
        prompt(&mut client, &session);
        let sent = remote.asked("SendStreamingMessage");
        let wanted = if state == "CANCELED" { Value::Null } else { json!("t1") };
        assert_eq!((&sent[1].message()["taskId"], &sent[1].message()["contextId"]), (&wanted, &json!("ctx")));
    }
}

/// What is in all files, one behind the other.
fn files_below(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let text = |it: &Path| if it.is_dir() { files_below(it) } else { std::fs::read_to_string(it).unwrap_or_default() };
    entries.map(|it| text(&it)).collect()
}

#[test]
fn keys_go_with_what_needs_them_and_are_shown_nowhere() {
    let basic = "Basic bWU6Q0FOQVJZLXB3";
    for (keys, header) in [
        ("auth: {type: apiKey, key: CANARY-1}", "x-api-key: CANARY-1".to_owned()),
        ("auth: {type: apiKey, key: $WEATHER_KEY, name: X-Key}", "x-key: CANARY-2".to_owned()),
        ("auth: {type: http, scheme: Bearer, token: \"!echo CANARY-3\"}", "authorization: Bearer CANARY-3".to_owned()),
        ("auth: {type: http, scheme: Basic, username: me, password: CANARY-pw}", format!("authorization: {basic}")),
        ("auth: {type: http, scheme: Odd, value: \"${WEATHER_KEY}\"}", "authorization: Odd CANARY-2".to_owned()),
    ] {
        let wanted = header.clone();
        let remote = Remote::start(false, move |asked, _| match asked.method() {
            _ if !asked.headers.contains(&wanted) => Answer::Raw(http("401 Unauthorized", "text/plain", "no")),
            "card" => Answer::One(card(asked, false, true)),
            // Servers like to repeat what they got.
            _ => Answer::Events(vec![
                status("WORKING", Some(&asked.headers)),
                status("COMPLETED", Some("CANARY-1 CANARY-2 CANARY-3 CANARY-pw")),
            ]),
        });
        let mut scene = Scene::new(remote.port, &format!("{keys}\n"), 1).yolo();
        scene.sandbox.env.push(("WEATHER_KEY".into(), "CANARY-2".into()));
        let said = scene.play();
        assert!(said.contains("[hidden]"), "{keys}: {said}");
        let cards = remote.asked("card");
        assert_eq!(cards.iter().map(|it| it.headers.contains(&header)).collect::<Vec<_>>(), [false, true], "{keys}");
        let key = header.split_whitespace().last().unwrap().trim_start_matches("Basic ");
        let logs = files_below(&scene.sandbox.home().join(".castor/sessions"));
        assert!(logs.contains("ctx"), "{logs}");
        let shown = if header.contains("Basic") { "CANARY-pw" } else { key };
        assert!(!said.contains(shown) && !logs.contains(shown), "{keys}: {said}");
    }
}

/// What is answered in place of the right thing.
type Fault = Box<dyn Fn(&Asked) -> Answer + Send + Sync>;

#[test]
fn faults_are_said_and_end_the_run() {
    let page = || http("200 OK", "text/html", "<p>hello</p>");
    let faults: Vec<(&str, Fault, &str)> = vec![
        ("SendStreamingMessage", Box::new(move |_| Answer::Raw(page())), "not with events"),
        (
            "SendStreamingMessage",
            Box::new(|_| Answer::Raw(http("200 OK", "text/event-stream", "data: {oh\n\n"))),
            "its answer cannot be read",
        ),
        (
            "SendStreamingMessage",
            Box::new(|_| Answer::Raw(http("429 Too Many\r\nretry-after: 0", "application/json", "{}"))),
            "429",
        ),
        (
            "SendStreamingMessage",
            Box::new(|_| Answer::Raw(http("500 Oh\r\nretry-after: 0", "application/json", "{}"))),
            "500",
        ),
        ("SendStreamingMessage", Box::new(|_| Answer::Raw(http("403 No", "text/plain", ""))), "set `auth`"),
        (
            "SendStreamingMessage",
            Box::new(|_| {
                let error = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32602, "message": "odd parts" } });
                Answer::Raw(http("200 OK", "application/json", &error.to_string()))
            }),
            "odd parts (-32602)",
        ),
        (
            "SendStreamingMessage",
            Box::new(|_| Answer::Raw(http("307 Go\r\nlocation: http://127.0.0.1:1/x", "text/plain", ""))),
            "redirects to another address",
        ),
        ("SendStreamingMessage", Box::new(|_| Answer::Events(vec![status("FAILED", Some("no disk"))])), "no disk"),
        ("card", Box::new(|_| Answer::Raw(http("404 Not Found", "text/plain", ""))), "check agent_card_url"),
        ("card", Box::new(|_| Answer::One(json!({ "url": "http://x", "protocolVersion": "0.3.0" }))), "A2A 0.3"),
        (
            "card",
            Box::new(|_| Answer::One(card_at("http://10.0.0.1/a2a", false, true))),
            "10.0.0.1 is an address of this",
        ),
        (
            "card",
            Box::new(|_| Answer::Raw(http("302 Go\r\nlocation: http://169.254.169.254/x", "text/plain", ""))),
            "169.254.169.254 is an address of this",
        ),
    ];
    for (at, fault, words) in faults {
        let remote = Remote::start(false, move |asked, _| match asked.method() {
            it if it == at => fault(asked),
            "card" => Answer::One(card(asked, false, true)),
            _ => Answer::Events(vec![status("COMPLETED", None)]),
        });
        let said = Scene::new(remote.port, "", 1).yolo().play();
        assert!(said.contains(words) && said.contains("\"status\":\"failed\""), "{words}: {said}");
        assert!(said.contains("Done."), "{said}");
    }
}

/// The question says where the prompt goes; no yes for longer is on offer.
#[test]
fn each_call_is_asked_about() {
    let remote = Remote::start(false, |asked, _| match asked.method() {
        "card" => Answer::One(card(asked, false, true)),
        _ => Answer::Events(vec![status("COMPLETED", Some("Rain."))]),
    });
    let scene = Scene::new(remote.port, "", 1);
    let (mut client, session) = scene.open();
    let id = begin(&mut client, &session);
    let asked = read_until(&mut client, |it| it["method"] == "session/request_permission");
    let question = asked.last().unwrap();
    let call = &question["params"]["toolCall"];
    assert_eq!(call["title"], "Call Remote Agent: weather: Rain?");
    let place = format!("the prompt goes to the remote agent weather at http://127.0.0.1:{}/", remote.port);
    assert!(call.to_string().contains(&place), "{call}");
    let options: Vec<&Value> = question["params"]["options"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert_eq!(options, ["allow_once", "reject_once"]);
    let answer = json!({ "outcome": { "outcome": "selected", "optionId": "reject_once" } });
    respond(&mut client, question, &answer);
    read_until(&mut client, |it| it["id"] == id);
    assert!(remote.asked("card").is_empty());
}

#[test]
fn a_rule_spares_the_question() {
    let remote = Remote::start(false, |asked, _| match asked.method() {
        "card" => Answer::One(card(asked, false, true)),
        _ => Answer::Events(vec![status("COMPLETED", Some("Rain."))]),
    });
    let scene = Scene::new(remote.port, "", 1);
    let rule = "[[rule]]\ntoolName = \"invoke_agent\"\nargsPattern = '\"agent_name\":\"weather\"'\ndecision = \"allow\"\n\
                priority = 100\n";
    scene.sandbox.write("home/.castor/policies/p.toml", rule);
    assert!(scene.play().contains("Rain."));
}

/// A repository's file gets no secret of the user's, and starts nothing.
#[test]
fn a_workspace_file_names_no_secret() {
    let scene = Scene::new(1, "", 1);
    for (name, source) in [("a", "$WEATHER_KEY"), ("b", "!cat key"), ("c", "literal")] {
        let text = format!(
            "---\nname: {name}\nagent_card_url: http://127.0.0.1:1\nauth: {{type: apiKey, key: \"{source}\"}}\n---\n"
        );
        scene.sandbox.write(format!("ws/.castor/agents/{name}.md"), &text);
    }
    let (mut client, session) = scene.open();
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": "/agents list" }] });
    let (_, messages) = client.call("session/prompt", params).unwrap();
    let said: String = messages.iter().map(Value::to_string).collect();
    assert!(said.contains("auth takes the variable WEATHER_KEY, which a workspace's file cannot"), "{said}");
    assert!(said.contains("auth takes a command") && !said.contains("literal"), "{said}");
}
