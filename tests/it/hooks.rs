//! Hooks through the wire: every event with every kind of answer, as `data/hooks` has the scripts and what comes of them.
//! Events whose hooks nobody waits for are told in `every_hook_gets_its_documented_input` alone.

use std::{collections::BTreeMap, fs, path::Path, thread, time::Instant};

use castor_base::hook::HookEvent;
use expect_test::expect_file;
use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    model_server::{ModelServer, calls, says},
};

/// Waited for in vain no longer than this, in milliseconds; the others answer within any time. A loaded machine needs
/// that long to start a hook.
const HANG_MS: u64 = 5_000;
/// What a hook may have changed of what the model sees.
const MARKS: &[&str] = &[
    "<hook_context>context by test</hook_context>",
    "asked by test",
    "said by test",
    "blocked by test",
    "stopped by test",
    "printed JSON that cannot be read",
    "were modified by a hook",
];

/// All that say something that is heard.
fn heard() -> impl Iterator<Item = HookEvent> {
    HookEvent::ALL.iter().copied().filter(|it| !matches!(it, HookEvent::AfterRun | HookEvent::OnEvent))
}

/// Stands for the folder of scripts in the settings of a life.
const SCRIPTS: &str = "$SCRIPTS";

fn script(kind: &str) -> String {
    format!("{SCRIPTS}/{kind}.sh")
}

/// Puts the scripts among the tools of the home folder: hooks see them there wherever the repository lies.
fn write_scripts(sandbox: &Sandbox) -> String {
    for it in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/hooks")).unwrap() {
        let (name, path) = (it.as_ref().unwrap().file_name(), it.as_ref().unwrap().path());
        if path.extension().is_some_and(|it| it == "sh") {
            sandbox.write(Path::new("home/.local/bin").join(name), &fs::read_to_string(path).unwrap());
        }
    }
    sandbox.home().join(".local/bin").display().to_string()
}

/// A life in which every event happens that can: a file is written, which asks, and the session is closed.
struct Life {
    sandbox: Sandbox,
    model: ModelServer,
    client: Client,
    session: String,
    /// What the client saw, in short.
    seen: Vec<String>,
    /// Of a hook that hears of a question.
    awaits_notice: bool,
}

impl Life {
    fn new(settings: &Value) -> Self {
        let mut sandbox = Sandbox::new();
        let write = calls("write_file", &json!({"file_path": "new.txt", "content": "written by the model"}));
        let model = ModelServer::start([vec![write], vec![says("Done."); 8]].concat());
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), model.url.clone()));
        sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
        let settings = settings.to_string().replace(SCRIPTS, &write_scripts(&sandbox));
        sandbox.write("home/.castor/settings.json", &settings);
        sandbox.write("ws/a.txt", "in the file\n");
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        Self { sandbox, model, client, session, seen: Vec::new(), awaits_notice: false }
    }

    fn prompt(&mut self, text: &str) {
        let params = json!({"sessionId": self.session, "prompt": [{"type": "text", "text": text}]});
        self.client.request_as(json!("p"), "session/prompt", params);
        loop {
            let it = self.client.next().unwrap().expect("more was to come");
            if it["method"] == "session/request_permission" {
                let shown = text_of(&it["params"]["toolCall"]["content"][0]);
                self.seen.push(format!("asked {shown}").trim_end().to_owned());
                if self.awaits_notice {
                    self.take_notice();
                }
                let chosen =
                    json!({"outcome": {"outcome": "selected", "optionId": it["params"]["options"][0]["optionId"]}});
                self.client.send(&json!({"jsonrpc": "2.0", "id": it["id"], "result": chosen}));
            } else if it["id"] == "p" {
                let how = it["result"]["stopReason"].as_str().map_or(it["error"]["message"].to_string(), str::to_owned);
                return self.seen.push(how);
            } else {
                self.seen.extend(update(&it["params"]["update"]));
            }
        }
    }

    /// Nothing waits for hooks that are told of a question; the test does. What else comes meanwhile counts as well.
    fn take_notice(&mut self) {
        let mut is_told = false;
        while !is_told {
            let next = self.client.next().unwrap().expect("the hook says something");
            let seen = update(&next["params"]["update"]);
            is_told = seen.as_ref().is_some_and(|it| it.starts_with('('));
            self.seen.extend(seen);
        }
    }

    /// `hears`: a hook hears of it, and the test waits until it did.
    fn close(&mut self, hears: bool) {
        let (answer, before) = self.client.call("session/close", json!({"sessionId": self.session})).unwrap();
        assert!(answer["result"].is_object(), "{answer}");
        self.seen.extend(before.iter().filter_map(|it| update(&it["params"]["update"])));
        let start = Instant::now();
        while hears && !self.fired().contains_key("SessionEnd") {
            assert!(start.elapsed() < WATCHDOG, "no hook heard of the end");
            thread::yield_now();
        }
        let (status, rest) = self.client.end().unwrap();
        assert!(status.success());
        self.seen.extend(rest.iter().filter_map(|it| update(&it["params"]["update"])));
    }

    /// What the hooks were told, by event.
    fn fired(&self) -> BTreeMap<String, Vec<Value>> {
        let text = fs::read_to_string(self.sandbox.workspace().join("fired")).unwrap_or_default();
        let mut res = BTreeMap::new();
        for it in text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok()) {
            let event = it["hook_event_name"].as_str().unwrap().to_owned();
            res.entry(event).or_insert_with(Vec::new).push(it);
        }
        res
    }
}

