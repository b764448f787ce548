//! Commands in the background: the model hears of their end without asking, in a running turn and in the next one.

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{Asked, ModelServer, calls, says},
};

/// A guard: a model that is not told within so many requests never is.
const MAX: usize = 500;
const TOLD: &str = "Background execution update:";

fn start(answer: impl FnMut(&Asked) -> Option<String> + Send + 'static) -> (Sandbox, ModelServer, Client, String) {
    start_for(answer, &json!({}))
}

fn start_for(
    answer: impl FnMut(&Asked) -> Option<String> + Send + 'static,
    capabilities: &Value,
) -> (Sandbox, ModelServer, Client, String) {
    let server = ModelServer::answering(answer);
    let mut sandbox = Sandbox::new();
    sandbox.args.extend(["--approval-mode", "yolo"].map(Into::into));
    sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
    sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
    let mut client = Client::start(&sandbox);
    client.initialize(capabilities).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (sandbox, server, client, session)
}

fn prompt(client: &mut Client, session: &str, text: &str) -> Vec<Value> {
    let params = json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] });
    let (answer, updates) = client.call("session/prompt", params).unwrap();
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    updates
}

/// Waits for a line that the second call writes, and says something.
fn waiting() -> String {
    let command = "mkfifo go; read < go; echo the end of it";
    calls("run_shell_command", &json!({ "command": command, "is_background": true, "delay_ms": 0 }))
}

fn texts(body: &str) -> Vec<String> {
    let body: Value = serde_json::from_str(body).unwrap();
    let parts = body["contents"].as_array().unwrap().iter().flat_map(|it| it["parts"].as_array().unwrap());
    parts.filter_map(|it| it["text"].as_str().map(str::to_owned)).collect()
}

#[test]
fn the_end_of_a_command_enters_the_running_turn() {
    let mut n = 0;
    let (_sandbox, server, mut client, session) = start(move |asked| {
        n += 1;
        Some(match n {
            1 => waiting(),
            2 => calls("run_shell_command", &json!({ "command": "until [ -p go ]; do :; done; echo on > go" })),
            _ if asked.body.contains(TOLD) => says("It is done."),
            // Always another one, or this would be a loop.
            _ if n < MAX => calls("glob", &json!({ "pattern": format!("{n}*") })),
            _ => return None,
        })
    });
    let updates = prompt(&mut client, &session, "go");
    let last = server.asked().last().unwrap().body.clone();
    let told: Vec<String> = texts(&last).into_iter().filter(|it| it.contains(TOLD)).collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].starts_with("[Notice]\nBackground execution update:\n`mkfifo go;"), "{told:?}");
    let quoted = "<untrusted_context>\nthe end of it\n</untrusted_context>\nAll of its output: ";
    assert!(told[0].contains(&format!("has ended: exit code 0.\nThe last it printed:\n{quoted}")), "{told:?}");
    let (_, log) = told[0].split_once("All of its output: ").unwrap();
    let log = std::fs::read_to_string(log.lines().next().unwrap()).unwrap();
    assert!(log.contains("the end of it\n") && log.contains("[Exit Code: 0]"), "{log}");
    assert!(updates.iter().any(|it| it.to_string().contains(TOLD)), "the user sees it, too");
}

#[test]
fn the_end_of_a_command_between_turns_comes_with_the_next_prompt() {
    let mut n = 0;
    let (sandbox, server, mut client, session) = start(move |_| {
        n += 1;
        (n < MAX).then(|| if n == 1 { waiting() } else { says("Yes.") })
    });
    prompt(&mut client, &session, "go");
    assert!(!server.asked()[1].body.contains(TOLD), "it waits");
    while !sandbox.workspace().join("go").exists() {
        std::thread::yield_now();
    }
    // Whoever writes there waits for its reader.
    std::fs::write(sandbox.workspace().join("go"), "on\n").unwrap();
    let mut n_prompts = 1;
    while !server.asked().last().unwrap().body.contains(TOLD) {
        n_prompts += 1;
        prompt(&mut client, &session, &format!("prompt {n_prompts}"));
    }
    let seen = texts(&server.asked().last().unwrap().body);
    let at = seen.iter().position(|it| it.contains(TOLD)).unwrap();
    assert_eq!(seen[at - 1], format!("prompt {n_prompts}"), "behind the prompt that it came with");
    assert!(seen[at].contains("has ended: exit code 0."), "{}", seen[at]);
    // Once, and it stays; also for the next process.
    prompt(&mut client, &session, "more");
    client.end().unwrap();
    let mut client = Client::start(&sandbox);
    client.initialize(&json!({})).unwrap();
    let place = json!({ "sessionId": session, "cwd": sandbox.workspace(), "mcpServers": [] });
    client.call("session/load", place).unwrap();
    prompt(&mut client, &session, "and more");
    assert_eq!(server.asked().last().unwrap().body.matches(TOLD).count(), 1);
}

