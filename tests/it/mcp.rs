//! MCP servers that come, hang, die and go: what no conversation file can say.

use std::{
    fs,
    path::Path,
    thread,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox, WATCHDOG},
    mcp_server::{ARGS, go, make_gate},
};

/// Prompts that give castor time to see what it should see.
const N_TRIES: usize = 2000;

/// A server as clients pass it.
pub fn server(name: &str, kind: &str, log: &Path) -> Value {
    let env = [("MCP_SERVER", kind.to_owned()), ("MCP_LOG", log.display().to_string())];
    let env: Vec<Value> = env.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
    json!({"name": name, "command": std::env::current_exe().unwrap(), "args": ARGS, "env": env})
}

/// An agent whose model says what `answers` say; calls are not asked about.
pub fn agent(answers: &[&str]) -> (Sandbox, Client) {
    agent_with("{}", answers)
}

pub fn agent_with(settings: &str, answers: &[&str]) -> (Sandbox, Client) {
    agent_for(&json!({}), settings, answers)
}

fn agent_for(capabilities: &Value, settings: &str, answers: &[&str]) -> (Sandbox, Client) {
    let mut sandbox = Sandbox::new();
    sandbox.write("home/.castor/settings.json", settings);
    let lines: Vec<String> =
        answers.iter().map(|it| crate::conversation::model::response(it).unwrap().to_string() + "\n").collect();
    let script = sandbox.write("script.jsonl", &lines.concat());
    sandbox.args.extend(["--approval-mode", "yolo", "--fake-responses"].map(Into::into));
    sandbox.args.push(script.into());
    let mut client = Client::start(&sandbox);
    client.initialize(capabilities).unwrap();
    (sandbox, client)
}

pub fn prompt(client: &mut Client, session: &str) -> (Value, Vec<Value>) {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.call("session/prompt", params).unwrap()
}

/// All text of updates and results.
pub fn said(messages: &[Value]) -> String {
    messages.iter().map(Value::to_string).collect()
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < WATCHDOG, "waited in vain: {what}");
        thread::yield_now();
    }
}

/// Asks again and again which tools the session has: each question gives castor time.
fn wait_for_tools(client: &mut Client, session: &str, is_so: impl Fn(&str) -> bool) {
    let start = Instant::now();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/tools"}]});
    while !is_so(&said(&client.call("session/prompt", params.clone()).unwrap().1)) {
        assert!(start.elapsed() < WATCHDOG, "the tools stay as they are");
    }
}

fn count(log: &Path, word: &str) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().filter(|it| it.starts_with(word)).count()
}

pub fn pids(log: &Path) -> Vec<i32> {
    let text = fs::read_to_string(log).unwrap_or_default();
    text.lines().filter_map(|it| it.strip_prefix("started ")?.parse().ok()).collect()
}

fn is_alive(pid: i32) -> bool {
    // Whoever is dead but not reaped yet counts as gone.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"));
    match stat {
        Ok(stat) => !stat.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'),
        Err(_) if Path::new("/proc/self/stat").exists() => false,
        Err(_) => nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None).is_ok(),
    }
}

/// A slow server does not hold the session up.
#[test]
fn new_does_not_wait_and_the_first_prompt_waits_for_the_budget_only() {
    let (sandbox, mut client) = agent_with(r#"{"mcp": {"startBudgetMs": 400}}"#, &["text \"hi\""; N_TRIES]);
    let log = sandbox.home().join("mcp.log");
    let start = Instant::now();
    // Whoever waited for the mute one would wait for ever.
    let servers = json!([server("mute", "mute", &log), server("crash", "crash", &log)]);
    let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
    let (result, updates) = prompt(&mut client, &session);
    let waited = start.elapsed();
    assert_eq!(result["result"]["stopReason"], "end_turn");
    assert!(waited >= Duration::from_millis(350), "the prompt did not wait: {waited:?}");
    let mut said = said(&updates);
    assert!(said.contains("\\\"mute\\\" is still starting"), "{said}");
    // How long a process takes to end is its own affair.
    let lost = "\\\"crash\\\" is not available: it crashed (exit code 3): cannot read the configuration";
    for _ in 1..N_TRIES {
        if said.contains(lost) {
            return;
        }
        prompt(&mut client, &session).1.iter().for_each(|it| said += &it.to_string());
    }
    panic!("{said}");
}

#[test]
fn cancel_ends_the_wait_for_servers() {
    let (sandbox, mut client) = agent_with(r#"{"mcp": {"startBudgetMs": 600000}}"#, &[]);
    let log = sandbox.home().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("mute", "mute", &log)])).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!(1), "session/prompt", params);
    wait_for("the server's start", || count(&log, "initialize") > 0);
    client.notify("session/cancel", json!({"sessionId": session}));
    loop {
        let message = client.next().unwrap().unwrap();
        if message["id"] == 1 {
            assert_eq!(message["result"]["stopReason"], "cancelled");
            break;
        }
    }
}

