//! Sub-agents in `castor sessions export` and `castor sessions list --tree`, from logs on a disk.
#![allow(clippy::disallowed_methods)]

use std::fs;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use super::{Bed, bed};
use crate::cli::page::tests::check_tags;

const EVIL: &str = "Write <script>alert(1)</script>\n# and\n```\n</details>";

/// A log that is written line by line.
struct Log {
    id: &'static str,
    now: u64,
    lines: Vec<Value>,
}

impl Log {
    fn new(id: &'static str, now: u64, cwd: &str, agent: Option<(&str, &str, &str)>) -> Self {
        let mut created = json!({"at": now, "fact": "created", "version": 2, "castor": "0", "session": id, "cwd": cwd,
            "roots": [cwd], "mode": "default", "model": "m"});
        if let Some((name, session, call)) = agent {
            created["principal"] = json!({"agent": name});
            created["child_of"] = json!({"session": session, "call": call});
        }
        Self { id, now, lines: vec![created] }
    }

    fn event(&mut self, mut kind: Value) -> &mut Self {
        self.now += 100;
        for (key, value) in [("id", json!("s-0")), ("streamId", json!("s")), ("timestamp", json!(self.now))] {
            kind[key] = value;
        }
        self.lines.push(json!({"at": self.now, "fact": "event", "event": kind}));
        self
    }

    fn asked(&mut self, text: &str) -> &mut Self {
        self.event(json!({"type": "agent_start"}));
        self.event(json!({"type": "message", "role": "user", "messageId": "m1",
            "content": [{"type": "text", "text": text}]}))
    }

    fn says(&mut self, text: &str) -> &mut Self {
        self.event(json!({"type": "message", "role": "agent", "messageId": "m2",
            "content": [{"type": "text", "text": text}]}))
    }

    fn spends(&mut self, tokens: u64, cost: f64) -> &mut Self {
        self.event(json!({"type": "usage", "model": "m", "input": tokens, "output": 10, "cached": 0, "thought": 0,
            "total": tokens + 10, "size": 9, "cost": cost, "sessionCost": cost}))
    }

    fn starts(&mut self, call: &str, agent: &str, task: &str) -> &mut Self {
        let title = format!("{agent}: {}", task.lines().next().unwrap());
        self.event(json!({"type": "tool_request", "requestId": call, "name": "invoke_agent",
            "args": {"agent_name": agent, "prompt": task}, "display": {"title": title, "kind": "other"}}));
        self.event(json!({"type": "tool_update", "requestId": call, "progress": "started"}))
    }

    fn hears(&mut self, call: &str, agent: &str, result: &str) -> &mut Self {
        let data = json!({"agent": agent, "sessionId": "s/x", "terminateReason": "GOAL", "requests": 2,
            "tokens": 1234, "toolCalls": 1, "cost": 0.25});
        self.event(json!({"type": "tool_response", "requestId": call, "name": "invoke_agent",
            "content": [{"type": "text", "text": result}], "display": {"type": "text", "text": result}, "data": data}))
    }

    fn ends(&mut self, reason: &str, data: Value) -> &mut Self {
        self.event(json!({"type": "agent_end", "reason": reason, "data": data}))
    }

    fn worked(&mut self, ms: u64) -> &mut Self {
        self.lines.push(json!({"at": self.now, "fact": "worked", "ms": ms}));
        self
    }

    fn write(&self, bed: &Bed) {
        let path = bed.root.join(format!("home/sessions/{}.jsonl", self.id));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, self.lines.iter().map(|it| format!("{it}\n")).collect::<String>()).unwrap();
    }
}