/// AIR stops one, and hears of the end of another.
#[test]
fn commands_in_the_background_are_tasks_of_air() {
    let air = json!({ "_meta": { "jetbrains": { "air": { "version": 1, "capabilities": ["asyncTasks"] } } } });
    let mut n = 0;
    let answer = move |_: &Asked| {
        n += 1;
        let sleep = json!({ "command": "exec sleep 600", "is_background": true, "delay_ms": 0 });
        Some(match n {
            1 => calls("run_shell_command", &sleep),
            3 => waiting(),
            _ => says("Yes."),
        })
    };
    let (sandbox, _server, mut client, session) = start_for(answer, &air);
    let tasks = |updates: &[Value]| -> Vec<Value> {
        let all = updates.iter().map(|it| it["params"]["update"].clone());
        all.filter(|it| it["sessionUpdate"].as_str().is_some_and(|it| it.starts_with("async_task_"))).collect()
    };
    let updates = prompt(&mut client, &session, "go");
    let spawned = tasks(&updates).remove(0);
    assert_eq!((&spawned["taskType"], &spawned["name"]), (&json!("shell"), &json!("exec sleep 600")));
    let id = &spawned["asyncTaskId"];
    let is_update = |it: &&Value| it["params"]["update"]["sessionUpdate"] == "tool_call_update";
    let ended = updates.iter().rfind(is_update).unwrap();
    let mark = "/params/update/_meta/jetbrains/air/asyncTasks/backgrounded";
    assert_eq!(ended.pointer(mark), Some(&json!(true)), "{ended}");
    let stop = json!({ "sessionId": session, "asyncTaskId": id });
    let (answer, _) = client.call("_session/async_task/stop", stop.clone()).unwrap();
    assert_eq!(answer["result"], json!({ "stopped": true }));
    let (answer, updates) = client.call("_session/async_task/stop", stop).unwrap();
    assert_eq!(answer["result"], json!({ "stopped": false }));
    assert_eq!(tasks(&updates)[0]["state"], "stopped", "it comes behind the first answer");

    let waits = tasks(&prompt(&mut client, &session, "again")).remove(0)["asyncTaskId"].clone();
    while !sandbox.workspace().join("go").exists() {
        std::thread::yield_now();
    }
    std::fs::write(sandbox.workspace().join("go"), "on\n").unwrap();
    let told = loop {
        let update = client.next().unwrap().unwrap()["params"]["update"].clone();
        if update["sessionUpdate"] == "async_task_state_update" {
            break update;
        }
    };
    assert_eq!((&told["asyncTaskId"], &told["state"]), (&waits, &json!("completed")));
}

/// Its number is listed, its output read, and another session of the same process has neither.
#[test]
fn output_in_the_background_is_for_its_session_alone() {
    let (mut n, mut pid) = (0, String::new());
    let (sandbox, server, mut client, session) = start(move |asked| {
        n += 1;
        if let Some((_, rest)) = asked.body.split_once("PID: ") {
            pid = rest.chars().take_while(char::is_ascii_digit).collect();
        }
        // Of another session: the number as it is known from the first one.
        let read = |delay_ms: u64| {
            calls(
                "read_background_output",
                &json!({ "pid": pid.parse::<u32>().unwrap(), "lines": 5, "delay_ms": delay_ms }),
            )
        };
        Some(match n {
            1 => calls(
                "run_shell_command",
                &json!({ "command": "echo it began; exec sleep 600", "is_background": true, "delay_ms": 0 }),
            ),
            2 => calls("list_background_processes", &json!({})),
            _ if asked.body.contains("listens elsewhere") => match n % 3 {
                _ if asked.body.contains("No command that this session") => says("Nothing."),
                _ if asked.body.contains("Nothing was left in the background") => read(0),
                _ => calls("list_background_processes", &json!({})),
            },
            _ if asked.body.matches("it began\\n</untrusted_context>").count() > 1 => says("It began."),
            // Each another number: the same call again and again would be a loop.
            _ if n < MAX => read(100 + n as u64 % 7),
            _ => return None,
        })
    });
    prompt(&mut client, &session, "go");
    let last = server.asked().last().unwrap().body.clone();
    assert!(last.contains("(running): `echo it began; exec sleep 600`"), "{last}");
    let other = client.new_session(&sandbox.workspace()).unwrap();
    prompt(&mut client, &other, "one who listens elsewhere");
    assert!(server.asked().last().unwrap().body.contains("No command that this session left in the background"));
}

/// Limits hold on when the call has returned, of what was sent to the background and of what was left behind there.
#[test]
fn what_goes_on_in_the_background_is_held_to_the_limits() {
    let hungry = "for i in $(seq 30); do sleep 1000.7 & done";
    for (command, background) in [
        (format!("{hungry}; wait"), true),
        (format!("({hungry}; exec >/dev/null 2>&1; wait) >/dev/null 2>&1 &"), false),
    ] {
        let mut n = 0;
        let server = ModelServer::answering(move |_| {
            n += 1;
            let args = json!({ "command": command, "is_background": background, "delay_ms": 0 });
            Some(if n == 1 { calls("run_shell_command", &args) } else { says("Yes.") })
        });
        let mut sandbox = Sandbox::new();
        sandbox.write("home/.castor/settings.json", r#"{"tools":{"shell":{"maxProcesses":20}}}"#);
        sandbox.args.extend(["--approval-mode", "yolo"].map(Into::into));
        sandbox.env.push(("GOOGLE_GEMINI_BASE_URL".into(), server.url.clone()));
        sandbox.env.push(("GEMINI_API_KEY".into(), "k".into()));
        let mut client = Client::start(&sandbox);
        client.initialize(&json!({})).unwrap();
        let session = client.new_session(&sandbox.workspace()).unwrap();
        prompt(&mut client, &session, "go");
        let told = (0..50 * MAX).find_map(|n| {
            prompt(&mut client, &session, &format!("prompt {n}"));
            texts(&server.asked().last().unwrap().body).into_iter().find(|it| it.contains(TOLD))
        });
        let told = told.unwrap_or_else(|| panic!("{background}: nothing was told"));
        let want = "which ran in the background, was stopped, because it had more than 20 processes at once. The user's \
                    setting tools.shell.maxProcesses says so.";
        assert!(told.contains(want), "{background}: {told}");
    }
}