#[test]
fn cancelled_call_notifies_the_server() {
    let (sandbox, mut client) = agent(&["call mcp_p_hang {}"]);
    let log = sandbox.home().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "", &log)])).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!(1), "session/prompt", params);
    wait_for("the call", || count(&log, "tools/call hang") > 0);
    client.notify("session/cancel", json!({"sessionId": session}));
    while client.next().unwrap().unwrap()["id"] != 1 {}
    wait_for("the server's notice", || count(&log, "notifications/cancelled") > 0);
}

#[test]
fn call_progress_reaches_the_client() {
    let (sandbox, mut client) = agent(&["call mcp_p_progress {}", "text \"1\""]);
    let log = sandbox.home().join("mcp.log");
    make_gate(&log);
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "", &log)])).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!(1), "session/prompt", params);
    while !client.next().unwrap().unwrap().to_string().contains("[1/2] half way") {}
    go(&log);
    while client.next().unwrap().unwrap()["id"] != 1 {}
}

#[test]
fn sessions_share_a_server_and_the_end_of_input_ends_it() {
    let (sandbox, mut client) = agent(&["call mcp_p_pid {}", "text \"1\"", "call mcp_p_pid {}", "text \"2\""]);
    let log = sandbox.home().join("mcp.log");
    let mut said_pids = Vec::new();
    for _ in 0..2 {
        let servers = json!([server("p", "", &log), server("stubborn", "stubborn", &log)]);
        let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
        let (result, updates) = prompt(&mut client, &session);
        assert_eq!(result["result"]["stopReason"], "end_turn", "{updates:?}");
        let done = updates.iter().find(|it| it["params"]["update"]["status"] == "completed").unwrap();
        said_pids.push(done["params"]["update"]["content"][0]["content"]["text"].as_str().unwrap().to_owned());
    }
    assert_eq!(said_pids[0], said_pids[1]);
    let pids = pids(&log);
    assert_eq!(pids.len(), 2, "one process for each server");
    assert!(pids.iter().all(|it| is_alive(*it)));
    client.end().unwrap();
    assert!(!pids.iter().any(|it| is_alive(*it)));
}

#[test]
fn other_servers_in_session_load_end_those_of_before() {
    let (sandbox, mut client) = agent(&["text \"1\"", "call mcp_b_pid {}", "text \"2\""]);
    let (one, two) = (sandbox.home().join("1.log"), sandbox.home().join("2.log"));
    let session = client.new_session_with(&sandbox.workspace(), json!([server("a", "", &one)])).unwrap();
    prompt(&mut client, &session);
    let servers = json!([server("b", "", &two)]);
    let params = json!({"sessionId": session, "cwd": sandbox.workspace(), "mcpServers": servers});
    client.result("session/load", params).unwrap();
    let (_, updates) = prompt(&mut client, &session);
    assert!(said(&updates).contains("\"status\":\"completed\""), "{updates:?}");
    wait_for("the first server's end", || !pids(&one).iter().any(|it| is_alive(*it)));
}

/// What `/mcp` says as soon as it says that.
pub fn wait_for_row(client: &mut Client, session: &str, word: &str) -> String {
    let start = Instant::now();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/mcp"}]});
    loop {
        let text = said(&client.call("session/prompt", params.clone()).unwrap().1);
        if text.contains(word) {
            return text;
        }
        assert!(start.elapsed() < WATCHDOG, "{text}");
    }
}

/// The report names the server once. The call that was under way is not made again; the next one waits for the new life.
#[test]
fn crashed_server_is_reported_and_started_again() {
    let echo = "call mcp_p_echo {\"text\":\"x\"}";
    let (sandbox, mut client) = agent(&["call mcp_p_die {}", "text \"1\"", echo, "text \"2\"", "text \"3\""]);
    let log = sandbox.home().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "", &log)])).unwrap();
    let (_, first) = prompt(&mut client, &session);
    let died = "its server is gone: it crashed (exit code 7): out of cheese; whether the call took effect is unknown";
    assert!(said(&first).contains(died), "{first:?}");
    let row = wait_for_row(&mut client, &session, "crashed");
    let why = "crashed (exit code 7): out of cheese";
    assert!(row.contains(&format!("`p`: {why}; try 1 to start it again is in 1 s")), "{row}");
    let (_, second) = prompt(&mut client, &session);
    let second = said(&second);
    assert!(second.contains("\\\"p\\\" is gone: it crashed (exit code 7)"), "{second}");
    assert!(second.contains("echo: x"), "{second}");
    assert_eq!((pids(&log).len(), count(&log, "tools/call die")), (2, 1));
    let (_, third) = prompt(&mut client, &session);
    assert!(!said(&third).contains("MCP server"), "{third:?}");
    let row = wait_for_row(&mut client, &session, "`p`: ready");
    assert!(row.contains(&format!("`p`: ready, 10 tools; started again once, last as it {why}")), "{row}");
}