fn update(it: &Value) -> Option<String> {
    let text = || it["content"]["text"].as_str().unwrap_or_default().to_owned();
    match (it["sessionUpdate"].as_str()?, it["status"].as_str()) {
        ("agent_thought_chunk", _) => Some(format!("({})", text())),
        ("agent_message_chunk", _) => Some(format!("{:?}", text())),
        ("tool_call_update", Some(status @ ("completed" | "failed"))) => {
            Some(format!("{status} {}", text_of(&it["content"][0])).trim_end().to_owned())
        }
        _ => None,
    }
}

fn text_of(content: &Value) -> &str {
    content["content"]["text"].as_str().unwrap_or_default()
}

fn settings(event: HookEvent, kind: &str, timeout: u64) -> Value {
    let command = format!("sh {} {}", script(kind), event.as_str());
    let hook = json!({"type": "command", "name": "it", "command": command, "timeout": timeout});
    json!({"hooks": {event.as_str(): [{"hooks": [hook]}]}})
}

/// A line for each event. Lives that wait for a limit of time wait for it together.
fn check(kind: &str) {
    let lines: Vec<String> = match kind {
        "hang" => thread::scope(|scope| {
            let lives: Vec<_> = heard().map(|it| scope.spawn(move || live(kind, it, HANG_MS))).collect();
            lives.into_iter().map(|it| it.join().unwrap()).collect()
        }),
        _ => heard().map(|it| live(kind, it, 600_000)).collect(),
    };
    expect_file![format!("{}/tests/data/hooks/{kind}.txt", env!("CARGO_MANIFEST_DIR"))].assert_eq(&lines.concat());
}

/// A life with a hook for one event: what came of it.
fn live(kind: &str, event: HookEvent, timeout: u64) -> String {
    let mut life = Life::new(&settings(event, kind, timeout));
    life.awaits_notice = event == HookEvent::Notification;
    life.prompt("go");
    if event == HookEvent::PreCompress {
        life.prompt("/compress");
    }
    life.close(event == HookEvent::SessionEnd);
    let fired = life.fired().remove(event.as_str()).unwrap_or_default().len();
    let file = fs::read_to_string(life.sandbox.workspace().join("new.txt")).unwrap_or("no file".to_owned());
    let asked = life.model.asked();
    let last = asked.last().map_or("", |it| &it.body).replace("\\u003c", "<");
    let mut res = format!("{}: fired {fired}, asked the model {}, {file}\n", event.as_str(), asked.len());
    life.seen.iter().for_each(|it| res += &format!("    {}\n", it.replace('\n', "\\n")));
    MARKS.iter().filter(|it| last.contains(**it)).for_each(|it| res += &format!("    the model saw: {it}\n"));
    res
}

