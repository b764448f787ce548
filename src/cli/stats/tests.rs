//! `castor stats` on logs on a disk.
#![allow(clippy::disallowed_methods)]

use std::fs;

use expect_test::{expect, expect_file};
use serde_json::{Value, json};

use super::{StatsArgs, draws_blocks, run};
use crate::cli::{
    page::tests::check_tags,
    sessions::{CommandContext, CommandLook},
    testing::{Ground, parse},
};
use castor_base::clock::Now;
use castor_engine::record::Fork;
use castor_hands::secrets::Env;
use castor_store::sessions::SessionStore;

/// 20 November 2026, noon, in UTC.
const NOON: u64 = 1_795_176_000_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

/// A log that is written line by line, a second each.
struct Log {
    id: String,
    now: u64,
    n: u64,
    lines: Vec<Value>,
}

impl Log {
    fn new(id: &str, now: u64, cwd: &str) -> Self {
        let created = json!({"at": now, "fact": "created", "version": 2, "castor": "0", "session": id, "cwd": cwd,
            "roots": [cwd], "mode": "default", "model": "big"});
        Self { id: id.to_owned(), now, n: 0, lines: vec![created] }
    }

    fn fact(&mut self, mut fact: Value) -> &mut Self {
        self.now += 1_000;
        fact["at"] = json!(self.now);
        self.lines.push(fact);
        self
    }

    fn event(&mut self, mut kind: Value) -> &mut Self {
        self.n += 1;
        for (key, value) in [
            ("id", json!(format!("{}-{}", self.id, self.n))),
            ("streamId", json!(self.id)),
            ("timestamp", json!(self.now + 1_000)),
        ] {
            kind[key] = value;
        }
        self.fact(json!({"fact": "event", "event": kind}))
    }

    /// A prompt, and an answer of so many tokens.
    fn turn(&mut self, model: &str, tokens: u64, cost: Option<f64>) -> &mut Self {
        self.event(json!({"type": "agent_start"}));
        self.event(json!({"type": "message", "role": "user", "messageId": "m", "content": []}));
        self.fact(json!({"fact": "attempt", "model": model, "attempt": 1}));
        self.usage(model, tokens, cost, "agent")
    }

    fn usage(&mut self, model: &str, tokens: u64, cost: Option<f64>, purpose: &str) -> &mut Self {
        self.event(
            json!({"type": "usage", "model": model, "input": tokens, "output": 10, "cached": tokens / 2, "thought": 5,
            "total": tokens + 15, "size": 9, "cost": cost, "purpose": purpose}),
        )
    }

    /// A call that takes two seconds, and was asked about with this answer, if any.
    fn call(&mut self, tool: &str, answer: Option<&str>, error: Option<&str>) -> &mut Self {
        let call = format!("c{}", self.n);
        self.event(json!({"type": "tool_request", "requestId": call, "name": tool, "args": {},
            "display": {"title": tool, "kind": "other"}}));
        if let Some(answer) = answer {
            self.fact(json!({"fact": "decision", "call": call, "decision": "ask", "rule": "r"}));
            self.now += 9_000;
            self.fact(json!({"fact": "answered", "call": call, "answer": answer}));
        }
        self.event(json!({"type": "tool_update", "requestId": call, "progress": "started"}));
        self.now += 1_000;
        let error = error.map(|kind| json!({"kind": kind, "message": "why"}));
        self.event(json!({"type": "tool_response", "requestId": call, "name": tool, "content": [], "error": error}))
    }

    /// A call that is a sub-agent's run.
    fn agent_call(&mut self) -> &mut Self {
        let name = "invoke_agent";
        self.event(json!({"type": "tool_request", "requestId": "agent", "name": name, "args": {},
            "display": {"title": name, "kind": "other"}}));
        self.event(json!({"type": "tool_update", "requestId": "agent", "progress": "started"}));
        self.event(json!({"type": "tool_update", "requestId": "agent", "progress": "activity", "activity":
            {"isSubagentActivityEvent": true, "agentName": "helper", "type": "THOUGHT_CHUNK", "data": {}}}));
        self.event(json!({"type": "tool_response", "requestId": "agent", "name": name, "content": []}))
    }

