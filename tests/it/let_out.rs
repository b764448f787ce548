//! Programs that the user lets out of the sandbox: they go out while all that they reach is looked at, and a question shows
//! what is not.
#![cfg(target_os = "linux")]

mod lacks;

use std::{
    fs,
    io::Read,
    os::unix::{fs::PermissionsExt, net::UnixListener},
    thread,
    time::Instant,
};

use serde_json::{Value, json};

use crate::{
    client::{Client, Sandbox},
    model_server::{calls, says},
    outside::{bed, python_server, ran, with_model},
};

/// What a prompt asked, and what was said beside it.
#[derive(Default)]
pub struct Seen {
    pub questions: Vec<Value>,
    pub said: String,
}

impl Seen {
    /// Files of the diffs that the questions show, with their new texts.
    fn diffs(&self) -> Vec<(String, String)> {
        let content =
            self.questions.iter().flat_map(|it| it["toolCall"]["content"].as_array().cloned().unwrap_or_default());
        let diffs = content.filter(|it| it["type"] == "diff");
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        diffs.map(|it| (text(&it["path"]).rsplit('/').next().unwrap().to_owned(), text(&it["newText"]))).collect()
    }
}

/// Runs a prompt to its end. `answer`: the option that each question gets; empty: it is cancelled.
pub fn prompt(client: &mut Client, session: &str, answer: &str) -> Seen {
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    client.request_as(json!("p"), "session/prompt", params);
    let mut res = Seen::default();
    loop {
        let it = client.next().unwrap_or_else(|why| panic!("{why}: {:?} {}", res.questions, res.said));
        let it = it.expect("more was to come");
        if it["method"] == "session/request_permission" {
            let chosen = match answer {
                "" => json!({"outcome": {"outcome": "cancelled"}}),
                _ => json!({"outcome": {"outcome": "selected", "optionId": answer}}),
            };
            client.send(&json!({"jsonrpc": "2.0", "id": it["id"], "result": chosen}));
            res.questions.push(it["params"].clone());
        } else if it["id"] == "p" {
            return res;
        } else {
            res.said += &format!("{}\n", it["params"]["update"]);
        }
    }
}

pub fn order(command: &str) -> String {
    calls("run_shell_command", &json!({"command": command}))
}

pub fn open(sandbox: &Sandbox, capabilities: &Value) -> (Client, String) {
    let mut client = Client::start(sandbox);
    client.initialize(capabilities).unwrap();
    let session = client.new_session(&sandbox.workspace()).unwrap();
    (client, session)
}

/// A hook outside that marks which text of the file `stage` it ran with.
fn with_hook() -> Sandbox {
    let sandbox = bed("auto", &json!({}));
    let hook = json!({"type": "command", "command": "touch $HOME/ran-hook-$(cat stage)", "sandbox": false});
    let settings = json!({"hooks": {"AfterTool": [{"matcher": "run_shell_command", "hooks": [hook]}]}});
    sandbox.write("home/.castor/settings.json", &settings.to_string());
    sandbox.write("ws/stage", "1");
    sandbox
}

const STAGES: &[&str] = &["echo a", "echo 2 >stage", "echo b", "echo 3 >stage", "echo c"];

fn stages() -> Vec<String> {
    STAGES.iter().map(|it| order(it)).chain([says("Done.")]).collect()
}

/// A yes is a look at exactly the bytes of the diff; what is written later keeps it inside, without another question.
#[test]
fn a_yes_to_the_diff_lets_a_hook_out_once() {
    let mut sandbox = with_hook();
    let _model = with_model(&mut sandbox, stages());
    let (mut client, session) = open(&sandbox, &json!({}));
    let seen = prompt(&mut client, &session, "allow_once");
    assert!(client.end().unwrap().0.success());
    assert_eq!(ran(&sandbox), ["ran-hook-1", "ran-hook-2"], "{}", seen.said);
    assert_eq!(seen.diffs(), [("stage".to_owned(), "2\n".to_owned())], "{:?}", seen.questions);
    let title = seen.questions[0]["toolCall"]["title"].as_str().unwrap();
    assert!(title.starts_with("Let the hook ") && title.contains("outside the sandbox"), "{title}");
}

/// A no, a closed question, and nobody to ask: it stays inside, which is said once.
#[test]
fn without_a_yes_a_hook_stays_inside() {
    let headless = json!({"_meta": {"castor": {"interactive": false}}});
    for (answer, capabilities, n_asked) in [("reject_once", json!({}), 1), ("", json!({}), 1), ("", headless, 0)] {
        let mut sandbox = with_hook();
        let _model = with_model(&mut sandbox, stages());
        let (mut client, session) = open(&sandbox, &capabilities);
        let seen = prompt(&mut client, &session, answer);
        assert!(client.end().unwrap().0.success());
        assert_eq!(ran(&sandbox), ["ran-hook-1"], "{answer}: {}", seen.said);
        assert_eq!(seen.questions.len(), n_asked, "{answer}: {:?}", seen.questions);
        assert_eq!(seen.said.matches("though its settings say outside").count(), 1, "{answer}: {}", seen.said);
        assert!(seen.said.contains("castor looked"), "{}", seen.said);
    }
}