/// A boss with a worker below it, a scout of whom no log is left, and a scribe that castor's end cut off.
fn team() -> Bed {
    let bed = bed();
    let cwd = bed.cwd().to_string();
    let log = |id, now, agent| Log::new(id, now, "/w", agent);
    let mut main = Log::new("session-team", 1_000, &cwd, None);
    main.asked("Make it so.").starts("c1", "boss", "Plan.").spends(5_000, 0.5).hears("c1", "boss", "planned");
    main.starts("c2", "scout", "Look around.").hears("c2", "scout", "nothing <b>new</b>");
    main.starts("c3", "scribe", EVIL);
    main.event(json!({"type": "tool_update", "requestId": "c3", "progress": "activity", "activity":
        {"isSubagentActivityEvent": true, "agentName": "scribe", "type": "THOUGHT_CHUNK", "data": {"text": "Hm"}}}));
    main.write(&bed);
    let mut boss = log("session-team/boss-1", 1_100, Some(("boss", "session-team", "c1")));
    boss.asked("Plan.").spends(1_200, 0.125).starts("c9", "worker", "Do *it*.").hears("c9", "worker", "worked");
    let end = json!({"result": "planned", "terminate_reason": "GOAL", "escalateReason": "It is good."});
    boss.spends(800, 0.125).ends("completed", end).worked(4_200);
    boss.write(&bed);
    let mut worker = log("session-team/worker-1", 1_200, Some(("worker", "session-team/boss-1", "c9")));
    worker.asked("Do *it*.").says("# Done\n\nIt is <i>done</i>.").ends("max_turns", Value::Null).write(&bed);
    let mut scribe = log("session-team/scribe-1", 1_300, Some(("scribe", "session-team", "c3")));
    scribe.asked(EVIL).says("I wr").write(&bed);
    fs::write(bed.root.join("home/sessions/session-team/scout-1.jsonl"), "{\"at\": 12").unwrap();
    bed
}

#[test]
fn agents_are_told_below_their_calls() {
    let bed = team();
    let page = bed.castor(&["export", "latest", "--format", "html"]).unwrap();
    check_tags(&page);
    assert!(page.matches("<script").count() == 1 && page.contains("&lt;script&gt;"), "{page}");
    let (_, main) = page.split_once("<section class=\"turn\"").unwrap();
    let (main, _) = main.split_once("<script>").unwrap();
    expect_file!["agents.html"].assert_eq(main);
    let text = bed.castor(&["export", "latest"]).unwrap();
    let (_, main) = text.split_once("## Turn 1").unwrap();
    expect_file!["agents.md"].assert_eq(main);
}

/// The export as JSON has their logs; so has that of a fork, which has none of its own.
#[test]
fn agents_logs_are_exported_whole() {
    let bed = team();
    let export = |id: &str| -> Value {
        serde_json::from_str(&bed.castor(&["export", id, "--format", "json"]).unwrap()).unwrap()
    };
    let ids = |it: &Value| -> Vec<String> {
        it["agents"].as_array().unwrap().iter().map(|it| it[0]["session"].as_str().unwrap().to_owned()).collect()
    };
    let all = ["session-team/boss-1", "session-team/scribe-1", "session-team/worker-1"];
    assert_eq!(ids(&export("session-team")), all);
    let fork = bed.castor(&["fork", "session-team"]).unwrap();
    assert_eq!(ids(&export(fork.trim_end())), all);
    assert!(
        bed.castor(&["export", fork.trim_end()]).unwrap().contains("> > *The turn ended early: limit of model calls*")
    );
    bed.log("session-a", &bed.cwd());
    assert_eq!(export("session-a").get("agents"), None);
}

/// An agent's session can be exported by itself.
#[test]
fn an_agent_is_exported_by_its_id() {
    let text = team().castor(&["export", "session-team/boss-1"]).unwrap();
    assert!(text.contains("\n> **Agent** `worker` *(limit of model calls"), "{text}");
}

/// A log that is its own child, which no castor writes.
#[test]
fn stories_in_themselves_end() {
    let bed = bed();
    let mut it = Log::new("session-x/a-1", 1, "/w", Some(("a", "session-x/a-1", "c")));
    it.asked("Again.").starts("c", "a", "Again.").hears("c", "a", "r").write(&bed);
    let text = bed.castor(&["export", "session-x/a-1"]).unwrap();
    assert!(text.contains("is missing or cannot be read") && text.len() < 10_000, "{text}");
    bed.log("session-x", &bed.cwd());
    it.lines[0]["session"] = json!("session-x");
    it.lines[0]["child_of"]["session"] = json!("session-x");
    it.write(&bed);
    assert_eq!(bed.castor(&["list", "--tree"]).unwrap().matches("? a  ").count(), 8);
    assert_eq!(bed.castor(&["list", "--tree", "--json"]).unwrap().matches("\"agent\":\"a\"").count(), 8);
}