    fn end(&mut self) -> &mut Self {
        self.event(json!({"type": "agent_end", "reason": "completed"}))
    }

    fn write(&self, bed: &Bed) {
        let lines = self.lines.iter().map(|it| format!("{it}\n")).collect::<String>();
        bed.ground.write(&format!("home/sessions/{}.jsonl", self.id), &lines);
    }
}

struct Bed {
    ground: Ground,
    look: CommandLook,
}

impl Bed {
    fn new() -> Self {
        let ground = Ground::new();
        let look = CommandLook { width: 110, ..CommandLook::default() };
        Self { ground, look }
    }

    fn store(&self) -> SessionStore {
        SessionStore::new(self.ground.root.join("home"))
    }

    /// What goes to stdout, and what to stderr.
    fn stats(&self, line: &[&str]) -> (String, String) {
        let args: StatsArgs = parse(line);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let (store, cwd) = (self.store(), self.ground.root.clone());
        let now = Now { unix_ms: NOON + DAY, seed: 7 };
        let mut context =
            CommandContext { store: &store, cwd: &cwd, now, out: &mut out, ask: None, look: self.look.clone() };
        if let Err(it) = run(&args, &mut context, true, &mut err) {
            err.extend(it.why.into_bytes());
        }
        (String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
    }

    fn json(&self, line: &[&str]) -> Value {
        serde_json::from_str(&self.stats(&[line, &["-o", "json"]].concat()).0).unwrap()
    }
}

/// Two folders, three days, a sub-agent; a model that has no price, and a tool whose name is a trick.
fn bed() -> Bed {
    let bed = Bed::new();
    let mut it = Log::new("one", NOON - 2 * DAY, "/w/parser");
    it.turn("big", 4_000, Some(0.5)).call("read_file", None, None).call("shell", Some("allow_once"), None);
    it.fact(json!({"fact": "attempt", "model": "big", "attempt": 1}));
    it.usage("big", 6_000, Some(0.75), "agent").usage("small", 100, Some(0.001), "router").end();
    it.now = NOON - DAY;
    it.turn("small", 900, Some(0.01)).call("shell", Some("reject"), Some("cancelled"));
    it.call("shell", Some("allow_session"), Some("failed")).call("=cmd,x", None, Some("policy_violation")).end();
    it.write(&bed);
    let mut it = Log::new("two", NOON, "/w/site");
    it.turn("free", 2_000, None).agent_call();
    it.usage("big", 1_000, Some(0.25), "subagent");
    it.fact(json!({"fact": "attempt", "model": "free", "attempt": 1}));
    it.fact(json!({"fact": "attempt_failed", "failure": {"kind": "status", "message": "x"}, "abandoned": false})).end();
    it.write(&bed);
    let mut it = Log::new("two/helper-1", NOON + 1_000, "/w/site");
    it.turn("big", 1_000, Some(0.25)).call("read_file", None, Some("file_not_found")).end().write(&bed);
    bed
}

#[test]
fn sums_on_a_terminal() {
    let mut bed = bed();
    let (shown, err) = bed.stats(&[]);
    assert_eq!(err, "");
    expect_file!["golden/overview.txt"].assert_eq(&shown);
    bed.look.width = 44;
    bed.look.color = true;
    let (shown, _) = bed.stats(&["--by", "model", "--since", "2026-11-20", "--until", "12h"]);
    expect_file!["golden/narrow.txt"].assert_eq(&shown.replace('\u{1b}', "^"));
}

#[test]
fn sums_as_a_page() {
    let (page, _) = bed().stats(&["-o", "html"]);
    check_tags(&page);
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("http:"), "{page}");
    expect_file!["golden/page.html"].assert_eq(page.split_once("<body>\n").unwrap().1);
}