/// Nobody has to call it.
#[test]
fn an_idle_server_comes_back_by_itself() {
    let (sandbox, mut client) = agent(&["text \"1\""]);
    let log = sandbox.home().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "", &log)])).unwrap();
    wait_for_row(&mut client, &session, "`p`: ready");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pids(&log)[0]), nix::sys::signal::Signal::SIGKILL).unwrap();
    let row = wait_for_row(&mut client, &session, "started again");
    assert!(row.contains("`p`: ready, 10 tools; started again once, last as it crashed (SIGKILL)"), "{row}");
    assert_eq!(pids(&log).len(), 2);
}

/// What a launcher leaves behind keeps its streams open: its own end is what counts.
#[test]
fn idle_server_death_is_reported() {
    let (sandbox, mut client) = agent(&["text \"1\""]);
    let log = sandbox.home().join("mcp.log");
    let servers = json!([server("one", "parent", &log), server("two", "parent", &log)]);
    let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
    wait_for_row(&mut client, &session, "`two`: ready");
    let pids = pids(&log);
    assert_eq!(pids.len(), 1, "equal servers are one process");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pids[0]), nix::sys::signal::Signal::SIGKILL).unwrap();
    let row = wait_for_row(&mut client, &session, "crashed (SIGKILL)");
    assert!(row.contains("`one`: crashed (SIGKILL)") && row.contains("`two`: crashed (SIGKILL)"), "{row}");
    let (_, updates) = prompt(&mut client, &session);
    let named = r#"The MCP servers \"one\" and \"two\", which share one process, are gone: it crashed (SIGKILL)"#;
    assert_eq!(said(&updates).matches(named).count(), 1, "{updates:?}");
}

/// A call that waits for it learns of the first try that fails; after the last one its tools go with it.
#[test]
fn server_that_fails_to_restart_is_reported_and_dropped() {
    let echo = "call mcp_p_echo {\"text\":\"x\"}";
    let (sandbox, mut client) =
        agent_with(r#"{"mcp": {"maxRestarts": 2}}"#, &["call mcp_p_die {}", echo, "text \"1\"", echo, "text \"2\""]);
    let log = sandbox.home().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "once", &log)])).unwrap();
    let (_, first) = prompt(&mut client, &session);
    let again = "started again, but it crashed (exit code 3): cannot read the configuration";
    let gone = format!("it crashed (exit code 7): out of cheese; it was {again}");
    let why = format!("MCP tool 'echo' failed: its server is gone: {gone}");
    assert!(said(&first).contains(&why), "{first:?}");
    wait_for_tools(&mut client, &session, |it| !it.contains("mcp_p_echo"));
    let row = wait_for_row(&mut client, &session, "failed");
    assert!(row.contains(&format!("`p`: failed: {gone}, and it was started again 2 times")), "{row}");
    let (_, second) = prompt(&mut client, &session);
    let second = said(&second);
    assert!(second.contains("\\\"p\\\" is not available: it crashed (exit code 7)"), "{second}");
    assert!(
        second.contains("Tool \\\"mcp_p_echo\\\" is not available: MCP server \\\"p\\\" is gone: it crashed"),
        "{second}"
    );
    assert_eq!(pids(&log).len(), 3);
}

#[test]
fn new_tools_join_with_the_next_request() {
    let (sandbox, mut client) = agent(&["call mcp_p_grow {}", "text \"1\"", "call mcp_p_grown_0 {}", "text \"2\""]);
    let log = sandbox.home().join("mcp.log");
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "", &log)])).unwrap();
    prompt(&mut client, &session);
    wait_for_tools(&mut client, &session, |it| it.contains("mcp_p_grown_0"));
    let (_, second) = prompt(&mut client, &session);
    assert!(said(&second).contains("not like this"), "{second:?}");
}