/// Whatever cannot be shown whole is no question: a yes would say more than a person saw.
#[test]
fn what_a_diff_cannot_show_is_not_asked_about() {
    for command in
        ["printf 'a\\000b' >stage", "mkdir many; for i in $(seq 30); do echo $i >many/$i; done", "ln -sf x link"]
    {
        let mut sandbox = with_hook();
        let answers = vec![order("echo a"), order(command), order("echo b"), says("Done.")];
        let _model = with_model(&mut sandbox, answers);
        let (mut client, session) = open(&sandbox, &json!({}));
        let seen = prompt(&mut client, &session, "allow_once");
        assert!(client.end().unwrap().0.success());
        assert_eq!((seen.questions.len(), ran(&sandbox).len()), (0, 1), "{command}: {}", seen.said);
        assert_eq!(seen.said.matches("though its settings say outside").count(), 1, "{command}: {}", seen.said);
    }
}

/// The mode decides about calls, and not about this.
#[test]
fn no_mode_and_no_grant_answers_the_question() {
    for mode in ["yolo", "default"] {
        let mut sandbox = with_hook();
        sandbox.args = ["acp", "--approval-mode", mode].map(Into::into).to_vec();
        let _model = with_model(&mut sandbox, stages());
        let (mut client, session) = open(&sandbox, &json!({}));
        let answer = if mode == "yolo" { "reject_once" } else { "allow_session" };
        prompt(&mut client, &session, answer);
        assert!(client.end().unwrap().0.success());
        let out = ran(&sandbox);
        assert!(!out.contains(&"ran-hook-2".to_owned()) && !out.contains(&"ran-hook-3".to_owned()), "{mode}: {out:?}");
    }
}

/// A server of the user's in the workspace says with each call where it runs, by whether it can write the home folder.
const PLACE: &str = r#"
def place(note):
    try:
        open(os.environ["HOME"] + "/ran-" + note, "w")
        return "outside " + note
    except OSError:
        return "inside " + note
"#;
const SAYS_PLACE: &str = "said = {'content': [{'type': 'text', 'text': place(open('note').read().strip())}]}";

fn with_server() -> Sandbox {
    let sandbox = bed("yolo", &json!({}));
    sandbox.write("ws/tool/server.py", &python_server(PLACE, SAYS_PLACE));
    sandbox.write("ws/note", "1");
    let server = json!({"command": "python3", "args": ["tool/server.py"], "sandbox": false});
    sandbox.write("home/.castor/settings.json", &json!({"mcpServers": {"s": server}}).to_string());
    sandbox
}

/// Each call counts as a start: what an agent wrote since then sends the server inside, and a yes lets it out again.
#[test]
fn a_call_of_a_server_outside_is_checked_as_its_start_was() {
    for (answer, last) in [("reject_once", "inside 2"), ("allow_once", "outside 2")] {
        let mut sandbox = with_server();
        let call = || calls("mcp_s_t", &json!({}));
        let swap = order("echo 2 >note; echo '# mine' >>tool/server.py");
        let _model = with_model(&mut sandbox, vec![call(), swap, call(), call(), says("Done.")]);
        let (mut client, session) = open(&sandbox, &json!({}));
        let seen = prompt(&mut client, &session, answer);
        assert!(client.end().unwrap().0.success());
        assert!(seen.said.contains("outside 1") && seen.said.contains("inside 2"), "{answer}: {}", seen.said);
        let [first, second] = ["inside 2", last].map(|it| seen.said.rfind(it));
        assert!(second >= first && second.is_some(), "{answer}: {}", seen.said);
        assert_eq!(seen.questions.len(), 1, "{answer}: {:?}", seen.questions);
        let mut files: Vec<String> = seen.diffs().into_iter().map(|it| it.0).collect();
        files.sort();
        assert_eq!(files, ["note", "server.py"], "{answer}");
        assert_eq!(ran(&sandbox).contains(&"ran-2".to_owned()), answer == "allow_once", "{answer}: {}", seen.said);
        assert!(seen.said.contains("though its settings say outside"), "{}", seen.said);
    }
}

/// A command in the background may write whatever was looked at: nothing goes out until it has ended.
#[test]
fn while_an_agent_still_writes_nothing_goes_out() {
    let mut sandbox = with_hook();
    let started = calls("run_shell_command", &json!({"command": "read < hold", "is_background": true, "delay_ms": 0}));
    let answers = vec![order("echo a"), started, says("Done."), order("echo b"), says("Done.")];
    let _model = with_model(&mut sandbox, answers);
    let hold = sandbox.workspace().join("hold");
    assert!(std::process::Command::new("mkfifo").arg(&hold).status().unwrap().success());
    let (mut client, session) = open(&sandbox, &json!({}));
    let seen = prompt(&mut client, &session, "allow_once");
    assert!(seen.said.contains("a process of an agent still runs"), "{}", seen.said);
    sandbox.write("ws/stage", "2");
    let before = Instant::now();
    let seen = prompt(&mut client, &session, "allow_once");
    assert!(before.elapsed().as_secs() >= 2, "a start waits for who still writes");
    assert_eq!(ran(&sandbox), ["ran-hook-1"], "{:?}", seen.questions);
}