#[test]
fn sums_for_programs() {
    let bed = bed();
    let all = bed.json(&[]);
    let total = &all["total"];
    assert_eq!((&total["sessions"], &total["agents"], &total["prompts"]), (&json!(2), &json!(1), &json!(3)));
    assert_eq!((&total["requests"], &total["failedRequests"]), (&json!(7), &json!(1)));
    assert_eq!((&total["cost"], &total["costIsPartial"]), (&json!(1.511), &json!(true)));
    let tokens = json!({"input": 14_000, "cached": 7_000, "output": 90, "thoughts": 30, "cachedShare": 0.5});
    assert_eq!(total["tokens"], tokens);
    assert_eq!(total["calls"], json!({"total": 7, "failed": 2, "stopped": 2}));
    let questions = json!({"asked": 3, "allowedOnce": 1, "allowedForLonger": 1, "refused": 1, "answeredInWords": 0,
        "withoutAnswer": 0});
    assert_eq!(total["questions"], questions);
    // The time of the sub-agent is that of its own model and tool.
    let times = json!({"models": 6_000, "tools": 12_000, "waitingForUser": 30_000});
    assert_eq!(total["milliseconds"], times);
    let names = |group: &str| -> Vec<String> {
        let rows = all[group].as_array().unwrap();
        rows.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("days"), ["2026-11-18", "2026-11-19", "2026-11-20"]);
    assert_eq!(names("models"), ["big", "small", "free"]);
    assert_eq!(names("tools"), ["shell", "read_file", "=cmd,x", "invoke_agent"]);
    assert_eq!(names("folders"), ["/w/parser", "/w/site"]);
    let since = bed.json(&["--since", "2026-11-19", "--until", "2026-11-19", "--by", "folder"]);
    assert_eq!((&since["total"]["cost"], &since["total"]["sessions"]), (&json!(0.01), &json!(1)));
    assert_eq!((since.get("days"), since["folders"].as_array().unwrap().len()), (None, 1));
    assert_eq!(since["since"], "2026-11-19T00:00:00Z");
    let (csv, _) = bed.stats(&["-o", "csv", "--by", "tool"]);
    expect![[r#"
        tool,sessions,agents,prompts,requests,failed_requests,input_tokens,cached_tokens,output_tokens,thought_tokens,cost_usd,calls,failed_calls,stopped_calls,questions,allowed_once,allowed_for_longer,refused,models_ms,tools_ms,waited_ms
        shell,1,0,0,0,0,0,0,0,0,,3,1,1,3,1,1,1,0,6000,30000
        read_file,1,1,0,0,0,0,0,0,0,,2,1,0,0,0,0,0,0,4000,0
        "'=cmd,x",1,0,0,0,0,0,0,0,0,,1,0,1,0,0,0,0,0,2000,0
        invoke_agent,1,0,0,0,0,0,0,0,0,,1,0,0,0,0,0,0,0,0,0
    "#]]
    .assert_eq(&csv.replace("\r\n", "\n"));
}

/// Forks, forks of forks and forks of what is gone count what is their own.
#[test]
fn a_copy_counts_once() {
    let bed = Bed::new();
    let store = bed.store();
    let fork = |of: &str, to: &str| {
        let entries = store.read(&of.into()).unwrap();
        let fork = Fork { session: to.into(), until: None, now_ms: NOON + HOUR };
        store.create_with(&to.into(), &fork.copy_log(&entries).unwrap()).unwrap();
    };
    let go_on = |id: &str, cost: f64| {
        let mut log = Log::new(id, NOON + 2 * HOUR, "/w");
        log.turn("m", 100, Some(cost)).end();
        let path = bed.ground.root.join(format!("home/sessions/{id}.jsonl"));
        // Lines without a checksum are no part of a log that has them.
        let bare = |it: &str| it.rsplit_once(",\"sum\":").map_or(it.to_owned(), |(head, _)| format!("{head}}}"));
        let before = fs::read_to_string(&path).unwrap();
        let more = log.lines.iter().skip(1).map(ToString::to_string);
        let all: String = before.lines().map(bare).chain(more).map(|it| it + "\n").collect();
        fs::write(&path, all).unwrap();
    };
    let cost = || bed.json(&[])["total"]["cost"].clone();
    Log::new("a", NOON, "/w").turn("m", 100, Some(1.0)).end().write(&bed);
    fork("a", "b");
    assert_eq!((cost(), &bed.json(&[])["total"]["sessions"]), (json!(1.0), &json!(1)));
    go_on("a", 2.0);
    go_on("b", 4.0);
    fork("b", "c");
    go_on("c", 8.0);
    fork("a", "d");
    assert_eq!(cost(), 15.0);
    // What a fork was made of is gone: then it has the only record of it.
    store.delete(&"b".into()).unwrap();
    assert_eq!(cost(), 15.0);
    store.delete(&"a".into()).unwrap();
    assert_eq!(cost(), 15.0);
}

/// Where the logs of sub-agents are lost, as in an import, the session's own record of their cost counts.
#[test]
fn lost_agents_count_by_what_the_session_says() {
    let bed = bed();
    let before = bed.json(&[])["total"]["cost"].clone();
    fs::remove_dir_all(bed.ground.root.join("home/sessions/two")).unwrap();
    let after = bed.json(&[]);
    assert_eq!((&after["total"]["cost"], &after["total"]["agents"]), (&before, &json!(0)));
}

#[test]
fn what_cannot_be_read_is_named_and_the_rest_counts() {
    let bed = bed();
    bed.ground.write("home/sessions/odd.jsonl", "{\"at\": 1}\n");
    bed.ground.write("home/sessions/empty.jsonl", "");
    bed.ground.write("home/sessions/evil name.jsonl", "x\n");
    fs::create_dir(bed.ground.root.join("home/sessions/folder.jsonl")).unwrap();
    let path = bed.ground.root.join("home/sessions/one.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text + "no JSON \"usage\"\n{\"at\": 1, \"fact\": \"usage\"}\n{\"at\": 2, \"fact\": \"event\", \"ev",
    )
    .unwrap();
    let (out, err) = bed.stats(&["-o", "json"]);
    assert!(err.contains("not counted: the log of session odd: its first line is not that of a log"), "{err}");
    assert!(err.contains("folder") && err.lines().count() == 2, "{err}");
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&out["total"]["cost"], out["unread"].as_array().unwrap().len()), (&json!(1.511), 2));
}