#[test]
fn a_late_server_joins_with_the_next_request() {
    let (sandbox, mut client) = agent_with(
        r#"{"mcp": {"startBudgetMs": 50}}"#,
        &["text \"1\"", "call mcp_late_echo {\"text\":\"x\"}", "text \"2\""],
    );
    let log = sandbox.home().join("mcp.log");
    make_gate(&log);
    let session = client.new_session_with(&sandbox.workspace(), json!([server("late", "slow", &log)])).unwrap();
    let (_, first) = prompt(&mut client, &session);
    assert!(said(&first).contains("\\\"late\\\" is still starting"), "{first:?}");
    go(&log);
    wait_for_tools(&mut client, &session, |it| it.contains("mcp_late_echo"));
    let (_, second) = prompt(&mut client, &session);
    assert!(said(&second).contains("echo: x"), "{second:?}");
}

/// A call that asks for a city; `then` is what the server does next.
fn asking(more: &str) -> String {
    let schema = r#"{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}"#;
    format!(r#"call mcp_p_ask {{"ask":{{"message":"Where to?","requestedSchema":{schema}}}{more}}}"#)
}

/// An agent in whose first turn a server asks; the question is open.
fn asked(settings: &str, more: &str) -> (Sandbox, Client, String, Value) {
    let (sandbox, mut client) =
        agent_for(&json!({"elicitation": {"form": {}}}), settings, &[&asking(more), "text \"1\""]);
    let log = sandbox.home().join("mcp.log");
    if more.contains("then") {
        make_gate(&log);
    }
    let servers = if settings == "{}" { json!([server("p", "asks", &log)]) } else { json!([]) };
    let session = client.new_session_with(&sandbox.workspace(), servers).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!(1), "session/prompt", params);
    let question = loop {
        let message = client.next().unwrap().unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    (sandbox, client, session, question)
}

/// What comes until the turn ends.
fn rest(client: &mut Client) -> Vec<Value> {
    let mut res = Vec::new();
    while res.last().is_none_or(|it: &Value| it["id"] != 1 || it.get("method").is_some()) {
        res.push(client.next().unwrap().unwrap());
    }
    res
}

#[test]
fn a_question_is_withdrawn_with_its_server_and_when_it_takes_it_back() {
    for (then, says) in [("die", "its server is gone"), ("cancel", "never mind")] {
        let (sandbox, mut client, _, question) = asked("{}", &format!(r#","then":"{then}""#));
        go(&sandbox.home().join("mcp.log"));
        let rest = rest(&mut client);
        let withdrawn =
            json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": question["id"]}});
        assert!(rest.contains(&withdrawn), "{then}: {rest:?}");
        assert!(said(&rest).contains(says), "{then}: {rest:?}");
        // An answer that crosses the withdrawal is nothing to anybody.
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
        client.end().unwrap();
    }
}

/// The answer is in no log and no update.
#[test]
fn an_answer_to_a_server_is_nowhere_else() {
    let (sandbox, mut client, _, question) = asked("{}", r#","quiet":true"#);
    let content = json!({"city": "canary-city"});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}}));
    let rest = rest(&mut client);
    assert!(said(&rest).contains("thanks"), "{rest:?}");
    assert!(!said(&rest).contains("canary"), "{rest:?}");
    client.end().unwrap();
    let sessions = sandbox.home().join(".castor/sessions");
    let logs: Vec<String> =
        fs::read_dir(sessions).unwrap().map(|it| fs::read_to_string(it.unwrap().path()).unwrap_or_default()).collect();
    assert!(logs.iter().any(|it| it.contains("thanks")) && !logs.concat().contains("canary"), "{logs:?}");
}

/// Nobody is interrupted: the next prompt asks first, and goes on with the answer given. Hooks hear of it when it comes.
#[test]
fn a_question_outside_of_a_turn_waits_for_the_next_prompt() {
    let texts: Vec<String> = (0..50).map(|n| format!("text \"{n}\"")).collect();
    let answers: Vec<&str> = ["call mcp_p_later {}"].into_iter().chain(texts.iter().map(String::as_str)).collect();
    let bell = json!({"matcher": "Question", "hooks": [{"type": "command", "command": "cat >> heard.txt"}]});
    let settings = json!({"hooks": {"Notification": [bell]}}).to_string();
    let (sandbox, mut client) = agent_for(&json!({"elicitation": {"form": {}}}), &settings, &answers);
    let (log, heard) = (sandbox.home().join("mcp.log"), sandbox.workspace().join("heard.txt"));
    make_gate(&log);
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "pages", &log)])).unwrap();
    prompt(&mut client, &session);
    go(&log);
    wait_for("the question", || count(&log, "asked") == 1);
    wait_for("the hook", || fs::read_to_string(&heard).unwrap_or_default().contains("Server `p` asks: Where to?"));
    let mut is_asked = false;
    for n in 2..40 {
        let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
        client.request_as(json!(n), "session/prompt", params);
        loop {
            let message = client.next().unwrap().unwrap();
            if message["method"] == "elicitation/create" {
                let asked = message["params"]["message"].as_str().unwrap_or_default().to_owned();
                assert_eq!(asked, "Server `p` asks: Where to?");
                let result = json!({"action": "accept", "content": {"city": "Rome"}});
                client.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": result}));
                is_asked = true;
            }
            if message["id"] == n && message.get("method").is_none() {
                break;
            }
        }
        if is_asked {
            break;
        }
    }
    assert!(is_asked);
    wait_for("the answer", || fs::read_to_string(&log).unwrap_or_default().contains("Rome"));
}