/// Tries what its key may open, and then is what castor started it as: a hook, a checker, a server or an agent.
const PROBE: &str = r#"#!/usr/bin/env python3
import json, os, socket, sys
home, kind = os.environ["HOME"], sys.argv[1]
try:
    open(f"{home}/open/{kind}", "w").close()
except OSError:
    pass
try:
    with socket.socket(socket.AF_UNIX) as it:
        it.connect(f"{home}/sockets/given.sock")
        it.sendall(kind.encode() + b"\n")
except OSError:
    pass
try:
    with socket.socket(socket.AF_UNIX) as it:
        it.connect(f"{home}/sockets/other.sock")
        it.sendall(b"other-" + kind.encode() + b"\n")
except OSError:
    pass
if kind == "checker":
    print(json.dumps({"decision": "allow"}))
"#;

/// A socket that notes in a file what it is told.
fn listen(sandbox: &Sandbox, name: &str) {
    let listener = UnixListener::bind(sandbox.home().join("sockets").join(name)).unwrap();
    let heard = sandbox.home().join("heard");
    thread::spawn(move || {
        for it in listener.incoming() {
            let mut said = String::new();
            it.unwrap().read_to_string(&mut said).unwrap();
            let before = fs::read_to_string(&heard).unwrap_or_default();
            fs::write(&heard, before + &said).unwrap();
        }
    });
}

/// The key `sandbox`, wherever castor starts something: folders to write, and one socket of all that there are.
#[test]
fn each_kind_of_program_has_the_folders_and_sockets_of_its_key() {
    const KINDS: &[&str] = &["agent", "checker", "hook", "server"];
    for has_key in [false, true] {
        let mut sandbox = bed("yolo", &json!({}));
        let probe = sandbox.write("home/bin/probe", PROBE);
        fs::set_permissions(&probe, fs::Permissions::from_mode(0o755)).unwrap();
        for it in ["open", "sockets"] {
            fs::create_dir(sandbox.home().join(it)).unwrap();
        }
        ["given.sock", "other.sock"].iter().for_each(|it| listen(&sandbox, it));
        let key = match has_key {
            true => json!({"writable": ["~/open"], "sockets": [sandbox.home().join("sockets/given.sock")]}),
            false => json!({}),
        };
        let hook = json!({"type": "command", "command": format!("{} hook", probe.display()), "sandbox": key});
        let server = json!({"command": probe, "args": ["server", "."], "sandbox": key});
        let settings = json!({"hooks": {"BeforeAgent": [{"hooks": [hook]}]}, "mcpServers": {"s": server},
            "mcp": {"maxRestarts": 0}});
        sandbox.write("home/.castor/settings.json", &settings.to_string());
        let key = format!("sandbox: {key}");
        let agent = format!(
            "---\nkind: acp\nname: peer\ndescription: d\ncommand: {}\nargs: [agent]\n{key}\n---\n",
            probe.display()
        );
        sandbox.write("home/.castor/agents/peer.md", &agent);
        let paths = |list: &str| if has_key { format!("[{list}]") } else { "[]".to_owned() };
        let socket = format!("{:?}", sandbox.home().join("sockets/given.sock"));
        let checker = format!(
            "[[safety_checker]]\ntoolName = \"run_shell_command\"\n[safety_checker.checker]\ntype = \"external\"\n\
             name = {probe:?}\nargs = [\"checker\"]\nsandbox = {{ writable = {}, sockets = {} }}\n",
            paths("\"~/open\""),
            paths(&socket)
        );
        sandbox.write("home/.castor/policies/c.toml", &checker);
        let peer = calls("invoke_agent", &json!({"agent_name": "peer", "prompt": "go"}));
        let _model = with_model(&mut sandbox, vec![order("echo a"), peer, says("Done.")]);
        let (mut client, session) = open(&sandbox, &json!({}));
        let seen = prompt(&mut client, &session, "reject_once");
        assert!(client.end().unwrap().0.success());
        let want: &[&str] = if has_key { KINDS } else { &[] };
        let mut wrote: Vec<String> = fs::read_dir(sandbox.home().join("open"))
            .unwrap()
            .map(|it| it.unwrap().file_name().into_string().unwrap())
            .collect();
        wrote.sort();
        assert_eq!(wrote, want, "{has_key}: {}", seen.said);
        let heard = fs::read_to_string(sandbox.home().join("heard")).unwrap_or_default();
        let mut heard: Vec<&str> = heard.lines().collect();
        heard.sort();
        assert_eq!(heard, want, "{has_key}: {}", seen.said);
    }
}