#[test]
fn an_empty_home_and_a_bad_time_have_words() {
    let bed = Bed::new();
    assert_eq!(bed.stats(&[]), ("Sessions   0 sessions\n".to_owned(), String::new()));
    assert!(bed.stats(&["--since", "soon"]).1.contains("--since soon is no time: write a day"));
    for (variables, expected) in [
        (vec![], true),
        (vec![("LANG", "de_DE.UTF-8")], true),
        (vec![("LANG", "C.utf8"), ("LC_ALL", "C")], false),
        (vec![("TERM", "dumb")], false),
    ] {
        assert_eq!(draws_blocks(&Env::from_pairs(variables.clone())), expected, "{variables:?}");
    }
}

/// All versions of logs that there ever were.
#[test]
fn old_logs_count() {
    let bed = Bed::new();
    for (id, text) in [
        ("v1-rich", include_str!("../../../tests/data/logs/v1-rich.jsonl")),
        ("v2-continued", include_str!("../../../tests/data/logs/v2-continued.jsonl")),
        ("future", include_str!("../../../tests/data/logs/future.jsonl")),
    ] {
        bed.ground.write(&format!("home/sessions/{id}.jsonl"), text);
    }
    let (out, err) = bed.stats(&["--by", "tool"]);
    assert_eq!(err, "");
    expect_file!["golden/old.txt"].assert_eq(&out);
}