/// The server has not begun with such a call: when the user was on its page, the call is made once more.
#[test]
fn a_call_that_needs_a_page_is_made_again_after_it() {
    let (sandbox, mut client) =
        agent_for(&json!({"elicitation": {"url": {}}}), "{}", &["call mcp_p_page {}", "text \"1\""]);
    let log = sandbox.home().join("mcp.log");
    make_gate(&log);
    let session = client.new_session_with(&sandbox.workspace(), json!([server("p", "pages", &log)])).unwrap();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!(1), "session/prompt", params);
    let asked = loop {
        let message = client.next().unwrap().unwrap();
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_eq!(asked["params"]["url"], "https://a.example/p");
    client.send(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}}));
    go(&log);
    let rest = rest(&mut client);
    assert!(said(&rest).contains("visited"), "{rest:?}");
    assert_eq!(count(&log, "tools/call page"), 2);
}

#[test]
fn user_answers_outlast_the_call_timeout() {
    let exe = std::env::current_exe().unwrap();
    let probe = json!({"command": exe, "args": ARGS, "env": {"MCP_SERVER": "asks"}, "timeout": 2_000});
    let (_sandbox, mut client, _, question) = asked(&json!({"mcpServers": {"p": probe}}).to_string(), "");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(2_500) {
        client.result("session/list", json!({})).unwrap();
    }
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    let rest = rest(&mut client);
    assert!(said(&rest).contains("decline"), "{rest:?}");
}

/// One process serves all runs of an agent in a session, and the session that is the agent's.
#[test]
fn own_servers_of_agents_start_once_and_end_with_the_session() {
    let run = |name: &str| {
        [
            format!("call invoke_agent {{\"agent_name\":\"helper\",\"prompt\":\"{name}.\"}}"),
            format!("for \"You help with {name}\" wants \"mcp_mine_echo\" call mcp_mine_echo {{\"text\":\"{name}\"}}"),
            format!("for \"You help with {name}\" wants \"echo: {name}\" call complete_task {{\"result\":\"R\"}}"),
        ]
    };
    let answers = [run("one"), run("two")].concat();
    let last = ["text \"Done.\"", "for \"You help with what\" wants \"mcp_mine_echo\" text \"Me.\""];
    let answers: Vec<&str> = answers.iter().map(String::as_str).chain(last).collect();
    let (sandbox, mut client) = agent(&answers);
    let log = sandbox.home().join("mcp.log");
    let env = json!({"MCP_SERVER": "x", "MCP_LOG": log});
    let servers = json!({"mine": {"command": std::env::current_exe().unwrap(), "args": ARGS, "env": env}});
    let head = format!("name: helper\ndescription: Helps.\ntools: [read_file]\nmcp_servers: {servers}");
    sandbox.write("home/.castor/agents/helper.md", &format!("---\n{head}\n---\nYou help with ${{query}}"));
    let session = client.new_session(&sandbox.workspace()).unwrap();
    assert!(pids(&log).is_empty());
    assert!(said(&prompt(&mut client, &session).1).contains("Done."));
    let tools = json!({"sessionId": session, "prompt": [{"type": "text", "text": "/tools"}]});
    assert!(!said(&client.call("session/prompt", tools.clone()).unwrap().1).contains("mcp_mine"));
    let choice = json!({"sessionId": session, "configId": "agent", "value": "helper"});
    client.result("session/set_config_option", choice).unwrap();
    assert!(said(&prompt(&mut client, &session).1).contains("Me."));
    assert!(said(&client.call("session/prompt", tools).unwrap().1).contains("mcp_mine_echo"));
    let pids = pids(&log);
    assert_eq!(pids.len(), 1);
    client.result("session/close", json!({"sessionId": session})).unwrap();
    wait_for("the server's end", || !is_alive(pids[0]));
}