macro_rules! kinds {
    ($($name:ident)*) => { $(#[test] fn $name() { check(stringify!($name)); })* };
}
kinds!(allow block ask stop modify context crash hang garbage huge);

/// Every hook of the life at once: what each is told.
#[test]
fn every_hook_gets_its_documented_input() {
    let hook = json!({"type": "command", "command": format!("sh {}", script("allow"))});
    let all = HookEvent::ALL.iter().map(|it| (it.as_str().to_owned(), json!([{"hooks": [hook]}])));
    let mut life = Life::new(&json!({"hooks": serde_json::Map::from_iter(all)}));
    life.prompt("go");
    life.prompt("/compress");
    life.close(true);
    let fired = life.fired();
    let count = |it: &str| fired.get(it).map_or(0, Vec::len);
    for (event, n) in [
        ("SessionStart", 1),
        ("SessionEnd", 1),
        ("BeforeAgent", 1),
        ("AfterAgent", 1),
        ("BeforeModel", 2),
        ("AfterModel", 2),
        ("BeforeToolSelection", 2),
        ("BeforeTool", 1),
        ("AfterTool", 1),
        ("Notification", 1),
        ("PreCompress", 1),
        ("OnUserMessage", 1),
        ("BeforeRun", 1),
        ("OnModelError", 0),
        ("OnToolError", 0),
    ] {
        assert_eq!(count(event), n, "{event}");
    }
    for it in fired.values().flatten() {
        assert_eq!((&it["session_id"], &it["cwd"]), (&json!(life.session), &json!(life.sandbox.workspace())));
        let log = it["transcript_path"].as_str().unwrap();
        assert!(Path::new(log).is_file() && it["timestamp"].as_str().unwrap().ends_with('Z'), "{it}");
    }
    let first = |event: &str| &fired[event][0];
    assert_eq!(
        (&first("SessionStart")["source"], &first("SessionEnd")["reason"]),
        (&json!("startup"), &json!("other"))
    );
    assert_eq!((&first("BeforeAgent")["prompt"], &first("PreCompress")["trigger"]), (&json!("go"), &json!("manual")));
    assert_eq!((&first("OnUserMessage")["prompt"], &first("BeforeRun")["prompt"]), (&json!("go"), &json!("go")));
    assert_eq!(first("OnEvent")["events"][0]["type"], "agent_start");
    let after = first("AfterAgent");
    assert_eq!((&after["prompt_response"], &after["stop_hook_active"]), (&json!("Done."), &json!(false)));
    assert_eq!(first("BeforeModel")["llm_request"]["messages"], json!([{"role": "user", "content": "go"}]));
    assert_eq!(fired["AfterModel"][1]["llm_response"]["candidates"][0]["content"]["parts"], json!(["Done."]));
    let tool = first("AfterTool");
    assert_eq!((&tool["tool_name"], &tool["tool_input"]["file_path"]), (&json!("write_file"), &json!("new.txt")));
    assert!(tool["tool_response"]["llmContent"].is_string() && tool["tool_response"]["error"].is_null(), "{tool}");
    let details = &first("Notification")["details"];
    assert_eq!((&details["type"], &details["newContent"]), (&json!("edit"), &json!("written by the model")));
}

/// Whatever else a mode allows or denies: hooks have their say before it.
#[test]
fn hooks_fire_in_every_mode() {
    for mode in ["plan", "default", "autoEdit", "yolo"] {
        let mut life = Life::new(&settings(HookEvent::BeforeTool, "block", 600_000));
        life.client.result("session/set_mode", json!({"sessionId": life.session, "modeId": mode})).unwrap();
        life.prompt("go");
        let seen = ["failed A hook blocked this call: blocked by test", "\"Done.\"", "end_turn"];
        assert_eq!(
            (life.seen.as_slice(), life.fired()["BeforeTool"].len()),
            (&seen.map(str::to_owned)[..], 1),
            "{mode}"
        );
        assert!(!life.sandbox.workspace().join("new.txt").exists(), "{mode}");
        life.close(false);
    }
}

/// A hook that hangs costs its timeout once: later it is not started.
#[test]
fn hung_hook_delays_only_once() {
    let mut life = Life::new(&settings(HookEvent::BeforeModel, "hang", HANG_MS));
    life.prompt("go");
    life.prompt("again");
    assert_eq!(life.fired()["BeforeModel"].len(), 1);
    let hung = life.seen.iter().filter(|it| it.contains("did not answer within")).count();
    assert_eq!((hung, life.model.asked().len()), (1, 3), "{:?}", life.seen);
    life.close(false);
}

/// What hooks added for the model is a fact: it is there after a restart too, and so is what they took away.
#[test]
fn log_keeps_what_hooks_added_for_the_model() {
    let command = r#"case $(cat) in *xyzzy*) echo no >&2; exit 2 ;; *) echo '{"hookSpecificOutput": {"additionalContext": "context by test"}}' ;; esac"#;
    let hook = json!({"type": "command", "command": command});
    let mut life = Life::new(&json!({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}}));
    life.prompt("go");
    life.prompt("xyzzy");
    life.client.end().unwrap();
    life.client = Client::start(&life.sandbox);
    life.client.initialize(&json!({})).unwrap();
    let place = json!({"sessionId": life.session, "cwd": life.sandbox.workspace(), "mcpServers": []});
    life.client.call("session/load", place).unwrap();
    life.prompt("more");
    let asked = life.model.asked();
    let contents = |it: &str| serde_json::from_str::<Value>(it).unwrap()["contents"].as_array().unwrap().clone();
    let (before, after) = (contents(&asked[1].body), contents(&asked.last().unwrap().body));
    assert_eq!(after[..before.len()], before[..]);
    assert_eq!(after[0]["parts"][1]["text"], MARKS[0]);
    assert!(!asked.last().unwrap().body.contains("xyzzy"));
    life.close(false);
}