#[test]
fn the_list_has_agents_as_a_tree() {
    let mut bed = team();
    bed.log("session-a", &bed.cwd());
    let path = bed.root.join("home/sessions/session-a.jsonl");
    let old = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_600_000_000_000);
    let now = std::time::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_000);
    fs::File::options().append(true).open(&path).unwrap().set_modified(old).unwrap();
    let path = bed.root.join("home/sessions/session-team.jsonl");
    fs::File::options().append(true).open(&path).unwrap().set_modified(now).unwrap();
    let mut shown = String::new();
    for width in [40, 80, 120] {
        bed.look.width = width;
        shown += &format!("--- {width}\n{}", bed.castor(&["list", "--tree"]).unwrap());
    }
    bed.look.color = true;
    shown += &bed.castor(&["list", "--tree", "-n", "1"]).unwrap().replace('\u{1b}', "^");
    expect![[r#"
        --- 40
        ID      WHEN        TITLE
        n-team  just now    (no title)
          ✓ boss  done · ended the loop · 4.2 s…
            ✗ worker  limit of model calls · 0.…
          ? scribe  no end is known  Write <scr…
        ion-a   2020-09-13  Greeting⟨U+001B⟩[2J
        --- 80
        ID      WHEN         COST  MODEL  TURNS  TITLE
        n-team  just now    $0.50  m          1  (no title)
          ✓ boss  done · ended the loop · 4.2 s · 2.0k in, 20 out · $0.25  Plan.
            ✗ worker  limit of model calls · 0.3 s  Do it.
          ? scribe  no end is known  Write <script>alert(1)</script> and </details>
        ion-a   2020-09-13      -  m          1  Greeting⟨U+001B⟩[2J
        --- 120
        ID      WHEN         COST  MODEL  TURNS  TITLE
        n-team  just now    $0.50  m          1  (no title)
          ✓ boss  done · ended the loop · 4.2 s · 2.0k in, 20 out · $0.25  Plan.
            ✗ worker  limit of model calls · 0.3 s  Do it.
          ? scribe  no end is known  Write <script>alert(1)</script> and </details>
        ion-a   2020-09-13      -  m          1  Greeting⟨U+001B⟩[2J
        ^[1mID^[0m      ^[1mWHEN^[0m       ^[1mCOST^[0m  ^[1mMODEL^[0m  ^[1mTURNS^[0m  ^[1mTITLE^[0m
        ^[36mn-team^[0m  ^[2mjust now^[0m  $0.50  ^[2mm^[0m          1  ^[2m(no title)^[0m
        ^[32m  ✓ ^[0mboss^[2m  done · ended the loop · 4.2 s · 2.0k in, 20 out · $0.25^[0m  Plan.
        ^[31m    ✗ ^[0mworker^[2m  limit of model calls · 0.3 s^[0m  Do it.
        ^[33m  ? ^[0mscribe^[2m  no end is known^[0m  Write <script>alert(1)</script> and </details>
        ^[2m… 1 more: -n 0 shows all^[0m
    "#]]
    .assert_eq(&shown);
    let json: Value = serde_json::from_str(&bed.castor(&["list", "--tree", "--json"]).unwrap()).unwrap();
    let (boss, scribe) = (&json[0]["agents"][0], &json[0]["agents"][1]);
    assert_eq!((&boss["agent"], &boss["task"], &boss["end"]), (&json!("boss"), &json!("Plan."), &json!("completed")));
    assert_eq!((&boss["tokens"], &boss["cost"], &boss["tookMs"]), (&json!(2020), &json!(0.25), &json!(4200)));
    assert_eq!(boss["agents"][0]["sessionId"], "session-team/worker-1");
    assert_eq!((&scribe["agent"], &scribe["end"]), (&json!("scribe"), &Value::Null));
    assert_eq!(json[1]["agents"], json!([]));
    let plain: Value = serde_json::from_str(&bed.castor(&["list", "--json"]).unwrap()).unwrap();
    assert_eq!(plain[0].get("agents"), None);
}
