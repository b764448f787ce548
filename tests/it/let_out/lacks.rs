//! What programs of the user's lack in the sandbox: one question for each line of the settings, with the key to set.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::{Value, json};

use super::{Seen, open, order, prompt};
use crate::{
    client::Sandbox,
    model_server::{calls, says},
    outside::{bed, python_server, with_model},
};

/// Swallows what it meets, and ends well.
const SWALLOWS: &str =
    "python3 -c 'import os\ntry: open(os.environ[\"HOME\"] + \"/logs/x\", \"w\")\nexcept OSError: pass'";
const CONNECTS: &str = "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 443), 3)' 2>/dev/null";
const FETCHES: &str =
    "python3 -c 'import urllib.request; urllib.request.urlopen(\"http://log.example.com/x\")' 2>/dev/null";

fn with_hook(command: &str) -> Sandbox {
    let sandbox = bed("auto", &json!({}));
    let hook = json!({"type": "command", "name": "note", "command": command});
    let settings = json!({"hooks": {"AfterTool": [{"matcher": "run_shell_command", "hooks": [hook]}]}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    for it in ["logs", "private"] {
        fs::create_dir(sandbox.home().join(it)).unwrap();
    }
    sandbox.write("home/private/x", "1\n");
    sandbox.write("ws/read.sh", "cat ~/private/x\n");
    sandbox
}

/// Three commands, and so three runs of the hook.
fn three_runs(sandbox: &mut Sandbox, capabilities: &Value, answer: &str) -> Seen {
    let answers = ["echo a", "echo b", "echo c"].map(order).into_iter().chain([says("Done.")]).collect();
    let _model = with_model(sandbox, answers);
    let (mut client, session) = open(sandbox, capabilities);
    let seen = prompt(&mut client, &session, answer);
    assert!(client.end().unwrap().0.success());
    seen
}

fn title(it: &Value) -> &str {
    it["toolCall"]["title"].as_str().unwrap_or_default()
}

/// The question names the hook, what it lacked and the key; one that lost nothing is no matter.
#[test]
fn a_hook_that_lacks_something_is_asked_about_once() {
    for (command, want) in [
        ("echo x >>$HOME/logs/all", Some(("write below HOME/logs?", "\"writable\": [\"HOME/logs\"]"))),
        ("touch $HOME/logs/x 2>/dev/null; true", Some(("write below HOME/logs?", "\"writable\": [\"HOME/logs\"]"))),
        ("echo x >>$HOME/logs/all; exit 0", Some(("write below HOME/logs?", "\"writable\": [\"HOME/logs\"]"))),
        (CONNECTS, Some(("use the network?", "\"network\": true"))),
        (FETCHES, Some(("reach log.example.com", "\"network\": true"))),
        ("sh read.sh", Some(("read HOME/private", "\"readable\": [\"HOME/private"))),
        (SWALLOWS, None),
        ("cat $HOME/nowhere", None),
        ("exit 3", None),
        ("true", None),
    ] {
        let mut sandbox = with_hook(command);
        let seen = three_runs(&mut sandbox, &json!({}), "reject_once");
        let Some((what, key)) = want else {
            assert!(seen.questions.is_empty(), "{command}: {:?}", seen.questions);
            continue;
        };
        let home = sandbox.home().display().to_string();
        let (what, key) = (what.replace("HOME", &home), key.replace("HOME", &home));
        let said = format!("{} {}", seen.said, json!(seen.questions));
        assert_eq!(seen.questions.len(), 1, "{command}: {said}");
        let title = title(&seen.questions[0]);
        assert!(title.starts_with("Let the hook \"note\" ") && title.contains(&what), "{command}: {title}");
        let text = seen.questions[0].to_string().replace('\\', "");
        assert!(text.contains(&key) && text.contains("in your settings"), "{command}: {text}");
        assert!(!seen.said.contains("in your settings"), "{command} is told twice: {}", seen.said);
    }
}

/// A yes holds for the session, a no leaves it, and where nobody can be asked it is told once.
#[test]
fn an_answer_about_a_hook_holds_for_the_session() {
    let headless = json!({"_meta": {"castor": {"interactive": false}}});
    for (answer, capabilities, n_asked, n_runs) in
        [("allow_once", json!({}), 1, 2), ("reject_once", json!({}), 1, 0), ("", json!({}), 1, 0), ("", headless, 0, 0)]
    {
        let mut sandbox = with_hook("echo x >>$HOME/logs/all");
        let seen = three_runs(&mut sandbox, &capabilities, answer);
        assert_eq!(seen.questions.len(), n_asked, "{answer}: {:?}", seen.questions);
        let written = fs::read_to_string(sandbox.home().join("logs/all")).unwrap_or_default();
        assert_eq!(written.lines().count(), n_runs, "{answer}: {}", seen.said);
        let told = seen.said.matches("in your settings").count();
        assert_eq!(told, 1 - n_asked, "{answer}: {}", seen.said);
    }
}

/// A secret, guarded configuration and what nobody can name are for the settings alone.
#[test]
fn what_no_question_gives_is_told_once_with_the_key() {
    for command in ["touch $HOME/.castor/x", "echo x >.git/hooks/pre-commit"] {
        let mut sandbox = with_hook(command);
        fs::create_dir_all(sandbox.workspace().join(".git/hooks")).unwrap();
        let seen = three_runs(&mut sandbox, &json!({}), "allow_once");
        assert_eq!(seen.questions.len(), 0, "{command}: {:?}", seen.questions);
        let key = "\\\"sandbox\\\": false";
        assert_eq!(seen.said.matches(key).count(), 1, "{command}: {}", seen.said);
        assert!(!sandbox.workspace().join(".git/hooks/pre-commit").exists());
    }
}

/// A server wants to write in the home folder, and says of its failure what its first word says.
const WORK: &str = r#"
how = sys.argv[1]
def work():
    if how == "far":
        socket.create_connection(("192.0.2.1", 443), 3)
    open(os.environ["HOME"] + "/data/x", "w").close()
if how == "start":
    work()
"#;
const TRIES: &str = r#"
try:
    work()
except OSError as why:
    if how == "exit":
        raise
    if how == "log":
        print(f"error: {why}", file=sys.stderr, flush=True)
    if how in ("result", "silent", "far"):
        text = str(why) if how == "result" else "it failed"
        said = {"isError": True, "content": [{"type": "text", "text": text}]}
"#;

fn with_server(how: &str, key: &Value) -> Sandbox {
    let sandbox = bed("yolo", &json!({}));
    fs::create_dir(sandbox.home().join("data")).unwrap();
    let server = sandbox.write("home/servers/s.py", &python_server(WORK, TRIES));
    let server = json!({"command": "python3", "args": [server, how, "."], "sandbox": key});
    let settings = json!({"mcpServers": {"s": server}, "mcp": {"maxRestarts": 0}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox
}

/// Two prompts with calls of the server.
fn two_prompts(sandbox: &mut Sandbox, capabilities: &Value, answer: &str) -> Seen {
    let call = || calls("mcp_s_t", &json!({}));
    let answers = vec![call(), call(), says("1."), call(), says("2.")];
    let _model = with_model(sandbox, answers);
    let (mut client, session) = open(sandbox, capabilities);
    let mut seen = prompt(&mut client, &session, answer);
    let more = prompt(&mut client, &session, answer);
    assert!(client.end().unwrap().0.success());
    seen.questions.extend(more.questions);
    seen.said += &more.said;
    seen
}

/// By what its sandbox refused, its answer, its log or its end; what it swallows without harm is no matter.
#[test]
fn a_server_that_lacks_something_is_asked_about_once() {
    for how in ["result", "silent", "log", "exit", "start", "far", "nothing"] {
        let mut sandbox = with_server(how, &json!({"network": false}));
        let seen = two_prompts(&mut sandbox, &json!({}), "reject_once");
        let titles: Vec<&str> = seen.questions.iter().map(title).collect();
        let data = sandbox.home().join("data").display().to_string();
        let want = match how {
            "nothing" => vec![],
            "far" => vec!["Let the MCP server \"s\" use the network?".to_owned()],
            _ => vec![format!("Let the MCP server \"s\" write below {data}?")],
        };
        assert_eq!(titles, want, "{how}: {}", seen.said);
        let key = if how == "far" { "\"network\": true".to_owned() } else { format!("\"writable\": [\"{data}\"]") };
        let text = json!(seen.questions).to_string().replace('\\', "");
        assert!(how == "nothing" || text.contains(&key), "{how}: {text}");
        assert!(!seen.said.contains("in your settings"), "{how} is told twice: {}", seen.said);
        assert!(!sandbox.home().join("data/x").exists());
    }
}

/// A yes starts the server anew, also one that never came up; the key of the settings asks nothing.
#[test]
fn a_server_gets_what_it_lacks_by_an_answer_or_by_its_key() {
    for how in ["result", "exit", "start"] {
        let mut sandbox = with_server(how, &json!({"network": false}));
        let seen = two_prompts(&mut sandbox, &json!({}), "allow_once");
        assert_eq!(seen.questions.len(), 1, "{how}: {}", seen.said);
        assert!(sandbox.home().join("data/x").exists(), "{how}: {}", seen.said);
    }
    let mut sandbox = with_server("result", &json!({"network": false, "writable": ["~/data"]}));
    let seen = two_prompts(&mut sandbox, &json!({}), "reject_once");
    assert!(seen.questions.is_empty() && sandbox.home().join("data/x").exists(), "{}", seen.said);
}

#[test]
fn what_a_server_lacks_is_told_where_nobody_can_be_asked() {
    for how in ["silent", "start"] {
        let mut sandbox = with_server(how, &json!({}));
        let headless = json!({"_meta": {"castor": {"interactive": false}}});
        let seen = two_prompts(&mut sandbox, &headless, "");
        assert_eq!(seen.questions.len(), 0, "{how}");
        assert_eq!(seen.said.matches("in your settings").count(), 1, "{how}: {}", seen.said);
    }
}
